"""The what-if `xla`: Turn XLA on, or off if it is on."""

from __future__ import annotations

from collections.abc import Iterator

from bench.backends import capabilities
from bench.model.step_parts import StepPart
from bench.whatif import Program, WhatIf

ACTS_ON: frozenset[StepPart] = frozenset({"dispatch", "computing"})
ON = "Compile with XLA: compile(jit_compile=True), or tf.function(jit_compile=True)."
OFF = ADVICE = "Compile without XLA: jit_compile=False."


def candidates(program: Program) -> Iterator[WhatIf]:
    """Yield the other choice, unless the program decides by itself in a loop of its own, or the backend has no XLA."""
    if program.own_loop:
        return
    if program.compiled:
        yield WhatIf("without XLA", "--xla off", "XLA, which is slower here", {"xla": False}, advice=OFF)
    elif capabilities(program.spec.backend).xla:
        yield WhatIf("with XLA", "--xla on", "missing fusion", {"xla": True}, advice=ON)
