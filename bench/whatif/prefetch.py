"""The what-if `prefetch`: Prepare batches while the step computes."""

from __future__ import annotations

from typing import Any

from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "batches prefetched"
CAUSE = "input that is not prepared ahead of the step"
ACTS_ON: frozenset[StepPart] = frozenset({"input"})
ADVICE = "End the pipeline with prefetch(tf.data.AUTOTUNE)."


def applies(program: Program) -> bool:
    """Return whether the pipeline can be changed from outside."""
    return bool(program.facts.pipeline_reachable)


def change_dataset(tf: Any, dataset: Any) -> Any:
    """Prefetch as many batches as TensorFlow finds useful."""
    return dataset.prefetch(tf.data.AUTOTUNE)
