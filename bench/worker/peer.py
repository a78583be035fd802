"""The process of every worker but the first: it runs the same steps as the first worker, until that one ends.

The gradients' reduction keeps the workers in step, so that this process obeys no orders. Where nothing is reduced, a
worker of the same machine runs freely beside the first one. A worker on another host runs when it is asked for times.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bench.worker.channel import Channel
from bench.worker.cluster.member import Member
from bench.worker.failure import failure_of
from bench.worker.losses import LOSSES
from bench.worker.main import die_with_parent, enable_crash_report
from bench.worker.phases import Phases
from bench.worker.protocol import BLOCK_SECONDS, Start
from bench.worker.rendezvous.messages import TO_PEER, Begin, Lost, Ping, Pong, Report, Steady, Timed

PEER_BLOCK_SECONDS = BLOCK_SECONDS / 4
"""The shortest block. Several must fit between two suspensions of the workers."""

BLOCKS_ON_DEMAND = 50
"""Blocks that are timed when the first worker, on another host, asks for them."""

DEMAND_SECONDS = 3.0
"""Seconds after which `FEWEST_BLOCKS` are enough."""

FEWEST_BLOCKS = 3
"""Fewest blocks that are reported."""

PATIENCE_SECONDS = 12.0
"""Seconds to wait for them."""

END_SECONDS = 2.0
"""Seconds after an error in which it may turn out that the first worker has ended, which is then the cause."""

MOST_BLOCKS = 10_000
"""Most blocks whose times are kept, the latest ones."""


class PeerLoop:
    """Counts and times the steps of this worker. A loop uses it as it uses the timed loop.

    Args:
        sync: waits until a step is done.
        after_first: is called after each of the first steps.
        on_steady: is called after the last of them.
        on_demand: whether steps after the first ones wait for `demand`.

    Attributes:
        step_seconds: seconds per step of each block.
        steps_left: steps that a loop may issue at once.
    """

    def __init__(
        self,
        sync: Callable[[Any], float],
        after_first: Callable[[], object],
        on_steady: Callable[[], object],
        on_demand: bool,
    ) -> None:
        self._sync = sync
        self._on_steady = on_steady
        self._after_first = after_first
        self._on_demand = on_demand
        self._demanded = threading.Event()
        self._timed = threading.Event()
        self._first = LOSSES
        self._steps = 0
        self._start = self._demand_start = 0.0
        self._resumed = False
        self.step_seconds: list[float] = []
        self.steps_left = 1
        if sys.platform != "win32":
            signal.signal(signal.SIGCONT, self._on_resume)

    def begin(self) -> None:
        """Start the clock."""
        self._start = time.perf_counter()

    def tick(self, value: Any, steps: int = 1) -> None:
        """Count steps, the last of which returned `value`."""
        if self._first:
            self._first -= 1
            self._sync(value)
            self._after_first()
            if not self._first:
                self._on_steady()
            self._begin_block()
            return
        self._steps += steps
        if time.perf_counter() - self._start < PEER_BLOCK_SECONDS:
            return
        self._sync(value)
        seconds = time.perf_counter() - self._start
        if not self._resumed:  # a block with a suspension in it does not count
            self.step_seconds = [*self.step_seconds[-MOST_BLOCKS:], seconds / self._steps]
        if len(self.step_seconds) >= self._wanted():
            self._demanded.clear()
            self._timed.set()
        self._begin_block()

    def report(self) -> list[float]:
        """Return the seconds per step of each block. Called by another thread, when no suspension follows."""
        if self._on_demand:
            self.step_seconds = []
        self._demand_start = time.perf_counter()
        self._timed.clear()
        self._demanded.set()
        self._timed.wait(PATIENCE_SECONDS)
        return list(self.step_seconds)

    def _wanted(self) -> int:
        """Return how many blocks are enough."""
        if not self._on_demand or time.perf_counter() - self._demand_start > DEMAND_SECONDS:
            return FEWEST_BLOCKS
        return BLOCKS_ON_DEMAND

    def _begin_block(self) -> None:
        if self._on_demand and not self._first:
            self._demanded.wait()
        self._steps, self._resumed = 0, False
        self._start = time.perf_counter()

    def _on_resume(self, *_: object) -> None:
        self._resumed = True


class PeerProcess:
    """Answers the first worker, and ends with it.

    Args:
        lines: what the first worker sends.
        send: sends a message to it.
    """

    def __init__(self, lines: Any, send: Callable[[BaseModel], None]) -> None:
        self._lines = lines
        self.send = send
        self.loop: PeerLoop | None = None

    def begin(self, file: str | None) -> Start:
        """Return the order to begin.

        Args:
            file: File that holds it. None if the first worker sends it.
        """
        text = Path(file).read_bytes() if file else self._lines.readline()
        message = TO_PEER.validate_json(text)
        if not isinstance(message, Begin):
            raise TypeError("the first message must be `begin`")
        threading.Thread(target=self._answer, daemon=True).start()
        return message.start

    def _answer(self) -> None:
        try:
            for text in self._lines:
                message = TO_PEER.validate_json(text)
                if isinstance(message, Ping):
                    self.send(Pong())
                elif isinstance(message, Report):
                    threading.Thread(target=self._report, daemon=True).start()
        finally:
            os._exit(0)  # the first worker has ended

    def _report(self) -> None:
        self.send(Timed(step_seconds=self.loop.report() if self.loop else []))


def run(start: Start, process: PeerProcess) -> None:
    """Set up as the first worker does, and run steps without end."""
    from bench.worker import loops
    from bench.worker.start_up import bring_up_tensorflow, build, load_workload
    from bench.worker.synchronize import Synchronizer

    spec, cluster = start.spec, start.cluster
    assert cluster is not None
    member = Member(spec, cluster)
    member.confine()
    phases = Phases(lambda event: None)
    if start.script is None:
        tf, device = bring_up_tensorflow(phases, spec, member)
        rig = load_workload(phases, spec, tf, device, member)
        build(phases, rig, draw_weights=True)
    else:
        from bench.worker.script.replay import capture

        rig = capture(Silent(), start, phases, member)  # type: ignore[arg-type]
    synchronizer = Synchronizer(rig.tf, rig.ctx.device)
    resets = rig.compiled and not loops.has_own_step(rig)
    loop = PeerLoop(
        synchronizer.sync,
        after_first=rig.model.reset_metrics if resets else lambda: None,
        on_steady=lambda: process.send(Steady()),
        on_demand=bool(cluster.hosts) and not member.workers.reduce,
    )
    process.loop = loop
    loops.LOOPS[spec.loop](rig, loop)  # type: ignore[arg-type]


class Silent:
    """A channel that nobody listens to."""

    def __init__(self) -> None:
        self.renames: dict[str, str] = {}

    def send(self, event: BaseModel) -> None:
        """Send nothing."""

    def disconnect(self) -> None:
        """Do nothing."""


def main() -> None:
    """Run a worker that is not the first."""
    die_with_parent()
    channel = Channel()
    enable_crash_report()
    process = PeerProcess(channel.lines, channel.send)
    start = process.begin(sys.argv[1] if len(sys.argv) > 1 else None)
    try:
        run(start, process)
    except BaseException as error:
        time.sleep(END_SECONDS)
        file = start.script.file if start.script else start.spec.file
        channel.send(Lost(failure=failure_of(error, file, "steps")))
    os._exit(1)


if __name__ == "__main__":
    main()
