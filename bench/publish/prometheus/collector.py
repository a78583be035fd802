"""Collects the metrics of this process's runs, read from their results as they grow.

`Metrics` receives progress, which is only reported between blocks, and counts what is new. Rendering, in any thread,
only reads these counts. All steps of a latency pass are counted together. A process serves its `MAX_RUNS` latest runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from bench.model.result import Result
from bench.model.run_state import LiveProgress
from bench.publish.prometheus.counters import Run
from bench.publish.prometheus.metrics import METRICS

MAX_RUNS = 16
"""Runs that are served at once. A sweep has many more; dropping the oldest keeps a scrape at a few milliseconds."""


class Metrics(Collector):
    """The metrics of all runs of this process. It is a listener of progress, and a collector for one registry.

    Args:
        max_runs: Runs that are served at once.
    """

    def __init__(self, max_runs: int = MAX_RUNS) -> None:
        self.max_runs = max_runs
        self.runs: dict[str, Run] = {}
        self._lock = threading.Lock()

    def __call__(self, progress: LiveProgress) -> None:
        """Count what is new of all current runs."""
        with self._lock:
            current = {live.result.id for live in progress.results}
            for live in progress.results:
                if self._has_place(live.result, current):
                    run = self.runs.setdefault(live.result.id, Run(live.result))
                    run.examples_per_step = live.examples
                    _update(run)

    def refresh(self, result: Result) -> None:
        """Count what is new of a run, if it is served. A run that failed before it started is served from now on."""
        with self._lock:
            if result.id in self.runs or (result.failure and not result.samples and self._has_place(result, set())):
                _update(self.runs.setdefault(result.id, Run(result)))

    def _has_place(self, result: Result, current: set[str]) -> bool:
        """Return whether a run is served. If there are too many, the oldest finished run is dropped for a new one."""
        if result.id not in self.runs and len(self.runs) >= self.max_runs:
            oldest = next((name for name in self.runs if name not in current), None)
            if oldest is None:
                return False
            del self.runs[oldest]
        return True

    @property
    def all_ended(self) -> bool:
        """Whether there was a run, and none was interrupted."""
        stops = [run.result.stop for run in self.runs.values()]
        return bool(stops) and all(stop is not None and stop.reason != "interrupted" for stop in stops)

    @property
    def any_failed(self) -> bool:
        """Whether a run failed."""
        return any(run.state == "failed" for run in self.runs.values())

    def describe(self) -> Iterator[Metric]:
        """Return the metrics without values, so that a scraper can ask for some by name."""
        return _families({})

    def collect(self) -> Iterator[Metric]:
        """Return all metrics of all runs."""
        with self._lock:
            return _families(self.runs)

    def single(self, result: Result) -> SingleRun:
        """Return a collector of one finished run."""
        with self._lock:
            run = self.runs.get(result.id)
            if run is None:
                run = Run(result)
                _update(run)
            return SingleRun(run)


def _update(run: Run) -> None:
    """Count what is new of a run and read its metrics, so that rendering does not look at the result."""
    run.update()
    run.values = {metric.name: metric.read(run) for metric in METRICS}


class SingleRun(Collector):
    """The metrics of one finished run.

    Attributes:
        group: Its grouping key in a Pushgateway.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.group = {"run": run.result.id, **{name: run.info[name] for name in ("workload", "backend", "pool")}}

    def collect(self) -> Iterator[Metric]:
        """Return its metrics."""
        return _families({self.run.result.id: self.run})


def _families(runs: Mapping[str, Run]) -> Iterator[Metric]:
    """Return each metric of some runs, even if no run has a value."""
    return iter([metric.family(runs) for metric in METRICS])
