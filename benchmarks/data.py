"""From a log to a list, in seconds and memory: `python benchmarks/data.py`.

A CSV of a million rows is read and fitted in a process of its own (the targets: 10 s and 1 GB), and so is the same file
by pandas, which only reads it and counts transitions, as one would by hand. Then `rmab list` for 100,000 arms, from the
start of the process to the file (target: 5 s). Seconds are those of the clock, and of the processor: on a busy machine
they differ.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

OURS = """
import rmab, sys
log = rmab.data.read_log(sys.argv[1], arm="id", period="week", state="state", action="called", groups=["age", "district"])
print(rmab.data.fit(log, reward={"engaged": 1}), log.arm_of.size)
"""
PANDAS = """
import pandas as pd, sys
frame = pd.read_csv(sys.argv[1], dtype=str).sort_values(["id", "week"])
weeks = {week: k for k, week in enumerate(sorted(frame.week.unique()))}
frame["at"] = frame.week.map(weeks)
after = frame.groupby("id")[["state", "at"]].shift(-1)
frame["after"] = after["state"].where(after["at"] == frame["at"] + 1)
print(len(frame.dropna().groupby(["age", "district", "state", "called", "after"]).size()))
"""
LIST = "from rmab.cli import main; main()"


PROBE = """
import atexit, resource
def report_use():
    used = resource.getrusage(resource.RUSAGE_SELF)
    print("USED", used.ru_maxrss, used.ru_utime + used.ru_stime)
atexit.register(report_use)
"""


def measured(code: str, *words: str) -> str:
    """Run Python in a process of its own; return seconds, seconds of the processor, and gigabytes at most."""
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", PROBE + code, *words], capture_output=True, text=True, check=True)
    taken = time.perf_counter() - begin
    peak, used = (float(one) for one in done.stdout.rpartition("USED ")[2].split())
    return f"{taken:>9.1f}{used:>11.1f}{peak * (1 if sys.platform == 'darwin' else 1024) / 1e9:>7.2f}"


def main() -> None:
    """Print the table."""
    import rmab
    from rmab.common.tables import write_table

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(rmab.data.example_log("mothers", arms=24_500, weeks=52), folder / "log.csv")
        rows = (folder / "log.csv").read_bytes().count(b"\n") - 1
        print(f"{'':<52}{'seconds':>9}{'processor':>11}{'GB':>7}")
        measured(OURS, str(folder / "log.csv"))  # compiled code and the disk's cache
        for label, code in ((f"read and fit {rows:,} rows", OURS), ("  pandas: read and count only", PANDAS)):
            print(f"{label:<52}{measured(code, str(folder / 'log.csv'))}")
        table = rmab.data.example_log("mothers", arms=100_000, weeks=12)
        log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", groups=["age", "district"])
        rmab.data.fit(log, reward={"engaged": 1}).save(folder / "model.npz")
        words = ("list", str(folder / "model.npz"), "--budget", "5000", "--csv", str(folder / "next.csv"))
        measured(LIST, *words)
        print(f"{'rmab list, 100,000 arms, 5,000 places':<52}{measured(LIST, *words)}")


if __name__ == "__main__":
    main()
