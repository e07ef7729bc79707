"""Does `ucmd` of this version lose more than that of an earlier one? Both play the tasks of the learning table, same rounds.

    PYTHONPATH=earlier/src python studies/earlier.py play earlier.json     (a checkout of the earlier version)
    python studies/earlier.py play now.json
    python studies/earlier.py compare earlier.json now.json

Regret is to O1, in per cent of the random policy's; where the adversary is adaptive, what was earned, in per cent of what
the earlier version earned. Differences are of the same rounds, with 95% intervals. Seeds begin at `--first`. A task that the
earlier version does not know is left out. What was played is not played again. Some five minutes for either version.
"""

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import rmab
from rmab.common.files import write_atomically

TABLE = Path(__file__).parents[1] / "src" / "rmab" / "study" / "builtin" / "learning-table.toml"
SAY = Console(highlight=False, soft_wrap=True, markup=False)
WORSE = 2.0  # points by which a task may be worse
Found = dict[str, list[float]]  # by task: regret in per cent, or what was earned, round by round


def played(task: dict[str, Any], seed: int) -> float:
    """Return the regret of a run in per cent of the random policy's; what it earned against an adaptive adversary."""
    made = rmab.make_task(task["name"], seed=seed, **task.get("options", {}))
    run = rmab.run(made, rmab.make_learner("ucmd"), seed=seed)
    return float(run.reward.sum()) if made.adversary.adaptive else 100.0 * run.relative_to_random()


def play(path: Path, first: int, rounds: int) -> None:
    """Play what is missing of all tasks, round by round."""
    found: Found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for r in range(rounds):
        for task in tomllib.loads(TABLE.read_text(encoding="utf-8"))["tasks"]:
            mine = found.setdefault(task.get("label", task["name"]), [])
            if len(mine) > r:
                continue
            try:
                mine.append(played(task, first + r))
            except rmab.RmabError as error:
                SAY.print(f"{task['name']}: {error}")
        write_atomically(path, json.dumps(found, indent=1).encode())


def compare(earlier: Found, now: Found) -> None:
    """Print both versions and the differences of every task."""
    from kinds import interval  # noqa: PLC0415  (it asks for more than earlier versions have)

    SAY.print("| task | earlier | now | difference |  |\n| --- | ---: | ---: | ---: | --- |")
    for task, before in earlier.items():
        after = now.get(task, [])
        count = min(len(before), len(after))
        if count < 2:
            continue
        old, new = np.array(before[:count]), np.array(after[:count])
        adaptive = task.endswith(("adaptive", "plan-aware"))
        more = 100.0 * (new - old) / np.abs(old) if adaptive else new - old
        off = WORSE if not adaptive else -WORSE
        shown = [f"{one.mean():,.0f}" if adaptive else interval(one.tolist()) for one in (old, new)]
        sign = "worse" if (more.mean() - off) * off > 0 else ""
        SAY.print(f"| {task} | {shown[0]} | {shown[1]} | {interval(more.tolist())}{'%' if adaptive else ''} | {sign} |")


def main() -> None:
    """Play, or compare what was played."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("play", "compare"))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--first", type=int, default=9000)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    if args.command == "play":
        play(args.files[0], args.first, args.rounds)
    else:
        compare(*(json.loads(path.read_text(encoding="utf-8")) for path in args.files[:2]))


if __name__ == "__main__":
    main()
