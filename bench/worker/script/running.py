"""What runs in a thread of a script, as far as the observers of its steps must know."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Mapping
from typing import Any

from bench.model.recognition import StepKind

Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]
"""The arguments of a call: by position, and by name."""

CONCRETE: Arguments = ((), {"concrete": True})
"""Stands for the arguments of a concrete function."""


class Running(threading.local):
    """What runs in the current thread. Each thread of a script has steps of its own.

    A thread that is started within an observed call belongs to this call, such as that of a replica.

    Attributes:
        depth: how many observed calls are running. Only the outermost one is a step.
        functions: the `tf.functions` that are running or being traced, the outermost one first.
        whole: the calls of `predict` and `evaluate` that are running.
        batches_left: batches that are left of the outermost one of them. Infinite if that is not known.
        applying: how many methods that apply gradients are running.
        loss: the loss whose gradients were computed last. None if they have been applied.
        tapes: the ids of the open tapes.
        differentiating: whether a tape computes a gradient.
        arguments: the arguments of the latest outermost call of a `tf.function`. None if an eager update followed.
            `CONCRETE` if it was a concrete function.
    """

    def __init__(self) -> None:
        # TensorFlow's own threads run the Python functions of a pipeline. Their calls are no steps.
        is_foreign = isinstance(threading.current_thread(), threading._DummyThread)
        self.depth = sys.maxsize if is_foreign else 0
        self.functions: list[Any] = []
        self.whole: list[StepKind] = []
        self.batches_left = math.inf
        self.applying = 0
        self.loss: Any = None
        self.tapes: list[int] = []
        self.differentiating = False
        self.arguments: Arguments | None = None

    def inherit_in_threads(self) -> None:
        """Let threads that are started from now on inherit what runs in the thread that starts them."""
        start = threading.Thread.start

        def inheriting(thread: threading.Thread) -> None:
            if self.depth or self.applying:
                depth, functions, applying, run = self.depth, [*self.functions], self.applying, thread.run

                def run_within() -> None:
                    self.depth, self.functions, self.applying = depth, functions, applying
                    run()

                thread.run = run_within  # type: ignore[method-assign]
            elif getattr(thread, "replica_id", 0):  # a strategy runs the step once in each replica
                run = thread.run

                def run_unseen() -> None:
                    self.depth = sys.maxsize
                    run()

                thread.run = run_unseen  # type: ignore[method-assign]
            start(thread)

        threading.Thread.start = inheriting  # type: ignore[method-assign,assignment]


class Stopped(Running):
    """What runs in a thread in which nothing is observed any more."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = sys.maxsize
