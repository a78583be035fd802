"""Findings about the optimizer and the metrics: their share of a step, and embeddings that an optimizer rewrites."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analyse.explain.units import time_text
from bench.analyse.samples import median_step, merged_facts
from bench.model.causes import EMBEDDINGS, METRICS, OPTIMIZER
from bench.model.explanation import Finding
from bench.model.result import Result
from bench.model.sample import ProcessSample

MIN_SHARE = 0.2
"""Smallest share of a step for which the optimizer or the metrics are a finding. Every training has some."""

MOST_READ = 0.5
"""If a batch reads less than this share of the rows of the embeddings, rewriting all rows is a finding."""


def _share(base: Result, seconds: float) -> float:
    """Return the share of a step that something takes, by its seconds when it was timed by itself."""
    return min(1.0, seconds / median_step(base))


def metrics(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if the metrics of the model take much of the step."""
    measured = merged_facts(samples).metrics
    if measured is None:
        return
    share = _share(base, measured.seconds)
    if share <= MIN_SHARE:
        return
    yield Finding(
        cause=METRICS,
        sentence=f"The metrics of the model take {share:.0%} of the step"
        + (f": {', '.join(measured.names)}." if measured.names else "."),
        evidence=f"metrics updated alone with one batch: {time_text(measured.seconds)}",
        what_ifs=["without-metrics"],
        share=share,
        parts=["computing"],
    )


def optimizer(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if the optimizer takes much of the step."""
    measured = merged_facts(samples).optimizer
    if measured is None:
        return
    share = _share(base, measured.seconds)
    if share <= MIN_SHARE:
        return
    takes = f"That takes {share:.0%} of the step."
    evidence = f"gradients of one batch applied alone: {time_text(measured.seconds)}"
    if measured.rows and measured.rows_read < MOST_READ * measured.rows:
        yield Finding(
            cause=EMBEDDINGS,
            sentence=f"{measured.name} rewrites all {measured.rows:,} rows of the embeddings in each step, although a "
            f"batch reads {measured.rows_read:,}. {takes}",
            evidence=evidence,
            fix="Use an optimizer that updates only the rows that a batch reads, such as SGD without momentum, or a "
            "smaller table (hashing, fewer rows).",
            share=share,
            parts=["computing"],
        )
    else:
        yield Finding(
            cause=OPTIMIZER,
            sentence=f"{measured.name} updates the weights in each step. {takes}",
            evidence=evidence,
            fix="Use a larger batch, so that there are fewer updates per example. Adapt the learning rate.",
            share=share,
            parts=["computing"],
        )
