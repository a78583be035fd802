"""Places that show only the word of a verdict: they also show that over whole epochs if it is another."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_analyse_epoch_ratio import pair, side

from bench.analyse.compare import compare
from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.cli import gate
from bench.config.settings import load
from bench.model.result import Result
from bench.render.report.document import Table
from bench.render.report.result_set import ResultSet
from bench.render.report.sections import comparisons
from bench.render.terminal.comparison import matrix_lines

pytestmark = pytest.mark.once


def three() -> list[Result]:
    """Return results with equal steps. The epochs of the second end late."""
    return [*pair(0.01, 1.0), side([0.01, 0.01], 2, params={"validate": None})]


def test_the_overview_of_a_hub_shows_that_one_side_is_slower_over_whole_epochs() -> None:
    overview = pytest.importorskip("bench.hub.pages.overview")
    assert overview._speed(compare(*pair(0.01, 1.0))).endswith(" as fast; over whole epochs slower")
    assert overview._speed(compare(*pair(0.01, 0.01))).endswith(" as fast")


def test_the_table_of_verdicts_in_a_report_shows_that_one_side_is_slower_over_whole_epochs() -> None:
    results = pair(0.01, 1.0)
    section = comparisons.section(ResultSet.of(results, [compare(*results)]))
    assert section is not None
    (table,) = (each for each in section.content if isinstance(each, Table))
    assert table.rows[0].cells[0] == "undecided; over whole epochs slower"


def test_the_summary_of_a_gate_begins_with_the_comparison_that_is_slower_over_whole_epochs(tmp_path: Path) -> None:
    base, late, other = three()
    outcome = Outcome([], [compare(base, other), compare(base, late)], [])
    gate._summarize(tmp_path / "summary.md", outcome, None, load(output=tmp_path))
    head, first, second, *_ = (tmp_path / "summary.md").read_text().strip().split("\n\n")
    assert head == "## devbench gate: undecided; over whole epochs slower"
    assert first.startswith("undecided: ")
    assert second.startswith("Over whole epochs, ")


def test_a_matrix_marks_the_verdicts_that_are_others_over_whole_epochs() -> None:
    (matrix,) = Outcome.of(pair_groups(three())).matrices
    words = [[cell and cell.epoch_verdict for cell in row] for row in matrix.rows]
    assert words == [[None, "faster", None], ["slower", None, "slower"], [None, "faster", None]]
    lines = matrix_lines(matrix)
    assert [line.count("undecided*") for line in lines[5:8]] == [1, 2, 1]
    assert " ".join(" ".join(lines[8:]).split()) == ("* Over whole epochs, B is slower than A and C is faster than B.")
