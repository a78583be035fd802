"""The phases of a worker. Each is reported when it starts and when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pydantic import BaseModel

from bench.model.phase import Activity, Phase
from bench.worker.protocol import PhaseEnded, PhaseStarted


class Phases:
    """Reports phases to the parent.

    Args:
        send: sends an event to the parent.

    Attributes:
        current: what the worker is doing.
    """

    def __init__(self, send: Callable[[BaseModel], None]) -> None:
        self.send = send
        self.current: Activity = "starting"

    def enter(self, phase: Activity, note: str = "", slow: bool = False) -> None:
        """Report that a phase starts.

        Args:
            phase: the phase.
            note: what the worker does in it, or why it takes long.
            slow: whether it may take many minutes.
        """
        self.current = phase
        self.send(PhaseStarted(phase=phase, note=note, slow=slow))

    @contextmanager
    def timed(self, name: Phase) -> Iterator[None]:
        """Time a phase of setting up, and report when it starts and ends."""
        self.enter(name)
        start = time.perf_counter()
        yield
        self.send(PhaseEnded(phase=name, seconds=time.perf_counter() - start))
