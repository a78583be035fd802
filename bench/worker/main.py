"""The worker: one fresh process that measures one spec. The session starts it (`bench.session.worker_process`).

It holds TensorFlow and the timed loop, and nothing else: no server, no progress bar, no thread of devbench. The parent
sends orders, and the worker sends events (`bench.worker.protocol`). It ends when its parent ends.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.model.phase import Activity, Phase
from bench.model.result import FullTraining, LossPrecision
from bench.worker import weights
from bench.worker.channel import Channel
from bench.worker.failure import failure_of, print_traceback
from bench.worker.protocol import (
    Done,
    EnvironmentRead,
    Failed,
    Finish,
    Note,
    PhaseEnded,
    PhaseStarted,
    PlacementChecked,
    Ready,
    Start,
    Trained,
)
from bench.worker.step_counter import StepCounter
from bench.worker.timed_loop import Finished, TimedLoop


def die_with_parent() -> None:
    """Let Linux kill this process when its parent ends, even while it is suspended."""
    if sys.platform == "linux":
        import ctypes
        import signal

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def enable_crash_report() -> None:
    """Let Python write its stack to stderr if this process crashes, or if the parent ends it because it hangs."""
    import faulthandler

    faulthandler.enable()
    if sys.platform != "win32":
        import signal

        faulthandler.register(signal.SIGUSR1, chain=True)


class Worker:
    """Sets up a spec phase by phase, runs its loop under the timed loop, then runs the diagnosis.

    Args:
        channel: the connection to the parent.
        start: the first order.
        entered: the wall clock when `main` was entered.

    Attributes:
        current_phase: what the worker is doing.
    """

    def __init__(self, channel: Channel, start: Start, entered: float) -> None:
        self.channel = channel
        self.send = channel.send
        self.start = start
        self.spec = start.spec
        self.entered = entered
        self.current_phase: Activity = "start"

    def enter(self, phase: Activity, note: str = "") -> None:
        """Report that a phase starts."""
        self.current_phase = phase
        self.send(PhaseStarted(phase=phase, note=note))

    @contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Time one phase of setting up and report it."""
        self.enter(name)
        start = time.perf_counter()
        yield
        self.send(PhaseEnded(phase=name, seconds=time.perf_counter() - start))

    def run(self) -> None:
        """Carry out the first order and all that follow."""
        self.send(PhaseEnded(phase="interpreter", seconds=max(0.0, self.entered - self.start.spawned)))
        tf = self.bring_up_tensorflow()
        rig = self.make_rig(tf)
        from bench.worker.diagnose.profiler import Profiler
        from bench.worker.fit_hook import FitHook
        from bench.worker.loops import has_own_step
        from bench.worker.synchronize import Synchronizer
        from bench.worker.tracing import Tracing

        synchronizer = Synchronizer(tf, rig.ctx.device)
        make = StepCounter if self.start.full else TimedLoop
        timed_loop = make(self.channel, synchronizer.sync, synchronizer.loss, self.precision(rig))

        def on_first(model: Any) -> None:
            rig.what_ifs.check()
            synchronizer.model = model
            timed_loop.running_mean = True
            synchronizer.prepare(model)
            self.current_phase = "first step"
            timed_loop.end_set_up()
            timed_loop.begin()

        def marked() -> bool:  # one call issues many steps, or Keras 2 marks them itself
            return self.spec.loop == "fused" or (hook.model is not None and tf.keras.__version__.startswith("2."))

        timed_loop.profiler = Profiler(tf, rig.ctx.device, marked)
        self.tracing = Tracing()
        timed_loop.trace_seconds = lambda: self.tracing.seconds - synchronizer.trace_seconds
        hook = FitHook(tf, on_first, self.send, rig.what_ifs)
        hook.on_step, hook.passive = timed_loop.tick, rig.yields
        self.set_up(rig)
        synchronizer.model = rig.model if rig.compiled or rig.has("step") else None
        if synchronizer.model is not None:
            synchronizer.prepare(synchronizer.model)
        if isinstance(timed_loop, StepCounter):
            self.train(rig, timed_loop)
        else:
            timed_loop.running_mean = self.spec.loop != "as-written" and not has_own_step(rig)
            order = self.drive(rig, timed_loop)
            if order is None:
                return
            rig.facts.steps_run, rig.facts.restarts = timed_loop.steps_run, timed_loop.restarts
            self.diagnose(rig, hook, synchronizer, order)
        self.send(Done())

    def precision(self, rig: Any) -> LossPrecision:
        """Return how exactly the first losses can be expected to agree."""
        if not getattr(rig.module, "SAME_ANSWER", True):
            return "changed"
        return "reduced" if self.spec.dtype.startswith("mixed") else "exact"

    def bring_up_tensorflow(self) -> Any:
        """Run the phases `import` and `device_init`. Everything that a framework default would decide is set."""
        import random

        spec = self.spec
        with self.phase("import"):
            import tensorflow as tf

            _ = tf.keras.Model
        with self.phase("device_init"):
            from bench import backends

            backend = backends.load(spec.backend)
            if reason := backend.slow_start(tf):
                self.send(PhaseStarted(phase=self.current_phase, note=reason, slow=True))
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

        self.send(EnvironmentRead(framework=framework(tf, backends.recorded_packages()), device=backend.describe(tf)))
        return tf

    def make_rig(self, tf: Any) -> Any:
        """Load the workload with its parameters and context."""
        import numpy as np

        from bench import datasets, registry
        from bench.worker.rig import Rig
        from bench.worker.what_ifs import WhatIfs
        from bench.workloads import Context

        spec = self.spec
        self.enter("loading")
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
        """Run the phases `data` and `build`. Then draw the weights from NumPy, so that they are the same everywhere."""
        if rig.has("data"):
            with self.phase("data"):
                rig.data = rig.call("data")
        self.build_start = time.perf_counter()
        if rig.has("model"):
            with self.phase("build"):
                rig.model = rig.call("model")
            self.pin(rig)
        if rig.has("probes"):
            with self.phase("build"):
                rig.probes = rig.call("probes")

    def pin(self, rig: Any) -> None:
        """Set XLA as the spec says, and the weights."""
        model = rig.model
        if rig.compiled:
            rig.what_ifs.pin_xla(model)
        if model.built and not self.start.full:
            with rig.tf.device(self.device):
                weights.draw(model, self.spec.seed)

    def drive(self, rig: Any, timed_loop: TimedLoop) -> Finish | None:
        """Run the loop until the parent wants no more steps. Return its last order; None if a step failed."""
        from bench.worker import loops

        loop = loops.LOOPS[self.spec.loop]
        if rig.probes is not None:
            loop = loops.probes
            timed_loop.ready = Ready(
                series=list(rig.probes),
                bytes={name: probe.bytes for name, probe in rig.probes.items() if probe.bytes is not None},
                floors={name: probe.floor for name, probe in rig.probes.items() if probe.floor is not None},
            )
            timed_loop.series = timed_loop.ready.series
            timed_loop.current = timed_loop.series[0]
        self.enter("first step")
        timed_loop.end_set_up()
        timed_loop.begin()
        try:
            loop(rig, timed_loop)
        except Finished as finished:
            order: Finish | None = finished.args[0]
            return order
        raise AssertionError("a loop ends only when it is unwound")

    def train(self, rig: Any, counter: StepCounter) -> None:
        """Run the whole program (`--full`)."""
        from bench.worker import full_training

        self.enter("training", "the whole program")
        returned = full_training.train(rig, counter)
        end, total_seconds = time.perf_counter(), time.time() - self.start.spawned
        full = FullTraining(
            build_and_fit_seconds=end - self.build_start, total_seconds=total_seconds, steps=counter.steps_run
        )
        full.epoch_ends = counter.epoch_ends(end)
        full.metrics = full_training.final_metrics(rig, returned, counter)
        self.send(Trained(full=full))

    def diagnose(self, rig: Any, hook: Any, synchronizer: Any, order: Finish) -> None:
        """Run the diagnosis, which would have disturbed the timed part."""
        from bench.worker.diagnose import epoch_ends, operations, partial_batch, placement, program, transfers

        self.enter("diagnosis")
        program.read_facts(rig, hook, self.tracing)
        rig.report_facts()
        if order.check_placement:
            self.optional("operations", rig, lambda: operations.count(rig))
            step_placement = placement.check(rig, hook)
            self.send(PlacementChecked(placement=step_placement))
            if rig.facts.jit_compile is None and step_placement.verified:
                rig.facts.jit_compile = step_placement.xla_clusters > 0
                rig.report_facts()
        if order.inspect:
            self.optional("pipeline", rig, lambda: program.read_pipeline(rig, hook, order.time_stages))
            self.optional("own steps", rig, lambda: program.inspect(rig, self.tracing, hook))
        if order.brief:
            return
        self.optional("batch_copy", rig, lambda: transfers.batch_copy(rig, hook))
        self.optional("input_wait", rig, lambda: transfers.input_wait(rig, hook, synchronizer))
        if hook.model is None:
            self.optional("partial_batch", rig, lambda: partial_batch.measure(rig, synchronizer))
        else:
            self.optional("epoch_end", rig, lambda: epoch_ends.measure(rig, hook, synchronizer, order.time_waits))

    def optional(self, name: str, rig: Any, measure: Callable[[], None]) -> None:
        """Measure something optional. If that fails, the result has a note."""
        try:
            measure()
        except Exception as error:
            self.send(Note(text=f"{name} could not be measured: {type(error).__name__}: {str(error)[:200]}"))
        rig.report_facts()


def main() -> None:
    """Carry out the parent's orders, then end at once, without waiting for TensorFlow to shut down."""
    entered = time.time()
    die_with_parent()
    channel = Channel()
    gc.freeze()  # our own imports are not the program's, and its garbage collections should not visit them
    enable_crash_report()
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
        phase: Activity = worker.current_phase if worker else "start"
        channel.send(Failed(failure=failure_of(error, worker.spec.file if worker else None, phase)))
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
