"""Studies of single questions, whose answers the text of docs/ uses: what is behind a sentence, and where `ucmd` is weak.

    python studies/pages.py details      runs them (resumable), looks inside runs (inside.py), and writes docs/details.md

`late`      the highest indices on `turns`, at other lengths, and where the first episode pays one half
`process`   the rivals for Markov decision processes on one, as their papers promise that they learn
`versions`  every version of `rmab-ucrl`, with sample means and with means plus width
`zeros`     declared zeros beside importance weights: taken as they are, or weighted like all other losses
`samples`   what a generator's samples are worth to `rmab-ucrl` on a chain
`boxes`     what the published sets of `uob-reps` cost it
`steady`    `ucmd` where nothing changes but the random draws, or where the declared range is far wider than what is paid
`halves`    `ucmd` where two halves of the arms are paid in turns

Tasks and learners that were made for these questions alone are in details.py.
"""

from typing import Any

from rmab.study import Study

ROUNDS = 10
SAMPLES = (200, 2_000, 20_000)
WIDER = 1_000  # times as wide as what is paid


def _study(name: str, title: str, tasks: list[dict[str, Any]], learners: list[dict[str, Any]], **more: object) -> Study:
    given = {"name": name, "title": title, "rounds": ROUNDS, "tasks": tasks, "learners": learners, **more}
    return Study.model_validate(given)


