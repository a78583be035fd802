"""`sweep`, and `run` that compares two files, with a real TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from background_runs import ONCE, SECONDS, own
from devbench_process import started

from bench.analyse.sweep import sweep_of

pytestmark = [pytest.mark.timeout(SECONDS), pytest.mark.once]


def test_a_sweep_ends_where_memory_does_and_says_so(tmp_path: Path) -> None:
    words = ("--loop", "step", "--param", "batch=1,10000000,20000000", "--json", *ONCE)
    with started(tmp_path, "sweep", own("large_batches"), *words) as run:
        run.process.wait(timeout=SECONDS)
        ended = run.end()
    assert ended.code == 0, ended.said()
    found = json.loads(ended.out)["sweep"]
    (curve,) = found["curves"]
    assert [(p["values"]["batch"], p["out_of_memory"]) for p in curve["points"]] == [(1, False), (10_000_000, True)]
    assert curve["points"][1]["failure"].startswith("OOM when allocating tensor with shape[10000000,1000000]")
    assert found["incomplete_reason"] == "out of memory at batch=10000000 (cpu)"
    assert {r.purpose for r in ended.every} == {"sweep"}
    assert [r.sweep.incomplete_reason for r in ended.every if r.sweep] == [None, found["incomplete_reason"]]


@pytest.mark.quiet
def test_two_loops_are_compared_at_each_value_and_the_sweep_says_between_which_one_overtakes(tmp_path: Path) -> None:
    words = (own("crossing"), "--loop", "as-written,step", "--param", "size=1,2", "--max-processes", "2")
    with started(tmp_path, "sweep", *words, "--max-time", "10m", "--point-time", "5m") as run:
        run.process.wait(timeout=SECONDS)
        ended = run.end()
    assert ended.code == 0, ended.said()
    found = sweep_of(ended.every, 0.02)
    assert (found.axes, found.incomplete_reason) == ({"size": [1, 2]}, None)  # nothing lies between 1 and 2
    written, step = found.curves
    assert (written.label, step.label, step.base) == ("cpu, as-written", "cpu, step", "cpu, as-written")
    first, last = step.ratios
    assert [(each.values, each.ratio.n) for each in (first, last)] == [({"size": 1}, 2), ({"size": 2}, 2)]
    assert first.ratio.value < 1 < last.ratio.value
    assert last.verdict == "slower"
    (crossing,) = step.crossings
    assert 1 < crossing.value < 2
    assert crossing.leader == "cpu, as-written"
    assert "cpu, as-written overtakes cpu, step at size 1." in ended.said()


@pytest.mark.quiet
def test_two_files_interleave_and_end_with_a_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    text = Path(own("large_batches")).read_text(encoding="utf-8")
    for name, factor in (("old", "1"), ("new", "4")):
        (folder / f"{name}.py").write_text(text.replace("p.batch,", f"{factor} * p.batch,"), encoding="utf-8")
    words = (str(folder / "old.py"), str(folder / "new.py"), "--compare", "--json")
    with started(tmp_path, "run", *words, "--max-processes", "3", "--max-time", "2m") as run:
        run.process.wait(timeout=SECONDS)
        ended = run.end()
    assert ended.code == 0, ended.said()
    (found,) = json.loads(ended.out)["comparisons"]
    assert (found["axis"], found["paired"], found["verdict"]) == ("file", True, "slower")
    assert found["ratio"]["value"] > 2
