"""How long a worker may be silent: real processes that speak a worker's words and wait."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.machine import system
from bench.model.spec import Data, Spec, Threads
from bench.session.worker_process import WorkerEnded, WorkerProcess
from bench.session.worker_sample import WorkerSample
from bench.worker.protocol import Done, Go, PhaseStarted

SILENT = 2.0
SPEC = Spec(workload="cifar", backend="cpu", threads=Threads(intra=1, inter=1), data=Data(kind="own"))
SAYS = """
import sys, time
sys.stdin.readline()
print('{"event": "phase-started", "phase": "device_init", "slow": %s}', flush=True)
time.sleep(%f)
print('{"event": "done"}', flush=True)
sys.stdin.read()
"""


@contextmanager
def worker(monkeypatch: pytest.MonkeyPatch, slow: bool) -> Iterator[WorkerProcess]:
    """A worker that enters a phase, is silent for longer than it may be in general, and then for good."""
    script = SAYS % (str(slow).lower(), 1.5 * SILENT)
    monkeypatch.setattr(system, "python", lambda module: [sys.executable, "-S", "-c", script])
    handle = WorkerProcess(SPEC, {}, SILENT)
    try:
        yield handle
    finally:
        handle.kill()
        handle.close()


def test_a_worker_that_is_silent_for_longer_than_it_may_be_is_ended_with_its_phase(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with worker(monkeypatch, slow=False) as handle:
        assert isinstance(handle.event(), PhaseStarted)
        with pytest.raises(WorkerEnded, match="silent for 2 s") as ended:
            handle.event()
    assert (ended.value.failure.kind, ended.value.failure.phase) == ("hung", "device_init")


def test_a_worker_that_has_said_why_it_is_slow_may_be_silent_up_to_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    with worker(monkeypatch, slow=True) as handle:
        assert isinstance(handle.event(), PhaseStarted)
        assert isinstance(handle.event(), Done)
        handle.order(Go())
        with pytest.raises(WorkerEnded, match="silent for 2 s"):
            handle.event()


STARTS = """
import sys
sys.stdin.readline()
for phase, more in [("device_init", ', "slow": true, "note": "compiles for minutes"'), ("first_step", ""), ("end", "")]:
    print('{"event": "phase-started", "phase": "%s"%s}' % (phase, more), flush=True)
    if phase == "first_step":
        print('{"event": "ready", "series": ["step"]}', flush=True)
print('{"event": "done"}', flush=True)
sys.stdin.read()
"""


def test_why_a_start_is_slow_is_told_with_each_of_its_phases_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "python", lambda module: [sys.executable, "-S", "-c", STARTS])
    told: list[tuple[str, str]] = []
    worker = WorkerSample(SPEC, 1, {}, 60.0, lambda phase, note: told.append((phase, note)))
    worker.set_up()
    worker.until(Done)
    worker.process.kill()
    worker.close()
    why = "compiles for minutes"
    assert told == [("starting", ""), ("device_init", why), ("first_step", why), ("end", "")]
