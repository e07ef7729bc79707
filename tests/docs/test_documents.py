"""What the README says is what happens."""

import ast
import contextlib
import importlib.util
import io
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.S)


def test_the_readme_s_example_is_that_of_the_first_page_which_is_run() -> None:
    """But for comments; `test_code_blocks.py` runs it and compares what it prints."""
    page = (ROOT / "docs" / "start.md").read_text()
    first = re.search(r"```python\n(.*?)```\n\n```output\n(.*?)```", page, re.S)
    assert first
    (example,) = EXAMPLES
    assert ast.dump(ast.parse(example)) == ast.dump(ast.parse(first[1]))
    assert f"It prints `{first[2].strip()}`" in README


def test_the_page_on_logs_runs_and_its_links_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commands import call

    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "log.md").read_text()
    for line in re.findall(r"```sh\n(.*?)```", page, re.S)[0].splitlines():
        program, *words = shlex.split(line)
        assert program == "rmab"
        outcome = call(*words)
        assert outcome.exit_code == 0, f"{line}: {outcome.stderr}"
    assert all((tmp_path / name).stat().st_size for name in ("model.npz", "next-week.csv", "plan.html"))
    code = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(code) == 4
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n".join(code), "log.md", "exec"), {})
    assert "a call raises the chance of being engaged" in printed.getvalue()
    assert printed.getvalue().count("by the rule 'never_called'") == 3
    assert "COVERAGE" not in page


def test_the_readme_s_commands_go_from_a_log_to_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commands import call

    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^rmab .*$", README, re.M)
    assert [line.split()[1] for line in lines] == ["example-log", "fit", "list", "evaluate", "live", "live", "live"]
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if words[:2] in (["live", "demo"], ["live", "serve"]):  # these serve until they are stopped
            continue
        smaller = ["--arms", "120", "--weeks", "12"] if words[0] == "example-log" else []
        outcome = call(*words, *smaller)
        assert outcome.exit_code == 0, f"{line}: {outcome.stderr}"
    assert all((tmp_path / name).stat().st_size for name in ("next-week.csv", "plan.html", "programme.db"))


def test_the_example_is_five_lines_after_the_import() -> None:
    assert sum(bool(line.strip()) for line in EXAMPLES[0].splitlines()) == 1 + 5


@pytest.mark.parametrize("name", sorted(set(re.findall(r"rmab\.(\w+)[(`,. )]", README))))
def test_names_in_the_readme_exist(name: str) -> None:
    import rmab

    assert hasattr(rmab, name) or importlib.util.find_spec(f"rmab.{name}") is not None


def test_the_readme_is_short_and_has_what_it_should() -> None:
    assert len(README.split()) < 900
    for needed in ("make demo", "make test", "pip install", "docs/images/", "docs/tutorials/index.md", "CITATION.cff"):
        assert needed in README


def test_the_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`?make (\w+)", README)):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_demo_prints_a_table_and_saves_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "deep" / "plan.png"
    command = [sys.executable, str(ROOT / "examples" / "planners.py"), "--rounds", "20", "--out", str(picture)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    for policy in ("fluid bound", "LP-update", "Lagrangian index", "occupancy index", "myopic", "random", "round robin"):
        assert printed.count(policy) >= 2, policy
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_example_of_ever_more_arms_prints_tables_and_saves_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "deep" / "arms.png"
    sizes = ["--arms", "10", "20", "--steps", "30", "--rounds", "2"]
    command = [sys.executable, str(ROOT / "examples" / "asymptotic.py"), *sizes, "--out", str(picture)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    for policy, often in (("ID policy", 3), ("FTVA", 3), ("(auto)", 3), ("LP priorities (fill)", 3), ("Whittle", 2)):
        assert printed.count(policy) == often, policy
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_benchmarks_can_be_loaded() -> None:
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        assert runpy.run_path(str(path), run_name="loaded")
