"""Every learner keeps the contract."""

import pytest

import rmab
from rmab.learning.registry import CONFIDENCE, ESTIMATORS, STEPS
from rmab.testing import check_learner
from small_tasks import small_task

NAMES = {"confidence": list(CONFIDENCE), "estimator": list(ESTIMATORS), "step": list(STEPS)}
STEADY = {"rest": False, "replay": False}  # the priced step draws nothing
PARTS = [
    parts | {"probes": {"every": 0.0}} | (STEADY if parts["step"] == "priced" else {})
    for parts in (
        {option: names[i % len(names)] for option, names in NAMES.items()} for i in range(max(map(len, NAMES.values())))
    )
]
LOOKING = [
    ("ucmd", {}),
    ("ucmd", {"rule": "at-most", "rounding": "dependent", "scale": 2.0}),
    ("ucmd", {"probes": {"every": 0.0}}),
    ("ucmd", {"probes": {"every": 0.0}, "replay": False}),
]
DRAWING = [
    *[("ucmd", parts) for parts in PARTS if parts["estimator"] == "implicit"],
    ("shifted-uc-o-reps", {}),
    ("uob-reps", {"rate": 20.0}),
    ("dilated-po", {"rate": 1.0, "bonus": 0.1}),
    ("r2mab-ucb", {"version": "generator"}),
    ("thompson", {}),
    ("rmab-ucrl", {"version": "generator", "optimism": 0.1}),
    ("round-robin", {}),
    ("planner", {"planner": "round-robin"}),
]
DESCENDING = ["uc-o-reps", "shifted-uc-o-reps", "uob-reps", "dilated-po", "ucpd", "pdgd-ops"]
CASES = [
    *LOOKING,
    ("ucmd", {"probes": {"every": 0.0}, **STEADY}),
    *[("ucmd", parts) for parts in PARTS if parts["estimator"] != "implicit"],
    ("ucmd-armab", {}),
    ("uc-o-reps", {}),
    ("ucpd", {"preset": "tuned"}),
    ("pdgd-ops", {"preset": "tuned"}),
    ("rmab-ucrl", {"version": "stationary"}),
    ("rmab-ucrl", {"version": "finite"}),
    ("rmab-ucrl", {"version": "window"}),
    ("restless-ucb", {}),
    ("restless-ucb", {"preset": "tuned"}),
    ("r2mab-ucb", {}),
    ("r2mab-ucb", {"version": "explore", "index": "weighted"}),
    ("colored-ucrl2", {}),
    ("uc-whittle", {}),
    ("q-whittle", {}),
    ("random", {}),
    ("oracle", {}),
    *[(name, {}) for name in ("myopic", "whittle", "lagrangian")],
]


class TestLearners:
    def test_all_are_here(self):
        names = {case[0] for case in CASES + DRAWING}
        assert names == set(rmab.list_learners())
        for option, names in NAMES.items():
            assert {parts[option] for parts in PARTS} == set(names)

    @pytest.mark.slow
    @pytest.mark.parametrize(("name", "options"), CASES)
    def test_on_the_task_of_the_suite(self, name, options):
        learner, task = rmab.make_learner(name, **options), None
        if learner.feedback == "full":
            task = small_task(feedback="full", pooled=False)
        elif name == "colored-ucrl2":  # it plans for all arms at once
            task = rmab.make_task("cpap", arms=4, budget=1, horizon=4, episodes=3)
        check_learner(learner, task, episodes=3)

    @pytest.mark.parametrize(("name", "options"), DRAWING)
    def test_learners_that_draw_say_so_and_keep_all_other_clauses(self, name, options, monkeypatch):
        """They draw arm by arm: in another order, each arm has other luck."""
        learner = rmab.make_learner(name, **options)
        check_learner(learner, episodes=3)
        monkeypatch.setattr(type(learner), "draws", False)
        with pytest.raises(AssertionError, match=r"^relabelling: in episode \d"):
            check_learner(learner, episodes=3)

    @pytest.mark.parametrize(("name", "options"), CASES + DRAWING)
    def test_no_learner_draws_without_need(self, name, options):
        assert rmab.make_learner(name, **options).draws == ((name, options) in DRAWING + LOOKING)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["ucmd", "ucmd-armab", "rmab-ucrl", "oracle", "random", *DESCENDING])
    @pytest.mark.parametrize(
        "declared",
        [
            {"passive_zero": True, "feedback": "active"},
            {"pooled": False, "feedback": "full"},
            {"sizes": True, "budget": 1},
            {"budget": 0},
            {"budget": 6},
        ],
        ids=lambda declared: "-".join(f"{key}={value}" for key, value in declared.items()),
    )
    def test_on_other_tasks(self, name, declared):
        learner = rmab.make_learner(name, **({"version": "finite"} if name == "rmab-ucrl" else {}))
        if learner.feedback == "full":
            declared = {**declared, "feedback": "full"}
        check_learner(learner, small_task(**declared), episodes=2)

    @pytest.mark.parametrize("name", ["uc-o-reps", "ucpd", "pdgd-ops"])
    def test_learners_of_full_information_refuse_less(self, name):
        with pytest.raises(rmab.errors.ModelError, match=f"{name} needs full feedback, got 'bandit'"):
            rmab.make_learner(name).begin(small_task().view())

    def test_against_an_adaptive_adversary(self):
        game = rmab.make_task("deadline@adaptive", arms=4, budget=2, horizon=3, episodes=3)
        check_learner(rmab.make_learner("ucmd-armab"), game, episodes=2)
