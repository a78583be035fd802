"""Forked workers: the same as fresh ones, apart from each other, and never longer alive than their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from unittest.mock import patch

import psutil
import pytest
from devbench_process import start_devbench, survivors

from bench import backends
from bench.config.settings import load
from bench.machine import system
from bench.model.phase import START_PHASES
from bench.model.plan import Group, Planned
from bench.model.result import Result
from bench.model.spec import Spec, Threads
from bench.publish.recorder import Recorder
from bench.session.design import Design
from bench.session.process import StartProcess, spawn
from bench.session.session import Session
from bench.session.worker_process import WorkerEnded
from bench.session.worker_sample import WorkerSample
from bench.session.worker_servers import WorkerServers
from bench.study.plan import plan
from bench.worker.server import opened

if sys.platform != "linux":
    pytest.skip("only Linux has worker servers", allow_module_level=True)

PROGRAM = """
import os, pathlib, sys, tempfile
import numpy as np
import tensorflow as tf
from pydantic import BaseModel

class Params(BaseModel):
    batch: int = 32

with (pathlib.Path(__file__).parent / "imports").open("a") as file:
    file.write(f"{os.getpid()} {tempfile.gettempdir()} {os.getsid(0)} {os.environ.get('TF_NUM_INTRAOP_THREADS')}\\n")
marker = pathlib.Path(__file__).parent / "end"

