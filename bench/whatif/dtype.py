"""The what-if `dtype`: Use a dtype policy with fewer bits."""

from __future__ import annotations

from collections.abc import Iterator

from bench.backends import capabilities
from bench.model.step_parts import StepPart
from bench.whatif import Program, WhatIf

ACTS_ON: frozenset[StepPart] = frozenset({"copies", "computing"})


def candidates(program: Program) -> Iterator[WhatIf]:
    """Yield the next narrower dtypes that the backend supports well. None if a script sets the dtype itself."""
    spec = program.spec
    if program.facts.dtype_policy is not None:
        return
    narrower = {
        "float64": ("float32",),
        "float32": capabilities(spec.backend).dtypes,
    }
    for dtype in narrower.get(spec.dtype, ()):
        if dtype not in program.unsupported_dtypes:
            cause = f"more bits than needed ({spec.dtype})"
            advice = f"Compute in {dtype}: keras.mixed_precision.set_global_policy({dtype!r})."
            yield WhatIf(f"in {dtype}", f"--dtype {dtype}", cause, {"dtype": dtype}, advice=advice)
