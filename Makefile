# Everything runs in .venv, which the first call creates; a second call is quick.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo programme planners pages test lint boundscheck fuzz coverage bench clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

$(READY): pyproject.toml
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing rmab and its tools into $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY) ## the paper's CPAP study with few rounds, its report, and what it shows (a few minutes)
	@echo "The first run compiles for a minute or two; then 8 rounds of 4 learners are played. Ctrl-C stops, make demo goes on."
	@$(BIN)/rmab study run paper-cpap --rounds 8 --out out/paper-cpap
	@$(BIN)/rmab study report out/paper-cpap

programme: $(READY) ## from a made-up log to next week's list, with the report for a manager (a minute)
	@mkdir -p out/programme
	@$(BIN)/rmab example-log out/programme/log.csv
	@$(BIN)/rmab fit out/programme/log.csv --arm id --period week --state state --action called --group age,district \
		--reward engaged=1 --budget 100 --out out/programme/model.npz --report out/programme/fit.html
	@$(BIN)/rmab list out/programme/model.npz --budget 100 --csv out/programme/next-week.csv

planners: $(READY) ## plan the CPAP case study with every planner: a table and a picture
	@$(BIN)/python examples/planners.py

pages: $(READY) ## run every study behind the pages of docs/ and write these: resumable, half a day (PAGES="growth --list")
	@$(BIN)/python studies/pages.py $(PAGES)

test: $(READY) lint ## lint, then every test
	$(BIN)/python -m pytest -n auto

lint: $(READY) ## ruff and mypy (strict on src)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

boundscheck: $(READY) ## the tests of the compiled code with array bounds checked
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -n auto -m compiled

MINUTES ?= 3
fuzz: $(READY) ## random models, files, options and arguments, checked by other code (make fuzz MINUTES=120 for hours)
	@$(BIN)/python tests/fuzz --minutes $(MINUTES)

coverage: $(READY) ## which lines no test runs; compiled code is left out
	$(BIN)/python -m pytest -n auto --cov

bench: $(READY) ## the benchmarks: ratios against peers, growth, memory (about twenty minutes)
	@$(BIN)/python benchmarks/simulator.py
	@$(BIN)/python benchmarks/projection.py
	@$(BIN)/python benchmarks/whittle.py
	@$(BIN)/python benchmarks/priced.py
	@$(BIN)/python benchmarks/ucmd.py
	@$(BIN)/python benchmarks/learners.py
	@$(BIN)/python benchmarks/studies.py scaling overhead
	@$(BIN)/python benchmarks/startup.py
	@$(BIN)/python benchmarks/controller.py
	@$(BIN)/python benchmarks/data.py

clean: ## remove the environment and what the tools left in this folder
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