def _sizes(name: str, label: str, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return a task at several numbers of episodes."""
    return [{"name": name, "label": f"{label}, T = {size}", "options": {"episodes": size}} for size in sizes]


def late() -> Study:
    """Return the paper's learner on `turns`, whose plans tie, and on `halfway`, whose plans never do."""
    tasks = _sizes("turns", "turns", (1000, 1200, 2000)) + _sizes("details:halfway", "halfway", (100, 400, 1200, 3200))
    learners = [
        {"name": "ucmd-armab"},
        {"name": "ucmd-armab", "label": "ucmd-armab, declared zeros", "options": {"zeros": "declared"}},
        {"name": "ucmd-armab", "label": "true rewards (privileged)", "feedback": "full"},
        {
            "name": "ucmd-armab",
            "label": "true rewards, dependent rounding (privileged)",
            "options": {"rounding": "dependent"},
            "feedback": "full",
        },
        {"name": "ucmd"},
    ]
    return _study("late", "The highest indices where arms pay in turns", tasks, learners, kind="growth", rounds=6)


def process() -> Study:
    """Return the rivals that are made for Markov decision processes, on one."""
    fast = {"rate": 0.3, "gamma": 0.1, "bonus": 0.001}
    rivals: list[tuple[str, str, dict[str, Any]]] = [
        ("uc-o-reps", "uc-o-reps (full information)", {}),
        ("shifted-uc-o-reps", "shifted-uc-o-reps", {}),
        ("uob-reps", "uob-reps", {}),
        ("dilated-po", "dilated-po, theory", {}),
        ("dilated-po", "dilated-po, faster", fast),
        ("ucpd", "ucpd (full information)", {}),
        ("pdgd-ops", "pdgd-ops (full information)", {}),
    ]
    learners = [{"name": one, "label": label, "options": {"rule": "at-most", **more}} for one, label, more in rivals]
    tasks = _sizes("details:ferry", "ferry", (100, 400, 1600, 6400))
    title = "Rivals for decision processes, on one"
    return _study("process", title, tasks, [*learners, {"name": "details:Coin", "label": "a coin"}], kind="growth")


def versions() -> Study:
    """Return every version of `rmab-ucrl`, with both kinds of rewards."""
    told = {"generator": " (privileged)"}
    learners = [
        {
            "name": "rmab-ucrl",
            "label": f"{version}, {said}{told.get(version, '')}",
            "options": {"version": version, "rewards": rewards},
        }
        for version in ("stationary", "finite", "window", "generator")
        for rewards, said in (("mean", "sample means"), ("optimistic", "mean plus width"))
    ]
    tasks = [{"name": f"cpap@{one}"} for one in ("ramp", "noisy", "switching")]
    return _study("versions", "Versions of rmab-ucrl", tasks, [*learners, {"name": "random"}])


def zeros() -> Study:
    """Return two rivals with declared zeros weighted, and taken as they are."""
    small = {"arms": 4, "budget": 2, "horizon": 10, "episodes": 400}
    learners = [
        {"name": "uob-reps", "label": "uob-reps, all weighted (as published)"},
        {"name": "details:UobRepsExact", "label": "uob-reps, exact zeros"},
        {"name": "shifted-uc-o-reps", "label": "shifted-uc-o-reps, exact zeros (default)"},
        {"name": "details:ShiftedAlike", "label": "shifted-uc-o-reps, all weighted"},
        {"name": "random"},
    ]
    tasks = [{"name": f"cpap@{one}", "options": small} for one in ("ramp", "noisy", "switching")]
    return _study("zeros", "Declared zeros beside importance weights", tasks, learners)


def samples() -> Study:
    """Return `rmab-ucrl` with more and more samples of every pair, beside itself without a generator."""
    told: list[dict[str, Any]] = [
        {
            "name": "rmab-ucrl",
            "label": f"rmab-ucrl, {many:,} samples (privileged)",
            "options": {"version": "generator", "samples": many},
        }
        for many in SAMPLES
    ]
    tasks = [{"name": "swim@ramp"}, {"name": "swim@noisy"}]
    return _study("samples", "What a generator is worth", tasks, [{"name": "rmab-ucrl"}, *told, {"name": "random"}])


def boxes() -> Study:
    """Return `uob-reps` with its own sets and with KL sets."""
    task = {"name": "cpap@noisy", "label": "cpap@noisy, T = 200", "options": {"episodes": 200}}
    learners = [
        {"name": "uob-reps", "label": "uob-reps"},
        {"name": "details:UobRepsKl", "label": "uob-reps, KL sets"},
        {"name": "random"},
    ]
    return _study("boxes", "What wide sets cost", [task], learners)


def steady() -> Study:
    """Return `ucmd` beside `thompson` where nothing changes but the random draws."""
    tasks = [
        {"name": "details:coins", "label": f"coins, T = {episodes}", "options": {"episodes": episodes}}
        for episodes in (60, 400)
    ] + [
        {"name": "details:modest", "label": f"pay over range 1 : {wider:,}", "options": {"wider": float(wider)}}
        for wider in (1, WIDER)
    ]
    learners = [{"name": "ucmd"}, {"name": "thompson"}, {"name": "random"}]
    return _study("steady", "Where nothing changes but the random draws", tasks, learners)


def halves() -> Study:
    """Return `ucmd` where halves of the arms are paid in turns, executed by the highest indices and by draws."""
    sizes = ((1, 60), (2, 60), (3, 60), (10, 60), (1, 200))
    tasks = [
        {
            "name": "details:halves",
            "label": f"turns of {every}" + (f", T = {episodes}" if episodes > 60 else ""),
            "options": {"every": every, "episodes": episodes},
        }
        for every, episodes in sizes
    ]
    draws = {"rounding": "dependent"}
    learners: list[dict[str, Any]] = [
        {"name": "ucmd"},
        {"name": "ucmd", "label": "ucmd, trust=0", "options": {"trust": 0.0}},
        {"name": "ucmd", "label": "ucmd, dependent rounding", "options": draws},
        {"name": "ucmd", "label": "ucmd, full information (privileged)", "feedback": "full"},
        {
            "name": "ucmd",
            "label": "ucmd, full information, dependent rounding (privileged)",
            "feedback": "full",
            "options": draws,
        },
        {"name": "thompson"},
        {"name": "random"},
    ]
    return _study("halves", "Halves of the arms that are paid in turns", tasks, learners)


QUESTIONS = {
    "late": late,
    "process": process,
    "versions": versions,
    "zeros": zeros,
    "samples": samples,
    "boxes": boxes,
    "steady": steady,
    "halves": halves,
}
