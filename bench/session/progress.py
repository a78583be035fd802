"""Reports the progress of a session to its recorder."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from bench.analyse.samples import examples_per_step
from bench.model.phase import Activity
from bench.model.plan import Planned
from bench.model.result import Result
from bench.model.run_state import Estimate, Listener, LiveProgress, LiveResult
from bench.model.spec_labels import titles


class ProgressReporter:
    """Reports what a session does. It is called between blocks only, never while one is timed.

    Args:
        results: The results of the session. They grow while it runs.
        plan: Each result's planned spec, by the spec's key.
        listener: Receives each report.

    Attributes:
        trial: Number of the current trial, from 1. 0 before the first.
        planned: Number of trials that the target needs, once the pilot shows it.
        budget: Time limit in seconds.
    """

    def __init__(self, results: Sequence[Result], plan: Mapping[str, Planned], listener: Listener) -> None:
        self._results = results
        self._plan = plan
        self._listener = listener
        specs = [result.spec for result in results]
        self._titles = {spec.key: title for spec, title in zip(specs, titles(specs), strict=True)}
        self._start = time.monotonic()
        self.trial = 0
        self.planned: int | None = None
        self.budget = 0.0
        self._earlier_trials = 0.0

    def begin(self) -> None:
        """Count the time of the session from now on."""
        self._start = time.monotonic()

    def begin_trial(self) -> None:
        """Count a trial, which begins now."""
        self.trial += 1
        self._earlier_trials = self.elapsed

    @property
    def elapsed(self) -> float:
        """Seconds since the session began."""
        return time.monotonic() - self._start

    def report(self, result: Result, phase: Activity, note: str = "") -> None:
        """Report that a worker of `result` entered a phase; `note` says why the phase takes long."""
        estimates = [
            Estimate(title=self._titles[other.spec.key], step_seconds=step.value, relative_error=step.relative_error)
            for other in self._results
            if (step := other.summary.step_seconds) is not None
        ]
        self._listener(
            LiveProgress(
                title=self._titles[result.spec.key],
                phase=phase,
                note=note,
                trial=self.trial,
                planned=self.planned,
                elapsed=self.elapsed,
                budget=self.budget,
                estimates=estimates,
                earlier_trials=self._earlier_trials,
                results=tuple(
                    LiveResult(other, examples_per_step(other.spec, self._plan[other.key].examples, other.samples))
                    for other in self._results
                ),
            )
        )
