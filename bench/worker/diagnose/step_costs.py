"""What is measured after the timed part: copies, waits, partial batches, operations (and `epoch_ends`).

None of this may disturb the timed blocks, so it comes last, in the same process, where everything is warm.
Worker's side only.
"""

from __future__ import annotations

import contextlib
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench.model.facts import FitCall, Retraced
from bench.whatif.without_metrics import metrics_of
from bench.worker.diagnose import inspection, pipeline_stages
from bench.worker.fit_hook import Watch
from bench.worker.loops import python_step, signature
from bench.worker.protocol import Note, PhaseBegun, PhaseDone
from bench.worker.rig import Rig, as_tuple, batches, floats_narrowed
from bench.worker.synchronize import Reader
from bench.worker.tracing import Tracing

REPEATS = 10

CHANGES = re.compile(r"Resource.*Apply|Assign.*VariableOp")
"""Operations that change a variable."""


def _median_seconds(action: Callable[[], Any], repeats: int = REPEATS) -> float:
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def _example(rig: Rig, watch: Watch) -> tuple[Any, ...] | None:
    """A batch as the loop has them; none where the author's own loop makes them."""
    if rig.yields:
        return None
    if "example" in rig.seen:
        found: tuple[Any, ...] = rig.seen["example"]
        return found
    if rig.data is not None or rig.has("inputs"):
        return next(batches(rig))
    parts = [watch.call.get(name) for name in ("x", "y")]
    if not all(hasattr(part, "shape") for part in parts):
        return None
    size = int(watch.call.get("batch_size") or 32)
    return floats_narrowed([part[:size] for part in parts], rig.spec.dtype)  # type: ignore[index]


def batch_copy(rig: Rig, watch: Watch) -> None:
    """Phase `batch_copy`: a batch from NumPy to the device, the floor of reading one element subtracted."""
    import numpy as np

    example = _example(rig, watch)
    if example is None:
        return
    tf = rig.tf
    arrays = [np.array(part) for part in example]

    def read(parts: list[Any]) -> None:
        for part in parts:
            tf.reshape(part, [-1])[-1].numpy()

    with tf.device(rig.ctx.device):
        there = [tf.identity(tf.constant(a)) for a in arrays]
        read(there)
        floor = _median_seconds(lambda: read([tf.identity(part) for part in there]))
        whole = _median_seconds(lambda: read([tf.identity(tf.constant(a)) for a in arrays]))
    rig.send(PhaseDone(phase="batch_copy", seconds=max(0.0, whole - floor)))


def input_wait(rig: Rig, watch: Watch, reader: Reader) -> None:
    """Phase `input_wait`: how long the next batch lets a step wait, right after a step that it could be made in.

    Each wait consumes a batch of its own, so a pipeline has half as long as in the loop: an upper bound.
    """
    iterator = watch.iterator if watch.model is not None else rig.seen.get("iterator")
    if iterator is None:
        return
    function = watch.plain if watch.model is not None else rig.seen["function"]

    def step(source: Any) -> Any:
        return function(source) if watch.model is not None else function(*as_tuple(next(source)))

    waits = _waits(rig, reader, step, iterator)
    whole = watch.call.get("x") if watch.model is not None else rig.data
    if not waits and isinstance(whole, rig.tf.data.Dataset):  # the timed part ended just where an epoch does
        waits = _waits(rig, reader, step, iter(whole))
    if waits:
        rig.send(PhaseDone(phase="input_wait", seconds=statistics.median(waits)))


def _waits(rig: Rig, reader: Reader, step: Callable[[Any], Any], iterator: Any) -> list[float]:
    """Seconds that the next batch took after each of some steps, or of those that there were until the epoch's end."""
    waits = []
    with contextlib.suppress(StopIteration, rig.tf.errors.OutOfRangeError), rig.tf.device(rig.ctx.device):
        for _ in range(REPEATS):
            reader.sync(step(iterator))
            begun = time.perf_counter()
            next(iterator)
            waits.append(time.perf_counter() - begun)
    return waits


def partial_batch(rig: Rig, reader: Reader) -> None:
    """Phases `partial_batch` (its first time, with what it traces or compiles) and `partial_batch_again`."""
    function, epoch = rig.seen.get("function"), rig.epoch
    if function is None or "fused_arguments" in rig.seen or epoch is None or not epoch.remainder:
        return
    parts = [part[: epoch.remainder] for part in rig.seen["example"]]
    with rig.tf.device(rig.ctx.device):
        first = _median_seconds(lambda: reader.sync(function(*parts)), 1)
        again = _median_seconds(lambda: reader.sync(function(*parts)), 3)
    rig.send(PhaseDone(phase="partial_batch", seconds=first))
    rig.send(PhaseDone(phase="partial_batch_again", seconds=again))


