"""The what-if `tf32`: Compute float32 matrix products in TF32."""

from __future__ import annotations

from collections.abc import Iterator

from bench.backends import has_tensor_cores
from bench.model.step_parts import StepPart
from bench.whatif import Program, WhatIf

ACTS_ON: frozenset[StepPart] = frozenset({"computing"})


def candidates(program: Program) -> Iterator[WhatIf]:
    """Yield TF32 if it is off and the device has tensor cores for it."""
    capability = program.device.compute_capability if program.device else None
    if has_tensor_cores(program.spec.backend, "tf32", capability) and not program.spec.tf32:
        advice = "Allow TF32: tf.config.experimental.enable_tensor_float_32_execution(True)."
        yield WhatIf("with TF32", "--tf32", "float32 products without TF32", {"tf32": True}, advice=advice)
