"""Explanations of synthetic results: parts, gains, findings and their text."""

from __future__ import annotations

import itertools
import math
import random
import re
from typing import Any

import pytest
from synthetic import result
from test_analyse_compare import sample

from bench.analyse.explain.answer import conclude
from bench.analyse.explain.caveats import caveats
from bench.analyse.explain.findings import findings
from bench.analyse.explain.fixed_cost import fixed_cost
from bench.analyse.explain.gains import gains
from bench.analyse.explain.ladder import difference, ladder
from bench.analyse.explain.units import time_text
from bench.analyse.verdict import verdict
from bench.model.causes import BETWEEN_EPOCHS
from bench.model.device import Device
from bench.model.explanation import Explanation, Fastest, Finding, Gain, ProgramChange
from bench.model.facts import PY_DATASET, CallbackTime, CallbackTimes, Facts, FitCall, GraphOperations, PipelineStage
from bench.model.failure import Failure
from bench.model.interval import Interval
from bench.model.placement import Operation, Placement
from bench.model.recognition import Recognition, StepKind, StepSource
from bench.model.result import Result, ResultWarning
from bench.model.spec import LOOPS, Loop
from bench.model.telemetry import Telemetry
from bench.render.sentences import explanation as sentences
from bench.render.terminal import explanation
from bench.whatif import WhatIf

SLOWDOWN = (1.0, 1.6, 0.9, 1.3, 1.1)
"""A factor of the step time in each trial, which all workers share."""


def level(loop: str, step: float, noise: float = 0.002, **changes: Any) -> Result:
    rng = random.Random(loop)
    samples = [sample(n, step * slowdown * rng.lognormvariate(0, noise)) for n, slowdown in enumerate(SLOWDOWN, 1)]
    return result(loop, loop=loop, samples=samples, purpose="level", parent="x", **changes)


LEVELS = {"as-written": 0.010, "step": 0.006, "host-batches": 0.004, "resident": 0.0039, "fused": 0.002}


def test_parts_are_differences_of_neighbouring_levels_even_on_a_noisy_machine() -> None:
    parts, rest_share, trials = ladder([level(loop, step) for loop, step in LEVELS.items()])
    assert trials == len(SLOWDOWN)
    assert [p.name for p in parts] == ["the program's own loop", "input", "copies", "dispatch"]
    assert [p.share.value for p in parts] == pytest.approx([0.4, 0.2, 0.01, 0.19], abs=0.005)
    assert sum(p.share.value for p in parts) + rest_share.value == pytest.approx(1.0)


def test_a_part_whose_interval_contains_zero_is_not_measurable() -> None:
    levels = [level("step", 0.006, 0.03), level("host-batches", 0.006, 0.03), level("resident", 0.003, 0.03)]
    parts, _, _ = ladder(levels)
    assert [p.measurable for p in parts] == [False, True]


def test_a_part_that_cannot_be_told_from_nothing_is_shown_by_its_upper_bound() -> None:
    (part,), _, _ = ladder([level("step", 0.006, 0.03), level("host-batches", 0.006, 0.03)])
    assert part.at_most == part.share.high
    assert sentences.part_share(part) == f"at most {part.at_most:.0%}"
    part.share = Interval(value=0.1, low=-4.0, high=4.2, n=1)
    assert sentences.part_share(part) == "at most 100%"


@pytest.mark.parametrize(("value", "shown"), [(0.3, "30%"), (-0.66, "unknown"), (2.04, "unknown")])
def test_a_share_that_no_part_can_take_is_unknown_if_it_has_no_interval(value: float, shown: str) -> None:
    parts, _, _ = ladder([level("as-written", 0.01), level("fit", 0.008)])
    assert sentences.part_share(parts[0].model_copy(update={"share": Interval(value=value, n=1)})) == shown


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.97, 1.04, "no gain (−4% to +3%, 3 trials)"),
        (0.97, 1.5, "no gain (−50% to +3%, 3 trials)"),
        (0.999, 1.001, "no gain (0% to 0%, 3 trials)"),
        (0.90, 1.04, "undecided (−4% to +10%, 3 trials)"),
        (0.97, 0.99, "undecided (+1% to +3%, 3 trials)"),
        (0.03, 11.0, "undecided (too wide to tell, 3 trials)"),
        (0.50, 0.60, "faster (3 trials)"),
        (1.10, 1.20, "slower (3 trials)"),
    ],
)
def test_a_change_that_was_seen_to_save_nothing_is_no_gain_and_never_undecided(
    low: float, high: float, words: str
) -> None:
    ratio = Interval(value=math.sqrt(low * high), low=low, high=high, n=3)
    gain = Gain(what_if="cache", option="--change cache", ratio=ratio, verdict=verdict(ratio, 0.02))
    assert sentences.effect(gain) == words


