"""The what-if `dtype`: a dtype policy with fewer bits."""

from __future__ import annotations

from collections.abc import Iterator

from bench.whatif import Program, WhatIf


def candidates(program: Program) -> Iterator[WhatIf]:
    """Yield the next narrower dtypes. A CPU has no fast float16."""
    spec = program.spec
    narrower = {
        "float64": ["float32"],
        "float32": ["mixed_bfloat16"] if spec.backend == "cpu" else ["mixed_float16", "mixed_bfloat16"],
    }
    for dtype in narrower.get(spec.dtype, []):
        if dtype not in program.unsupported_dtypes:
            yield WhatIf(f"in {dtype}", f"--dtype {dtype}", f"more bits than needed ({spec.dtype})", {"dtype": dtype})
