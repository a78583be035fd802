"""What a scaling study measures, with a session that measures nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from synthetic_scaling import scaling_results
from typer.testing import CliRunner

from bench.cli.app import app
from bench.config.settings import load
from bench.errors import NotApplicable, RunFailed, UsageError
from bench.model.failure import Failure
from bench.model.plan import Group
from bench.publish.recorder import Recorder
from bench.session.design import Design
from bench.study import scale
from bench.study.scale_hosts import Hosts, devices_of_each

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


@pytest.mark.parametrize(
    ("visible", "devices"),
    [(None, ["0", "1"]), ("3,1,0", ["3", "1"]), ("", None), ("-1", None), ("2,-1,1", None), ("5", None)],
)
def test_each_worker_gets_one_of_the_visible_gpus(
    visible: str | None, devices: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if devices is not None:
        assert devices_of_each(2) == devices
        return
    with pytest.raises(NotApplicable, match="2 workers needs as many GPUs"):
        devices_of_each(2)


def test_an_index_without_hosts_is_refused_unless_the_platform_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOB_COMPLETION_INDEX", raising=False)
    words = ["scale", "mnist", "--workers", "0", "--index", "1"]
    shown = CliRunner().invoke(app, words)
    assert "--index needs --hosts" in shown.output
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")
    shown = CliRunner().invoke(app, words[:-2])
    assert "--index" not in shown.output


def test_a_study_that_loses_a_host_shows_what_was_measured_before(tmp_path: Path) -> None:
    loaded = load(backend="cpu", data="sample", output=tmp_path)
    hosts = Hosts(hosts=("node-a", "node-b"))
    study = scale.ScaleStudy("mnist", loaded, Recorder(loaded), [1, 2], cluster=hosts)
    study.results = scaling_results(steps={1: 0.104, 2: 0.06})
    study.results[3].failure = Failure(kind="lost-worker", message="worker 1 is gone", hint="Start the run again.")
    shown = study.read()
    assert [size.speed_up is not None for size in shown.sizes] == [True, True]
    assert shown.failures == ["2 workers, no all-reduce, step: worker 1 is gone"]
    study.results[0].samples = []
    with pytest.raises(RunFailed, match="worker 1 is gone"):
        study.read()


def test_a_batch_that_does_not_divide_is_refused_before_a_script_runs(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import tensorflow as tf\nmodel = tf.keras.Sequential()\nmodel.fit([1])\n", encoding="utf-8")
    loaded = load(backend="cpu", data="sample", output=tmp_path, param={"batch": "33"})
    study = scale.ScaleStudy(str(script), loaded, Recorder(loaded), [1])
    study.sizes = [1, 2]
    with pytest.raises(UsageError, match="a batch of 33 examples does not divide among 2 workers"):
        study.run()
