"""Scaling studies in the terminal and in reports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from synthetic import busy_machine, folder, interval, killed, measured
from synthetic_scaling import parts, scaling_results, scaling_study

from bench import api
from bench.cli import scale as command
from bench.model.interval import Interval
from bench.model.result import Summary
from bench.model.scaling import ScalingStudy, Size
from bench.model.spec import Workers
from bench.render import numbers, scaling_table
from bench.render.charts.speedup import ticks
from bench.render.report import html, markdown
from bench.render.report.compose import compose
from bench.render.report.document import Figure, Table
from bench.render.report.sections import scaling as sections
from bench.render.sentences.scaling import summary, title
from bench.render.terminal.scaling import text
from bench.store.selection import select

pytestmark = pytest.mark.once


def lines(study: ScalingStudy, width: int = 80) -> list[str]:
    return text(study, width).splitlines()


def sentences(study: ScalingStudy) -> str:
    return " ".join(summary(study))


def with_size(study: ScalingStudy, workers: int, **changes: object) -> ScalingStudy:
    """Return the study with one of its sizes changed."""
    sizes = [size.model_copy(update=changes) if size.workers == workers else size for size in study.sizes]
    return study.model_copy(update={"sizes": sizes})


def test_the_table_has_a_line_for_the_bare_worker_and_for_each_size() -> None:
    shown = lines(scaling_study())
    assert shown[0] == "cifar on cpu with 1, 2 and 4 workers, strong scaling"
    assert shown[1].split() == ["workers", "examples/s", "speed-up", "efficiency", "step"]
    assert [line.split()[0] for line in shown[2:6]] == ["bare", "1", "2", "4"]
    assert shown[4].startswith("2        2.13 k [2.09 k, 2.17 k]  1.67 [1.63, 1.70]  83%         60.0 ± 1.2 ms")
    assert "1.67 [1.63, 1.70]  83% [82, 85]  60.0 ± 1.2 ms" in text(scaling_study(), 100)


@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_line_is_longer_than_the_terminal_unless_a_column_is(width: int) -> None:
    assert max(map(len, lines(scaling_study(), width))) <= max(width, 76)


def test_a_narrow_terminal_shows_the_columns_below_each_other() -> None:
    heads = [line for line in lines(scaling_study(), 54) if line.startswith("workers")]
    assert [head.split() for head in heads] == [
        ["workers", "examples/s", "speed-up"],
        ["workers", "efficiency", "step"],
    ]


def test_the_parts_are_those_of_the_largest_size_or_of_each_if_the_terminal_is_wide() -> None:
    narrow, wide = text(scaling_study(), 80), text(scaling_study(), 160)
    assert "2 workers  " not in narrow
    assert re.search(r"\n +4 workers\n", narrow)
    assert re.search(r"\n +2 workers +4 workers\n", wide)
    assert re.search(r"waiting for the slowest worker \(worker 1\) +2\.000 ± 0\.040 ms \(3\.3%\) +3\.000", wide)


def test_a_part_that_may_take_no_time_has_an_upper_bound_and_no_share() -> None:
    assert re.search(r"overhead of the strategy +at most 1\.50 ms\n", text(scaling_study()))


def test_a_part_that_saves_time_is_negative() -> None:
    assert re.search(r"input +-1\.00 ± 0\.20 ms \(-2\.5%\)", text(scaling_study()))


def test_sizes_with_different_slowest_workers_share_no_label() -> None:
    study = with_size(scaling_study(), 2, slowest_worker=0)
    assert re.search(r"waiting for the slowest worker +2", text(study, 160))
    assert "waiting for the slowest worker (worker 1)" in text(study, 60)


def test_a_study_of_one_process_shows_parts_without_intervals() -> None:
    alone = [part.model_copy(update={"seconds": Interval(value=part.seconds.value)}) for part in parts(0.04, 4)]
    assert re.search(r"overhead of the strategy +500 µs \(1\.2%\)\n", text(with_size(scaling_study(), 4, parts=alone)))


def test_the_fastest_size_is_compared_with_one_worker_and_each_size_has_a_cost() -> None:
    assert (
        "Fastest training: 4 workers, 10 min 40 s from a cold start, compared with 27 min 20 s with 1 worker. "
        "A training costs 0.46 EUR with 1 worker, 0.53 EUR with 2 workers and 0.71 EUR with 4 workers. "
        "Cheapest training: 1 worker."
    ) in sentences(scaling_study())
    unpriced = sentences(scaling_study(currency=None))
    assert "with 1 worker. 4 workers are 2.50 times [2.45, 2.55] as fast as one worker without a strategy" in unpriced


def test_no_size_is_the_cheapest_if_that_is_not_settled() -> None:
    assert "Cheapest training" not in sentences(scaling_study(cheapest=None))


def test_a_study_in_which_one_worker_is_fastest_compares_it_with_nothing() -> None:
    assert "Fastest training: 1 worker, 27 min 20 s from a cold start. A training costs" in sentences(
        scaling_study(fastest=1)
    )


def test_no_size_under_the_strategy_is_called_fastest_if_the_bare_worker_is() -> None:
    study = scaling_study()
    for workers in (1, 2, 4):
        study = with_size(study, workers, speed_up=Interval(value=0.8, low=0.78, high=0.82))
    shown = sentences(study)
    assert (
        "Fastest steps: one worker without a strategy. Every number of workers under the strategy is slower." in shown
    )
    assert "Fastest training" not in shown


def test_an_unsettled_or_unknown_training_names_no_fastest_size() -> None:
    assert "The number of workers with the shortest training is not settled." in sentences(scaling_study(fastest=None))
    unknown = scaling_study(fastest=None, cheapest=None)
    for workers in (1, 2, 4):
        unknown = with_size(unknown, workers, training_seconds=None, cost=None)
    assert "training" not in sentences(unknown).partition("Steps from which")[0]


def test_the_break_even_names_the_steps_of_each_size_or_that_there_is_none() -> None:
    assert (
        "Steps from which a training is faster than with one worker without a strategy: 40 with 2 workers, 61 with 4 "
        "workers." in sentences(scaling_study())
    )
    slower = with_size(scaling_study(break_even_steps={"2": 1200}), 4, speed_up=interval(0.8))
    assert "1,200 with 2 workers." in sentences(slower)
    assert "No training is faster with 4 workers than with one worker without a strategy." in sentences(slower)


def test_the_bounds_are_in_plain_words_and_left_out_if_unknown() -> None:
    shown = sentences(scaling_study())
    assert (
        "At least 20% of one worker's step does not get faster with more workers. By Amdahl's law, no number of "
        "workers is more than 5 times as fast as one."
    ) in shown
    assert (
        "In the all-reduce, each of 4 workers sends 6.866 MiB per step, at 1.10 GB/s. With such an all-reduce, no "
        "number of workers is more than 12.5 times as fast as one."
    ) in shown
    without = sentences(scaling_study(serial_share=None, amdahl_bound=None, bandwidth_bound=None))
    assert "no number of workers" not in without


def test_a_study_that_is_slower_with_more_workers_has_no_serial_share() -> None:
    assert "Amdahl" not in sentences(scaling_study(serial_share=1.4, amdahl_bound=0.71))


def test_a_refused_size_and_a_failed_size_are_named_with_the_reason() -> None:
    study = with_size(scaling_study(), 2, refused="the losses of worker 1 differ from those of worker 0", speed_up=None)
    failed = Size(workers=8, id="9", failure="worker 2 never came within 5 min")
    study = study.model_copy(update={"sizes": [*study.sizes, failed]})
    shown = sentences(study)
    assert "The figures of 2 workers do not count: the losses of worker 1 differ from those of worker 0." in shown
    assert "8 workers failed: worker 2 never came within 5 min." in shown
    table = [line.split() for line in lines(study)[2:7]]
    assert table[2][-6] == "refused"
    assert table[2][-5:] == ["–", "60.0", "±", "1.2", "ms"]
    assert table[4] == ["8", "–", "–", "–", "failed"]
    (section, *_) = sections.sections(study)
    rows = next(part for part in section.content if isinstance(part, Table)).rows
    assert [(row.label, row.wrong) for row in rows if row.kind == "alarm"] == [("2", (1,)), ("8", (3,))]


def test_a_size_that_was_not_measured_is_not_called_failed() -> None:
    study = scaling_study()
    study = study.model_copy(update={"sizes": [*study.sizes[:2], Size(workers=4, id="204")]})
    assert lines(study)[5].split() == ["4", "–", "–", "–", "not", "measured"]
    assert "4 workers were not measured." in sentences(study)
    assert "failed" not in text(study)


def test_a_level_that_failed_is_named_and_makes_the_command_fail() -> None:
    study = scaling_study(failures=["2 workers, no all-reduce, step: worker 1 was killed by SIGKILL"])
    assert "A level that divides the step failed: 2 workers, no all-reduce, step: worker 1 was killed" in sentences(
        study
    )
    failure = command._failure(study)
    assert failure is not None
    assert "2 workers, no all-reduce, step: worker 1 was killed by SIGKILL" in failure.message
    assert command._failure(scaling_study()) is None


def test_only_workers_on_one_machine_are_said_to_share_its_memory() -> None:
    assert "They share the machine's memory and caches. The figures prove the mechanism" in sentences(scaling_study())
    assert "one machine" not in sentences(scaling_study(cpus=None))


def test_losses_that_were_not_compared_are_mentioned_unless_they_need_not_agree() -> None:
    sentence = "The losses of several workers were not compared with those of one. Check that the workers train as well"
    assert sentence not in sentences(scaling_study())
    unknown = with_size(scaling_study(), 4, losses_compared=False)
    assert sentence in sentences(unknown)
    assert sentence in " ".join(sections.sentences(unknown))
    assert "not compared" not in sentences(unknown.model_copy(update={"scaling": "weak"}))
    assert "not compared" not in sentences(with_size(scaling_study(), 1, losses_compared=False))


def test_the_scaling_and_the_noun_follow_the_strategy() -> None:
    weak = scaling_study(scaling="weak", strategy="mirrored", cpus=None)
    assert title(weak) == "cifar on cpu with 1, 2 and 4 replicas, weak scaling"
    assert "Weak scaling: each replica has its own batches of 128 examples." in sentences(weak)
    assert "worker" not in text(weak)
    assert "bare step   " in text(weak)


def test_a_study_warns_about_a_busy_machine_as_a_run_does() -> None:
    shown = " ".join(text(scaling_study(warnings=busy_machine())).split())
    assert "warning: the machine was busy: load 1.7 on 2 CPUs. Close what else runs." in shown


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.0, 2.0, [1, 1.5, 2]),
        (0.9, 8.0, [1, 1.5, 2, 3, 4, 6, 8]),
        (1.0, 64.0, [1, 2, 4, 8, 16, 32, 64]),
        (0.4, 1.0, [0.375, 0.5, 0.75, 1]),
    ],
)
def test_the_ticks_of_speed_ups_are_powers_of_two(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected


def test_one_size_has_no_chart() -> None:
    study = scaling_study()
    assert sections.figure(study.sizes[:1], "worker") == []
    (figure,) = sections.figure(study.sizes, "worker")
    assert figure.alt == (
        "Speed-up: 1 worker 0.96 times as fast; 2 workers 1.67 times as fast; 4 workers 2.5 times as fast."
    )


def test_the_report_shows_the_curve_the_sizes_and_the_parts() -> None:
    scaling, step = sections.sections(scaling_study())
    assert [type(part).__name__ for part in scaling.content] == ["Figure", "Table"]
    assert [type(part).__name__ for part in step.content] == ["Figure", "Table"]
    (waterfall,) = (part for part in step.content if isinstance(part, Figure))
    assert "waiting for worker 1 7.5%; slower computation 15%" in waterfall.alt
    assert "overhead of the strategy at most 1.50 ms" in waterfall.alt
    assert waterfall.draw().count("<path") > 3


def test_a_study_is_one_chapter_of_the_report_in_html_and_markdown(tmp_path: Path) -> None:
    results = scaling_results()
    files = folder(tmp_path, *results, measured("1", [0.1], workload="mnist"))
    chapters = select(files).chapters
    assert [(chapter.scaling, len(chapter.members)) for chapter in chapters] == [(True, len(results)), (False, 1)]
    page = html.render(compose(*api.report(files, 0.02)), "1.2.3")
    assert "cifar on cpu with 1, 2 and 4 workers, strong scaling" in page
    assert len(re.findall(r'aria-label="(Speed-up[^"]*)"', page)) == 1
    assert re.search(r"4 workers are 2\.50 times", page)
    specs = page.partition("Specs</")[2].partition("</table>")[0]
    assert ">batch<" in specs
    assert ">workers<" not in specs
    short = markdown.render(compose(*api.report(files, 0.02)), "1.2.3")
    assert "| bare |" in short
    assert "| 4 |" in short


def test_a_newer_study_of_the_same_sizes_replaces_an_older_one(tmp_path: Path) -> None:
    old, new, other = scaling_results("old", 100), scaling_results("new", 200), scaling_results("eight", 50, {8: 0.02})
    chapters = select(folder(tmp_path, *old, *new, *other)).chapters
    assert sorted(chapter.members[0].parent or "" for chapter in chapters) == ["eight", "new"]
    (newest,) = (chapter for chapter in chapters if chapter.members[0].parent == "new")
    assert newest.runs == 2


def test_a_run_with_workers_that_belongs_to_no_study_is_an_ordinary_result(tmp_path: Path) -> None:
    alone = measured("1", [0.1], workers=Workers(count=2, strategy="multi-worker"))
    (chapter,) = select(folder(tmp_path, alone)).chapters
    assert not chapter.scaling
    (composed,) = compose(*api.report(tmp_path, 0.02)).chapters
    assert composed.title == "cifar on cpu, as-written"


def test_levels_of_a_study_without_a_size_are_ordinary_results(tmp_path: Path) -> None:
    levels = [result for result in scaling_results() if result.purpose == "scale"]
    (chapter,) = compose(*api.report(folder(tmp_path, *levels), 0.02)).chapters
    assert chapter.title.startswith("cifar on cpu, step: ")


def test_a_study_that_failed_shows_what_to_do_about_it(tmp_path: Path) -> None:
    results = scaling_results()
    for result in results:
        if result.spec.workers and result.spec.workers.count == 4:
            result.status, result.failure, result.summary, result.samples = "failed", killed(), Summary(), []
    page = html.render(compose(*api.report(folder(tmp_path, *results), 0.02)), "1.2.3")
    assert "Give it more memory, or try a smaller batch." in page
    assert "4 workers failed: the worker was killed by SIGKILL" in page


def test_every_part_of_a_step_has_a_name_and_an_explanation() -> None:
    study = scaling_study()
    sizes = scaling_table.divided(study)
    names = scaling_table.parts(sizes)
    labels = [scaling_table.part_label(study, name, sizes) for name in names]
    assert len(set(labels)) == len(labels) == len(scaling_table.WHAT) == 6
    assert numbers.percent(sum(part.share for part in sizes[-1].parts)) == "100%"
