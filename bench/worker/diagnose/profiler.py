"""TensorFlow's profiler around some steps, as the conductor asks for it. Worker's side only.

Steps are marked as Keras marks them, so that TensorBoard's profile plugin tells one from the next; where Keras
already does, or one call issues several, there are no marks of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.model.result import Profile
from bench.worker.diagnose import xplane


class Profiler:
    """Starts and stops a trace.

    Args:
        tf: TensorFlow.
        device: where the steps run.
        marked: whether steps are not to be marked here, as is known once they run.
    """

    def __init__(self, tf: Any, device: str, marked: Callable[[], bool]) -> None:
        self._tf = tf
        self._device = device
        self._marked = marked
        self._open: list[Any] = []

    @property
    def marks(self) -> bool:
        """Whether each step is marked, for which each must be told of."""
        return not self._marked()

    def start(self, folder: str) -> None:
        """Begins the trace; the next step is its first."""
        self._folder = Path(folder)
        self._tf.profiler.experimental.start(folder)
        self._mark(xplane.WINDOW)
        self.step(0)

    def step(self, number: int) -> None:
        """The step of this number begins."""
        if self.marks:
            self._close(1)
            self._mark(xplane.STEP, step_num=number, _r=1)

    def stop(self, steps: int) -> Profile:
        """Ends the trace of so many steps, all of which are done, and reads it."""
        self._close(0)
        self._tf.profiler.experimental.stop()
        return xplane.read(self._folder, self._device, steps)

    def _mark(self, name: str, **known: int) -> None:
        event = self._tf.profiler.experimental.Trace(name, **known)
        event.__enter__()
        self._open.append(event)

    def _close(self, keep: int) -> None:
        while len(self._open) > keep:
            self._open.pop().__exit__(None, None, None)
