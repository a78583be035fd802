"""The diagnosis: what is measured after the timed part, because it would disturb the timed part, and in which order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from bench.worker.diagnose import (
    compiled_shapes,
    epoch_ends,
    metrics_time,
    operations,
    optimizer_time,
    partial_batch,
    placement,
    program,
    transfers,
)
from bench.worker.epoch_timer import EpochTimer
from bench.worker.failure import short_text
from bench.worker.fit_hook import FitHook
from bench.worker.protocol import Finish, Note, PlacementChecked
from bench.worker.rig import Rig
from bench.worker.synchronize import Synchronizer
from bench.worker.timed_loop import TimedLoop
from bench.worker.tracing import Tracing


def diagnose(
    rig: Rig,
    hook: FitHook,
    timer: EpochTimer,
    timed_loop: TimedLoop,
    synchronizer: Synchronizer,
    tracing: Tracing,
    order: Finish,
) -> None:
    """Read and measure what every worker reports and what the parent ordered. Report it.

    Args:
        rig: the rig.
        hook: the hook into `fit`.
        timer: has timed the epochs of the timed part.
        timed_loop: has timed the steps.
        synchronizer: waits for the device.
        tracing: counts traces.
        order: what the parent ordered.
    """
    rig.facts.steps_issued = hook.epochs.total or timed_loop.issued
    traced = Counter(tracing.by_function)  # the diagnosis itself traces more
    program.read_facts(rig, hook, timer, tracing)
    if rig.member is not None and rig.model is not None:
        rig.facts.gradient_bytes = sum(
            math.prod(v.shape) * rig.tf.as_dtype(v.dtype).size for v in rig.model.trainable_variables
        )
    rig.report_facts()
    if rig.member is not None:
        return  # what follows would run steps that the other workers do not expect
    if order.check_placement:
        optional("operations", rig, lambda: operations.count(rig))
        step_placement = placement.check(rig, hook)
        rig.send(PlacementChecked(placement=step_placement))
        if rig.facts.jit_compile is None and step_placement.verified:
            rig.facts.jit_compile = step_placement.xla_clusters > 0
            rig.report_facts()
    if order.inspect:
        optional("pipeline", rig, lambda: program.read_pipeline(rig, hook, order.time_stages))
        optional("own steps", rig, lambda: program.inspect(rig, tracing, traced, hook))
        optional("compiled shapes", rig, lambda: compiled_shapes.measure(rig, hook, synchronizer))
        optional("metrics", rig, lambda: metrics_time.measure(rig, hook, synchronizer))
        optional("optimizer", rig, lambda: optimizer_time.measure(rig, hook, synchronizer))
    if order.brief:
        return
    optional("batch_copy", rig, lambda: transfers.batch_copy(rig, hook))
    optional("input_wait", rig, lambda: transfers.input_wait(rig, hook, timer, synchronizer))
    if hook.model is None:
        optional("partial_batch", rig, lambda: partial_batch.measure(rig, synchronizer))
    else:
        optional(
            "epoch_end", rig, lambda: epoch_ends.measure(rig, hook, timer, timed_loop.step_seconds, synchronizer, order)
        )
        rig.facts.callback_times = hook.callback_timer.read(hook.epochs.total)
        rig.report_facts()


def optional(name: str, rig: Rig, measure: Callable[[], None]) -> None:
    """Measure something optional. If that fails, the result gets a note."""
    try:
        measure()
    except Exception as error:
        rig.send(Note(text=f"{name} could not be measured: {short_text(error)}"))
    rig.report_facts()
