"""Findings about the calls that the program's own steps make, with their share of the step by samples of the stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analyse.explain.lines import named_lines
from bench.analyse.samples import merged_facts
from bench.model.explanation import Finding
from bench.model.facts import WHOLE_DATA_CALLS, CallKind, OwnTimePart
from bench.model.result import Result
from bench.model.sample import ProcessSample

MIN_SHARE = 0.05
"""Smallest share of a step for which a call is a finding."""

NEW_DATASET = "a new dataset for each call"
PYTHON = "Python between calls of TensorFlow"


def share_of(samples: Sequence[ProcessSample], *kinds: CallKind) -> float | None:
    """Return the share of the program's own step that calls of these kinds take. None if it was not sampled."""
    own_time = merged_facts(samples).own_time
    return own_time.share(*kinds) if own_time is not None else None


def whole_data_calls(samples: Sequence[ProcessSample]) -> list[OwnTimePart]:
    """Return the calls of `predict`, `evaluate` and `fit` in the program's own step, the largest first."""
    own_time = merged_facts(samples).own_time
    return [part for part in own_time.parts if part.called in WHOLE_DATA_CALLS] if own_time is not None else []


def keras_calls(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if the step calls methods for whole data sets, and these take much of it."""
    calls = whole_data_calls(samples)
    share = min(1.0, sum(call.share for call in calls))
    if share <= MIN_SHARE:
        return
    names = " and ".join(dict.fromkeys(call.called for call in calls))
    lines = named_lines(base, sorted({call.line for call in calls}))
    yield Finding(
        cause=NEW_DATASET,
        sentence=f"Each step calls {names}{lines}. That takes {share:.0%} of the step.",
        evidence=_evidence(samples, "each such call builds an input pipeline and starts Keras' loop"),
        fix="For single batches, call train_on_batch, or the model itself: model(x, training=False). Keep fit, "
        "evaluate and predict for whole data sets.",
        share=share,
        estimated=True,
    )


def python(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if Python that does not call TensorFlow takes much of the step."""
    own_time = merged_facts(samples).own_time
    parts = [part for part in own_time.parts if part.kind == "python" and part.line] if own_time is not None else []
    share = min(1.0, sum(part.share for part in parts))
    if share <= MIN_SHARE:
        return
    largest = [part.line for part in parts if part.share > MIN_SHARE] or [parts[0].line]
    yield Finding(
        cause=PYTHON,
        sentence=f"Python without TensorFlow takes {share:.0%} of the step{named_lines(base, sorted(set(largest)))}.",
        evidence=_evidence(samples, "lines of the program that call no function of TensorFlow"),
        fix="Vectorize it with NumPy, move it into a tf.data pipeline, or do it less often.",
        share=share,
        estimated=True,
    )


def _evidence(samples: Sequence[ProcessSample], what: str) -> str:
    own_time = merged_facts(samples).own_time
    return f"samples of the stack in {own_time.steps} steps; {what}" if own_time is not None else what
