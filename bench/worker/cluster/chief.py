"""The first worker's side of a cluster: it lets the other workers begin, and watches them.

For each other worker, one thread reads its messages, and another one notices if it no longer answers.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from bench.model.failure import Failure
from bench.model.spec import Spec
from bench.worker.cluster.arrivals import arrivals
from bench.worker.cluster.step_times import StepTimer, slowest_step
from bench.worker.losses import LOSSES
from bench.worker.protocol import ClusterRun, PeersTimed, ScriptRun, Start, WorkerMessage
from bench.worker.rendezvous.losing import ending, lost
from bench.worker.rendezvous.messages import (
    Begin,
    Hello,
    Lost,
    Ping,
    Pong,
    Report,
    Steady,
    Timed,
    Until,
    line,
    received,
)
from bench.worker.rendezvous.ports import address, free_port

QUIET_SECONDS = 8.0
"""Seconds between an answer of a worker and the next ping."""

UNANSWERED = 12
"""Seconds without an answer after which a worker counts as lost. A suspension of this process is at most one second."""

START_SECONDS = 120.0
"""Seconds after which a worker that starts is pinged, if its first steps are not done earlier."""

REPORT_SECONDS = 75.0
"""Seconds in which the other workers must report their step times."""


class Peer:
    """Another worker, as the first worker sees it.

    Args:
        hello: its first message.
        connection: the connection to it.
        process: its process. None if it runs on another host.

    Attributes:
        steady: is set when its first steps are done.
        failure: why the worker is gone. None while it is there.
    """

    def __init__(self, hello: Hello, connection: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self.index = hello.index
        self.port = hello.port
        self._connection = connection
        self._process = process
        self._reports: SimpleQueue[Timed] = SimpleQueue()
        self._answered = threading.Event()
        self.steady = threading.Event()
        self.failure: Failure | None = None

    def send(self, message: WorkerMessage) -> None:
        """Send a message. If the worker is gone, the thread that watches it notices."""
        with contextlib.suppress(OSError):
            self._connection.sendall(line(message))

    def watch(self, on_lost: Callable[[Failure], None]) -> None:
        """Start the threads that notice if the worker is gone, or no longer answers.

        Args:
            on_lost: is called with the reason, in one of these threads.
        """
        threading.Thread(target=self._read, args=(on_lost,), daemon=True).start()
        threading.Thread(target=self._ping, args=(on_lost,), daemon=True).start()

    def ask(self) -> None:
        """Ask the worker for the time of its steps."""
        self.send(Report())

    def answered(self) -> bool:
        """Return whether the worker has answered."""
        return not self._reports.empty()

    def report(self) -> Timed:
        """Return the times of its steps. They are None if it has not answered, or if its steps take too long."""
        return Timed(step_seconds=None) if self._reports.empty() else self._reports.get()

    def close(self) -> None:
        """End the connection, which ends the worker."""
        self.failure = self.failure or lost("the connection was closed")
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _read(self, on_lost: Callable[[Failure], None]) -> None:
        failure = None
        for message in received(self._connection):
            if isinstance(message, Pong):
                self._answered.set()
            elif isinstance(message, Steady):
                self.steady.set()
            elif isinstance(message, Timed):
                self._reports.put(message)
            elif isinstance(message, Lost):
                failure = message.failure.model_copy(
                    update={"message": f"worker {self.index}: {message.failure.message}"}
                )
                break
        self._lose(failure or self._gone(), on_lost)

    def _ping(self, on_lost: Callable[[Failure], None]) -> None:
        self.steady.wait(START_SECONDS)  # during an import, it may be too busy to answer
        while self.failure is None:
            time.sleep(QUIET_SECONDS)
            self._answered.clear()
            self.send(Ping())
            for _ in range(UNANSWERED):  # a suspension of this process counts as one second
                if self._answered.wait(1.0) or self.failure is not None:
                    break
            else:
                message = f"worker {self.index} does not answer: it is suspended, or its machine is out of reach"
                self._lose(lost(message), on_lost)

    def _lose(self, failure: Failure, on_lost: Callable[[Failure], None]) -> None:
        if self.failure is None:
            self.failure = failure
            on_lost(failure)

    def _gone(self) -> Failure:
        if self._process is None:
            return lost(f"worker {self.index} is gone: the connection to it ended")
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return lost(f"worker {self.index} is gone: it closed its connection")
        return lost(f"worker {self.index} {ending(code)}")


class Cluster:
    """The workers of a spec, as the first worker sees them.

    Args:
        run: how they meet. `addresses` is filled in.
        peers: the others, by rising index.
    """

    def __init__(self, run: ClusterRun, peers: list[Peer]) -> None:
        self.run = run
        self.peers = peers
        self._announced = LOSSES

    def failure(self, seconds: float) -> Failure | None:
        """Return why a worker is gone, if that is known within some seconds. None if it is not."""
        deadline = time.monotonic() + seconds
        while self.peers:
            found = next((peer.failure for peer in self.peers if peer.failure is not None), None)
            if found is not None or time.monotonic() > deadline:
                return found
            time.sleep(0.05)
        return None

    def wait_until_steady(self) -> None:
        """Wait until the other workers have done their first steps. If nothing is reduced, no step waits for them."""
        for peer in self.peers:
            peer.steady.wait()

    def announce(self, steps: int) -> None:
        """Let the other workers run until they have run this many steps in all. They run the first ones unasked."""
        if steps > self._announced:
            self._announced = steps
            for peer in self.peers:
                peer.send(Until(steps=steps))

    def close(self) -> None:
        """End all other workers."""
        for peer in self.peers:
            peer.close()

    def times(self, step: Callable[[], Any], sync: Callable[[Any], float]) -> PeersTimed:
        """Return the step times of the workers divided by that of this one, timed at the same time.

        Args:
            step: runs a step of this worker, and returns its value.
            sync: waits for the step that returned a value.

        Returns:
            No times if a worker does not answer in time. No time of the slowest step if the steps take too long.
        """
        timer, start = StepTimer(sync), time.perf_counter()
        timer.tick(step())
        for peer in self.peers:
            peer.ask()
        while not (timer.done and all(peer.answered() for peer in self.peers)):
            if time.perf_counter() - start > REPORT_SECONDS:
                break
            timer.tick(step())
        reports = [peer.report() for peer in self.peers]
        means = [timer.mean, *(report.step_seconds for report in reports)]
        known = [mean for mean in means if mean]
        if len(known) < len(means):
            return PeersTimed(step_ratios=[])
        own, *others = known
        timed = PeersTimed(step_ratios=[each / own for each in others])
        single = [timer.single, *(report.single_steps for report in reports)]
        if all(single):
            timed.slowest_step_ratio = slowest_step(known, single) / own
        return timed


def gather(spec: Spec, start: Start, on_lost: Callable[[Failure], None]) -> Cluster:
    """Wait for the other workers and let them begin. Then this worker must begin too, because the others wait for it.

    Args:
        spec: the spec. It has workers.
        start: the first order to this worker.
        on_lost: is called in another thread if a worker is gone.

    Raises:
        ClusterError: a worker does not come, or does not fit the others.
    """
    workers, run = spec.workers, start.cluster
    assert workers is not None
    assert run is not None
    count = workers.count
    if count == 1 or workers.strategy == "mirrored":
        return Cluster(run, [])
    peers = [Peer(each.hello, each.connection, each.process) for each in arrivals(run, count)]
    hosts = run.hosts or ["127.0.0.1"] * count
    ports = [free_port(), *(peer.port for peer in peers)]
    run = run.model_copy(update={"addresses": [address(h, p) for h, p in zip(hosts, ports, strict=True)]})
    for peer in peers:
        peer.watch(on_lost)
        script = start.script if run.hosts else _script(start.script, peer.index)
        update = {"cluster": run.model_copy(update={"index": peer.index}), "script": script}
        peer.send(Begin(start=start.model_copy(update=update)))
    return Cluster(run, peers)


def _script(script: ScriptRun | None, index: int) -> ScriptRun | None:
    """Return how another worker on this machine runs a script: in a copy of its own, which is made here.

    On another host, `bench.session.cluster_agent` makes one.
    """
    if script is None or not script.copy_root:
        return script
    copy = f"{script.copy_root}-{index}"
    shutil.copytree(script.copy_root, copy, symlinks=True)
    renamed = {
        name: value.replace(script.copy_root, copy, 1)
        for name in ("file", "folder", "copy_root")
        if (value := getattr(script, name))
    }
    return script.model_copy(update=renamed)
