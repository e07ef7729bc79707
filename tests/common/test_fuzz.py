"""A few cases of the fuzzer's every part; and the fuzzer itself, which must say what went wrong, and go on where it was."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzz import planted
from fuzz.cases import PARTS, function_of, play
from fuzz.driver import Fuzzer, main
from fuzz.mutations import changed_bytes, changed_json, changed_npz
from fuzz.patience import Patience, usage
from fuzz.proofs import check_fluid
from fuzz.record import Record

SEEDS = {"solvers": range(28), "players": range(20), "files": range(62), "learners": range(17), "sharing": range(4)}
SEEDS |= {"arguments": range(140), "logs": range(40), "lists": range(8), "environments": range(24), "rolling": range(12)}


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(("part", "seed"), [(part, seed) for part in PARTS for seed in SEEDS.get(part, range(100))])
def test_a_case_of_every_kind_is_fine(part: str, seed: int) -> None:
    assert play(part, seed).counts.total() > 0


@pytest.mark.compiled
@pytest.mark.parametrize(("part", "seed"), [("solvers", 31005020), ("rolling", 31002317), ("logs", 31000135)])
def test_a_case_that_once_failed_is_fine(part: str, seed: int) -> None:
    assert play(part, seed).counts.total() > 0


def test_a_case_depends_on_its_seed_alone() -> None:
    import numpy as np

    from fuzz import draw
    from fuzz.cases import Case

    def drawn(seed: int) -> list[bytes]:
        case = Case("solvers", seed, Path(), np.random.default_rng(seed))
        return [draw.rows(case, 2, 3).tobytes() for _ in range(20)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def fuzzer(folder: Path, limit: float = 60.0) -> tuple[Fuzzer, list[str]]:
    said: list[str] = []
    return Fuzzer(Record.opened(folder), limit, said.append), said


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (planted.WRONG, "AssertionError: planted: a certificate that does not hold"),
        (planted.CRASH, "crash: the worker ended with SIGSEGV"),
        (planted.GREEDY, "Unable to allocate 7.28 TiB"),
    ],
)
def test_what_goes_wrong_is_found_with_what_replays_it(fault: int, found: str, tmp_path: Path) -> None:
    driver, said = fuzzer(tmp_path)
    assert driver.case("planted", planted.FINE)
    assert not driver.case("planted", fault)
    assert driver.case("planted", planted.FINE + planted.KINDS)  # it goes on
    driver.close()
    (finding,) = json.loads((tmp_path / "state.json").read_text())["findings"]
    assert found in finding["finding"]
    assert finding["alone"] is True
    assert finding["replay"].endswith(f"tests/helpers/fuzz --only planted --seed {fault}")
    assert finding["replay"] in said[1]


HUNG = [(planted.HANG, "waiting"), (planted.DEEP, "waiting"), (planted.BUSY, "CPU time")]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "how"), HUNG)
def test_a_case_that_hangs_is_ended_and_its_stack_is_kept(fault: int, how: str, tmp_path: Path) -> None:
    driver, said = fuzzer(tmp_path, 1.0)
    assert not driver.case("planted", fault)
    driver.close()
    (finding,) = driver.record.findings
    assert finding["finding"] == f"hang: no answer after 1 s of {how}"
    assert "planted.py" in finding["trace"]
    assert said


def test_a_process_that_waits_is_told_from_one_that_is_ready() -> None:
    idle = subprocess.Popen(["sleep", "60"], start_new_session=True)
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
    try:
        waiting, computing = Patience(idle.pid, 1.0), Patience(busy.pid, 1e9)
        time.sleep(1.2)
        assert waiting.over() == "no answer after 1 s of waiting"
        assert computing.over() == ""
        assert usage(busy.pid)[1]
        assert not usage(idle.pid)[1]
    finally:
        for process in (idle, busy):
            process.kill()
            process.wait()


def test_findings_from_one_line_are_counted_not_repeated(tmp_path: Path) -> None:
    driver, _ = fuzzer(tmp_path)
    for k in range(6):
        assert not driver.case("planted", planted.WRONG + planted.KINDS * k)
    driver.close()
    assert len(driver.record.findings) == 3
    assert driver.record.findings[0]["more"] == [planted.WRONG + planted.KINDS * k for k in (3, 4, 5)]


def test_the_next_call_goes_on(tmp_path: Path) -> None:
    driver, _ = fuzzer(tmp_path)
    for seed in range(3):
        driver.case("planted", seed % 2 and planted.KINDS)
    driver.case("planted", planted.WRONG)
    driver.case("planted", 2 * planted.KINDS)
    driver.close()
    again = Record.opened(tmp_path)
    assert again.of("planted").next == 2 * planted.KINDS + 1
    assert again.of("planted").counts == {"planted": 4}
    assert [one["seed"] for one in again.findings] == [planted.WRONG]
    assert not list(tmp_path.glob(".*"))


def test_the_command_line_replays_a_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--only", "planted", "--out", str(tmp_path)]
    assert main([*words, "--seed", "1"]) == 1
    assert "that does not hold" in capsys.readouterr().out
    assert main([*words, "--seed", str(planted.KINDS)]) == 0
    assert main([*words, "--minutes", "0"]) == 0
    assert "planted: 0 cases" in capsys.readouterr().out


def test_the_folder_is_a_program() -> None:
    place = Path(__file__).parents[1] / "helpers" / "fuzz"
    settings = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run([sys.executable, str(place), "--help"], capture_output=True, text=True, check=False, env=settings)
    assert "--only PART" in done.stdout, done.stderr


def test_a_wrong_certificate_is_seen() -> None:
    """The proofs can fail: a plan whose prices, value or occupancy is not right is refused."""
    from dataclasses import replace

    import rmab
    from strategies import random_problem

    problem, reward = random_problem(5, 4, 3, 5, 2)
    plan = rmab.solvers.solve_fluid(problem, reward)
    check_fluid(problem, reward, plan)
    for wrong in (
        replace(plan, value=plan.value + 1e-4),
        replace(plan, bound=plan.bound - 1e-4),
        replace(plan, prices=plan.prices * 0.9),
        replace(plan, share=plan.share * 0.5),
        replace(plan, share=plan.share * 0.0 + 1.0),
    ):
        with pytest.raises(AssertionError):
            check_fluid(problem, reward, wrong)


def test_a_plan_for_other_phases_is_seen() -> None:
    """Nor is one believed that takes a step for another: phases, budgets by step and start probabilities are looked at."""
    import rmab
    from timed import timed_problem

    problem, reward = timed_problem(3, 3, 2, 3, 5, budget=[1, 2, 0, 1, 3])
    plan, own = rmab.solvers.solve_fluid(problem, reward), problem.phase_of
    check_fluid(problem, reward, plan)
    for changes in ({"phase_of": 1 - own}, {"budget": [0, 2, 1, 1, 3]}, {"start": 0}):
        fields = {"start": problem.start, "budget": problem.budget, "phase_of": own, **changes}
        with pytest.raises(AssertionError):
            check_fluid(rmab.Problem(problem.arms, horizon=5, **fields), reward, plan)


def test_changes_change_files() -> None:
    import numpy as np

    from fuzz.cases import Case
    from fuzz.files import originals

    for name, change in (("task.json", changed_json), ("task.npz", changed_npz), ("task.npz", changed_bytes)):
        content = originals()[name]
        case = Case("files", 0, Path(), np.random.default_rng(0))
        assert sum(change(case, content) != content for _ in range(20)) >= 15


def test_every_part_has_a_function() -> None:
    assert all(callable(function_of(part)) for part in PARTS)
