"""Several workers that train together: they compute what one computes, and whatever happens to one is reported."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from devbench_process import CompletedRun, DevbenchProcess, run_devbench, start_devbench, survivors

from bench import api
from bench.analyse.interleaved import rounds
from bench.analyse.same_answer import equal_losses
from bench.config.settings import RunSettings
from bench.machine.limits import cpus_by_core, thread_count
from bench.model.result import Result
from bench.model.scaling import ScalingStudy
from bench.session import memory_fit
from bench.store import files
from bench.worker.rendezvous.ports import free_port

pytestmark = [pytest.mark.needs("posix"), pytest.mark.timeout(900)]

TRAINS = """
import numpy as np
import tensorflow as tf
from pydantic import BaseModel

class Params(BaseModel):
    batch: int = 32

def data(p, ctx):
    return ctx.rng.normal(size=(320, 16)).astype("float32"), ctx.rng.integers(0, 4, 320)

def model(p):
    model = tf.keras.Sequential([tf.keras.layers.Input((16,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(4)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model
"""

OWN_STEP = (
    TRAINS
    + """
def step(model):
    optimizer = tf.keras.optimizers.Adam()
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def train(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True)) + 0.001 * tf.reduce_mean(tf.square(model.trainable_variables[0]))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return train
"""
)

SCRIPT = """
import numpy as np
import tensorflow as tf

x, y = np.random.normal(size=(320, 16)).astype("float32"), np.random.randint(0, 4, 320)
model = tf.keras.Sequential([tf.keras.layers.Input((16,)), tf.keras.layers.Dense(64), tf.keras.layers.Dense(4)])
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size=32, epochs=2)
"""

LOOP = """
import numpy as np
import tensorflow as tf

x, y = np.random.normal(size=(320, 16)).astype("float32"), np.random.randint(0, 4, 320)
model = tf.keras.Sequential([tf.keras.layers.Input((16,)), tf.keras.layers.Dense(4)])
optimizer, loss_of = tf.keras.optimizers.Adam(), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

for epoch in range(20):
    for images, labels in tf.data.Dataset.from_tensor_slices((x, y)).batch(32):
        step(images, labels)
"""

UNSTEADY = OWN_STEP.replace(
    "    def train(x, y):\n",
    """    import random, time
    source = random.SystemRandom()  # each worker is slow in other steps

    def pause():
        time.sleep(0.02 * source.randrange(2))
        return np.float32(0)

    def train(x, y):
        tf.numpy_function(pause, [], tf.float32)
""",
)
"""The same, and half of the steps take 20 ms longer."""

LONG_STEPS = (
    TRAINS.replace("batch: int = 32", "batch: int = 4096")
    .replace("size=(320, 16)", "size=(8192, 256)")
    .replace("0, 4, 320", "0, 4, 8192")
    .replace("Input((16,))", "Input((256,))")
    .replace("Dense(64)", "Dense(256)")
)
"""The same with steps of many milliseconds and small gradients, so that pauses do not fall into the all-reduce."""

TELLS = TRAINS.replace(
    "def model(p):\n",
    """def model(p):
    import os
    options = getattr(tf.distribute.get_strategy().extended, "_communication_options", None)
    with open(os.environ["TELLS"], "a") as file:
        file.write(f"{sorted(os.sched_getaffinity(0))} {options.implementation.name if options else 'none'}\\n")
""",
)
"""The same, and each process tells on which CPUs it runs and how it exchanges gradients."""

NORMALIZES = TRAINS.replace(
    "tf.keras.layers.Dense(4)]", "tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(4)]"
)
"""The same with statistics that each worker computes over its own part of the batch."""

ODD_BATCHES = TRAINS.replace("batch: int = 32", "examples: int = 330").replace(
    '    return ctx.rng.normal(size=(320, 16)).astype("float32"), ctx.rng.integers(0, 4, 320)\n',
    """    x, y = ctx.rng.normal(size=(p.examples, 16)).astype("float32"), ctx.rng.integers(0, 4, p.examples)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(33)
""",
)
"""The same data in batches whose size only the data set knows."""

BRIEF = ("--max-processes", "1", "--max-time", "20s")


def program(folder: Path, text: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "trains.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def scaled(folder: Path, text: str, *options: str) -> tuple[CompletedRun, ScalingStudy]:
    run = run_devbench(folder, "scale", program(folder, text), "--workers", "1,2", "--json", *BRIEF, *options)
    assert run.code == 0, run.text()
    return run, ScalingStudy.model_validate(json.loads(run.out)["scaling"])


@pytest.mark.needs("linux")
def test_workers_of_one_machine_have_disjoint_cpus_and_exchange_gradients_in_a_ring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELLS", str(tmp_path / "told"))
    scaled(tmp_path, TELLS)
    told = [line.rpartition(" ") for line in (tmp_path / "told").read_text().splitlines()]
    assert {implementation for _, _, implementation in told} == {"none", "RING"}
    shared = [json.loads(cpus) for cpus, _, implementation in told if implementation == "RING"]
    first, second = {tuple(cpus) for cpus in shared}
    assert not {*first} & {*second}
    assert len(first) == len(second)


def by_label(run: CompletedRun) -> dict[str, Result]:
    return {f"{r.spec.loop}, {r.spec.workers.label}": r for r in run.results if r.spec.workers is not None}


@pytest.mark.parametrize("text", [TRAINS, OWN_STEP], ids=["Keras' step", "the program's own step"])
def test_two_workers_that_share_each_batch_compute_the_losses_of_one(text: str, tmp_path: Path) -> None:
    run, study = scaled(tmp_path, text)
    results = by_label(run)
    bare, two = (results[f"step, {name}"].samples[0] for name in ("no strategy", "2 workers"))
    assert len(bare.first_losses) == 5
    assert equal_losses(bare.first_losses, two.first_losses)
    apart = results["step, 2 workers, no all-reduce"].samples[0]
    assert not equal_losses(bare.first_losses, apart.first_losses)
    assert len(apart.peer_step_ratios) == 1
    assert apart.slowest_step_ratio is not None
    assert apart.slowest_step_ratio >= max(1.0, *apart.peer_step_ratios)
    (one, pair) = study.sizes
    assert (one.workers, pair.workers, pair.refused, pair.failure) == (1, 2, None, None)
    step = pair.step_seconds
    assert step is not None
    assert sum(part.seconds.value for part in pair.parts) == pytest.approx(step.value, rel=0.05)
    assert [part.name for part in pair.parts] == ["ideal", "strategy", "input", "batch", "waiting", "all-reduce"]
    assert pair.all_reduce_bytes == two.facts.gradient_bytes == (16 * 64 + 64 + 64 * 4 + 4) * 4
    assert all(r.purpose == ("run" if "1 worker" in name or name == "step, 2 workers" else "scale")
               for name, r in results.items())  # fmt: skip


def test_the_step_of_replicas_in_one_process_is_divided_too(tmp_path: Path) -> None:
    run, study = scaled(tmp_path, TRAINS, "--strategy", "mirrored")
    results = by_label(run)
    bare, two, apart = (
        results[f"fit, {name}"].samples[0] for name in ("no strategy", "2 replicas", "2 replicas, no all-reduce")
    )
    assert equal_losses(bare.first_losses, two.first_losses)
    assert not equal_losses(bare.first_losses, apart.first_losses)
    pair = study.sizes[1]
    assert pair.step_seconds is not None
    assert sum(part.seconds.value for part in pair.parts) == pytest.approx(pair.step_seconds.value, rel=0.05)
    assert [part.name for part in pair.parts] == ["ideal", "strategy", "batch", "all-reduce"]


@pytest.mark.once
def test_under_weak_scaling_each_worker_has_whole_batches(tmp_path: Path) -> None:
    _, study = scaled(tmp_path, TRAINS, "--scaling", "weak")
    one, pair = study.sizes
    assert one.examples_per_second is not None
    assert pair.examples_per_second is not None
    assert pair.step_seconds is not None
    assert pair.examples_per_second.value * pair.step_seconds.value == pytest.approx(64, rel=1e-3)


@pytest.mark.once
@pytest.mark.parametrize("text", [SCRIPT, LOOP], ids=["fit", "a loop of its own"])
def test_a_script_runs_unchanged_under_a_strategy(text: str, tmp_path: Path) -> None:
    run, study = scaled(tmp_path, text)
    assert [(size.workers, size.refused, size.failure) for size in study.sizes] == [(1, None, None), (2, None, None)]
    assert [size.losses_compared for size in study.sizes] == [text is SCRIPT] * 2
    if text is SCRIPT:
        results = by_label(run)
        losses = [results[f"step, {name}"].samples[0].first_losses for name in ("no strategy", "2 workers")]
        assert equal_losses(*losses)


@pytest.mark.once
@pytest.mark.needs("linux")
@pytest.mark.parametrize("is_short", [False, True], ids=["enough memory", "short memory"])
def test_all_sizes_are_interleaved_or_say_that_memory_was_short(
    is_short: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_fit, "memory_available", lambda: 0 if is_short else 2**40)
    settings = RunSettings(max_processes=1, max_time=20, output=tmp_path / "results")
    study = api.scale(program(tmp_path, TRAINS), settings, [1, 2])
    assert [(size.workers, size.failure) for size in study.sizes] == [(1, None), (2, None)]
    results = files.results(tmp_path / "results")
    assert [result.interleaved for result in results] == [not is_short] * len(results)
    blocks = [result.samples[0].series[0].blocks for result in results]
    assert (rounds(*blocks) is None) == is_short
    assert ("not-interleaved" in [warning.key for warning in study.warnings]) == is_short


@pytest.mark.once
def test_a_batch_that_does_not_divide_is_refused_before_anything_starts(tmp_path: Path) -> None:
    run = run_devbench(tmp_path, "scale", program(tmp_path, TRAINS), "--workers", "2", "--param", "batch=33")
    assert run.code == 2
    assert "a batch of 33 examples does not divide among 2 workers" in run.text()
    assert "--param batch=32" in run.text()
    assert run.results == []


@pytest.mark.once
def test_a_dataset_whose_batches_do_not_divide_is_refused(tmp_path: Path) -> None:
    run = run_devbench(tmp_path, "scale", program(tmp_path, ODD_BATCHES), "--workers", "2", *BRIEF)
    assert run.code == 1
    assert "does not divide among 2 workers" in run.text()
    failed = [result for result in run.results if result.failure]
    assert {result.spec.workers.count for result in failed if result.spec.workers} == {2}
    assert {result.failure.hint for result in failed if result.failure} == {"Choose a batch that is a multiple of 2."}


@pytest.mark.once
def test_the_figures_of_workers_that_compute_other_losses_are_refused(tmp_path: Path) -> None:
    options = ("--workers", "1,2", "--json", *BRIEF)
    run = run_devbench(tmp_path, "scale", program(tmp_path, NORMALIZES), *options)
    assert run.code == 1
    assert "the figures of 2 workers do not count: its first losses (" in run.text()
    one, pair = ScalingStudy.model_validate(json.loads(run.out)["scaling"]).sizes
    assert (one.refused, pair.failure, pair.speed_up) == (None, None, None)
    assert "differ from those of cpu, step, no strategy" in (pair.refused or "")
    failed = {name: result.failure.kind for name, result in by_label(run).items() if result.failure}
    assert failed == {"step, 2 workers": "same-answer"}


@pytest.mark.once
def test_more_workers_than_cpus_are_refused(tmp_path: Path) -> None:
    run = run_devbench(tmp_path, "scale", program(tmp_path, TRAINS), "--workers", "1000")
    assert run.code == 2
    assert "1000 workers need at least 1000 CPUs" in run.text()


def peers(run: DevbenchProcess, module: str = "bench.worker.peer") -> list[psutil.Process]:
    """Return the processes of workers that are not the first, or those that run another module, the newest last."""
    found: dict[float, psutil.Process] = {}
    with suppress(psutil.NoSuchProcess):  # devbench has ended
        for process in run.workers():
            with suppress(psutil.NoSuchProcess):  # it has ended
                if module in " ".join(process.cmdline()):
                    found[process.create_time()] = process
    return [found[created] for created in sorted(found)]


@contextmanager
def hosts_of_a_study(folder: Path, names: Sequence[str], *options: str) -> Iterator[list[DevbenchProcess]]:
    """Start the hosts of one study on loopback, the first one first."""
    words = ["scale", program(folder, TRAINS), "--workers", str(len(names)), "--hosts", ",".join(names)]
    words += ["--port", str(free_port()), "--threads", "1", *BRIEF, *options]
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                start_devbench(folder / str(index), *words, pipe_stderr=not index, JOB_COMPLETION_INDEX=str(index))
            )
            for index in range(len(names))
        ]


@contextmanager
def two_hosts(folder: Path, *options: str) -> Iterator[tuple[DevbenchProcess, DevbenchProcess]]:
    """Start two hosts of one study on loopback, the first one first."""
    with hosts_of_a_study(folder, ["127.0.0.1", "localhost"], *options) as (first, other):
        yield first, other


@pytest.mark.once
def test_hosts_meet_by_their_index_and_end_together(tmp_path: Path) -> None:
    with two_hosts(tmp_path, "--json") as (first, other):
        run = first.wait()
        assert run.code == 0, run.text()
        assert other.wait(60).code == 0
    study = ScalingStudy.model_validate(json.loads(run.out)["scaling"])
    assert [(size.workers, size.failure) for size in study.sizes] == [(1, None), (2, None)]
    assert [part.name for part in study.sizes[1].parts][-2:] == ["waiting", "all-reduce"]


@pytest.mark.needs("linux")
@pytest.mark.once
def test_three_workers_share_a_batch_that_divides_among_three(tmp_path: Path) -> None:
    names = ("127.0.0.1", "localhost", "127.0.0.2")
    with hosts_of_a_study(tmp_path, names, "--param", "batch=48", "--max-time", "60s", "--json") as (first, *others):
        run = first.wait()
        assert run.code == 0, run.text()
        assert [other.wait(60).code for other in others] == [0, 0]
    one, three = ScalingStudy.model_validate(json.loads(run.out)["scaling"]).sizes
    assert [(size.workers, size.refused, size.failure) for size in (one, three)] == [(1, None, None), (3, None, None)]
    assert one.examples_per_second is not None
    results = by_label(run)
    losses = [results[f"step, {name}"].samples[0].first_losses for name in ("no strategy", "3 workers")]
    assert equal_losses(*losses)
    apart = results["step, 3 workers, no all-reduce"].samples[0]
    assert len(apart.peer_step_ratios) == 2
    assert three.all_reduce_bytes == round(2 * 2 / 3 * (16 * 64 + 64 + 64 * 4 + 4) * 4)


def lost(folder: Path, sent: str) -> tuple[CompletedRun, float]:
    """Send a signal to the second worker while it trains. Return the run, and how long it went on."""
    with two_hosts(folder) as (first, other):
        first.wait_for("step, 2 workers, process 1: steady state")
        children = [*first.workers(), *other.workers()]
        start = time.monotonic()
        os.kill(peers(other)[-1].pid, signal.Signals[sent])
        run = first.wait(180)
        seconds = time.monotonic() - start
    assert survivors(children) == []
    assert run.code == 1
    assert "lost-worker" in {result.failure.kind for result in run.results if result.failure}
    return run, seconds


@pytest.mark.once
def test_a_worker_that_is_killed_ends_the_study_within_30_seconds(tmp_path: Path) -> None:
    run, seconds = lost(tmp_path, "SIGKILL")
    assert "worker 1: its process was killed by SIGKILL" in run.text()
    assert seconds < 30


@pytest.mark.once
def test_if_the_first_worker_is_killed_the_study_says_so_and_the_others_end(tmp_path: Path) -> None:
    with two_hosts(tmp_path) as (first, other):
        first.wait_for("step, 2 workers, process 1: steady state")
        children = [*first.workers(), *other.workers()]
        peers(first, "bench.worker.main")[-1].kill()
        run = first.wait(180)
        other.wait(60)
    assert survivors(children) == []
    assert run.code == 1
    failure = next(r.failure for r in run.results if r.failure and r.spec.workers and r.spec.workers.count == 2)
    assert failure.kind == "killed"
    assert "killed by SIGKILL" in failure.message


@pytest.mark.once
def test_a_worker_of_this_machine_that_is_killed_is_named_and_the_study_goes_on(tmp_path: Path) -> None:
    words = ("scale", program(tmp_path, TRAINS), "--workers", "1,2", *BRIEF, "--max-time", "60s")
    with start_devbench(tmp_path, *words, pipe_stderr=True) as running:
        running.wait_for("step, 2 workers, process 1: steady state")
        children = running.workers()
        peers(running)[-1].kill()
        run = running.wait()
    assert survivors(children) == []
    assert run.code == 1
    assert "worker 1 was killed by SIGKILL" in run.text()
    failed = {name: result.failure.kind for name, result in by_label(run).items() if result.failure}
    assert list(failed.values()) == ["lost-worker"]
    assert by_label(run)["step, 1 worker"].failure is None


@pytest.mark.once
def test_a_worker_that_is_suspended_ends_the_study(tmp_path: Path) -> None:
    run, _ = lost(tmp_path, "SIGSTOP")
    assert "worker 1 does not answer" in run.text()


@pytest.mark.once
def test_a_host_that_never_comes_is_named(tmp_path: Path) -> None:
    words: tuple[Any, ...] = ("--workers", "2", "--hosts", "127.0.0.1,localhost", "--port", str(free_port()))
    text = program(tmp_path, TRAINS)
    run = run_devbench(tmp_path, "scale", text, *words, "--threads", "1", *BRIEF, "--rendezvous-timeout", "2s")
    assert run.code == 1
    assert "worker 1 (localhost) never came within 2 s" in run.text()
    assert "rendezvous" in {result.failure.kind for result in run.results if result.failure}


@pytest.mark.once
def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = str(taken.getsockname()[1])
        words: tuple[Any, ...] = ("--workers", "2", "--hosts", "127.0.0.1,localhost", "--port", port, "--threads", "1")
        run = run_devbench(tmp_path, "scale", program(tmp_path, TRAINS), *words, *BRIEF)
    assert run.code == 1
    assert f"worker 0 cannot listen on port {port}" in run.text()
    assert "Choose a free one with --port" in run.text()


@pytest.mark.once
def test_a_name_that_does_not_resolve_is_named(tmp_path: Path) -> None:
    words: tuple[Any, ...] = ("--workers", "2", "--hosts", "127.0.0.1,worker.invalid", "--port", str(free_port()))
    run = run_devbench(tmp_path, "scale", program(tmp_path, TRAINS), *words, "--threads", "1", *BRIEF)
    assert run.code == 1
    assert "the host of worker 1, worker.invalid, does not resolve" in run.text()
    assert "Check --hosts" in run.text()


@pytest.mark.once
def test_hosts_with_two_versions_of_tensorflow_are_refused(tmp_path: Path, directml_python: Path) -> None:
    words = ["scale", program(tmp_path, TRAINS), "--workers", "2", "--hosts", "127.0.0.1,localhost"]
    words += ["--port", str(free_port()), "--threads", "1", *BRIEF]
    with ExitStack() as stack:
        zero = stack.enter_context(start_devbench(tmp_path / "0", *words, "--index", "0"))
        stack.enter_context(start_devbench(tmp_path / "1", *words, "--index", "1", python=str(directml_python)))
        run = zero.wait()
    assert run.code == 1
    assert re.search(r"worker 1 has TensorFlow 2\.10\.\d+, worker 0 has 2\.\d+\.\d+", run.text())
    assert "All workers need the same version" in run.text()


@pytest.mark.once
def test_a_host_whose_file_differs_is_refused(tmp_path: Path) -> None:
    words = ["--workers", "2", "--hosts", "127.0.0.1,localhost", "--port", str(free_port()), "--threads", "1", *BRIEF]
    first, other = program(tmp_path / "a", TRAINS), program(tmp_path / "b", TRAINS + "\n# another version\n")
    with ExitStack() as stack:
        zero = stack.enter_context(start_devbench(tmp_path / "0", "scale", first, *words, "--index", "0"))
        stack.enter_context(start_devbench(tmp_path / "1", "scale", other, *words, "--index", "1"))
        run = zero.wait()
    assert run.code == 1
    assert "worker 1: trains or its data differ from those on worker 0" in run.text()


@pytest.mark.once
def test_workers_meet_although_downloads_need_a_proxy(tmp_path: Path) -> None:
    options = ("--workers", "2", "--json", *BRIEF)
    proxy = f"http://127.0.0.1:{free_port()}"  # nobody listens there
    run = run_devbench(tmp_path, "scale", program(tmp_path, TRAINS), *options, http_proxy=proxy)
    assert run.code == 0, run.text()


@pytest.mark.once
def test_workers_that_are_slow_in_turns_wait_for_each_other(tmp_path: Path) -> None:
    _, study = scaled(tmp_path, UNSTEADY)
    pair = study.sizes[1]
    assert pair.step_seconds is not None
    waiting = next(part.seconds.value for part in pair.parts if part.name == "waiting")
    assert 0.002 < waiting < 0.012  # on average, the slower of two steps pauses for 15 ms, and each for 10 ms
    assert sum(part.seconds.value for part in pair.parts) == pytest.approx(pair.step_seconds.value, rel=0.05)


BUSY = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
while True:
    pass
"""


@contextmanager
def busy_processes(cpu: int) -> Iterator[None]:
    """Keep a CPU busy with two processes, so that a worker on it runs at a third of its speed.

    If another test keeps both CPUs busy, this worker still has a fourth of its CPU, and the other one has half of it.
    A worker that is suspended and resumed instead also delays each message of the all-reduce.
    """
    command = [sys.executable, "-c", BUSY, str(cpu)]
    with subprocess.Popen(command) as first, subprocess.Popen(command) as second:
        try:
            yield
        finally:
            first.kill()
            second.kill()


@pytest.mark.needs("linux")
@pytest.mark.once
def test_the_others_wait_for_a_worker_that_is_slowed_down(tmp_path: Path) -> None:
    second = cpus_by_core()[thread_count() // 2]  # the first CPU of worker 1
    with busy_processes(second):
        run = run_devbench(tmp_path, "scale", program(tmp_path, LONG_STEPS), "--workers", "2", "--json", *BRIEF)
    assert run.code == 0, run.text()
    pair = ScalingStudy.model_validate(json.loads(run.out)["scaling"]).sizes[1]
    assert pair.slowest_worker == 1
    assert next(part.share for part in pair.parts if part.name == "waiting") > 0.05
