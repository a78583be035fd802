"""The loops: how steps are run. Each is built from what the workload defines. Worker's side only.

A loop is a function of the rig and the timed loop. It issues steps until the timed loop unwinds it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from bench.errors import NotApplicable, WorkloadError
from bench.model.spec import Loop
from bench.worker.batches import ENDLESS, first_of, fit_arguments, is_smaller, pipeline, pool, shapes
from bench.worker.cluster.strategy import ReducedLosses, distributed, train_as_one
from bench.worker.examples import as_tuple
from bench.worker.rig import Rig
from bench.worker.synchronize import total_loss
from bench.worker.timed_loop import TimedLoop

FUSED_STEPS = 512
"""The most steps in one call of the loop `fused`."""


def has_own_step(rig: Rig) -> bool:
    """Whether the step is the workload's own, not Keras' `train_step`, whose loss is a running mean."""
    return rig.has("step")


def python_step(rig: Rig) -> Callable[..., Any]:
    """Return the step as a plain function of one batch: the workload's own, or Keras' `train_step`.

    Raises:
        NotApplicable: the workload has neither.
    """
    if has_own_step(rig):
        function: Callable[..., Any] = rig.call("step")
        return function
    if not rig.compiled:
        raise NotApplicable(
            f"{rig.spec.workload} has no step: it defines neither `step` nor a compiled model",
            "Compile the model, or define `step` or `as_written`.",
        )
    model, tf = rig.model, rig.tf
    is_tuple = rig.is_dataset and isinstance(rig.data.element_spec, tuple)

    def train_step(*batch: Any) -> Any:
        x_alone = len(batch) == 1 and not is_tuple and not isinstance(batch[0], tuple)
        return total_loss(tf, model.train_step(batch[0] if x_alone else batch))  # as `fit` calls it

    return train_step


def graph_step(rig: Rig, example: tuple[Any, ...]) -> Any:
    """Return the step as a `tf.function`, traced for the shapes of an example. It runs under the strategy, if any."""
    tf, strategy = rig.tf, rig.strategy
    if strategy and has_own_step(rig):
        train_as_one(tf, strategy.num_replicas_in_sync)
    step = python_step(rig)
    step = distributed(strategy, step) if strategy else step
    # Batches of varying lengths share a graph, as in `fit`.
    function = tf.function(step, jit_compile=bool(rig.spec.xla), reduce_retracing=True)
    with tf.device(rig.ctx.device):
        function.get_concrete_function(*signature(tf, example))
    rig.state.function, rig.state.example = function, example
    return ReducedLosses(tf, strategy, function) if strategy else function


def signature(tf: Any, batch: tuple[Any, ...]) -> list[Any]:
    """Return the shapes and dtypes of a batch, for which a function is traced."""
    return list(tf.nest.map_structure(lambda part: tf.TensorSpec.from_tensor(tf.convert_to_tensor(part)), batch))


def as_written(rig: Rig, timed_loop: TimedLoop) -> None:
    """Run the author's own loop: a generator of steps, or code that calls `fit`, which the hook observes.

    Without `as_written`, run `fit`, or `step` if the model is not compiled.
    """
    if not rig.has("as_written"):
        (fit if rig.compiled else step)(rig, timed_loop)
    elif rig.yields:
        _generator(rig, timed_loop)
    else:
        _own_fit(rig, timed_loop)


def _generator(rig: Rig, timed_loop: TimedLoop) -> None:
    while True:
        generator = rig.call("as_written")
        issued = 0
        with rig.scope():
            for issued, value in enumerate(generator, 1):
                if issued == 1:
                    rig.what_ifs.check()
                timed_loop.tick(value)
        if not issued:
            raise NotApplicable(
                f"as_written of {rig.spec.workload} yields nothing", "Yield a value that depends on the step."
            )
        rig.state.program_steps = rig.state.program_steps or issued
        timed_loop.restart()


def _own_fit(rig: Rig, timed_loop: TimedLoop) -> None:
    while True:
        rig.call("as_written")
        if not timed_loop.started:
            raise no_step(rig)
        timed_loop.restart()


def no_step(rig: Rig) -> NotApplicable:
    """Return the error that the author's own code ended without a step."""
    return NotApplicable(
        f"devbench saw no step in as_written of {rig.spec.workload}",
        "Call model.fit in it, or make it a generator that yields after each step.",
    )


def fit(rig: Rig, timed_loop: TimedLoop) -> None:
    """Run Keras' `fit` in the order of the data, without callbacks."""
    if not rig.compiled or rig.data is None:
        raise NotApplicable(
            f"fit cannot drive {rig.spec.workload}: it has no compiled model with data", "Use --loop step."
        )
    while True:
        with rig.scope():
            rig.model.fit(**fit_arguments(rig, shuffle=False), epochs=ENDLESS, verbose=0)
        timed_loop.restart()


