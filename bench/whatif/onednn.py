"""The what-if `onednn`: Turn oneDNN's kernels off, or on if they are off."""

from __future__ import annotations

from collections.abc import Iterator

from bench.backends import capabilities
from bench.model.step_parts import StepPart
from bench.whatif import Program, WhatIf

ACTS_ON: frozenset[StepPart] = frozenset({"computing"})


def candidates(program: Program) -> Iterator[WhatIf]:
    """Yield the opposite setting, if the backend has oneDNN."""
    if not capabilities(program.spec.backend).onednn:
        return
    if program.spec.onednn:
        cause, advice = "oneDNN kernels, which are slower here", "Turn oneDNN off: TF_ENABLE_ONEDNN_OPTS=0."
        yield WhatIf("without oneDNN", "--no-onednn", cause, {"onednn": False}, advice=advice)
    else:
        advice = "Turn oneDNN on: TF_ENABLE_ONEDNN_OPTS=1."
        yield WhatIf("with oneDNN", "--onednn", "kernels without oneDNN", {"onednn": True}, advice=advice)
