"""The loops of a plain script, which `benchmarks.observer` compares with devbench's.

    python -m benchmarks.bare WORKLOAD CASE LOOP THREADS

Each line of stdin is a number of steps (or epochs). The answer to it is the number of seconds that they took. Only
the workload's own functions (data, model, step) come from devbench.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"


def workload_caller(workload: str, case: str) -> Callable[..., Any]:
    """Return a function that calls one of the workload's functions with the arguments that it names."""
    import numpy as np

    from bench import datasets, registry
    from bench.model.spec import Data
    from bench.registry.params import parse_params
    from bench.workloads import Context

    module = registry.load(workload)
    p = parse_params(module, {k: v for k, v in getattr(module, "CASES", {}).get(case, {}).items() if k != "loop"})
    dataset = getattr(module, "DATA", None)
    data = datasets.locate(dataset, "sample", None) if dataset else Data(kind="own")
    ctx = Context(np.random.default_rng([1, 0]), "/device:CPU:0", "cpu", "float32", 1, lambda _: datasets.load(data, 1))
    values: dict[str, Any] = {"p": p, "ctx": ctx}

    def call(function: str) -> Any:
        values[function] = value = getattr(module, function)(
            **{k: values[k] for k in inspect.signature(getattr(module, function)).parameters}
        )
        return value

    call.p = p  # type: ignore[attr-defined]
    call.has = lambda function: hasattr(module, function)  # type: ignore[attr-defined]
    return call


def step_function(call: Any, tf: Any) -> tuple[Any, Any]:
    """Return a `tf.function` of one step, and an iterator over the batches of the workload's data."""
    data, model, p = call("data"), call("model"), call.p
    if call.has("step"):
        function = tf.function(call("step"), jit_compile=False)
    else:
        model.jit_compile = False
        function = tf.function(lambda *batch: model.train_step(batch)["loss"], jit_compile=False)
    if not isinstance(data, tf.data.Dataset):
        arrays = tuple(a.astype("float32") if a.dtype == "float64" else a for a in data)
        data = tf.data.Dataset.from_tensor_slices(arrays).batch(p.batch, drop_remainder=True)
        data = data.repeat().prefetch(tf.data.AUTOTUNE)
    else:
        data = data.repeat()
    return function, iter(data)


def step_loop(call: Any, tf: Any) -> Callable[[int], float]:
    """Return a function that calls the step once per step."""
    function, iterator = step_function(call, tf)

    def run(steps: int) -> float:
        start = time.perf_counter()
        for _ in range(steps):
            value = function(*next(iterator))
        value.numpy()
        return time.perf_counter() - start

    return run


def fit_loop(call: Any, tf: Any) -> Callable[[int], float]:
    """Return a function that calls `fit` for a number of epochs, timed by the wall clock."""
    data, model, p = call("data"), call("model"), call.p
    model.jit_compile = False

    def run(epochs: int) -> float:
        start = time.perf_counter()
        if isinstance(data, tf.data.Dataset):
            model.fit(data, epochs=epochs, verbose=0)
        else:
            model.fit(*data, batch_size=p.batch, epochs=epochs, shuffle=False, verbose=0)
        return time.perf_counter() - start

    return run


def main() -> None:
    """Answer lines until stdin ends."""
    workload, case, loop, threads = sys.argv[1:]
    answers = os.dup(1)
    os.dup2(2, 1)
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    tf.config.threading.set_inter_op_parallelism_threads(int(threads))
    with tf.device("/device:CPU:0"):
        run = {"step": step_loop, "fit": fit_loop}[loop](workload_caller(workload, case), tf)
        for line in sys.stdin:
            os.write(answers, f"{run(int(line))!r}\n".encode())


if __name__ == "__main__":
    main()
