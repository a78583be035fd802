"""The what-if `batch`: Use 4 and 16 times as many examples per step."""

from __future__ import annotations

from collections.abc import Iterator

from bench.model.step_parts import STEP_PARTS, StepPart
from bench.whatif import Program, WhatIf

FACTORS = (4, 16)

LEARNING_RATE = "A training may then need another learning rate."

ACTS_ON: frozenset[StepPart] = frozenset(STEP_PARTS)
ADVICE = f"Use a larger batch. {LEARNING_RATE}"
CAUSE = "batches that are too small"


def candidates(program: Program) -> Iterator[WhatIf]:
    """Yield larger batches that the data can fill."""
    batch = program.spec.params.get("batch") or program.facts.batch
    if not isinstance(batch, int):
        return
    rows = _rows(program, batch)
    for factor in FACTORS:
        size = batch * factor
        if rows is None or size <= rows:
            update = {"params": {**program.spec.params, "batch": size}}
            advice = f"Use batches of {size} examples. {LEARNING_RATE}"
            yield WhatIf(f"batch {size}", f"--param batch={size}", CAUSE, update, factor, advice=advice)


def _rows(program: Program, batch: int) -> int | None:
    """Return the number of examples in the data; None if it is not known."""
    epoch = program.facts.epoch
    if epoch is None or (not epoch.remainder and program.facts.pipeline_reachable):
        return None
    return epoch.batches * batch + epoch.remainder