class Ending(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if marker.exists():
            exec(marker.read_text())

def data(p, ctx):
    x = ctx.rng.standard_normal((256, 8), dtype=np.float32)
    return x, x.sum(1, keepdims=True)

def model(p, ctx):
    made = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(16), tf.keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made

def as_written(p, ctx, model, data):
    model.fit(*data, batch_size=32, epochs=10**6, verbose=0, callbacks=[Ending()])
"""
LINE = 1 + PROGRAM[: PROGRAM.index("exec(")].count("\n")
"""The line that runs what a test asks for."""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    """Return the spec of a program that notes each process that imports it, and runs the file `end` in each step."""
    file = tmp_path_factory.mktemp("programs") / "program.py"
    file.write_text(PROGRAM)
    (group,) = plan([str(file)], load(backend="cpu", threads=1))
    return group.planned[0].spec


@pytest.fixture
def program(spec: Spec) -> Iterator[Path]:
    """Return the path of the program. Nothing ends it yet."""
    assert spec.file is not None
    yield Path(spec.file)
    (Path(spec.file).parent / "end").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def servers() -> Iterator[WorkerServers]:
    """Return servers that the tests share."""
    with WorkerServers() as shared:
        yield shared


def start(spec: Spec, servers: WorkerServers | None) -> WorkerSample:
    """Start a worker: forked from one of the servers, or fresh if there are none."""
    variables = backends.load("cpu").environment(spec)
    kind: StartProcess = spawn
    if servers is not None:
        assert servers.wait(variables, 300), servers.problem
        kind = servers.fork
    return WorkerSample(spec, 1, variables, 300, lambda phase, note: None, start=kind)


def warm(spec: Spec, servers: WorkerServers | None) -> WorkerSample:
    """Start a worker and run its warm-up."""
    worker = start(spec, servers)
    worker.set_up()
    worker.warm_up()
    return worker


def test_a_forked_worker_measures_what_a_fresh_one_measures(spec: Spec, servers: WorkerServers) -> None:
    samples = []
    for kind in (None, servers):
        worker = warm(spec, kind)
        worker.run_blocks(3, 0)
        worker.finish(check_placement=True, latency=True, inspect=True)
        samples.append(worker.sample)
    fresh, forked = samples
    assert (fresh.forked, forked.forked) == (False, True)
    assert forked.first_losses == fresh.first_losses
    fresh_phases, forked_phases = ({*sample.phases} & {*START_PHASES} for sample in samples)
    assert forked_phases == fresh_phases
    assert forked.phases["import"] < fresh.phases["import"] / 10
    placements = [sample.placement for sample in samples]
    # The number of operations depends on whether the last block ended with an epoch, and so on how many steps it had.
    assert [place and (place.verified, place.method, {*place.devices}) for place in placements] == [
        (True, "partition graphs of a new train function", {"CPU:0"})
    ] * 2
    assert len(forked.series[0].blocks) == len(fresh.series[0].blocks) == 3


def test_each_forked_worker_imports_the_program_with_its_own_threads_session_and_folder(
    spec: Spec, program: Path, servers: WorkerServers
) -> None:
    workers = [
        start(spec.model_copy(update={"threads": Threads(intra=threads, inter=1)}), servers) for threads in (1, 2, 2)
    ]
    for worker in workers:
        worker.set_up()
    notes = [line.split() for line in (program.parent / "imports").read_text().splitlines()]
    of_workers = {int(pid): rest for pid, *rest in notes}
    pids = [worker.process.process.pid for worker in workers]
    assert [of_workers[pid][2] for pid in pids] == ["1", "2", "2"]
    assert all(of_workers[pid][1] == str(pid) for pid in pids)
    folders = [Path(of_workers[pid][0]) for pid in pids]
    assert len(set(folders)) == 3
    assert all(folder.is_dir() and folder != Path(tempfile.gettempdir()) for folder in folders)
    for worker in workers:
        worker.close()
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ("os._exit(3)", "the worker ended with exit code 3"),
        ("import ctypes; ctypes.string_at(0)", f"the worker was killed by SIGSEGV (program.py, line {LINE})"),
        ("os.kill(os.getpid(), 9)", "the worker was killed by SIGKILL"),
    ],
)
def test_a_crash_of_a_forked_worker_is_described_and_leaves_the_others_and_the_server(
    spec: Spec, program: Path, servers: WorkerServers, ending: str, message: str
) -> None:
    crashing, other = warm(spec, servers), warm(spec, servers)
    other.suspend()
    (program.parent / "end").write_text(ending)
    with pytest.raises(WorkerEnded) as ended:
        crashing.run_blocks(5, 0)
    crashing.fail(ended.value.failure)
    assert ended.value.failure.message == message
    (program.parent / "end").unlink()
    other.resume()
    other.run_blocks(2, 0)
    assert len(other.sample.series[0].blocks) == 2
    third = warm(spec, servers)
    assert third.sample.forked
    for worker in (other, third):
        worker.fail(ended.value.failure)


@pytest.mark.once
def test_a_worker_that_is_killed_while_suspended_is_gone(spec: Spec, servers: WorkerServers) -> None:
    worker = warm(spec, servers)
    worker.suspend()
    worker.process.kill()
    worker.close()
    assert worker.process.process.poll() == -signal.SIGKILL
    assert not psutil.pid_exists(worker.process.process.pid)


@pytest.mark.once
def test_workers_end_with_their_server_and_the_next_one_gets_a_new_server(spec: Spec) -> None:
    with WorkerServers() as servers:
        worker = warm(spec, servers)
        (server,) = servers.pids
        os.kill(server, signal.SIGKILL)
        with pytest.raises(WorkerEnded, match="killed by SIGKILL"):
            worker.run_blocks(1000, 0)
        worker.close()
        assert not survivors(
            [psutil.Process(pid) for pid in (server, worker.process.process.pid) if psutil.pid_exists(pid)]
        )
        warm(spec, servers).close()
        assert servers.pids != [server]


@pytest.mark.once
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_server_and_no_worker_outlives_the_command(program: Path, tmp_path: Path, number: signal.Signals) -> None:
    arguments = ("explain", str(program), "--backend", "cpu", "--max-time", "5m", "--output", str(tmp_path / "results"))
    with start_devbench(tmp_path, *arguments, XDG_CACHE_HOME=str(tmp_path)) as run:
        processes: list[psutil.Process] = []
        while not any(forks(process) for process in processes):  # a server with a worker
            assert run.process.poll() is None
            processes = run.workers()
        run.process.send_signal(number)
        run.process.wait(timeout=60)
        assert not survivors(processes)


def forks(process: psutil.Process) -> bool:
    """Whether a process is a server that has forked a worker."""
    try:
        return "bench.worker.server" in process.cmdline() and bool(process.children())
    except psutil.NoSuchProcess:
        return False


def session(spec: Spec, folder: Path, servers: WorkerServers, design: Design, trials: int = 2) -> list[Result]:
    """Measure two loops of a program in a few trials with few blocks."""
    settings = load(backend="cpu", output=folder, max_processes=trials, max_time="30m")
    planned = [Planned(spec.model_copy(update={"loop": loop}), (), None, None) for loop in ("fit", "step")]
    with patch("bench.session.interleave.BLOCKS", 8):
        return Session(Group("program", tuple(planned)), settings, design, Recorder(settings), servers).run()


@pytest.mark.once
@pytest.mark.parametrize(
    ("cold_starts", "forked"),
    [("alone", [[False, True], [False, True]]), ("none", [[True, True], [True, True]])],
)
def test_only_workers_whose_cold_start_is_reported_are_fresh(
    spec: Spec,
    tmp_path: Path,
    servers: WorkerServers,
    cold_starts: Literal["alone", "none"],
    forked: list[list[bool]],
) -> None:
    results = session(spec, tmp_path, servers, Design(cold_starts=cold_starts, clear_trials=2))
    assert [[sample.forked for sample in result.samples] for result in results] == forked
    for result, flags in zip(results, forked, strict=True):
        assert all(sample.series[0].blocks for sample in result.samples)
        start = result.summary.cold_start_seconds
        assert (start.n if start else 0) == flags.count(False)


@pytest.mark.once
def test_if_no_server_can_start_workers_are_fresh_and_a_note_says_why(
    spec: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = system.python
    broken = [sys.executable, "-c", "raise SystemExit('no memory')"]
    monkeypatch.setattr(system, "python", lambda module: broken if "server" in module else python(module))
    with WorkerServers() as servers:
        results = session(spec, tmp_path, servers, Design(cold_starts="none"), trials=1)
    note = "Workers were not forked, so each imported TensorFlow: it ended with exit code 1: no memory."
    assert all(note in result.notes and result.failure is None for result in results)
    assert not any(sample.forked for result in results for sample in result.samples)


@pytest.mark.once
def test_a_forked_worker_is_awaited_with_a_timeout(spec: Spec, servers: WorkerServers) -> None:
    worker = warm(spec, servers)
    with pytest.raises(subprocess.TimeoutExpired):
        worker.process.process.wait(timeout=0.1)
    worker.close()
    assert worker.process.process.poll() == 1  # it ended because its orders ended


def test_a_server_notices_if_the_import_of_tensorflow_opened_a_gpu() -> None:
    assert opened() == []
    with Path("/dev/zero").open("rb"):
        assert opened(("/dev/null-", "/dev/zer")) == ["/dev/zero"]
