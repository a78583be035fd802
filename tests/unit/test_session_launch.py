"""Which workers the launcher keeps beside each other, with stand-ins for the workers and for the GPU."""

from __future__ import annotations

import errno
import os
import socket
import sys
import tempfile
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from stand_in_nvml import Nvml
from synthetic import measured

from bench.errors import DevbenchError
from bench.machine import system
from bench.model.failure import Failure
from bench.model.result import Result
from bench.session import launch, memory_fit
from bench.session.launch import Launcher
from bench.session.process import spawn
from bench.session.worker_process import WorkerEnded
from bench.session.worker_server import WorkerServer

GIB = 2**30

WORKER = 2 * GIB
"""Memory that a worker takes on the GPU."""


class OwnGpu(Nvml):
    """A machine with one GPU, whose memory workers take."""

    def __init__(self, total: int) -> None:
        super().__init__(["GPU-aaaa"])
        self.used, self.total = GIB, total

    def answer(self, name: str) -> Any:
        if name == "nvmlDeviceGetMemoryInfo":
            return SimpleNamespace(used=self.used, total=self.total)
        return super().answer(name)


class StandInLauncher(Launcher):
    """A launcher whose workers take memory of the GPU if they measure on it.

    Args:
        nvml: the machine's GPU.
        failing: the id of the result whose worker fails while it warms up.
    """

    def __init__(self, nvml: OwnGpu, failing: str = "") -> None:
        super().__init__(60.0, progress=SimpleNamespace(), save=lambda result: None)  # type: ignore[arg-type]
        self.nvml = nvml
        self.failing = failing
        self.suspended: list[str] = []

    def start(self, result: Result, *_: Any, **__: Any) -> Any:
        def warm_up() -> None:
            if result.id == self.failing:
                raise WorkerEnded(Failure(kind="crashed", message="it crashed", phase="warm_up"))
            if result.spec.backend == "cuda":
                self.nvml.used += WORKER
                if self.nvml.used > self.nvml.total:
                    raise WorkerEnded(Failure(kind="memory", message="no memory", phase="warm_up"))

        worker = SimpleNamespace(sample=SimpleNamespace(failure=None), set_up=lambda: None, warm_up=warm_up)
        worker.process = SimpleNamespace(rss=lambda: GIB)
        worker.fail = lambda failure: setattr(worker.sample, "failure", failure)
        worker.suspend = lambda: self.suspended.append(result.id)
        return worker


def groups(launcher: StandInLauncher, *backends: str) -> tuple[list[list[str]], list[bool]]:
    """Return the ids of the results that are interleaved with each other, and whether each result is."""
    results = [measured(str(n), [0.1], backend=backend) for n, backend in enumerate(backends)]
    members = []
    for group in launcher.trial(results, together=False):
        members.append([result.id for result, _ in group])
        launcher.nvml.used -= WORKER * sum(result.spec.backend == "cuda" for result, _ in group)  # they end
    return members, [result.interleaved for result in results]


@pytest.fixture(autouse=True)
def enough_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (launch, memory_fit):
        monkeypatch.setattr(module, "fits", lambda size: True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def on_gpu(monkeypatch: pytest.MonkeyPatch, gib: int) -> OwnGpu:
    nvml = OwnGpu(gib * GIB)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return nvml


def test_workers_that_a_gpu_holds_together_are_interleaved(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = StandInLauncher(on_gpu(monkeypatch, 16))
    assert groups(launcher, "cpu", "cuda", "cuda", "cuda") == ([["0", "1", "2", "3"]], [True] * 4)
    assert launcher.suspended == ["0", "1", "2", "3"]


def test_workers_that_a_gpu_does_not_hold_together_are_measured_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first worker, the GPU has 3 GiB left for two more of 2 GiB."""
    launcher = StandInLauncher(on_gpu(monkeypatch, 6))
    assert groups(launcher, "cpu", "cuda", "cuda", "cuda") == ([["0"], ["1"], ["2"], ["3"]], [False] * 4)


def test_a_single_worker_on_a_gpu_needs_no_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = StandInLauncher(on_gpu(monkeypatch, 3))
    assert groups(launcher, "cpu", "cuda", "cpu") == ([["0", "1", "2"]], [True] * 3)


def test_a_worker_that_fails_while_it_warms_up_leaves_the_others_together(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = StandInLauncher(on_gpu(monkeypatch, 16), failing="1")
    assert groups(launcher, "cuda", "cuda", "cuda") == ([["0", "2"]], [True] * 3)


@pytest.mark.parametrize(
    ("kind", "timed", "fails"), [("hung", True, False), ("hung", False, True), ("crashed", True, True)]
)
def test_a_result_keeps_the_steps_of_a_worker_that_hangs_after_they_were_timed(
    kind: Any, timed: bool, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher, result = StandInLauncher(on_gpu(monkeypatch, 16)), measured("1", [0.1])
    worker = launcher.start(result)
    with launcher.guard(result, worker, timed=timed):
        raise WorkerEnded(Failure(kind=kind, message="it ended", phase="pipeline"))
    assert (result.failure is not None) == fails
    assert worker.sample.failure.kind == (kind if fails else "interrupted")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EAGAIN, "cannot start a worker: Resource temporarily unavailable"),
        (errno.ENOSPC, "cannot write temporary files: No space left on device"),
        (errno.EDQUOT, "cannot write temporary files: "),
    ],
)
def test_a_worker_that_the_system_refuses_to_start_is_an_error_with_the_reason(
    number: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(launch, "spawn_in", lambda env: refused)
    with pytest.raises(DevbenchError) as caught:
        real_launcher().start(measured("0", []))
    assert caught.value.message.startswith(message)
    assert caught.value.hint


def test_a_worker_is_ended_if_there_is_no_room_for_the_thread_that_reads_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_room(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    started: list[Any] = []

    def start(*arguments: Any) -> Any:
        started.append(spawn(*arguments))
        return started[0]

    monkeypatch.setattr(system, "python", lambda module: [sys.executable, "-S", "-c", "input(); input()"])
    monkeypatch.setattr(launch, "spawn_in", lambda env: start)
    monkeypatch.setattr(threading.Thread, "start", no_room)
    with pytest.raises(DevbenchError, match="cannot start a worker: can't start new thread"):
        real_launcher().start(measured("0", []))
    (process,) = started
    assert process.poll() is not None
    for pipe in (process.stdin, process.stdout):
        pipe.close()


@pytest.mark.needs("linux")
def test_a_fork_that_the_system_refuses_is_told_from_other_errors() -> None:
    if sys.platform == "win32":
        raise NotImplementedError
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server = WorkerServer.__new__(WorkerServer)
    server._connection = ours

    def refuse() -> None:
        if sys.platform == "win32":
            raise NotImplementedError
        _, descriptors, _, _ = socket.recv_fds(theirs, 1000, 4)
        os.write(descriptors[3], b"[Errno 11] Resource temporarily unavailable\n")
        for descriptor in descriptors:
            os.close(descriptor)

    answering = threading.Thread(target=refuse)
    answering.start()
    with ours, theirs, tempfile.TemporaryFile() as errors, pytest.raises(OSError, match="unavailable") as caught:
        server.fork("/tmp", errors)
    answering.join()
    assert caught.value.errno == errno.EAGAIN


def real_launcher() -> Launcher:
    progress: Any = SimpleNamespace(trial=1, report=lambda *_: None)
    return Launcher(60.0, progress, save=lambda result: None)
