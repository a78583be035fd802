"""Findings: causes of lost time that the runs show, each with its evidence, its fix and its share of the step."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from bench import whatif
from bench.analyse.explain import (
    antipatterns,
    callbacks,
    growth,
    optimizer,
    outside_steps,
    outside_training,
    own_time,
    pipeline,
    shares,
    utilization,
)
from bench.analyse.explain.units import all_steps
from bench.analyse.samples import (
    cold_starts,
    mean_step,
    median_step,
    merged_facts,
    usable_samples,
)
from bench.model.causes import (
    ARGUMENTS,
    CALLBACKS,
    FIRST_STEPS,
    KERAS,
    NEW_DATASET,
    PYTHON_IN_GRAPH,
    SHUFFLING,
    TOO_LITTLE_PARALLELISM,
)
from bench.model.explanation import Finding, Part
from bench.model.facts import FitCall
from bench.model.result import Result
from bench.model.sample import ProcessSample
from bench.model.words import count

FIT_MIN_SHARE = 0.02
"""Smallest share of a step for which a call of `fit` is a finding."""

RARE_MIN_SHARE = 0.1
"""Smallest share of the mean step by which long steps exceed the typical one if callbacks explain them, not noise."""


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
        own_time.python,
        own_time.building,
        own_time.summaries,
        growth.growing_steps,
        optimizer.optimizer,
        optimizer.metrics,
        utilization.quota,
        utilization.parallelism,
        utilization.shapes,
        pipeline.shuffle_buffer,
        _first_steps,
    ]
    base_findings = [finding for reader in readers for finding in reader(base, samples)]
    shares.from_levels(base_findings, levels, parts)
    inputs: list[Finding] = []
    if not {"fit", "step"} & {level.spec.loop for level in levels}:  # the lines of the loop tell more than the levels
        inputs = [pipeline.with_stages(base, samples, finding) for finding in own_time.slow_input(base, samples)]
    inputs = inputs or [*pipeline.slow_input(levels, parts)]
    if inputs and pipeline.calls_python(base):  # the input's own finding says so
        base_findings = [f for f in base_findings if f.cause != PYTHON_IN_GRAPH]
    inputs = inputs or [*pipeline.waiting(base, samples)]
    called = {name for callback in callbacks.in_steps(samples)[1] for name in callback.calls}
    if called:  # the callback's own finding says so
        base_findings = [f for f in base_findings if f.cause != NEW_DATASET]
    if sum(finding.share or 0.0 for finding in inputs) > utilization.MOSTLY_INPUT or antipatterns.retraced(samples):
        # CPUs are idle because they wait for input, or for Python that traces.
        base_findings = [f for f in base_findings if f.cause != TOO_LITTLE_PARALLELISM]
    return [
        *outside_training.outside_training(base, samples),
        *outside_steps.epoch_ends(base, samples),
        *outside_steps.between_steps(base, samples),
        *outside_steps.long_steps(base, samples),
        *_fit(base, samples, parts),
        *inputs,
        *pipeline.partial_batch(levels),
        *base_findings,
    ]


def _fit(base: Result, samples: list[ProcessSample], parts: Sequence[Part]) -> Iterator[Finding]:
    """Yield what the program's own call of `fit` costs beyond a bare call, and what a bare call costs."""
    facts = merged_facts(samples)
    call = facts.fit
    if not call:
        return
    costs = {(p.upper, p.lower): p.share.value for p in parts if p.measurable and p.share.value > FIT_MIN_SHARE}
    own, bare = costs.get(("as-written", "fit")), costs.get(("fit", "step"))
    timed = callbacks.step_share(base, samples) or 0.0
    if (own and (call.callbacks or call.prints)) or timed > FIT_MIN_SHARE:
        most = next((p.at_most for p in parts if p.upper == "as-written" and p.at_most is not None), 1.0)
        yield from _callbacks(base, samples, call, own or 0.0, timed, most)
    elif own:
        if call.shuffles and not call.options:
            yield Finding(
                cause=SHUFFLING,
                sentence=f"Shuffling in fit takes {own:.0%} of the step.",
                evidence="as-written minus fit, which does not shuffle; nothing else differs: the program has no "
                "callbacks and no output",
                fix="Shuffle once before training, or with tf.data in the background.",
                parts=["own loop"],
                share=own,
            )
        else:
            differing = ", ".join([f"input: {call.input}", *call.options])
            program = "script" if base.recognition else "workload"
            fix = "Return the same input from `data`, so that the ladder can divide its time."
            yield Finding(
                cause=ARGUMENTS,
                sentence=f"The input and the arguments that the program passes to fit take {own:.0%} of the step.",
                evidence=f"as-written minus fit, which gets the {program}'s data alone; {differing}",
                fix="" if base.recognition else fix,
                parts=["own loop"],
                share=own,
            )
    # If the model runs eagerly, fit minus step is the cost of eager execution.
    if bare and not any(s.facts.run_eagerly for s in samples):
        yield Finding(
            cause=KERAS,
            sentence=f"The work of fit around the train step takes {bare:.0%} of the step.",
            evidence="fit minus step, which calls the model's train_step",
            what_ifs=["steps-per-execution"],
            parts=["fit"],
            share=bare,
        )


