"""Suspects: properties of a program that often cost time. One trial shows them, before their cost is measured."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analyse.explain.antipatterns import READERS
from bench.analyse.explain.pipeline import prefetches
from bench.analyse.samples import merged_facts, usable_samples
from bench.model.facts import PY_DATASET
from bench.model.result import Result


def suspects(program: Result) -> Iterator[str]:
    """Yield a sentence for each suspect in the program as written, once a trial of it is measured."""
    samples = usable_samples(program)
    if not samples:
        return
    for reader in READERS:
        for finding in reader(program, samples):
            yield f"{finding.cause}: {finding.sentence}"
    facts = merged_facts(samples)
    if facts.fit is not None and facts.fit.callbacks:
        yield f"callbacks of fit: {', '.join(facts.fit.callbacks)}."
    stages = facts.pipeline or []
    names = [stage.stage for stage in stages]
    if names and names != [PY_DATASET] and not prefetches(stages):
        yield f"the input pipeline does not prefetch: {', '.join(names)}."
