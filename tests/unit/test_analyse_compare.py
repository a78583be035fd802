"""Comparisons of results: verdicts, break-even, fairness, pairing."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from synthetic import MOMENT, result

from bench.analyse import stats
from bench.analyse.break_even import fieller
from bench.analyse.comparable import differences
from bench.analyse.compare import compare
from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair, pair_groups
from bench.analyse.same_answer import check_same_answer
from bench.analyse.samples import process_values
from bench.analyse.stats import Contrast
from bench.analyse.summary import summarize
from bench.analyse.verdict import units_for_verdict, verdict
from bench.model.comparison import FIRST_LOSSES, BreakEven
from bench.model.failure import Failure
from bench.model.interval import Interval
from bench.model.placement import Placement
from bench.model.result import Result
from bench.model.sample import Block, ProcessSample, Series
from bench.model.spec import Data, Env, Threads
from bench.render.sentences.comparison import cold_start, mean_step
from bench.render.terminal.comparison import phases
from bench.store import files


def sample(trial: int, step: float, start: float = 3.0, **changes: Any) -> ProcessSample:
    """Return a sample of a process that starts in `start` seconds and takes `step` seconds per step."""
    blocks = [Block(seconds=100 * step, steps=100, cpu_seconds=100 * step, position=n) for n in range(5)]
    fields: dict[str, Any] = {"phases": {"import": start - 0.5, "first_step": 0.5}, "series": [Series(blocks=blocks)]}
    return ProcessSample(trial=trial, pid=1, started=MOMENT, **{**fields, **changes})


def measured(steps: Sequence[float], start: float = 3.0, name: str = "a", **changes: Any) -> Result:
    """Return a result with one process per step time, trial by trial."""
    samples = [sample(n, step, start + 0.01 * (n % 3)) for n, step in enumerate(steps, 1)]
    return result(name, samples=samples, **changes)


NOISE = (1.0, 1.004, 0.997, 1.002, 0.996, 1.001)


def test_a_phase_without_a_measurable_difference_gives_the_reason() -> None:
    def differences_of(starts: int, slower: float) -> set[str]:
        base, other = measured([0.01] * 4), measured([0.01] * 4, 3.0 + slower, name="b", loop="fit")
        for side in (base, other):
            for process in side.samples[starts:]:
                process.start_position = None  # several processes started at once, so these starts do not count
        return {line.rpartition("   ")[2].split(" [")[0] for line in phases(compare(base, other))[1:]}

    assert differences_of(4, 1.0) == {"+1.00 s", "not measurable"}
    assert differences_of(4, 0.0) == {"not measurable"}
    assert differences_of(1, 1.0) == {"one start only"}


def test_rare_slow_steps_are_reported_by_the_mean_step() -> None:
    base = measured([0.01 * n for n in NOISE])
    rare = measured([0.01 * n for n in NOISE], name="b")
    for process in rare.samples:
        process.series[0].blocks[2].seconds *= 1.5  # one block in five writes a checkpoint
    comparison = compare(base, rare)
    assert comparison.verdict == "same"
    assert comparison.mean_ratio is not None
    assert comparison.mean_ratio.value == pytest.approx(1.1)
    assert comparison.mean_verdict == "slower"
    assert mean_step(comparison) == (
        "By the mean step, which includes rare slow steps, cifar on cpu, as-written (b) is slower: 1.1000 times "
        "[1.1000, 1.1000] as long."
    )
    # The mean step confirms this verdict.
    assert mean_step(compare(base, measured([0.012 * n for n in NOISE], name="c"))) == ""


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.90, 0.97, "faster"),
        (0.95, 0.99, "undecided"),
        (0.99, 1.01, "same"),
        (0.981, 1.019, "same"),
        (0.97, 1.05, "undecided"),
        (1.01, 1.03, "undecided"),
        (1.021, 1.05, "slower"),
    ],
)
def test_the_whole_interval_decides_the_verdict(low: float, high: float, word: str) -> None:
    assert verdict(Interval(value=math.sqrt(low * high), low=low, high=high, n=5), 0.02) == word


def test_one_trial_is_not_enough_for_a_verdict() -> None:
    assert verdict(Interval(value=0.5, n=1), 0.02) == "not enough data"
    assert verdict(None, 0.02) == "not enough data"


@given(st.floats(0.5, 2.0), st.floats(1.0001, 1.5), st.floats(0.001, 0.2))
def test_swapping_the_sides_swaps_faster_and_slower(value: float, spread: float, threshold: float) -> None:
    ratio = Interval(value=value, low=value / spread, high=value * spread, n=5)
    exchanged = Interval(value=1 / value, low=1 / (value * spread), high=spread / value, n=5)
    swap = {"faster": "slower", "slower": "faster"}
    word = verdict(ratio, threshold)
    assert verdict(exchanged, threshold) == swap.get(word, word)


def test_the_needed_number_of_trials_settles_the_verdict() -> None:
    ratio = Interval(value=1.01, low=0.97, high=1.01**2 / 0.97, n=5)
    assert verdict(ratio, 0.02) == "undecided"
    enough = units_for_verdict(ratio, 0.02)
    assert enough is not None
    spread = math.log(ratio.high / ratio.low) / 2 / stats.t_quantile(5) * math.sqrt(5)  # type: ignore[operator]

    def verdict_of(n: int) -> str:
        half = stats.t_quantile(n) * spread / math.sqrt(n)
        return verdict(Interval(value=1.01, low=1.01 * math.exp(-half), high=1.01 * math.exp(half), n=n), 0.02)

    assert verdict_of(enough) == "same"
    assert verdict_of(enough - 1) == "undecided"


def test_a_ratio_at_the_threshold_is_never_settled() -> None:
    assert units_for_verdict(Interval(value=1.02, low=1.0, high=1.0404, n=5), 0.02) is None


def test_results_of_different_groups_are_compared_as_in_scipys_welch_test() -> None:
    rng = random.Random(4)
    first = [rng.lognormvariate(0, 0.1) for _ in range(7)]
    other = [rng.lognormvariate(0.2, 0.3) for _ in range(4)]
    ratio = stats.independent_ratio(first, other)
    expected = scipy_stats.ttest_ind(*([math.log(v) for v in side] for side in (other, first)), equal_var=False)
    low, high = expected.confidence_interval(0.95)
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    assert (ratio.low, ratio.high) == pytest.approx((math.exp(low), math.exp(high)))


def test_interleaved_processes_are_paired_and_their_common_noise_cancels() -> None:
    noise = [1.0, 1.5, 0.8, 2.0, 1.2]
    base = measured([0.01 * n for n in noise])
    other = measured([0.0095 * n for n in noise], name="b", loop="fit")
    paired = compare(base, other)
    assert paired.paired
    assert paired.verdict == "faster"
    assert paired.ratio is not None
    assert paired.ratio.value == pytest.approx(0.95)
    independent = compare(base, other.model_copy(update={"group": "another"}))
    assert not independent.paired
    assert independent.verdict == "undecided"


def test_different_batches_are_compared_per_example() -> None:
    base, other = measured([0.01 * n for n in NOISE]), measured([0.015 * n for n in NOISE], name="b")
    other.spec.params["batch"] = 64
    for side, batch in ((base, 32), (other, 64)):
        side.summary.step_seconds = stats.interval(list(process_values(side).values()))
        side.summary.examples_per_second = batch / side.summary.step_seconds.value
    comparison = compare(base, other)
    assert (comparison.axis, comparison.unit, comparison.verdict) == ("batch", "example", "faster")
    assert comparison.ratio is not None
    assert comparison.ratio.value == pytest.approx(0.75)


def test_the_break_even_is_where_faster_steps_make_up_for_a_slower_start() -> None:
    base = measured([0.012 * n for n in NOISE], start=3.0)
    other = measured([0.002 * n for n in NOISE], start=43.0, name="b", backend="cuda")
    break_even = compare(base, other).break_even
    assert break_even is not None
    assert break_even.winner == "other"
    assert break_even.steps is not None
    assert break_even.steps.low is not None
    assert break_even.steps.high is not None
    assert break_even.steps.value == pytest.approx(4000, rel=0.01)
    assert break_even.steps.low < 4000 < break_even.steps.high
    assert break_even.training_steps == 15630
    assert break_even.training_seconds == pytest.approx([3 + 15629 * 0.012, 43 + 15629 * 0.002], rel=0.01)


def test_all_trials_count_for_steps_even_if_few_starts_were_measured() -> None:
    base, other = (
        measured([step * n for n in NOISE * 2], start=start, name=name, loop=loop)
        for name, loop, step, start in (("a", "fit", 0.012, 3.0), ("b", "step", 0.002, 43.0))
    )

    def break_even_of(starts: int) -> BreakEven:
        """Return the break-even if only so many starts count."""
        for side in (base, other):
            for process in side.samples[starts:]:
                process.start_position = None
        break_even = compare(base, other).break_even
        assert break_even is not None
        return break_even

    estimates = [break_even_of(starts).steps for starts in (len(base.samples), 3, 1)]
    assert [steps.value for steps in estimates if steps] == pytest.approx([4000] * 3, rel=0.01)
    (_, from_three, from_one) = estimates
    assert from_three is not None
    assert from_three.high is not None
    assert from_three.n == 3
    assert from_one is not None
    assert from_one.low is None
    assert "steps (one start each)" in cold_start(compare(base, other))


def long_warm_up(step: float, start: float, name: str, **changes: Any) -> Result:
    """Return a summarized result whose training of 100 steps ends within its warm-up of 400 slow steps."""
    document = measured([step * noise for noise in NOISE], start, name, projection=None, **changes)
    for process in document.samples:
        process.series[0].warmup = [Block(seconds=100 * 5 * step, steps=100, cpu_seconds=0.0) for _ in range(4)]
    summarize(document, 100, None)
    return document


def test_the_verdict_has_the_same_whole_training_as_the_table() -> None:
    base, other = long_warm_up(0.012, 3.0, "a"), long_warm_up(0.002, 4.0, "b", loop="fused")
    break_even = compare(base, other).break_even
    assert break_even is not None
    assert base.projection is not None
    assert other.projection is not None
    totals = [base.projection.total_seconds.value, other.projection.total_seconds.value]
    assert break_even.training_seconds == pytest.approx(totals)
    assert totals[0] == pytest.approx(3 + 99 * 5 * 0.012, rel=0.01)


def test_only_the_warm_up_before_the_break_even_counts() -> None:
    base, other = long_warm_up(0.012, 3.0, "a"), long_warm_up(0.002, 4.0, "b", loop="fused")
    break_even = compare(base, other).break_even
    assert break_even is not None
    assert break_even.steps is not None
    assert break_even.steps.value == pytest.approx(1.0 / (5 * (0.012 - 0.002)), rel=0.2)  # both still warm up then


def test_trainings_of_unequal_length_are_compared_for_the_shorter_one() -> None:
    base, other = measured([0.012] * 4), measured([0.002] * 4, name="b", loop="fused")
    for document, steps in ((base, 162), (other, 270)):
        document.projection = None
        summarize(document, steps, None)
    break_even = compare(base, other).break_even
    assert break_even is not None
    assert break_even.training_steps == 162
    assert break_even.training_seconds == pytest.approx([3 + 161 * 0.012, 3 + 161 * 0.002], rel=0.01)


def test_the_break_even_of_unequal_batches_is_in_examples_and_epochs() -> None:
    epoch = {"facts": {"epoch": {"batches": 100, "remainder": 0}}}
    small, large = (
        result(
            name, params={"batch": batch, "epochs": 10}, projection=None,
            samples=[sample(n, step * noise, start, **epoch) for n, noise in enumerate(NOISE, 1)],
        )
        for name, batch, step, start in (("a", 32, 0.010, 3.0), ("b", 64, 0.010, 13.0))
    )  # fmt: skip
    for side, examples in ((small, 32), (large, 64)):
        summarize(side, 1000 * 32 // examples, examples)
    comparison = compare(small, large)
    break_even = comparison.break_even
    assert comparison.unit == "example"
    assert break_even is not None
    assert (break_even.winner, break_even.steps, break_even.training_steps) == ("other", None, None)
    assert break_even.examples is not None
    assert break_even.epochs is not None
    assert break_even.examples.value == pytest.approx(2000 * 32, rel=0.01)
    assert break_even.epochs.value == pytest.approx(20, rel=0.01)
    assert break_even.training_seconds == pytest.approx([3 + 999 * 0.01, 13 + 499 * 0.01], rel=0.01)
    assert " examples [" in cold_start(comparison)


def test_phases_of_interleaved_results_are_compared_within_trials() -> None:
    delays = (1.0, 3.0, 2.0, 5.0)
    base, other = (
        result(name, loop=loop, samples=[sample(n, 0.01, start + delay) for n, delay in enumerate(delays, 1)])
        for name, loop, start in (("a", "fit", 3.0), ("b", "step", 3.1))
    )
    paired = {phase.phase: phase.difference for phase in compare(base, other).phases}["import"]
    other.group = "h"
    independent = {phase.phase: phase.difference for phase in compare(base, other).phases}["import"]
    assert [paired.low, paired.high] == pytest.approx([0.1, 0.1])
    assert independent.low is not None
    assert independent.low < 0


def test_a_side_that_starts_and_runs_faster_is_ahead_immediately() -> None:
    base = measured([0.012 * n for n in NOISE], start=8.0)
    break_even = compare(base, measured([0.002 * n for n in NOISE], start=3.0, name="b", loop="fit")).break_even
    assert break_even is not None
    assert (break_even.winner, break_even.immediate, break_even.steps) == ("other", True, None)


def test_steps_that_may_be_equal_have_no_break_even() -> None:
    base, other = measured([0.01, 0.012, 0.009]), measured([0.012, 0.009, 0.01], name="b", loop="fit")
    break_even = compare(base, other).break_even
    assert break_even is not None
    assert (break_even.winner, break_even.steps) == ("none", None)


def test_95_percent_of_fieller_intervals_contain_the_true_ratio() -> None:
    rng = random.Random(7)
    trials, covered = 2000, 0
    for _ in range(trials):
        numerator, denominator = ([rng.gauss(mean, spread) for _ in range(6)] for mean, spread in ((40, 3), (10, 1)))
        cost, gain = Contrast.paired([0.0] * 6, numerator), Contrast.paired([0.0] * 6, denominator)
        covariance = statistics.covariance(numerator, denominator) / 6
        interval = fieller(cost, gain, covariance)
        covered += (interval.low or 0) <= 4 <= (interval.high or math.inf)
    assert scipy_stats.binom.ppf(1e-4, trials, 0.95) <= covered <= scipy_stats.binom.ppf(1 - 1e-4, trials, 0.95)


@pytest.mark.parametrize(
    ("change", "axis"),
    [
        ({"backend": "cuda"}, "backend"),
        ({"loop": "fit", "xla": False}, "loop"),
        ({"dtype": "mixed_float16"}, "dtype"),
        ({"params": {"batch": 64, "epochs": 10}}, "batch"),
        ({"threads": Threads(intra=1, inter=1)}, "threads"),
        ({"backend": "cuda", "threads": Threads(intra=1, inter=1)}, "backend"),
        ({}, None),
    ],
)
def test_the_only_difference_is_the_axis(change: dict[str, Any], axis: str | None) -> None:
    comparison = compare(result("a"), result("b", **change))
    assert comparison.axis == axis
    assert not comparison.unfair


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"workload": "mnist"}, "workload"),
        ({"backend": "cuda", "loop": "fit"}, "backend"),
        ({"params": {"batch": 64, "epochs": 2}}, "batch"),
        ({"data": Data(kind="synthetic", name="cifar10")}, "data"),
        ({"failure": Failure(kind="same-answer", message="its first losses differ")}, "same-answer check"),
        (
            {"placement": Placement(requested_device="GPU:0", method="m", verified=False, on_device=0, reason="r")},
            "placement",
        ),
    ],
)
def test_unfair_differences_are_named_with_a_reason(change: dict[str, Any], name: str) -> None:
    comparison = compare(result("a"), result("b", **change))
    assert name in [d.name for d in comparison.unfair]
    assert all(d.reason for d in comparison.unfair)


def test_two_user_files_are_the_axis_and_their_parameters_are_context() -> None:
    old = result("a", workload="old", file="/x/old.py", file_sha256="1", params={"batch": 32})
    new = result("b", workload="new", file="/x/new.py", file_sha256="2", params={"rows": 5})
    comparison = compare(old, new)
    assert comparison.axis == "file"
    assert not comparison.unfair
    assert {"batch", "rows"} <= {d.name for d in comparison.differences if d.kind == "context"}


def test_another_version_of_tensorflow_is_context() -> None:
    base = result("a", environment={"framework": {"tensorflow": "2.21.0"}})
    other = result("b", backend="directml", environment={"framework": {"tensorflow": "2.10.1"}})
    assert ("TensorFlow", "context") in [(d.name, d.kind) for d in differences(base, other)]


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"framework": {"build": {"cuda_version": "12.5"}}}, "CUDA"),
        ({"framework": {"git_version": "v2.21.0-5"}}, "TensorFlow's build"),
        ({"host": {"memory": {"limit": 2**30}}}, "memory limit"),
        ({"host": {"cpu": {"governor": "powersave"}}}, "CPU governor"),
        ({"host": {"system": {"hypervisor": "KVM"}}}, "hypervisor"),
    ],
)
def test_differences_between_machines_are_context(environment: dict[str, Any], name: str) -> None:
    base, other = result("a"), result("b", environment=environment, backend="cpu")
    assert [(d.name, d.kind) for d in differences(base, other)] == [(name, "context")]


def test_the_libraries_and_device_of_a_backend_are_not_a_difference() -> None:
    environment = {"framework": {"build": {"cuda_version": "12.5"}}, "device": {"name": "T4", "driver": "550"}}
    listing = differences(result("a"), result("b", backend="cuda", environment=environment))
    assert [(d.name, d.kind) for d in listing] == [("backend", "axis")]


def test_one_argument_pairs_groups_and_then_comparable_single_results() -> None:
    group = [result("a", "g"), result("b", "g", loop="fit", xla=False)]
    single = [result("c", "h", dtype="mixed_float16"), result("d", "i", workload="mnist")]
    pairing = pair([[*group, *single]])
    assert [(a.id, b.id) for a, b in pairing.pairs] == [("a", "b")]
    assert [r.id for r in pairing.alone] == ["c", "d"]
    single_pairing = pair([[*single, result("e", "j", workload="mnist", loop="fit", xla=False)]])
    assert [(a.id, b.id) for a, b in single_pairing.pairs] == [("d", "e")]


def test_two_folders_are_paired_by_workload_and_the_other_results_are_alone() -> None:
    next_day = {"created": MOMENT + timedelta(days=1)}
    old = [result("a1"), result("b1", workload="mnist"), result("c1", workload="matmul", params={"n": 4})]
    new = [result("b2", "h", workload="mnist", **next_day), result("a2", "h", backend="cuda", **next_day)]
    pairing = pair([old, new])
    assert [(a.id, b.id) for a, b in pairing.pairs] == [("b1", "b2"), ("a1", "a2")]
    assert [r.id for r in pairing.alone] == ["c1"]


@pytest.mark.parametrize("changed", [{"file_sha256": "newer"}, {"threads": Threads(intra=4, inter=4)}, {"seed": 2}])
def test_two_folders_pair_the_same_backend_even_if_the_key_differs(changed: dict[str, Any]) -> None:
    before = [result(f"{backend}1", backend=backend) for backend in ("cpu", "cuda")]
    after = [result(f"{backend}2", "h", backend=backend, **changed) for backend in ("cpu", "cuda")]
    assert [(a.id, b.id) for a, b in pair([before, after]).pairs] == [("cpu1", "cpu2"), ("cuda1", "cuda2")]


def test_two_folders_pair_a_changed_file_with_the_file_of_the_same_name_and_loop() -> None:
    def folder(version: str) -> list[Result]:
        return [
            result(f"{name} {loop} {version}", version, workload=name, file=f"/{name}.py", file_sha256=name + version,
                   loop=loop, params={})
            for name in ("one", "two")
            for loop in ("fit", "step")
        ]  # fmt: skip

    pairing = pair([folder("old"), folder("new")])
    assert [(a.id, b.id) for a, b in pairing.pairs] == [
        (f"{name} old", f"{name} new") for name in ("one fit", "one step", "two fit", "two step")
    ]
    assert pairing.alone == []


def test_two_folders_report_results_without_a_counterpart_as_unchecked() -> None:
    old = [result("a1"), result("b1", workload="mnist"), result("c1", workload="matmul", params={"n": 4})]
    unfair = result("b2", "h", workload="mnist", backend="cuda", dtype="float64")
    new = [result("a2", "h"), unfair, result("d2", "h", workload="new")]
    pairing = pair([old, new])
    assert [r.id for r in pairing.alone] == ["b1", "c1", "b2", "d2"]
    assert [r.id for r in pairing.unchecked] == ["b1", "c1", "b2"]
    assert pair([[*old, *new]]).unchecked == []


def test_only_the_newest_repetition_is_paired() -> None:
    runs = [result(str(n), str(n), created=MOMENT + timedelta(hours=n)) for n in range(3)]
    pairing = pair([[*runs], [result("x", "x", loop="fit", xla=False)]])
    assert [(a.id, b.id) for a, b in pairing.pairs] == [("2", "x")]


def test_the_same_work_on_another_kind_of_machine_is_not_a_repetition() -> None:
    local, remote = (measured(NOISE, name=name, group=name, fingerprint=name) for name in ("local", "remote"))
    repetition = measured(NOISE, name="again", group="again", fingerprint="local", created=MOMENT + timedelta(days=1))
    pairing = pair([[local, remote, repetition]])
    assert [(a.id, b.id) for a, b in pairing.pairs] == [("remote", "again")]
    across_folders = pair(
        [[local, remote], [repetition, measured(NOISE, name="other", backend="cuda", fingerprint="local")]]
    )
    assert [(a.id, b.id) for a, b in across_folders.pairs] == [("local", "again"), ("local", "other")]


def with_losses(losses: list[float], **changes: Any) -> Result:
    """Return a result whose processes all have these first losses."""
    document = measured(NOISE, **changes)
    for process in document.samples:
        process.first_losses = losses
    return document


def test_results_of_different_groups_must_have_the_same_first_losses() -> None:
    cpu = with_losses([2.3, 2.2], name="a", group="a")
    for losses, changes, fair in (
        ([2.3, 2.5], {}, False),
        ([2.3, 2.2001], {}, True),
        ([2.3, 2.5], {"seed": 2}, True),
        ([2.3, 2.5], {"params": {"batch": 64}}, True),
    ):
        gpu = with_losses(losses, name="b", group="b", backend="cuda" if "params" not in changes else "cpu", **changes)
        findings = [difference for difference in compare(cpu, gpu).unfair if difference.name == FIRST_LOSSES]
        assert not findings if fair else "do not compute the same" in findings[0].reason, (losses, changes)


@pytest.mark.parametrize("text", ["old", "new"])
def test_two_checkouts_of_a_program_may_compute_different_losses(text: str) -> None:
    base = with_losses([2.3, 2.2], name="a", file="/base/train.py", file_sha256="old", checkout="base")
    head = with_losses([9.3, 9.2], name="b", file="/head/train.py", file_sha256=text, checkout="head")
    check_same_answer([base, head])
    assert head.failure is None
    comparison = compare(base, head)
    assert not comparison.unfair
    assert comparison.axis == ("checkout" if text == "old" else "file")
    assert [(d.name, d.kind) for d in comparison.differences if d.name == FIRST_LOSSES] == [(FIRST_LOSSES, "context")]


def test_results_of_different_groups_show_their_dates() -> None:
    second = measured(NOISE, name="b", group="b", backend="cuda", created=MOMENT + timedelta(hours=2))
    (date,) = [difference for difference in compare(measured(NOISE), second).differences if difference.name == "date"]
    assert (date.base, date.other) == ("2026-01-02 03:04 UTC", "2026-01-02 05:04 UTC")
    assert all(
        difference.name != "date"
        for difference in compare(measured(NOISE), measured(NOISE, backend="cuda")).differences
    )


def test_three_named_results_are_all_paired() -> None:
    pairing = pair([[result(name, name, backend=name)] for name in ("a", "b", "c")])
    assert [(a.id, b.id) for a, b in pairing.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_results_of_a_group_are_compared_with_its_first() -> None:
    group = [result("a"), result("b", loop="fit"), result("c", "other", loop="fit")]
    assert [(c.base.id, c.other.id) for c in Outcome.of(pair_groups(group)).comparisons] == [("a", "b")]


def test_cases_are_compared_across_backends_and_with_each_other_on_the_first_backend() -> None:
    names = {("small", "cpu"): "a", ("small", "cuda"): "b", ("large", "cpu"): "c", ("large", "cuda"): "d"}
    group = [
        measured([0.01, 0.011], name=name, backend=backend, case=case, params={"rows": 10 if case == "small" else 1000})
        for (case, backend), name in names.items()
    ]
    comparisons = [(c.base.id, c.other.id, c.axis) for c in Outcome.of(pair_groups(group)).comparisons]
    assert comparisons == [("a", "b", "backend"), ("a", "c", "case"), ("c", "d", "backend")]
    assert not any(c.unfair for c in Outcome.of(pair_groups(group)).comparisons)


def test_cases_with_equal_parameters_are_the_same_work_even_if_their_names_differ() -> None:
    for name in (None, "tiny"):
        base = measured([0.01, 0.011], case=name, params={"rows": 1})
        other = measured([0.01, 0.011], name="b", group="b", case="small", params={"rows": 1})
        comparison = compare(base, other)
        assert (comparison.axis, comparison.unfair) == (None, [])
        (case,) = [difference for difference in comparison.differences if difference.name == "case"]
        assert (case.base, case.other, case.kind) == (name, "small", "context")


def test_a_case_and_a_run_without_a_case_differ_in_their_parameters() -> None:
    base = measured([0.01, 0.011], case="small", params={"rows": 1, "batch": 2})
    one_other = measured([0.01, 0.011], name="b", params={"rows": 9, "batch": 2})
    assert compare(base, one_other).axis == "rows"
    two_others = measured([0.01, 0.011], name="b", params={"rows": 9, "batch": 8})
    assert {difference.name for difference in compare(base, two_others).unfair} == {"rows", "batch"}


@pytest.mark.parametrize(
    ("changed", "axes"),
    [
        ({"case": "large", "params": {"rows": 9}}, ["loop", "case", "loop"]),
        ({"file": "new.py", "file_sha256": "b"}, ["loop", "file", "file"]),
    ],
)
def test_loops_are_compared_within_a_case_and_with_the_same_loop_of_another_file(
    changed: dict[str, Any], axes: list[str]
) -> None:
    first: dict[str, Any] = {"case": "small", "params": {"rows": 1}}
    if "file" in changed:
        first = {"file": "old.py", "file_sha256": "a"}
    specs = zip("abcd", (first, first, changed, changed), ("step", "fused", "step", "fused"), strict=True)
    group = [measured([0.01, 0.011], name=name, loop=loop, **fields) for name, fields, loop in specs]
    assert [c.axis for c in Outcome.of(pair_groups(group)).comparisons] == axes
    assert not any(c.unfair for c in Outcome.of(pair_groups(group)).comparisons)


def test_a_result_without_a_fair_partner_is_paired_with_the_first() -> None:
    group = [
        measured([0.01, 0.011], name="a"),
        measured([0.01, 0.011], name="b", backend="cuda"),
        measured([0.01, 0.011], name="c", backend="rocm", dtype="float64"),
    ]
    assert [(a.id, b.id) for a, b in pair([group]).pairs] == [("a", "b"), ("a", "c")]
    assert [bool(c.unfair) for c in Outcome.of(pair_groups(group)).comparisons] == [False, True]


def test_a_process_with_a_negative_time_is_ignored() -> None:
    invalid = measured([0.01, 0.011, 0.0105], name="b", loop="fit")
    invalid.samples[0].series[0].blocks[0].seconds *= -1
    assert set(process_values(invalid)) == {2, 3}


@pytest.mark.parametrize("steps", [[0.0, 0.0], [-1.0, 1.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_invalid_times_give_no_verdict(steps: list[float]) -> None:
    comparison = compare(measured([0.01, 0.011]), measured(steps, name="b", loop="fit"))
    assert comparison.verdict == "not enough data"
    comparison.model_dump_json()


def test_times_without_variance_are_compared() -> None:
    comparison = compare(measured([0.01] * 3), measured([0.02] * 3, name="b", loop="fit"))
    assert comparison.verdict == "slower"
    assert comparison.ratio is not None
    assert (comparison.ratio.low, comparison.ratio.high) == pytest.approx((2.0, 2.0))


def test_a_result_is_found_by_file_folder_or_part_of_its_id(tmp_path: Path) -> None:
    document = result("20260102T030405000-aaaaaaaa")
    path = files.write(document, tmp_path)
    files.write(result("20260102T030405000-bbbbbbbb"), tmp_path)
    assert files.find(str(path), Path("nowhere")) == [path]
    assert files.find("aaaaaaaa", tmp_path) == [path]
    assert len(files.find(str(tmp_path), Path("nowhere"))) == 2


def test_a_what_if_is_the_axis_or_a_second_difference() -> None:
    plain, cached = measured([0.01, 0.011]), measured([0.009, 0.01], name="b", what_ifs=("cache",))
    assert compare(plain, cached).axis == "what_ifs"
    other = measured([0.009, 0.01], name="c", what_ifs=("cache",), backend="cuda")
    assert {d.name for d in compare(plain, other).unfair} == {"backend", "what_ifs"}


def test_a_break_even_may_have_no_upper_bound() -> None:
    cost = Contrast(mean=40.0, variance=100.0, freedom=4, n=5)
    gain = Contrast(mean=0.010, variance=0.004**2, freedom=8, n=9)
    interval = fieller(cost, gain, 0.0)
    assert interval.high is None
    assert interval.low is not None
    assert 0 <= interval.low < interval.value
    exchanged = fieller(replace(cost, mean=-cost.mean), replace(gain, mean=-gain.mean), 0.0)
    assert (exchanged.low, exchanged.high) == (interval.low, None)


def test_the_needed_processes_of_results_measured_apart_have_the_freedom_of_both() -> None:
    ratio = stats.independent_ratio([1.0, 1.03], [1.0, 1.036])
    assert ratio is not None
    as_pairs, of_both = units_for_verdict(ratio, 0.02), units_for_verdict(ratio, 0.02, freedom=1.98)
    assert as_pairs is not None
    assert of_both is not None
    assert of_both > as_pairs


def test_two_environments_differ_in_the_packages_that_they_have_and_in_their_versions() -> None:
    def in_env(name: str, **packages: str) -> Result:
        env = Env(name=name, python=f"/{name}", version="3.11.9", sha256=str(packages), packages=packages)
        return result(name, env=env)

    old = in_env("old", keras="3.5", numpy="1.26", wheel="1", tensorflow="2.20")
    new = in_env("new", keras="3.9", numpy="1.26", rich="14", tensorflow="2.21")
    found = {d.name: (d.base, d.other, d.kind) for d in differences(old, new)}
    assert found["env"] == ("old", "new", "axis")
    assert found["packages"] == ("keras 3.5", "keras 3.9", "context")
    assert found["packages in one environment only"] == ("wheel", "rich", "context")
    same = {d.name for d in differences(old, in_env("copy", **(old.spec.env.packages if old.spec.env else {})))}
    assert "env" in same
    assert not same & {"packages", "packages in one environment only"}


def test_a_small_difference_of_a_phase_has_digits() -> None:
    base, other = measured([0.01] * 4), measured([0.01] * 4, name="b", loop="fit")
    for side, seconds in ((base, 2e-5), (other, 1e-5)):
        for process in side.samples:
            process.phases["batch_copy"] = seconds
    assert any(line.endswith("-10.0 µs [-10.0 µs, -10.0 µs]") for line in phases(compare(base, other)))
