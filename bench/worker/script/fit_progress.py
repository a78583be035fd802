"""How far a `fit` of a script is, and whether it goes on for long."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.worker.fit_epochs import FitEpochs

WARM_UP = 3
"""Steps that do not count, because the first ones are slow."""

SECONDS = 2.0
"""Least time of the steps that show how long a step takes."""

TIMES = 2.0
"""A `fit` goes on for long if it takes this many times the time in question. It may stop before its last epoch."""


class FitProgress:
    """The steps of one call of `fit`.

    Args:
        epochs: knows how many steps it plans.

    Attributes:
        steps: steps so far.
    """

    def __init__(self, epochs: FitEpochs) -> None:
        self._epochs = epochs
        self._began: tuple[float, int] | None = (
            None  # the time of the last step of the warm-up, and the steps until then
        )
        self.steps = 0

    def add(self, steps: int, now: float) -> None:
        """Take note of steps that ended now."""
        self.steps += steps
        if self._began is None and self.steps >= WARM_UP:
            self._began = now, self.steps

    def outlasts(self, now: float, until: float) -> bool:
        """Return whether it certainly goes on beyond a moment, by its plan and its steps so far."""
        planned = self._epochs.planned
        if planned is None or self._began is None or now - self._began[0] < SECONDS:
            return False
        per_step = (now - self._began[0]) / max(1, self.steps - self._began[1])
        return (planned - self.steps) * per_step > TIMES * max(0.0, until - now)
