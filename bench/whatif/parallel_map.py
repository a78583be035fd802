"""The what-if `parallel-map`: Run the maps of the input pipeline in parallel."""

from __future__ import annotations

from typing import Any

from bench.model.step_parts import StepPart
from bench.whatif import Program

WORDS = "maps in parallel"
CAUSE = "maps that run one call at a time"
ACTS_ON: frozenset[StepPart] = frozenset({"input"})
ADVICE = "Give map num_parallel_calls=tf.data.AUTOTUNE."
REFUTED = (
    "Parallel calls of map gain nothing. If its function runs Python, only one call runs at a time: write the function "
    "in TensorFlow operations, or call batch before map, so that one call handles a whole batch."
)


def applies(program: Program) -> bool:
    """Return whether the pipeline can be changed from outside."""
    return bool(program.facts.pipeline_reachable)


def change_dataset(tf: Any, dataset: Any) -> Any:
    """Let TensorFlow rewrite the pipeline. It leaves a map that calls Python as it is."""
    options = tf.data.Options()
    options.experimental_optimization.map_parallelization = True
    return dataset.with_options(options)
