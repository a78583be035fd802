"""Interruptions of a study outside its sessions, and errors that come before anything is measured."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from synthetic import measured, result
from test_study_explain import faked

from bench import api
from bench.analyse.outcome import Outcome
from bench.config.settings import load
from bench.errors import Interrupted, SettingsError
from bench.model.explanation import Explanation
from bench.model.sweep import Sweep
from bench.publish.recorder import Recorder
from bench.session.worker_servers import WorkerServers
from bench.study import run, sweep

__all__ = ["faked"]
pytestmark = pytest.mark.once


class Session:
    """A session that has measured a result."""

    count = 0

    def __init__(self, group: Any, *_: Any, **__: Any) -> None:
        Session.count += 1
        planned = group.planned[0]
        point = measured(str(Session.count), [0.01, 0.011], group=str(Session.count), params=planned.spec.params)
        self.results = [point]

    def run(self) -> None:
        """Do nothing. The result exists already."""


@pytest.fixture
def interrupted_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupt each study outside its sessions, after everything is measured."""

    def interrupted(*_: Any) -> None:
        raise Interrupted(signal.SIGINT)

    monkeypatch.setattr(Recorder, "judge", interrupted)
    monkeypatch.setattr(WorkerServers, "__exit__", interrupted)
    monkeypatch.setattr(run, "Session", Session)
    monkeypatch.setattr(sweep, "Session", Session)


@pytest.mark.usefixtures("interrupted_at_the_end", "faked")
def test_an_interruption_outside_of_a_session_keeps_what_was_measured(tmp_path: Path) -> None:
    settings = load(backend="cpu", case="small", loop="step", data="sample", output=tmp_path)
    with pytest.raises(Interrupted) as of_run:
        api.run(["tabular"], settings)
    with pytest.raises(Interrupted) as of_sweep:
        api.sweep("tabular", settings.model_copy(update={"case": (), "param": {"batch": "32,64"}}), 10.0)
    with pytest.raises(Interrupted) as of_explanation:
        api.explain("tabular", settings, what_ifs=False)
    for caught, kind in ((of_run, Outcome), (of_sweep, Sweep), (of_explanation, Explanation)):
        assert isinstance(caught.value.document, kind)
        assert caught.value.results
        assert caught.value.exit_code == 130
        assert caught.value.message == "interrupted: the results so far were kept"


def test_an_interruption_says_that_results_are_partial_only_if_one_is() -> None:
    complete, partial = result("a"), result("b", status="partial")
    assert Interrupted(signal.SIGINT, [complete, partial]).message.endswith("kept and marked as partial")
    assert Interrupted(signal.SIGINT, [complete]).message.endswith("kept")


def test_a_folder_of_a_later_script_that_cannot_be_used_is_an_error_before_the_first_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text("print(1)\n", encoding="utf-8")
    asked: list[str] = []

    def unusable(group: Any, settings: Any) -> dict[str, Any]:
        asked.append(group.workload)
        if len(asked) == 2:
            raise SettingsError("the folder is too large to copy")
        return {}

    monkeypatch.setattr(run, "script_folders", unusable)
    monkeypatch.setattr(run, "Session", Session)
    Session.count = 0
    with pytest.raises(SettingsError):
        api.run([tmp_path / "first.py", tmp_path / "second.py"], load(backend="cpu", output=tmp_path / "results"))
    assert ([Path(name).name for name in asked], Session.count) == (["first.py", "second.py"], 0)
