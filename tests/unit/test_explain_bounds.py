"""How much a what-if can gain at most, and the order in which what-ifs are tried."""

from __future__ import annotations

import pytest
from synthetic import explanation, ladder_results

from bench.analyse.explain import bounds
from bench.model.explanation import Explanation, Finding
from bench.model.interval import Interval
from bench.model.step_parts import STEP_PARTS, StepPart
from bench.whatif import Program, WhatIf, candidates


def ladder() -> Explanation:
    """Return an explanation in which input takes 93% of the step, dispatch 2% and computing 5%."""
    document = explanation(ladder_results())
    shares = {"input": 0.93, "copies": -0.01, "dispatch": 0.02}
    for part in document.parts:
        value = shares.get(part.name, 0.0)
        part.share = Interval(value=value, low=value - 0.01, high=value + 0.01, n=5)
    document.rest_share = Interval(value=0.05, low=0.04, high=0.06, n=5)
    return document


@pytest.mark.parametrize(
    ("acts_on", "share"),
    [({"input"}, 0.94), ({"dispatch"}, 0.03), ({"dispatch", "computing"}, 0.09), (set(STEP_PARTS), 1.0)],
)
def test_a_change_gains_at_most_the_upper_end_of_the_parts_that_it_acts_on(
    acts_on: set[StepPart], share: float
) -> None:
    assert bounds.at_most(ladder(), frozenset(acts_on)) == pytest.approx(share)


def test_a_part_without_an_interval_can_take_the_whole_step() -> None:
    document = ladder()
    document.parts[-1].share = Interval(value=0.02, n=1)
    assert bounds.at_most(document, frozenset({"dispatch"})) == 1.0


def test_what_ifs_of_the_largest_part_come_first_and_those_of_few_parts_before_those_of_many() -> None:
    document = ladder()
    spec = ladder_results()[0].spec
    all_what_ifs = [WhatIf("", "", name="cache", acts_on=frozenset({"input"})), *candidates(Program(spec))]
    names = list(dict.fromkeys(what_if.name for what_if in bounds.by_priority(document, all_what_ifs)))
    assert names == ["cache", "batch", "xla", "dtype", "threads", "onednn"]


def test_what_ifs_that_a_finding_proposes_come_before_others_of_a_larger_part() -> None:
    document = ladder()
    spec = ladder_results()[0].spec
    document.findings = [
        Finding(cause="a", sentence="", evidence="", what_ifs=["xla"], share=0.1),
        Finding(cause="b", sentence="", evidence="", what_ifs=["dtype"], share=0.2),
    ]
    names = [what_if.name for what_if in bounds.by_priority(document, candidates(Program(spec)))]
    assert list(dict.fromkeys(names))[:3] == ["dtype", "xla", "batch"]
