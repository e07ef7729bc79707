"""Settings of the whole suite: no deadlines (code compiles on first use), the same examples on every run, no terminal."""

import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("rmab", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rmab")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's job in the background; tests interrupt what they start
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the size of the terminal that a test runner claims to have."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
