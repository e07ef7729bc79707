"""Settings of the whole suite: no deadlines (kernels compile on first use), and the same examples on every run."""

from hypothesis import HealthCheck, settings

settings.register_profile("rmab", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rmab")
