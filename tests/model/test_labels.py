"""Labels that nobody thought of, small numbers, and narrow terminals."""

import json
import re
from pathlib import Path

import pytest

import rmab
from commands import call
from rmab.cli.screen import number, print_table
from rmab.report import write_report
from rmab.report.numbers import number as reported, spread
from rmab.report.statistics import Interval
from rmab.study import Results, Study, run_study
from studies import TINY, Inline, small_study

STRANGE = ["$", "a$b", r"$\foo$", r"$\frac{$", r"\$x$", "$x^$ costs $5", "_hidden", "%s {0} \\n", "<b>&amp;"]


@pytest.mark.slow
def test_a_report_takes_any_label(tmp_path: Path) -> None:
    learners = [{"name": "random", "label": one} for one in STRANGE]
    tasks = [{"name": f"cpap@{kind}", "label": f"{kind} $^", "options": TINY} for kind in ("noisy", "iid")]
    study = small_study(1, learners=learners, tasks=tasks)
    status = run_study(study, tmp_path, engine=Inline())
    assert status.complete
    written = write_report(Results.open(tmp_path), tmp_path / "report")
    assert all(one.stat().st_size for one in written.figures)
    assert {"overview.png", "noisy-reward.pdf"} <= {one.name for one in written.figures}


@pytest.mark.parametrize("letter", ["\x00", "\n", "\x1b", "\x7f", "\u2028", "\u202e"])
def test_control_characters_in_names_and_labels_are_refused(tmp_path: Path, letter: str) -> None:
    whole = {"name": "x", "rounds": 1, "tasks": [{"name": "cpap"}], "learners": [{"name": "random"}]}
    for change, place in (
        ({"learners": [{"name": "random", "label": f"a{letter}"}]}, r"learners\[0\]\.label"),
        ({"tasks": [{"name": "cpap", "label": f"a{letter}b"}]}, r"tasks\[0\]\.label"),
        ({"tasks": [{"name": f"cpap{letter}"}]}, r"tasks\[0\]\.name"),
        ({"name": f"x{letter}"}, "name"),
        ({"title": f"x{letter}"}, "title"),
    ):
        file = tmp_path / "x.toml"
        file.write_text(_toml({**whole, **change}))
        with pytest.raises(rmab.errors.ModelError, match=rf"{place}: must have no control characters, found \\") as caught:
            Study.load(file)
        assert letter not in str(caught.value)


def _toml(whole: dict[str, object]) -> str:
    """Return a study as TOML."""

    def quoted(value: object) -> str:
        text = json.dumps(value)
        return text.replace("\x7f", "\\u007f") if isinstance(value, str) else text

    lines = [f"{key} = {quoted(value)}" for key, value in whole.items() if not isinstance(value, list)]
    for key, entries in whole.items():
        for one in entries if isinstance(entries, list) else ():
            lines += [f"[[{key}]]", *(f"{name} = {quoted(value)}" for name, value in one.items())]
    return "\n".join(lines)


def test_small_numbers_are_not_zero() -> None:
    assert (number(0.0), number(1e-7), number(-3e-12, "+.1f"), number(2e-9, "+.1f")) == ("0.0", "1e-07", "-3e-12", "+2e-09")
    assert number(1e-11, of=100.0) == "0.0"  # rounding
    assert (number(1234.56), number(0.05, ",.1f")) == ("1,234.6", "0.1")
    assert (reported(1.23456e-12), reported(0.0), reported(0.00012346)) == ("1.235e-12", "0", "0.0001235")
    assert spread(Interval(2.5e-8, 2.4e-8, 2.6e-8, 9)) == "2.5e-08 (2.4e-08 to 2.6e-08)"
    assert spread(Interval(1e-13, -1e-13, 3e-13, 9)) == "0 (0 to 0)"


def test_a_plan_for_small_rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for size in (1e-6, 1e-20):
        Path("reward.json").write_text(json.dumps([[0, 0], [0, 0], [size, size]]))
        task = rmab.make_task("cpap", arms=2, budget=1, horizon=4, episodes=1)
        task.problem.save("problem.json")
        outcome = call("bound", "problem.json", "--reward", "reward.json")
        assert outcome.exit_code == 0, outcome.stderr
        found = re.search(r"earns more than (\S+) an", outcome.stdout)
        assert found
        assert 0 < float(found[1]) < 100 * size
        assert re.search(r"activation .*[1-9]", outcome.stdout)


@pytest.mark.parametrize("width", [10, 24, 40, 60, 80, 200])
def test_nothing_is_cut_off_in_a_narrow_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [("a-rather-long-name-1", "what it is, in many words, more than fit", "12,345", "0.001"), ("b", "", "1", "")]
    print_table("Title", ("name", "what it is", "first number", "second number"), rows, left=2, notes=["a note"])
    printed = capsys.readouterr().out
    for word in ("a-rather-long-name-1", "12,345", "0.001", "many", "words,", "a note"):
        assert word in printed
    for words in (["learners"], ["study", "list"], ["tasks"], ["learners", "ucmd"]):
        shown = call(*words).stdout
        for name in {"learners": ["shifted-uc-o-reps", "full"], "tasks": ["cpap-adherence"]}.get(words[-1], []):
            assert name in shown
        assert "…" not in shown
    assert "learning-table" in call("study", "list").stdout
