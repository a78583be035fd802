"""What the runs themselves say about a step: read from facts, phases and counters, each with its evidence.

Here stands where its time goes; `habits` has what its own steps do, `capacity` how far it uses the machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.analyse import epochs, stats
from bench.analyse.explain import antipatterns, utilization
from bench.model.explanation import Explanation, Finding, Part
from bench.model.facts import PipelineStage
from bench.model.result import ProcessSample, Result
from bench.model.spec import LOOPS

FIXED_BY = {"too little parallelism": "too small batches"}
"""A cause that no level is without, and what the change that is its fix takes away."""


def findings(levels: list[Result], parts: Sequence[Part] = ()) -> list[Finding]:
    """All that can be read from a ladder, whose first level is the program as it is, and from its parts."""
    base = levels[0]
    samples = stats.usable(base)
    if not samples:
        return []
    readers: list[Callable[[Result, list[ProcessSample]], Iterator[Finding]]] = [
        *antipatterns.READERS,
        utilization.quota,
        utilization.parallelism,
        utilization.odd_shapes,
        _filling,
        _first_steps,
    ]
    read = [each for reader in readers for each in reader(base, samples)]
    _shares_by_levels(read, levels, parts)
    return [*_fit(base, samples, parts), *_input(levels, parts), *_partial_batch(levels), *read]


def _shares_by_levels(found: Sequence[Finding], levels: Sequence[Result], parts: Sequence[Part]) -> None:
    """Tells how much of the step a barer level without a cause saves: at most the share of that cause."""
    causes = [antipatterns.causes(level) for level in levels]
    spans = [(each, span) for each in found if (span := _span(each.cause, levels, causes)) is not None]
    for each, (upper, lower) in spans:
        shares = [part.share for part in parts[upper:lower]]
        if not shares or sum(-1.0 if share.low is None else share.low for share in shares) <= 0:
            continue
        taken = min(1.0, sum(share.value for share in shares))
        each.share = taken
        others = sum(other == (upper, lower) for _, other in spans) > 1
        alone = ", with what else is named here that it is without" if others else ""
        each.evidence += f"; {levels[upper].spec.loop} less {levels[lower].spec.loop} is {taken:.0%} of the step{alone}"


def _span(cause: str, levels: Sequence[Result], causes: Sequence[set[str] | None]) -> tuple[int, int] | None:
    """The last level that has a cause and the first that has not; none where no level was seen to be without it.

    `fit` is passed over: beside what it leaves out of a loop of the program's own it does work of its own.
    """
    upper = None
    for lower, (level, has) in enumerate(zip(levels, causes, strict=True)):
        if has is not None and cause in has:
            upper = lower
        elif has is None or upper is None:
            return None
        elif level.spec.loop != "fit":
            return upper, lower
    return None


def shares_by_changes(found: Explanation) -> None:
    """Tells of a cause that no level is without how much a change saves that fixes it, where one is faster."""
    for each in found.findings:
        fixes = {g.ratio.value: g for g in found.gains if g.ratio and g.fixes and g.fixes == FIXED_BY.get(each.cause)}
        if each.share is None and fixes:
            ratio = min(fixes)
            each.share = min(1.0, (1 - ratio) * _level(found.parts, found.what_if_loop))
            told = f"the loop {found.what_if_loop} takes {1 - ratio:.0%} less per {fixes[ratio].unit}"
            each.evidence += f"; with {fixes[ratio].what_if} {told}"


def _level(parts: Sequence[Part], loop: str) -> float:
    """The share of the program's own step that a level takes."""
    order: list[str] = [*LOOPS]
    return 1.0 - sum(part.share.value for part in parts if part.lower in order[: order.index(loop) + 1])


def _fit(base: Result, samples: list[ProcessSample], parts: Sequence[Part]) -> Iterator[Finding]:
    """What the program's own call of `fit` costs beyond a bare one, and that beyond its train step."""
    found = stats.facts(samples).fit
    if not found:
        return
    costs = {(p.upper, p.lower): p.share.value for p in parts if p.measurable and p.share.value > 0.02}
    own, bare = costs.get(("as-written", "fit")), costs.get(("fit", "step"))
    names = ", ".join(found.callbacks) or "none"
    if own:
        cause, evidence, fix = (
            "shuffling by fit",
            "as written less fit, which does not shuffle; there are no callbacks and no output",
            "Shuffle once before training, or by tf.data in the background.",
        )
        if found.callbacks or found.prints:
            cause = "callbacks and logging"
            evidence = f"as written less fit; callbacks: {names}; verbose: {found.verbose}"
            fix = "Call what can wait once an epoch (on_epoch_end), and fit(verbose=2): --change without-callbacks."
        sentence = f"what the program asks of fit beyond a bare one takes {own:.0%} of the step"
        yield Finding(cause=cause, sentence=sentence, evidence=evidence, fix=fix, share=own)
    # Where fit runs eagerly the step below it is a graph, and what lies between is that (`habits.eager`).
    if bare and not any(s.facts.run_eagerly for s in samples):
        yield Finding(
            cause="Keras' bookkeeping",
            sentence=f"what fit does around its train step takes {bare:.0%} of the step",
            evidence="fit less step, which calls the model's train_step",
            fix="Several steps for each call of TensorFlow: compile(steps_per_execution=32).",
            share=bare,
        )