def test_a_level_that_is_slower_than_the_level_above_gives_a_negative_part() -> None:
    parts, rest_share, _ = ladder([level("host-batches", 0.005), level("resident", 0.006)])
    assert parts[0].share.value == pytest.approx(-0.2, abs=0.01)
    assert parts[0].measurable
    assert rest_share.value == pytest.approx(1.2, abs=0.01)


def test_all_intervals_of_an_explanation_contain_the_true_shares_in_95_percent_of_cases() -> None:
    rng = random.Random(13)
    covered, trials = 0, 300
    seconds_per_step = {"step": 0.010, "host-batches": 0.008, "resident": 0.006, "fused": 0.003}
    for _ in range(trials):
        levels = [
            result(loop, loop=loop, samples=[sample(n, step * rng.lognormvariate(0, 0.02)) for n in range(1, 7)])
            for loop, step in seconds_per_step.items()
        ]
        parts = ladder(levels)[0]
        shares = (0.2, 0.2, 0.3)
        covered += all(
            (p.share.low or 0) <= share <= (p.share.high or 0) for p, share in zip(parts, shares, strict=True)
        )
    assert covered >= (0.95 - 3 * (0.05 * 0.95 / trials) ** 0.5) * trials


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


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            'ValueError: in user code:\n\n    File "mine.py", line 3, in f\n        g()\n\n    ValueError: no shape\n',
            "ValueError: no shape",
        ),
        ("InternalError: Graph execution error:\n\n at node x\n  mine.py, line 3: fit()", "mine.py, line 3: fit()"),
        ("OOM\nwhen allocating", "OOM"),
        ("word " * 100, "word " * 39 + "word…"),
        (
            "InvalidArgumentError: cannot compute Sub [Op:Sub] name: \n a.py, line 5: loss = a - b",
            "InvalidArgumentError: cannot compute Sub [Op:Sub]",
        ),
    ],
)
def test_a_failed_what_if_is_one_line_that_says_what_happened(message: str, line: str) -> None:
    failed = level("step", 0.01, failure=Failure(kind="error", message=message))
    (gain,) = gains(level("step", 0.01), {WhatIf("1 thread", "--threads 1", ""): failed}, 0.02)
    assert gain.failure == line
    assert "\n" not in explanation.gain_line(gain)


def test_gains_are_sorted_largest_first_and_a_failed_what_if_comes_last_with_its_reason() -> None:
    base = level("step", 0.010)
    failed = level("step", 0.01, failure=Failure(kind="memory", message="OOM when allocating"))
    results = {
        WhatIf("batch 512", "--param batch=512", "too small batches"): failed,
        WhatIf("1 thread", "--threads 1", "too many threads"): level("resident", 0.012),
        WhatIf("with XLA", "--xla on", "missing fusion"): level("fused", 0.005),
        WhatIf("without oneDNN", "--no-onednn"): level("host-batches", 0.010),
    }
    all_gains = gains(base, results, 0.02)
    assert [(g.what_if, g.verdict) for g in all_gains] == [
        ("with XLA", "faster"), ("without oneDNN", "same"), ("1 thread", "slower"), ("batch 512", "not enough data"),
    ]  # fmt: skip
    assert all_gains[-1].failure == "OOM when allocating"
    assert [g.cause for g in all_gains] == ["missing fusion", "", "", ""]  # only a what-if that is faster fixes a cause
    assert "Cause: missing fusion, 50% of the time" in explanation.gain_line(all_gains[0])


def test_a_larger_batch_is_compared_per_example() -> None:
    base, larger = level("step", 0.010), level("fused", 0.020)
    for side, examples in ((base, 32), (larger, 128)):
        assert side.summary.step_seconds is not None
        side.summary.examples_per_second = examples / side.summary.step_seconds.value
    (gain,) = gains(base, {WhatIf("batch 128", "--param batch=128"): larger}, 0.02)
    assert (gain.unit, gain.verdict) == ("example", "faster")
    assert gain.ratio is not None
    assert gain.ratio.value == pytest.approx(0.5, rel=0.02)


def batches(fixed: float, per_example: float, noise: float = 0.002) -> list[Result]:
    """Return results at batch 32, 128 and 512 of a step with a fixed cost and a cost per example."""
    results = []
    for size in (32, 128, 512):
        document = level("step", fixed + per_example * size, noise)
        results.append(
            document.model_copy(update={"spec": document.spec.model_copy(update={"params": {"batch": size}})})
        )
    return results


