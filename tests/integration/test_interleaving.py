"""A waiting worker does not work, and threads follow the container's CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from background_runs import ONCE, own
from devbench_process import ROOT

from bench import backends
from bench.analyse.explain.findings import findings
from bench.config.settings import load
from bench.model.framework import ThreadPools
from bench.session.worker_process import WorkerProcess
from bench.store import files
from bench.study.plan import plan
from bench.worker.protocol import BlockTimed, Go, Ready

pytestmark = pytest.mark.once


@contextmanager
def worker(path: str) -> Iterator[WorkerProcess]:
    """Yield a worker that is set up."""
    ((one,),) = [group.planned for group in plan([path], load(loop="step"))]
    handle = WorkerProcess(one.spec, backends.load("cpu").environment(one.spec), timeout=120)
    try:
        until(handle, Ready)
        yield handle
    finally:
        handle.kill()
        handle.close()


def until(handle: WorkerProcess, kind: type[Ready] | type[BlockTimed]) -> None:
    while not isinstance(handle.event(), kind):
        pass


def block(handle: WorkerProcess) -> None:
    """Run one block of steps, from the order to its end."""
    handle.order(Go(steps=30))
    until(handle, BlockTimed)


def stop(handle: WorkerProcess) -> None:
    """Suspend a worker, and wait until all its threads are stopped."""
    handle.suspend()
    tasks = Path(f"/proc/{handle.popen.pid}/task")
    looks = (_all_stopped(tasks, handle.popen.pid) for _ in range(20_000))
    assert any(looks)


def _all_stopped(tasks: Path, pid: int) -> bool:
    """Whether every thread is stopped. The state of the process is that of its first thread only."""
    if not tasks.exists():
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    try:
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()]
    except (FileNotFoundError, ProcessLookupError):  # a thread ended meanwhile
        return False
    return set(states) == {"T"}


def cpu_seconds(handle: WorkerProcess) -> float:
    times = psutil.Process(handle.popen.pid).cpu_times()
    return times.user + times.system


def works_during_blocks_of(other: WorkerProcess, one: WorkerProcess) -> bool:
    """Whether `one` uses CPU time during blocks of `other`. Blocks can be shorter than a tick of that clock."""
    before = cpu_seconds(one)
    for _ in range(200):
        block(other)
        if cpu_seconds(one) > before:
            return True
    return False


@pytest.mark.essential
def test_a_worker_that_waits_for_its_turn_does_not_work() -> None:
    with worker(own("busy_pipeline")) as one:
        stop(one)
        before = cpu_seconds(one)
        with worker(own("busy_pipeline")) as other:
            block(other)
            assert cpu_seconds(one) == before
            stop(other)
            one.resume()
            elsewhere = cpu_seconds(other)
            assert works_during_blocks_of(one, one)
            assert cpu_seconds(other) == elsewhere
            # The same without suspension: input threads work on, and the test above would see it.
            other.resume()
            assert works_during_blocks_of(other, one)


def _group(name: str, cpus: float) -> Path:
    """Create a control group with a CPU quota."""
    top = Path("/sys/fs/cgroup")
    if (top / "cgroup.controllers").exists():
        group = top / name
        group.mkdir()
        (group / "cpu.max").write_text(f"{cpus * 100_000:.0f} 100000")
    else:
        group = top / "cpu" / name
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text("100000")
        (group / "cpu.cfs_quota_us").write_text(f"{cpus * 100_000:.0f}")
    return group


@pytest.fixture
def quota() -> Iterator[Path]:
    group = _group(f"devbench-test-{os.getpid()}", 0.5)
    try:
        yield group
    finally:
        group.rmdir()


@pytest.mark.needs("cpu-quota")
def test_threads_follow_the_cpu_quota_and_throttled_time_is_recorded(quota: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "bench", "run", own("step_inputs"), *ONCE, "--output", str(tmp_path / "results")]
    enter = 'echo $$ >"$0/cgroup.procs" && exec "$@"'
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-c", enter, str(quota), *words], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (found,) = files.results(tmp_path / "results")
    assert found.spec.threads.model_dump() == {"intra": 1, "inter": 1}
    assert found.environment.framework is not None
    assert found.environment.framework.threads == ThreadPools(intra=1, inter=1)
    telemetry = found.samples[0].telemetry
    assert telemetry is not None
    assert telemetry.throttled_periods is not None
    assert telemetry.throttled_periods > 0
    assert telemetry.throttled_seconds is not None
    assert telemetry.throttled_seconds > 0
    assert "throttled" in [each.key for each in found.warnings]
    assert "the CPU quota throttled the program's threads" in done.stdout
    assert "CPU quota" in [each.cause for each in findings([found])]
