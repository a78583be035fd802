"""The what-if `onednn`: Turn oneDNN's kernels off, or on if they are off."""

from __future__ import annotations

from collections.abc import Iterator

from bench.backends import capabilities
from bench.whatif import Program, WhatIf


def candidates(program: Program) -> Iterator[WhatIf]:
    """Yield the other choice, if the backend has one."""
    if not capabilities(program.spec.backend).onednn:
        return
    if program.spec.onednn:
        yield WhatIf("without oneDNN", "--no-onednn", "oneDNN kernels, which are slower here", {"onednn": False})
    else:
        yield WhatIf("with oneDNN", "--onednn", "kernels without oneDNN", {"onednn": True})
