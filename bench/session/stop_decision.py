"""Decides which results of a session need more trials, and when the session stops.

`stopping` has the rules. They are applied here to the results, the design and the time limit of one session.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.config.settings import RunSettings
from bench.model.result import Result, Stop, StopReason
from bench.session import stopping
from bench.session.design import Design
from bench.session.progress import ProgressReporter


class StopDecision:
    """Decides after each trial whether there is another one, and of which results.

    Args:
        results: The results of the session. They grow while it runs.
        settings: Targets and limits.
        design: What is compared, and how many trials there are.
        progress: Knows the number of the trial and the time so far.
    """

    def __init__(
        self, results: Sequence[Result], settings: RunSettings, design: Design, progress: ProgressReporter
    ) -> None:
        self._results = results
        self._settings = settings
        self._design = design
        self._progress = progress
        self._decided: set[str] = set()

    def limit_to_deadline(self) -> None:
        """Limit the trials to the time that the study has left, if they may use all of it."""
        if self._design.deadline is not None and self._design.ends_the_study:
            left = max(1.0, self._design.deadline - time.monotonic())
            self._settings = self._settings.model_copy(update={"max_time": min(left, self._settings.max_time)})

    def working(self) -> list[Result]:
        """Return the results that have not failed."""
        return [result for result in self._results if result.failure is None]

    def open_results(self) -> list[Result]:
        """Return the results that need more trials, as far as is known."""
        return [result for result in self.working() if result.id not in self._decided]

    def accuracy(self, results: Sequence[Result]) -> stopping.Accuracy | None:
        """Return the accuracy of some results after the trials so far. None if it is not known."""
        design = self._design
        return stopping.accuracy(results, self._target, design.pairs, design.confidence, design.over_epochs)

    def time_limit(self) -> float:
        """Return the time limit of the session in seconds."""
        if self._design.deadline is not None:  # the time left is that of the whole study
            return self._progress.elapsed + self._design.deadline - time.monotonic()
        return self._limits().max_time

    def trial_limit(self, start_seconds: float, round_seconds: float) -> float:
        """Return the seconds that this trial may take in all, so that there is time for enough trials.

        Args:
            start_seconds: Seconds that the start of the workers took.
            round_seconds: Seconds of the minimum of rounds.
        """
        if not self._design.fit_pilot:
            return 1.5 * start_seconds
        seconds = start_seconds + round_seconds
        return stopping.trial_seconds(
            self._progress.trial, self._progress.elapsed, seconds, self._settings, self._design.pilot
        )

    def has_time_for_pilot(self, trial_seconds: float) -> bool:
        """Return whether the pilot fits into the time limit if each trial takes this long."""
        alone = len(self._results) == 1
        return alone or stopping.has_time_for_pilot(trial_seconds, self._settings, self._design.pilot)

    def separate_starts(self, trial_seconds: float) -> int:
        """Return the number of trials whose workers start one after another.

        If the pilot does not fit into the time limit, it is one. Only these trials time the ends of epochs, and the
        ratio over whole epochs needs two.

        Args:
            trial_seconds: Seconds of the first trial. 0 before it has ended.
        """
        separate = self._design.separate_starts
        if self.has_time_for_pilot(trial_seconds):
            return separate
        return min(separate, 2 if self._design.over_epochs else 1)

    def reason(self, trial_seconds: float) -> StopReason | None:
        """Return the reason to stop after a trial. None to continue.

        Args:
            trial_seconds: Seconds of the trial.
        """
        if not self.working() or (self._design.needs_baseline and self._results[0].failure is not None):
            return "failed"
        if self._design.drop_decided:
            self._drop_decided()
            if self._decided and len(self.open_results()) < 2:
                return "target"
        if self._design.enough is not None and self._design.enough(self._results):
            return "target"
        accuracy = self.accuracy(self.open_results())
        self._progress.planned = self._planned_trials(accuracy)
        reason = stopping.reason(
            accuracy,
            self._progress.trial,
            self._progress.elapsed,
            trial_seconds,
            self._limits(),
            self._design.pilot,
            self._design.clear_trials,
        )
        deadline = self._design.deadline
        if reason is None and deadline is not None and time.monotonic() + trial_seconds > deadline:
            return "max-time"
        return reason

    def stop(self, reason: StopReason, seconds: float) -> Stop:
        """Return why the session stopped, and what it had reached.

        Args:
            reason: The reason.
            seconds: Seconds of the trials.
        """
        accuracy = self.accuracy(self.working() or self._results)
        return Stop(
            reason=reason,
            trials=self._progress.trial,
            needed_trials=self._progress.planned,
            error=accuracy.error if accuracy else None,
            target=self._target,
            settled=accuracy is not None and (accuracy.settled or accuracy.decided),
            by_epochs=accuracy is not None and accuracy.by_epochs,
            error_of="ratio" if self._is_compared else "step",
            seconds=seconds,
        )

    @property
    def _target(self) -> float:
        """The accuracy to reach: of the ratio, or of the step if only one result is left."""
        return self._settings.threshold if self._is_compared else self._settings.target_error

    @property
    def _is_compared(self) -> bool:
        return len(self.working() or self._results) > 1

    def _limits(self) -> RunSettings:
        """Return the settings with the current time limit."""
        if self._design.follow_projection and len(self._results) == 1:
            return stopping.with_projected_limit(self._settings, self._results[0].projection)
        return self._settings

    def _planned_trials(self, accuracy: stopping.Accuracy | None) -> int | None:
        """Return how many trials there will be. None if that is not known, or if other sessions share the time."""
        alone = self._design.deadline is None or self._design.ends_the_study
        if not alone or accuracy is None or not accuracy.needed:
            return None
        least = stopping.minimum_trials(accuracy, self._design.pilot, self._design.clear_trials)
        return min(max(least, accuracy.needed), self._settings.max_processes)

    def _drop_decided(self) -> None:
        """Stop measuring the results whose comparison with the first is decided."""
        base, *others = self._results
        for other in others:
            if other.failure is None and stopping.is_decided(
                base, other, self._settings, self._design.pilot, self._design.confidence
            ):
                self._decided.add(other.id)
