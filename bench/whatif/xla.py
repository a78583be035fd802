"""The what-if `xla`: Turn XLA on, or off if it is on."""

from __future__ import annotations

from collections.abc import Iterator

from bench.backends import capabilities
from bench.whatif import Program, WhatIf


def candidates(program: Program) -> Iterator[WhatIf]:
    """Yield the other choice, unless the program decides by itself in a loop of its own, or the backend has no XLA."""
    if program.own_loop:
        return
    if program.compiled:
        yield WhatIf("without XLA", "--xla off", "XLA, which is slower here", {"xla": False})
    elif capabilities(program.spec.backend).xla:
        yield WhatIf("with XLA", "--xla on", "missing fusion", {"xla": True})
