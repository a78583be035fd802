"""The timeout of a silent worker, with real processes that follow a worker's protocol."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.errors import Interrupted
from bench.machine import system
from bench.model.sample import Block, Series
from bench.model.spec import Data, Spec, Threads
from bench.session import worker_process
from bench.session.block_steps import steps_of_block, steps_of_lead
from bench.session.worker_process import OutOfTime, WorkerEnded, WorkerProcess
from bench.session.worker_sample import WorkerSample
from bench.worker.protocol import Done, Go, PhaseStarted, ScriptRun

TIMEOUT = 2.0
SPEC = Spec(workload="cifar", backend="cpu", threads=Threads(intra=1, inter=1), data=Data(kind="own"))
SILENT_WORKER = """
import sys, time
sys.stdin.readline()
print('{"event": "phase-started", "phase": "device_init", "slow": %s}', flush=True)
time.sleep(%f)
print('{"event": "done"}', flush=True)
sys.stdin.read()
"""


@contextmanager
def worker(monkeypatch: pytest.MonkeyPatch, slow: bool) -> Iterator[WorkerProcess]:
    """Start a worker that is silent in its first phase for longer than the timeout.

    After its next event it is silent forever.
    """
    script = SILENT_WORKER % (str(slow).lower(), 1.5 * TIMEOUT)
    monkeypatch.setattr(system, "python", lambda module: [sys.executable, "-S", "-c", script])
    handle = WorkerProcess(SPEC, {}, TIMEOUT)
    try:
        yield handle
    finally:
        handle.kill()
        handle.close()


def test_a_silent_worker_is_ended_and_the_failure_names_its_phase(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with worker(monkeypatch, slow=False) as handle:
        assert isinstance(handle.event(), PhaseStarted)
        with pytest.raises(WorkerEnded, match="silent for 2 s") as ended:
            handle.event()
    assert (ended.value.failure.kind, ended.value.failure.phase) == ("hung", "device_init")


def test_a_worker_in_a_slow_phase_may_be_silent_for_longer_until_its_steps_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with worker(monkeypatch, slow=True) as handle:
        assert isinstance(handle.event(), PhaseStarted)
        assert isinstance(handle.event(), Done)
        handle.order(Go())
        with pytest.raises(WorkerEnded, match="silent for 2 s"):
            handle.event()


BUSY_SCRIPT = """
import sys
sys.stdin.readline()
print('{"event": "phase-started", "phase": "diagnosis"}', flush=True)
while True:
    pass
"""


def test_a_busy_script_that_has_started_its_steps_is_ended_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "python", lambda module: [sys.executable, "-S", "-c", BUSY_SCRIPT])
    handle = WorkerProcess(SPEC, {}, TIMEOUT, script=lambda folder: ScriptRun(file="train.py", folder=str(folder)))
    try:
        assert isinstance(handle.event(), PhaseStarted)
        with pytest.raises(WorkerEnded, match="silent for 2 s"):
            handle.event()
    finally:
        handle.kill()
        handle.close()


def test_a_worker_is_not_waited_for_after_the_last_moment_of_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    with worker(monkeypatch, slow=True) as handle:
        assert isinstance(handle.event(), PhaseStarted)
        handle.last_moment = time.monotonic() + 0.1
        with pytest.raises(OutOfTime):
            handle.event()


@pytest.mark.parametrize("stage", ["counting", "waiting"])
def test_a_worker_whose_end_is_interrupted_is_killed(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise Interrupted(signal.SIGINT)

    monkeypatch.setattr(system, "python", lambda module: [sys.executable, "-S", "-c", "while True: pass"])
    worker = WorkerSample(SPEC, 1, {}, 60.0, lambda phase, note: None)
    process = worker.process.process
    monkeypatch.setattr(worker_process, "GRACE_SECONDS", 0.1)
    if stage == "counting":
        monkeypatch.setattr(worker, "_stop_meter", interrupted)
    else:
        monkeypatch.setattr(worker.process, "resume", interrupted)
    with pytest.raises(Interrupted):
        worker.close()
    assert process.poll() is not None


LOST_PEER = """
import sys
sys.stdin.readline()
print("what this host wrote", file=sys.stderr, flush=True)
failure = '{"kind": "error", "message": "worker 1: ValueError", "last_lines": ["ValueError: of the other host"]}'
print('{"event": "failed", "failure": %s}' % failure, flush=True)
sys.stdin.read()
"""


def test_the_last_lines_of_a_worker_on_another_host_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "python", lambda module: [sys.executable, "-S", "-c", LOST_PEER])
    handle = WorkerProcess(SPEC, {}, 60.0)
    try:
        with pytest.raises(WorkerEnded, match="worker 1: ValueError") as ended:
            handle.event()
    finally:
        handle.kill()
        handle.close()
    assert ended.value.failure.last_lines == ["ValueError: of the other host"]


SLOW_START = """
import sys
sys.stdin.readline()
more = ', "slow": true, "note": "compiles for minutes"'
for phase in "device_init", "first_step", "diagnosis":
    print('{"event": "phase-started", "phase": "%s"%s}' % (phase, more), flush=True)
    more = ""
    if phase == "first_step":
        print('{"event": "ready", "series": ["step"]}', flush=True)
