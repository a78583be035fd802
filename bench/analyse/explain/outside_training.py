"""Findings about work of the program before its first step and after its last one."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analyse.explain.lines import named_lines
from bench.analyse.explain.units import time_text
from bench.analyse.explain.wall_time import AFTER, BEFORE, DATA, wall_time
from bench.analyse.samples import merged_facts
from bench.model.causes import AFTER_STEPS, BEFORE_STEPS
from bench.model.explanation import Finding
from bench.model.facts import OutsideWork
from bench.model.result import Result
from bench.model.sample import ProcessSample

MIN_SHARE = 0.2
"""Smallest share of the time of the whole program for which such work is a finding. Every program has some."""

SEEN = 0.5
"""Lines are named if at least this share of the time was sampled. Samples begin when TensorFlow has been imported."""


def outside_training(base: Result, samples: list[ProcessSample]) -> Iterator[Finding]:
    """Yield a finding for work before the first step and for work after the last one, if it takes much of the time."""
    parts = {part.name: part for part in wall_time(base)}
    facts = merged_facts(samples)
    before = parts.get(BEFORE) or parts.get(DATA)
    if before is not None and before.share > MIN_SHARE:
        prepares = "prepares the data and builds the model" if before.name == BEFORE else "prepares the data"
        lines = _lines(base, facts.before_steps, before.seconds)
        yield Finding(
            cause=BEFORE_STEPS,
            sentence=f"Before its first step, the program {prepares} for {time_text(before.seconds)}{lines}. That is "
            f"{before.share:.0%} of the time of the whole program.",
            evidence="phase build, and samples of the stack before the first step"
            if before.name == BEFORE
            else "phase data",
            fix="Do this work once and save what it makes, or do it in the input pipeline, while the model trains.",
            share=before.share,
        )
    after, work = parts.get(AFTER), facts.after_steps
    if after is not None and work is not None and after.share > MIN_SHARE:
        least = "" if work.complete else "more than "
        yield Finding(
            cause=AFTER_STEPS,
            sentence=f"After its last step, the program works for {least}{time_text(after.seconds)}"
            f"{_lines(base, work, after.seconds)}"
            + (f", most of it in {work.call}" if work.call else "")
            + f". That is {least}{after.share:.0%} of the time of the whole program.",
            evidence="samples of the stack after the last step, in a process that ran "
            + ("to its end" if work.complete else f"for {time_text(work.seconds)} more"),
            fix=f"Give {work.call} fewer examples or a larger batch_size."
            if work.call
            else "Do this work in another program, or only if its result is needed.",
            share=after.share,
            is_lower_bound=not work.complete,
        )


def _lines(base: Result, work: OutsideWork | None, seconds: float) -> str:
    """Return the lines that take most of some seconds. Empty if the sampled part is too short to tell."""
    if work is None or work.seconds < SEEN * seconds:
        return ""
    return named_lines(base, work.lines, work.elsewhere)
