"""Whether results computed the same: the answers of their first steps, held against each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.analyse import stats
from bench.model.result import ProcessSample, Result
from bench.model.spec import IGNORED, ROLES

TOLERANCES = {"exact": 2e-3, "reduced": 5e-2}
"""Relative difference of the first steps' answers that their class allows: sums in another order; fewer bits."""


COMPUTATION = {name for name, role in ROLES.items() if role.computation}
"""Fields of a spec that decide what is computed, beside the loop."""


def answered(result: Result) -> list[ProcessSample]:
    """Its processes that told the answers of their first steps."""
    return [sample for sample in stats.usable(result) if sample.first_losses]


def same_computation(a: Result, b: Result) -> bool:
    """Whether two specs should give the same first answers: a program as written may shuffle or reuse inputs."""
    left, right = (each.spec.model_dump(include=COMPUTATION, exclude=IGNORED) for each in (a, b))
    if left != right:
        return False
    return a.spec.loop == b.spec.loop or "as-written" not in (a.spec.loop, b.spec.loop)


def agree(a: ProcessSample, b: ProcessSample) -> bool:
    """Whether two first answers agree within what their classes allow; a GPU's products may use fewer bits (TF32)."""
    classes = {a.loss_precision, b.loss_precision}
    if "changed" in classes:
        return True
    gpu = any(s.placement is not None and s.placement.requested_device.startswith("GPU") for s in (a, b))
    tolerance = TOLERANCES["reduced" if gpu or "reduced" in classes else "exact"]
    return all(
        abs(x - y) <= tolerance * max(abs(x), abs(y), 1e-6)
        for x, y in zip(a.first_losses, b.first_losses, strict=False)
    )


def alike(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether the answers of two programs, which need not compute the same, are those of one."""
    return all(math.isclose(x, y, rel_tol=TOLERANCES["exact"], abs_tol=1e-8) for x, y in zip(a, b, strict=False))
