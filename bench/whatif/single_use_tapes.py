"""The what-if `single-use-tapes`: Make persistent gradient tapes that compute one gradient each not persistent."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "gradient tapes that are not persistent"
CAUSE = "persistent tapes"
ACTS_ON: frozenset[StepPart] = frozenset({"own loop", "dispatch", "computing"})
ADVICE = "Leave out persistent=True where a tape computes one gradient."
TESTS_SUSPECT = True


def applies(program: Program) -> bool:
    """Return whether steps make persistent tapes, and none of them computes several gradients."""
    tapes = program.facts.persistent_tapes
    return tapes is not None and tapes.per_step > 0 and not tapes.several_gradients


def change_tensorflow(tf: Any, on_changed: Callable[[], None]) -> None:
    """Let no tape that runs eagerly be persistent."""
    kind = tf.GradientTape
    original = kind.__init__

    @functools.wraps(original)
    def create(tape: Any, persistent: bool = False, *args: Any, **kwargs: Any) -> None:
        if persistent and tf.executing_eagerly():
            on_changed()
            persistent = False
        original(tape, persistent, *args, **kwargs)

    kind.__init__ = create
