"""The worker: one process that measures one spec. The session starts it (`bench.session.worker_process`).

The worker holds TensorFlow and the timed loop, and nothing else: no server, no progress bar. Only the worker of a
script has a thread of devbench, which sleeps while there are steps (`script.silence`). The parent sends orders, and the
worker sends events (`bench.worker.protocol`). The worker ends when its parent ends.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from bench.machine import installed
from bench.model.failure import Failure
from bench.model.phase import Activity
from bench.model.sample import FullTraining, LossPrecision
from bench.worker.channel import Channel
from bench.worker.failure import ProgramFailed, failure_of, print_traceback
from bench.worker.phases import Phases
from bench.worker.protocol import (
    Done,
    Failed,
    Finish,
    PhaseEnded,
    Ready,
    Start,
    Trained,
)
from bench.worker.start_up import bring_up_tensorflow, build, import_own_modules, load_workload, slow_first_step
from bench.worker.step_counter import StepCounter
from bench.worker.timed_loop import Finished, TimedLoop

if TYPE_CHECKING:
    from bench.worker.cluster.chief import Cluster

LOST_SECONDS = 5.0
"""Seconds to wait after an error for the news that another worker is gone. The loss is then the cause of the error."""


def die_with_parent() -> None:
    """Let Linux kill this process when its parent ends, even while it is suspended."""
    if sys.platform == "linux":
        import ctypes
        import signal

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def enable_crash_report() -> None:
    """Let Python write its stack to stderr if this process crashes, or if it hangs and the parent ends it."""
    import faulthandler

    faulthandler.enable()
    if sys.platform != "win32":
        import signal

        faulthandler.register(signal.SIGUSR1, chain=True)


class Worker:
    """Sets up a spec phase by phase, runs the spec's loop under the timed loop, then runs the diagnosis.

    Args:
        channel: the connection to the parent.
        start: the first order.
        entered: when this process was ready to work, in seconds since the epoch (`time.time`).

    Attributes:
        phases: reports what the worker is doing.
        cluster: the other workers of the spec. None if it has none.
    """

    def __init__(self, channel: Channel, start: Start, entered: float) -> None:
        self.channel = channel
        self.send = channel.send
        self.start = start
        self.spec = start.spec
        self.entered = entered
        self.phases = Phases(channel.send)
        self.cluster: Cluster | None = None

    def run(self) -> None:
        """Carry out the first order and all that follow."""
        self.send(PhaseEnded(phase="interpreter", seconds=max(0.0, self.entered - self.start.spawned)))
        import_own_modules(self.start)
        member = None if self.spec.workers is None else self.join()
        if self.start.script is None:
            tf, device = bring_up_tensorflow(self.phases, self.spec, member)
            rig = load_workload(self.phases, self.spec, tf, device, member)
        elif self.spec.loop == "as-written":
            from bench.worker.script.script_worker import ScriptWorker

            ScriptWorker(self.channel, self.start, self.phases).run()
            return
        else:
            from bench.worker.script.replay import capture

            rig = capture(self.channel, self.start, self.phases, member)
        self.measure(rig)

    def join(self) -> Any:
        """Wait for the other workers of the spec. Return this worker as one of them (a `Member`)."""
        from bench.worker.cluster.chief import gather
        from bench.worker.cluster.member import Member

        def end(failure: Failure) -> None:
            self.send(Failed(failure=failure))
            os._exit(1)  # this process may wait for the lost worker forever

        assert self.start.cluster is not None
        member = Member(self.spec, self.start.cluster)
        member.confine()
        self.phases.enter("rendezvous")
        self.cluster = gather(self.spec, self.start, end)
        member.run = self.cluster.run
        return member

    def measure(self, rig: Any) -> None:
        """Run the loop of the spec, then the diagnosis or, with `--full`, the whole training.

        Args:
            rig: the rig. The rig of a script has its model and data already.
        """
        tf = rig.tf
        from bench.worker import loops
        from bench.worker.diagnose.profiler import Profiler
        from bench.worker.epoch_timer import EpochTimer
        from bench.worker.fit_hook import FitHook
        from bench.worker.frames import Sources
        from bench.worker.loops import has_own_step
        from bench.worker.synchronize import Synchronizer
        from bench.worker.tracing import Tracing

        synchronizer = Synchronizer(tf, rig.ctx.device)
        make = StepCounter if self.start.full else TimedLoop
        timed_loop = make(self.channel, synchronizer.sync, synchronizer.loss, self.precision(rig))

        def on_first(model: Any) -> None:
            rig.what_ifs.check()
            synchronizer.observe(model)
            self.read_losses(rig, timed_loop, model)
            self.enter_first_step(timed_loop)
            timed_loop.end_set_up()
            timed_loop.begin()

        def marked() -> bool:  # one call issues many steps, or Keras 2 marks each itself
            return self.spec.loop == "fused" or (hook.model is not None and installed.keras(tf).startswith("2."))

        timed_loop.profiler = Profiler(tf, rig.ctx.device, marked)
        tracing = Tracing(Sources(str(rig.module.__file__)))
        timed_loop.trace_seconds = lambda: tracing.seconds - synchronizer.trace_seconds
        hook = FitHook(tf, on_first, self.send, rig.what_ifs)
        hook.passive = rig.yields
        build_start = time.perf_counter()
        if self.start.script is None:
            build_start = build(self.phases, rig, draw_weights=not self.start.full)
        if rig.model is not None and (rig.compiled or rig.has("step")):
            synchronizer.observe(rig.model)
        if isinstance(timed_loop, StepCounter):
            hook.observer = timed_loop
            self.train(rig, hook, timed_loop, build_start)
        else:
            timer = EpochTimer(timed_loop, hook.epochs, synchronizer.sync, timed_loop.losses)
            hook.observer = timer
            if self.spec.loop != "as-written" and not has_own_step(rig) and rig.compiled:
                self.read_losses(rig, timed_loop, rig.model)

            def on_restart() -> None:
                timer.end_program()
                hook.epochs.end_program()

            timed_loop.on_restart = on_restart
            order = self.drive(rig, timed_loop)
            if order is None:
                return
            rig.facts.steps_run, rig.facts.restarts = timed_loop.steps_run, timed_loop.restarts
            from bench.worker.diagnose.diagnosis import diagnose

            member = rig.member
            alone = member is not None and not member.workers.reduce and member.workers.strategy != "mirrored"
            if self.cluster is not None and alone:
                with tf.device(rig.ctx.device):  # in another scope, the function would be traced again
                    self.send(self.cluster.times(lambda: loops.one_step(rig), synchronizer.sync))
            self.phases.enter("diagnosis")
            diagnose(rig, hook, timer, timed_loop, synchronizer, tracing, order)
        self.send(Done())

    def enter_first_step(self, timed_loop: TimedLoop) -> None:
        """Report that the first step of all begins, and why it may take long."""
        self.phases.current = "first_step"
        if not isinstance(timed_loop, StepCounter) and not timed_loop.started:
            reason = slow_first_step(self.spec)
            self.phases.enter("first_step", reason, slow=bool(reason))

    def precision(self, rig: Any) -> LossPrecision:
        """Return how exactly the first losses are expected to agree with those of other devices."""
        if not getattr(rig.module, "SAME_ANSWER", True):
            return "changed"
        if rig.member is not None and "GPU" in rig.ctx.device:  # the products of a GPU may use fewer bits
            return "reduced"
        return "reduced" if self.spec.dtype.startswith("mixed") else "exact"

    def read_losses(self, rig: Any, timed_loop: TimedLoop, model: Any) -> None:
        """Decide how the losses of single steps are read from what a model's train step returns.

        Keras' own train step returns a running mean. The program as written is not changed, so the losses of its steps
        are computed from the means. In the other loops, the metrics are reset after each of the first steps.
        """
        if self.spec.loop != "as-written":
            timed_loop.losses.after_each = model.reset_metrics
        else:
            timed_loop.losses.running_mean = type(model).train_step is rig.tf.keras.Model.train_step

    def drive(self, rig: Any, timed_loop: TimedLoop) -> Finish | None:
        """Run the loop until the parent wants no more steps. Return its last order, or None if a step failed."""
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
        if self.cluster is not None and rig.member is not None:
            if rig.member.workers.reduce:
                timed_loop.announce = self.cluster.announce
            else:
                self.cluster.wait_until_steady()
        if rig.yields or self.spec.loop != "as-written":
            self.enter_first_step(timed_loop)
        else:  # fit follows, after whatever the program does before it
            self.phases.enter("first_step")
        timed_loop.end_set_up()
        timed_loop.begin()
        try:
            loop(rig, timed_loop)
        except Finished as finished:
            order: Finish | None = finished.args[0]
            return order
        raise AssertionError("a loop ends only when it is unwound")

    def train(self, rig: Any, hook: Any, counter: StepCounter, build_start: float) -> None:
        """Run the whole program (`--full`).

        Args:
            rig: the rig.
            hook: the hook into `fit`.
            counter: counts its steps.
            build_start: when the phase `build` started, by the clock of `time.perf_counter`.
        """
        from bench.worker import full_training

        reason = slow_first_step(self.spec)
        self.phases.enter("training", reason or "the whole program", slow=bool(reason))
        returned = full_training.train(rig, counter)
        end, total_seconds = time.perf_counter(), time.time() - self.start.spawned
        full = FullTraining(
            build_and_fit_seconds=end - build_start, total_seconds=total_seconds, steps=counter.steps_run
        )
        full.epoch_ends = counter.epoch_ends(end)
        full.planned_steps = hook.epochs.planned
        full.metrics = full_training.final_metrics(rig, returned, counter)
        self.send(Trained(full=full))


def main() -> None:
    """Run a fresh worker."""
    entered = time.time()
    die_with_parent()
    gc.freeze()  # our own imports are not the program's, and its garbage collections should not visit them
    work(entered)


def work(entered: float) -> None:
    """Carry out the parent's orders, then end at once, without waiting for TensorFlow to shut down.

    Args:
        entered: when this process was ready to work, in seconds since the epoch (`time.time`).
    """
    channel = Channel()
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
        run = worker.start.script if worker else None
        file = run.file if run else worker.spec.file if worker else None
        if not isinstance(error, ProgramFailed):
            print_traceback(error, file)
        phase: Activity = worker.phases.current if worker else "starting"
        of_tensorflow = type(error).__module__.startswith("tensorflow")
        lost = worker.cluster.failure(LOST_SECONDS) if worker and worker.cluster and of_tensorflow else None
        channel.send(Failed(failure=lost or failure_of(error, file, phase)))
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
