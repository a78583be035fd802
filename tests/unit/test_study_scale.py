"""What a scaling study measures, with a session that measures nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from bench.config.settings import load
from bench.model.plan import Group
from bench.publish.recorder import Recorder
from bench.session.design import Design
from bench.study import scale

pytestmark = pytest.mark.once


class Stopped(Exception):
    """Ends a study where its session would start."""


def session_of(monkeypatch: pytest.MonkeyPatch, folder: Path, **settings: Any) -> tuple[Group, Design]:
    """Return the group and the design of the session that a study of one worker starts."""
    asked: list[tuple[Group, Design]] = []

    def session(group: Group, settings: Any, design: Design, recorder: Recorder) -> Any:
        asked.append((group, design))
        raise Stopped

    monkeypatch.setattr(scale, "Session", session)
    loaded = load(backend="cpu", data="sample", output=folder, **settings)
    study = scale.ScaleStudy("mnist", loaded, Recorder(loaded), [1])
    with pytest.raises(Stopped):
        study.run()
    return asked[0]


def test_the_time_limit_is_that_of_the_whole_study(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    start = time.monotonic()
    _, design = session_of(monkeypatch, tmp_path, max_time="50s")
    assert design.deadline is not None
    assert start + 50 <= design.deadline <= time.monotonic() + 50