def _callbacks(
    base: Result, samples: list[ProcessSample], call: FitCall, own: float, timed: float, most: float
) -> Iterator[Finding]:
    """Yield what callbacks and output cost, if that is more than a little.

    Args:
        base: the program as written.
        samples: its usable processes.
        call: its call of `fit`.
        own: the share of the typical step that the program's own call of `fit` takes beyond a bare one. 0 if unknown.
        timed: the share of the mean step that callbacks take, by the time of each call.
        most: the largest share of the typical step that they can take.
    """
    names = ", ".join(call.callbacks) or "none"
    described, largest = callbacks.in_steps(samples)
    rare = callbacks.rare_share(base)
    # Neither the ladder nor a what-if shows work in a few long steps, because both compare typical steps.
    is_rare = rare > max(RARE_MIN_SHARE, timed / 2) and (most < timed / 2 or timed > 1 - rare)
    share = min(timed, rare) if is_rare else own or min(timed, most)  # on a GPU, callbacks run beside the step
    if share <= FIT_MIN_SHARE:
        return
    calls_model = any(callback.calls for callback in largest)
    fix = "Pass validation_data to fit, or evaluate in on_epoch_end." if calls_model else ""
    yield Finding(
        cause=CALLBACKS,
        sentence=f"Callbacks and output that the program passes to fit take {share:.0%} of the "
        + ("mean step, most of it in a few long steps." if is_rare else "step.")
        + (f" Mean time per step: {', '.join(described)}." if described else ""),
        evidence=f"{'as-written minus fit; ' if own and not is_rare else ''}callbacks: {names}; "
        f"verbose: {call.verbose}",
        fix=fix or (whatif.advice("without-callbacks") if is_rare else ""),
        what_ifs=[] if is_rare else ["without-callbacks"],
        parts=["own loop"],
        share=share,
    )


def _first_steps(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if tracing and the first step take much of a short training."""
    step = median_step(base, mean_step)
    starts = cold_starts(samples) or samples
    first = statistics.median(s.phases.get("first_step", 0.0) + s.phases.get("trace", 0.0) for s in starts)
    total = base.projection.steps if base.projection else None
    if total and first > 0.1 * total * step:
        share = max(0.0, first - step) / (first + (total - 1) * step)
        yield Finding(
            cause=FIRST_STEPS,
            sentence=f"Tracing and the first step take {first:.2f} s, as long as {count(round(first / step), 'step')}. "
            f"That is {share:.0%} of the time of {all_steps(total)}.",
            evidence="phases trace and first_step",
            fix="Train for longer, or time the first step separately.",
            share=share,
        )
