"""Observer effect within one process: what devbench's timed loop adds to a step.

`python -m benchmarks.inside [ROUNDS [CASE…]]`, with the cases of `benchmarks.observer`. On a busy machine, processes
of one script vary by several percent, so `observer`, which compares processes, has wide intervals. Here one process
alternates between two kinds of blocks, with the same function on the same batches: a plain loop that ends with
`.numpy()`, and devbench's timed loop with its ticks, synchronization and reports. For `fit`, it compares the epochs
of one call by the wall clock, because calls of `fit` vary by tens of percent; devbench observes every second epoch.
This cannot see the cost of anything else in a worker's process. `observer` can.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.bare import workload_caller
from benchmarks.interleaved import spec_of
from benchmarks.observer import CASES

ROUNDS = 100
BLOCK_SECONDS = 0.1
EPOCH_SECONDS = 0.3


class LocalChannel:
    """A channel without a parent: orders come from a function, and events stay here."""

    def __init__(self, next_order: Callable[[], Any]) -> None:
        self.next_order = next_order
        self.events: list[Any] = []

    def send(self, event: Any) -> None:
        """Serialize an event, as the worker does, and keep it."""
        event.model_dump_json()
        self.events.append(event)

    def receive(self) -> Any:
        """Return the next order."""
        return self.next_order()


def make_timed_loop(tf: Any, next_order: Callable[[], Any]) -> tuple[Any, Any, LocalChannel]:
    """Return a timed loop, its synchronizer and its channel."""
    from bench.worker.synchronize import Synchronizer
    from bench.worker.timed_loop import TimedLoop

    local = LocalChannel(next_order)
    synchronizer = Synchronizer(tf, "/device:CPU:0")
    channel: Any = local
    return TimedLoop(channel, synchronizer.sync, synchronizer.loss), synchronizer, local


def step_ratios(call: Any, tf: Any, rounds: int) -> list[float]:
    """Return devbench's block over the plain block, for each round."""
    from bench.worker.protocol import BlockTimed, Finish, Go
    from bench.worker.timed_loop import Finished
    from benchmarks.bare import step_function

    function, iterator = step_function(call, tf)

    def plain(steps: int) -> float:
        start = time.perf_counter()
        for _ in range(steps):
            value = function(*next(iterator))
        value.numpy()
        return time.perf_counter() - start

    plain(50)
    steps = max(1, round(BLOCK_SECONDS / (plain(50) / 50)))
    bare: list[float] = []
    order = [Go(steps=steps, blocks=1)]

    def next_order() -> Any:
        """Run a plain block between two blocks of the timed loop, which does not time it."""
        if len(bare) >= rounds:
            return Finish()
        bare.append(plain(steps))
        return order[0]

    timed_loop, _, channel = make_timed_loop(tf, next_order)
    timed_loop.begin()
    try:
        for batch in iterator:
            timed_loop.tick(function(*batch))
    except Finished:
        pass
    observed = [event.seconds for event in channel.events if isinstance(event, BlockTimed)]
    between = [(a + b) / 2 for a, b in pairwise(bare)]  # each observed block is between two plain blocks
    return [w / b for w, b in zip(observed, between, strict=False)]


def epoch_ratios(call: Any, tf: Any, rounds: int) -> list[float]:
    """Return each observed epoch over its plain neighbours, within one call of `fit`."""
    from bench.worker.fit_hook import FitHook
    from bench.worker.protocol import Go
    from bench.worker.what_ifs import WhatIfs

    data, model, p = call("data"), call("model"), call.p
    model.jit_compile = False
    order = [Go(steps=1, blocks=10**9)]
    timed_loop, synchronizer, _ = make_timed_loop(tf, lambda: order[0])

    def on_first(model: Any) -> None:
        synchronizer.model = model
        timed_loop.running_mean = True
        synchronizer.prepare(model)
        timed_loop.begin()

    hook = FitHook(tf, on_first, lambda event: None, WhatIfs(tf, ()))
    hook.on_step = timed_loop.tick
    seconds: list[float] = []

    class Alternation(tf.keras.callbacks.Callback):  # type: ignore[misc]
        """Lets devbench observe every second epoch, and times all epochs."""

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            original = getattr(self.model.train_function, "devbench_original", None)
            if original is not None and epoch % 2 == 0:
                self.model.train_function = original
            elif original is None and epoch % 2:
                self.model.train_function = hook._wrap(self.model, self.model.train_function)
            self.start = time.perf_counter()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seconds.append(time.perf_counter() - self.start)

    # One iterator for all epochs: making and ending an iterator takes tenths of a second, which belong to no step.
    endless = tf.data.Dataset.from_tensor_slices(data).batch(p.batch, drop_remainder=True).repeat().prefetch(2)

    def fit(epochs: int, batches: int) -> list[float]:
        seconds.clear()
        model.fit(endless, steps_per_epoch=batches, epochs=epochs, verbose=0, callbacks=[Alternation()])
        return list(seconds)

    step = min(fit(5, 10)[1:]) / 10
    batches = max(2, round(EPOCH_SECONDS / step))
    order[0] = Go(steps=max(1, round(BLOCK_SECONDS / step)), blocks=10**9)
    # The first order is already set.
    timed_loop.steps_left, timed_loop._end = 1, lambda value: timed_loop._obey()
    times = fit(2 * rounds + 3, batches)[2:]
    between = [(a + b) / 2 for a, b in pairwise(times[::2])]
    return [w / b for w, b in zip(times[1::2], between, strict=False)]


def median(values: Sequence[float]) -> str:
    """Return the median with its 95% interval by order statistics, which a burst in some rounds does not move."""
    from scipy.stats import binom

    ordered = sorted(values)
    low = max(0, int(binom.ppf(0.025, len(ordered), 0.5)) - 1)
    middle, high = statistics.median(ordered), len(ordered) - 1 - low
    return f"{middle:.4f} [{ordered[low]:.4f}, {ordered[high]:.4f}] of {len(ordered)}"


def main() -> None:
    """Print a line per case, each measured in a separate process."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--case"]:
        workload, case, loop = CASES[int(arguments[1])]
        rounds, threads = int(arguments[2]), spec_of(workload, case, loop).threads.intra
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        with tf.device("/device:CPU:0"):
            if loop == "step":
                ratios = step_ratios(workload_caller(workload, case), tf, rounds)
            else:
                ratios = epoch_ratios(workload_caller(workload, case), tf, rounds)
        name = f"{Path(workload).stem}/{case}".rstrip("/")
        print(f"{name:22} {loop:5} devbench/bare {median(ratios)} rounds", flush=True)
        return
    rounds = int(arguments[0]) if arguments else ROUNDS
    for place in arguments[1:] or range(len(CASES)):
        command = [sys.executable, "-m", "benchmarks.inside", "--case", str(place), str(rounds)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
