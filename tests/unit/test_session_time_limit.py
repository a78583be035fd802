"""How long a session may go on, by what it measures and what was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from bench.api import run_design
from bench.config.settings import load
from bench.model.result import Purpose
from bench.publish.recorder import Recorder
from bench.session.design import Design
from bench.session.session import Session
from bench.session.stopping import COMPARING_SECONDS
from bench.study.plan import plan


def seconds(purpose: Purpose = "run", **asked: Any) -> float:
    """The time that a session has, of `tabular`'s small case."""
    settings = load(case="small", backend="cpu", data="sample", **asked)
    (group,) = plan(["tabular"], settings)
    design = run_design(group) if purpose == "run" else Design(purpose=purpose)
    return Session(group, settings, design, Recorder(settings)).settings.max_time


def test_comparing_has_more_time_than_measuring_one_unless_it_is_said() -> None:
    assert seconds(loop="step") == 90
    assert seconds(loop="step,fit") == COMPARING_SECONDS > 90
    assert seconds(loop="step,fit", max_time="90s") == 90


@pytest.mark.parametrize("purpose", ["level", "what-if", "sweep"])
def test_parts_of_an_explanation_or_a_sweep_have_the_time_that_they_are_given(purpose: Purpose) -> None:
    assert seconds(purpose, loop="step,fit") == 90
