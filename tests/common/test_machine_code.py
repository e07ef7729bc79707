"""Machine code on disk: nothing that is wrong with it breaks a command; it is said once, and the code compiled again."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rmab.cli import main
from rmab.common.machine_code import SUM

pytestmark = pytest.mark.slow

CODE = """
import numpy
from rmab.play.compiled.selection import uniform
print(uniform(numpy.arange(1, 5, dtype=numpy.uint64)))
"""
LIMITED = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"  # a disk with room for 100 bytes


def drawn(cache: Path, before: str = "", **settings: str) -> tuple[str, list[str]]:
    """Return what a fresh process prints, and the lines that it says about the cache."""
    given = {**os.environ, "XDG_CACHE_HOME": str(cache), **settings}
    done = subprocess.run([sys.executable, "-c", before + CODE], capture_output=True, text=True, env=given, check=True)
    return done.stdout, done.stderr.splitlines()


def files(cache: Path) -> list[Path]:
    return sorted(path for path in cache.glob("rmab/compiled-*/*") if path.is_file())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a cache that was used, and the right answer."""
    cache = tmp_path_factory.mktemp("cache")
    answer, said = drawn(cache)
    assert said == []
    assert files(cache)
    return cache, answer


def test_code_is_kept_and_loaded_again(filled: tuple[Path, str]) -> None:
    cache, answer = filled
    before = {path: path.stat().st_mtime_ns for path in files(cache)}
    assert drawn(cache) == (answer, [])
    assert {path: path.stat().st_mtime_ns for path in files(cache)} == before
    assert all(path.suffix == ".code" for path in before)
    assert (cache / "rmab").stat().st_mode & 0o77 == 0


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"", lambda data: data[:10], lambda data: data[:-1], lambda data: data[:2000] + b"?" + data[2001:]],
    ids=["empty", "a few bytes", "one byte short", "one byte wrong"],
)
def test_a_damaged_file_is_compiled_again(filled: tuple[Path, str], damage) -> None:
    cache, answer = filled
    for path in files(cache):
        path.write_bytes(damage(path.read_bytes()))
    printed, said = drawn(cache)
    assert printed == answer
    assert len(said) == 1
    assert said[0].endswith(": damaged; compiling (see rmab warm --help)")
    for path in files(cache):  # written again, as a whole: `test_code_is_kept_and_loaded_again` loads such files
        content = path.read_bytes()
        assert hashlib.sha256(content[SUM:]).digest() == content[:SUM]


def test_a_file_that_is_a_folder_is_compiled_again(filled: tuple[Path, str]) -> None:
    cache, answer = filled
    for path in files(cache):
        path.unlink()
        path.mkdir()
    printed, said = drawn(cache)
    assert (printed, len(said)) == (answer, 1)
    for path in cache.glob("rmab/compiled-*/*"):
        path.rmdir()
    assert drawn(cache) == (answer, [])


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
@pytest.mark.parametrize(("place", "mode"), [("rmab", 0o770), ("rmab/compiled-*", 0o702)])
def test_a_folder_that_others_can_write_is_not_used(filled: tuple[Path, str], place: str, mode: int) -> None:
    cache, answer = filled
    (folder,) = cache.glob(place)
    folder.chmod(mode)
    printed, said = drawn(cache)
    folder.chmod(0o700)
    assert (printed, len(said)) == (answer, 1)
    assert f"others can write there (mode {mode:o})" in said[0]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(filled: tuple[Path, str]) -> None:
    cache, answer = filled
    os.chown(cache / "rmab", 12345, -1)
    printed, said = drawn(cache)
    os.chown(cache / "rmab", 0, -1)
    assert (printed, len(said)) == (answer, 1)
    assert "it belongs to another user (number 12345)" in said[0]


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_full_disk_does_not_matter(filled: tuple[Path, str], tmp_path: Path) -> None:
    printed, said = drawn(tmp_path, LIMITED)
    assert (printed, len(said)) == (filled[1], 1)
    assert files(tmp_path) == []


def test_warm_clears_the_code_of_all_versions_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, elsewhere = tmp_path / "rmab" / "notes.txt", tmp_path / "elsewhere"
    for name in ("compiled-1", "compiled-2/deep"):
        (tmp_path / "rmab" / name).mkdir(parents=True, mode=0o700)
        (tmp_path / "rmab" / name / "a.code").write_bytes(b"12345")
    (tmp_path / "rmab").chmod(0o700)
    other.write_text("mine")
    elsewhere.mkdir()
    (elsewhere / "b.code").write_text("mine")
    (tmp_path / "rmab" / "compiled-3").symlink_to(elsewhere)
    (tmp_path / "rmab" / "compiled-1" / "link").symlink_to(elsewhere)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = CliRunner().invoke(main, ["warm", "--clear"])
    assert done.stdout == f"{tmp_path / 'rmab'}: 2 files removed, 0.0 MB\n"
    assert {path.name for path in (tmp_path / "rmab").iterdir()} == {"notes.txt", "compiled-3"}
    assert (elsewhere / "b.code").exists()
    again = CliRunner().invoke(main, ["warm", "--clear"])
    assert again.stdout.endswith(": 0 files removed, 0.0 MB\n")


INTERRUPTED = """
import os, signal
from numba.core import event
from rmab.common.compile import compiled

@compiled
def twice(number):
    return 2 * number

class Press(event.Listener):
    def on_start(self, _):
        os.kill(os.getpid(), signal.SIGINT)
    def on_end(self, _):
        print("compiled")

with event.install_listener("numba:compile", Press()):
    try:
        twice(3)
    except KeyboardInterrupt:
        print("interrupted")
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, twice(3))
"""


def test_ctrl_c_during_a_compilation_takes_effect_at_its_end(tmp_path: Path) -> None:
    # LLVM calls back into Python, where a KeyboardInterrupt is printed and lost: the run went on for ever
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED)
    given = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}  # nothing is compiled yet
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, env=given)
    assert done.stdout.split() == ["compiled", "interrupted", "True", "6"]


def test_a_second_ctrl_c_does_not_wait() -> None:
    from rmab.common.machine_code import defer_interrupt

    pressed: list[int] = []

    def press() -> None:
        with defer_interrupt():
            for number in (1, 2, 3):
                pressed.append(number)
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        press()
    assert pressed == [1, 2]


def test_after_warm_no_learner_compiles() -> None:
    import rmab
    from rmab.cli.warming import count_stored

    done = CliRunner().invoke(main, ["warm"])
    assert done.exit_code == 0, done.output
    assert f"everything is compiled: {count_stored()} functions, " in done.stdout
    before = count_stored()
    game = rmab.make_task("cpap@switching", arms=4, budget=2, horizon=8, episodes=4)
    for name in rmab.list_learners():
        rmab.run(game, name)
    assert count_stored() == before
