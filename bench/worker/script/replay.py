"""Takes model and data out of a script's call of `fit`, so that devbench can train with them in its own loops.

The script runs until that call, which never starts. An exception unwinds the script. What is left is a rig, like that
of a workload.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from bench.errors import NotApplicable
from bench.registry.program_errors import is_program
from bench.worker import examples
from bench.worker.channel import Channel
from bench.worker.failure import ProgramFailed
from bench.worker.phases import Phases
from bench.worker.protocol import Note, PhaseEnded, PrintedRead, Start
from bench.worker.script import settings
from bench.worker.script.calls import Observation
from bench.worker.script.imports import TensorFlowImport
from bench.worker.script.program import ScriptProgram

BATCH = 32
"""The examples of a step if a call of `fit` does not say."""


class Captured(BaseException):
    """Unwinds the script once its call of `fit` is known. No `except Exception` catches it."""


def obstacle(tf: Any, model: Any, arguments: Mapping[str, Any]) -> str | None:
    """Return why devbench cannot train as a call of `fit` does in its own loops, as a clause. None if it can.

    Args:
        tf: TensorFlow.
        model: the model.
        arguments: the arguments by name.
    """
    x = arguments.get("x")
    strategy = getattr(model, "distribute_strategy", None)
    if strategy is not None and not type(strategy).__name__.startswith("_Default"):
        return f"the model trains under a {type(strategy).__name__}"
    if arguments.get("class_weight"):
        return "fit gets a class_weight"
    if isinstance(x, tf.data.Dataset) or examples.is_py_dataset(tf, x):
        return None
    if x is None or isinstance(x, Iterator) or inspect.isgenerator(x):
        return "its data are a generator, which can be read only once"
    parts = [arguments[name] for name in ("x", "y", "sample_weight") if arguments.get(name) is not None]
    if any(isinstance(part, (tf.SparseTensor, tf.RaggedTensor)) for part in tf.nest.flatten(parts)):
        return "its data are sparse or ragged"
    try:
        fits = examples.arrays(tf, _arrays(tf, parts)) is not None
    except Exception:  # whatever the data are, they cannot be converted
        fits = False
    return None if fits else f"its data are a {type(x).__name__}, which devbench cannot divide into batches"


def capture(channel: Channel, start: Start, phases: Phases) -> Any:
    """Run the script until the call of `fit` that was chosen. Return a rig with its model and data.

    Raises:
        NotApplicable: the script does not reach the call, or devbench cannot train as it does.
        BaseException: what the script raises.
    """
    return _Capture(channel, start, phases).run()


class _Capture:
    def __init__(self, channel: Channel, start: Start, phases: Phases) -> None:
        assert start.script is not None
        assert start.spec.script is not None
        assert start.script.target is not None
        self.channel = channel
        self.spec = start.spec
        self.place = start.script
        self.target = start.script.target
        self.phases = phases
        self.name = start.spec.script.module or Path(self.place.file).name
        self.model: Any = None  # that of the call, which did not start
        self.arguments: dict[str, Any] = {}
        if self.place.copy_root:
            channel.renames[self.place.copy_root] = self.place.original_root
        self.program = ScriptProgram(start.spec.script, self.place, lambda text: channel.send(Note(text=text)))
        self.imports = TensorFlowImport(self._on_tensorflow)

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
            code = self.program.run()
        except BaseException:
            if self.model is None:
                raise
        self.channel.send(PrintedRead(printed=self.program.out.read_all()))
        if self.model is None and code:
            raise ProgramFailed(self.name, code, self.program.err.latest())
        if self.model is None:
            raise NotApplicable(f"{self.name} did not reach {self.target.place} this time")
        self._tf.keras.Model.fit = self._fit
        self.channel.send(PhaseEnded(phase="build", seconds=time.perf_counter() - began - self.imports.seconds))
        settings.report(self._tf, self.spec, self.channel.send)
        return self._rig()

    def _on_tensorflow(self, tf: Any) -> None:
        self.channel.send(PhaseEnded(phase="import", seconds=self.imports.seconds))
        self._tf, self._device = tf, settings.configure(tf, self.spec, self.seeds)
        self._fit = tf.keras.Model.fit
        self.phases.enter("build")
        file, folder = Path(self.place.file), Path(self.place.folder)
        seen = Observation(
            tf=tf,
            sink=None,  # type: ignore[arg-type] # nothing but `fit` is observed
            program=lambda path: (
                is_program(Path(path), file) or (folder in Path(path).parents and "site-packages" not in path)
            ),
            root=folder,
        )
        signature = inspect.signature(self._fit)

        @functools.wraps(self._fit)
        def fit(model: Any, *args: Any, **kwargs: Any) -> Any:
            if seen.call("fit", "fit").token != self.target.token:
                return self._fit(model, *args, **kwargs)
            if self.model is None:
                self.arguments = dict(signature.bind(model, *args, **kwargs).arguments)
                self.model = self.arguments.pop("self")
            raise Captured

        tf.keras.Model.fit = fit

    def _rig(self) -> Any:
        from bench.worker.rig import Rig
        from bench.worker.what_ifs import WhatIfs
        from bench.workloads import Context

        tf, model, arguments = self._tf, self.model, self.arguments
        if reason := obstacle(tf, model, arguments):
            raise NotApplicable(f"{self.target.place} cannot be replayed, because {reason}")
        data = arguments["x"]
        p = SimpleNamespace(epochs=int(arguments.get("epochs") or 1))
        if not isinstance(data, tf.data.Dataset) and not examples.is_py_dataset(tf, data):
            data, p.batch = _training_arrays(tf, arguments), int(arguments.get("batch_size") or BATCH)
        module = ModuleType(self.name)
        module.__dict__.update(__file__=self.place.file, data=lambda: data, model=lambda: model)
        ctx = Context(
            rng=np.random.default_rng([self.spec.seed, 0]),
            device=self._device,
            backend=self.spec.backend,
            dtype=self.spec.dtype,
            seed=self.spec.seed,
            _load=lambda name: None,
        )
        what_ifs = WhatIfs(tf, self.spec.what_ifs, self.spec.xla)
        rig = Rig(tf=tf, spec=self.spec, module=module, p=p, ctx=ctx, send=self.channel.send, what_ifs=what_ifs)
        rig.data, rig.model = data, model
        what_ifs.pin_xla(model)
        return rig


def _training_arrays(tf: Any, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the arrays that `fit` trains on: x, y and sample weights, without the part that it validates with."""
    parts = [arguments.get(name) for name in ("x", "y", "sample_weight")]
    while parts[-1] is None:
        parts.pop()
    arrays = _arrays(tf, parts)
    split = arguments.get("validation_split") or 0.0
    count = examples.count(tf, arrays)
    kept = int(count * (1.0 - split)) if split else count
    return tuple(tf.nest.map_structure(lambda array: array[:kept], arrays))


def _arrays(tf: Any, parts: Any) -> tuple[Any, ...]:
    """Return nested arrays, tensors and data frames as NumPy arrays. Lists of arrays become tuples."""
    return tuple(tf.nest.map_structure(np.asarray, examples.as_tuple(parts)))
