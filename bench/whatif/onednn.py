"""The what-if `onednn`: oneDNN's kernels on the CPU off, or on where they are off."""

from __future__ import annotations

from collections.abc import Iterator

from bench.whatif import Program, WhatIf


def candidates(program: Program) -> Iterator[WhatIf]:
    """Yield the other choice on the CPU."""
    if program.spec.backend != "cpu":
        return
    if program.spec.onednn:
        yield WhatIf("without oneDNN", "--no-onednn", "oneDNN kernels, which are slower here", {"onednn": False})
    else:
        yield WhatIf("with oneDNN", "--onednn", "kernels without oneDNN", {"onednn": True})