def test_small_steps_are_found_and_the_finding_names_a_sufficient_batch() -> None:
    base, *larger = batches(fixed=0.001, per_example=1e-6)
    (finding,) = fixed_cost(base, larger)
    assert finding.cause == "small steps"
    assert finding.sentence.startswith(
        "97% of a step of the loop step does not depend on its batch. This share falls below 10% at batch 9"
    )
    # It needs batch 9,000, and the largest measured batch is 512.
    assert "larger than any batch that was measured" in finding.sentence
    assert "1.15 ms and 1.15 µs per example" in finding.evidence  # both include the mean slowdown


def test_a_step_that_grows_with_its_batch_is_not_called_small() -> None:
    base, *larger = batches(fixed=1e-5, per_example=1e-5)
    assert not list(fixed_cost(base, larger))
    assert not list(fixed_cost(base, larger[:1]))  # any two points lie on a line


def causes(**of_sample: Any) -> list[str]:
    samples = [sample(n, 0.01, **of_sample) for n in (1, 2, 3)]
    return [f.cause for f in findings([result(samples=samples)])]


def test_odd_shapes_are_a_finding_only_if_there_are_tensor_cores() -> None:
    facts = {"products": {"count": 9, "odd": 3, "examples": {"dense_2/MatMul": [10]}}}

    def odd_shapes(**changes: Any) -> list[str]:
        samples = [sample(n, 0.01, facts=facts) for n in (1, 2, 3)]
        return [f.sentence for f in findings([result(samples=samples, **changes)]) if "tensor cores" in f.cause]

    assert odd_shapes() == []
    assert odd_shapes(backend="cuda", dtype="float64") == []
    assert odd_shapes(backend="cuda", dtype="float32", tf32=False) == []
    expected = ["3 of 9 matrix products have a side that is not a multiple of 8."]
    assert odd_shapes(backend="cuda") == odd_shapes(backend="cuda", dtype="mixed_float16", tf32=False) == expected


@pytest.mark.parametrize(
    ("capability", "dtype", "has_finding"),
    [
        ("7.5", "float32", False),  # a T4 has no TF32
        ("7.0", "mixed_float16", True),
        ("7.5", "mixed_bfloat16", False),
        ("6.0", "mixed_float16", False),
        ("8.0", "float32", True),
        ("8.9", "mixed_bfloat16", True),
    ],
)
def test_odd_shapes_are_a_finding_only_if_the_card_has_tensor_cores_for_the_dtype(
    capability: str, dtype: str, has_finding: bool
) -> None:
    facts = {"products": {"count": 9, "odd": 3, "examples": {"dense_2/MatMul": [10]}}}
    base = result(samples=[sample(n, 0.01, facts=facts) for n in (1, 2, 3)], backend="cuda", dtype=dtype)
    base.environment.device = Device(compute_capability=capability)
    assert any("tensor cores" in finding.cause for finding in findings([base])) == has_finding


@pytest.mark.parametrize(
    ("callbacks", "verbose", "cause"),
    [(["Slow"], 0, "callbacks and logging"), ([], "auto", "callbacks and logging"), ([], 0, "shuffling in fit")],
)
def test_the_cost_of_a_call_of_fit_is_attributed_to_callbacks_output_or_shuffling(
    callbacks: list[str], verbose: Any, cause: str
) -> None:
    levels = [level("as-written", 0.010), level("fit", 0.006), level("step", 0.0059, 0.03)]
    levels[0].samples[0].facts.fit = FitCall(callbacks=callbacks, verbose=verbose, metrics=False, shuffles=True)
    by_cause = {f.cause: f for f in findings(levels, ladder(levels)[0])}
    assert cause in by_cause
    assert by_cause[cause].share == pytest.approx(0.4, abs=0.01)
    assert ", ".join(callbacks) in by_cause[cause].evidence


@pytest.mark.parametrize("call", [{"input": "Augmented"}, {"shuffles": True, "options": ["class_weight"]}])
def test_shuffling_is_not_named_where_something_else_may_take_the_time(call: dict[str, Any]) -> None:
    levels = [level("as-written", 0.010), level("fit", 0.006), level("step", 0.0059, 0.03)]
    levels[0].samples[0].facts.fit = FitCall(callbacks=[], verbose=0, metrics=False, **call)
    names = [finding.cause for finding in findings(levels, ladder(levels)[0])]
    assert "shuffling in fit" not in names
    assert "arguments of fit" in names


def test_idle_cpus_are_not_a_cause_where_steps_wait_for_input() -> None:
    waiting = busy(0.9)
    for process in waiting.samples:
        process.phases["input_wait"] = 0.008
    by_cause = {finding.cause: finding for finding in findings([waiting])}
    assert "too little parallelism" not in by_cause
    assert by_cause["slow input"].share == pytest.approx(0.8, rel=0.01)


