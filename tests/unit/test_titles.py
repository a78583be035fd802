"""Titles of studies and of a report's chapters tell studies of one program apart."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from synthetic import explanation, folder, ladder_results, measured

from bench import api
from bench.analyse.analysis import Explained
from bench.config.settings import load
from bench.errors import NotApplicable
from bench.publish.recorder import Recorder
from bench.render.report import content
from bench.render.report.compose import compose
from bench.study import bisect, explain, run, scale, scale_hosts, sweep
from bench.study.recorded import title_of

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("programs", "options", "title"),
    [
        (["cifar"], {}, "cifar"),
        (["cifar", "mnist"], {"param": {"batch": "16"}}, "cifar, mnist, batch=16"),
        (["cifar"], {"param": {"batch": "32", "epochs": "2"}, "tf32": "off"}, "cifar, batch=32, epochs=2, tf32=off"),
        (["cifar"], {"vary": {"dtype": "float32,float64"}}, "cifar, dtype=float32,float64"),
        (["old/train.py"], {"args": ("--lr", "0.1 0.2"), "watch": "2"}, "train.py --lr '0.1 0.2', watch=2"),
        (["-m pkg.train"], {"xla": "on"}, "-m pkg.train, xla=on"),
        (["tabular"], {"case": "small", "target_error": "1%", "max_time": "9s"}, "tabular, case=small"),
    ],
)
def test_the_title_of_a_study_names_the_settings_that_define_what_runs(
    programs: list[str], options: dict[str, Any], title: str
) -> None:
    assert title_of(programs, load(**options)) == title


@pytest.mark.parametrize(
    ("start", "title"),
    [
        (lambda *given: run.run(["cifar"], *given), "cifar, batch=16"),
        (lambda *given: explain.explain("cifar", *given), "explain cifar, batch=16"),
        (lambda settings, record: sweep.sweep("cifar", settings, 1.0, record), "sweep cifar, batch=16"),
        (lambda settings, record: scale.scale("cifar", settings, [1], recorder=record), "scale cifar, batch=16"),
        (lambda *given: bisect.bisect("cifar", "1", "2", given[0], "", given[1]), "bisect cifar, batch=16"),
    ],
)
def test_every_study_is_reported_with_this_title(start: Any, title: str, tmp_path: Path) -> None:
    heard: list[str] = []

    class Told(Exception):
        """The title is known."""

    class Titles(Recorder):
        def reporting(self, title: str) -> Any:
            heard.append(title)
            raise Told

    settings = load(output=str(tmp_path), param={"batch": "16"})
    with suppress(Told):
        start(settings, Titles(settings))
    assert heard == [title]


def test_chapters_with_the_same_title_name_what_differs(tmp_path: Path) -> None:
    for batch in (16, 64):
        for backend in ("cpu", "cuda"):
            spec = {"params": {"batch": batch}, "backend": backend}
            folder(tmp_path, measured(f"{backend}{batch}", [0.1] * 3, group=f"g{batch}", **spec))
    titles = sorted(chapter.title for chapter in compose(*api.report(tmp_path, 0.02)).chapters)
    assert titles == ["cifar, as-written: cpu; cuda (batch 16)", "cifar, as-written: cpu; cuda (batch 64)"]


def test_the_title_of_an_explanation_names_the_batch() -> None:
    levels = ladder_results()
    explained = explanation(levels)
    title = f"Where the time of {explained.label}"
    assert content.of(Explained(explained, levels, 0.02)).title == f"{title}, batch 32 goes"
    assert content.of(Explained(explained, [], 0.02)).title == f"{title} goes"


def test_one_worker_is_no_plural(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(scale_hosts, "thread_count", lambda: 1)
    with pytest.raises(NotApplicable) as caught:
        scale_hosts.cpus_of_each(2)
    assert caught.value.hint.startswith("Measure up to 1 worker here: --workers 1.")
