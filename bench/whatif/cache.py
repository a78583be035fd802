"""The what-if `cache`: Keep the batches of the input pipeline in memory."""

from __future__ import annotations

from typing import Any

from bench.model.facts import CACHE
from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "batches cached in memory"
CAUSE = "preparing the same batches in each epoch"
ACTS_ON: frozenset[StepPart] = frozenset({"input"})
ADVICE = "Call cache() after what is the same in each epoch."


def applies(program: Program) -> bool:
    """Return whether the pipeline can be changed from outside, and has no cache of its own."""
    facts = program.facts
    return bool(facts.pipeline_reachable) and CACHE not in (stage.stage for stage in facts.pipeline or ())


def change_dataset(tf: Any, dataset: Any) -> Any:
    """Cache the output of the whole pipeline. A shuffle in it then has the same order in every epoch."""
    return dataset.cache()