def test_time_between_epochs_is_a_finding_and_in_the_headline() -> None:
    phases = {"first_step": 0.1, "epoch_end": 0.9, "epoch_start": 0.02}
    facts: dict[str, Any] = {"epoch": {"batches": 8, "remainder": 0}, "validated_epochs": 0.0}
    epochs = [sample(n, 0.01, phases=phases, facts=facts) for n in (1, 2, 3)]
    found = {finding.cause: finding for finding in findings([result(samples=epochs)])}
    assert found[BETWEEN_EPOCHS].share == pytest.approx(0.92)
    assert "920 ms pass until those of the next one, as long as 92 steps" in found[BETWEEN_EPOCHS].sentence
    assert BETWEEN_EPOCHS not in causes(phases={"first_step": 0.1, "epoch_end": 0.001})
    assert "Train fewer and longer epochs" in found[BETWEEN_EPOCHS].fix  # no callback and no validation was timed
    few = {"phases": {"first_step": 0.1, "epoch_end": 0.015}, "facts": {"epoch": {"batches": 8, "remainder": 0}}}
    assert BETWEEN_EPOCHS not in causes(**few)  # 16% of an epoch, by fit itself
    for process in epochs:
        callback = CallbackTime(name="Save", step_seconds=0.0, epoch_seconds=0.8)
        process.facts.callback_times = CallbackTimes(callbacks=[callback])
    saving = {finding.cause: finding for finding in findings([result(samples=epochs)])}
    assert saving[BETWEEN_EPOCHS].fix == "Let Save do less at the end of an epoch, or do it less often."


def busy(cpu_share: float) -> Result:
    samples = [sample(n, 0.01) for n in (1, 2, 3)]
    for process in samples:
        for block in process.series[0].blocks:
            block.cpu_seconds = block.seconds * cpu_share
    return result(samples=samples)


def test_a_program_that_uses_its_cpus_has_no_findings() -> None:
    assert findings([busy(1.9)]) == []


def test_idle_cpus_are_found_from_cpu_time() -> None:
    assert [f.cause for f in findings([busy(0.9)])] == ["too little parallelism"]


def test_a_cpu_quota_is_found_from_the_counters_of_the_cgroup() -> None:
    throttled = Telemetry(wall_seconds=2.0, throttled_seconds=0.5, throttled_periods=10)
    assert "CPU quota" in causes(telemetry=throttled)


def test_a_trace_in_each_step_is_retracing_but_a_few_traces_are_not() -> None:
    def traced(count: int, steps: int, restarts: int = 0) -> bool:
        often = [{"function": "f", "file": "/a/mine.py", "line": 3, "count": count}]
        return "retracing" in causes(facts={"retraced": often, "steps_run": steps, "restarts": restarts})

    assert traced(400, 500)
    assert not traced(6, 2000)
    assert not traced(40, 500, restarts=39)  # one trace each time that devbench restarts a short program
    assert traced(400, 500, restarts=39)


def traces(*retraced: dict[str, Any]) -> Finding:
    facts = {"retraced": list(retraced), "steps_run": 13, "steps_issued": 130}
    found = findings([result(samples=[sample(n, 0.01, facts=facts) for n in (1, 2, 3)])])
    return next(finding for finding in found if finding.cause in ("retracing", "a new dataset for each call"))


def test_traces_of_the_training_are_retracing_only_if_many_batches_are_traced() -> None:
    def found(count: int, function: str = "fit") -> set[str]:
        call = {"function": function, "file": "/a/mine.py", "line": 29, "count": count, "is_call": True}
        fit = {"callbacks": ["TensorBoard"], "verbose": 0, "metrics": True}
        return {*causes(facts={"retraced": [call], "steps_run": 109, "fit": fit})}

    assert not found(8) & {"retracing", "a new dataset for each call"}  # its validation and its summaries
    assert found(60) & {"retracing", "a new dataset for each call"} == {"retracing"}
    assert "a new dataset for each call" in found(60, "predict")  # in a callback


def test_a_call_that_builds_a_dataset_each_time_is_named_instead_of_functions_of_tensorflow() -> None:
    finding = traces(
        {"function": "predict", "file": "/a/mine.py", "line": 44, "count": 260, "is_call": True},
        {"function": "fit", "file": "/a/mine.py", "line": 49, "count": 130, "is_call": True},
    )
    assert finding.cause == "a new dataset for each call"
    assert "predict and fit" in finding.sentence
    assert "lines 44, 49" in finding.sentence
    assert "train_on_batch" in finding.fix


