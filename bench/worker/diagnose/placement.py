"""One step of the same kind, traced afresh, to see where its operations go. Worker's side, after the timed part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.model.result import Placement
from bench.worker.diagnose.partitions import prove
from bench.worker.fit_hook import Watch
from bench.worker.loops import fused_function, python_step
from bench.worker.rig import Rig


def placement(rig: Rig, watch: Watch) -> Placement:
    """Runs one step as this loop runs it, and judges where its operations went."""
    fresh, method = _fresh(rig, watch)
    return prove(rig.tf, rig.ctx.device, fresh, method)


def _fresh(rig: Rig, watch: Watch) -> tuple[Callable[[], Any], str]:
    """What traces and runs one step anew, and what that is called."""
    if watch.model is not None:
        return lambda: _train_function(rig, watch), "partition graphs of a fresh train function"
    if "fused_arguments" in rig.seen:
        many = fused_function(rig)[0]
        return lambda: many(*rig.seen["fused_arguments"]), "partition graphs of fresh steps in one graph"
    if "function" in rig.seen:
        step = rig.tf.function(python_step(rig), jit_compile=bool(rig.spec.xla))
        return lambda: step(*rig.seen["example"]), "partition graphs of a fresh step"
    if "probes" in rig.seen:
        probes = rig.seen["probes"].values()
        return lambda: [probe.run() for probe in probes], "graphs of eager operations"
    return lambda: next(iter(rig.call("as_written"))), "graphs of a fresh step as written"


def _train_function(rig: Rig, watch: Watch) -> None:
    """Keras' own train function, made anew, on the input that `fit` was reading."""
    watch.on_step = lambda logs, steps: None
    fresh = watch.make(watch.model, force=True) or watch.model.train_function
    try:
        getattr(fresh, "devbench_plain", fresh)(watch.iterator)
    except (rig.tf.errors.OutOfRangeError, StopIteration):  # the measured part ended with an epoch
        watch.model.fit(**{**watch.call, "epochs": 1, "steps_per_epoch": 1, "verbose": 0})
