"""Small studies for the tests, an engine that plays in this process, and learners that misbehave."""

import ctypes
import json
import os
import signal
import time
from collections.abc import Generator, Iterable
from pathlib import Path

from rmab.learning import RandomLearner
from rmab.study import Job, Outcome, Results, Study
from rmab.study.shards import encode_table, write_shard
from rmab.study.single_run import attempt

HERE = str(Path(__file__).parent)
TINY = {"arms": 4, "budget": 2, "horizon": 5, "episodes": 3}


def small_study(rounds: int = 3, names: tuple[str, ...] = ("random", "ucmd"), **fields: object) -> Study:
    tasks = [{"name": "cpap@noisy", "options": TINY}]
    raw = {"name": "small", "rounds": rounds, "tasks": tasks, "learners": [{"name": name} for name in names]}
    return Study.model_validate({**raw, **fields})


def data(folder: Path) -> bytes:
    """Return all that a study found, times aside, to the last bit."""
    table = Results.open(folder).table().drop_columns(["seconds"]).combine_chunks()
    assert table.num_rows
    return encode_table(table.replace_schema_metadata())


class Inline:
    """Plays in this process, as far as it is told to."""

    name = "inline"

    def __init__(self, most: int = 10**9) -> None:
        self.most, self.played = most, list[str]()

    def run(self, jobs: Iterable[Job], folder: Path) -> Generator[Outcome, None, None]:
        for job in jobs:
            if len(self.played) >= self.most:
                raise KeyboardInterrupt
            self.played.append(job.id)
            content, failure, trace = attempt(job, self.name)
            if content is not None:
                write_shard(folder, job.id, content)
            yield Outcome(job, failure, trace)


class Failing(RandomLearner):
    """Raises in the third episode."""

    name = "failing"

    def decide(self, state):  # type: ignore[no-untyped-def]
        if state.episode == 2:
            raise RuntimeError("no answer\nat all")
        return super().decide(state)


class Deadly(RandomLearner):
    """Ends its own process while there are lives left in a file: one line each."""

    name = "deadly"

    def __init__(self, lives: str) -> None:
        self.lives = Path(lives)

    def decide(self, state):  # type: ignore[no-untyped-def]
        left = self.lives.read_text().splitlines()
        if left:
            self.lives.write_text("\n".join(left[1:]))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().decide(state)


class Hung(RandomLearner):
    """Never comes to an end, in Python or (`deep`) in compiled code that lets no other thread run."""

    name = "hung"

    def __init__(self, deep: bool = False, note: str = "") -> None:
        self.deep, self.note = deep, note

    def decide(self, state):  # type: ignore[no-untyped-def]
        if self.note:
            Path(self.note).write_text(str(os.getpid()))
        ctypes.PyDLL(None).sleep(300) if self.deep else time.sleep(300)  # minutes, not for ever, should a test fail
        return super().decide(state)


class Telling(RandomLearner):
    """Writes down the names of its environment."""

    name = "telling"

    def __init__(self, note: str) -> None:
        self.note = Path(note)

    def decide(self, state):  # type: ignore[no-untyped-def]
        self.note.write_text(json.dumps(list(os.environ)))
        return super().decide(state)
