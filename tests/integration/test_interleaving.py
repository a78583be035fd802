"""A suspended worker uses no CPU time, and the number of threads follows the CPU quota."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from background_runs import ONE_PROCESS, measured_program
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
def start_worker(path: str) -> Iterator[WorkerProcess]:
    """Yield a worker that is set up."""
    ((planned,),) = [group.planned for group in plan([path], load(loop="step"))]
    process = WorkerProcess(planned.spec, backends.load("cpu").environment(planned.spec), timeout=120)
    try:
        wait_for(process, Ready)
        yield process
    finally:
        process.kill()
        process.close()


def wait_for(handle: WorkerProcess, kind: type[Ready] | type[BlockTimed]) -> None:
    while not isinstance(handle.event(), kind):
        pass


def block(handle: WorkerProcess) -> None:
    """Run one block of steps, from the order to its end."""
    handle.order(Go(steps=30))
    wait_for(handle, BlockTimed)


def stop(handle: WorkerProcess) -> None:
    """Suspend a worker, and poll until all its threads are stopped."""
    handle.suspend()
    tasks = Path(f"/proc/{handle.process.pid}/task")
    polls = (_all_stopped(tasks, handle.process.pid) for _ in range(20_000))
    assert any(polls)


def _all_stopped(tasks: Path, pid: int) -> bool:
    """Return whether every thread is stopped. The state of the process is that of its first thread only."""
    if not tasks.exists():
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    try:
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()]
    except (FileNotFoundError, ProcessLookupError):  # a thread ended meanwhile
        return False
    return set(states) == {"T"}


def cpu_seconds(handle: WorkerProcess) -> float:
    times = psutil.Process(handle.process.pid).cpu_times()
    return times.user + times.system


def works_during_blocks_of(active: WorkerProcess, worker: WorkerProcess) -> bool:
    """Return whether `worker` uses CPU time during blocks of `active`. A block can be shorter than a clock tick."""
    before = cpu_seconds(worker)
    for _ in range(200):
        block(active)
        if cpu_seconds(worker) > before:
            return True
    return False


@pytest.mark.essential
def test_a_suspended_worker_uses_no_cpu_time() -> None:
    with start_worker(measured_program("busy_pipeline")) as first:
        stop(first)
        before = cpu_seconds(first)
        with start_worker(measured_program("busy_pipeline")) as second:
            block(second)
            assert cpu_seconds(first) == before
            stop(second)
            first.resume()
            second_seconds = cpu_seconds(second)
            assert works_during_blocks_of(first, first)
            assert cpu_seconds(second) == second_seconds
            # Without the suspension, the input threads continue to work, so the check above can fail.
            second.resume()
            assert works_during_blocks_of(second, first)


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
    arguments = [
        sys.executable,
        "-m",
        "bench",
        "run",
        measured_program("step_inputs"),
        *ONE_PROCESS,
        "--output",
        str(tmp_path / "results"),
    ]
    enter = 'echo $$ >"$0/cgroup.procs" && exec "$@"'
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(
        ["sh", "-c", enter, str(quota), *arguments],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    (result,) = files.results(tmp_path / "results")
    assert result.spec.threads.model_dump() == {"intra": 1, "inter": 1}
    assert result.environment.framework is not None
    assert result.environment.framework.threads == ThreadPools(intra=1, inter=1)
    telemetry = result.samples[0].telemetry
    assert telemetry is not None
    assert telemetry.throttled_periods is not None
    assert telemetry.throttled_periods > 0
    assert telemetry.throttled_seconds is not None
    assert telemetry.throttled_seconds > 0
    assert "throttled" in [warning.key for warning in result.warnings]
    assert "the CPU quota throttled the program's threads" in process.stdout
    assert "CPU quota" in [finding.cause for finding in findings([result])]
