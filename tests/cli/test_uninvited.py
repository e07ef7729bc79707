"""Nothing runs uninvited: what a name may call, from where it is imported, and what its code may do to a command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rmab
from commands import call
from rmab.errors import escape
from rmab.study import LocalEngine, Results, Study, run_study
from studies import small_study

SOURCE = str(Path(rmab.__file__).parents[1])
STUDY = 'name = "x"\nrounds = 1\n[[tasks]]\nname = "{task}"\noptions = {{ {of_task} }}\n[[learners]]\nname = "{learner}"\n'
SMALL = "arms = 4, budget = 2, horizon = 5, episodes = 3"
FEW = ("-t", "arms=4", "-t", "budget=2", "-t", "horizon=5", "--episodes", "2")
MINE = """
from rmab.learning import RandomLearner, Learner
from shutil import rmtree
from pathlib import Path; Path("imported").write_text("x")
def make(): return RandomLearner()
def said() -> "Learner": return RandomLearner()
def other() -> int: Path("called").touch()
def nothing(): return None
class Not: pass
class Mine(RandomLearner): name = "mine"
"""


def rmab_in(folder: Path, *words: object, module: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, as a process of its own."""
    start = ["-m", "rmab"] if module else ["-c", "from rmab.cli import main; main(prog_name='rmab')"]
    command = [sys.executable, *([] if module else ["-P"]), *start, *map(str, words)]
    settings = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in an empty folder with a module of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine_here", raising=False)
    (tmp_path / "mine_here.py").write_text(MINE)
    return tmp_path


class TestNames:
    @pytest.mark.parametrize(
        ("name", "options"),
        [
            ("os:system", {"command": "touch called"}),
            ("subprocess:getoutput", {"cmd": "touch called"}),
            ("subprocess:Popen", {"args": "touch called", "shell": True}),
            ("shutil:rmtree", {"path": "imported"}),
            ("builtins:exec", {}),
            ("webbrowser:open", {"url": "x"}),
            ("numpy:save", {"file": "called", "arr": 1}),
            ("mine_here:rmtree", {"path": "imported"}),
            ("mine_here:other", {}),
            ("mine_here:Not", {}),
            ("mine_here:open", {}),
        ],
    )
    def test_only_what_makes_the_declared_kind_is_called(self, here: Path, name: str, options: dict[str, object]) -> None:
        sys.path.append(str(here))
        (here / "imported").mkdir()
        (here / "mine_here.py").write_text(MINE.replace('Path("imported").write_text("x")', ""))
        given = ", ".join(f"{key} = {json.dumps(value)}" for key, value in options.items())
        (here / "x.toml").write_text(STUDY.format(task="cpap", of_task=SMALL, learner=name) + f"options = {{ {given} }}\n")
        for attempt in (
            lambda: rmab.make_learner(name, **options),
            lambda: rmab.make_task(name, **options),
            lambda: rmab.make_task(f"cpap@{name}"),
            lambda: rmab.make_learner("ucmd", confidence=name),
            lambda: Study.load("x.toml"),
        ):
            with pytest.raises(rmab.errors.ModelError) as caught:
                attempt()
            assert "\n" not in str(caught.value)
        assert not (here / "called").exists()
        assert (here / "imported").is_dir()

    def test_classes_and_functions_of_the_kind_are(self, here: Path) -> None:
        sys.path.append(str(here))
        for name in ("make", "said", "Mine"):
            assert rmab.make_learner(f"mine_here:{name}").name in ("random", "mine")
        with pytest.raises(rmab.errors.ModelError, match="returned NoneType instead of Learner"):
            rmab.make_learner("mine_here:nothing")
        with pytest.raises(rmab.errors.ModelError, match="declares that it returns int, not Learner"):
            rmab.make_learner("mine_here:other")

    def test_the_standard_library_is_not_even_imported(self) -> None:
        sys.modules.pop("this", None)
        with pytest.raises(rmab.errors.ModelError, match="this is part of Python, not a custom module"):
            rmab.make_learner("this:anything")
        assert "this" not in sys.modules


class TestImports:
    @pytest.mark.slow
    def test_a_study_that_is_only_looked_at_imports_nothing(self, here: Path) -> None:
        sys.path.append(str(here))
        run_study(small_study(1, ("mine_here:Mine", "random")), here / "out", engine=LocalEngine(1))
        (here / "imported").unlink()
        del sys.modules["mine_here"]
        (here / "x.toml").write_text(STUDY.format(task="mine_here:clinic", of_task="", learner="mine_here:Mine"))
        for words in (["list"], ["show", "paper-cpap"], ["status", "out"], ["report", "out"], ["status", "out", "--json"]):
            outcome = call("study", *words)
            assert outcome.exit_code == 0, outcome.output
            assert "imported from" not in outcome.stderr
        Results.open(here / "out").status()
        assert "mine_here" not in sys.modules
        assert not (here / "imported").exists()

    @pytest.mark.slow
    def test_what_is_imported_is_said_once(self, here: Path) -> None:
        (here / "x.toml").write_text(STUDY.format(task="cpap", of_task=SMALL, learner="mine_here:Mine"))
        for words in (["run", "cpap", "mine_here:Mine", *FEW], ["study", "run", "x.toml", "--out", "out"]):
            outcome = rmab_in(here, *words)
            assert outcome.returncode == 0, outcome.stderr
            assert outcome.stderr.count(f"mine_here: imported from {here / 'mine_here.py'}\n") == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("module", [False, True])
    def test_the_current_folder_is_looked_at_only_for_names_that_ask(self, here: Path, module: bool) -> None:
        for name in ("coverage", "signal", "highspy", "multiprocessing", "tbb", "pandas"):
            (here / f"{name}.py").write_text(
                f"from pathlib import Path\nPath('ran').write_text({name!r})\nraise RuntimeError\n"
            )
        (here / "x.toml").write_text(STUDY.format(task="cpap", of_task=SMALL, learner="random"))
        for words in (["run", "cpap", "random", *FEW], ["study", "run", "x.toml", "--out", "out", "--workers", "1"]):
            outcome = rmab_in(here, *words, module=module)
            assert outcome.returncode == 0, outcome.stderr
        (here / "x.toml").write_text(STUDY.format(task="cpap", of_task=SMALL, learner="mine_here:Mine"))
        outcome = rmab_in(here, "study", "run", "x.toml", "--out", "own", "--workers", "1", module=module)
        assert outcome.returncode == 0, outcome.stderr
        assert not (here / "ran").exists()


