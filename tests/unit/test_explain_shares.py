"""What an explanation says of each cause: its share of the step, where one was measured, and what to change."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import result
from test_analyse_compare import sample
from test_explain import LEVELS, explained, level

from bench.analyse.explain.findings import findings, shares_by_changes
from bench.analyse.explain.gains import gains
from bench.analyse.explain.ladder import ladder
from bench.analyse.explain.utilization import under_the_roof
from bench.model.explanation import Finding
from bench.model.facts import Facts
from bench.model.result import Operation, Placement, Result
from bench.model.roofline import Roofline
from bench.render.report.parts import Table
from bench.render.report.sections import explanation as section
from bench.render.terminal import explanation
from bench.whatif import WhatIf

LOOKED_AT: dict[str, Any] = {"retraced": []}
"""What a level tells whose steps were looked at and had nothing to tell."""


def looked_at(loop: str, step: float, noise: float = 0.002, **facts: Any) -> Result:
    made = level(loop, step, noise)
    made.samples[0].facts = Facts(**{**LOOKED_AT, **facts})
    return made


def told(levels: list[Result], cause: str) -> Finding:
    return next(each for each in findings(levels, ladder(levels)[0]) if each.cause == cause)


READS: dict[str, Any] = {"host_reads": {"per_step": 1, "lines": [12]}}
DOUBLES: dict[str, Any] = {"float64": {"operations": 0, "arguments": 1, "lines": []}}
PYTHON: dict[str, Any] = {"python": {"operations": 1, "lines": [7]}}


@pytest.mark.parametrize(
    ("facts", "cause"),
    [(READS, "per-step synchronisation"), (DOUBLES, "float64"), (PYTHON, "Python within the graph")],
)
def test_a_cause_that_the_next_rung_is_without_has_what_lies_between_the_two_as_its_share(
    facts: dict[str, Any], cause: str
) -> None:
    found = told([looked_at("as-written", 0.010, **facts), looked_at("step", 0.004)], cause)
    assert found.share == pytest.approx(0.6, rel=0.02)
    assert found.evidence.endswith("as-written less step is 60% of the step")


def test_a_cause_is_weighed_where_the_ladder_loses_it_and_not_before() -> None:
    levels = [looked_at("as-written", 0.010, **DOUBLES), looked_at("step", 0.006, **DOUBLES)]
    assert told(levels, "float64").share is None
    assert told([*levels, looked_at("host-batches", 0.003)], "float64").share == pytest.approx(0.3, rel=0.02)


def test_what_fit_adds_to_a_program_that_has_a_loop_of_its_own_is_not_taken_off_a_causes_share() -> None:
    levels = [looked_at("as-written", 0.010, **READS), looked_at("fit", 0.009), looked_at("step", 0.004)]
    found = told(levels, "per-step synchronisation")
    assert found.share == pytest.approx(0.6, rel=0.02)
    assert found.evidence.endswith("as-written less step is 60% of the step")


def test_operations_on_the_host_are_weighed_by_the_rung_that_has_them_on_the_device() -> None:
    levels = [looked_at("as-written", 0.010), looked_at("step", 0.004)]
    strays = [Operation(name="x", op="StringJoin", device="CPU:0")]
    levels[0].placement = Placement(requested_device="GPU:0", method="x", verified=False, on_device=5, misplaced=strays)
    assert told(levels, "operations kept on the host").share == pytest.approx(0.6, rel=0.02)


def test_python_that_a_barer_rung_calls_too_has_no_share_whatever_shows_it_there() -> None:
    levels = [looked_at("as-written", 0.010, **PYTHON), looked_at("step", 0.004, **PYTHON)]
    levels[1].placement = Placement(
        requested_device="CPU:0",
        method="partition graphs",
        verified=True,
        on_device=5,
        host_by_design={"EagerPyFunc": 1},
    )
    assert told(levels, "Python within the graph").share is None


def test_causes_that_the_same_rung_is_without_say_that_they_share_it() -> None:
    levels = [looked_at("as-written", 0.010, **READS, **DOUBLES), looked_at("step", 0.004)]
    for cause in ("per-step synchronisation", "float64"):
        assert told(levels, cause).evidence.endswith("with what else is named here that it is without")


def test_a_difference_that_may_be_nothing_is_no_share_nor_is_one_to_a_rung_that_nobody_looked_at() -> None:
    unsure = [looked_at("as-written", 0.010, 0.3, **READS), looked_at("step", 0.0099, 0.3)]
    assert {each.share for each in findings(unsure, ladder(unsure)[0])} == {None}
    unseen = [looked_at("as-written", 0.010, **READS), level("step", 0.004)]
    assert {each.share for each in findings(unseen, ladder(unseen)[0])} == {None}


def test_processors_that_idle_are_weighed_by_the_larger_batch_that_is_faster() -> None:
    idle = Finding(cause="too little parallelism", sentence="one of two is busy", evidence="CPU time")
    base, larger = level("step", 0.010), level("fused", 0.005)
    batch = {WhatIf("batch 128", "--param batch=128", "too small batches"): larger}
    why = explained(findings=[idle], gains=gains(base, batch, 0.02), what_if_loop="step")
    shares_by_changes(why)
    assert idle.share == pytest.approx(0.3, rel=0.02)  # half of `step`, which takes 60% of the program's own step
    assert idle.evidence == "CPU time; with batch 128 the loop step takes 50% less per step"


def test_processors_that_idle_have_no_share_where_no_larger_batch_is_faster() -> None:
    idle = Finding(cause="too little parallelism", sentence="one of two is busy", evidence="CPU time")
    same = {WhatIf("batch 128", "--param batch=128", "too small batches"): level("fused", 0.010)}
    why = explained(findings=[idle], gains=gains(level("step", 0.010), same, 0.02), what_if_loop="step")
    shares_by_changes(why)
    assert (idle.share, idle.evidence) == (None, "CPU time")


def test_a_partial_batch_has_its_share_of_the_first_epoch() -> None:
    phases = {"partial_batch": 0.51, "partial_batch_again": 0.01}
    facts = {"epoch": {"batches": 49, "remainder": 4}}
    (found,) = (
        each
        for each in findings([result(samples=[sample(n, 0.01, phases=phases, facts=facts) for n in (1, 2, 3)])])
        if each.cause == "a partial last batch"
    )
    assert found.share == pytest.approx(0.5 / (0.49 + 0.51))
    assert "which is 50% of the first epoch's time" in found.sentence


def test_a_start_has_its_share_of_all_steps() -> None:
    short = result(samples=[sample(n, 0.001, phases={"trace": 0.075, "first_step": 0.026}) for n in (1, 2)])
    assert short.projection is not None
    short.projection.steps = 100
    found = next(each for each in findings([short]) if each.cause == "first-step costs")
    assert found.share == pytest.approx(0.5)
    assert found.sentence.endswith("as long as 101 steps of 100: 50% of the time of all steps")


def test_a_roof_says_of_how_much_of_the_step_it_is_the_bound() -> None:
    roofline = Roofline(
        flops=2.4e9, flops_method="counted", bytes=5e7, intensity=48, attained=90e9, dtype="float32",
        compute_roof=110e9, memory_roof=48 * 12e9, cache_roof=None, roof="compute", share=0.8, beyond_memory=False,
    )  # fmt: skip
    (found,) = under_the_roof(roofline, 0.7)
    assert found.sentence == "for 70% of the step the device computes about as fast as it can: 80% of the compute roof"


def test_a_cause_whose_share_nobody_measured_says_so() -> None:
    unknown = Finding(cause="float64", sentence="3 operations compute in float64", evidence="dtypes", fix="Convert.")
    shown = " ".join(explanation.text(explained(findings=[unknown])).split())
    assert "float64: 3 operations compute in float64; its share was not measured (dtypes). Convert." in shown
    known = unknown.model_copy(update={"share": 0.2})
    assert "not measured" not in explanation.text(explained(findings=[known]))


def test_a_part_that_takes_much_of_the_step_is_told_with_what_to_change() -> None:
    parts = {part.name: part for part in ladder([level(loop, step) for loop, step in LEVELS.items()])[0]}
    assert {name for name, part in parts.items() if part.fix} == {"the program's own loop", "input", "dispatch"}
    assert "larger batch" in parts["dispatch"].fix
    shown = " ".join(explanation.text(explained()).split())
    assert f"(resident less fused, {1000 * parts['dispatch'].seconds:.2f} ms). {parts['dispatch'].fix}" in shown


def test_each_part_that_can_be_large_has_something_to_change() -> None:
    loops = ("as-written", "fit", "step", "host-batches", "resident", "fused")
    for first in loops[:-1]:
        for then in loops[loops.index(first) + 1 :]:
            (part,) = ladder([level(first, 0.010), level(then, 0.004)])[0]
            assert part.fix, (first, then)


def test_a_part_that_is_small_or_unsure_or_negative_has_nothing_to_change() -> None:
    for steps, noise in (((0.010, 0.0097), 0.002), ((0.010, 0.006), 0.5), ((0.010, 0.014), 0.002)):
        parts, _, _ = ladder([level("host-batches", steps[0], noise), level("resident", steps[1], noise)])
        assert parts[0].fix == ""


def test_the_report_shows_what_to_change_beside_each_part() -> None:
    why = explained()
    table = next(part for part in section.sections(why, 0.02)[0].parts if isinstance(part, Table))
    assert table.head[-1] == "what to change"
    assert [row.cells[-1] for row in table.rows] == [*(part.fix for part in why.parts), ""]


def test_the_report_says_that_a_share_was_not_measured() -> None:
    unknown = Finding(cause="float64", sentence="3 operations compute in float64", evidence="dtypes", fix="Convert.")
    causes = next(s for s in section.sections(explained(findings=[unknown]), 0.02) if s.title.startswith("Causes"))
    assert "its share was not measured" in str(causes.parts[0])