def test_an_input_pipeline_that_is_built_for_each_epoch_is_named_instead_of_the_shapes_of_batches() -> None:
    def found(function: str, fit: bool) -> Finding:
        call = {"function": function, "file": "/a/mine.py", "line": 29, "count": 60, "is_call": True}
        training = {"callbacks": [], "verbose": 0, "metrics": True} if fit else None
        facts = {"retraced": [{**call, "of_pipeline": True}], "steps_run": 100, "fit": training}
        every = findings([result(samples=[sample(n, 0.01, facts=facts) for n in (1, 2, 3)])])
        return next(finding for finding in every if finding.cause == "retracing")

    assert "60 new graphs in 100 steps, because the input pipeline is built again" in found("fit", fit=True).sentence
    assert "more epochs in one call of fit" in found("fit", fit=True).fix
    assert found("__iter__", fit=False).sentence.startswith("iterating (")
    assert "Call repeat() on the dataset" in found("__iter__", fit=False).fix


def test_traces_are_counted_over_all_steps_that_they_happened_in() -> None:
    finding = traces({"function": "f", "file": "/a/mine.py", "line": 3, "count": 130})
    assert "130 times in 130 steps" in finding.sentence


def test_a_partial_batch_is_a_finding_only_if_its_first_occurrence_is_slow() -> None:
    phases = {"first_step": 0.1, "partial_batch": 0.61, "partial_batch_again": 0.01}
    assert "partial last batch" in causes(phases=phases)
    assert "partial last batch" not in causes(phases={**phases, "partial_batch": 0.02})


def test_operations_on_the_host_are_named() -> None:
    placement = Placement(
        requested_device="GPU:0",
        method="partition graphs",
        verified=False,
        on_device=5,
        host_by_design={"EagerPyFunc": 1, "Const": 3},
        misplaced=[Operation(name="x", op="StringJoin", device="CPU:0")],
    )
    on_host = [f for f in findings([result(placement=placement)]) if f.cause == "operations on the host"]
    assert "outside GPU:0: EagerPyFunc, StringJoin on CPU:0." in on_host[0].sentence


def test_int32_arithmetic_is_a_finding_only_on_an_accelerator() -> None:
    for backend, count in (("cuda", 1), ("cpu", 0)):
        measured = result(backend=backend)
        measured.samples[0].facts.int32 = GraphOperations(operations=2, lines=[7])
        on_host = [finding for finding in findings([measured]) if finding.cause == "operations on the host"]
        assert len(on_host) == count
        assert all("2 operations of the step compute in int32" in finding.sentence for finding in on_host)


def test_a_slow_start_of_a_short_program_is_a_finding() -> None:
    short = result(samples=[sample(n, 0.001, phases={"trace": 0.4, "first_step": 0.2}) for n in (1, 2)])
    assert short.projection is not None
    short.projection.steps = 100
    assert "first-step costs" in [f.cause for f in findings([short])]


def test_callbacks_are_named_if_a_bare_fit_is_faster() -> None:
    levels = [level("as-written", 0.010), level("fit", 0.007), level("step", 0.006)]
    levels[0].samples[0].facts.fit = FitCall(callbacks=["Slow"], verbose="auto", metrics=False)
    by_cause = {f.cause: f for f in findings(levels, ladder(levels)[0])}
    assert "30%" in by_cause["callbacks and logging"].sentence
    assert "Slow" in by_cause["callbacks and logging"].evidence
    assert "10%" in by_cause["Keras overhead"].sentence


def explained(**changes: Any) -> Explanation:
    parts, rest_share, trials = ladder([level(loop, step) for loop, step in LEVELS.items()])
    fields: dict[str, Any] = {
        "id": "x", "label": "cifar on cpu, as-written", "step_seconds": 0.01, "trials": trials, "parts": parts,
        "rest_seconds": 0.002, "rest_share": rest_share, "lowest_level": "fused",
        "gains": gains(level("step", 0.01), {WhatIf("with XLA", "--xla on"): level("fused", 0.005)}, 0.02),
        "what_if_loop": "as-written",
        "fastest": Fastest(
            words="with XLA", unit="step", speedup=Interval(value=2.0, low=1.9, high=2.1),
            command="devbench run cifar --xla on",
        ),
    }  # fmt: skip
    document = Explanation(**{**fields, **changes})
    conclude(document)
    return document


def test_the_headline_names_the_largest_part_and_the_last_line_the_fastest_configuration() -> None:
    text = explanation.text(explained())
    first = " ".join(text.split("\n\n")[0].split())
    assert first == (
        "cifar on cpu, as-written: a step takes 10.0 ms. 40% of it is the program's own loop: Python, conversions and "
        "reads between steps."
    )
    assert text.rstrip().endswith("devbench run cifar --xla on")
    assert max(map(len, text.splitlines())) <= 80


def test_a_what_if_names_its_loop_if_most_were_tried_on_another() -> None:
    base = level("as-written", 0.010)
    (gain,) = gains(base, {WhatIf("no callbacks", "--change without-callbacks"): level("as-written", 0.005)}, 0.05)
    document = explained(gains=[gain]).model_copy(update={"what_if_loop": "fit"})
    assert "as fast per step in the loop as-written (5 trials)" in explanation.text(document).replace("\n    ", " ")


