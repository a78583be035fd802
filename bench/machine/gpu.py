"""What a sampler of a GPU returns, whatever the maker. A backend implements the sampler for its own devices."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
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

    def close(self) -> None:
        """End sampling and release the driver."""


OpenSampler = Callable[[Mapping[str, str]], Sampler | None]
"""Opens a sampler of the GPU that a worker with these environment variables uses; None if there is no such GPU.
Never raises."""


def memory(open_sampler: OpenSampler | None) -> GpuMemory | None:
    """Return the memory of the GPU that a new worker would use; None if it is not known."""
    sampler = open_sampler(os.environ) if open_sampler else None
    if sampler is None:
        return None
    try:
        return sampler.memory()
    finally:
        sampler.close()


def has_room(before: GpuMemory, now: GpuMemory | None, workers: int) -> bool:
    """Return whether a GPU's memory holds more workers, each as large as the one that was started between two readings.

    Args:
        before: the GPU's memory before that worker was started.
        now: its memory since then; if None, the memory counts as large enough.
        workers: number of workers that are still to come.
    """
    return now is None or 1.2 * (now.used - before.used) * workers <= now.total - now.used
