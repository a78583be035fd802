"""Findings about work that most steps go without: at the ends of epochs, between steps, and in a few long steps."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.analyse.explain import callbacks, pipeline
from bench.analyse.explain.lines import named_lines
from bench.analyse.explain.units import time_text
from bench.analyse.samples import cold_starts, main_series, mean_step, median_step, merged_facts
from bench.analyse.training_time import Epochs, with_epochs
from bench.model.causes import BETWEEN_EPOCHS, BETWEEN_STEPS, LONG_STEPS
from bench.model.explanation import Finding
from bench.model.result import Result
from bench.model.sample import ProcessSample
from bench.model.words import count

EPOCH_END_MIN_SHARE = 0.05
"""If this share of an epoch passes between its steps and those of the next epoch, that is a finding."""

FIT_BETWEEN_MIN_SHARE = 0.2
"""The same if most of this time is the work of `fit` itself. Each short training has some of it."""

MOSTLY_OWN_WORK = 0.5
"""If callbacks and validation take this share of the time between epochs, they explain it, and `fit` does not."""


def epoch_ends(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if much of an epoch passes between its steps and those of the next one."""
    starts = with_epochs(cold_starts(samples))
    timed = [(Epochs.of(s), mean_step(series.blocks)) for s in starts if (series := main_series(s))]
    timed = [(epochs, step) for epochs, step in timed if epochs.length and epochs.between > 0]
    if not timed:
        return
    between, start, validation, step = (
        statistics.fmean(values)
        for values in zip(
            *((epochs.between, epochs.start, epochs.validated * epochs.validation, step) for epochs, step in timed),
            strict=True,
        )
    )
    first_batch = min(start, pipeline.first_batch_seconds(samples))  # a cost of the input
    between, start = between - first_batch, start - first_batch
    share = between / (between + timed[0][0].length * step)
    if share <= EPOCH_END_MIN_SHARE:
        return
    call = merged_facts(samples).fit
    names = ", ".join(call.callbacks) if call and call.callbacks else "none"
    end = between - start
    work = sorted([(callbacks.VALIDATION, validation), *callbacks.at_epoch_ends(samples)], key=lambda part: -part[1])
    worked = sum(seconds for _, seconds in work)
    if worked > end:  # callbacks and the ends of epochs were timed in different epochs
        work = [(name, seconds * end / worked) for name, seconds in work]
    is_own_work = sum(seconds for _, seconds in work) > MOSTLY_OWN_WORK * between
    of_script = merged_facts(samples).between_fits
    if of_script is not None and of_script.seconds <= MOSTLY_OWN_WORK * between:
        of_script = None
    if not is_own_work and of_script is None and share <= FIT_BETWEEN_MIN_SHARE:
        return
    may_validate = not validation and merged_facts(samples).validated_epochs != 0.0
    epoch = between / share
    long = [(name, seconds) for name, seconds in work if seconds > 0.1 * end]
    longest = [f"{name} {time_text(seconds)} ({seconds / epoch:.0%} of it)" for name, seconds in long]
    if is_own_work:
        own, fix = "", callbacks.epoch_end_fix(samples, validation)
    elif of_script is not None:
        lines = named_lines(base, of_script.lines, of_script.elsewhere)
        own = f" Most of it passes between two calls of fit, in the script{lines}."
        fix = "Do this work once, before the first call of fit, or in the input pipeline, while the model trains."
    elif may_validate:
        own, fix = " It is not known whether a validation belongs to it.", ""
    else:
        own = " Most of it is the work of fit itself, which starts each epoch anew."
        fix = "Train fewer and longer epochs: dataset.repeat() with steps_per_epoch."
    yield Finding(
        cause=BETWEEN_EPOCHS,
        sentence=f"After the steps of an epoch, {time_text(between)} pass until those of the next one, as long as "
        f"{count(round(between / step), 'step')}. That is {share:.0%} of the time of an epoch."
        + (f" Longest: {', '.join(longest)}." if longest else "")
        + own,
        evidence=f"phases epoch_end and validation ({time_text(end)}) and epoch_start ({time_text(start)}); "
        f"callbacks: {names}",
        fix=fix,
        share=share,
    )


def between_steps(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if work that most steps of a script's own loop go without takes much of its time."""
    asides, step = merged_facts(samples).asides, median_step(base, mean_step)
    if asides is None or not asides.every:
        return
    share = asides.seconds / (asides.seconds + asides.every * step)
    if share <= EPOCH_END_MIN_SHARE:
        return
    yield Finding(
        cause=BETWEEN_STEPS,
        sentence=f"Every {count(round(asides.every), 'step')}, the script does other work for "
        f"{time_text(asides.seconds)}, as long as {count(round(asides.seconds / step), 'step')}. "
        f"That is {share:.0%} of the time.",
        evidence=f"calls of other functions or models between steps, seen {count(asides.count, 'time')}; the first "
        f"took {time_text(asides.first_seconds)}",
        fix="If it is a validation, run it less often, on fewer batches, or as a @tf.function.",
        share=share,
    )


def long_steps(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding if a few steps of a script's own loop take much of its time."""
    facts = merged_facts(samples)
    long = facts.long_steps
    if long is None or long.seconds <= 0 or facts.asides is not None:  # these are the same steps
        return
    share = long.seconds / (long.seconds + long.every * long.median)  # a block may hold long steps
    if share <= EPOCH_END_MIN_SHARE:
        return
    yield Finding(
        cause=LONG_STEPS,
        sentence=f"About every {count(round(long.every), 'step')}, a step takes {time_text(long.seconds)} longer"
        f"{named_lines(base, long.lines, long.elsewhere)}. That is {share:.0%} of the time.",
        evidence=f"samples of the stack in {count(long.count, 'long step')}",
        fix="Do this work less often.",
        share=share,
        estimated=True,
    )