def operations(rig: Rig) -> None:
    """Fact `flops_per_step`: TensorFlow's own count on the unoptimised graph of a step; and by formula where known."""
    tf = rig.tf
    rig.facts.flops_formula = float(rig.call("flops")) if rig.has("flops") else None
    example = rig.seen.get("example")
    if example is None and (rig.has("step") or rig.compiled):
        example = next(batches(rig))
    if example is None:
        return
    with tf.device(rig.ctx.device):
        function = tf.function(python_step(rig))  # it keeps the step's own variables alive
        traced = function.get_concrete_function(*signature(tf, example))
    graph = traced.graph
    rig.facts.bytes_per_step = least_bytes(traced)
    rig.facts.products = inspection.of_products(graph)
    options = tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
    options["output"] = "none"
    counted = tf.compat.v1.profiler.profile(graph, options=options)
    rig.facts.flops_per_step = float(counted.total_float_ops)


def least_bytes(traced: Any) -> float:
    """Bytes that a step must move at least: each argument and result once, each variable once, twice if it is changed.

    Args:
        traced: the step's concrete function.
    """
    arguments = [a for a in traced.graph.inputs if a.dtype.name not in ("resource", "variant", "string")]
    results = [t for t in traced.graph.outputs if t.dtype.name not in ("resource", "variant", "string")]
    changes = any(CHANGES.search(op.type) for op in traced.graph.get_operations())
    variables = [(v.shape, v.dtype) for v in traced.graph.variables]
    told = [(t.shape, t.dtype) for t in [*arguments, *results]]
    known = [(shape.num_elements() or 0) * dtype.size for shape, dtype in told]
    return float(sum(known) + sum(s.num_elements() * d.size for s, d in variables) * (2 if changes else 1))


def input_stages(rig: Rig, watch: Watch, timed: bool) -> None:
    """Fact `pipeline`, where asked for: the stages of the program's own `tf.data` pipeline, timed (see `stages`).

    Fact `pipeline_reachable` is whether `--change` can get at it: what a generator iterates over by itself it can't.
    """
    reached = [watch.call.get("x"), rig.data]
    by_itself = rig.spec.loop == "as-written" and rig.has("as_written") and watch.model is None
    candidates = [*reached, *([watch.dataset] if by_itself else [])]
    dataset = next((each for each in candidates if isinstance(each, rig.tf.data.Dataset)), None)
    if dataset is None:
        return
    rig.facts.pipeline_reachable = any(each is dataset for each in reached)
    if not timed:
        return
    with rig.tf.device("/device:CPU:0"):
        tell = lambda stage: rig.send(PhaseBegun(phase="pipeline", note=stage))  # noqa: E731
        rig.facts.pipeline = pipeline_stages.measured(dataset, tell)


def own_steps(rig: Rig, tracing: Tracing, watch: Watch) -> None:
    """Facts of the program's own steps: `fit`, `retraced`, and those of `inspection`."""
    file = str(rig.module.__file__)
    inspection.of_graphs(rig.facts, tracing.graphs, file)
    if rig.yields:
        with rig.tf.device(rig.ctx.device):
            inspection.of_steps(rig.facts, rig.tf, lambda: rig.call("as_written"), file)
    if watch.model is not None:
        callbacks = watch.call.get("callbacks") or []
        names = [type(each).__name__ for each in (callbacks if isinstance(callbacks, (list, tuple)) else [callbacks])]
        metrics = bool(metrics_of(watch.model))
        rig.facts.fit = FitCall(callbacks=names, verbose=watch.call.get("verbose", "auto"), metrics=metrics)
    rig.facts.retraced = [
        Retraced(function=name, file=at, line=line, count=count)
        for (name, at, line), count in tracing.by_function.most_common(3)
        if count > 5
    ]


def read_facts(rig: Rig, watch: Watch) -> None:
    """What the run became: XLA, retraces, the device of the variables."""
    model = watch.model
    if model is not None:
        became = getattr(model, "jit_compile", getattr(model, "_jit_compile", None))
        rig.facts.jit_compile = bool(became)
        rig.facts.run_eagerly = bool(getattr(model, "run_eagerly", False))
    elif "function" in rig.seen:
        rig.facts.jit_compile = bool(rig.spec.xla)
    if "ended" in rig.seen:
        text = f"The program is {rig.seen['ended']} steps long; it was begun again to be measured for longer."
        rig.send(Note(text=text))
