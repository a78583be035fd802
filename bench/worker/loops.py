"""The loops: how steps are driven, each built from what the workload offers. Worker's side only.

A loop is a function of the rig and the conductor, which issues steps until the conductor unwinds it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from bench.errors import NotApplicable
from bench.worker.rig import Rig, as_tuple, is_smaller, pipeline, pool
from bench.worker.timed_loop import Conductor
from bench.workloads import Probe

FUSED_STEPS = 512
"""The most steps of one call of the loop `fused`."""


def own_step(rig: Rig) -> bool:
    """Whether the step is the workload's own, not Keras' `train_step`, whose loss is a running mean."""
    return rig.has("step")


def python_step(rig: Rig) -> Callable[..., Any]:
    """The workload's step as a plain function of one batch: its own, or Keras' `train_step`."""
    if own_step(rig):
        function: Callable[..., Any] = rig.call("step")
        return function
    if not rig.compiled:
        raise NotApplicable(
            f"{rig.spec.workload} has no step to call: it offers neither `step` nor a compiled model",
            "Compile the model, or offer `step` or `as_written`.",
        )
    model = rig.model

    def train_step(*batch: Any) -> Any:
        return model.train_step(batch)["loss"]

    return train_step


def graph_step(rig: Rig, example: tuple[Any, ...]) -> Any:
    """The step as a `tf.function`, traced for this example's shapes."""
    tf = rig.tf
    compiled = tf.function(python_step(rig), jit_compile=bool(rig.spec.xla))
    with tf.device(rig.ctx.device):
        compiled.get_concrete_function(*signature(tf, example))
    rig.seen["function"] = compiled
    rig.seen["example"] = example
    return compiled


def signature(tf: Any, batch: tuple[Any, ...]) -> list[Any]:
    """The batch's shapes and dtypes, to trace a function for."""
    return [tf.TensorSpec.from_tensor(tf.convert_to_tensor(part)) for part in batch]


def as_written(rig: Rig, conductor: Conductor) -> None:
    """The author's own way: a generator of steps, or a call of `fit` that is watched from within."""
    tf = rig.tf
    if not rig.has("as_written"):
        (fit if rig.compiled else step)(rig, conductor)
        return
    if not rig.yields:
        while True:
            rig.seen["returned"] = rig.call("as_written")
            if "fit" not in rig.seen:
                raise NotApplicable(
                    f"as_written of {rig.spec.workload} ended without a step that devbench saw",
                    "Let it call model.fit, or make it a generator that yields after each step.",
                )
            conductor.restart()
    while True:
        generator = rig.call("as_written")
        issued = 0
        with tf.device(rig.ctx.device):
            rig.what_ifs.check()
            for issued, value in enumerate(generator, 1):  # noqa: B007 - read after the loop
                conductor.tick(value)
        if not issued:
            raise NotApplicable(
                f"as_written of {rig.spec.workload} yields nothing", "Let it yield something that depends on the step."
            )
        rig.seen["ended"] = issued
        conductor.restart()


def fit(rig: Rig, conductor: Conductor) -> None:
    """Keras' `fit` in the order of the data, without callbacks."""
    if not rig.compiled or rig.data is None:
        raise NotApplicable(
            f"{rig.spec.workload} can't be driven by fit: it has no compiled model with data", "Use --loop step."
        )
    while True:
        with rig.tf.device(rig.ctx.device):
            if rig.is_dataset:
                rig.model.fit(rig.data, epochs=1_000_000, verbose=0)
            else:
                rig.model.fit(*rig.data, batch_size=rig.p.batch, epochs=1_000_000, shuffle=False, verbose=0)
        conductor.restart()


def step(rig: Rig, conductor: Conductor) -> None:
    """One `tf.function` call a step, fed by the workload's own pipeline."""
    source = pipeline(rig)
    if source is None:
        host_batches(rig, conductor)
        return
    with rig.tf.device(rig.ctx.device):
        iterator = iter(source)
        first = as_tuple(next(iterator))
        function = graph_step(rig, first)
        rig.seen["iterator"] = iterator
        rig.what_ifs.check()
        conductor.begin()
        conductor.tick(function(*first))
        for batch in map(as_tuple, iterator):
            if not is_smaller(batch, first):  # what is left over at an epoch's end is measured afterwards
                conductor.tick(function(*batch))


def host_batches(rig: Rig, conductor: Conductor) -> None:
    """One call a step, on batches that lie ready in host memory: what is left of input is the copy."""
    rig.what_ifs.check()
    ready = pool(rig)
    function = graph_step(rig, ready[0])
    with rig.tf.device(rig.ctx.device):
        conductor.begin()
        for batch in itertools.cycle(ready):
            conductor.tick(function(*batch))


def resident(rig: Rig, conductor: Conductor) -> None:
    """One call a step, on batches that already lie on the device: no input, no copies."""
    rig.what_ifs.check()
    tf = rig.tf
    with tf.device(rig.ctx.device):
        ready = [tuple(tf.identity(tf.convert_to_tensor(part)) for part in batch) for batch in pool(rig)]
        function = graph_step(rig, ready[0])
        conductor.begin()
        for batch in itertools.cycle(ready):
            conductor.tick(function(*batch))


def fused(rig: Rig, conductor: Conductor) -> None:
    """Many steps in one graph, over resident batches: one dispatch for all of them."""
    rig.what_ifs.check()
    tf = rig.tf
    many, size = fused_function(rig)
    with tf.device(rig.ctx.device):
        many.get_concrete_function(tf.constant(0), tf.constant(1))
        rig.seen["function"] = many
        rig.seen["fused_arguments"] = (tf.constant(0), tf.constant(2))
        position = 0
        conductor.begin()
        while True:
            count = min(conductor.left, FUSED_STEPS)
            value = many(tf.constant(position % size), tf.constant(count))
            position += count
            conductor.tick(value, count)


def fused_function(rig: Rig) -> tuple[Any, int]:
    """The function of `fused`, untraced: (first batch, count) -> the last step's value; and the number of batches."""
    tf = rig.tf
    ready = pool(rig)
    body = python_step(rig)
    with tf.device(rig.ctx.device):
        parts = [[tf.convert_to_tensor(part) for part in same] for same in zip(*ready, strict=True)]
        stacks = [tf.identity(tf.stack(same)) for same in parts]
        single = tf.function(body)
        shape = single.get_concrete_function(*signature(tf, ready[0])).structured_outputs
    size = len(ready)
    rig.seen["example"] = ready[0]

    @tf.function(jit_compile=bool(rig.spec.xla))  # type: ignore[untyped-decorator]
    def many(first: Any, count: Any) -> Any:
        def one(index: Any, _: Any) -> Any:
            place = tf.math.floormod(first + index, size)
            return index + 1, body(*[tf.gather(stack, place) for stack in stacks])

        start = (tf.constant(0), tf.zeros([d or 1 for d in shape.shape], shape.dtype))
        return tf.while_loop(lambda index, _: index < count, one, start, parallel_iterations=1)[1]

    return many, size


def probes(rig: Rig, conductor: Conductor) -> None:
    """Small things timed one by one, each a series."""
    rig.what_ifs.check()
    found: dict[str, Probe] = rig.seen["probes"]
    with rig.tf.device(rig.ctx.device):
        conductor.begin()
        while True:
            conductor.tick(found[conductor.current].run())


LOOPS: dict[str, Callable[[Rig, Conductor], None]] = {
    "as-written": as_written,
    "fit": fit,
    "step": step,
    "host-batches": host_batches,
    "resident": resident,
    "fused": fused,
}
