"""The what-if `cache`: Keep the batches of the input pipeline in memory."""

from __future__ import annotations

from typing import Any

from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "batches cached in memory"
CAUSE = "preparing the same batches in each epoch"
ACTS_ON: frozenset[StepPart] = frozenset({"input"})
ADVICE = "Call cache() after what is the same in each epoch."


def applies(program: Program) -> bool:
    """Return whether the pipeline can be changed from outside."""
    return bool(program.facts.pipeline_reachable)


def change_dataset(tf: Any, dataset: Any) -> Any:
    """Cache the output of the whole pipeline. A shuffle in it then has the same order in every epoch."""
    return dataset.cache()
