"""`rmab run`, `rmab plan` and `rmab bound`: what they print is what the library says."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

import rmab
from commands import call, refused

KERNEL = [[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]
LEVEL = [[0, 0], [1, 1]]


@pytest.fixture
def problem() -> rmab.Problem:
    return rmab.Problem(rmab.Arms.identical(KERNEL, 5, state_names=["ill", "[b]well"]), start=0, budget=2, horizon=6)


@pytest.fixture
def task_file(problem: rmab.Problem, tmp_path: Path) -> Path:
    rewards = np.random.default_rng(0).random((4, 5, 2, 2))
    rmab.Task.from_rewards(problem, rewards, low=0, high=1, name="own").save(tmp_path / "task.json")
    return tmp_path / "task.json"


@pytest.fixture
def problem_file(problem: rmab.Problem, tmp_path: Path) -> Path:
    problem.save(tmp_path / "problem.json")
    return tmp_path / "problem.json"


def summary(*words: object) -> dict[str, object]:
    outcome = call("run", *words, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    return json.loads(outcome.stdout)


def test_a_run_is_the_library_s_run(task_file: Path) -> None:
    shown = summary(task_file, "ucmd", "--seed", 3, "-o", "doubt=0.2")
    played = rmab.run(rmab.Task.load(task_file), rmab.make_learner("ucmd", doubt=0.2), seed=3)
    assert shown["reward"] == played.reward.sum()
    assert shown["regret"] == {to: played.regret(to)[-1] for to in ("O1", "O2", "O3")}
    assert shown["relative_regret"] == {to: played.relative_regret(to) for to in ("O1", "O2", "O3")}
    assert sum(shown["terms"].values()) == pytest.approx(shown["regret"]["O1"], abs=1e-9)
    assert shown["budget_use"] == played.activations.sum() / (2 * 6 * 4)
    assert (shown["task"], shown["learner"], shown["seed"], shown["episodes"]) == ("own", "ucmd", 3, 4)


def test_seed_and_options_reach_the_task() -> None:
    shown = summary("cpap@iid", "random", "--seed", 5, "--episodes", 2, "-t", "arms=4", "-t", "budget=1", "-t", "horizon=3")
    game = rmab.make_task("cpap@iid", seed=5, episodes=2, arms=4, budget=1, horizon=3)
    assert shown["reward"] == rmab.run(game, "random", seed=5).reward.sum()
    assert shown["terms"] == {f"Term{k}": None for k in range(4)}


def test_a_task_from_a_file_takes_no_options_but_other_feedback(task_file: Path) -> None:
    assert "takes no seed and no options" in refused("run", task_file, "random", "--episodes", 2)
    assert summary(task_file, "random")["feedback"] == "bandit"
    assert summary(task_file, "random", "--feedback", "full")["feedback"] == "full"


def test_the_summary_shows_regret_its_sources_and_the_budget(task_file: Path) -> None:
    outcome = call("run", task_file, "ucmd")
    played = rmab.run(rmab.Task.load(task_file), "ucmd")
    for to in ("O1", "O2", "O3"):
        in_all, part = f"{played.regret(to)[-1]:.1f}", f"{100 * played.relative_regret(to):+.1f} %"
        assert re.search(rf"regret against {to}, .* {re.escape(in_all)} .* {re.escape(part)}", outcome.stdout)
    assert all(f"Term{k}," in outcome.stdout for k in range(4))
    assert re.search(r"activations +4\d +1\d\.\d +\d+\.\d %", outcome.stdout)
    assert "privileged" not in outcome.stdout
    assert "oracle is privileged: it knows the kernels" in call("run", task_file, "oracle").stdout


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_saved_rows_are_the_run_s_table(task_file: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    assert summary(task_file, "ucmd", "--save", path)["saved"] == str(path)
    read = {
        "csv": lambda: list(csv.DictReader(path.read_text().splitlines())),
        "parquet": lambda: parquet.read_table(path).to_pylist(),
    }
    rows = read[suffix]()
    wanted = rmab.run(rmab.Task.load(task_file), "ucmd").to_table()
    assert [one["learner"] for one in rows] == ["ucmd"] * 4
    for name in wanted.keys() - {"seconds"}:
        assert [float(one[name]) for one in rows] == pytest.approx(wanted[name].tolist(), abs=1e-12), name


def test_a_bound_is_the_library_s(problem: rmab.Problem, problem_file: Path, tmp_path: Path) -> None:
    (tmp_path / "reward.json").write_text(json.dumps(LEVEL))
    outcome = call("bound", problem_file, "--reward", tmp_path / "reward.json", "--json")
    shown, reward = json.loads(outcome.stdout), np.broadcast_to(LEVEL, (5, 2, 2))
    solved = rmab.solvers.solve_fluid(problem, reward)
    assert shown["bound"] == solved.bound
    assert shown["prices"] == solved.prices.tolist()
    assert shown["state_names"] == ["ill", "[b]well"]
    (block,) = shown["blocks"]
    assert block["arms"] == [0, 1, 2, 3, 4]
    assert block["index"] == rmab.planners.lagrangian_index(problem, reward).table[0].tolist()
    np.save(tmp_path / "reward.npy", reward)
    again = call("bound", problem_file, "--reward", tmp_path / "reward.npy", "--index", "occupancy", "--json")
    assert json.loads(again.stdout)["blocks"][0]["index"] == rmab.planners.occupancy_index(problem, reward).table[0].tolist()


def test_a_plan_in_words_names_states_arms_and_steps(problem: rmab.Problem, problem_file: Path, tmp_path: Path) -> None:
    (tmp_path / "reward.json").write_text(json.dumps(LEVEL))
    shown = call("bound", problem_file, "--reward", tmp_path / "reward.json").stdout
    reward = np.broadcast_to(LEVEL, (5, 2, 2))
    solved, table = rmab.solvers.solve_fluid(problem, reward), rmab.planners.lagrangian_index(problem, reward).table[0]
    assert f"No policy earns more than {solved.bound:,.4f} an episode" in shown
    assert re.search(r"^ +arms +state +0 +1 +2 +3 +4 +5 *$", shown, re.M)
    for start, s in (("0-4 +ill", 0), (r"\[b\]well", 1)):
        row = re.search(rf"^ +{start} +(.*)$", shown, re.M)
        assert row is not None
        cells = row[1].split()
        assert [float(one.rstrip("*")) for one in cells] == pytest.approx(table[:, s], abs=1e-3)
        assert [one.endswith("*") for one in cells] == (table[:, s] > solved.prices + 1e-9).tolist()


def test_the_plan_of_a_task_is_for_its_typical_reward(task_file: Path) -> None:
    shown = json.loads(call("bound", task_file, "--json").stdout)
    game = rmab.Task.load(task_file)
    assert shown["bound"] == rmab.solvers.solve_fluid(game.problem, game.base_reward).bound
    assert [one["arms"] for one in shown["blocks"]] == [[n] for n in range(5)]
    some = json.loads(call("bound", task_file, "--arm", 4, "--arm", 1, "--json").stdout)
    assert [one["arms"] for one in some["blocks"]] == [[1], [4]]


def test_a_long_table_is_cut_and_says_so() -> None:
    shown = call("bound", "deadline").stdout
    assert "60 more rows: choose arms with --arm, or print all with --json." in shown
    assert re.search(r"^ +0-99 +empty ", shown, re.M)


def test_a_narrow_terminal_shows_fewer_steps_and_whole_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = call("bound", "cpap", "--arm", 0).stdout
    assert re.search(r"^ +arms +state +0 +12 +24 +37 +49 *$", shown, re.M)
    assert re.search(r"^ +intermediate +\d", shown, re.M)
    assert max(map(len, shown.splitlines())) <= 80


def test_padded_states_are_not_shown(tmp_path: Path) -> None:
    arms = rmab.Arms.of_sizes([KERNEL, [[[1.0], [1.0]]]])
    rmab.Problem(arms, start=0, budget=1, horizon=2).save(tmp_path / "p.npz")
    (tmp_path / "reward.json").write_text(json.dumps(LEVEL))
    shown = call("bound", tmp_path / "p.npz", "--reward", tmp_path / "reward.json").stdout
    assert shown.count("state 0") == 2
    assert shown.count("state 1") == 1


def test_what_a_plan_cannot_use_is_refused(problem_file: Path, tmp_path: Path) -> None:
    assert "a problem file has no rewards; add --reward FILE" in refused("bound", problem_file)
    bad = tmp_path / "bad.json"
    for content, said in (
        ("[1, 2]", r"shape (N, S, 2) = (5, 2, 2) or (S, 2), got (2,)"),
        ("{", "neither a .npy array nor JSON"),
    ):
        bad.write_text(content)
        assert said in refused("bound", problem_file, "--reward", bad)
    assert "cannot be read" in refused("bound", problem_file, "--reward", tmp_path / "none.json")
    bad.write_text(json.dumps(LEVEL))
    assert "expected an arm from 0 to 4, got 5" in refused("bound", problem_file, "--reward", bad, "--arm", 5)
    bad.write_text('{"kind": "something else"}')
    assert "the file has kind 'something else'; the kind of a task is 'rmab task'" in refused("bound", bad)


def test_a_plan_is_the_library_s(problem_file: Path, tmp_path: Path) -> None:
    (tmp_path / "reward.json").write_text(json.dumps(LEVEL))
    words = ("plan", problem_file, "--reward", tmp_path / "reward.json", "--episodes", 12, "--seed", 3)
    shown = json.loads(call(*words, "--json").stdout)
    best = rmab.plan(rmab.Problem.load(problem_file), np.broadcast_to(LEVEL, (5, 2, 2)), episodes=12, seed=3)
    assert (shown["best"], shown["value"], shown["bound"]) == (best.name, best.value, best.bound)
    assert [one["name"] for one in shown["candidates"]] == [one.name for one in best.candidates]
    told = call(*words).stdout
    assert told.startswith(f"{problem_file}: {best.name} earns ")
    for one in best.candidates:
        assert re.search(rf"^ *{one.name} .*\b{one.episodes}\b", told, re.MULTILINE)
    assert "1 is not in the range x>=2" in refused("plan", "cpap", "--episodes", 1)


def test_candidates_are_chosen_and_the_best_policy_is_stored(problem_file: Path, tmp_path: Path) -> None:
    (tmp_path / "reward.json").write_text(json.dumps(LEVEL))
    words = ("plan", problem_file, "--reward", tmp_path / "reward.json", "--episodes", 4)
    shown = call(*words, "--candidates", "rolling, random", "--candidates", "id", "--save", tmp_path / "policy.npz").stdout
    policy = rmab.planners.load_policy(tmp_path / "policy.npz")
    best = rmab.plan(
        rmab.Problem.load(problem_file),
        np.broadcast_to(LEVEL, (5, 2, 2)),
        candidates=["rolling", "random", "id"],
        episodes=4,
    )
    assert repr(policy) == repr(best.policy)
    assert {re.split(r"\s+", line.strip())[0] for line in shown.splitlines()} >= {"rolling", "random", "id"}
    assert f"The policy is in {tmp_path / 'policy.npz'}" in shown
    assert "unknown planner 'roling', did you mean 'rolling'?" in refused(*words, "--candidates", "roling")
    assert "the name must end in .npz or .json" in refused(*words, "--save", tmp_path / "policy.txt")


def test_a_custom_planner_races_and_a_policy_that_cannot_be_stored_is_named(
    problem_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reward.json").write_text(json.dumps(LEVEL))
    (tmp_path / "mine_planner.py").write_text(
        "import numpy as np\n"
        "class First:\n"
        "    def act(self, h, states, rng):\n"
        "        return np.arange(len(states)) == 0\n"
        "def first(problem, reward):\n"
        "    return First()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    words = (
        "plan",
        problem_file,
        "--reward",
        tmp_path / "reward.json",
        "--episodes",
        2,
        "--candidates",
        "mine_planner:first",
    )
    assert json.loads(call(*words, "--json").stdout)["best"] == "mine_planner:first"
    line = "the policy of mine_planner:first cannot be stored: First has no `save`"
    outcome = call(*words, "--save", tmp_path / "policy.npz")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert line in outcome.stderr


def test_planners_are_listed_with_their_options() -> None:
    listed = json.loads(call("planners", "--json").stdout)
    assert {one["planner"]: one["summary"] for one in listed} == rmab.list_planners()
    assert "Whittle, 1988" in call("planners").stdout
    assert re.search(r"window +10 +integer >= 1 +number of steps to plan ahead", call("planners", "rolling").stdout)
    assert "has no options" in call("planners", "random").stdout
