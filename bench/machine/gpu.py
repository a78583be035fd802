"""What a sampler of a GPU returns, whatever the maker. A backend implements the sampler for its own devices."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass
class GpuReadings:
    """Everything that a sampler read while it was on.

    A list is empty if the GPU does not report that figure, or if the sampler was never on for long enough to read it.

    Attributes:
        utilization: share of the time in which the GPU was busy, 0 to 1.
        memory: bytes in use.
        watts: power.
        clock_hz: clock of the compute units.
        celsius: temperature.
        reasons: why the clock was held down.
        joules: energy in total; None if the GPU does not count it.
    """

    utilization: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    watts: list[float] = field(default_factory=list)
    clock_hz: list[float] = field(default_factory=list)
    celsius: list[float] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)
    joules: float | None = None


@dataclass(frozen=True)
class GpuMemory:
    """A GPU's memory, in bytes."""

    used: int
    total: int


class Sampler(Protocol):
    """Reads one GPU from outside the worker. It is off until `on` is called."""

    readings: GpuReadings

    def on(self) -> None:
        """Start or resume sampling, just before the worker continues."""

    def off(self) -> None:
        """Pause sampling, just after the worker's block ended."""

    def memory(self) -> GpuMemory | None:
        """Return the GPU's memory as it is now; None if the GPU does not report it."""

    def utilization(self) -> float | None:
        """Return the share of the last second in which the GPU was busy; None if the GPU does not report it."""

    def close(self) -> None:
        """End sampling and release the driver."""


OpenSampler = Callable[[Mapping[str, str]], Sampler | None]
"""Opens a sampler of the GPU that a worker with these environment variables uses; None if there is no such GPU.
Raises nothing but `Interrupted`."""


BUSY_SHARE = 0.1
"""A GPU that is busy for a larger share of the time before a run runs other work. Drawing a desktop takes less."""

READINGS = 7
"""How often a GPU's utilization is read before it counts as busy: over more than its window of a second."""

READING_SECONDS = 0.2


def memory(open_sampler: OpenSampler | None, environ: Mapping[str, str]) -> GpuMemory | None:
    """Return the memory of the GPU that a new worker would use; None if it is not known.

    Args:
        open_sampler: opens a sampler of the GPU.
        environ: the environment variables of the worker.
    """
    with _opened(open_sampler, environ) as sampler:
        return sampler.memory() if sampler else None


def utilization(open_sampler: OpenSampler | None, environ: Mapping[str, str]) -> float | None:
    """Return how busy the GPU is that a new worker would use, from 0 to 1; None if it is not known.

    It takes more than a second if the GPU is busy: a reading covers the last second, in which a worker of an earlier
    session may have run. The lowest reading counts.

    Args:
        open_sampler: opens a sampler of the GPU.
        environ: the environment variables of the worker.
    """
    with _opened(open_sampler, environ) as sampler:
        lowest = sampler.utilization() if sampler else None
        for _ in range(READINGS - 1):
            if sampler is None or lowest is None or lowest <= BUSY_SHARE:
                break
            time.sleep(READING_SECONDS)
            if (now := sampler.utilization()) is not None:
                lowest = min(lowest, now)
        return lowest


@contextmanager
def _opened(open_sampler: OpenSampler | None, environ: Mapping[str, str]) -> Iterator[Sampler | None]:
    sampler = open_sampler(environ) if open_sampler else None
    try:
        yield sampler
    finally:
        if sampler is not None:
            sampler.close()


class MemoryCheck:
    """Checks whether a GPU's memory holds the workers that are still to come, each as large as the largest so far.

    Args:
        before: the GPU's memory before any worker was started; None if it is not known.
    """

    def __init__(self, before: GpuMemory | None) -> None:
        self._last = before
        self._largest = 0

    def holds(self, now: GpuMemory | None, workers: int) -> bool:
        """Return whether there is room for more workers, after one was started.

        Args:
            now: the GPU's memory since then. If it is not known, the memory counts as large enough.
            workers: number of workers that are still to come.
        """
        if now is None or self._last is None:
            return True
        self._largest = max(self._largest, now.used - self._last.used)
        self._last = now
        return 1.2 * self._largest * workers <= now.total - now.used
