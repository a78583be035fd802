"""The worker of a script: runs it, and scouts its loops or times the steps of one of them."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.model.phase import Activity
from bench.worker.channel import Channel
from bench.worker.failure import ProgramFailed, failure_of, print_traceback
from bench.worker.frames import Sources
from bench.worker.phases import Phases
from bench.worker.protocol import (
    Done,
    Failed,
    Finish,
    Note,
    PhaseEnded,
    PhaseStarted,
    PrintedRead,
    ScriptRun,
    Start,
)
from bench.worker.script import fits, inference, reports, sessions, settings
from bench.worker.script.calls import Observation, Updated, in_script
from bench.worker.script.gradients import Gradients
from bench.worker.script.imports import TensorFlowImport
from bench.worker.script.placement_step import StepPlacement
from bench.worker.script.program import ScriptProgram
from bench.worker.script.progress import ScoutProgress, ScriptProgress, TrialProgress
from bench.worker.script.running import Stopped
from bench.worker.script.scout import Scout
from bench.worker.script.silence import Silence
from bench.worker.script.traced_calls import TracedCalls
from bench.worker.script.training_calls import contains_training
from bench.worker.script.updates import Updates
from bench.worker.script.values import number_in
from bench.worker.script.watch import Watch
from bench.worker.step_counter import StepCounter
from bench.worker.timed_loop import Finished, TimedLoop


class ScriptWorker:
    """Carries out the orders for a script.

    Args:
        channel: the connection to the parent.
        start: the first order.
        phases: reports what the worker is doing.
    """

    def __init__(self, channel: Channel, start: Start, phases: Phases) -> None:
        assert start.script is not None
        assert start.spec.script is not None
        self.channel = channel
        self.spec = start.spec
        self.place: ScriptRun = start.script
        self.start = start
        self.phases = phases
        self.name = start.spec.script.module or Path(self.place.file).name
        if self.place.copy_root:
            channel.renames[self.place.copy_root] = self.place.original_root
        self.program = ScriptProgram(start.spec.script, self.place, self.note)
        self.imports = TensorFlowImport(self.on_tensorflow)
        self.scout: Scout | None = None
        if self.place.target is None:
            watch = start.spec.script.watch
            self.scout = Scout(self.place.scout_seconds, watch, channel.send, self._leave)
        self.watch: Watch | None = None
        self.timed_loop: TimedLoop | None = None
        self._reporting = threading.Lock()  # held by the thread that reports, until the process ends
        self.before_first = 0.0  # seconds until the first step starts, without the imports
        self.placement: StepPlacement | None = None
        self.began = time.perf_counter()

    def note(self, text: str) -> None:
        """Send a sentence for the reader of the result."""
        self.channel.send(Note(text=text))

    def run(self) -> None:
        """Run the script, then report what was counted or measured.

        Raises:
            ProgramFailed: the script ended with an exit code other than 0.
            NothingRecognized: it did not run the steps that were looked for.
            BaseException: what the script raises, unless devbench has unwound it already.
        """
        os.chdir(self.place.folder)
        self.seeds = settings.Seeds(self.spec.seed)
        if sys.platform != "win32":
            os.register_at_fork(after_in_child=self._forget)
        self.phases.enter("import")
        self.began = time.perf_counter()
        finish: Finish | None = None
        ended = True
        self.imports.install()
        try:
            code = self.program.run()
            if code:
                raise ProgramFailed(self.name, code, self.program.err.latest())
        except Finished as finished:
            finish, ended = next(iter(finished.args), None), False
        except BaseException:
            if not self._is_finished():
                self.channel.send(PrintedRead(printed=self.program.out.read_all()))
                raise
            ended = False
        self._conclude(finish, ended)

    def _conclude(self, finish: Finish | None, ended: bool) -> None:
        """Report what was counted or measured.

        Args:
            finish: the last order. None if there was none.
            ended: whether the script ended by itself.
        """
        self._reporting.acquire()
        self.channel.send(PrintedRead(printed=self.program.out.read_all()))
        if self.scout is not None:
            reports.report_loops(self, ended and not self.scout.finished)
        elif self.start.full:
            reports.report_training(self)
        else:
            if self.timed_loop is not None and self.timed_loop.finished is not None:  # whatever the script made of it
                finish, ended = next(iter(self.timed_loop.finished.args), None), False
            reports.report_trial(self, finish, ended)
        self.channel.send(Done())

    def _leave(self, ended: bool = False) -> None:
        """Report from within the script, and end the process.

        This is necessary if the script caught the exception that unwinds it, if its steps run in another thread, or if
        it goes on after its steps.

        Args:
            ended: whether to report as if the script had ended by itself.
        """
        code = 0
        try:
            self._conclude(None, ended)
        except BaseException as error:
            print_traceback(error, self.place.file)
            self.channel.send(Failed(failure=failure_of(error, self.place.file, self.phases.current)))
            code = 1
        sys.stdout.flush()
        os._exit(code)

    def _watch_silence(self) -> None:
        """Leave if the script goes on for long after its steps."""
        from bench.worker.frames import keras_folder

        if self.scout is not None:
            self.progress: ScriptProgress = ScoutProgress(self.hook, self.scout)
        else:
            assert self.place.target is not None
            assert self.timed_loop is not None
            self.progress = TrialProgress(self.hook, self.timed_loop, self.place.target)
        libraries = (str(Path(self.seen.tf.__file__).parent), keras_folder(self.seen.tf))
        silence = Silence(self.place.timeout, self.progress, self.seen.is_program, libraries)
        activity: Activity = "recognition" if self.scout else "training" if self.start.full else "steps"
        silence.start(self._end_silent_script, lambda: self.channel.send(PhaseStarted(phase=activity)))

    def _end_silent_script(self) -> None:
        """Report what is known. This runs in a thread, while the script goes on."""
        if self._reporting.locked():
            return
        self.note(f"{self.name} went on after its last step, so devbench ended it.")
        if self.scout is not None:
            self.scout.returned = self.progress.fit_is_over
            self.scout.finished = True
        if self.watch is not None:
            self.watch.closed = True
        self._leave(ended=self.scout is None)

    def _is_finished(self) -> bool:
        """Whether devbench has unwound the script. Exceptions that the script raises afterwards are ignored."""
        if self.watch is not None and self.watch.closed:
            return True
        return bool((self.scout and self.scout.finished) or (self.timed_loop and self.timed_loop.finished))

    def _forget(self) -> None:
        """In a process that the script forked: observe nothing more, and send nothing to the parent."""
        self.channel.disconnect()
        if hasattr(self, "seen"):
            self.seen.running = Stopped()
            self.hook.observer, self.hook.passive = None, True

    def on_tensorflow(self, tf: Any) -> None:
        """Configure TensorFlow as the spec says, and start to observe it."""
        self.phases.send(PhaseEnded(phase="import", seconds=self.imports.seconds))
        from bench.worker.fit_hook import FitHook
        from bench.worker.rig import Rig, context_of
        from bench.worker.synchronize import Synchronizer
        from bench.worker.tracing import Tracing
        from bench.worker.what_ifs import WhatIfs

        device = settings.configure(tf, self.spec, self.seeds)
        self.memory = settings.memory(tf)
        self.phases.enter("build")
        stub = ModuleType(self.name)
        stub.__file__ = self.place.file
        what_ifs = WhatIfs(tf, self.spec.what_ifs, self.spec.xla, self.spec.params.get("batch"))
        ctx = context_of(self.spec, device)
        self.rig = Rig(tf, self.spec, stub, p=None, ctx=ctx, send=self.channel.send, what_ifs=what_ifs)
        self.synchronizer = Synchronizer(tf, device)
        self.hook = FitHook(tf, self.on_first_fit, self.channel.send, what_ifs)
        self.hook.wanted = self.wants_fit
        self.hook.passive = True  # except within a `fit` that is wanted
        file, target = Path(self.place.file), self.place.target
        self.seen = Observation(
            tf=tf,
            sink=self.scout or self._new_watch(tf, device),
            program=in_script(file, Path(self.place.folder)),
            roots=(Path(self.place.folder), file.parent),
            exact=target is None or target.steps_per_call is None,
            steps=1 if target is None else target.steps_per_call or 1,
            gradients=target is None or target.kind == "gradients",
            single_fits=target is None or target.kind == "single-fit",
        )
        if self.scout is not None:
            cells = self.place.cells.values()
            contained = functools.lru_cache(1)(lambda modules: contains_training(self.seen.is_program, cells))
            self.scout.may_train = lambda: contained(len(sys.modules))  # the script may import the training later
        self.seen.running.inherit_in_threads()
        self.sources = self.rig.sources = Sources(self.place.file, self.seen.name_of)
        self.tracing = Tracing(self.sources)
        self.seen.traces = lambda: self.tracing.count
        if self.scout is not None and self.place.inspect:
            from bench.worker.script.compiled_shapes import CompiledShapes
            from bench.worker.script.inspector import StepInspector
            from bench.worker.script.outside import OutsideSampler

            self.scout.inspector = StepInspector(tf, self.sources)
            self.scout.outside = OutsideSampler(self.sources)
            self.compiled_shapes = CompiledShapes(tf, self.seen.running, self.tracing)
            self.scout.arguments = lambda: self.seen.running.arguments
        own_steps = target is not None and target.kind != "fit"
        if self.watch is not None and own_steps and self.place.inspect and not self.start.full:
            assert self.timed_loop is not None
            self.watch.traced_calls = TracedCalls(tf, self.seen.running, self.tracing, self.timed_loop)
        inference.observe(self.seen)
        fits.observe(self.seen)
        self.updates = Updates(self.seen)
        if self.seen.gradients:
            Gradients(self.seen, self.scout.assigned if self.scout is not None else None)
        if self.place.target is not None and self.spec.what_ifs:
            self.updates.run_as_graph(self.place.target.token, what_ifs.step)
        self.scopes = settings.DeviceScopes(self.seen, device)
        self.compiled = settings.CompiledFunctions(self.seen, bool(self.spec.xla))
        sessions.observe(self.seen)
        self._watch_silence()

    def _new_watch(self, tf: Any, device: str) -> Watch:
        from bench.worker.epoch_timer import EpochTimer

        target = self.place.target
        assert target is not None
        trains = target.trains

        def sync(value: Any) -> float:
            return self.synchronizer.sync(number_in(tf, value))

        def loss(value: Any) -> float:
            return self.synchronizer.loss(number_in(tf, value), only_finite=not trains)

        precision = "reduced" if self.spec.dtype.startswith("mixed") else "exact"
        make = StepCounter if self.start.full else TimedLoop
        timed_loop = self.timed_loop = make(self.channel, sync, loss, precision, trains)  # type: ignore[arg-type]
        timed_loop.trace_seconds = lambda: self.tracing.seconds - self.synchronizer.trace_seconds
        if isinstance(timed_loop, StepCounter):
            timed_loop.expected = target.steps
        else:
            from bench.worker.diagnose.profiler import Profiler

            timed_loop.profiler = Profiler(tf, device, lambda: target.kind == "fit" and tf.__version__ < "2.16")
        self.timer = EpochTimer(timed_loop, self.hook.epochs, sync, timed_loop.losses)
        self.hook.observer = timed_loop if isinstance(timed_loop, StepCounter) else self.timer
        check = None
        if self.place.check_placement and target.kind != "fit" and not self.start.full:
            self.placement = StepPlacement(tf, device)
            check = self._check_placement
        self.synchronous = "CPU" in device or target.kind.startswith("session")
        self.watch = Watch(target, timed_loop, self.on_first_step, check, self.synchronous, self._leave)
        return self.watch

    def _check_placement(self, on: bool) -> None:
        assert self.placement is not None
        self.seen.checking = on
        self.placement.switch(on)

    def wants_fit(self) -> bool:
        """Whether the `fit` that starts now is observed. A trial observes only that of its loop."""
        if self.seen.running.depth != 1 or not self.seen.tf.executing_eagerly():  # one of Keras or of a callback
            return False
        if self._is_finished():
            self._leave()
        call = self.seen.call("fit", "fit")
        if self.scout is not None:
            self.hook.observer = self.scout.fit(call, self.hook)
            return True
        return self.place.target is not None and call.token == self.place.target.token

    def on_first_fit(self, model: Any) -> None:
        """Prepare for the first step of a model in `fit`."""
        if self.timed_loop is None:
            return
        self.rig.what_ifs.check()
        if not self.before_first:
            self.tracing.by_function.clear()
        self.synchronizer.observe(model)
        self.timed_loop.losses.running_mean = type(model).train_step is self.rig.tf.keras.Model.train_step
        if not self.before_first:
            self._end_build(self.hook.fit_start)
            self.phases.current = "first_step"
        self.timed_loop.end_set_up()
        self.timed_loop.begin()

    def on_first_step(self, model: Any) -> None:
        """Prepare for the first step of a model, in a loop other than `fit`. The call that ran it has returned."""
        assert self.timed_loop is not None
        if model is not None:
            self.synchronizer.observe(Updated(model.trainable_variables))  # the script may let go of the model
        if self.before_first:
            return
        self.tracing.by_function.clear()  # what was traced before the loop is not traced again
        self._end_build(self.timed_loop.clock.start)

    def _end_build(self, at: float) -> None:
        """Report the phase `build`: the time until `fit` or another first step starts, without the imports."""
        self.before_first = max(0.0, at - self.began - self.imports.seconds)
        self.channel.send(PhaseEnded(phase="build", seconds=self.before_first))
        settings.report(self.rig.tf, self.spec, self.channel.send)
