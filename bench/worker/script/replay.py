"""Takes the steps out of a script, so that devbench can run them in its own loops.

The script runs up to its call of `fit`, which does not start, or through a few calls of its `tf.function`
(`replay_function`). Then an exception unwinds the script. Its model and data, or its function, become a rig, like that
of a workload.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from bench.errors import NotApplicable
from bench.model.recognition import StepSource
from bench.worker.channel import Channel
from bench.worker.cluster.member import Member
from bench.worker.cluster.strategy import train_as_one
from bench.worker.failure import ProgramFailed
from bench.worker.patches import patched
from bench.worker.phases import Phases
from bench.worker.protocol import Note, PhaseEnded, PrintedRead, Start
from bench.worker.script import fit_data, settings
from bench.worker.script.calls import Observation, in_script
from bench.worker.script.imports import TensorFlowImport
from bench.worker.script.program import ScriptProgram
from bench.worker.script.replay_function import FunctionCalls


class Captured(BaseException):
    """Unwinds the script once its steps are known. No `except Exception` catches it."""


def capture(channel: Channel, start: Start, phases: Phases, member: Member | None = None) -> Any:
    """Run the script up to the chosen steps. Return a rig that can run these steps.

    Args:
        channel: the connection to the parent.
        start: the first order.
        phases: reports phases.
        member: this worker as one of several. The script runs under its strategy. None if the worker is alone.

    Raises:
        NotApplicable: the script does not reach the steps, or devbench cannot run them.
        ProgramFailed: the script ended with an exit code other than 0 before it reached them.
        BaseException: what the script raises.
    """
    return _Capture(channel, start, phases, member).run()


class _FitReplay:
    """Captures a call of `fit`, which does not start.

    Args:
        tf: TensorFlow.
        seen: knows which line makes a call.
        target: the loop that the call belongs to.
        batch: the examples per step. None if the script decides.
        strategy: the strategy that devbench runs the script under. None if there is none.

    Attributes:
        capturing: the context in which the call is captured.
    """

    def __init__(self, tf: Any, seen: Observation, target: StepSource, batch: int | None, strategy: Any) -> None:
        self._tf = tf
        self._strategy = strategy
        self._batch = batch
        self._model: Any = None
        self._arguments: dict[str, Any] = {}
        original = tf.keras.Model.fit
        signature = inspect.signature(original)

        @functools.wraps(original)
        def fit(model: Any, *args: Any, **kwargs: Any) -> Any:
            if seen.call("fit", "fit").token != target.token:
                return original(model, *args, **kwargs)
            if self._model is None:
                self._arguments = dict(signature.bind(model, *args, **kwargs).arguments)
                self._model = self._arguments.pop("self")
            raise Captured

        self.capturing = patched(tf.keras.Model, fit=fit)

    @property
    def found(self) -> bool:
        """Whether the call was captured."""
        return self._model is not None

    def parts(self, place: str) -> tuple[dict[str, Any], Any]:
        """Return what a workload would define, by name, and its parameters.

        Args:
            place: the call in words, for messages.

        Raises:
            NotApplicable: devbench cannot train as the call does.
        """
        tf, model, arguments = self._tf, self._model, self._arguments
        if reason := fit_data.obstacle(tf, model, arguments, self._strategy):
            raise NotApplicable(f"{place} cannot be replayed, because {reason}")
        p = SimpleNamespace(epochs=int(arguments.get("epochs") or 1))
        data, batch = fit_data.training_data(tf, arguments)
        if batch is not None:
            p.batch = self._batch or batch
        return {"data": lambda: data, "model": lambda: model}, p


class _Capture:
    def __init__(self, channel: Channel, start: Start, phases: Phases, member: Member | None) -> None:
        assert start.script is not None
        assert start.spec.script is not None
        assert start.script.target is not None
        self.channel = channel
        self.spec = start.spec
        self.place = start.script
        self.target = start.script.target
        self.phases = phases
        self.member = member
        self.scope = contextlib.ExitStack()
        self.name = start.spec.script.module or Path(self.place.file).name
        self.steps: _FitReplay | FunctionCalls | None = None
        self.unwound: BaseException | None = None
        if self.place.copy_root:
            channel.renames[self.place.copy_root] = self.place.original_root
        self.program = ScriptProgram(start.spec.script, self.place, lambda text: channel.send(Note(text=text)))
        self.imports = TensorFlowImport(self._on_tensorflow)

    @property
    def found(self) -> bool:
        """Whether the steps were captured."""
        return self.steps is not None and self.steps.found

    def run(self) -> Any:
        os.chdir(self.place.folder)
        self.seeds = settings.Seeds(self.spec.seed)
        if sys.platform != "win32":
            os.register_at_fork(after_in_child=self.channel.disconnect)
        self.phases.enter("import")
        began = time.perf_counter()
        self.imports.install()
        code = 0
        try:
            with self.scope:
                code = self.program.run()
        except BaseException as error:
            if not self.found:
                raise
            self.unwound = error
        self.channel.send(PrintedRead(printed=self.program.out.read_all()))
        if not self.found and code:
            raise ProgramFailed(self.name, code, self.program.err.latest())
        if self.steps is None or not self.found:
            raise NotApplicable(f"{self.name} did not reach {self.target.place} this time")
        self.channel.send(PhaseEnded(phase="build", seconds=time.perf_counter() - began - self.imports.seconds))
        settings.report(self._tf, self.spec, self.channel.send)
        return self._rig(*self.steps.parts(self.target.place))

    def _on_tensorflow(self, tf: Any) -> None:
        self.channel.send(PhaseEnded(phase="import", seconds=self.imports.seconds))
        self._tf, self._device = tf, settings.configure(tf, self.spec, self.seeds)
        strategy = None
        if self.member is not None:
            self.member.start(tf)
            strategy = self.member.strategy
        if strategy is not None:
            self.scope.enter_context(strategy.scope())
        self.phases.enter("build")
        file, folder = Path(self.place.file), Path(self.place.folder)
        seen = Observation(
            tf=tf,
            sink=None,  # type: ignore[arg-type] # nothing is counted
            program=in_script(file, folder),
            roots=(folder, file.parent),
        )
        if self.target.kind == "fit":
            self.steps = _FitReplay(tf, seen, self.target, self.spec.params.get("batch"), strategy)
        else:
            if strategy is not None:
                train_as_one(tf, strategy.num_replicas_in_sync)
            self.steps = FunctionCalls(tf, seen, self.target, Captured, strategy)
        self.scope.enter_context(self.steps.capturing)

    def _rig(self, defined: Mapping[str, Any], p: Any) -> Any:
        from bench.worker.rig import Rig, context_of
        from bench.worker.what_ifs import WhatIfs

        module = ModuleType(self.name)
        module.__dict__.update(__file__=self.place.file, **defined)
        what_ifs = WhatIfs(self._tf, self.spec.what_ifs, self.spec.xla)
        ctx = context_of(self.spec, self._device)
        rig = Rig(self._tf, self.spec, module, p, ctx, self.channel.send, what_ifs, self.member)
        if "step" in defined:
            rig.unwound = self.unwound
        if "model" in defined:
            rig.data, rig.model = defined["data"](), defined["model"]()
            rig.facts.batch = getattr(p, "batch", None)
            what_ifs.pin_xla(rig.model)
        return rig