def test_what_ifs_that_are_not_faster_share_a_line_for_each_verdict() -> None:
    base = level("step", 0.010)
    results = {
        WhatIf("with XLA", "--xla on"): level("fused", 0.005),
        WhatIf("1 thread", "--threads 1"): level("fused", 0.020),
        WhatIf("4 threads", "--threads 4"): level("fused", 0.0101),
        WhatIf("without oneDNN", "--no-onednn"): level("fused", 0.00999),
    }
    document = explained(gains=gains(base, results, 0.05)).model_copy(update={"what_if_loop": "step"})
    text = explanation.text(document)
    lines = text.split("without it:\n")[1].split("\n\n")[0].replace("\n    ", " ").splitlines()
    assert lines == [
        "  faster: with XLA (--xla on): 2.000 times [1.992, 2.009] as fast per step (5 trials)",
        "  no gain: without oneDNN (0% to +1%, 5 trials), 4 threads (−1% to −1%, 5 trials)",
        "  slower: 1 thread (2.000 times [1.991, 2.008] as long, 5 trials)",
    ]


def test_a_ladder_of_one_level_is_not_described_as_computing() -> None:
    parts, rest_share, _ = ladder([level("as-written", 0.01)])
    single_level = explained(
        parts=parts, rest_share=rest_share, lowest_level="as-written", gains=[], fastest=None, what_if_loop=""
    )
    text = explanation.text(single_level)
    assert "computing" not in text
    first = " ".join(text.split("\n\n")[0].split())
    assert first.endswith(
        "100% of it is not divided into parts, because no lower level was measured. No cause was found."
    )


def test_loops_that_are_missing_for_the_same_reason_share_a_line() -> None:
    reason = "there is no step to call"
    missing = {"fit": "there is no model", "step": reason, "resident": reason}
    text = explanation.text(explained(missing_levels=missing))
    assert "  not on the ladder: fit: there is no model\n" in text
    assert "  not on the ladder: step, resident: there is no step to call\n" in text


def test_the_part_between_an_eager_fit_and_a_graph_is_eager_execution() -> None:
    levels = [level("fit", 0.010), level("step", 0.002)]
    for process in levels[0].samples:
        process.facts = Facts(fit=FitCall(callbacks=[], verbose=0, metrics=False), run_eagerly=True)
    parts = ladder(levels)[0]
    assert parts[0].name == "eager execution"
    causes = [f.cause for f in findings(levels, parts)]
    assert "eager execution" in causes
    assert "Keras overhead" not in causes


def test_a_warning_of_several_levels_is_shown_once() -> None:
    levels = [level("as-written", 0.01), level("step", 0.005)]
    for level_result in levels:
        level_result.warnings = [ResultWarning(key="load", message="the machine was busy", fix="Close other programs.")]
    levels[1].warnings.append(ResultWarning(key="unsettled", message="it never settled"))
    messages = caveats(levels)
    assert messages == ["the machine was busy. Close other programs.", "step: it never settled"]
    text = " ".join(explanation.text(explained(caveats=messages)).split())
    assert text.count("warning: the machine was busy. Close other programs.") == 1
    assert "warning: step: it never settled" in text


def test_a_partial_batch_is_found_on_the_level_that_measured_it() -> None:
    levels = [level("as-written", 0.001), level("step", 0.001)]
    for process in levels[1].samples:
        process.phases |= {"partial_batch": 0.5, "partial_batch_again": 0.001}
    assert "partial last batch" in [f.cause for f in findings(levels, ladder(levels)[0])]


def test_the_headline_asks_for_more_trials_if_parts_are_not_measurable() -> None:
    parts, rest_share, _ = ladder([level("step", 0.01, 0.3), level("resident", 0.006, 0.3)])
    headline = sentences.headline(explained(parts=parts, rest_share=rest_share, gains=[], fastest=None))
    assert "No known bottleneck" not in headline
    assert "--max-time" in headline
    assert re.search(r" \d+% of it cannot be assigned to a part after 5 trials\.", headline)
    negative = [part.model_copy(update={"share": Interval(value=-1.2)}) for part in parts]
    headline = sentences.headline(explained(parts=negative, rest_share=rest_share, gains=[], fastest=None))
    assert "Its time cannot be assigned to a part after 5 trials." in headline


def test_the_headline_names_the_first_cause_if_parts_are_not_measurable() -> None:
    parts, rest_share, _ = ladder([level("step", 0.01, 0.3), level("resident", 0.006, 0.3)])
    waits = Finding(cause="slow input", sentence="A step waits.", evidence="", parts=["input"], share=0.88)
    headline = sentences.headline(
        explained(parts=parts, rest_share=rest_share, gains=[], fastest=None, findings=[waits])
    )
    assert headline.endswith("a step takes 10.0 ms. Slow input takes up to 88% of it.")


