"""How much a what-if can gain at most: by Amdahl's law, the share of the step that it acts on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.model.explanation import Explanation
from bench.model.interval import Interval
from bench.model.step_parts import StepPart, parts_of
from bench.whatif import WhatIf

READ_AT_IMPORT = {"threads", "onednn"}
"""Fields of a spec that TensorFlow and the libraries below it read when they are imported."""


def at_most(explanation: Explanation, acts_on: frozenset[StepPart]) -> float:
    """Return the largest share of the program's step that these parts can take: the upper ends of their intervals.

    Without an interval, they can take all of it.
    """
    shares = [share for _, share in _touched(explanation, acts_on)]
    return min(1.0, sum(1.0 if share.high is None else max(0.0, share.high) for share in shares))


def by_priority(explanation: Explanation, what_ifs: Sequence[WhatIf]) -> list[WhatIf]:
    """Return what-ifs in the order in which they are tried.

    What-ifs that test a suspect come first. Then come those that a finding proposes, the largest finding first. Of the
    others, those that need workers with an import of their own come last. Among equals, the what-if that acts on the
    largest part comes first, then the one that acts on fewer parts, because it is more likely meant for that part.
    """
    proposed: dict[str, float] = {}
    for finding in explanation.findings:
        for name in finding.what_ifs:
            proposed[name] = max(proposed.get(name, 0.0), finding.share or 0.0)

    def rank(what_if: WhatIf) -> tuple[bool, float, bool, float, int]:
        largest = max((share.value for _, share in _touched(explanation, what_if.acts_on)), default=0.0)
        needs_import = bool(what_if.update.keys() & READ_AT_IMPORT)
        acts_on = len(what_if.acts_on)
        return not what_if.tests_suspect, -proposed.get(what_if.name, 0.0), needs_import, -largest, acts_on

    return sorted(what_ifs, key=rank)


def _touched(explanation: Explanation, acts_on: frozenset[StepPart]) -> Iterator[tuple[frozenset[StepPart], Interval]]:
    """Yield each measured difference that contains one of the parts, with its share of the program's step."""
    for part in explanation.parts:
        if part.step_parts & acts_on:
            yield part.step_parts, part.share
    rest = parts_of(explanation.lowest_loop)
    if rest & acts_on:
        yield rest, explanation.rest_share
