"""The process of every worker but the first: it runs the same steps as the first worker, until the first worker ends.

The first worker announces its steps, and this process runs no others: in an all-reduce that waits for a suspended
worker, a GPU is busy and slows the other levels. If nothing is reduced, a worker on the same machine runs freely beside
the first one, and a worker on another host runs steps only while it is asked for times.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bench.model.failure import Failure
from bench.registry.program_errors import traceback_lines
from bench.worker.channel import Channel
from bench.worker.cluster.member import Member
from bench.worker.cluster.step_times import StepTimer
from bench.worker.failure import failure_of, print_traceback
from bench.worker.losses import LOSSES
from bench.worker.main import die_with_parent, enable_crash_report
from bench.worker.phases import Phases
from bench.worker.protocol import Start
from bench.worker.rendezvous.messages import TO_PEER, Begin, Lost, Ping, Pong, Report, Steady, Timed, Until
from bench.worker.start_up import import_own_modules

PATIENCE_SECONDS = 60.0
"""Seconds in which steps must be timed. What is not known then is not reported."""

END_SECONDS = 2.0
"""Seconds to wait after an error for the first worker to end. Its end is then the cause of the error."""

LAST_LINES = 20
"""Lines of a traceback that are reported."""


class PeerLoop:
    """Counts the steps of this worker, and times some of them on request. A loop uses it like the timed loop.

    Args:
        sync: waits until a step is done.
        after_first: is called after each of the first steps.
        on_steady: is called after the last of them.
        on_demand: whether steps after the first ones run only while times are asked for.
        announced: whether steps after the first ones run only if they were announced.

    Attributes:
        steps_left: steps that a loop may issue with one call.
    """

    def __init__(
        self,
        sync: Callable[[Any], float],
        after_first: Callable[[], object],
        on_steady: Callable[[], object],
        on_demand: bool = False,
        announced: bool = False,
    ) -> None:
        self._sync = sync
        self._after_first = after_first
        self._on_steady = on_steady
        self._on_demand = on_demand
        self._asked = threading.Event()
        self._answered = threading.Event()
        self._first = LOSSES
        self._issued = 0
        self._until: float = LOSSES if announced else math.inf
        self._more = threading.Condition()
        self._timer = StepTimer(sync)
        self.steps_left = 1

    def begin(self) -> None:
        """Do nothing. The clock starts when times are asked for."""

    def tick(self, value: Any, steps: int = 1) -> None:
        """Count steps, the last of which returned `value`. Wait if no steps are wanted now."""
        if self._first:
            self._first -= 1
            self._sync(value)
            self._after_first()
            if not self._first:
                self._on_steady()
        elif self._asked.is_set():
            self._timer.tick(value, steps)
            if self._timer.done:
                self._asked.clear()
                self._answered.set()
        elif self._on_demand:
            self._asked.wait()
        self._issued += steps
        if self._issued >= self._until:
            with self._more:
                self._more.wait_for(lambda: self._issued < self._until)

    def announce(self, steps: int) -> None:
        """Run steps until there were this many in all. Called by another thread."""
        with self._more:
            self._until = steps
            self._more.notify()

    def report(self) -> Timed:
        """Return the times of the next steps. Called by another thread."""
        self._timer = timer = StepTimer(self._sync)
        self._answered.clear()
        self._asked.set()
        self._answered.wait(PATIENCE_SECONDS)
        return Timed(step_seconds=timer.mean, single_steps=timer.single if timer.done else [])


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
            file: the file that holds the order. None if the first worker sends it.
        """
        text = Path(file).read_bytes() if file else self._lines.readline()
        message = TO_PEER.validate_json(text)
        if not isinstance(message, Begin):
            raise TypeError("the first message must be `begin`")
        return message.start

    def listen(self) -> None:
        """Answer the first worker from now on, in a thread."""
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        try:
            for text in self._lines:
                message = TO_PEER.validate_json(text)
                if isinstance(message, Ping):
                    self.send(Pong())
                elif isinstance(message, Until) and self.loop is not None:
                    self.loop.announce(message.steps)
                elif isinstance(message, Report):
                    threading.Thread(target=self._report, daemon=True).start()
        finally:
            os._exit(0)  # the first worker has ended

    def _report(self) -> None:
        self.send(self.loop.report() if self.loop else Timed(step_seconds=None))


def run(start: Start, process: PeerProcess) -> None:
    """Set up as the first worker does, and run steps without end.

    Args:
        start: the order to begin.
        process: the connection to the first worker.
    """
    from bench.worker import loops
    from bench.worker.start_up import bring_up_tensorflow, build, load_workload
    from bench.worker.synchronize import Synchronizer

    spec, cluster = start.spec, start.cluster
    assert cluster is not None
    member = Member(spec, cluster)
    member.confine()
    process.listen()
    import_own_modules(start)
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
        announced=member.workers.reduce,
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


def described(error: BaseException, file: str | None) -> Failure:
    """Return the failure that describes an exception, with the end of its traceback.

    The parent of the first worker reads the stderr of its own workers, not that of this one.
    """
    lines = "".join(traceback_lines(error, Path(file) if file else None)).splitlines()
    return failure_of(error, file, "steps").model_copy(update={"last_lines": lines[-LAST_LINES:]})


def main() -> None:
    """Run a worker that is not the first."""
    die_with_parent()
    channel = Channel()
    enable_crash_report()
    process = PeerProcess(channel.lines, channel.send)
    start = process.begin(sys.argv[1] if len(sys.argv) > 1 else None)
    if start.script and start.script.copy_root:
        channel.renames[start.script.copy_root] = start.script.original_root
    try:
        run(start, process)
    except BaseException as error:
        file = start.script.file if start.script else start.spec.file
        if start.cluster and start.cluster.hosts:  # `bench.session.cluster_agent` shows it
            print_traceback(error, file)
        time.sleep(END_SECONDS)
        channel.send(Lost(failure=described(error, file)))
    os._exit(1)


if __name__ == "__main__":
    main()
