"""Plain scripts and devbench workers that can be interleaved, for the programs of this folder."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import psutil

from bench import backends
from bench.config.settings import load
from bench.model.spec import Spec
from bench.session.worker_sample import WorkerSample
from bench.study.plan import plan


class Bare:
    """A `benchmarks.bare` process. It is suspended between calls of `run`."""

    def __init__(self, workload: str, case: str, loop: str, threads: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.bare", workload, case, loop, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._ps = psutil.Process(self.process.pid)

    def run(self, count: int) -> float:
        """Run a number of steps (or epochs) and return the seconds that they took."""
        assert self.process.stdin
        assert self.process.stdout
        self._ps.resume()
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        seconds = float(self.process.stdout.readline())
        self._ps.suspend()
        return seconds

    def close(self) -> None:
        """End the process."""
        self._ps.resume()
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def spec_of(workload: str, case: str, loop: str, backend: str = "cpu") -> Spec:
    """Return the spec that `devbench run WORKLOAD --case CASE --loop LOOP --backend BACKEND` would measure."""
    (group,) = plan([workload], load(loop=loop, case=case or None, backend=backend, data="sample"))
    return group.planned[0].spec


def start_worker(
    spec: Spec, trial: int = 0, report: Callable[[str, str], None] = lambda phase, note: None, **options: Any
) -> WorkerSample:
    """Start a worker of a spec.

    Args:
        spec: Spec to measure.
        trial: Number of the trial.
        report: Called with each phase and its note.
        options: Further arguments of `WorkerSample`.
    """
    environment = backends.load(spec.backend).environment(spec)
    return WorkerSample(spec, trial, environment, 300.0, report, **options)


def warm_worker(spec: Spec, trial: int = 0) -> WorkerSample:
    """Return a worker of a spec, warmed up and suspended."""
    worker = start_worker(spec, trial)
    worker.set_up()
    worker.warm_up()
    worker.process.suspend()
    return worker


def warm_workers(specs: Sequence[Spec]) -> list[WorkerSample]:
    """Return workers that started at once, as in the later trials of a session, warmed up one by one and suspended."""
    workers = [start_worker(spec, start_position=None) for spec in specs]
    for worker in workers:
        worker.set_up()
        worker.process.suspend()
    for worker in workers:
        worker.process.resume()
        worker.warm_up()
        worker.process.suspend()
    return workers


def interval(values: Sequence[float]) -> str:
    """Return the mean of ratios with its 95% interval, as text."""
    from bench.analyse.stats import interval as interval_of

    mean = interval_of(values)
    return f"{mean.value:.4f} [{mean.low or math.nan:.4f}, {mean.high or math.nan:.4f}] of {mean.n}"


def variation(values: Sequence[float]) -> float:
    """Return the standard deviation of the logarithms, which is about the coefficient of variation."""
    return statistics.stdev(math.log(v) for v in values)
