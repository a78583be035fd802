"""The time limit of a session: its default and `--max-time`."""

from __future__ import annotations

import time
from typing import Any

import pytest
from synthetic import measured

from bench.config.settings import load
from bench.model.result import Purpose
from bench.publish.recorder import Recorder
from bench.session.design import Design, with_first
from bench.session.session import Session
from bench.session.stopping import COMPARING_SECONDS
from bench.study.plan import plan
from bench.study.run import run_design


def seconds(purpose: Purpose = "run", **options: Any) -> float:
    """Return the time limit of a session of the small case of `tabular`, in seconds."""
    settings = load(case="small", backend="cpu", data="sample", **options)
    (group,) = plan(["tabular"], settings)
    design = run_design(group) if purpose == "run" else Design(purpose=purpose)
    return Session(group, settings, design, Recorder(settings)).settings.max_time


def test_a_comparison_has_more_time_than_a_single_spec_unless_max_time_is_set() -> None:
    assert seconds(loop="step") == 90
    assert seconds(loop="step,fit") == COMPARING_SECONDS > 90
    assert seconds(loop="step,fit", max_time="90s") == 90


@pytest.mark.parametrize("purpose", ["level", "what-if", "sweep"])
def test_a_part_of_an_explanation_or_a_sweep_keeps_the_time_limit_of_its_settings(purpose: Purpose) -> None:
    assert seconds(purpose, loop="step,fit") == 90


@pytest.mark.parametrize(("purpose", "planned"), [("run", True), ("scale", True), ("level", False)])
def test_trials_are_planned_before_a_deadline_unless_other_sessions_share_it(purpose: Purpose, planned: bool) -> None:
    settings = load(case="small", backend="cpu", data="sample", loop="step,fit", max_time="1h")
    (group,) = plan(["tabular"], settings)
    design = Design(purpose=purpose, pairs=with_first, deadline=time.monotonic() + 3600)
    session = Session(group, settings, design, Recorder(settings))
    for result, steps in zip(session.results, ([0.1, 0.12, 0.11], [0.11, 0.1, 0.12]), strict=True):
        result.samples = measured(result.id, steps).samples
    session._progress.trial = 3
    session._stop.reason(10.0)
    assert (session._progress.planned is not None) == planned
