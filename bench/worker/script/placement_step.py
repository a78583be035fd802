"""The placement check of a script: one of its own steps runs while TensorFlow collects graphs."""

from __future__ import annotations

import contextlib
from typing import Any

from bench.model.placement import Placement
from bench.worker.diagnose.placement import collected_nodes, judge


class StepPlacement:
    """Collects the nodes of one step.

    Args:
        tf: TensorFlow.
        device: the device asked for.
    """

    def __init__(self, tf: Any, device: str) -> None:
        self._tf = tf
        self._device = device
        self._stack = contextlib.ExitStack()
        self._nodes: list[Any] = []

    def switch(self, on: bool) -> None:
        """Begin to collect nodes (True), or end it (False)."""
        if on:
            self._nodes = self._stack.enter_context(collected_nodes(self._tf, calls=False))
        else:
            self._stack.close()

    def read(self) -> Placement:
        """Return where the operations of the step ran."""
        self._stack.close()  # in case the script ended within the step
        return judge(self._nodes, self._device, "graphs of a step of the script")
