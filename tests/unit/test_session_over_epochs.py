"""Runs that stop because one side is clearly faster over whole epochs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from synthetic import result
from test_analyse_epoch_ratio import pair, side, write_checkpoints

from bench.analyse.compare import compare
from bench.analyse.outcome import Outcome
from bench.config.settings import RunSettings, load
from bench.model.plan import Group
from bench.model.result import Result, Stop
from bench.render.fields.run import FIELDS
from bench.render.terminal.table import text as table_text
from bench.session import stopping
from bench.session.design import PILOT, Design, with_first
from bench.session.stop_decision import StopDecision
from bench.study.run import run, run_design

pytestmark = pytest.mark.once

SETTINGS: RunSettings = load(max_time="5m")


def accuracy(results: Sequence[Result], over_epochs: bool = True) -> stopping.Accuracy:
    current = stopping.accuracy(results, 0.02, with_first, over_epochs=over_epochs)
    assert current is not None
    return current


def reason(results: Sequence[Result], over_epochs: bool = True) -> str | None:
    trials = len(results[0].samples)
    return stopping.reason(accuracy(results, over_epochs), trials, 15.0 * trials, 15.0, SETTINGS, PILOT)


def test_a_run_whose_steps_are_alike_stops_after_two_trials_if_one_side_is_clearly_faster_over_whole_epochs() -> None:
    results = pair(0.01, 1.0)  # a step takes 11 and 110 ms over whole epochs
    assert reason(results) == "target"
    current = accuracy(results)
    assert (current.settled, current.clear, current.by_epochs) == (True, True, True)
    assert reason(results, over_epochs=False) is None


def test_a_run_continues_if_its_trainings_do_not_differ_clearly_over_whole_epochs() -> None:
    for first, other in ((0.05, 0.05), (0.05, 0.08), (0.0001, 0.001)):
        results = pair(first, other)
        assert reason(results) is None
        assert not accuracy(results).by_epochs


@pytest.mark.parametrize(("other", "trials"), [(1.0, 2), (0.04, 3)])
def test_the_nearer_two_trainings_are_the_more_trials_they_need(other: float, trials: int) -> None:
    clear = [accuracy(pair(0.01, other, n)).clear for n in (1, 2, 3)]
    assert clear.index(True) + 1 == trials


def test_one_trial_alone_gives_no_verdict_over_whole_epochs_because_a_callback_may_act_on_one_side_only() -> None:
    results = side([0.1], 0), side([5.0], 1)  # equal programs, one of which saves its model at this end
    current = accuracy(results)
    assert (current.settled, current.clear, current.by_epochs) == (False, False, False)
    comparison = compare(*results)
    assert comparison.epoch_ratio is not None
    assert (comparison.epoch_ratio.low, comparison.epoch_verdict) == (None, "not enough data")


@pytest.mark.parametrize(("over_epochs", "separate"), [(True, 2), (False, 1)])
def test_a_slow_run_that_may_stop_by_whole_epochs_times_the_ends_of_epochs_in_two_trials(
    over_epochs: bool, separate: int
) -> None:
    progress: Any = None
    design = Design(separate_starts=3, over_epochs=over_epochs)
    decision = StopDecision(pair(0.01, 1.0), SETTINGS, design, progress)
    assert decision.separate_starts(0.0) == 3  # before the first trial has ended
    assert decision.separate_starts(100.0) == separate


def test_rare_slow_steps_that_only_one_side_has_seen_do_not_stop_a_run() -> None:
    base, other = pair(0.01, 0.01)
    write_checkpoints(other, 0.1)
    current = accuracy([base, other])
    assert (current.settled, current.by_epochs) == (False, False)


def test_a_verdict_that_the_steps_settle_does_not_count_as_settled_by_epochs() -> None:
    base, other = pair(0.01, 1.0)
    for block in (block for sample in other.samples for block in sample.series[0].blocks):
        block.seconds *= 3
    current = accuracy([base, other])
    assert (current.clear, current.by_epochs) == (True, False)


def test_each_comparison_of_a_run_must_be_settled_by_its_steps_or_by_its_epochs() -> None:
    results = pair(0.01, 1.0)
    assert reason([*results, side([0.01, 0.01], 1, group="g", params={"validate": None})]) is None


@pytest.mark.parametrize(
    ("end", "most"),
    [
        (lambda rng: 0.1 * rng.lognormvariate(0, 0.3), 0.01),
        (lambda rng: rng.choice((0.1, 5.0)), 0.15),  # a callback that acts at every other end, of which one is timed
    ],
)
def test_ends_of_epochs_that_vary_stop_few_runs_of_equal_trainings(
    end: Callable[[random.Random], float], most: float
) -> None:
    rng, stopped = random.Random(5), 0
    for _ in range(300):
        ends = [[end(rng) for _ in range(3)] for _ in range(2)]
        results = [side(seconds, turn) for turn, seconds in enumerate(ends)]
        for n in (1, 2, 3):
            taken = [each.model_copy(update={"samples": each.samples[:n]}) for each in results]
            if accuracy(taken).by_epochs:
                stopped += 1
                break
    assert stopped <= most * 300


def test_a_result_says_that_its_verdict_is_settled_over_whole_epochs() -> None:
    field = next(field for field in FIELDS if field.key == "stop")
    stop = Stop(reason="target", trials=2, settled=True, error=0.08, target=0.02, error_of="ratio", by_epochs=True)
    text = field.cells(result(stop=stop))["processes"].text
    assert text == "2: verdicts settled, at least one only over whole epochs, ratio of steps known to ±8.0%"


def test_the_output_says_how_to_settle_the_steps_of_a_run_that_stopped_by_whole_epochs() -> None:
    def shown(**changes: Any) -> str:
        results = pair(0.01, 1.0)
        for each in results:
            each.stop = Stop(**{"reason": "target", "trials": 2, "settled": True, "by_epochs": True, **changes})
        return " ".join(table_text(Outcome.of_group(results)).split())

    hint = "To settle its steps too, add --threshold 2%."
    assert hint in shown()
    assert hint not in shown(by_epochs=False)
    assert hint not in shown(reason="max-time")


def test_only_a_run_stops_by_whole_epochs_because_gates_and_bisections_judge_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    designs: list[Design] = []

    def session(group: Group, settings: RunSettings, design: Design, *_: Any, **__: Any) -> SimpleNamespace:
        designs.append(design)
        return SimpleNamespace(results=[], run=lambda: None)

    monkeypatch.setattr("bench.study.run.Session", session)
    for over_epochs in (True, False):
        run(["mnist"], load(output=tmp_path, loop="fit,step"), over_epochs=over_epochs)
    run(["mnist"], load(output=tmp_path, loop="fit,step", threshold="2%"))  # which asks for the verdict on the steps
    assert [design.over_epochs for design in designs] == [True, False, False]
    assert not run_design(Group("mnist", ())).over_epochs  # of a bisection
