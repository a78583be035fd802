"""The lines of a script whose calls are steps, and the interface between observers of steps and sinks."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.model.recognition import StepKind
from bench.registry.program_errors import is_installed, is_program
from bench.worker.script.running import Running


def in_script(file: Path, folder: Path) -> Callable[[str], bool]:
    """Return a function that tells by its path whether a source file is the script's, and not installed.

    Args:
        file: the script's file.
        folder: its working folder.
    """
    places = (file, folder / file.name)
    # As with `python -m`. The folder of a module without a package holds other projects.
    package = file.parent if is_installed(file) and str(file.parent) not in sys.path else None
    return lambda path: any(is_program(Path(path), place) for place in places) or package in Path(path).parents


@dataclass(frozen=True)
class ScriptCall:
    """A line of the script whose calls are steps.

    Attributes:
        kind: what a step is.
        name: what is called.
        file: the script's file, relative to its folder; empty if no line of the script calls it.
        line: number of the line. 0 if no line of the script calls it.
        detail: distinguishes what one line calls, such as several optimizers.
    """

    kind: StepKind
    name: str
    file: str
    line: int
    detail: str = ""

    @functools.cached_property
    def token(self) -> str:
        """A text that names the call in every process of the script."""
        return f"{self.kind} {self.file}:{self.line} {self.name} {self.detail}".rstrip()


class Updated:
    """The variables that a step changed, under the name that they have in a Keras model.

    Args:
        variables: the variables.
    """

    built = True

    def __init__(self, variables: Any) -> None:
        self.trainable_variables = list(variables)


class Sink(Protocol):
    """Receives the steps that observers see.

    Attributes:
        awaits_start: whether it wants to know when a step may start. Observers may skip `starting` otherwise.
    """

    awaits_start: bool

    def starting(self, what: str) -> None:
        """Take note that a step may start now.

        Args:
            what: "tape" if a gradient tape is opened; otherwise the kind of step that the call may be.
        """

    def step(self, call: ScriptCall, steps: int, value: Any, model: Any) -> None:
        """Take note that a call ran steps.

        Args:
            call: the line that ran them.
            steps: number of steps. 0 if the call is a part of the next step.
            value: what the call returned.
            model: holds the variables that the call changed, as `trainable_variables`. None if it changed none.
        """


@dataclass
class Observation:
    """What the observers share.

    Attributes:
        tf: TensorFlow.
        sink: receives the steps.
        program: returns whether a source file, by its path, is the script's.
        roots: the folders to which names of files are relative, the first one that contains the file.
        running: what runs in the current thread.
        checking: whether functions are called so that they leave graphs, for the placement check.
        exact: whether the steps of each call are counted. If not, each call has the same number, as the scout found.
        steps: this number.
        traces: returns how many graphs have been traced so far.
        gradients: whether gradients of eager tapes may be steps.
        single_fits: whether calls of `fit` may be steps.
    """

    tf: Any
    sink: Sink
    program: Callable[[str], bool]
    roots: Sequence[Path]
    running: Running = field(default_factory=Running)
    exact: bool = True
    steps: int = 1
    traces: Callable[[], int] = lambda: 0
    gradients: bool = True
    single_fits: bool = True
    checking: bool = False
    _names: dict[str, str] = field(default_factory=dict)
    _calls: dict[tuple[StepKind, str, str, int, str], ScriptCall] = field(default_factory=dict)
    _at: dict[tuple[StepKind, str, int, int, str], tuple[ScriptCall, Any]] = field(default_factory=dict)
    """The call at each instruction of a code object, by the object's id, with the object, so that it keeps its id."""

    @functools.cached_property
    def thread(self) -> Any:
        """TensorFlow's state of the calling thread. It is read directly, since `tf.executing_eagerly` is slower."""
        from tensorflow.python.eager import context

        return context.context()._thread_local_data

    @property
    def eager(self) -> bool:
        """Whether the caller runs eagerly and outside every observed call."""
        return not self.running.depth and bool(self.thread.is_eager)

    def call(self, kind: StepKind, name: str, detail: str = "") -> ScriptCall:
        """Return the call that the innermost line of the script makes now. Every step runs this: keep it short."""
        names = self._names
        file, code, place = "", None, 0
        frame: Any = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            path = code.co_filename
            file = names[path] if path in names else self.name_of(path)
            if file:
                place = frame.f_lasti  # the number of the line takes longer to find
                break
            frame = frame.f_back
        at = kind, name, id(code), place, detail
        known = self._at.get(at)
        if known is not None:
            return known[0]
        key = kind, name, file, frame.f_lineno if frame is not None else 0, detail
        call = self._calls.setdefault(key, ScriptCall(*key))
        self._at[at] = call, code
        return call

    def is_program(self, path: str) -> bool:
        """Whether a source file is the script's."""
        return bool(self.name_of(path))

    def name_of(self, path: str) -> str:
        """Return the name of a file of the script relative to its folder. Empty if the file is not the script's."""
        if path not in self._names:
            name = ""
            if self.program(path):
                root = next((root for root in self.roots if root in Path(path).parents), None)
                name = Path(path).relative_to(root).as_posix() if root is not None else path
            self._names[path] = name
        return self._names[path]
