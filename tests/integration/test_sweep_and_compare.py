"""`sweep`, and `run --compare` with two files, with a real TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from background_runs import ONE_PROCESS, SECONDS, measured_program
from devbench_process import run_devbench
from warm_workers import WarmServer

from bench.analyse.sweep import sweep_of

pytestmark = [pytest.mark.timeout(SECONDS), pytest.mark.once]


def test_a_sweep_stops_at_the_value_that_runs_out_of_memory(tmp_path: Path, usual_blocks: WarmServer | None) -> None:
    arguments = ("--loop", "step", "--param", "batch=1,10000000,20000000", "--json", *ONE_PROCESS)
    run = run_devbench(
        tmp_path, "sweep", measured_program("large_batches"), *arguments, seconds=SECONDS, warm=usual_blocks
    )
    assert run.code == 0, run.text()
    sweep = json.loads(run.out)["sweep"]
    (curve,) = sweep["curves"]
    assert [(p["values"]["batch"], p["out_of_memory"]) for p in curve["points"]] == [(1, False), (10_000_000, True)]
    assert curve["points"][1]["failure"].startswith("OOM when allocating tensor with shape[10000000,1000000]")
    assert sweep["incomplete_reason"] == "out of memory at batch=10000000 (cpu)"
    assert {r.purpose for r in run.results} == {"sweep"}
    assert [r.sweep.incomplete_reason for r in run.results if r.sweep] == [None, sweep["incomplete_reason"]]


@pytest.mark.quiet
def test_a_sweep_over_two_loops_finds_between_which_values_they_cross(
    tmp_path: Path, usual_blocks: WarmServer | None
) -> None:
    arguments = (
        measured_program("crossing"),
        "--loop",
        "as-written,step",
        "--param",
        "size=1,2",
        "--max-processes",
        "2",
    )
    limits = ("--max-time", "10m", "--point-time", "5m")
    run = run_devbench(tmp_path, "sweep", *arguments, *limits, seconds=SECONDS, warm=usual_blocks)
    assert run.code == 0, run.text()
    sweep = sweep_of(run.results, 0.02)
    assert (sweep.axes, sweep.incomplete_reason) == ({"size": [1, 2]}, None)  # no whole number is between 1 and 2
    as_written, step = sweep.curves
    assert (as_written.label, step.label, step.base) == ("cpu, as-written", "cpu, step", "cpu, as-written")
    first, last = step.ratios
    assert [(point.values, point.ratio.n) for point in (first, last)] == [({"size": 1}, 2), ({"size": 2}, 2)]
    assert first.ratio.value < 1 < last.ratio.value
    assert last.verdict == "slower"
    (crossing,) = step.crossings
    assert 1 < crossing.value < 2
    assert crossing.leader == "cpu, as-written"
    assert "cpu, as-written overtakes cpu, step at size 1." in run.text()


@pytest.mark.quiet
def test_two_files_interleave_and_end_with_a_verdict(tmp_path: Path, usual_blocks: WarmServer | None) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    text = Path(measured_program("large_batches")).read_text(encoding="utf-8")
    for name, factor in (("old", "1"), ("new", "4")):
        (folder / f"{name}.py").write_text(text.replace("p.batch,", f"{factor} * p.batch,"), encoding="utf-8")
    arguments = (str(folder / "old.py"), str(folder / "new.py"), "--compare", "--json")
    limits = ("--max-processes", "3", "--max-time", "2m")
    run = run_devbench(tmp_path, "run", *arguments, *limits, seconds=SECONDS, warm=usual_blocks)
    assert run.code == 0, run.text()
    (comparison,) = json.loads(run.out)["comparisons"]
    assert (comparison["axis"], comparison["paired"], comparison["verdict"]) == ("file", True, "slower")
    assert comparison["ratio"]["value"] > 2
