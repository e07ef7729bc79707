"""Counts and durations of requests, as text that Prometheus reads."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    """Requests by method, route and status, and how long routes take.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.count("GET", "healthz", 200, 0.02)
    >>> print(metrics.to_text().splitlines()[2])
    rmab_requests_total{method="GET",route="healthz",status="200"} 1
    """

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._sums: dict[str, float] = defaultdict(float)
        self._lock = threading.Lock()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._buckets[route][bisect_left(BUCKETS, seconds)] += 1
            self._sums[route] += seconds

    def to_text(self) -> str:
        """Return all numbers in Prometheus' text format."""
        lines = ["# HELP rmab_requests_total Requests by method, route and status.", "# TYPE rmab_requests_total counter"]
        with self._lock:
            requests, sums = sorted(self._requests.items()), dict(self._sums)
            buckets = {route: list(counts) for route, counts in sorted(self._buckets.items())}
        for (method, route, status), number in requests:
            lines.append(f'rmab_requests_total{{method="{method}",route="{route}",status="{status}"}} {number}')
        lines += ["# HELP rmab_request_seconds Duration of requests.", "# TYPE rmab_request_seconds histogram"]
        for route, counts in buckets.items():
            total = 0
            for limit, number in zip((*(f"{one:g}" for one in BUCKETS), "+Inf"), counts, strict=True):
                total += number
                lines.append(f'rmab_request_seconds_bucket{{route="{route}",le="{limit}"}} {total}')
            lines.append(f'rmab_request_seconds_sum{{route="{route}"}} {sums[route]:.6f}')
            lines.append(f'rmab_request_seconds_count{{route="{route}"}} {total}')
        return "\n".join(lines) + "\n"
