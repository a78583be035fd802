"""Explanations from results made by hand: parts, gains, findings, and what is printed of them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from synthetic import result
from test_analyse_compare import sample

from bench.analyse.explain.findings import findings
from bench.analyse.explain.fixed_cost import fixed_cost
from bench.analyse.explain.gains import gains
from bench.analyse.explain.ladder import caveats, ladder
from bench.model.explanation import Explanation, Fastest, Finding
from bench.model.facts import Facts, FitCall, GraphOperations
from bench.model.result import Failure, Interval, Operation, Placement, Result, ResultWarning, Telemetry
from bench.render.terminal import explanation
from bench.whatif import WhatIf

MOOD = (1.0, 1.6, 0.9, 1.3, 1.1)
"""How fast the machine is in each trial, for every worker in it."""


def level(loop: str, step: float, noise: float = 0.002, **changes: Any) -> Result:
    rng = random.Random(loop)
    samples = [sample(n, step * mood * rng.lognormvariate(0, noise)) for n, mood in enumerate(MOOD, 1)]
    return result(loop, loop=loop, samples=samples, purpose="level", parent="x", **changes)


LEVELS = {"as-written": 0.010, "step": 0.006, "host-batches": 0.004, "resident": 0.0039, "fused": 0.002}


def test_the_parts_are_what_lies_between_neighbours_whatever_the_machine_did() -> None:
    parts, rest, trials = ladder([level(loop, step) for loop, step in LEVELS.items()])
    assert trials == len(MOOD)
    assert [p.name for p in parts] == ["the program's own loop", "input", "copies", "dispatch"]
    assert [p.share.value for p in parts] == pytest.approx([0.4, 0.2, 0.01, 0.19], abs=0.005)
    assert sum(p.share.value for p in parts) + rest.value == pytest.approx(1.0)


def test_a_part_whose_interval_holds_zero_is_not_measurable() -> None:
    levels = [level("step", 0.006, 0.03), level("host-batches", 0.006, 0.03), level("resident", 0.003, 0.03)]
    parts, _, _ = ladder(levels)
    assert [p.measurable for p in parts] == [False, True]


def test_a_barer_loop_that_is_slower_is_a_negative_part() -> None:
    parts, rest, _ = ladder([level("host-batches", 0.005), level("resident", 0.006)])
    assert parts[0].share.value == pytest.approx(-0.2, abs=0.01)
    assert parts[0].measurable
    assert rest.value == pytest.approx(1.2, abs=0.01)


def test_intervals_of_several_parts_hold_together_as_often_as_they_say() -> None:
    rng = random.Random(13)
    held, trials = 0, 300
    shares = {"step": 0.010, "host-batches": 0.008, "resident": 0.006, "fused": 0.003}
    for _ in range(trials):
        levels = [
            result(loop, loop=loop, samples=[sample(n, step * rng.lognormvariate(0, 0.02)) for n in range(1, 7)])
            for loop, step in shares.items()
        ]
        parts = ladder(levels)[0]
        truths = (0.2, 0.2, 0.3)
        held += all((p.share.low or 0) <= t <= (p.share.high or 0) for p, t in zip(parts, truths, strict=True))
    assert held >= (0.95 - 3 * (0.05 * 0.95 / trials) ** 0.5) * trials


def test_where_rungs_are_missing_the_part_is_called_by_all_that_lies_between() -> None:
    parts, _, _ = ladder([level("host-batches", 0.004), level("fused", 0.002)])
    assert [p.name for p in parts] == ["copies and dispatch"]
    assert all(word in parts[0].what for word in ("converting", "calling TensorFlow"))


def test_parts_that_are_nothing_are_called_causes_at_most_as_often_as_the_level_says() -> None:
    rng = random.Random(11)
    wrong, trials = 0, 300
    for _ in range(trials):
        loops = ("step", "host-batches", "resident", "fused")
        levels = [
            result(loop, loop=loop, samples=[sample(n, 0.005 * rng.lognormvariate(0, 0.02)) for n in range(1, 7)])
            for loop in loops
        ]
        wrong += any(p.measurable for p in ladder(levels)[0])
    assert wrong <= 0.05 * trials + 3 * (0.05 * 0.95 * trials) ** 0.5


def test_gains_come_largest_first_and_a_change_that_failed_comes_last_with_why() -> None:
    base = level("step", 0.010)
    failed = level("step", 0.01, failure=Failure(kind="memory", message="OOM when allocating"))
    tried = {
        WhatIf("batch 512", "--param batch=512", "too small batches"): failed,
        WhatIf("1 thread", "--threads 1", "too many threads"): level("resident", 0.012),
        WhatIf("with XLA", "--xla on", "missing fusion"): level("fused", 0.005),
        WhatIf("without oneDNN", "--no-onednn"): level("host-batches", 0.010),
    }
    found = gains(base, tried, 0.02)
    assert [(g.what_if, g.verdict) for g in found] == [
        ("with XLA", "faster"), ("without oneDNN", "same"), ("1 thread", "slower"), ("batch 512", "not enough data"),
    ]  # fmt: skip
    assert found[-1].failure == "OOM when allocating"
    assert [g.fixes for g in found] == ["missing fusion", "", "", ""]  # only what is faster without it is a cause
    assert "50% of it was missing fusion" in explanation.gained(found[0])


def test_a_larger_batch_is_judged_by_the_example() -> None:
    base, larger = level("step", 0.010), level("fused", 0.020)
    for each, examples in ((base, 32), (larger, 128)):
        assert each.summary.step_seconds is not None
        each.summary.examples_per_second = examples / each.summary.step_seconds.value
    (found,) = gains(base, {WhatIf("batch 128", "--param batch=128"): larger}, 0.02)
    assert (found.unit, found.verdict) == ("example", "faster")
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(0.5, rel=0.02)


def batches(fixed: float, each: float, noise: float = 0.002) -> list[Result]:
    """A program at batch 32, 128 and 512 whose step has a fixed cost and one for each example."""
    found = []
    for size in (32, 128, 512):
        made = level("step", fixed + each * size, noise)
        found.append(made.model_copy(update={"spec": made.spec.model_copy(update={"params": {"batch": size}})}))
    return found


def test_the_batch_from_which_on_a_steps_fixed_cost_is_small_is_found() -> None:
    base, *larger = batches(fixed=0.001, each=1e-6)
    (found,) = fixed_cost(base, larger)
    assert found.cause == "too small steps"
    assert found.sentence.startswith("97% of a step is spent whatever its batch; from batch 9")
    assert "beyond what was measured" in found.sentence  # 9,000 of 512
    assert "1.15 ms and 1.15 µs an example" in found.evidence  # the moods, on average


def test_a_step_that_grows_with_its_batch_has_no_fixed_cost_worth_telling() -> None:
    base, *larger = batches(fixed=1e-5, each=1e-5)
    assert not list(fixed_cost(base, larger))
    assert not list(fixed_cost(base, larger[:1]))  # two points are a line, whatever is true


def causes(**of_sample: Any) -> list[str]:
    samples = [sample(n, 0.01, **of_sample) for n in (1, 2, 3)]
    return [f.cause for f in findings([result(samples=samples)])]


def test_odd_shapes_are_a_cause_only_where_there_are_tensor_cores() -> None:
    facts = {"products": {"count": 9, "odd": 3, "examples": {"dense_2/MatMul": [10]}}}

    def told(**changes: Any) -> list[str]:
        samples = [sample(n, 0.01, facts=facts) for n in (1, 2, 3)]
        return [f.sentence for f in findings([result(samples=samples, **changes)]) if "tensor cores" in f.cause]

    assert told() == []
    assert told(backend="cuda", dtype="float64") == []
    assert told(backend="cuda", dtype="float32", tf32=False) == []
    expected = ["3 of 9 matrix products have a side that is no multiple of 8"]
    assert told(backend="cuda") == told(backend="cuda", dtype="mixed_float16", tf32=False) == expected


@pytest.mark.parametrize(
    ("callbacks", "verbose", "cause"),
    [(["Slow"], 0, "callbacks and logging"), ([], "auto", "callbacks and logging"), ([], 0, "shuffling by fit")],
)
def test_what_fit_is_asked_for_beyond_a_bare_one_is_named_as_what_it_is(
    callbacks: list[str], verbose: Any, cause: str
) -> None:
    levels = [level("as-written", 0.010), level("fit", 0.006), level("step", 0.0059, 0.03)]
    levels[0].samples[0].facts.fit = FitCall(callbacks=callbacks, verbose=verbose, metrics=False)
    found = {f.cause: f for f in findings(levels, ladder(levels)[0])}
    assert cause in found
    assert found[cause].share == pytest.approx(0.4, abs=0.01)
    assert ", ".join(callbacks) in found[cause].evidence


def busy(cpu_share: float) -> Result:
    samples = [sample(n, 0.01) for n in (1, 2, 3)]
    for each in samples:
        for block in each.series[0].blocks:
            block.cpu_seconds = block.seconds * cpu_share
    return result(samples=samples)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert findings([busy(1.9)]) == []


def test_processors_that_idle_are_seen_in_cpu_time() -> None:
    assert [f.cause for f in findings([busy(0.9)])] == ["too little parallelism"]


def test_a_quota_that_throttles_is_seen_in_the_cgroups_counters() -> None:
    held = Telemetry(wall_seconds=2.0, throttled_seconds=0.5, throttled_periods=10)
    assert "CPU quota" in causes(telemetry=held)


def test_a_trace_a_step_is_retracing_and_a_few_are_not() -> None:
    def traced(count: int, steps: int, restarts: int = 0) -> bool:
        often = [{"function": "f", "file": "/a/mine.py", "line": 3, "count": count}]
        return "retracing" in causes(facts={"retraced": often, "steps_run": steps, "restarts": restarts})

    assert traced(400, 500)
    assert not traced(6, 2000)
    assert not traced(40, 500, restarts=39)  # once each time that devbench begins a short program again
    assert traced(400, 500, restarts=39)


def test_a_partial_batch_that_compiles_anew_is_told_in_steps() -> None:
    phases = {"first_step": 0.1, "partial_batch": 0.61, "partial_batch_again": 0.01}
    assert "a partial last batch" in causes(phases=phases)
    assert "a partial last batch" not in causes(phases={**phases, "partial_batch": 0.02})


def test_operations_on_the_host_are_named() -> None:
    stray = Placement(
        requested_device="GPU:0",
        method="partition graphs",
        verified=False,
        on_device=5,
        host_by_design={"EagerPyFunc": 1, "Const": 3},
        misplaced=[Operation(name="x", op="StringJoin", device="CPU:0")],
    )
    found = [f for f in findings([result(placement=stray)]) if f.cause == "operations kept on the host"]
    assert "EagerPyFunc, StringJoin on CPU:0" in found[0].sentence


def test_whole_numbers_are_named_where_there_is_a_host_to_keep_them_on() -> None:
    for backend, named in (("cuda", 1), ("cpu", 0)):
        found = result(backend=backend)
        found.samples[0].facts.int32 = GraphOperations(operations=2, lines=[7])
        told = [each for each in findings([found]) if each.cause == "operations kept on the host"]
        assert len(told) == named
        assert all("2 operations of the step compute in int32" in each.sentence for each in told)


def test_a_start_that_outweighs_a_short_program_is_told() -> None:
    short = result(samples=[sample(n, 0.001, phases={"trace": 0.4, "first_step": 0.2}) for n in (1, 2)])
    assert short.projection is not None
    short.projection.steps = 100
    assert "first-step costs" in [f.cause for f in findings([short])]


def test_callbacks_are_named_where_a_bare_fit_is_faster() -> None:
    levels = [level("as-written", 0.010), level("fit", 0.007), level("step", 0.006)]
    levels[0].samples[0].facts.fit = FitCall(callbacks=["Slow"], verbose="auto", metrics=False)
    found = {f.cause: f for f in findings(levels, ladder(levels)[0])}
    assert "30%" in found["callbacks and logging"].sentence
    assert "Slow" in found["callbacks and logging"].evidence
    assert "10%" in found["Keras' bookkeeping"].sentence


def explained(**changes: Any) -> Explanation:
    parts, rest, trials = ladder([level(loop, step) for loop, step in LEVELS.items()])
    given: dict[str, Any] = {
        "id": "x", "label": "cifar on cpu, as-written", "step_seconds": 0.01, "trials": trials, "parts": parts,
        "rest_seconds": 0.002, "rest_share": rest, "lowest": "fused",
        "gains": gains(level("step", 0.01), {WhatIf("with XLA", "--xla on"): level("fused", 0.005)}, 0.02),
        "what_if_loop": "as-written",
        "fastest": Fastest(
            words="with XLA", unit="step", times=Interval(value=2.0, low=1.9, high=2.1),
            command="devbench run cifar --xla on",
        ),
    }  # fmt: skip
    return Explanation(**{**given, **changes})


def test_the_largest_cause_and_the_best_change_are_the_first_sentence() -> None:
    shown = explanation.text(explained())
    first = " ".join(shown.split("\n\n")[0].split())
    assert first.startswith("cifar on cpu, as-written: a step takes 10.0 ms, of which 40% is the program's own loop")
    assert "Fastest found: with XLA, 2" in first
    assert "as fast per step." in first
    assert shown.rstrip().endswith("devbench run cifar --xla on")
    assert max(map(len, shown.splitlines())) <= 80


def test_what_did_not_help_is_named_in_a_line_and_what_is_slower_with_its_ratio() -> None:
    base = level("step", 0.010)
    tried = {
        WhatIf("with XLA", "--xla on"): level("fused", 0.005),
        WhatIf("1 thread", "--threads 1"): level("fused", 0.020),
        WhatIf("4 threads", "--threads 4"): level("fused", 0.0101),
        WhatIf("without oneDNN", "--no-onednn"): level("fused", 0.00999),
    }
    shown = explanation.text(explained(gains=gains(base, tried, 0.05)))
    told = shown.split("without it:\n")[1].split("\n\n")[0].splitlines()
    assert told[0].startswith("  faster: with XLA: 2.0")
    assert told[1] == "  no change: without oneDNN, 4 threads"
    assert told[2].startswith("  slower: 1 thread (2.0")
    assert told[2].endswith(" as long)")
    assert len(told) == 3


def test_a_program_without_a_barer_loop_is_not_called_computing() -> None:
    alone = ladder([level("as-written", 0.01)])
    told = explanation.text(
        explained(parts=alone[0], rest_share=alone[1], lowest="as-written", gains=[], fastest=None, what_if_loop="")
    )
    assert "computing" not in told
    assert "100% of it can't be divided, since no barer loop was measured: nothing else was seen" in " ".join(
        told.split()
    )


def test_eager_execution_is_what_lies_between_a_fit_that_asks_for_it_and_a_graph() -> None:
    levels = [level("fit", 0.010), level("step", 0.002)]
    for each in levels[0].samples:
        each.facts = Facts(fit=FitCall(callbacks=[], verbose=0, metrics=False), run_eagerly=True)
    parts = ladder(levels)[0]
    assert parts[0].name == "eager execution"
    causes = [f.cause for f in findings(levels, parts)]
    assert "eager execution" in causes
    assert "Keras' bookkeeping" not in causes


def test_what_its_rungs_warn_of_stands_below_an_explanation_once() -> None:
    levels = [level("as-written", 0.01), level("step", 0.005)]
    for each in levels:
        each.warnings = [ResultWarning(key="load", message="the machine was busy", fix="Close other programs.")]
    levels[1].warnings.append(ResultWarning(key="unsettled", message="it never settled"))
    found = caveats(levels)
    assert found == ["the machine was busy. Close other programs.", "step: it never settled"]
    told = " ".join(explanation.text(explained(caveats=found)).split())
    assert told.count("warning: the machine was busy. Close other programs.") == 1
    assert "warning: step: it never settled" in told


def test_a_partial_batch_that_recompiles_is_found_on_the_rung_that_has_it() -> None:
    levels = [level("as-written", 0.001), level("step", 0.001)]
    for each in levels[1].samples:
        each.phases |= {"partial_batch": 0.5, "partial_batch_again": 0.001}
    assert "a partial last batch" in [f.cause for f in findings(levels, ladder(levels)[0])]


def test_what_so_few_trials_cannot_tell_is_not_called_nothing() -> None:
    parts, rest, _ = ladder([level("step", 0.01, 0.3), level("resident", 0.006, 0.3)])
    told = explanation.headline(explained(parts=parts, rest_share=rest, gains=[], fastest=None))
    assert "nothing is wrong" not in told
    assert "--max-time" in told
    assert "% lies between levels" in told
    below = [part.model_copy(update={"share": Interval(value=-1.2)}) for part in parts]
    told = explanation.headline(explained(parts=below, rest_share=rest, gains=[], fastest=None))
    assert "all of which lies between levels" in told


def test_where_nothing_is_wrong_that_is_what_is_said() -> None:
    parts, rest, _ = ladder([level("step", 0.01, 0.02), level("resident", 0.01, 0.02)])
    same = gains(level("step", 0.01), {WhatIf("with XLA", "--xla on"): level("fused", 0.01)}, 0.02)
    told = explanation.headline(explained(parts=parts, rest_share=rest, fastest=None, gains=same))
    assert "nothing is wrong that was looked for" in told
    untried = explanation.headline(explained(parts=parts, rest_share=rest, fastest=None, gains=[]))
    assert "nothing is wrong" not in untried
    seen = [Finding(cause="CPU quota", sentence="held back", evidence="x")]
    found = explanation.headline(explained(parts=parts, rest_share=rest, fastest=None, findings=seen, gains=same))
    assert "nothing is wrong" not in found
    assert "stands below" in found


def test_a_change_that_is_faster_is_in_the_first_sentence_though_none_is_called_the_fastest() -> None:
    parts, rest, _ = ladder([level("step", 0.01, 0.02), level("resident", 0.01, 0.02)])
    base = level("step", 0.01)
    found = gains(base, {WhatIf("with XLA", "--xla on"): level("fused", 0.009)}, 0.02)
    told = explanation.headline(explained(parts=parts, rest_share=rest, fastest=None, gains=found))
    assert "nothing is wrong" not in told
    assert "What helps: with XLA, 1.1" in told
    assert told.endswith("as fast per step as the loop as-written without it.")
    (all_of_it,) = gains(
        base, {WhatIf("with XLA and 1 thread", "--xla on --threads 1"): level("resident", 0.005)}, 0.02
    )
    told = explanation.headline(explained(parts=parts, rest_share=rest, fastest=None, gains=found, combined=all_of_it))
    assert "What helps: with XLA and 1 thread, 1.99" in told
