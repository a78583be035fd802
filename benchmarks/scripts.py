"""Does a step take as long in a script as in a workload, and what does watching a script cost?

`python -m benchmarks.scripts [--max-time 5m] [--units 128]`. It writes the same programs as scripts and as workloads,
one that calls `fit` and one with a loop of its own, with steps of about 1 ms by default. It lets `devbench run
--compare` interleave both forms. The cost of watching is measured in one process: the CPU time of a call of a small
`tf.function` with and without devbench's observers, alternately. The program prints a JSON document for each figure
once it is known.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAM = """
import numpy as np
import tensorflow as tf

random = np.random.default_rng(0)
x = random.random((6400, 64), dtype="float32")
y = x.mean(axis=1, keepdims=True)
hidden = [tf.keras.layers.Dense(UNITS, activation="relu") for _ in range(3)]
network = tf.keras.Sequential([tf.keras.Input(shape=(64,)), *hidden, tf.keras.layers.Dense(1)])
"""

FIT = """
network.compile("sgd", "mse")


def train():
    network.fit(x, y, batch_size=64, epochs=100, verbose=0)
"""

LOOP = """
optimizer = tf.keras.optimizers.SGD(0.001)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).repeat(100).prefetch(2)


@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((network(features, training=True) - labels) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, network.trainable_variables), network.trainable_variables))
    return loss


def steps():
    for features, labels in dataset:
        yield train_step(features, labels)
"""

PROGRAMS = {
    "fit": (f"{PROGRAM}{FIT}\n\ntrain()\n", f"{PROGRAM}{FIT}\n\ndef as_written():\n    train()\n"),
    "loop": (
        f"{PROGRAM}{LOOP}\n\nfor _ in steps():\n    pass\n",
        f"{PROGRAM}{LOOP}\n\ndef as_written():\n    yield from steps()\n",
    ),
}
"""Each program as a script and as a workload."""

CALLS = 100
ROUNDS = 300


def compared(name: str, max_time: str, units: int) -> dict[str, Any]:
    """Return the time of a step as a script divided by that as a workload, with its interval."""
    with tempfile.TemporaryDirectory() as folder:
        for form, text in zip(("script", "workload"), PROGRAMS[name], strict=True):
            (Path(folder) / f"{form}.py").write_text(text.replace("UNITS", str(units)))
        files = ["./workload.py", "./script.py"]
        options = ["--compare", "--json", "--threads", "1", "--max-time", max_time]  # with more, processes vary more
        command = [sys.executable, "-m", "bench", "run", *files, *options]
        run = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    document = json.loads(run.stdout)
    (comparison,) = document["comparisons"]
    return {"ratio": comparison["ratio"], "verdict": comparison["verdict"]}


def watching() -> dict[str, float]:
    """Return the microseconds of CPU time that watching adds to a step, and those of a small `tf.function`."""
    import tensorflow as tf

    from bench.model.recognition import StepSource
    from bench.worker.protocol import Go
    from bench.worker.script.calls import Observation
    from bench.worker.script.updates import Updates
    from bench.worker.script.watch import Watch
    from bench.worker.timed_loop import TimedLoop

    class Endless:
        """A parent that wants one block without end."""

        def send(self, event: Any) -> None:
            """Ignore an event."""

        def receive(self) -> Go:
            """Order a block."""
            return Go(steps=10**12)

    weight, optimizer = tf.Variable([1.0]), tf.keras.optimizers.SGD(0.001)
    plain = type(tf.function(lambda: None)).__call__

    @tf.function  # type: ignore[untyped-decorator]
    def train_step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((weight * x - 3.0) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
        return loss

    kind, x = type(train_step), tf.ones((4,))
    seen = Observation(tf, None, lambda path: path == __file__, (Path(__file__).parent,), exact=False)  # type: ignore[arg-type]
    Updates(seen)
    observed = kind.__call__

    def calls() -> float:
        start = time.thread_time()  # watching costs only Python
        for _ in range(CALLS):
            train_step(x)
        return (time.thread_time() - start) / CALLS * 1e6

    line = calls.__code__.co_firstlineno + 3
    token = f"updates {Path(__file__).name}:{line} train_step"
    target = StepSource(kind="updates", name="train_step", file=Path(__file__).name, line=line, token=token, steps=0)
    timed_loop = TimedLoop(Endless(), float, float)  # type: ignore[arg-type]
    seen.sink = Watch(target, timed_loop, lambda model: None, None, False, lambda: None)
    train_step(x)  # traced, so that it is known to update
    times: dict[str, list[float]] = {"plain": [], "observed": []}
    for _ in range(ROUNDS):
        for name, call in (("plain", plain), ("observed", observed)):
            kind.__call__ = call
            times[name].append(calls())
    assert timed_loop.issued == ROUNDS * CALLS, timed_loop.issued
    added = statistics.median(b - a for a, b in zip(times["plain"], times["observed"], strict=True))
    return {"added_us": round(added, 2), "call_us": round(statistics.median(times["plain"]), 1)}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-time", default="5m", help="time limit of each comparison")
    parser.add_argument("--units", type=int, default=128, help="units of each layer; more make a step longer")
    arguments = parser.parse_args()
    print(json.dumps({"watching": watching()}), flush=True)
    for name in PROGRAMS:
        print(json.dumps({name: compared(name, arguments.max_time, arguments.units)}), flush=True)


if __name__ == "__main__":
    main()
