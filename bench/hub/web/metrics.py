"""The page `/metrics`: the latest result of each comparison key, and the hub's own work.

The text of the results is cached until a result changes, no matter which hub received it.
"""

from __future__ import annotations

import json
import threading

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from sqlalchemy import Connection, func, select

from bench.hub.db import comparison_keys, gauges, records, result_queries, run_queries
from bench.hub.db.database import Database
from bench.hub.db.tables import DOCUMENTS, EXPLANATIONS, RESULTS, RUNS
from bench.hub.web.cache import Cached
from bench.version import __version__

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = tuple(2.0**power for power in range(-10, 5))
"""Powers of two from a millisecond to 16 s, in seconds."""

METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
"""Methods with their own label value. Clients can invent others."""

TABLES = (RESULTS, DOCUMENTS, RUNS, EXPLANATIONS)


class HubMetrics:
    """The metrics of one hub."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = own = CollectorRegistry()
        self.requests = Counter(
            "devbench_hub_requests", "HTTP requests by route and status.", ("method", "route", "status"), registry=own
        )
        self.seconds = Histogram(
            "devbench_hub_request_duration_seconds",
            "Time until the response started.",
            ("route",),
            buckets=BUCKETS,
            registry=own,
        )
        self.rows = Gauge("devbench_hub_rows", "Rows per table.", ("table",), registry=own)
        states = "running, finished, failed, interrupted or lost"
        self.runs = Gauge("devbench_hub_runs", f"Runs by state: {states}.", ("state",), registry=own)
        self.streams = Gauge("devbench_hub_streams", "Open event streams.", registry=own)
        version = Gauge("devbench_hub_info", "Version of the hub. Always 1.", ("version",), registry=own)
        version.labels(__version__).set(1)
        self._lock = threading.Lock()
        self._results = Cached[str]()

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            method: HTTP method.
            route: pattern of the address, because there are as many addresses as results.
            status: HTTP status of the response.
            seconds: time until the response started.
        """
        self.requests.labels(method if method in METHODS else "other", route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self, database: Database) -> str:
        """Return all metrics in Prometheus' text format."""
        with self._lock:
            with database.read() as connection:
                results = self._results.get(result_queries.version(connection), lambda: _result_metrics(connection))
                for table in TABLES:
                    count = connection.execute(select(func.count()).select_from(table)).scalar_one()
                    self.rows.labels(table.name).set(count)
                for state, runs in run_queries.run_counts(connection, records.now()).items():
                    self.runs.labels(state).set(runs)
            return results + generate_latest(self.registry).decode()


def _result_metrics(connection: Connection) -> str:
    """Return the gauges of the latest result of each comparison key."""
    lines: dict[str, list[str]] = {}
    for row in comparison_keys.latest(connection, RESULTS.c.gauges, RESULTS.c.silenced):
        if row.silenced:
            lines.setdefault("silenced", []).append(gauges.silenced(row.comparison_key))
        for metric, text in json.loads(row.gauges).items():
            lines.setdefault(metric, []).append(text)
    return "".join(gauges.exposition({metric: "".join(texts) for metric, texts in lines.items()}))