def _input(levels: list[Result], parts: Sequence[Part]) -> Iterator[Finding]:
    """The slowest stage of the input, where the ladder found that input costs something."""
    slow = [p for p in parts if p.measurable and p.share.value > 0.05 and "input" in p.name]
    pipeline = stats.facts([s for r in levels for s in stats.usable(r)]).pipeline
    if not slow or not pipeline:
        return
    spans = _spans(pipeline)
    if not spans:
        return
    (name, _), whole = max(spans, key=lambda span: span[1]), sum(p.share.value for p in slow)
    fix = "Cache before it, or move it off the host: into the model as a layer."
    if name.split(" (")[0] == "map":
        fix = "Give map num_parallel_calls=tf.data.AUTOTUNE, and cache() what does not change between epochs."
    told = ", ".join(f"{each} {seconds * 1e3:.3g} ms" for each, seconds in spans)
    yield Finding(
        cause="slow input",
        sentence=f"input takes {whole:.0%} of the step, most of it the stage {name}",
        evidence=f"alone, a batch takes {told}",
        fix=fix,
        share=whole,
    )


def _spans(pipeline: Sequence[PipelineStage]) -> list[tuple[str, float]]:
    """Each stage's own seconds a batch; stages that there was no time for stand together with the next one timed."""
    found, passed, before = [], 0, 0.0
    for index, stage in enumerate(pipeline):
        if stage.seconds is None:
            continue
        name = where(stage) if index == passed else f"{where(pipeline[passed])} to {where(stage)}"
        found.append((name, stage.seconds - before))
        passed, before = index + 1, stage.seconds
    return found


def where(stage: PipelineStage) -> str:
    """A stage of a pipeline in words, with the line of its function: "map (preprocess, mine.py line 12)"."""
    if stage.function is None or stage.file is None:
        return stage.stage
    name = "" if stage.function == "<lambda>" else f"{stage.function}, "
    return f"{stage.stage} ({name}{Path(stage.file).name} line {stage.line})"


def _partial_batch(levels: list[Result]) -> Iterator[Finding]:
    """By the first level that measured it: the author's own loop does not tell of one."""
    for level in levels:
        pairs = [
            (s.phases["partial_batch"], s.phases["partial_batch_again"])
            for s in stats.usable(level)
            if "partial_batch" in s.phases and "partial_batch_again" in s.phases
        ]
        if pairs:
            break
    else:
        return
    first, again = (statistics.median(side) for side in zip(*pairs, strict=True))
    step = statistics.median(stats.process_values(level).values())
    whole = max(0, epochs.steps(stats.usable(level)) - 1)
    share = (first - again) / (whole * step + first) if whole else None
    if first - again > 10 * step:
        yield Finding(
            cause="a partial last batch",
            sentence=f"the last batch, which is smaller, costs {first - again:.3f} s more the first time, "
            f"as much as {(first - again) / step:.0f} steps"
            + (f", which is {share:.0%} of the first epoch's time" if share else ""),
            evidence=f"{first:.3f} s the first time and {again:.3f} s after that, loop {level.spec.loop}",
            fix="Drop the remainder: batch(n, drop_remainder=True), or a batch that divides the rows.",
            share=share,
        )


def _filling(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """A shuffle buffer that fills before the first step, and again at each epoch's start."""
    step = statistics.median(stats.process_values(base).values())
    for stage in stats.facts(samples).pipeline or []:
        seconds = stage.filling_seconds or 0.0
        length = epochs.steps(samples)
        share = seconds / (seconds + length * step) if length else None
        if seconds > max(10 * step, 0.1):
            yield Finding(
                cause="a shuffle buffer that fills",
                sentence=f"the first batch waits {seconds:.2f} s, as long as {seconds / step:.0f} steps, while "
                f"shuffle({stage.buffer}) fills its buffer; so does the first batch of each epoch after it"
                + (f", which is {share:.0%} of an epoch's time" if share else ""),
                evidence=f"the pipeline cut after that stage gives its first element after {seconds:.2f} s",
                fix="Shuffle before what is slow (file names, not images), with a smaller buffer, or cache() before.",
                share=share,
            )


def _first_steps(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    step = statistics.median(stats.process_values(base).values())
    alone = stats.started_alone(samples) or samples
    first = statistics.median(s.phases.get("first_step", 0.0) + s.phases.get("trace", 0.0) for s in alone)
    total = base.projection.steps if base.projection else None
    if total and first > 0.1 * total * step:
        share = max(0.0, first - step) / (first + (total - 1) * step)
        yield Finding(
            cause="first-step costs",
            sentence=f"tracing and the first step take {first:.2f} s, as long as {first / step:.0f} steps of {total}: "
            f"{share:.0%} of the time of all steps",
            evidence="phases trace and first_step",
            fix="Of so short a program the start is much: time it apart from the steps, or train for longer.",
            share=share,
        )
