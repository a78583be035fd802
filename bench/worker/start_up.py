"""The start of a worker: its own modules, TensorFlow and the device, then the workload with its data and its model."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import WorkloadError
from bench.machine import git_worktree
from bench.model.spec import Spec
from bench.registry.own_modules import import_from_copy, import_from_own_checkout
from bench.registry.params import parse_params
from bench.worker import weights
from bench.worker.phases import Phases
from bench.worker.protocol import EnvironmentRead, PhaseStarted, Start

if TYPE_CHECKING:
    from bench.worker.cluster.member import Member


def import_own_modules(start: Start) -> None:
    """Let the program import the modules of its own checkout, and a script those of its copy.

    A workload runs in the folder of its own worktree that corresponds to the working folder. A script runs in a copy.

    Args:
        start: the first order.
    """
    spec, script = start.spec, start.script
    copy_root = Path(script.copy_root) if script is not None and script.copy_root else None
    if spec.checkout and spec.file:
        import_from_own_checkout(Path(spec.file), copy_root)
    if script is None and spec.file and (folder := git_worktree.counterpart(Path.cwd(), Path(spec.file))):
        os.chdir(folder)
    if script is not None and copy_root is not None:
        original = Path(script.original_root + os.sep)
        places = (Path(script.folder), Path(script.file).parent)
        copied = [original / place.relative_to(copy_root) for place in places if place.is_relative_to(copy_root)]
        import_from_copy(original, copy_root, copied)


def import_tensorflow() -> Any:
    """Import TensorFlow and Keras, without using them, and return TensorFlow."""
    import tensorflow as tf

    _ = tf.keras.Model
    return tf


def bring_up_tensorflow(phases: Phases, spec: Spec, member: Member | None = None) -> tuple[Any, str]:
    """Run the phases `import` and `device_init`. Return TensorFlow and the name of the device.

    All settings are made that would otherwise be left to defaults of TensorFlow.

    Args:
        phases: reports the phases.
        spec: the spec.
        member: this worker as one of several. None if it is alone.
    """
    import random

    with phases.timed("import"):
        tf = import_tensorflow()
    with phases.timed("device_init"):
        from bench import backends

        backend = backends.load(spec.backend)
        if reason := backend.slow_start(tf):
            phases.send(PhaseStarted(phase=phases.current, note=reason, slow=True))
        tf.config.threading.set_intra_op_parallelism_threads(spec.threads.intra)
        tf.config.threading.set_inter_op_parallelism_threads(spec.threads.inter)
        device = backend.configure(tf)
        if hasattr(tf.config.experimental, "enable_tensor_float_32_execution"):
            tf.config.experimental.enable_tensor_float_32_execution(spec.tf32)
        random.seed(spec.seed)
        tf.keras.utils.set_random_seed(spec.seed)
        if spec.deterministic:
            tf.config.experimental.enable_op_determinism()
        if member is not None:
            member.start(tf)
        with tf.device(device):
            (tf.constant(1.0) + 1.0).numpy()
    if spec.dtype == "float64":
        tf.keras.backend.set_floatx("float64")
    else:
        tf.keras.mixed_precision.set_global_policy(spec.dtype)
    from bench.machine.environment import framework

    phases.send(EnvironmentRead(framework=framework(tf, backends.recorded_packages()), device=backend.describe(tf)))
    return tf, device


def slow_first_step(spec: Spec) -> str:
    """Return why the first step may take many minutes; "" if it does not.

    Keras' `fit`, and functions of the program, may use XLA themselves.
    """
    from bench import backends

    return "" if spec.xla is False else str(backends.load(spec.backend).slow_first_step())


def load_workload(phases: Phases, spec: Spec, tf: Any, device: str, member: Member | None = None) -> Any:
    """Load the workload. Return a rig with its parameters and its context, before anything is built.

    Args:
        phases: reports the phase.
        spec: the spec.
        tf: TensorFlow.
        device: the device.
        member: this worker as one of several. None if it is alone.
    """
    from bench import datasets, registry
    from bench.worker.rig import Rig, context_of
    from bench.worker.what_ifs import WhatIfs

    phases.enter("loading")
    module = registry.load(spec.file or spec.workload)
    p = parse_params(module, dict(spec.params))
    ctx = context_of(spec, device, lambda name: datasets.load(spec.data.model_copy(update={"name": name}), spec.seed))
    what_ifs = WhatIfs(tf, spec.what_ifs, spec.xla)
    return Rig(tf=tf, spec=spec, module=module, p=p, ctx=ctx, send=phases.send, what_ifs=what_ifs, member=member)


def build(phases: Phases, rig: Any, draw_weights: bool) -> float:
    """Run the phases `data` and `build`.

    Args:
        phases: reports the phases.
        rig: gets the data, the model and the probes.
        draw_weights: whether the weights are drawn from NumPy, so that they are the same on all devices.

    Returns:
        When `build` started, by the clock of `time.perf_counter`.
    """
    if rig.has("data"):
        with phases.timed("data"):
            rig.data = rig.call("data")
        rig.check_data()
    start = time.perf_counter()
    if rig.has("model"):
        with phases.timed("build"):
            rig.model = rig.call("model")
        _check_model(rig)
        _pin(rig, draw_weights)
    if rig.has("probes"):
        with phases.timed("build"):
            rig.probes = rig.call("probes")
    return start


def _check_model(rig: Any) -> None:
    """Check that `model` returned a Keras model.

    Raises:
        WorkloadError: it returned something else.
    """
    if all(hasattr(rig.model, name) for name in ("built", "get_weights", "trainable_variables")):
        return
    kind = "nothing" if rig.model is None else f"a {type(rig.model).__name__}, not a Keras model"
    hint = "Return one Keras model. A program with several can make the others in `as_written` or `step`."
    raise WorkloadError(f"`model` of {rig.spec.workload} returned {kind}", hint)


def _pin(rig: Any, draw_weights: bool) -> None:
    """Set XLA as the spec says, and draw the weights."""
    model = rig.model
    if rig.compiled:
        rig.what_ifs.pin_xla(model)
    if model.built and draw_weights:
        with rig.tf.device(rig.ctx.device):
            weights.draw(model, rig.spec.seed)
