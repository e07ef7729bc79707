# Everything runs in .venv, which the first call creates.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One process runs all tests of a file, because they share fixtures.
PYTEST := -m pytest -n auto --dist loadfile --no-loadscope-reorder
unexport PYTHONDONTWRITEBYTECODE # tests start many processes, which would compile every module again
SITE := $(BIN)/sphinx-build -W --keep-going -n -q -b html docs

.PHONY: help demo programme docs planners pictures pages test test-fast test-lowest style lint boundscheck fuzz messages coverage bench clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile

$(READY): pyproject.toml
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing rmab and its tools into $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,api-tests]'
	@touch $@

demo: $(READY) ## a small version of the paper's CPAP study, and its report (a few minutes)
	@echo "The first run compiles for a minute or two and then plays 8 rounds of 6 learners. Ctrl-C stops it; make demo resumes it."
	@$(BIN)/rmab study run paper-cpap --rounds 8 --out out/paper-cpap
	@$(BIN)/rmab study report out/paper-cpap

programme: $(READY) ## from an example log to next week's list, with a report for managers (a minute)
	@mkdir -p out/programme
	@$(BIN)/rmab example-log out/programme/log.csv --force
	@$(BIN)/rmab fit out/programme/log.csv --arm id --period week --state state --action called --group age,district \
		--reward engaged=1 --budget 100 --out out/programme/model.npz --report out/programme/fit.html
	@$(BIN)/rmab list out/programme/model.npz --budget 100 --csv out/programme/next-week.csv --force

planners: $(READY) ## plan the CPAP case study with every planner: a table and a figure
	@$(BIN)/python examples/planners.py

pictures: $(READY) ## draw the figures of the README by running the tutorials
	@mkdir -p out/pictures
	@for name in 2_learning 4_log 5_day; do \
		(cd out/pictures && ../../$(BIN)/python ../../tests/helpers/notebooks.py ../../docs/tutorials/$$name.md >/dev/null) || exit 1; \
		cp out/pictures/last.png docs/images/tutorial-$$name.png; \
	done

pages: $(READY) ## run all studies and write their pages in docs/: resumable, four hours (PAGES="growth --list")
	@$(BIN)/python studies/pages.py $(PAGES)

# Types, import contracts and the site are tests as well, so that they run in parallel.
test: $(READY) style ## ruff, then all tests, including types and the site: five minutes on two cores
	$(BIN)/python $(PYTEST)

test-fast: $(READY) ## quick tests, without lint, site and browser: two minutes on two cores
	$(BIN)/python $(PYTEST) -m "not slow and not docs and not browser"

LOWEST := .venv-lowest
# Where other packages are called: compiled code, linear programs, files and tables, pages, environments, the command line.
AT_LOWEST := $(patsubst %,tests/%.py,cli/test_cli docs/test_install estimation/test_fit gym/test_gym gym/test_gym_actions \
  learning/test_options logs/test_reading model/test_arrays model/test_problem play/test_feedback play/test_policy play/test_simulate \
  report/test_programme_report report/test_report runs/test_running solvers/test_fluid solvers/test_kernels study/test_study_engines \
  study/test_study_results study/test_study_spec)
# Old packages warn of deprecations in newer ones, which do not matter here.
test-lowest: $(LOWEST)/.ready ## tests with the lowest supported versions of all dependencies
	$(LOWEST)/bin/python $(PYTEST) -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning $(AT_LOWEST)

$(LOWEST)/.ready: pyproject.toml
	@echo "installing the lowest supported versions into $(LOWEST) (once) ..."
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(PYTHON) tests/helpers/lowest.py > $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/lowest.txt --editable '.[dev]'
	@touch $@

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: $(READY) style ## ruff, mypy (strict on src), which package may import which, and the site, where a warning is an error
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	RMAB_DOCS_EXECUTION=off $(SITE) out/site-lint

docs: $(READY) ## build the site and run every tutorial: out/site/index.html
	@$(SITE) out/site
	@echo "the site is in out/site/index.html"

boundscheck: $(READY) ## tests of compiled code with array bounds checks
	NUMBA_BOUNDSCHECK=1 $(BIN)/python $(PYTEST) -m compiled

MINUTES ?= 3
FIRST ?= 0
fuzz: $(READY) ## random models, logs, lists, files and arguments, checked independently (make fuzz MINUTES=120 FIRST=1000000)
	@$(BIN)/python tests/helpers/fuzz --minutes $(MINUTES) --first $(FIRST)

messages: $(READY) ## every error message of the library, by file and line, for review
	@$(BIN)/python tests/helpers/messages.py

coverage: $(READY) ## lines that no test runs, without compiled code
	$(BIN)/python $(PYTEST) --cov

bench: $(READY) ## benchmarks: speed compared with other packages, scaling, memory (about twenty minutes)
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
	@$(BIN)/python benchmarks/live.py
	@$(BIN)/python benchmarks/gym.py
	@$(BIN)/python benchmarks/memory.py

clean: ## remove the environment and generated files
	rm -rf $(VENV) $(LOWEST) out .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
