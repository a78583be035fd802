"""Stands in the timed loop's place where a whole training runs (`--full`): it only counts, and says how far it is."""

from __future__ import annotations

import time
from typing import Any

from bench.worker.protocol import PhaseBegun
from bench.worker.timed_loop import Conductor, Finished

NEWS_SECONDS = 5.0
"""How often a whole training says that it goes on."""


class Counter(Conductor):
    """A conductor for `--full`: it only counts, so that the program runs as its user runs it.

    Every few seconds it says how far it is, so that a training of hours is not taken for a hung worker.

    Attributes:
        limit: steps after which the program is unwound; none where it ends by itself.
        epoch: steps of one; none where it can't be told, or the program has none.
    """

    limit: int | None = None
    epoch: int | None = None
    _next = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lasts: list[float] = []
        self._firsts: list[float] = []
        self._begun = 0.0

    def tick(self, value: Any, steps: int = 1) -> None:
        """Counts; nothing is synchronised or timed."""
        self.stepped += steps
        self.last = value
        self.left = 1 if self.limit is None else self.limit - self.stepped
        now = time.perf_counter()
        self._begun = self._begun or now
        if self.epoch and self.stepped % self.epoch < steps:
            self._lasts.append(now)
        elif len(self._firsts) < len(self._lasts):
            self._firsts.append(now)
        if self.left <= 0:
            raise Finished(None)
        if now >= self._next:
            self._next = now + NEWS_SECONDS
            self.channel.send(PhaseBegun(phase="training", note=f"step {self.stepped}"))

    def epoch_ends(self, ended: float) -> list[float]:
        """Seconds between each epoch's last step and the next one's first, or the program's end.

        Args:
            ended: when it did, by the clock of `time.perf_counter`.
        """
        if not self._lasts:
            return []
        gaps = [first - last for last, first in zip(self._lasts, self._firsts, strict=False)]
        usual = (self._lasts[-1] - self._begun - sum(gaps)) / max(1, self.stepped - 1 - len(gaps))
        return [*(max(0.0, gap - usual) for gap in gaps), ended - self._lasts[-1]]
