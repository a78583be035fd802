"""What Prometheus collects of this process: the metrics of its runs, read from their results as they grow.

`Metrics` listens to the run's progress, which comes only between blocks, and counts what is new since the last time.
Rendering, in whichever thread, only reads those counts. Nothing is observed one by one: the single steps of a latency
pass come together and go into the histogram together. A process serves its `MOST_RUNS` latest runs.
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

MOST_RUNS = 16
"""A sweep or an explanation has many; the oldest are served no longer, so that a scrape stays a few milliseconds."""


class Metrics(Collector):
    """The metrics of all runs of this process; a listener for progress, and a collector for one registry.

    Args:
        most: runs that are served at once.
    """

    def __init__(self, most: int = MOST_RUNS) -> None:
        self.most = most
        self.runs: dict[str, Run] = {}
        self._lock = threading.Lock()

    def __call__(self, progress: LiveProgress) -> None:
        """Takes in what is new of all runs under way."""
        with self._lock:
            under_way = {each.result.id for each in progress.results}
            for each in progress.results:
                if self._has_place(each.result, under_way):
                    run = self.runs.setdefault(each.result.id, Run(each.result))
                    run.per_step = each.examples
                    _update(run)

    def refresh(self, result: Result) -> None:
        """Takes in what is new of one run, if it is served; one that failed before it began is served from then on."""
        with self._lock:
            if result.id in self.runs or (result.failure and not result.samples and self._has_place(result, set())):
                _update(self.runs.setdefault(result.id, Run(result)))

    def _has_place(self, result: Result, under_way: set[str]) -> bool:
        """Whether a run is served; for a new one the oldest that is no longer under way makes place."""
        if result.id not in self.runs and len(self.runs) >= self.most:
            oldest = next((name for name in self.runs if name not in under_way), None)
            if oldest is None:
                return False
            del self.runs[oldest]
        return True

    @property
    def over(self) -> bool:
        """Whether there was a run, and all have come to their own end, not to that of a signal."""
        stops = [run.result.stop for run in self.runs.values()]
        return bool(stops) and all(stop is not None and stop.reason != "interrupted" for stop in stops)

    def describe(self) -> Iterator[Metric]:
        """The metrics without values, so that a scraper can ask for some by name."""
        return _families({})

    def collect(self) -> Iterator[Metric]:
        """All metrics of all runs."""
        with self._lock:
            return _families(self.runs)

    def only(self, result: Result) -> OneRun:
        """Those of one run that is over."""
        with self._lock:
            run = self.runs.get(result.id)
            if run is None:
                run = Run(result)
                _update(run)
            return OneRun(run)


def _update(run: Run) -> None:
    """Counts what is new of a run, and reads it, so that rendering has nothing of the result to look at."""
    run.update()
    run.values = {each.name: each.read(run) for each in METRICS}


class OneRun(Collector):
    """The metrics of one run that is over.

    Attributes:
        group: what tells it apart in a Pushgateway.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.group = {"run": run.result.id, **{name: run.info[name] for name in ("workload", "backend", "pool")}}

    def collect(self) -> Iterator[Metric]:
        """Its metrics."""
        return _families({self.run.result.id: self.run})


def _families(runs: Mapping[str, Run]) -> Iterator[Metric]:
    """What there is of each metric; of those that no run has, what they mean."""
    return iter([each.family(runs) for each in METRICS])
