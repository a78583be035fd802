"""Summary, projection, warnings and same-answer check of synthetic samples."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from synthetic import MOMENT, misplaced, result

from bench.analyse import epoch_waits
from bench.analyse.projection import add_full_training
from bench.analyse.same_answer import check_same_answer
from bench.analyse.samples import process_totals
from bench.analyse.summary import summarize
from bench.analyse.warnings import add_warnings
from bench.model.facts import Facts
from bench.model.failure import Failure
from bench.model.framework import Framework
from bench.model.placement import Placement
from bench.model.recognition import Recognition, StepKind, StepSource
from bench.model.result import Price, Projection, Result, Stop
from bench.model.sample import Block, FullTraining, ProcessSample, Series
from bench.model.spec import Threads
from bench.model.telemetry import Telemetry

pytestmark = pytest.mark.once

PHASES = {
    "interpreter": 0.1, "import": 2.0, "device_init": 0.3, "data": 1.0, "build": 0.5,
    "prepare": 4.0, "trace": 0.7, "first_step": 0.2,
}  # fmt: skip


def series(step: float, name: str = "step", blocks: int = 3, warm: float | None = None, **changes: Any) -> Series:
    """Return a series of equal blocks of 10 steps, after one block of warm-up."""
    return Series(
        name=name,
        warmup=[Block(seconds=10 * (warm or step), steps=10, cpu_seconds=0.0)],
        blocks=[Block(seconds=10 * step, steps=10, cpu_seconds=0.0, position=n) for n in range(blocks)],
        **changes,
    )


def sample(step: float = 0.01, trial: int = 1, **changes: Any) -> ProcessSample:
    fields: dict[str, Any] = {"phases": dict(PHASES), "series": [series(step)], **changes}
    return ProcessSample(trial=trial, pid=trial, started=MOMENT, **fields)


def blank(*samples: ProcessSample, **changes: Any) -> Result:
    """Return a result that contains nothing but samples."""
    fields: dict[str, Any] = {"summary": {}, "projection": None, "placement": None, "stop": None, **changes}
    return result(samples=list(samples), **fields)


def summarized(*samples: ProcessSample, total: int | None = None, examples: int | None = None) -> Result:
    document = blank(*samples)
    summarize(document, total, examples)
    return document


def warning_keys(document: Result) -> list[str]:
    return [warning.key for warning in document.warnings]


def test_the_summary_has_the_typical_and_the_mean_step() -> None:
    process = sample()
    process.series[0].blocks[2].seconds *= 4
    summary = summarized(process, examples=32).summary
    assert summary.step_seconds is not None
    assert summary.step_seconds_mean is not None
    assert summary.step_seconds.value == pytest.approx(0.01)
    assert summary.step_seconds_mean.value == pytest.approx(0.02)
    assert summary.examples_per_second == pytest.approx(3200)


def test_each_process_counts_once_regardless_of_its_blocks() -> None:
    summary = summarized(sample(0.01), sample(0.04, trial=2, series=[series(0.04, blocks=300)])).summary
    assert summary.step_seconds is not None
    assert [summary.step_seconds.value, summary.step_seconds.n] == pytest.approx([0.02, 2])


def test_percentiles_come_from_the_latency_pass() -> None:
    summary = summarized(sample(latency=[0.04, 0.01, 0.03]), sample(trial=2, latency=[0.02, 0.05])).summary
    assert (summary.step_seconds_p50, summary.step_seconds_p90, summary.step_seconds_p99) == pytest.approx(
        (0.03, 0.046, 0.0496)
    )


def test_without_a_latency_pass_there_are_no_percentiles() -> None:
    assert summarized(sample()).summary.step_seconds_p50 is None


def test_operations_by_formula_take_precedence_over_counted_ones() -> None:
    without_formula = summarized(sample(facts={"flops_per_step": 3e6})).summary
    assert [without_formula.flops_per_step, without_formula.flops_per_second] == pytest.approx([3e6, 3e8])
    with_formula = summarized(sample(facts={"flops_per_step": 3e6, "flops_formula": 2e6})).summary
    assert with_formula.flops_per_second == pytest.approx(2e8)


def test_a_phase_is_averaged_over_the_processes_that_had_it() -> None:
    other = sample(trial=2, phases={**PHASES, "build": 1.5, "partial_batch": 9.0})
    phases = summarized(sample(), other).summary.phases
    assert (phases["build"].value, phases["build"].n) == (1.0, 2)
    assert (phases["partial_batch"].value, phases["partial_batch"].n) == (9.0, 1)
    assert phases["warm_up"].value == pytest.approx(0.1)


def test_the_cold_start_ends_with_the_first_step_and_the_warm_up_follows() -> None:
    shared = sample(trial=3, start_position=None)  # another worker started meanwhile, so this start does not count
    summary = summarized(sample(), sample(trial=2, phases={**PHASES, "import": 3.0}), shared).summary
    assert summary.cold_start_seconds is not None
    assert summary.warmed_up_seconds is not None
    assert summary.cold_start_seconds.value == pytest.approx(9.3)
    assert summary.cold_start_seconds.n == 2
    assert summary.warmed_up_seconds.value == pytest.approx(9.4)
    assert summarized(shared).summary.cold_start_seconds is None


@pytest.mark.parametrize("compiled", [None, False, True])
def test_the_summary_says_whether_xla_compiled_the_step(compiled: bool | None) -> None:
    assert summarized(sample(facts=Facts(jit_compile=compiled))).summary.xla is compiled


def test_the_error_of_the_projection_is_relative_to_the_measured_training() -> None:
    projection = result().projection
    assert projection is not None
    assert projection.build_and_fit_error == pytest.approx(288 / 291 - 1)
    assert projection.total_error == pytest.approx(295 / 299 - 1)
    projection.full_training = None
    assert (projection.build_and_fit_error, projection.total_error) == (None, None)


def test_a_floor_is_subtracted_within_each_process_before_the_bandwidth() -> None:
    def copies(floor: float, copy: float) -> list[Series]:
        return [series(floor, "floor"), series(copy, "h2d/1000", bytes=1000, floor="floor")]

    summary = summarized(sample(series=copies(0.1, 0.3)), sample(trial=2, series=copies(0.4, 0.6))).summary
    assert summary.series["h2d/1000"].value == pytest.approx(0.2)
    assert summary.series["floor"].value == pytest.approx(0.25)
    assert summary.bytes_per_second == {"h2d/1000": pytest.approx(5000)}
    assert summary.step_seconds is None


def test_a_copy_faster_than_its_floor_has_no_bandwidth() -> None:
    parts = [series(0.3, "floor"), series(0.2, "h2d/4", bytes=4, floor="floor")]
    summary = summarized(sample(series=parts)).summary
    assert summary.series["h2d/4"].value == 0.0
    assert summary.bytes_per_second == {}


def test_the_projection_adds_the_phases_and_the_remaining_mean_steps() -> None:
    projection = summarized(sample(), total=1000).projection
    assert projection is not None
    build_and_fit = 0.5 + 4.0 + 0.7 + 0.2 + 999 * 0.01
    assert projection.steps == 1000
    assert projection.build_and_fit_seconds.value == pytest.approx(build_and_fit)
    assert projection.total_seconds.value == pytest.approx(build_and_fit + 0.1 + 2.0 + 0.3 + 1.0)


def test_slow_steps_of_the_warm_up_count_as_measured() -> None:
    projection = summarized(sample(series=[series(0.01, warm=0.05)]), total=1000).projection
    assert projection is not None
    assert projection.build_and_fit_seconds.value == pytest.approx(5.4 + 999 * 0.01 + 10 * (0.05 - 0.01))


EPOCHS = {
    "partial_batch": 0.9, "partial_batch_again": 0.004, "first_epoch_end": 2.0, "epoch_end": 0.25, "epoch_start": 0.03,
}  # fmt: skip


def test_the_projection_counts_what_each_epoch_adds_once() -> None:
    facts = {"epoch": {"batches": 9, "remainder": 3}, "total_steps": 50}
    projection = summarized(sample(phases={**PHASES, **EPOCHS}, facts=facts)).projection
    assert projection is not None
    assert projection.steps == 50
    steps, partials, ends = (45 - 1) * 0.01, 0.9 + 4 * 0.004, 2.0 + 4 * 0.25 + 4 * 0.03
    assert projection.build_and_fit_seconds.value == pytest.approx(5.4 + steps + partials + ends)


def test_epochs_that_only_one_process_measured_count_for_each_process() -> None:
    facts = {"epoch": {"batches": 9, "remainder": 3}, "total_steps": 50}
    whole = sample(phases={**PHASES, **EPOCHS}, facts=facts)
    short = sample(trial=2, phases=PHASES, facts=facts)
    alone, both = summarized(whole).projection, summarized(whole, short).projection
    assert alone is not None
    assert both is not None
    assert both.build_and_fit_seconds.value == pytest.approx(alone.build_and_fit_seconds.value)


def test_the_last_epoch_of_a_training_has_an_end_but_no_successor() -> None:
    facts = {"epoch": {"batches": 10, "remainder": 0}, "total_steps": 10}
    phases = {**PHASES, "first_epoch_end": 2.0, "epoch_end": 0.25, "epoch_start": 0.03}
    projection = summarized(sample(phases=phases, facts=facts)).projection
    assert projection is not None
    assert projection.build_and_fit_seconds.value == pytest.approx(5.4 + 9 * 0.01 + 2.0)


@pytest.mark.parametrize(("share", "validations"), [(1.0, 5), (0.4, 2), (0.2, 1), (0.0, 0)])
def test_the_projection_counts_a_validation_only_for_the_epochs_that_have_one(share: float, validations: int) -> None:
    facts = {"epoch": {"batches": 10, "remainder": 0}, "total_steps": 50, "validated_epochs": share}
    phases = {**PHASES, "first_validation": 3.0, "validation": 0.7, "epoch_end": 0.1}
    projection = summarized(sample(phases=phases, facts=facts)).projection
    assert projection is not None
    seconds = 3.0 + 0.7 * (validations - 1) if validations else 0.0
    assert projection.build_and_fit_seconds.value == pytest.approx(5.4 + 49 * 0.01 + 5 * 0.1 + seconds)


def test_throughput_over_whole_epochs_contains_what_passes_between_them() -> None:
    facts = {"epoch": {"batches": 10, "remainder": 0}, "total_steps": 10}
    phases = {**PHASES, "first_epoch_end": 9.0, "epoch_end": 0.6, "epoch_start": 0.1, "validation": 0.4}
    facts |= {"validated_epochs": 0.5}
    summary = summarized(sample(phases=phases, facts=facts), examples=32).summary
    assert summary.examples_per_second == pytest.approx(32 / 0.01)
    assert summary.epoch_examples_per_second == pytest.approx(32 / (0.01 + 0.09))


def test_throughput_over_whole_epochs_counts_the_examples_of_a_partial_batch() -> None:
    facts = {"epoch": {"batches": 3, "remainder": 8}, "total_steps": 4}
    phases = {**PHASES, "epoch_end": 0.6, "partial_batch": 0.1, "partial_batch_again": 0.004}
    summary = summarized(sample(phases=phases, facts=facts), examples=32).summary
    assert summary.epoch_examples_per_second == pytest.approx((3 * 32 + 8) / (3 * 0.01 + 0.004 + 0.6))


def test_a_training_that_is_shorter_than_the_warm_up_has_only_the_steps_of_the_warm_up() -> None:
    warm_up = series(0.01, warm=0.05)  # 10 steps
    projection = summarized(sample(series=[warm_up], facts={"total_steps": 6})).projection
    assert projection is not None
    assert projection.build_and_fit_seconds.value == pytest.approx(5.4 + 5 * 0.05)


def test_a_training_that_stopped_by_itself_is_projected_to_where_it_stopped() -> None:
    document = summarized(sample(facts={"total_steps": 270, "stopped_after": 162}))
    add_warnings(document)
    assert document.projection is not None
    assert (document.projection.steps, document.projection.planned_steps) == (162, 270)
    assert document.projection.build_and_fit_seconds.value == pytest.approx(5.4 + 161 * 0.01)
    (warning,) = document.warnings
    assert (warning.key, "after 162 of 270 steps" in warning.message) == ("stopped", True)


def test_a_measured_training_is_compared_with_a_projection_for_the_same_steps() -> None:
    document = summarized(sample(facts={"total_steps": 270}))
    full = FullTraining(build_and_fit_seconds=7.0, total_seconds=9.0, steps=162, planned_steps=270)
    add_full_training(document, full)
    summarize(document, None, None)
    add_warnings(document)
    assert document.projection is not None
    assert (document.projection.steps, document.projection.planned_steps) == (162, 270)
    assert document.projection.build_and_fit_seconds.value == pytest.approx(5.4 + 161 * 0.01)
    assert warning_keys(document) == ["stopped"]


def test_the_number_of_steps_of_the_workload_takes_precedence_over_that_of_the_data() -> None:
    projection = summarized(sample(facts={"total_steps": 50}), total=70).projection
    assert projection is not None
    assert projection.steps == 70


def test_a_program_of_unknown_length_has_no_projection() -> None:
    assert summarized(sample()).projection is None


def test_costs_follow_from_the_hourly_price() -> None:
    document = blank(sample(), price=Price(per_hour=3.6, currency="EUR"))
    summarize(document, 1000, None)
    assert document.summary.cost_per_1000_steps == pytest.approx(0.01)  # 10 s of 0.001 EUR each
    assert document.projection is not None
    assert document.projection.cost == pytest.approx(document.projection.total_seconds.value / 1000)
    assert summarized(sample(), total=1000).summary.cost_per_1000_steps is None


@pytest.mark.parametrize(("backend", "keys"), [("cuda", ["shared-gpu"]), ("cpu", [])])
def test_a_shared_gpu_gives_a_warning_for_gpu_backends_only(backend: str, keys: list[str]) -> None:
    document = blank(sample())
    document.spec = document.spec.model_copy(update={"backend": backend})
    document.environment.host.deployment.shared_gpu = "allowed"
    add_warnings(document)
    assert warning_keys(document) == keys


@pytest.mark.parametrize(
    ("requested", "compiled", "expected"), [(True, False, True), (False, True, True), (True, True, False)]
)
def test_xla_without_effect_gives_a_warning(requested: bool, compiled: bool, expected: bool) -> None:
    document = blank(sample(facts={"jit_compile": compiled}))
    document.spec = document.spec.model_copy(update={"xla": requested})
    add_warnings(document)
    assert ("xla" in warning_keys(document)) is expected


@pytest.mark.parametrize(("kind", "expected"), [("updates", True), ("train-on-batch", True), ("fit", False)])
def test_xla_is_known_to_have_no_effect_on_a_scripts_own_loop(kind: StepKind, expected: bool) -> None:
    document = blank(sample())
    document.spec = document.spec.model_copy(update={"xla": True, "loop": "as-written"})
    source = StepSource(kind=kind, name="step", file="train.py", line=3, token="", steps=90)
    document.recognition = Recognition(chosen=source, ended=True, seconds=1.0)
    add_warnings(document)
    assert ("xla" in warning_keys(document)) is expected


def test_a_measured_training_and_its_projection_are_both_in_the_result() -> None:
    document = summarized(sample(), total=1000)
    full = FullTraining(build_and_fit_seconds=15.0, total_seconds=19.0, steps=1000, metrics={"loss": 0.5})
    add_full_training(document, full)
    summarize(document, 1000, None)
    assert document.projection is not None
    assert document.projection.full_training == full
    assert document.projection.build_and_fit_seconds.value == pytest.approx(5.4 + 999 * 0.01)


def test_waits_at_epoch_ends_are_separated_from_the_error_of_the_projection() -> None:
    document = summarized(sample(phases={**PHASES, "epoch_end": 0.1}), total=1000)
    full = FullTraining(
        build_and_fit_seconds=15.4 + 30, total_seconds=50, steps=1000, epoch_ends=[0.2, 20.1, 0.1, 10.1]
    )
    add_full_training(document, full)
    (warning,) = document.warnings
    assert warning.key == "epoch-end"
    assert "waited 30.0 s at 2 of 4 ends of epochs, where 0.0 s were projected" in warning.message
    assert "it took 15 s (projected -0.1%)" in warning.message
    assert "autotune" in warning.fix


@pytest.mark.parametrize(
    ("tensorflow", "loop", "seconds"),
    [("2.21.0", "fit", 23.8), ("2.21.0", "as-written", 23.8), ("2.21.0", "step", 0), ("2.10.1", "fit", 0)],
)
def test_a_note_says_how_long_the_training_may_wait_at_epoch_ends(tensorflow: str, loop: str, seconds: float) -> None:
    epoch = {"batches": 299, "remainder": 1}  # at least 2.73 s per epoch; the thread wakes up after 2.55 and 5.11 s
    document = blank(sample(facts={"epoch": epoch}))
    document.spec = document.spec.model_copy(update={"loop": loop})
    document.environment.framework = Framework(tensorflow=tensorflow)
    summarize(document, 3000, None)
    add_warnings(document)
    assert epoch_waits.longest_wait(document, document.samples) == pytest.approx(seconds, rel=0.01)
    notes = [note for note in document.notes if "may take up to 24 s longer than projected" in note]
    assert len(notes) == bool(seconds)


def test_epochs_that_share_an_iterator_do_not_wait() -> None:
    document = blank(sample(facts={"epoch": {"batches": 300, "remainder": 0}, "iterator_ends": []}))
    document.environment.framework = Framework(tensorflow="2.21.0")
    summarize(document, 3000, None)
    assert epoch_waits.longest_wait(document, document.samples) == 0.0


WAITED, CONTINUED = {"age": 0.2, "gap": 0.11}, {"age": 0.2, "gap": 0.001}
"""Ends of iterators. The autotuning thread wakes up at an age of 0.31 s."""


@pytest.mark.parametrize(
    ("ends", "share"),
    [([WAITED, CONTINUED, CONTINUED, CONTINUED] * 2, 0.25), ([WAITED] * 8, 1.0), ([CONTINUED] * 8, 0.0)],
)
def test_waits_of_short_epochs_are_projected_to_the_real_epochs(ends: list[Any], share: float) -> None:
    facts = {"epoch": {"batches": 300, "remainder": 0}}  # 3 s per epoch; the thread wakes up after 2.55 and 5.11 s
    plain = summarized(sample(facts=facts), sample(trial=2, facts=facts), total=3000).projection
    document = blank(*(sample(trial=n, facts={**facts, "iterator_ends": ends[n - 1 :: 2]}) for n in (1, 2)))
    summarize(document, 3000, None)
    add_warnings(document)
    assert plain is not None
    assert document.projection is not None
    assert document.projection.epoch_end_wait_seconds == pytest.approx(10 * share * 2.11, rel=0.01)
    for name in ("build_and_fit_seconds", "total_seconds"):
        without_waits, with_waits = getattr(plain, name), getattr(document.projection, name)
        assert with_waits.value == pytest.approx(without_waits.value + 10 * share * 2.11, rel=0.01)
        assert with_waits.high - with_waits.low > without_waits.high - without_waits.low
    notes = [note for note in document.notes if f"{round(8 * share)} of 8 short epochs waited" in note]
    assert len(notes) == bool(share)
    assert not any("longer than projected" in note for note in document.notes)


def waiting(seconds: float, *changes: dict[str, Any], epochs: int = 10) -> Projection:
    """Return the projection of a training whose epochs take so many seconds, and always wait at their ends.

    Args:
        seconds: of the 300 steps of an epoch.
        changes: fields of each process. Default: two equal processes.
        epochs: of the training.
    """
    facts = {"epoch": {"batches": 300, "remainder": 0}, "iterator_ends": [WAITED] * 8}
    samples = [
        sample(seconds / 300, trial, **{"facts": facts, **fields})
        for trial, fields in enumerate(changes or ({}, {}), 1)
    ]
    projection = summarized(*samples, total=300 * epochs).projection
    assert projection is not None
    return projection


def test_an_iterator_is_as_old_as_its_epoch_with_validation() -> None:
    facts = {"epoch": {"batches": 300, "remainder": 0}, "iterator_ends": [WAITED] * 8}
    phases = {**PHASES, "epoch_end": 0.2, "validation": 0.8}
    every, second = ({"phases": phases, "facts": {**facts, "validated_epochs": share}} for share in (1.0, 0.5))
    assert waiting(3.0).epoch_end_wait_seconds == pytest.approx(10 * 2.11, rel=0.01)  # until 5.11 s
    assert waiting(3.0, every, every).epoch_end_wait_seconds == pytest.approx(10 * 1.11, rel=0.01)
    assert waiting(3.0, second, second).epoch_end_wait_seconds == pytest.approx(5 * 1.11 + 5 * 1.91, rel=0.01)


def test_a_projection_changes_smoothly_with_the_length_of_an_epoch() -> None:
    lengths = [36 * 1.005**n for n in range(50)]  # the thread wakes up after 40.95 and 81.91 s
    waits = [waiting(length).epoch_end_wait_seconds / 10 for length in lengths]
    assert waits[0] == pytest.approx(40.95 - lengths[0], rel=0.05)
    assert waits[-1] == pytest.approx(81.91 - lengths[-1], rel=0.05)
    assert max(abs(later - earlier) for earlier, later in pairwise(waits)) < 0.06 * 40.96


def test_an_epoch_that_may_end_before_or_after_a_wake_up_has_an_interval_with_both_outcomes() -> None:
    total = waiting(40.5).build_and_fit_seconds
    steps = PHASES["build"] + PHASES["prepare"] + PHASES["trace"] + PHASES["first_step"] + 10 * 40.5
    assert total.low is not None
    assert total.high is not None
    assert total.low < steps + 10 * 0.45
    assert total.high > steps + 10 * 40.0


def test_processes_that_differ_make_the_wait_at_an_epoch_less_certain() -> None:
    slower, faster = {"series": [series(0.11)]}, {"series": [series(0.09)]}
    alike, different = waiting(30.0), waiting(30.0, slower, faster)  # only the slower half may end after 40.95 s
    assert alike.epoch_end_wait_seconds == pytest.approx(10 * 10.95, rel=0.01)
    assert different.epoch_end_wait_seconds > 1.05 * alike.epoch_end_wait_seconds


def test_an_epoch_that_ends_right_before_a_wake_up_is_not_observed() -> None:
    ends = [{"age": age, "gap": gap} for age, gap in ((0.3, 0.01), (0.31, 0.0), (0.2, 0.11))]
    assert epoch_waits.observed_waits([sample(facts={"iterator_ends": ends})]) == (1, 1)


@pytest.mark.parametrize(("usual", "ends"), [(0.1, [0.9, 0.5]), (6.0, [7.0, 20.0]), (0.1, [])])
def test_epoch_ends_of_usual_length_are_not_waits(usual: float, ends: list[float]) -> None:
    document = summarized(sample(phases={**PHASES, "epoch_end": usual}), total=1000)
    add_full_training(document, FullTraining(build_and_fit_seconds=45, total_seconds=50, steps=1000, epoch_ends=ends))
    assert document.warnings == []


def test_a_failed_process_is_left_out_of_all_figures() -> None:
    failed = sample(9.0, trial=2, failure=Failure(kind="killed", message="…"), latency=[9.0])
    document = summarized(sample(), failed)
    assert document.summary.step_seconds is not None
    assert [document.summary.step_seconds.value, document.summary.step_seconds.n] == pytest.approx([0.01, 1])
    assert document.summary.step_seconds_p50 is None
    assert document.summary.phases["import"].n == 1
    assert process_totals(document) == [pytest.approx(0.01)]


def test_the_total_of_a_process_without_steps_is_the_sum_of_its_series() -> None:
    assert process_totals(blank(sample(series=[series(0.1, "a"), series(0.3, "b")]))) == [pytest.approx(0.4)]


def with_losses(
    *losses: float, kind: str = "exact", loop: str = "step", backend: str = "cpu", **changes: Any
) -> Result:
    placement = Placement(
        requested_device="CPU:0" if backend == "cpu" else "GPU:0", method="", verified=True, on_device=1
    )
    process = sample(first_losses=list(losses), loss_precision=kind, placement=placement)
    return blank(process, loop=loop, backend=backend, **changes)


@pytest.mark.parametrize(
    ("kind", "error", "agree"),
    [
        ("exact", 1e-4, True),
        ("exact", 1e-2, False),
        ("reduced", 1e-2, True),
        ("reduced", 0.2, False),
        ("changed", 0.2, True),
    ],
)
def test_first_losses_must_agree_within_their_tolerance(kind: str, error: float, agree: bool) -> None:
    first, other = with_losses(2.0, 1.5, kind=kind), with_losses(2.0, 1.5 * (1 + error), kind=kind, loop="fit")
    check_same_answer([first, other])
    assert first.failure is None
    assert (other.failure is None) is agree
    if other.failure is not None:
        assert (other.failure.kind, other.status) == ("same-answer", "failed")
        assert "2, 1.5" in other.failure.message
        assert "cpu, step" in other.failure.message


def test_the_larger_of_two_tolerances_decides() -> None:
    exact, reduced = with_losses(1.0), with_losses(1.01, kind="reduced", loop="fit")
    check_same_answer([exact, reduced])
    assert reduced.failure is None


def test_a_gpu_may_use_fewer_bits_than_the_cpu() -> None:
    cpu, gpu = with_losses(1.0), with_losses(1.01, backend="cuda")
    check_same_answer([cpu, gpu])
    assert gpu.failure is None


def test_as_written_is_not_checked_against_other_loops() -> None:
    as_written, step = with_losses(1.0, loop="as-written"), with_losses(5.0)
    check_same_answer([as_written, step])
    assert step.failure is None


def test_as_written_does_not_hide_a_difference_between_other_loops() -> None:
    results = [with_losses(9.0, loop="as-written"), with_losses(1.0), with_losses(5.0, loop="fit")]
    check_same_answer(results)
    assert [result.failure is not None for result in results] == [False, False, True]


def test_other_parameters_may_give_other_losses() -> None:
    small, large = with_losses(1.0, params={"rows": 1}), with_losses(5.0, params={"rows": 2})
    check_same_answer([small, large])
    assert large.failure is None


def test_processes_of_one_spec_that_disagree_give_a_warning() -> None:
    document = blank(sample(first_losses=[1.0, 2.0]), sample(trial=2, first_losses=[1.0, 2.2]))
    check_same_answer([document])
    assert warning_keys(document) == ["same-answer"]
    assert "--deterministic" in document.warnings[0].fix


def with_telemetry(**telemetry: Any) -> Result:
    document = blank(sample(telemetry=Telemetry(wall_seconds=10.0, **telemetry)))
    add_warnings(document)
    return document


@pytest.mark.parametrize(
    ("key", "telemetry"),
    [
        ("throttled", {"throttled_seconds": 0.5}),
        ("stolen", {"stolen_seconds": 0.5}),
        ("load", {"load_before": 1.7}),
        ("gpu-busy", {"gpu_utilization_before": 0.4}),
        ("clocks", {"gpu_sm_clock_spread": 0.2}),
        ("temperature", {"gpu_temperature_rise_celsius": 8.0}),
    ],
)
def test_a_disturbance_gives_a_warning_with_a_fix(key: str, telemetry: dict[str, float]) -> None:
    document = with_telemetry(**telemetry)
    assert warning_keys(document) == [key]
    assert document.warnings[0].fix


def test_a_quiet_machine_gives_no_warning() -> None:
    quiet = {"throttled_seconds": 0.05, "stolen_seconds": 0.1, "load_before": 0.4, "gpu_sm_clock_spread": 0.01}
    quiet["gpu_temperature_rise_celsius"] = 3.0
    assert warning_keys(with_telemetry(**quiet)) == []


@pytest.mark.parametrize(("load", "expected"), [(7.2, []), (7.8, ["load"])])
def test_load_disturbs_only_a_run_whose_threads_lack_free_cpus(load: float, expected: list[str]) -> None:
    document = blank(sample(telemetry=Telemetry(wall_seconds=10.0, load_before=load)))
    document.spec = document.spec.model_copy(update={"threads": Threads(intra=1, inter=1)})
    document.environment.host.cpu.logical_cores = 8
    add_warnings(document)
    assert warning_keys(document) == expected
    assert not expected or f"load average {load} on 8 CPUs" in document.warnings[0].message


def test_the_warning_counts_processes_that_never_settled() -> None:
    document = blank(sample(series=[series(0.1, settled=False)]), sample(trial=2))
    add_warnings(document)
    assert warning_keys(document) == ["unsettled"]
    assert document.warnings[0].message.startswith("1 of 2 processes")


def test_the_warning_counts_processes_not_series() -> None:
    document = blank(sample(series=[series(0.1, name, settled=False) for name in ("a", "b", "c")]), sample(trial=2))
    add_warnings(document)
    assert document.warnings[0].message.startswith("1 of 2 processes")


@pytest.mark.parametrize(
    ("stop", "message", "option"),
    [
        (
            Stop(reason="max-time", trials=3, error=0.05, target=0.03),
            "before its target of ±3%: the step time is known to ±5.0%",
            "--max-time",
        ),
        (Stop(reason="max-processes", trials=1, target=0.03), "in only one process", "--max-processes"),
        (
            Stop(reason="max-time", trials=6, error=0.031, target=0.02, error_of="ratio"),
            "before every verdict settled: the ratio is known to ±3.1%",
            "--max-time",
        ),
    ],
)
def test_a_run_that_a_cap_ended_early_gives_a_warning(stop: Stop, message: str, option: str) -> None:
    document = blank(sample(), stop=stop)
    add_warnings(document)
    assert warning_keys(document) == ["target"]
    assert message in document.warnings[0].message
    assert option in document.warnings[0].fix


@pytest.mark.parametrize(
    ("stop", "option"),
    [
        (Stop(reason="max-time", trials=5, error=0.06, target=0.03, seconds=90.0), "--max-time 10m"),
        (Stop(reason="max-time", trials=3, needed_trials=30, target=0.03, seconds=90.0), "--max-time 17m"),
        (Stop(reason="max-time", trials=1, target=0.03, seconds=700.0), "--max-time 24m"),
        (Stop(reason="max-processes", trials=1, target=0.03, seconds=9.0), "--max-processes 5"),
        (Stop(reason="max-processes", trials=30, error=0.031, target=0.03, seconds=9.0), "--max-processes 60"),
    ],
)
def test_the_fix_names_the_cap_that_would_reach_the_target(stop: Stop, option: str) -> None:
    document = blank(sample(), stop=stop)
    add_warnings(document)
    assert [warning.fix for warning in document.warnings] == [f"Use {option}, or a larger --target-error."]


@pytest.mark.parametrize("reason", ["max-time", "max-processes"])
def test_no_cap_is_suggested_that_would_take_more_than_a_day(reason: Any) -> None:
    progress: dict[str, Any] = {"trials": 2, "needed_trials": 300_000, "error": 7.7, "target": 0.02, "seconds": 53.7}
    document = blank(sample(), stop=Stop(reason=reason, error_of="ratio", **progress))
    add_warnings(document)
    fixes = ["Settling every verdict would take more than a day. Use a quieter machine, or a larger --threshold."]
    assert [warning.fix for warning in document.warnings] == fixes


@pytest.mark.parametrize("reason", ["target", "max-processes"])
def test_a_run_that_reached_its_target_gives_no_warning(reason: Any) -> None:
    document = blank(sample(), stop=Stop(reason=reason, trials=4, error=0.02, target=0.03, settled=True))
    add_warnings(document)
    assert warning_keys(document) == []


def test_misplaced_operations_are_named_in_a_warning() -> None:
    document = blank(sample(), placement=misplaced())
    add_warnings(document)
    assert warning_keys(document) == ["misplaced"]
    assert "MatMul 'x/MatMul' on CPU:1" in document.warnings[0].message


def test_equal_notes_of_several_processes_appear_once() -> None:
    document = blank(
        sample(notes=["the program is 3 steps long"]), sample(trial=2, notes=["the program is 3 steps long"])
    )
    add_warnings(document)
    assert document.notes == ["the program is 3 steps long"]


@pytest.mark.parametrize(("count", "notes"), [(2.1e6, 0), (3e6, 1)])
def test_a_count_of_operations_far_from_the_formula_gives_a_note(count: float, notes: int) -> None:
    document = blank(sample(facts={"flops_per_step": count, "flops_formula": 2e6}))
    add_warnings(document)
    assert len(document.notes) == notes