def test_the_headline_does_not_name_a_finding_in_place_of_a_what_if_with_its_name() -> None:
    parts, rest_share, _ = ladder([level("step", 0.01, 0.3), level("resident", 0.006, 0.3)])
    waits = Finding(cause="slow input", sentence="A step waits.", evidence="", parts=["input"], share=0.88, detail=True)
    change = ProgramChange(kind="what-if", name="slow input", cause="Slow input.", share=None, gains=[], fix="")
    document = explained(parts=parts, rest_share=rest_share, gains=[], fastest=None, findings=[waits])
    document.answer = [change]
    assert "Slow input takes" not in sentences.headline(document)


def test_the_headline_names_computing_if_the_answer_begins_with_it() -> None:
    parts, rest_share, _ = ladder([level("step", 0.01, 0.02), level("fused", 0.006, 0.02)])
    change = ProgramChange(kind="computing", name="computing", cause="Computing.", share=0.6, gains=[], fix="")
    document = explained(parts=parts, rest_share=rest_share, lowest_level="fused", gains=[], fastest=None)
    assert "is computing" not in sentences.headline(document)
    document.answer = [change]
    assert "a step takes 10.0 ms. 60% of it is computing, and 40% is input" in sentences.headline(document)
    small, rest_share, _ = ladder([level("step", 0.01, 0.02), level("fused", 0.0095, 0.02)])
    document = explained(parts=small, rest_share=rest_share, lowest_level="fused", gains=[], fastest=None)
    document.answer = [change]
    assert sentences.headline(document).endswith("a step takes 10.0 ms. 95% of it is computing.")


def test_the_headline_says_that_no_known_bottleneck_was_found() -> None:
    parts, rest_share, _ = ladder([level("step", 0.01, 0.02), level("resident", 0.01, 0.02)])
    same = gains(level("step", 0.01), {WhatIf("with XLA", "--xla on"): level("fused", 0.01)}, 0.02)
    headline = sentences.headline(explained(parts=parts, rest_share=rest_share, fastest=None, gains=same))
    assert headline.endswith("of it is computing. No known bottleneck found.")
    without_gains = sentences.headline(explained(parts=parts, rest_share=rest_share, fastest=None, gains=[]))
    assert without_gains.endswith("The ladder shows no bottleneck.")
    quota = [Finding(cause="CPU quota", sentence="held back", evidence="x")]
    with_finding = sentences.headline(
        explained(parts=parts, rest_share=rest_share, fastest=None, findings=quota, gains=same)
    )
    assert with_finding.endswith("of it is computing.")


@pytest.mark.parametrize(("upper", "lower"), list(itertools.combinations(LOOPS, 2)))
def test_a_part_includes_the_input_if_its_upper_level_prepares_batches_and_its_lower_level_does_not(
    upper: Loop, lower: Loop
) -> None:
    prepared: tuple[Loop, ...] = ("host-batches", "resident", "fused")
    part = difference(result(loop=upper), result(loop=lower))
    assert part.includes_input == (upper not in prepared and lower in prepared)


def test_a_program_that_calls_fit_has_no_loop_of_its_own_even_if_the_loop_fit_was_left_out() -> None:
    program = level("as-written", 0.010)
    assert difference(program, level("step", 0.006)).name == "the program's own loop"
    program.samples[0].facts = Facts(fit=FitCall(callbacks=[], verbose=0, metrics=False))
    part = difference(program, level("step", 0.006))
    assert part.name == "Keras fit"
    assert part.what_ifs == ("without-callbacks", "steps-per-execution")


@pytest.mark.parametrize(("kind", "proposed"), [("fit", ["batch", "steps-per-execution"]), ("updates", ["batch"])])
def test_several_steps_per_call_of_fit_are_proposed_only_to_a_script_that_calls_fit(
    kind: StepKind, proposed: list[str]
) -> None:
    levels = [level("as-written", 0.01), level("resident", 0.009), level("fused", 0.002)]
    source = StepSource(kind=kind, name="fit", file="train.py", line=3, token="", steps=90)
    levels[0].recognition = Recognition(chosen=source, others=[], ended=True, seconds=1.0)
    assert ladder(levels)[0][-1].what_ifs == proposed


