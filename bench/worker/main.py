"""The worker: one fresh process that measures one spec, started by the session (`handle`).

It holds nothing but TensorFlow and the timed loop: no server, no progress bar, no thread of ours. The parent
tells it what to do (`events`), and it says what it saw. It dies with its parent.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.model.result import FullTraining
from bench.worker import weights
from bench.worker.channel import Channel
from bench.worker.failure import failure_of, print_traceback
from bench.worker.protocol import (
    Done,
    EnvironmentRead,
    Failed,
    Finish,
    Note,
    PhaseBegun,
    PhaseDone,
    Proof,
    Start,
    Trained,
)
from bench.worker.step_counter import Counter
from bench.worker.timed_loop import Conductor, Finished


def die_with_parent() -> None:
    """Has Linux kill this process when its parent ends, even while it is suspended."""
    if sys.platform == "linux":
        import ctypes
        import signal

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def say_where_it_ends() -> None:
    """Has Python write to stderr where it was, when this process crashes or the parent ends it because it hangs."""
    import faulthandler

    faulthandler.enable()
    if sys.platform != "win32":
        import signal

        faulthandler.register(signal.SIGUSR1, chain=True)


class Worker:
    """Sets a spec up phase by phase, then lets its loop run under the conductor."""

    def __init__(self, channel: Channel, start: Start, entered: float) -> None:
        self.channel = channel
        self.send = channel.send
        self.start = start
        self.spec = start.spec
        self.entered = entered
        self.begun = ""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Times one phase of setting up and reports it."""
        self.begun = name
        self.send(PhaseBegun(phase=name))
        begun = time.perf_counter()
        yield
        self.send(PhaseDone(phase=name, seconds=time.perf_counter() - begun))

    def run(self) -> None:
        """Everything, in order."""
        self.send(PhaseDone(phase="interpreter", seconds=max(0.0, self.entered - self.start.spawned)))
        tf = self.bring_up_tensorflow()
        rig = self.make_rig(tf)
        from bench.worker.diagnose.profiler import Profiler
        from bench.worker.fit_hook import Watch
        from bench.worker.loops import own_step
        from bench.worker.synchronize import Reader
        from bench.worker.tracing import Tracing

        reader = Reader(tf, rig.ctx.device)
        kind = "reduced" if self.spec.dtype.startswith("mixed") else "exact"
        if not getattr(rig.module, "SAME_ANSWER", True):
            kind = "changed"
        make = Counter if self.start.full else Conductor
        conductor = make(self.channel, reader.sync, reader.answer, kind)

        def on_first(model: Any) -> None:
            rig.what_ifs.check()
            rig.seen["fit"] = reader.model = model
            conductor.averaged = True
            reader.prepare(model)
            self.begun = "first step"
            conductor.set_up()
            conductor.begin()

        def marked() -> bool:  # one call issues many steps, or Keras 2 marks them itself
            return self.spec.loop == "fused" or (watch.model is not None and tf.keras.__version__.startswith("2."))

        conductor.profiler = Profiler(tf, rig.ctx.device, marked)
        self.tracing = Tracing()
        conductor.traced = lambda: self.tracing.seconds - reader.trace_seconds
        watch = Watch(tf, on_first, self.send, rig.what_ifs)
        watch.on_step, watch.resting = conductor.tick, rig.yields
        self.set_up(rig)
        reader.model = rig.model if rig.compiled or rig.has("step") else None
        if reader.model is not None:
            reader.prepare(reader.model)
        if self.start.full:
            self.train(rig, conductor)
        else:
            conductor.averaged = self.spec.loop != "as-written" and not own_step(rig)
            order = self.drive(rig, conductor)
            if order is None:
                return
            rig.facts.steps_run, rig.facts.restarts = conductor.stepped, conductor.restarts
            self.finish(rig, watch, reader, order)
        self.send(Done())

    def bring_up_tensorflow(self) -> Any:
        """Phases `import` and `device_init`; everything that a framework's default would decide is set."""
        import random

        spec = self.spec
        with self.phase("import"):
            import tensorflow as tf

            _ = tf.keras.Model
        with self.phase("device_init"):
            from bench import backends

            backend = backends.load(spec.backend)
            if reason := backend.slow_start(tf):
                self.send(PhaseBegun(phase=self.begun, note=reason, slow=True))
            tf.config.threading.set_intra_op_parallelism_threads(spec.threads.intra)
            tf.config.threading.set_inter_op_parallelism_threads(spec.threads.inter)
            self.device = backend.configure(tf)
            if hasattr(tf.config.experimental, "enable_tensor_float_32_execution"):
                tf.config.experimental.enable_tensor_float_32_execution(spec.tf32)
            random.seed(spec.seed)
            tf.keras.utils.set_random_seed(spec.seed)
            if spec.deterministic:
                tf.config.experimental.enable_op_determinism()
            with tf.device(self.device):
                (tf.constant(1.0) + 1.0).numpy()
        if spec.dtype == "float64":
            tf.keras.backend.set_floatx("float64")
        else:
            tf.keras.mixed_precision.set_global_policy(spec.dtype)
        from bench.machine.environment import framework

        self.send(EnvironmentRead(framework=framework(tf), device=backend.describe(tf)))
        return tf

    def make_rig(self, tf: Any) -> Any:
        """The workload with its params and context."""
        import numpy as np

        from bench import datasets, registry
        from bench.worker.rig import Rig
        from bench.worker.what_ifs import WhatIfs
        from bench.workloads import Context

        spec = self.spec
        self.begun = "loading"
        self.send(PhaseBegun(phase=self.begun))
        module = registry.load(spec.file or spec.workload)
        p = registry.parse_params(module, dict(spec.params))
        ctx = Context(
            rng=np.random.default_rng([spec.seed, 0]),
            device=self.device,
            backend=spec.backend,
            dtype=spec.dtype,
            seed=spec.seed,
            _load=lambda name: datasets.load(spec.data.model_copy(update={"name": name}), spec.seed),
        )
        what_ifs = WhatIfs(tf, spec.what_ifs, spec.xla)
        return Rig(tf=tf, spec=spec, module=module, p=p, ctx=ctx, send=self.send, what_ifs=what_ifs)

    def set_up(self, rig: Any) -> None:
        """Phases `data` and `build`; then the weights are drawn from NumPy, the same wherever this runs."""
        if rig.has("data"):
            with self.phase("data"):
                rig.data = rig.call("data")
        self.built = time.perf_counter()
        if rig.has("model"):
            with self.phase("build"):
                rig.model = rig.call("model")
            self.pin(rig)
        if rig.has("probes"):
            with self.phase("build"):
                rig.seen["probes"] = found = rig.call("probes")
            rig.seen["ready"] = {
                "series": list(found),
                "bytes": {name: probe.bytes for name, probe in found.items() if probe.bytes is not None},
                "floors": {name: probe.floor for name, probe in found.items() if probe.floor is not None},
            }

    def pin(self, rig: Any) -> None:
        """Pins XLA where the spec does, and sets the weights."""
        model = rig.model
        if rig.compiled:
            rig.what_ifs.pin_xla(model)
        if model.built and not self.start.full:
            with rig.tf.device(self.device):
                weights.draw(model, self.spec.seed)

    def drive(self, rig: Any, conductor: Conductor) -> Finish | None:
        """Runs the loop until the parent wants no more of it."""
        from bench.worker import loops

        if "ready" in rig.seen:
            conductor.ready = conductor.ready.model_copy(update=rig.seen["ready"])
            conductor.series = rig.seen["ready"]["series"]
            conductor.current = conductor.series[0]
        loop = loops.probes if "probes" in rig.seen else loops.LOOPS[self.spec.loop]
        self.begun = "first step"
        self.send(PhaseBegun(phase="first step"))
        conductor.set_up()
        conductor.begin()
        try:
            loop(rig, conductor)
        except Finished as finished:
            order: Finish | None = finished.args[0]
            return order
        raise AssertionError("a loop ends only when it is unwound")

    def train(self, rig: Any, counter: Any) -> None:
        """`--full`: the whole program."""
        from bench.worker import full_training

        self.begun = "training"
        self.send(PhaseBegun(phase="training", note="the whole program"))
        returned = full_training.train(rig, counter)
        ended, cold = time.perf_counter(), time.time() - self.start.spawned
        full = FullTraining(build_and_fit_seconds=ended - self.built, total_seconds=cold, steps=counter.stepped)
        full.epoch_ends = counter.epoch_ends(ended)
        full.metrics = full_training.metrics(rig, returned, counter)
        self.send(Trained(full=full))

    def finish(self, rig: Any, watch: Any, reader: Any, order: Finish) -> None:
        """What is measured after the timed part."""
        from bench.worker.diagnose import epoch_ends, placement, step_costs
        from bench.worker.rig import steps_of_training

        self.begun = "after the timed part"
        self.send(PhaseBegun(phase=self.begun))
        rig.facts.total_steps = steps_of_training(rig) or rig.seen.get("ended")
        rig.facts.epoch = rig.epoch
        rig.facts.traces = self.tracing.count
        step_costs.read_facts(rig, watch)
        rig.report_facts()
        if order.prove:
            self.optional("operations", rig, lambda: step_costs.operations(rig))
            found = placement.placement(rig, watch)
            self.send(Proof(placement=found))
            if watch.model is None and "function" not in rig.seen and found.verified:
                rig.facts.jit_compile = found.xla_clusters > 0
                rig.report_facts()
        if order.inspect:
            self.optional("pipeline", rig, lambda: step_costs.input_stages(rig, watch, order.stages))
            self.optional("own steps", rig, lambda: step_costs.own_steps(rig, self.tracing, watch))
        if order.brief:
            return
        self.optional("batch_copy", rig, lambda: step_costs.batch_copy(rig, watch))
        self.optional("input_wait", rig, lambda: step_costs.input_wait(rig, watch, reader))
        if watch.model is None:
            self.optional("partial_batch", rig, lambda: step_costs.partial_batch(rig, reader))
        else:
            self.optional("epoch_end", rig, lambda: epoch_ends.short_epochs(rig, watch, reader, order.waits))

    def optional(self, what: str, rig: Any, measure: Any) -> None:
        """Measure something that a result can do without. If that fails, a note says so."""
        try:
            measure()
        except Exception as error:
            self.send(Note(text=f"{what} could not be measured: {type(error).__name__}: {str(error)[:200]}"))
        rig.report_facts()


def main() -> None:
    """Obeys the parent until it is done, then ends at once: TensorFlow's own teardown is not waited for."""
    entered = time.time()
    die_with_parent()
    channel = Channel()
    gc.freeze()  # what we have imported so far is not the program's, nor should its collections cost it
    say_where_it_ends()
    code = 0
    worker = None
    try:
        start = channel.receive()
        if not isinstance(start, Start):
            raise TypeError("the first order must be `start`")
        worker = Worker(channel, start, entered)
        worker.run()
    except BaseException as error:
        print_traceback(error)
        phase = worker.begun if worker else "start"
        channel.send(Failed(failure=failure_of(error, worker.spec.file if worker else None, phase)))
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
