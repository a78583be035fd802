"""The report as CSV: one line for each raw time."""

from __future__ import annotations

from csv import DictReader
from pathlib import Path

import pytest
from synthetic import folder, killed, measured

from bench.errors import DataError
from bench.model.result import Summary
from bench.render.report import csv

pytestmark = pytest.mark.once


def rows(path: Path) -> list[dict[str, str]]:
    return list(DictReader(csv.lines(path)))


def test_each_phase_block_and_single_step_has_a_line_with_its_result_and_process(tmp_path: Path) -> None:
    document = measured("1", [0.1, 0.2], workload='a,"b"')
    lines = rows(folder(tmp_path, document))
    sample = document.samples[1]
    second_trial = [row for row in lines if row["trial"] == "2"]
    assert {row["workload"] for row in lines} == {'a,"b"'}
    assert len(lines) == 2 * len(second_trial)
    kinds = {
        kind: [row for row in second_trial if row["kind"] == kind] for kind in ("phase", "warm-up", "block", "step")
    }
    assert {row["name"]: float(row["seconds"]) for row in kinds["phase"]} == sample.phases
    assert [float(row["seconds"]) for row in kinds["block"]] == [block.seconds for block in sample.series[0].blocks]
    assert [int(row["position"]) for row in kinds["block"]] == [block.position for block in sample.series[0].blocks]
    assert [float(row["seconds"]) for row in kinds["step"]] == sample.latency
    assert len(kinds["warm-up"]) == 1


def test_a_failure_has_a_line(tmp_path: Path) -> None:
    failed = measured("1", [0.1])
    failed.samples[0].failure = killed()
    failed.failure = killed()
    without_samples = measured("2", [], loop="fit", status="failed", failure=killed(), summary=Summary(), samples=[])
    lines = [row for row in rows(folder(tmp_path, failed, without_samples)) if row["kind"] == "failure"]
    assert [(row["id"], row["name"], row["seconds"]) for row in lines] == [("1", "killed", ""), ("2", "killed", "")]


def test_a_folder_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no results"):
        rows(tmp_path)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_a_text_that_looks_like_a_formula_begins_with_an_apostrophe(tmp_path: Path, name: str) -> None:
    lines = rows(folder(tmp_path, measured("1", [0.1], workload=name)))
    assert {row["workload"] for row in lines} == {f"'{name}"}
    assert {row["position"] for row in lines if row["kind"] == "warm-up"} == {"-1"}  # a number stays a number
