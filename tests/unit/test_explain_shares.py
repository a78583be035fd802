"""The share of each cause in an explanation, and its fix."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import result
from test_analyse_compare import sample
from test_explain import explained, level

from bench.analyse.explain import shares
from bench.analyse.explain.findings import findings
from bench.analyse.explain.gains import gains
from bench.analyse.explain.ladder import ladder
from bench.analyse.explain.utilization import bound
from bench.model.explanation import Finding
from bench.model.facts import Facts
from bench.model.placement import Operation, Placement
from bench.model.recognition import Recognition, StepSource
from bench.model.result import Result
from bench.model.roofline import Roofline
from bench.render.report.document import Table
from bench.render.report.sections import explanation as section
from bench.render.terminal import explanation
from bench.whatif import WhatIf, batch

INSPECTED: dict[str, Any] = {"retraced": []}
"""Facts of a level whose steps were inspected without a finding."""


def inspected(loop: str, step: float, noise: float = 0.002, **facts: Any) -> Result:
    measured = level(loop, step, noise)
    measured.samples[0].facts = Facts(**{**INSPECTED, **facts})
    return measured


def finding(levels: list[Result], cause: str) -> Finding:
    return next(candidate for candidate in findings(levels, ladder(levels)[0]) if candidate.cause == cause)


READS: dict[str, Any] = {"host_reads": {"per_step": 1, "lines": [12]}}
DOUBLES: dict[str, Any] = {"float64": {"operations": 0, "arguments": 1, "lines": []}}
PYTHON: dict[str, Any] = {"python": {"operations": 1, "lines": [7]}}


@pytest.mark.parametrize(
    ("facts", "cause"),
    [(READS, "per-step synchronization"), (DOUBLES, "float64"), (PYTHON, "Python inside the graph")],
)
def test_the_share_of_a_cause_that_the_next_level_lacks_is_the_part_between_the_two_levels(
    facts: dict[str, Any], cause: str
) -> None:
    cost = finding([inspected("as-written", 0.010, **facts), inspected("step", 0.004)], cause)
    assert cost.share == pytest.approx(0.6, rel=0.02)
    assert cost.evidence.endswith("as-written minus step is 60% of the step")


def test_the_advice_for_reads_depends_on_whether_the_steps_train() -> None:
    level = inspected("as-written", 0.010, **READS)
    for kind, advice in (("updates", "Read the loss every 100 steps"), ("model", "Read the outputs of many steps")):
        source = StepSource(kind=kind, name="model", file="a.py", line=3, token="", steps=90)
        level.recognition = Recognition(chosen=source, ended=True, seconds=1.0)
        assert finding([level, inspected("step", 0.004)], "per-step synchronization").fix.startswith(advice)


def test_the_advice_for_reads_of_a_workload_speaks_of_the_loss_only_if_it_is_known_to_train() -> None:
    call: dict[str, Any] = {"fit": {"callbacks": [], "verbose": 0, "metrics": False}}
    for facts, advice in (({}, "Keep the values as tensors"), (call, "Read the loss every 100 steps")):
        level = inspected("as-written", 0.010, **READS, **facts)
        assert level.recognition is None
        assert finding([level, inspected("step", 0.004)], "per-step synchronization").fix.startswith(advice)


def test_the_share_of_a_cause_is_measured_at_the_first_level_without_it() -> None:
    levels = [inspected("as-written", 0.010, **DOUBLES), inspected("step", 0.006, **DOUBLES)]
    assert finding(levels, "float64").share is None
    assert finding([*levels, inspected("host-batches", 0.003)], "float64").share == pytest.approx(0.3, rel=0.02)


def test_the_share_of_a_cause_includes_what_fit_adds_to_a_program_with_its_own_loop() -> None:
    levels = [inspected("as-written", 0.010, **READS), inspected("fit", 0.009), inspected("step", 0.004)]
    cost = finding(levels, "per-step synchronization")
    assert cost.share == pytest.approx(0.6, rel=0.02)
    assert cost.evidence.endswith("as-written minus step is 60% of the step")


def test_the_share_of_host_operations_is_measured_at_the_level_that_runs_them_on_the_device() -> None:
    levels = [inspected("as-written", 0.010), inspected("step", 0.004)]
    strays = [Operation(name="x", op="StringJoin", device="CPU:0")]
    levels[0].placement = Placement(requested_device="GPU:0", method="x", verified=False, on_device=5, misplaced=strays)
    assert finding(levels, "operations on the host").share == pytest.approx(0.6, rel=0.02)


def test_python_that_the_next_level_also_calls_has_no_share() -> None:
    levels = [inspected("as-written", 0.010, **PYTHON), inspected("step", 0.004, **PYTHON)]
    levels[1].placement = Placement(
        requested_device="CPU:0",
        method="partition graphs",
        verified=True,
        on_device=5,
        host_by_design={"EagerPyFunc": 1},
    )
    assert finding(levels, "Python inside the graph").share is None


def test_causes_that_the_same_level_lacks_say_that_they_share_the_part() -> None:
    levels = [inspected("as-written", 0.010, **READS, **DOUBLES), inspected("step", 0.004)]
    for cause in ("per-step synchronization", "float64"):
        assert finding(levels, cause).evidence.endswith(", shared with other findings")


def test_a_cause_has_no_share_if_the_part_is_not_measurable_or_the_level_was_not_inspected() -> None:
    noisy = [inspected("as-written", 0.010, 0.3, **READS), inspected("step", 0.0099, 0.3)]
    assert {candidate.share for candidate in findings(noisy, ladder(noisy)[0])} == {None}
    not_inspected = [inspected("as-written", 0.010, **READS), level("step", 0.004)]
    assert {candidate.share for candidate in findings(not_inspected, ladder(not_inspected)[0])} == {None}


def test_the_share_of_idle_cpus_is_the_gain_of_the_larger_batch() -> None:
    idle = Finding(cause="too little parallelism", sentence="One of two CPUs is busy.", evidence="CPU time")
    base, larger = level("step", 0.010), level("fused", 0.005)
    results = {WhatIf("batch 128", "--param batch=128", batch.CAUSE): larger}
    document = explained(findings=[idle], gains=gains(base, results, 0.02), what_if_loop="step")
    shares.from_what_ifs(document)
    assert idle.share == pytest.approx(0.3, rel=0.02)  # half of the 60% that the level step takes
    assert idle.evidence == "CPU time; the loop step takes 50% less per step with batch 128"


def test_idle_cpus_have_no_share_if_no_larger_batch_is_faster() -> None:
    idle = Finding(cause="too little parallelism", sentence="One of two CPUs is busy.", evidence="CPU time")
    same = {WhatIf("batch 128", "--param batch=128", batch.CAUSE): level("fused", 0.010)}
    document = explained(findings=[idle], gains=gains(level("step", 0.010), same, 0.02), what_if_loop="step")
    shares.from_what_ifs(document)
    assert (idle.share, idle.evidence) == (None, "CPU time")


def test_a_partial_batch_has_a_share_of_all_steps() -> None:
    phases = {"partial_batch": 0.51, "partial_batch_again": 0.01}
    facts = {"epoch": {"batches": 49, "remainder": 4}}
    base = result(samples=[sample(n, 0.01, phases=phases, facts=facts) for n in (1, 2, 3)])
    assert base.projection is not None
    (partial_batch,) = (finding for finding in findings([base]) if finding.cause == "partial last batch")
    steps = base.projection.steps
    assert partial_batch.share == pytest.approx(0.5 / (0.5 + 0.01 * steps))
    assert f"of the time of all {steps:,} steps." in partial_batch.sentence


def test_a_slow_start_has_a_share_of_all_steps() -> None:
    short = result(samples=[sample(n, 0.001, phases={"trace": 0.075, "first_step": 0.026}) for n in (1, 2)])
    assert short.projection is not None
    short.projection.steps = 100
    start_cost = next(candidate for candidate in findings([short]) if candidate.cause == "first-step costs")
    assert start_cost.share == pytest.approx(0.5)
    assert start_cost.sentence.endswith("as long as 101 steps. That is 50% of the time of all 100 steps.")


def test_a_bound_says_how_much_of_the_step_it_applies_to() -> None:
    roofline = Roofline(
        flops=2.4e9, flops_method="counted", bytes=5e7, intensity=48, flops_per_second=90e9, dtype="float32",
        compute_peak=110e9, memory_peak=48 * 12e9, cache_peak=None, bound="compute", share=0.8,
        exceeds_memory_peak=False,
    )  # fmt: skip
    (finding,) = bound(roofline, 0.7)
    assert finding.sentence == "During 70% of the step, the device computes at 80% of the compute peak."


def test_a_finding_says_if_its_share_was_not_measured() -> None:
    without_share = Finding(
        cause="float64", sentence="3 operations compute in float64.", evidence="dtypes", fix="Convert."
    )
    text = " ".join(explanation.text(explained(findings=[without_share])).split())
    assert "float64: 3 operations compute in float64. Its share of the step was not measured. Evidence: dtypes" in text
    assert "Fix: Convert." in text
    with_share = without_share.model_copy(update={"share": 0.2})
    assert "not measured" not in explanation.text(explained(findings=[with_share]))


def test_a_large_part_is_shown_with_its_fix() -> None:
    document = explained()
    parts = {part.name: part for part in document.parts}
    assert {name for name, part in parts.items() if part.fix} == {"the program's own loop", "input", "dispatch"}
    assert "larger batch" in parts["dispatch"].fix
    text = " ".join(explanation.text(document, verbose=True).split())
    assert f"(resident minus fused, {1000 * parts['dispatch'].seconds:.2f} ms) Fix: {parts['dispatch'].fix}" in text


def test_every_part_has_a_fix() -> None:
    loops = ("as-written", "fit", "step", "host-batches", "resident", "fused")
    for first in loops[:-1]:
        for then in loops[loops.index(first) + 1 :]:
            (part,) = ladder([level(first, 0.010), level(then, 0.004)])[0]
            assert part.fix or part.what_ifs, (first, then)


def test_a_part_that_is_small_or_not_measurable_or_negative_has_no_fix() -> None:
    for steps, noise in (((0.010, 0.0097), 0.002), ((0.010, 0.006), 0.5), ((0.010, 0.014), 0.002)):
        parts, _, _ = ladder([level("host-batches", steps[0], noise), level("resident", steps[1], noise)])
        assert (parts[0].fix, parts[0].what_ifs) == ("", [])


def test_the_report_shows_the_fix_of_each_part() -> None:
    document = explained()
    table = next(part for part in section.sections(document, 0.02)[1].content if isinstance(part, Table))
    assert table.head[-1] == "fix"
    assert [row.cells[-1] for row in table.rows] == [*(part.fix for part in document.parts), ""]


def test_the_report_says_if_a_share_was_not_measured() -> None:
    unknown = Finding(cause="float64", sentence="3 operations compute in float64.", evidence="dtypes", fix="Convert.")
    causes = next(s for s in section.sections(explained(findings=[unknown]), 0.02) if s.title == "Findings")
    assert "Its share of the step was not measured" in str(causes.content[0])