def step(rig: Rig, timed_loop: TimedLoop) -> None:
    """Run one call of a `tf.function` per step, fed by the workload's own pipeline."""
    source = pipeline(rig)
    if source is None:
        host_batches(rig, timed_loop)
        return
    tf = rig.tf
    with tf.device(rig.ctx.device):
        iterator = iter(source)
        first = as_tuple(first_of(iterator, rig.spec.workload))
        function = graph_step(rig, first)
        rig.state.iterator = iterator
        rig.what_ifs.check()
        timed_loop.begin()
        timed_loop.tick(function(*first))
        for batch in map(as_tuple, iterator):
            if not is_smaller(tf, batch, first):  # the partial batch is measured afterwards
                timed_loop.tick(function(*batch))
    raise WorkloadError(
        f"the data of {rig.spec.workload} ended, and could not be read again",
        "Let the generator or the file that it reads start again with each iteration.",
    )


def one_step(rig: Rig) -> Any:
    """Run one more step of the loop `step` or `host-batches`, after the loop has ended. Return the step's value."""
    batch = rig.state.example
    assert batch is not None
    if rig.state.iterator is not None:
        following = as_tuple(next(rig.state.iterator))
        batch = batch if is_smaller(rig.tf, following, batch) else following
    return rig.state.function(*batch)


def host_batches(rig: Rig, timed_loop: TimedLoop) -> None:
    """Run one call per step, on batches that are ready in host memory. Only their copy is left of the input."""
    rig.what_ifs.check()
    prepared = pool(rig)
    function = graph_step(rig, prepared[0])
    with rig.tf.device(rig.ctx.device):
        timed_loop.begin()
        for batch in itertools.cycle(prepared):
            timed_loop.tick(function(*batch))


def resident(rig: Rig, timed_loop: TimedLoop) -> None:
    """Run one call per step, on batches that are on the device already. There is no input and no copy."""
    rig.what_ifs.check()
    tf = rig.tf
    with tf.device(rig.ctx.device):
        prepared = tf.nest.map_structure(lambda part: tf.identity(tf.convert_to_tensor(part)), pool(rig))
        function = graph_step(rig, prepared[0])
        timed_loop.begin()
        for batch in itertools.cycle(prepared):
            timed_loop.tick(function(*batch))


def fused(rig: Rig, timed_loop: TimedLoop) -> None:
    """Run many steps in one graph, on batches that are on the device already. One call dispatches all of them."""
    rig.what_ifs.check()
    tf = rig.tf
    run_steps, size = fused_function(rig)
    with tf.device(rig.ctx.device):
        first_batch = tf.constant(0, tf.int64)
        run_steps.get_concrete_function(first_batch, tf.constant(1))
        rig.state.function = run_steps
        rig.state.fused_arguments = (first_batch, tf.constant(2))
        position = 0
        timed_loop.begin()
        while True:
            count = min(timed_loop.steps_left, FUSED_STEPS)
            value = run_steps(tf.constant(position % size, tf.int64), tf.constant(count))
            position += count
            timed_loop.tick(value, count)


def fused_function(rig: Rig) -> tuple[Any, int]:
    """Return the function of `fused`, untraced, and its number of batches.

    The function takes the index of the first batch (int64) and the number of steps (int32). It returns the value of
    the last step.
    """
    tf = rig.tf
    prepared = pool(rig)
    if any(shapes(tf, batch) != shapes(tf, prepared[0]) for batch in prepared):
        raise NotApplicable(
            f"the batches of {rig.spec.workload} differ in shape, so they cannot be in one graph",
            "Pad the examples to one length.",
        )
    body = python_step(rig)
    with tf.device(rig.ctx.device):
        stacks = tf.nest.map_structure(
            lambda *parts: tf.identity(tf.stack([tf.convert_to_tensor(part) for part in parts])), *prepared
        )
        single = tf.function(body)
        output = single.get_concrete_function(*signature(tf, prepared[0])).structured_outputs
    size = len(prepared)
    rig.state.example = prepared[0]

    @tf.function(jit_compile=bool(rig.spec.xla))  # type: ignore[untyped-decorator]
    def run_steps(first: Any, count: Any) -> Any:
        # A GPU keeps int32 in host memory, which suits the condition of the loop. An index of int64 stays on the GPU,
        # so that no step copies it there.
        def step_at(index: Any, position: Any, _: Any) -> Any:
            following = tf.math.floormod(position + 1, size)
            batch = tf.nest.map_structure(lambda stack: tf.gather(stack, position), stacks)
            return index + 1, following, body(*batch)

        start = (tf.constant(0), first, tf.zeros([side or 1 for side in output.shape], output.dtype))
        return tf.while_loop(lambda index, *_: index < count, step_at, start, parallel_iterations=1)[2]

    return run_steps, size


def probes(rig: Rig, timed_loop: TimedLoop) -> None:
    """Run the workload's probes, each as a series of its own."""
    rig.what_ifs.check()
    assert rig.probes is not None
    with rig.tf.device(rig.ctx.device):
        timed_loop.begin()
        while True:
            timed_loop.tick(rig.probes[timed_loop.current].run())


LOOPS: Mapping[Loop, Callable[[Rig, TimedLoop], None]] = MappingProxyType(
    {
        "as-written": as_written,
        "fit": fit,
        "step": step,
        "host-batches": host_batches,
        "resident": resident,
        "fused": fused,
    }
)
"""Name of a loop: its function."""
