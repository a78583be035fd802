"""Findings about the calls that the program's own steps make, with their share of the step by samples of the stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analyse.explain.lines import named_lines
from bench.analyse.samples import merged_facts
from bench.model.causes import BUILDING, NEW_DATASET, PYTHON, SLOW_INPUT, SUMMARIES
from bench.model.explanation import Finding, OwnStepPart
from bench.model.facts import WHOLE_DATA_CALLS, CallKind, OwnTimePart, WholeDataCall
from bench.model.result import Result
from bench.model.sample import ProcessSample
from bench.model.words import count
from bench.whatif import on_batch

MIN_SHARE = 0.05
"""Smallest share of a step for which a call is a finding."""

FREQUENT = 0.5
"""Smallest number of calls per step that are a part of most steps."""

MOST_LINES = 3
"""Most lines that are named for one kind of call."""

LARGE = 0.2
"""A line is named if it takes at least this share of what the largest line of its kind takes."""


def share_of(samples: Sequence[ProcessSample], *kinds: CallKind) -> float | None:
    """Return the share of the program's own step that calls of these kinds take. None if it was not sampled."""
    own_time = merged_facts(samples).own_time
    return own_time.share(*kinds) if own_time is not None else None


def whole_data_calls(samples: Sequence[ProcessSample]) -> list[OwnTimePart]:
    """Return the calls of Keras' `predict`, `evaluate` and `fit` in the program's own step, the largest first."""
    return [part for part in _of_kind(samples, "keras") if part.called in WHOLE_DATA_CALLS]


def keras_calls(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if the step calls methods for whole data sets, and these take much of it."""
    counted = {call.called: call for call in merged_facts(samples).whole_data_calls or []}
    calls = [call for call in whole_data_calls(samples) if not _is_aside(samples, counted.get(call.called))]
    share = min(1.0, sum(call.share for call in calls))
    if share <= MIN_SHARE:
        return
    names = " and ".join(_with_counts(name, counted.get(name)) for name in dict.fromkeys(c.called for c in calls))
    lines = lines_of(base, calls)
    is_tried = on_batch.has_single_batches(counted.values())
    yield Finding(
        cause=NEW_DATASET,
        sentence=f"Each step calls {names}{lines}. That takes {share:.0%} of the step.",
        evidence=_evidence(samples, "each such call builds an input pipeline and starts Keras' loop"),
        fix="" if is_tried else on_batch.ADVICE,
        what_ifs=["on-batch"] if is_tried else [],
        share=share,
        estimated=True,
    )


def _is_aside(samples: Sequence[ProcessSample], call: WholeDataCall | None) -> bool:
    """Return whether a method is called only between some steps. Another finding says so."""
    per_step = call.per_step if call is not None else 0.0
    return merged_facts(samples).asides is not None and per_step < FREQUENT


def _with_counts(name: str, call: WholeDataCall | None) -> str:
    """Return the name of a method with its calls per step and their rows, such as "predict 3 times on 1 row"."""
    if call is None:
        return name
    times = "" if 0.95 <= call.per_step <= 1.05 else f" {call.per_step:.2g} times"
    return f"{name}{times}" + (f" on {count(call.rows, 'row')}" if call.rows else "")


def python(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if Python that does not call TensorFlow takes much of the step."""
    yield from _of_lines(
        base,
        samples,
        "python",
        cause=PYTHON,
        subject="Python without TensorFlow",
        evidence="lines of the program that call no function of TensorFlow",
        fix="Vectorize it with NumPy, move it into a tf.data pipeline, or do it less often.",
    )


def building(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if each step builds models, layers, optimizers or functions."""
    yield from _of_lines(
        base,
        samples,
        "building",
        cause=BUILDING,
        subject="Building layers, models, optimizers or functions",
        evidence="constructors of Keras, and tf.function",
        fix="Build them once, before the loop.",
    )


def summaries(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if writing summaries takes much of the step."""
    yield from _of_lines(
        base,
        samples,
        "summary",
        cause=SUMMARIES,
        subject="Writing summaries",
        evidence="calls of tf.summary",
        fix="Write them every 100 steps. Images and histograms take longest.",
    )


def slow_input(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if the step waits for its next batch. It applies if neither `fit` nor `step` is a level."""
    yield from _of_lines(
        base,
        samples,
        "input",
        cause=SLOW_INPUT,
        subject="Getting the next batch",
        evidence="lines that read from an iterator",
        fix="Let tf.data prepare batches in the background: map with num_parallel_calls=tf.data.AUTOTUNE, and "
        "prefetch(tf.data.AUTOTUNE) at the end. Cache data that fit into memory.",
    )


def _of_lines(
    base: Result, samples: list[ProcessSample], kind: CallKind, *, cause: str, subject: str, evidence: str, fix: str
) -> Iterator[Finding]:
    """Yield a finding with the share and the lines of what the program's lines do, if it takes much of the step.

    Python may be spread over many lines, so each line of it that takes much of the step is named.
    """
    parts = _of_kind(samples, kind)
    share = min(1.0, sum(part.share for part in parts))
    if share <= MIN_SHARE:
        return
    lines = [part for part in parts if part.line]
    notable = [part for part in lines if part.share > MIN_SHARE] or lines[:1]
    named = notable if kind == "python" else _largest(lines)
    yield Finding(
        cause=cause,
        sentence=f"{subject} takes {share:.0%} of the step{lines_of(base, named)}.",
        evidence=_evidence(samples, evidence),
        fix=fix,
        share=share,
        estimated=True,
    )


def division(base: Result, samples: Sequence[ProcessSample]) -> list[OwnStepPart]:
    """Return the parts of the program's own step by samples of the stack, the largest first. Empty without samples."""
    own_time = merged_facts(samples).own_time
    if own_time is None:
        return []
    parts = []
    for kind in dict.fromkeys(part.kind for part in own_time.parts):
        of_kind = [part for part in own_time.parts if part.kind == kind]
        share = sum(part.share for part in of_kind)
        lines = lines_of(base, _largest([part for part in of_kind if part.line])[:MOST_LINES])
        parts.append(OwnStepPart(kind=kind, share=share, lines=lines.strip(" ()"), steps=own_time.steps))
    return sorted(parts, key=lambda part: -part.share)


def lines_of(base: Result, parts: Sequence[OwnTimePart]) -> str:
    """Return the lines of parts, in parentheses. Empty if there are none."""
    by_file: dict[str, set[int]] = {}
    for part in parts:
        by_file.setdefault(part.file, set()).add(part.line)
    own = by_file.pop("", set())
    return named_lines(base, sorted(own), {file: sorted(lines) for file, lines in by_file.items()})


def _largest(parts: Sequence[OwnTimePart]) -> list[OwnTimePart]:
    """Return the parts that are not small among these. Small ones may be wrong: a sample may be a line after a call."""
    least = LARGE * max((part.share for part in parts), default=0.0)
    return [part for part in parts if part.share >= least]


def _of_kind(samples: Sequence[ProcessSample], kind: CallKind) -> list[OwnTimePart]:
    own_time = merged_facts(samples).own_time
    return [part for part in own_time.parts if part.kind == kind] if own_time is not None else []


def _evidence(samples: Sequence[ProcessSample], what: str) -> str:
    own_time = merged_facts(samples).own_time
    return f"samples of the stack in {count(own_time.steps, 'step')}; {what}" if own_time is not None else what
