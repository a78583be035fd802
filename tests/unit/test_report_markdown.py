"""The report as Markdown, for a pull request."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from synthetic import busy_machine, folder, killed, measured

from bench import api
from bench.model.result import Summary
from bench.render.report import markdown
from bench.render.report.compose import compose
from bench.render.report.document import Chapter, ReportDocument

pytestmark = pytest.mark.once


def rendered(path: Path) -> str:
    return markdown.render(compose(*api.report(path, 0.02)), "1.2.3")


def test_the_comment_starts_with_the_outcome_and_folds_the_details(tmp_path: Path) -> None:
    text = rendered(folder(tmp_path, measured("1", [0.1] * 5), measured("2", [0.0081] * 5, backend="cuda")))
    sentence, folded = (
        text.index("- **faster: cuda is 12."),
        text.index("<details><summary>Phases, steps, environments</summary>"),
    )
    assert text.index("### cifar, as-written: cpu; cuda") < sentence < text.index("#### Verdicts") < folded
    assert text.index("#### Side by side") < folded < text.index("#### Phases") < text.index("</details>")
    assert text.endswith("Made by devbench 1.2.3. Intervals have 95% confidence.\n")


def test_every_row_of_a_table_has_as_many_cells_as_its_header(tmp_path: Path) -> None:
    pair = measured("1", [0.1] * 5, params={"name": "a|b"}), measured("2", [0.1] * 5, params={"name": "*c*"})
    text = rendered(folder(tmp_path, *pair)).replace(r"\|", "")
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) >= 4
    for lines in tables:
        assert len({line.count("|") for line in lines}) == 1
        assert set(lines[1]) == set("|:- ")
    assert "*c*" not in text
    assert r"\*c\*" in text


def test_failures_and_warnings_are_not_folded(tmp_path: Path) -> None:
    failed = {"status": "failed", "failure": killed(), "summary": Summary(), "samples": []}
    text = rendered(
        folder(tmp_path, measured("1", [0.1], warnings=busy_machine()), measured("2", [], loop="fit", **failed))
    )
    unfolded = text.partition("<details>")[0]
    assert "❌ fit: the worker was killed by SIGKILL" in unfolded
    assert "⚠️ as-written: the machine was busy: load 1.7 on 2 CPUs" in unfolded
    assert "  ```text\n  about to allocate\n" in unfolded
    assert "\x1b" not in text


def test_chapters_that_do_not_fit_into_a_comment_are_counted(tmp_path: Path) -> None:
    pair = measured("1", [0.1] * 3), measured("2", [0.05] * 3, loop="fit")
    report = compose(*api.report(folder(tmp_path, *pair), 0.02))
    long_report = dataclasses.replace(report, chapters=report.chapters * 400)
    text = markdown.render(long_report, "1.2.3")
    assert 40_000 < len(text) < 65_536
    chapters = text.count("\n### ")
    assert f"{400 - chapters} more chapters do not fit here" in text


def test_a_chapter_that_is_too_long_keeps_only_its_sentences(tmp_path: Path) -> None:
    pair = measured("1", [0.1] * 3), measured("2", [0.05] * 3, loop="fit")
    report = compose(*api.report(folder(tmp_path, *pair), 0.02))
    long = Chapter("long", "long", ("It is long.",), "so long", report.chapters[0].sections * 60)
    text = markdown.render(ReportDocument("r", (), (long,)), "1.2.3")
    assert "- **It is long.**" in text
    assert "| " not in text


def test_the_totals_of_the_phases_have_the_names_that_the_terminal_uses(tmp_path: Path) -> None:
    text = rendered(folder(tmp_path, measured("1", [0.02, 0.02])))
    phases = text[text.index("#### Phases") : text.index("</details>")]
    assert "| cold start | 4.60" in phases
    assert "| cold start and warm-up | 4.72" in phases
    assert "total" not in phases