def test_a_part_that_spans_many_levels_is_named_by_what_it_contains() -> None:
    assert difference(result(loop="step"), result(loop="resident")).name == "input and copies"
    crossed = difference(result(loop="as-written"), result(loop="fused"))
    assert crossed.name == "everything except computing"
    assert crossed.what == "the program's own loop, input, copies and dispatch"
    crossed = difference(result(loop="step"), result(loop="fused"))
    assert (crossed.name, crossed.what) == ("input, copies and dispatch", "what the loop fused leaves out")
    fitted = result(loop="as-written")
    fitted.samples[0].facts.fit = FitCall(callbacks=[], verbose=0, metrics=False)
    assert difference(fitted, result(loop="fused")).what == "Keras fit, input, copies and dispatch"


def test_a_step_that_waits_for_its_batch_names_the_slowest_stage_before_another_loop_is_measured() -> None:
    step = level("step", 0.006)
    times = {"batch": 0.001, "map": 0.005, "prefetch": 0.011}  # noise made the last one the slowest
    stages = [PipelineStage(stage=name, seconds=seconds) for name, seconds in times.items()]
    for process in step.samples:
        process.facts, process.phases["input_wait"] = Facts(pipeline=stages), 0.004
    (found,) = [finding for finding in findings([step]) if finding.cause == "slow input"]
    assert "waits up to 4 ms for its next batch" in found.sentence
    assert found.sentence.endswith("Slowest stage: map.")
    assert found.what_ifs == ["parallel-map", "cache"]


def test_the_input_takes_no_more_than_its_stages_if_loops_beside_it_were_not_measured() -> None:
    levels = [level("as-written", 0.010), level("fused", 0.001)]
    for process in levels[0].samples:
        process.facts = Facts(pipeline=[PipelineStage(stage="shuffle", seconds=0.002)])
        process.phases["input_wait"] = 0.003
    (found,) = [finding for finding in findings(levels, ladder(levels)[0]) if finding.cause == "slow input"]
    assert found.share == pytest.approx(0.3, rel=0.1)
    assert found.sentence.startswith(f"Input takes at most {found.share:.0%} of the step.")


def test_a_pipeline_without_prefetch_takes_its_whole_time_of_each_step() -> None:
    def found(*stages: str) -> list[str]:
        program = level("step", 0.006)
        for process in program.samples:
            times = [PipelineStage(stage=name, seconds=0.0018) for name in stages]
            process.facts, process.phases["input_wait"] = Facts(pipeline=times), 0.0015
        return [finding.sentence for finding in findings([program]) if finding.cause == "slow input"]

    (sentence,) = found("batch", "map")
    assert sentence.startswith("The pipeline takes 1.8 ms for a batch, 27% of a step, and does not prefetch.")
    assert not found("batch", "map", "prefetch")


def test_the_call_that_gets_the_batch_of_a_small_step_is_not_slow_input() -> None:
    def is_slow(step_seconds: float) -> bool:
        step = level("step", step_seconds)
        for process in step.samples:
            process.phases["input_wait"] = step_seconds / 2
        return any(finding.cause == "slow input" for finding in findings([step]))

    assert is_slow(0.006)
    assert not is_slow(0.001)


def test_a_keras_dataset_whose_batches_take_as_long_as_a_step_is_slow_input_and_not_time_between_epochs() -> None:
    method = PipelineStage(stage=PY_DATASET, function="Augmented.__getitem__", file="a.py", line=30, seconds=0.09)
    phases = {"first_step": 0.1, "epoch_end": 0.001, "epoch_start": 0.095}
    facts = {"epoch": {"batches": 4, "remainder": 0}, "pipeline": [method]}
    found = {f.cause: f for f in findings([result(samples=[sample(1, 0.1, phases=phases, facts=facts)])])}
    assert found["slow input"].share == pytest.approx(0.9)
    assert "Slowest stage: Keras dataset (Augmented.__getitem__, a.py line 30)." in found["slow input"].sentence
    assert "workers" in found["slow input"].fix
    assert BETWEEN_EPOCHS not in found


def test_a_pipeline_that_calls_python_is_not_told_to_run_its_map_in_parallel() -> None:
    python = GraphOperations(operations=1, lines=[23])
    facts = Facts(pipeline=[PipelineStage(stage="map", seconds=0.004)], python=python, retraced=[])
    step, batches = level("step", 0.006), level("host-batches", 0.002)
    for process in step.samples:
        process.facts = facts
    step.placement = Placement(requested_device="CPU:0", method="x", verified=True, on_device=3)
    parts, _, _ = ladder([step, batches])
    found = {finding.cause: finding for finding in findings([step, batches], parts)}
    assert "parallel-map" not in found["slow input"].what_ifs
    assert "calls Python" in found["slow input"].sentence
    assert "Python inside the graph" not in found


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1234.0, "1234 s"), (0.99951, "1 s"), (0.9994, "999 ms"), (0.000334, "334 µs"), (2e-9, "0.002 µs")],
)
def test_times_in_findings_have_three_digits_and_no_exponent(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
