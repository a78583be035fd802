"""The time limit of a session: its default and `--max-time`."""

from __future__ import annotations

from typing import Any

import pytest

from bench.config.settings import load
from bench.model.result import Purpose
from bench.publish.recorder import Recorder
from bench.session.design import Design
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
