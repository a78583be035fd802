"""Finds the function of a script that is its eager step, so that another function can take its place."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from bench.worker.script.calls import Observation, ScriptCall


class EagerSteps:
    """Learns from the first two updates of a loop which function the script calls once for each step.

    Args:
        seen: what the observers share.

    Attributes:
        names: the name of that function by the loop's token. Empty if no such function was found, or none that can be
            replaced.
        change: is called once for each loop with the loop and the function, and returns the replacement. May be None.
        ineffective: whether a step was eager although it was replaced, because the script keeps the function elsewhere.
    """

    def __init__(self, seen: Observation) -> None:
        self._seen = seen
        self._first: dict[str, list[FrameType]] = {}
        self.names: dict[str, str] = {}
        self.change: Callable[[ScriptCall, Any], Any] | None = None
        self.ineffective = False
        self._changed: set[str] = set()

    def updated(self, call: ScriptCall) -> None:
        """Take note of an eager update. The update must still be on the stack."""
        if (token := call.token) in self.names:
            self.ineffective |= token in self._changed
            return
        frames = self._frames()
        first = self._first.get(token)
        if first is None:
            self._first[token] = frames
            return
        self._first[token] = []
        new = next((b for a, b in zip(first, frames, strict=False) if a is not b), None)
        holder = _holder(new) if new is not None else None
        self.names[token] = new.f_code.co_name if new is not None and holder is not None else ""
        if holder is not None and self.change is not None:
            owner, function = holder
            changed = self.change(call, function)
            if changed is function:
                return
            self._changed.add(token)
            if owner is not None:
                setattr(owner, function.__name__, changed)
            for names in {id(frame.f_globals): frame.f_globals for frame in frames}.values():  # modules that import it
                names.update({name: changed for name, value in names.items() if value is function})

    def forget_frames(self) -> None:
        """Let go of the frames of first steps, which keep the objects of the script alive."""
        self._first = {token: [] for token, frames in self._first.items() if not frames}

    def _frames(self) -> list[FrameType]:
        """Return the frames of the script that are being executed, the outermost first."""
        frames: list[FrameType] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._seen.is_program(frame.f_code.co_filename):
                frames.insert(0, frame)
            frame = frame.f_back
        return frames


def _holder(frame: FrameType) -> tuple[Any, Any] | None:
    """Return the owner of the function that a frame runs, and the function itself.

    Returns:
        The owner is the class of a method, and None for a function of a module. None instead of both if the function is
        held elsewhere.
    """
    code = frame.f_code
    function = frame.f_globals.get(code.co_name)
    if getattr(function, "__code__", None) is code:
        return None, function
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    for kind in type(first).__mro__ if first is not None else ():
        function = vars(kind).get(code.co_name)
        if getattr(function, "__code__", None) is code:
            return kind, function
    return None
