"""The time limit of an explanation holds for all of it. What does not fit is left out and named."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import spec
from test_study_explain import Fake, faked, study_of

from bench.config.settings import RunSettings
from bench.errors import RunFailed
from bench.model.failure import Failure
from bench.model.plan import Planned
from bench.model.result import Stop
from bench.model.spec import Loop
from bench.study import explain, explain_sessions
from bench.study.budget import OVERRUN, TimeBudget

__all__ = ["faked"]
pytestmark = pytest.mark.once

WORKER_SECONDS = 10.0


class Slow(Fake):
    """A session that takes 10 s for each worker of a trial, by a clock of its own. Comparisons have two trials."""

    now = 0.0

    def run(self) -> list[Any]:
        """Let the time pass, and record it as the session does."""
        trials = 1 if len(self.results) == 1 else 2
        seconds = trials * WORKER_SECONDS * len(self.results)
        Slow.now += seconds
        for result in self.results:
            stop = Stop(reason="max-time", trials=trials, error=None, target=0.02, settled=False, seconds=seconds)
            result.stop = stop
        return super().run()


def slow_study(monkeypatch: pytest.MonkeyPatch, **options: Any) -> explain.ExplainStudy:
    Slow.now = 0.0
    monkeypatch.setattr(explain_sessions, "Session", Slow)
    study = study_of(loop="as-written", **options)
    study.sessions.budget = TimeBudget(study.settings, lambda: Slow.now)
    return study


@pytest.mark.usefixtures("faked")
@pytest.mark.parametrize(
    ("limit", "fewer_levels", "fewer_what_ifs"),
    [("70s", True, True), ("2m", False, True), ("4m", False, True), ("30m", False, False)],
)
def test_an_explanation_takes_at_most_a_fifth_longer_than_its_limit(
    limit: str, fewer_levels: bool, fewer_what_ifs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = slow_study(monkeypatch, max_time=limit)
    explanation = study.run()
    assert Slow.now <= 1.2 * study.sessions.budget.limit
    assert len(explanation.parts) >= 1
    left_out = [loop for loop, reason in explanation.missing_levels.items() if "--max-time" in reason]
    assert bool(left_out) == fewer_levels
    untried = any(caveat.startswith("--max-time left no time for these what-ifs") for caveat in explanation.caveats)
    assert untried == (len(explanation.gains) < len(study.what_ifs))
    assert untried == fewer_what_ifs


@pytest.mark.usefixtures("faked")
def test_fewer_what_ifs_are_tried_at_once_if_there_is_no_time_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    for limit in ("170s", "210s"):  # three levels and then three what-ifs, or four of each
        study = slow_study(monkeypatch, max_time=limit)
        Slow.sessions.clear()
        study.run()
        tried += [len(specs) - 1 for _, specs in Slow.sessions[2:]]
    assert tried == [3, 4]


@pytest.mark.usefixtures("faked")
def test_the_loops_that_tell_most_are_measured_if_there_is_no_time_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    study = slow_study(monkeypatch, max_time="70s")
    study.run()
    ladder = [spec.loop for spec in Slow.sessions[1][1]]
    assert ladder[0] == "as-written"
    assert ladder[-1] == "fused"
    assert len(ladder) < 6


@pytest.mark.usefixtures("faked")
def test_two_trials_of_a_few_loops_come_before_what_ifs(monkeypatch: pytest.MonkeyPatch) -> None:
    study = slow_study(monkeypatch, max_time="95s")
    explanation = study.run()
    _, (_, ladder) = Slow.sessions
    assert len(ladder) == 4
    assert Slow.now == WORKER_SECONDS * (1 + 2 * 4)
    assert explanation.gains == []


def test_what_ifs_that_test_a_suspect_keep_their_time_if_only_a_few_loops_fit() -> None:
    loops: list[Loop] = ["as-written", "fit", "step", "host-batches", "resident", "fused"]
    levels = [Planned(spec(loop=loop), (), None, 32) for loop in loops]
    budget = TimeBudget(RunSettings(max_time="100s"), lambda: 0.0)
    budget.worker_seconds = 10.0
    plans = [budget.ladder(levels, True, suspects) for suspects in (0, 1, 9)]
    assert [len(plan.levels) for plan in plans] == [5, 3, 2]
    assert [plan.share for plan in plans] == pytest.approx([1.0, 0.6, 0.5])


@pytest.mark.usefixtures("faked")
def test_a_limit_that_is_too_short_for_two_processes_ends_with_what_the_first_one_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = slow_study(monkeypatch, max_time="15s")
    explanation = study.run()
    assert Slow.now <= WORKER_SECONDS
    assert explanation.step_seconds > 0
    assert "there was no time for it. Use --max-time 4m" in explanation.missing_levels.values()


@pytest.mark.usefixtures("faked")
def test_the_limit_is_announced_before_the_first_process_and_an_estimate_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = slow_study(monkeypatch, max_time="10m")
    said: list[str] = []
    monkeypatch.setattr(study.recorder, "tell", lambda line: said.append(f"{len(Slow.sessions)} {line}"))
    study.run()
    limit, estimate = [line for line in said if "so far" not in line and " tried " not in line]
    assert limit.startswith("0 The explanation takes at most about 10 min (--max-time).")
    assert estimate.startswith("1 One process takes about 10")


@pytest.mark.usefixtures("faked")
def test_every_session_of_an_explanation_ends_with_the_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    study = slow_study(monkeypatch, max_time="10m")
    study.run()
    assert {design.deadline for design in Slow.designs} == {600.0}
    assert {design.last_moment for design in Slow.designs} == {600.0 * OVERRUN}


def ended_study(monkeypatch: pytest.MonkeyPatch, **measured: Any) -> explain.ExplainStudy:
    """Return a study whose first process is ended by the time limit, with these fields of its sample."""
    study = slow_study(monkeypatch, max_time="3s")
    late = Failure(kind="interrupted", message="the time limit was reached")
    measure = study.sessions.measure

    def ended(*arguments: Any, **options: Any) -> list[Any]:
        (first,) = measure(*arguments, **options)
        return [
            first.model_copy(update={"samples": [first.samples[0].model_copy(update={"failure": late, **measured})]})
        ]

    monkeypatch.setattr(study.sessions, "measure", ended)
    return study


@pytest.mark.usefixtures("faked")
def test_a_limit_within_which_no_process_is_ready_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunFailed, match=r"3 s is too short to explain .*: its first process was not ready"):
        ended_study(monkeypatch, series=[]).run()


@pytest.mark.usefixtures("faked")
def test_steps_that_the_first_process_timed_before_the_limit_ended_it_are_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explanation = ended_study(monkeypatch).run()
    assert explanation.step_seconds == pytest.approx(0.01, rel=0.01)
    assert explanation.lowest_level == "as-written"
