"""Explanations of synthetic results: parts, gains, findings and their text."""

from __future__ import annotations

import random
import re
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
from bench.render.sentences import explanation as sentences
from bench.render.terminal import explanation
from bench.whatif import WhatIf

SLOWDOWN = (1.0, 1.6, 0.9, 1.3, 1.1)
"""How slow the machine is in each trial, for all of its workers."""


def level(loop: str, step: float, noise: float = 0.002, **changes: Any) -> Result:
    rng = random.Random(loop)
    samples = [sample(n, step * slowdown * rng.lognormvariate(0, noise)) for n, slowdown in enumerate(SLOWDOWN, 1)]
    return result(loop, loop=loop, samples=samples, purpose="level", parent="x", **changes)


LEVELS = {"as-written": 0.010, "step": 0.006, "host-batches": 0.004, "resident": 0.0039, "fused": 0.002}


def test_parts_are_differences_of_neighbouring_levels_even_on_a_noisy_machine() -> None:
    parts, rest, trials = ladder([level(loop, step) for loop, step in LEVELS.items()])
    assert trials == len(SLOWDOWN)
    assert [p.name for p in parts] == ["the program's own loop", "input", "copies", "dispatch"]
    assert [p.share.value for p in parts] == pytest.approx([0.4, 0.2, 0.01, 0.19], abs=0.005)
    assert sum(p.share.value for p in parts) + rest.value == pytest.approx(1.0)


def test_a_part_whose_interval_contains_zero_is_not_measurable() -> None:
    levels = [level("step", 0.006, 0.03), level("host-batches", 0.006, 0.03), level("resident", 0.003, 0.03)]
    parts, _, _ = ladder(levels)
    assert [p.measurable for p in parts] == [False, True]


def test_a_barer_loop_that_is_slower_gives_a_negative_part() -> None:
    parts, rest, _ = ladder([level("host-batches", 0.005), level("resident", 0.006)])
    assert parts[0].share.value == pytest.approx(-0.2, abs=0.01)
    assert parts[0].measurable
    assert rest.value == pytest.approx(1.2, abs=0.01)


def test_the_intervals_of_all_parts_hold_together_in_95_percent_of_explanations() -> None:
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


def test_a_part_across_a_missing_level_names_everything_between_the_two_levels() -> None:
    parts, _, _ = ladder([level("host-batches", 0.004), level("fused", 0.002)])
    assert [p.name for p in parts] == ["copies and dispatch"]
    assert all(word in parts[0].what for word in ("converting", "calling TensorFlow"))


def test_levels_of_equal_speed_rarely_give_a_measurable_part() -> None:
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


def test_gains_are_sorted_largest_first_and_a_failed_what_if_comes_last_with_its_reason() -> None:
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
    assert [g.fixes for g in found] == ["missing fusion", "", "", ""]  # a what-if that is not faster removes no cause
    assert "Cause: missing fusion, 50% of the time" in explanation.gain_line(found[0])


def test_a_larger_batch_is_compared_per_example() -> None:
    base, larger = level("step", 0.010), level("fused", 0.020)
    for each, examples in ((base, 32), (larger, 128)):
        assert each.summary.step_seconds is not None
        each.summary.examples_per_second = examples / each.summary.step_seconds.value
    (found,) = gains(base, {WhatIf("batch 128", "--param batch=128"): larger}, 0.02)
    assert (found.unit, found.verdict) == ("example", "faster")
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(0.5, rel=0.02)


def batches(fixed: float, each: float, noise: float = 0.002) -> list[Result]:
    """Return results at batch 32, 128 and 512 of a step with a fixed cost and a cost per example."""
    found = []
    for size in (32, 128, 512):
        made = level("step", fixed + each * size, noise)
        found.append(made.model_copy(update={"spec": made.spec.model_copy(update={"params": {"batch": size}})}))
    return found


def test_small_steps_are_found_with_the_batch_from_which_their_fixed_cost_is_small() -> None:
    base, *larger = batches(fixed=0.001, each=1e-6)
    (found,) = fixed_cost(base, larger)
    assert found.cause == "small steps"
    assert found.sentence.startswith(
        "97% of a step does not depend on its batch. This share falls below 10% at batch 9"
    )
    assert "larger than any batch that was measured" in found.sentence  # 9,000 of 512
    assert "1.15 ms and 1.15 µs per example" in found.evidence  # the slowdowns, on average


