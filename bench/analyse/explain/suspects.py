"""Suspects: properties of a program that often cost time. One trial shows them, before their cost is measured."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analyse.explain.antipatterns import READERS
from bench.analyse.explain.pipeline import prefetches
from bench.analyse.samples import merged_facts, usable_samples
from bench.model.facts import PY_DATASET, Facts
from bench.model.result import Result
from bench.model.sample import ProcessSample


def suspects(program: Result) -> Iterator[str]:
    """Yield a sentence for each suspect in the program as written, once a trial of it is measured."""
    samples = usable_samples(program)
    if not samples:
        return
    yield from _in_steps(program, samples)
    facts = merged_facts(samples)
    if facts.fit is not None and facts.fit.callbacks:
        yield f"callbacks of fit: {', '.join(facts.fit.callbacks)}."
    stages = facts.pipeline or []
    names = [stage.stage for stage in stages]
    if names and names != [PY_DATASET] and not prefetches(stages):
        yield f"the input pipeline does not prefetch: {', '.join(names)}."


def suspects_in(script: Result, facts: Facts) -> Iterator[str]:
    """Yield a sentence for each suspect in the steps of a script, before a trial of it is measured.

    Args:
        script: the result of the script, without samples.
        facts: what was seen in its steps while they were found.
    """
    yield from _in_steps(script, [ProcessSample(trial=0, pid=0, started=script.created, facts=facts)])


def _in_steps(program: Result, samples: list[ProcessSample]) -> Iterator[str]:
    """Yield a sentence for each suspect in the steps, with its share of the step if that is known."""
    for reader in READERS:
        for finding in reader(program, samples):
            share = "" if finding.share is None else f"{finding.share:.0%}"
            takes = f" That takes about {share} of the step." if share not in finding.sentence else ""
            yield f"{finding.cause}: {finding.sentence}{takes}"
