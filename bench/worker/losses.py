"""The losses of the first steps, for the same-answer check. Worker's side only.

Keras returns the running mean over the epoch so far, and starts again with each epoch of `fit`. What must agree is the
loss of each step.
"""

from __future__ import annotations

from collections.abc import Callable

LOSSES = 5
"""Number of first steps whose losses are read."""


class Losses:
    """Collects the values that the first steps return.

    Attributes:
        running_mean: whether the values are Keras' running means.
        after_each: is called after each value was added.
    """

    def __init__(self) -> None:
        self.running_mean = False
        self.after_each: Callable[[], object] = lambda: None
        self._values: list[float] = []
        self._starts: set[int] = set()
        self._compared = LOSSES

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: float) -> None:
        """Add the value that the next step returned."""
        self._values.append(value)
        self.after_each()

    def begin_epoch(self) -> None:
        """Take note that an epoch starts with the next step."""
        self._starts.add(len(self._values))

    def end(self) -> None:
        """Compare no further losses: from the partial batch on, other loops run other steps."""
        self._compared = min(self._compared, len(self._values))

    def compared(self) -> list[float]:
        """Return the losses of single steps, as far as the other loops run the same steps."""
        losses, count, previous = [], 0, 0.0
        for position, value in enumerate(self._values[: self._compared]):
            count = 1 if position in self._starts else count + 1
            losses.append(count * value - (count - 1) * previous if self.running_mean else value)
            previous = value
        return losses