def test_a_step_that_grows_with_its_batch_is_not_called_small() -> None:
    base, *larger = batches(fixed=1e-5, each=1e-5)
    assert not list(fixed_cost(base, larger))
    assert not list(fixed_cost(base, larger[:1]))  # any two points lie on a line


def causes(**of_sample: Any) -> list[str]:
    samples = [sample(n, 0.01, **of_sample) for n in (1, 2, 3)]
    return [f.cause for f in findings([result(samples=samples)])]


def test_odd_shapes_are_a_finding_only_if_there_are_tensor_cores() -> None:
    facts = {"products": {"count": 9, "odd": 3, "examples": {"dense_2/MatMul": [10]}}}

    def told(**changes: Any) -> list[str]:
        samples = [sample(n, 0.01, facts=facts) for n in (1, 2, 3)]
        return [f.sentence for f in findings([result(samples=samples, **changes)]) if "tensor cores" in f.cause]

    assert told() == []
    assert told(backend="cuda", dtype="float64") == []
    assert told(backend="cuda", dtype="float32", tf32=False) == []
    expected = ["3 of 9 matrix products have a side that is not a multiple of 8."]
    assert told(backend="cuda") == told(backend="cuda", dtype="mixed_float16", tf32=False) == expected


@pytest.mark.parametrize(
    ("callbacks", "verbose", "cause"),
    [(["Slow"], 0, "callbacks and logging"), ([], "auto", "callbacks and logging"), ([], 0, "shuffling in fit")],
)
def test_the_cost_of_a_call_of_fit_is_attributed_to_callbacks_output_or_shuffling(
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


def test_a_program_that_uses_its_cpus_has_no_findings() -> None:
    assert findings([busy(1.9)]) == []


def test_idle_cpus_are_found_from_cpu_time() -> None:
    assert [f.cause for f in findings([busy(0.9)])] == ["too little parallelism"]


def test_a_cpu_quota_is_found_from_the_counters_of_the_cgroup() -> None:
    held = Telemetry(wall_seconds=2.0, throttled_seconds=0.5, throttled_periods=10)
    assert "CPU quota" in causes(telemetry=held)


def test_a_trace_in_each_step_is_retracing_but_a_few_traces_are_not() -> None:
    def traced(count: int, steps: int, restarts: int = 0) -> bool:
        often = [{"function": "f", "file": "/a/mine.py", "line": 3, "count": count}]
        return "retracing" in causes(facts={"retraced": often, "steps_run": steps, "restarts": restarts})

    assert traced(400, 500)
    assert not traced(6, 2000)
    assert not traced(40, 500, restarts=39)  # one trace each time that devbench restarts a short program
    assert traced(400, 500, restarts=39)


def test_a_partial_batch_is_a_finding_only_if_its_first_time_is_slow() -> None:
    phases = {"first_step": 0.1, "partial_batch": 0.61, "partial_batch_again": 0.01}
    assert "partial last batch" in causes(phases=phases)
    assert "partial last batch" not in causes(phases={**phases, "partial_batch": 0.02})


def test_operations_on_the_host_are_named() -> None:
    stray = Placement(
        requested_device="GPU:0",
        method="partition graphs",
        verified=False,
        on_device=5,
        host_by_design={"EagerPyFunc": 1, "Const": 3},
        misplaced=[Operation(name="x", op="StringJoin", device="CPU:0")],
    )
    found = [f for f in findings([result(placement=stray)]) if f.cause == "operations on the host"]
    assert "outside GPU:0: EagerPyFunc, StringJoin on CPU:0." in found[0].sentence


def test_int32_arithmetic_is_a_finding_only_on_an_accelerator() -> None:
    for backend, named in (("cuda", 1), ("cpu", 0)):
        found = result(backend=backend)
        found.samples[0].facts.int32 = GraphOperations(operations=2, lines=[7])
        told = [each for each in findings([found]) if each.cause == "operations on the host"]
        assert len(told) == named
        assert all("2 operations of the step compute in int32" in each.sentence for each in told)


def test_a_slow_start_of_a_short_program_is_a_finding() -> None:
    short = result(samples=[sample(n, 0.001, phases={"trace": 0.4, "first_step": 0.2}) for n in (1, 2)])
    assert short.projection is not None
    short.projection.steps = 100
    assert "first-step costs" in [f.cause for f in findings([short])]


def test_callbacks_are_named_if_a_bare_fit_is_faster() -> None:
    levels = [level("as-written", 0.010), level("fit", 0.007), level("step", 0.006)]
    levels[0].samples[0].facts.fit = FitCall(callbacks=["Slow"], verbose="auto", metrics=False)
    found = {f.cause: f for f in findings(levels, ladder(levels)[0])}
    assert "30%" in found["callbacks and logging"].sentence
    assert "Slow" in found["callbacks and logging"].evidence
    assert "10%" in found["Keras overhead"].sentence


def explained(**changes: Any) -> Explanation:
    parts, rest, trials = ladder([level(loop, step) for loop, step in LEVELS.items()])
    given: dict[str, Any] = {
        "id": "x", "label": "cifar on cpu, as-written", "step_seconds": 0.01, "trials": trials, "parts": parts,
        "rest_seconds": 0.002, "rest_share": rest, "lowest_level": "fused",
        "gains": gains(level("step", 0.01), {WhatIf("with XLA", "--xla on"): level("fused", 0.005)}, 0.02),
        "what_if_loop": "as-written",
        "fastest": Fastest(
            words="with XLA", unit="step", speedup=Interval(value=2.0, low=1.9, high=2.1),
            command="devbench run cifar --xla on",
        ),
    }  # fmt: skip
    return Explanation(**{**given, **changes})


def test_the_headline_names_the_largest_part_and_the_fastest_configuration() -> None:
    shown = explanation.text(explained())
    first = " ".join(shown.split("\n\n")[0].split())
    assert first.startswith("cifar on cpu, as-written: a step takes 10.0 ms. 40% of it is the program's own loop:")
    assert "Fastest found: with XLA, 2" in first
    assert "as fast per step." in first
    assert shown.rstrip().endswith("devbench run cifar --xla on")
    assert max(map(len, shown.splitlines())) <= 80


def test_what_ifs_that_are_not_faster_share_a_line_for_each_verdict() -> None:
    base = level("step", 0.010)
    tried = {
        WhatIf("with XLA", "--xla on"): level("fused", 0.005),
        WhatIf("1 thread", "--threads 1"): level("fused", 0.020),
        WhatIf("4 threads", "--threads 4"): level("fused", 0.0101),
        WhatIf("without oneDNN", "--no-onednn"): level("fused", 0.00999),
    }
    shown = explanation.text(explained(gains=gains(base, tried, 0.05)))
    told = shown.split("without it:\n")[1].split("\n\n")[0].splitlines()
    assert told[0].startswith("  faster: with XLA (--xla on): 2.0")
    assert told[1] == "  same: without oneDNN, 4 threads"
    assert told[2].startswith("  slower: 1 thread (2.0")
    assert told[2].endswith(" as long)")
    assert len(told) == 3


def test_a_program_without_a_barer_loop_is_not_called_computing() -> None:
    parts, rest, _ = ladder([level("as-written", 0.01)])
    found = explained(parts=parts, rest_share=rest, lowest_level="as-written", gains=[], fastest=None, what_if_loop="")
    told = explanation.text(found)
    assert "computing" not in told
    first = " ".join(told.split("\n\n")[0].split())
    assert first.endswith(
        "100% of it is not divided into parts, because no barer loop was measured. No finding names a cause."
    )


def test_loops_that_are_missing_for_the_same_reason_share_a_line() -> None:
    reason = "there is no step to call"
    missing = {"fit": "there is no model", "step": reason, "resident": reason}
    shown = explanation.text(explained(missing_levels=missing))
    assert "  not on the ladder: fit: there is no model\n" in shown
    assert "  not on the ladder: step, resident: there is no step to call\n" in shown


def test_an_eager_fit_minus_a_graph_is_eager_execution() -> None:
    levels = [level("fit", 0.010), level("step", 0.002)]
    for each in levels[0].samples:
        each.facts = Facts(fit=FitCall(callbacks=[], verbose=0, metrics=False), run_eagerly=True)
    parts = ladder(levels)[0]
    assert parts[0].name == "eager execution"
    causes = [f.cause for f in findings(levels, parts)]
    assert "eager execution" in causes
    assert "Keras overhead" not in causes


def test_a_warning_of_several_levels_is_shown_once() -> None:
    levels = [level("as-written", 0.01), level("step", 0.005)]
    for each in levels:
        each.warnings = [ResultWarning(key="load", message="the machine was busy", fix="Close other programs.")]
    levels[1].warnings.append(ResultWarning(key="unsettled", message="it never settled"))
    found = caveats(levels)
    assert found == ["the machine was busy. Close other programs.", "step: it never settled"]
    told = " ".join(explanation.text(explained(caveats=found)).split())
    assert told.count("warning: the machine was busy. Close other programs.") == 1
    assert "warning: step: it never settled" in told


def test_a_partial_batch_is_found_on_the_level_that_measured_it() -> None:
    levels = [level("as-written", 0.001), level("step", 0.001)]
    for each in levels[1].samples:
        each.phases |= {"partial_batch": 0.5, "partial_batch_again": 0.001}
    assert "partial last batch" in [f.cause for f in findings(levels, ladder(levels)[0])]


def test_the_headline_asks_for_more_trials_if_parts_are_not_measurable() -> None:
    parts, rest, _ = ladder([level("step", 0.01, 0.3), level("resident", 0.006, 0.3)])
    told = sentences.headline(explained(parts=parts, rest_share=rest, gains=[], fastest=None))
    assert "No known bottleneck" not in told
    assert "--max-time" in told
    assert re.search(r" \d+% of it is not measurable in 5 trials\.", told)
    below = [part.model_copy(update={"share": Interval(value=-1.2)}) for part in parts]
    told = sentences.headline(explained(parts=below, rest_share=rest, gains=[], fastest=None))
    assert "Its parts are not measurable in 5 trials." in told


def test_the_headline_says_that_no_known_bottleneck_was_found() -> None:
    parts, rest, _ = ladder([level("step", 0.01, 0.02), level("resident", 0.01, 0.02)])
    same = gains(level("step", 0.01), {WhatIf("with XLA", "--xla on"): level("fused", 0.01)}, 0.02)
    told = sentences.headline(explained(parts=parts, rest_share=rest, fastest=None, gains=same))
    assert told.endswith("of it is computing. No known bottleneck found.")
    untried = sentences.headline(explained(parts=parts, rest_share=rest, fastest=None, gains=[]))
    assert untried.endswith("The ladder shows no bottleneck.")
    seen = [Finding(cause="CPU quota", sentence="held back", evidence="x")]
    found = sentences.headline(explained(parts=parts, rest_share=rest, fastest=None, findings=seen, gains=same))
    assert found.endswith("of it is computing. See the findings.")


def test_the_headline_names_the_largest_gain_if_no_configuration_is_surely_the_fastest() -> None:
    parts, rest, _ = ladder([level("step", 0.01, 0.02), level("resident", 0.01, 0.02)])
    base = level("step", 0.01)
    found = gains(base, {WhatIf("with XLA", "--xla on"): level("fused", 0.009)}, 0.02)
    told = sentences.headline(explained(parts=parts, rest_share=rest, fastest=None, gains=found))
    assert "No known bottleneck" not in told
    assert "Largest gain: with XLA, 1.1" in told
    assert told.endswith("as fast per step as the loop as-written without it.")
    (all_of_it,) = gains(
        base, {WhatIf("with XLA and 1 thread", "--xla on --threads 1"): level("resident", 0.005)}, 0.02
    )
    told = sentences.headline(explained(parts=parts, rest_share=rest, fastest=None, gains=found, combined=all_of_it))
    assert "Largest gain: with XLA and 1 thread, 1.99" in told
