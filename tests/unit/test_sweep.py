"""Sweeps: ranges, the choice of points, curves and crossings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from synthetic import busy_machine, result
from test_analyse_compare import sample

from bench.analyse.summary import summarize
from bench.analyse.sweep import sweep_of
from bench.config.settings import load
from bench.config.syntax import sweep_values
from bench.errors import DataError, DevbenchError, DeviceAbsent, SettingsError
from bench.model.failure import Failure
from bench.model.interval import Interval
from bench.model.result import Result, SweepMembership
from bench.model.spec import Env
from bench.model.sweep import Sweep
from bench.publish.recorder import Recorder
from bench.render.sentences.sweep import summary
from bench.render.sweep_table import columns
from bench.render.terminal.sweep import text
from bench.store import files
from bench.study import sweep as measuring
from bench.study.sweep import SweepStudy, axes_of

NOISE = (1.0, 1.01, 0.99)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("64", None),
        ("1..8", ["1", "2", "4", "8"]),
        ("1..10", ["1", "2", "4", "8", "10"]),
        ("1..64*8", ["1", "8", "64"]),
        ("0..10+5", ["0", "5", "10"]),
        ("0..1+0.25", ["0", "0.25", "0.5", "0.75", "1"]),
        ("16, 64,256", ["16", "64", "256"]),
        ("0.001..0.1*10", ["0.001", "0.01", "0.1"]),
        ("model,serial", ["model", "serial"]),
        ("../a,../b", ["../a", "../b"]),
    ],
)
def test_a_range_doubles_by_default_and_includes_its_end(text: str, values: list[str] | None) -> None:
    assert sweep_values(text) == values


@pytest.mark.parametrize(
    "text", ["../data", "..", "data/../other", "[4,8]", "(4, 8)", "[[1,2],[3]]", '{"a": 1, "b": 2}', '"a,b"', "'1..4'"]
)
def test_a_value_with_commas_and_dots_of_its_own_is_not_a_range(text: str) -> None:
    assert axes_of({"batch": "1,2", "value": text}) == {"batch": ["1", "2"]}


@pytest.mark.parametrize("text", ["8..1", "0..8", "1..8*1", "1..8+0", "a..b", "1..", "1..100000+1", "1..2..3"])
def test_an_invalid_range_is_refused_with_the_syntax(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        axes_of({"batch": text})
    assert text in caught.value.message
    assert "1..4096" in caught.value.hint


def test_a_sweep_without_axes_or_with_too_many_points_is_refused() -> None:
    with pytest.raises(SettingsError, match="no parameter to sweep"):
        axes_of({"batch": "64"})
    with pytest.raises(SettingsError, match="the sweep has 100 points"):
        axes_of({"batch": "1..10+1", "epochs": "1..10+1"})


@pytest.mark.parametrize(("option", "value"), [("full", True), ("profile", Path("trace")), ("vary", {"seed": "1,2"})])
def test_a_sweep_refuses_options_that_apply_only_to_single_points(option: str, value: Any) -> None:
    settings = load(param={"batch": "1..64"}, **{option: value})
    with pytest.raises(SettingsError, match=f"^sweep does not take --{option}$") as caught:
        SweepStudy("cifar", settings, Recorder(settings), point_time=10)
    assert caught.value.hint


def point_of(batch: int, step: float, backend: str, noise: Sequence[float] = NOISE, **changes: Any) -> Result:
    point = result(
        f"{backend}{batch}",
        f"group{batch}",
        params={"batch": batch},
        backend=backend,
        samples=[sample(n, step * factor) for n, factor in enumerate(noise, 1)],
        purpose="sweep",
        parent="s",
        sweep=SweepMembership(axes=["batch"]),
        **changes,
    )
    point.summary.examples_per_second = batch / step
    return point


def two_lines(crossing: float, noise: Sequence[float] = NOISE) -> list[Result]:
    """Return a sweep of two curves that meet at `crossing`. From there the GPU is faster."""
    points = []
    for batch in (1, 2, 4, 8, 16, 32, 64):
        points.append(point_of(batch, 0.001 * batch, "cpu", [1.0] * len(noise)))
        points.append(point_of(batch, 0.001 * math.sqrt(batch * crossing), "cuda", noise))
    return points


def test_each_environment_has_a_curve_of_its_own() -> None:
    old, new = (Env(name=name, python=name, version="3.12", sha256=name) for name in ("old", "new"))
    points = [point_of(n, step * n, "cpu", env=env) for n in (1, 2, 4) for env, step in ((old, 0.002), (new, 0.001))]
    first, second = sweep_of(points, 0.02).curves
    assert [first.label, second.label] == ["cpu, old, as-written", "cpu, new, as-written"]
    assert [len(curve.points) for curve in (first, second)] == [3, 3]
    assert second.base == first.label
    assert [ratio.verdict for ratio in second.ratios] == ["faster"] * 3


@pytest.mark.parametrize("crossing", [3.0, 11.0, 40.0])
def test_the_interval_of_a_crossing_contains_the_point_where_the_lines_meet(crossing: float) -> None:
    (estimate,) = sweep_of(two_lines(crossing), 0.02).curves[1].crossings
    assert estimate.value == pytest.approx(crossing, rel=0.02)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low < crossing < estimate.high
    assert estimate.leader == "cuda, as-written"


def test_noisier_ratios_widen_the_interval_of_a_crossing() -> None:
    quiet, noisy = (
        sweep_of(two_lines(11.0, noise), 0.02).curves[1].crossings[0] for noise in ((1, 1.002, 0.998), (1, 1.1, 0.9))
    )
    assert (quiet.low or 0) > (noisy.low or 0)
    assert (quiet.high or math.inf) < (noisy.high or math.inf)


def test_a_crossing_near_the_end_of_the_axis_has_no_bound_there() -> None:
    (estimate,) = sweep_of(two_lines(60.0, (1, 1.1, 0.9)), 0.02).curves[1].crossings
    assert estimate.high is None
    assert estimate.low is not None


def rated(batch: int, rates: Sequence[float], **changes: Any) -> Result:
    """Return a point with one process for each rate in examples per second."""
    point = point_of(batch, batch / rates[0], "cpu", [rates[0] / rate for rate in rates], **changes)
    summarize(point, None, batch)
    return point


def test_one_process_for_each_point_does_not_settle_where_throughput_is_highest() -> None:
    sweep = sweep_of([rated(8, [524]), rated(16, [514]), rated(32, [462])], 0.02)
    assert list(summary(sweep)) == [
        "Highest throughput of cpu, as-written: not settled between batch 8 (524 examples/s); batch 16 (514 "
        "examples/s); batch 32 (462 examples/s), because some were measured in one process only. Increase --point-time."
    ]


def test_overlapping_intervals_do_not_settle_where_throughput_is_highest() -> None:
    sweep = sweep_of([rated(8, [500, 520, 510]), rated(16, [505, 525, 512]), rated(32, [300, 302, 301])], 0.02)
    assert sweep.curves[0].best == [{"batch": 16}, {"batch": 8}]
    (sentence,) = summary(sweep)
    assert "because their intervals overlap" in sentence


def test_the_highest_throughput_has_an_interval() -> None:
    sweep = sweep_of([rated(8, [500, 520, 510]), rated(32, [780, 785, 783])], 0.02)
    assert sweep.curves[0].best == [{"batch": 32}]
    assert list(summary(sweep)) == ["Highest throughput of cpu, as-written: 783 examples/s [776, 789] at batch 32."]


def test_a_sweep_warns_about_a_busy_machine_as_a_run_does() -> None:
    busy = [rated(8, [500, 510], warnings=busy_machine()), rated(16, [600, 610], warnings=busy_machine())]
    shown = " ".join(text(sweep_of(busy, 0.02)).split())
    assert "warning: the machine was busy: load 1.7 on 2 CPUs (2 of 2 results). Close what else runs." in shown


def test_curves_whose_steps_hold_different_numbers_of_examples_are_compared_per_example() -> None:
    sides = {"cpu": 1.0, "cuda": 1.5}
    points = [point_of(batch, seconds, backend) for batch in (16, 32) for backend, seconds in sides.items()]
    for point in points:
        examples = 64 if point.spec.backend == "cuda" else 32
        point.summary.step_seconds = Interval(value=1.0)
        point.summary.examples_per_second = examples
    sweep = sweep_of(points, 0.02)
    assert [ratio.ratio.value for ratio in sweep.curves[1].ratios] == pytest.approx([0.75, 0.75])
    assert columns(sweep)[2].head == "vs. cpu, as-written per example"


def test_curves_that_do_not_meet_have_a_leader() -> None:
    sweep = sweep_of(two_lines(200.0), 0.02)
    assert sweep.curves[1].crossings == []
    sentences = " ".join(summary(sweep))
    assert (
        "cpu, as-written is faster than cuda, as-written from batch 1 to 64. Neither overtakes the other." in sentences
    )


def sweep_along(axis: str, times: Mapping[Any, tuple[float, float]], noise: Sequence[float] = NOISE) -> Sweep:
    """Return a sweep. `times` has the seconds per step of each value, on the CPU and on the GPU. The GPU has noise."""
    points = []
    for value, steps in times.items():
        for backend, step, levels in (("cpu", steps[0], [1.0] * len(noise)), ("cuda", steps[1], noise)):
            point = point_of(1, step, backend, levels)
            point.sweep = SweepMembership(axes=[axis])
            point.spec.params[axis] = value
            point.group = f"group{value}"
            points.append(point)
    return sweep_of(points, 0.02)


def test_a_crossing_next_to_0_is_interpolated_linearly() -> None:
    sweep = sweep_along("workers", {0: (0.02, 0.01), 4: (0.01, 0.02), 8: (0.01, 0.02)})
    (estimate,) = sweep.curves[1].crossings
    assert estimate.value == pytest.approx(2.0, rel=0.01)
    assert estimate.leader == "cpu, as-written"
    assert estimate.low is not None
    assert estimate.high is not None
    assert 0 < estimate.low < estimate.value < estimate.high < 4
    sentences = " ".join(summary(sweep))
    assert "cpu, as-written overtakes cuda, as-written at workers 2" in sentences
    assert "Neither overtakes" not in sentences


def test_a_boolean_axis_has_no_crossings() -> None:
    sweep = sweep_along("shuffle", {False: (0.02, 0.01), True: (0.01, 0.02)})
    assert sweep.curves[1].crossings == []
    assert list(summary(sweep)) == [
        "cuda, as-written is slower than cpu, as-written at shuffle True, faster at shuffle False.",
        "Highest throughput of cpu, as-written: 100 examples/s [98.0, 102] at shuffle True.",
        "Highest throughput of cuda, as-written: 100 examples/s [98.0, 102] at shuffle False.",
    ]


def test_a_curve_that_is_slower_at_one_point_does_not_lead_throughout() -> None:
    sweep = sweep_along("batch", {1: (0.02, 0.01), 4: (0.01, 0.02)})
    sweep.curves[1].crossings = []
    assert list(summary(sweep)) == [
        "cuda, as-written is slower than cpu, as-written at batch 4, faster at batch 1.",
        "Highest throughput of cpu, as-written: 100 examples/s [98.0, 102] at batch 4.",
        "Highest throughput of cuda, as-written: 100 examples/s [98.0, 102] at batch 1.",
    ]


def test_the_sentence_about_an_axis_of_words_names_the_values_of_each_verdict() -> None:
    quiet, noisy = (1.0, 1.001, 0.999), (1.0, 1.3, 0.7)
    times = {"model": (0.01, 0.01001), "serial": (0.01, 0.009967)}
    (sentence,) = [text for text in summary(sweep_along("place", times, quiet)) if "throughput" not in text]
    assert sentence == "cuda, as-written is as fast as cpu, as-written at place model and serial."
    (sentence,) = [text for text in summary(sweep_along("place", times, noisy)) if "throughput" not in text]
    assert sentence == "cuda, as-written is undecided against cpu, as-written at place model and serial."
    mixed = list(summary(sweep_along("place", {**times, "parallel": (0.01, 0.02)}, quiet)))
    assert mixed[0] == (
        "cuda, as-written is slower than cpu, as-written at place parallel, as fast at place model and serial."
    )


def test_a_verdict_at_one_value_is_not_one_of_all_values() -> None:
    sweep = sweep_along("batch", {1: (0.01, 0.02), 4: (0.01, 0.01), 8: (0.01, 0.01)}, (1.0, 1.001, 0.999))
    assert next(summary(sweep)) == (
        "cuda, as-written is slower than cpu, as-written at batch 1, as fast at batch 4 and 8."
    )


@pytest.mark.parametrize(
    ("noise", "sentence"),
    [
        ([1.0], "Too few trials for a verdict on cuda, as-written against cpu, as-written from batch 1 to 4."),
        ([1.0, 1.3, 0.7], "It is undecided whether cuda, as-written or cpu, as-written is faster from batch 1 to 4."),
    ],
)
def test_no_verdict_is_not_told_as_no_difference(noise: list[float], sentence: str) -> None:
    sweep = sweep_along("batch", {1: (0.01, 0.015), 4: (0.01, 0.01)}, noise)
    assert next(summary(sweep)) == sentence


def test_a_curve_with_one_point_has_no_highest_throughput() -> None:
    sweep = sweep_along("batch", {1: (0.01, 0.02)}, (1.0, 1.001, 0.999))
    assert list(summary(sweep)) == ["cpu, as-written is faster than cuda, as-written at batch 1."]


def test_an_axis_of_numbers_and_null_is_shown_with_its_numbers_first() -> None:
    sweep = sweep_along("limit", {None: (0.01, 0.02), 8: (0.01, 0.02), "all": (0.01, 0.02)})
    assert sweep.axes == {"limit": [8, None, "all"]}
    assert [line.split("  ")[0] for line in text(sweep).splitlines()[2:5]] == ["limit 8", "limit None", "limit all"]


def test_running_out_of_memory_is_shown_in_the_table_and_in_a_sentence() -> None:
    points = two_lines(11.0)
    points[-1].failure = Failure(kind="memory", message="OOM when allocating tensor")
    points[-1].sweep = SweepMembership(axes=["batch"], incomplete_reason="memory ended at batch=64 (cuda)")
    output = text(sweep_of(points, 0.02))
    assert "Some points were not measured: memory ended at batch=64 (cuda)" in " ".join(output.split())
    assert "out of memory" in next(line for line in output.splitlines() if line.startswith("batch 64"))
    assert "cuda, as-written ran out of memory at batch 64: OOM" in " ".join(output.split())
    assert max(map(len, output.splitlines())) <= 80


def test_the_failure_of_a_point_is_one_line_of_the_sentence_about_it() -> None:
    points = two_lines(11.0)
    points[-1].failure = Failure(
        kind="error", message="in user code:\n\n    train.py, line 3\n\n    ValueError: bad shape"
    )
    (failed,) = [point for curve in sweep_of(points, 0.02).curves for point in curve.points if point.failure]
    assert failed.failure == "ValueError: bad shape"


def test_a_grid_has_a_line_per_pair_of_values() -> None:
    points = [point_of(batch, 0.001 * batch, "cpu") for batch in (1, 2)]
    for point in points:
        point.spec.params["epochs"] = 3
        point.sweep = SweepMembership(axes=["batch", "epochs"])
    output = text(sweep_of(points, 0.02))
    assert [line[:17] for line in output.splitlines() if line.startswith("batch")] == [
        "batch 1, epochs 3",
        "batch 2, epochs 3",
    ]


class Fake:
    """A session that computes its step times instead of measuring."""

    measured: list[int]

    @staticmethod
    def steps(batch: int) -> tuple[float, float]:
        """Return the seconds of a step on the CPU and on the GPU."""
        return 0.001 * batch, 0.001 * math.sqrt(batch * 11)

    @staticmethod
    def failure(batch: int) -> Failure | None:
        """Return the failure of the GPU at this batch. None if it does not fail."""
        return Failure(kind="memory", message="OOM") if batch > 100 else None

    def __init__(self, group: Any, settings: Any, *_: Any, **__: Any) -> None:
        batch = int(settings.param["batch"])
        Fake.measured.append(batch)
        assert len(Fake.measured) < 100, "it does not end"
        cpu, cuda = (point_of(batch, step, name) for step, name in zip(Fake.steps(batch), ("cpu", "cuda"), strict=True))
        cuda.failure = Fake.failure(batch)
        self.results = [cpu, cuda]
        for point in self.results:
            point.spec.params["epochs"] = int(settings.param.get("epochs", "1"))

    def run(self) -> None:
        """Do nothing. The results exist already."""


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Fake]:
    monkeypatch.chdir(tmp_path)
    Fake.measured = []
    monkeypatch.setattr(measuring, "Session", Fake)
    monkeypatch.setattr(measuring, "plan", lambda *_, swept: [None])
    return Fake


def study_of(text: str) -> SweepStudy:
    settings = load(param={"batch": text}, backend="cpu", max_time="1h")
    return SweepStudy("cifar", settings, Recorder(settings), point_time=10)


def test_further_points_close_in_on_the_crossing(faked: type[Fake]) -> None:
    sweep = study_of("1..64*8").run()
    assert faked.measured[:3] == [1, 8, 64]
    assert set(faked.measured[3:]) <= set(range(9, 64))
    assert {10, 11, 12} & set(faked.measured[3:])
    assert sweep.curves[1].crossings[0].value == pytest.approx(11, rel=0.02)
    assert len(faked.measured) == len(set(faked.measured)) <= 9


def test_all_points_of_the_range_share_a_time_limit_that_is_too_short(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = []

    class Timed(Fake):
        def __init__(self, group: Any, settings: Any, *rest: Any, **options: Any) -> None:
            super().__init__(group, settings, *rest, **options)
            limits.append(settings.max_time)

    monkeypatch.setattr(measuring, "Session", Timed)
    settings = load(param={"batch": "1..8"}, backend="cpu", max_time="20s")
    SweepStudy("cifar", settings, Recorder(settings), point_time=10).run()
    assert faked.measured == [1, 2, 4, 8]
    assert limits == pytest.approx([5, 20 / 3, 10, 10], rel=0.05)


def failing(kind: Any, *values: int) -> Any:
    """Return a function that fails at these batches only."""
    return staticmethod(lambda batch: Failure(kind=kind, message="it broke") if batch in values else None)


def test_another_point_is_measured_if_one_between_two_others_fails(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faked, "failure", failing("error", 23))
    sweep = study_of("1..64*8").run()
    assert faked.measured[:4] == [1, 8, 64, 23]
    assert len(faked.measured) == len(set(faked.measured)) <= 10
    assert {10, 11, 12} & set(faked.measured)
    assert sweep.curves[1].crossings[0].value == pytest.approx(11, rel=0.02)


def test_another_value_is_tried_if_the_program_refuses_one_between_two_others(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_two_values(names: Any, settings: Any, swept: Any) -> Any:
        if settings.param["batch"] in {"23", "14"}:
            raise SettingsError("batch must be a multiple of 4", "Take another.")
        return [None]

    monkeypatch.setattr(measuring, "plan", refuse_two_values)
    sweep = study_of("1..64*8").run()
    assert faked.measured[:3] == [1, 8, 64]
    assert {10, 11, 12} & set(faked.measured)
    assert sweep.curves[1].crossings[0].value == pytest.approx(11, rel=0.02)
    assert sweep.incomplete_reason == "batch=23 was refused: batch must be a multiple of 4"


@pytest.mark.parametrize("error", [DataError("cifar10 is gone"), DeviceAbsent("no CUDA device")])
def test_a_point_that_can_no_longer_be_planned_ends_the_sweep_with_its_earlier_points(
    error: DevbenchError, faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent_from_the_second_point_on(workloads: Any, settings: Any, *, swept: Any) -> list[Any]:
        if faked.measured:
            raise error
        return [None]

    monkeypatch.setattr(measuring, "plan", absent_from_the_second_point_on)
    sweep = study_of("1..64*8").run()
    assert len(sweep.curves[0].points) == 1
    assert sweep.incomplete_reason is not None
    assert error.message in sweep.incomplete_reason


def test_the_search_ends_if_point_after_point_fails(faked: type[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faked, "failure", failing("error", *range(9, 64)))
    sweep = study_of("1..64*8").run()
    assert len(faked.measured) == len(set(faked.measured)) == 3 + measuring.MOST_FAILED
    assert sweep.curves[1].crossings[0].value == pytest.approx(11, rel=0.02)


def test_no_further_point_is_larger_than_one_that_ran_out_of_memory(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faked, "failure", failing("memory", 23))
    study_of("1..64*8").run()
    assert faked.measured[:4] == [1, 8, 64, 23]
    assert max(faked.measured[4:]) < 23
    assert len(faked.measured) == len(set(faked.measured))


def test_the_search_next_to_0_ends_at_a_tenth_of_the_axis(faked: type[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faked, "steps", staticmethod(lambda batch: (0.001 * (1 + batch), 0.0035)))
    sweep = study_of("0..96+96").run()
    assert faked.measured == [0, 96, 48, 24, 12, 6]
    assert 0 < sweep.curves[1].crossings[0].value < 6


def test_points_larger_than_memory_are_not_tried(faked: type[Fake]) -> None:
    sweep = study_of("1..4096").run()
    assert max(faked.measured) == 128
    assert sweep.incomplete_reason == "out of memory at batch=128 (cuda)"


def test_points_of_a_grid_are_skipped_only_if_larger_in_every_axis(faked: type[Fake]) -> None:
    sweep = study_of("50,100,200,400")
    sweep.axes["epochs"] = ["1", "2"]
    assert sweep.run().incomplete_reason == "out of memory at batch=200, epochs=1 (cuda)"
    assert faked.measured == [50, 50, 100, 100, 200]


def test_only_the_last_point_says_why_a_sweep_is_incomplete(faked: type[Fake]) -> None:
    sweep = study_of("64..256")
    sweep.run()
    saved = files.results(Path("results"))
    assert {point.sweep.incomplete_reason for point in saved if point.sweep} == {"out of memory at batch=128 (cuda)"}
    assert {point.spec.params["batch"] for point in saved} == {128}
    sweep.cut_short("it was interrupted")
    assert sweep.read().incomplete_reason == "out of memory at batch=128 (cuda)"


def test_the_crossing_is_searched_even_if_memory_runs_out(faked: type[Fake]) -> None:
    sweep = study_of("1..4096").run()
    assert max(faked.measured) == 128
    assert set(faked.measured) & {9, 10, 11, 12, 13}
    assert sweep.incomplete_reason == "out of memory at batch=128 (cuda)"


def test_values_are_measured_in_ascending_order() -> None:
    assert axes_of({"batch": "256,64,16"}) == {"batch": ["16", "64", "256"]}


@pytest.mark.parametrize(("ratio", "words"), [(1.0, "are equally fast"), (1.003, "are equally fast")])
def test_curves_within_noise_do_not_cross(ratio: float, words: str) -> None:
    points = []
    for turn, batch in enumerate((1, 2, 4, 8, 16)):
        points.append(point_of(batch, 0.01 * batch, "cpu", [1.0] * 3))
        tilt = 1 + 0.004 * (-1) ** turn
        points.append(point_of(batch, 0.01 * batch * ratio * tilt, "cuda", [1.0, 1.001, 0.999]))
    sweep = sweep_of(points, 0.02)
    assert sweep.curves[1].crossings == []
    assert f"cuda, as-written and cpu, as-written {words} from batch 1 to 16" in " ".join(summary(sweep))


def test_a_sweep_that_runs_out_of_time_shows_what_it_measured(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 100000, 1000))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    sweep = study_of("1..4096").run()
    assert 1 <= len(faked.measured) < 6
    assert sweep.incomplete_reason is not None
    assert "--max-time" in sweep.incomplete_reason


def test_a_sweep_that_runs_out_of_time_after_its_last_point_is_complete(
    faked: type[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = study_of("1,2")
    monkeypatch.setattr("time.monotonic", lambda: sweep._start + 4000 * (len(faked.measured) == 2))
    assert sweep.run().incomplete_reason is None
    assert faked.measured == [1, 2]


def test_an_axis_of_words_has_ratios_and_no_crossings() -> None:
    sweep = sweep_of(
        [
            result(f"{loop}{place}", loop=loop, params={"place": place}, group=place, purpose="sweep", parent="s",
                   samples=[sample(n, step * noise) for n, noise in enumerate(NOISE, 1)])
            for place, first, other in (("model", 0.01, 0.02), ("serial", 0.03, 0.02))
            for loop, step in (("fit", first), ("step", other))
        ],
        0.02,
    )  # fmt: skip
    assert [round(r.ratio.value, 1) for r in sweep.curves[1].ratios] == [2.0, 0.7]
    assert sweep.curves[1].crossings == []
    sentences = list(summary(sweep))
    assert "cpu, step is slower than cpu, fit at place model, faster at place serial." in sentences


def test_an_axis_may_hold_numbers_words_and_null() -> None:
    sweep = sweep_of(
        [
            result(f"{loop}{limit}", loop=loop, params={"limit": limit}, group=str(limit), purpose="sweep", parent="s",
                   samples=[sample(n, step * noise) for n, noise in enumerate(NOISE, 1)])
            for limit in (None, 16, 8.5, "auto")
            for loop, step in (("fit", 0.01), ("step", 0.02))
        ],
        0.02,
    )  # fmt: skip
    assert sweep.axes == {"limit": [8.5, 16, None, "auto"]}
    labels = [line[:12].strip() for line in text(sweep).splitlines()[2:6]]
    assert labels == ["limit 8.5", "limit 16", "limit None", "limit auto"]


def test_each_case_is_a_curve() -> None:
    points = [
        result(f"{case}{backend}{batch}", case=case, params={"batch": batch, "width": case}, group=f"{batch}",
               purpose="sweep", backend=backend, sweep=SweepMembership(axes=["batch"]),
               samples=[sample(n, 0.01 * noise) for n, noise in enumerate(NOISE, 1)])
        for batch in (8, 16)
        for backend in ("cpu", "cuda")
        for case in ("small", "large")
    ]  # fmt: skip
    sweep = sweep_of(points, 0.02)
    assert [(curve.label, curve.base) for curve in sweep.curves] == [
        ("small, cpu, as-written", None),
        ("large, cpu, as-written", "small, cpu, as-written"),
        ("small, cuda, as-written", "small, cpu, as-written"),
        ("large, cuda, as-written", "large, cpu, as-written"),
    ]
    assert {len(curve.points) for curve in sweep.curves} == {2}
    assert "large, cuda, as-written and large, cpu, as-written are equally fast" in " ".join(summary(sweep))


def test_a_point_that_was_not_measured_is_not_called_failed() -> None:
    points = two_lines(11.0)
    points[-1].samples = []
    points[-1].summary.step_seconds = None
    output = text(sweep_of(points, 0.02))
    assert "not measured" in next(line for line in output.splitlines() if line.startswith("batch 64"))
    assert "failed" not in output
