"""TensorFlow's profiler around some steps, controlled by the timed loop. Worker's side only.

Steps are marked as Keras marks them, so that TensorBoard's profile plug-in tells them apart. devbench does not mark
steps if Keras does, or if one call runs several steps.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.model.profile import Profile
from bench.worker.diagnose import xplane


class Profiler:
    """Starts and stops a trace.

    Args:
        tf: TensorFlow.
        device: the device that the steps run on.
        marked_elsewhere: returns whether devbench must not mark steps. It is asked only once steps run.
    """

    def __init__(self, tf: Any, device: str, marked_elsewhere: Callable[[], bool]) -> None:
        self._tf = tf
        self._device = device
        self._marked_elsewhere = marked_elsewhere
        self._open: list[Any] = []

    @property
    def marks(self) -> bool:
        """Whether devbench marks each step. `step` must then be called for each."""
        return not self._marked_elsewhere()

    def start(self, folder: str) -> None:
        """Start the trace. The next step is its first."""
        self._folder = Path(folder)
        self._tf.profiler.experimental.start(folder)
        self._mark(xplane.WINDOW)
        self.step(0)

    def step(self, number: int) -> None:
        """Mark the start of a step, if devbench marks steps."""
        if self.marks:
            self._close(1)
            self._mark(xplane.STEP, step_num=number, _r=1)

    def stop(self, steps: int) -> Profile:
        """Stop the trace and read it.

        Args:
            steps: number of steps that were traced. All of them must be done.
        """
        self._close(0)
        self._tf.profiler.experimental.stop()
        return xplane.read(self._folder, self._device, steps)

    def _mark(self, name: str, **attributes: int) -> None:
        event = self._tf.profiler.experimental.Trace(name, **attributes)
        event.__enter__()
        self._open.append(event)

    def _close(self, keep: int) -> None:
        while len(self._open) > keep:
            self._open.pop().__exit__(None, None, None)
