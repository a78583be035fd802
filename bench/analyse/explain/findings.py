"""Findings: causes of lost time that the runs show, each with its evidence, its fix and its share of the step."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from bench.analyse.explain import antipatterns, pipeline, shares, utilization
from bench.analyse.samples import cold_starts, merged_facts, process_values, usable_samples
from bench.model.explanation import Finding, Part
from bench.model.result import Result
from bench.model.sample import ProcessSample

FIT_MIN_SHARE = 0.02
"""Smallest share of a step for which a call of `fit` is a finding."""


def findings(levels: list[Result], parts: Sequence[Part] = ()) -> list[Finding]:
    """Return all findings of a ladder.

    Args:
        levels: results of the ladder, the program as written first.
        parts: the parts of the step between these levels.
    """
    base = levels[0]
    samples = usable_samples(base)
    if not samples:
        return []
    readers: list[antipatterns.Reader] = [
        *antipatterns.READERS,
        utilization.quota,
        utilization.parallelism,
        utilization.shapes,
        pipeline.shuffle_buffer,
        _first_steps,
    ]
    base_findings = [finding for reader in readers for finding in reader(base, samples)]
    shares.from_levels(base_findings, levels, parts)
    return [
        *_fit(samples, parts),
        *pipeline.slow_input(levels, parts),
        *pipeline.partial_batch(levels),
        *base_findings,
    ]


def _fit(samples: list[ProcessSample], parts: Sequence[Part]) -> Iterator[Finding]:
    """Yield what the program's own call of `fit` costs beyond a bare call, and what a bare call costs."""
    facts = merged_facts(samples)
    call = facts.fit
    if not call:
        return
    costs = {(p.upper, p.lower): p.share.value for p in parts if p.measurable and p.share.value > FIT_MIN_SHARE}
    own, bare = costs.get(("as-written", "fit")), costs.get(("fit", "step"))
    if own and (call.callbacks or call.prints):
        names = ", ".join(call.callbacks) or "none"
        yield Finding(
            cause="callbacks and logging",
            sentence=f"Callbacks and output that the program passes to fit take {own:.0%} of the step.",
            evidence=f"as-written minus fit; callbacks: {names}; verbose: {call.verbose}",
            fix="Move what can wait to the end of an epoch (on_epoch_end), and use fit(verbose=2). "
            "Try --change without-callbacks.",
            share=own,
        )
    elif own:
        yield Finding(
            cause="shuffling in fit",
            sentence=f"Shuffling in fit takes {own:.0%} of the step.",
            evidence="as-written minus fit, which does not shuffle; the program has no callbacks and no output",
            fix="Shuffle once before training, or with tf.data in the background.",
            share=own,
        )
    # If the model runs eagerly, fit minus step is the cost of eager execution.
    if bare and not any(s.facts.run_eagerly for s in samples):
        yield Finding(
            cause="Keras overhead",
            sentence=f"The work of fit around the train step takes {bare:.0%} of the step.",
            evidence="fit minus step, which calls the model's train_step",
            fix="Run several steps in each call of TensorFlow: compile(steps_per_execution=32).",
            share=bare,
        )


def _first_steps(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if tracing and the first step take much of a short training."""
    step = statistics.median(process_values(base).values())
    starts = cold_starts(samples) or samples
    first = statistics.median(s.phases.get("first_step", 0.0) + s.phases.get("trace", 0.0) for s in starts)
    total = base.projection.steps if base.projection else None
    if total and first > 0.1 * total * step:
        share = max(0.0, first - step) / (first + (total - 1) * step)
        yield Finding(
            cause="first-step costs",
            sentence=f"Tracing and the first step take {first:.2f} s, as long as {first / step:.0f} steps. That is "
            f"{share:.0%} of the time of all {total} steps.",
            evidence="phases trace and first_step",
            fix="Train for longer, or time the first step separately.",
            share=share,
        )