class TestOwnCode:
    def test_an_attempt_to_end_the_program_is_an_error(self, here: Path) -> None:
        (here / "leaving.py").write_text("import sys\nsys.exit(0)\n")
        begin = "import sys\nfrom rmab.learning import RandomLearner\nclass Mine(RandomLearner):\n"
        later, made = f"{begin}    def decide(self, state): sys.exit(0)\n", f"{begin}    def __init__(self): sys.exit(0)\n"
        (here / "later.py").write_text(later)
        (here / "made.py").write_text(made)
        for name, code, said in (
            ("leaving:Mine", 2, "module 'leaving' cannot be imported (SystemExit: 0)"),
            ("made:Mine", 2, "raised SystemExit (0)"),
            ("later:Mine", 1, "your code called sys.exit(0)"),
        ):
            outcome = call("run", "cpap", name, *FEW)
            assert outcome.exit_code == code
            assert said in outcome.stderr.splitlines()[-1]
        (here / "x.toml").write_text(STUDY.format(task="cpap", of_task=SMALL, learner="later:Mine"))
        outcome = call("study", "run", "x.toml", "--out", "out", "--workers", 1)
        assert outcome.exit_code == 1
        assert "SystemExit: 0" in outcome.stderr
        assert "died" not in outcome.stderr

    @pytest.mark.slow
    def test_what_it_prints_does_not_reach_the_json(self, here: Path) -> None:
        (here / "loud.py").write_text(
            "import ctypes, os, subprocess, sys\nimport mine_here, rmab\nfrom rmab.learning import RandomLearner\n"
            "def shout():\n    print('python')\n    os.write(1, b'descriptor')\n    sys.__stdout__.write('kept')\n"
            "    ctypes.CDLL(None).printf(b'c')\n    subprocess.run(['echo', 'child'])\n"
            "shout()\nclass Loud(RandomLearner):\n    def decide(self, state):\n        shout()\n"
            "        return super().decide(state)\n"
            "def clinic(seed) -> rmab.Task:\n    shout()\n"
            "    return rmab.make_task('cpap', seed=seed, arms=4, budget=2, horizon=5, episodes=2)\n"
        )
        (here / "x.toml").write_text(STUDY.format(task="loud:clinic", of_task="", learner="loud:Loud"))
        for words in (
            ["run", "loud:clinic", "loud:Loud"],
            ["plan", "loud:clinic"],
            ["study", "run", "x.toml", "--out", "out"],
        ):
            outcome = rmab_in(here, *words, "--json")
            assert outcome.returncode == 0, outcome.stderr
            assert json.loads(outcome.stdout)
            assert all(word in outcome.stderr for word in ("python", "descriptor", "kept", "child"))

    def test_escape_sequences_are_shown_not_obeyed(self, here: Path) -> None:
        (here / "painted.py").write_text(
            "from rmab.learning import RandomLearner\nclass Red(RandomLearner):\n    name = '\\x1b[31mred'\n"
            "    privileged = 'is \\x9b31m red'\n"
            "class Angry(RandomLearner):\n"
            "    def decide(self, state): raise ValueError('\\x1b]0;title\\x07 \\u202e gnorw')\n"
        )
        raw = {chr(27), chr(7), chr(0x9B), chr(0x202E)}
        (here / "x.toml").write_text(STUDY.format(task="cpap", of_task=SMALL, learner="painted:Angry"))
        for words in (
            ["run", "cpap", "painted:Red", *FEW],
            ["run", "cpap", "painted:Angry", *FEW],
            ["--debug", "run", "cpap", "painted:Angry", *FEW],
            ["run", "cpap", "painted:\x1b[31m"],
            ["run", "\x1b[31m", "ucmd"],
            ["study", "run", "x.toml", "--out", "out"],
            ["study", "status", "out"],
            ["--debug", "study", "status", "out"],
            ["study", "status", "\x1b[31m"],
        ):
            outcome = call(*words)
            assert not raw & set(outcome.output), words
            assert "\\x1b" in outcome.output, words

    def test_only_control_characters_are_escaped(self) -> None:
        assert escape("é 漢 👩‍🔬\tline\n") == "é 漢 👩‍🔬\tline\n"
        assert escape("\x1b[0m\r\x00\x7f\x85\u2028\ud800") == "\\x1b[0m\\r\\x00\\x7f\\x85\\u2028\\ud800"