print('{"event": "done"}', flush=True)
sys.stdin.read()
"""


def test_the_reason_for_a_slow_start_is_shown_with_every_phase_of_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "python", lambda module: [sys.executable, "-S", "-c", SLOW_START])
    phases: list[tuple[str, str]] = []
    worker = WorkerSample(SPEC, 1, {}, 60.0, lambda phase, note: phases.append((phase, note)))
    worker.set_up()
    worker.events.until(Done)
    worker.process.kill()
    worker.close()
    reason = "compiles for minutes"
    assert phases == [("starting", ""), ("device_init", reason), ("first_step", reason), ("diagnosis", "")]


SPEEDING_UP = """
import json, sys
print('{"event": "ready", "series": ["step"]}', flush=True)
blocks = 0
for line in sys.stdin:
    order = json.loads(line)
    if order["do"] == "go":
        steps = order["steps"] or 100
        for _ in range(order["blocks"]):
            blocks += 1
            seconds = steps * (0.001 if blocks < 12 else 0.0002)
            print(json.dumps({"event": "block", "series": "step", "seconds": seconds, "steps": steps,
                              "cpu_seconds": 0.0}), flush=True)
"""


@pytest.mark.parametrize("alone", [True, False])
def test_blocks_get_longer_if_steps_get_faster_after_the_warm_up(monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    monkeypatch.setattr(system, "python", lambda module: [sys.executable, "-S", "-c", SPEEDING_UP])
    worker = WorkerSample(SPEC, 1, {}, 60.0, lambda phase, note: None)
    worker.set_up()
    worker.warm_up()
    (series,) = worker.sample.series
    while len(series.warmup) < 11:  # the warm-up ends just before steps get faster
        series.warmup.append(worker.blocks.run("step", -1))
    warm_up_blocks = len(series.warmup)
    if alone:
        worker.run_blocks(3, 0)
    else:
        for position in range(3):
            worker.run_round(position, lead=True)
    worker.process.kill()
    worker.close()
    assert [block.position for block in series.blocks] == [0, 1, 2]
    assert all(0.08 <= block.seconds <= 0.1 for block in series.blocks)
    assert len(series.warmup) == warm_up_blocks + 1
    assert series.warmup[-1].seconds < 0.03


@pytest.mark.parametrize(("gpu", "expected"), [(False, 11), (True, 100)])
def test_a_gpu_gets_as_many_untimed_steps_after_a_pause_as_its_clock_needs(gpu: bool, expected: int) -> None:
    series = Series(warmup=[Block(seconds=0.088, steps=88, cpu_seconds=0.0, position=-1)])
    assert steps_of_lead(series, steps_of_block(series, 0.001), gpu) == expected
