"""The session of a run, called from Python: where it writes, what it imports, and what it does when memory is short."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from background_runs import own

import bench
from bench import api
from bench.model.run_state import Progress
from bench.session import launch, stopping
from bench.session.design import Design
from bench.store import files

pytestmark = pytest.mark.once


def test_a_trial_is_on_disk_before_the_next_begins(tmp_path: Path) -> None:
    kept: list[int] = []

    def look(moment: Progress) -> None:
        if moment.trial == 2 and moment.phase == "starting":
            (found,) = files.results(tmp_path)
            kept.append(sum(bool(sample.series and sample.series[0].blocks) for sample in found.samples))

    bench.run([own("step_inputs")], max_processes=2, output=tmp_path, listener=look)
    assert kept == [1]


def test_where_memory_is_short_whole_processes_interleave_and_the_result_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "memory_available", lambda: 0)
    results = bench.run([own("step_inputs")], loop="step,resident", max_processes=1, output=tmp_path).results
    assert [(each.status, each.interleaved) for each in results] == [("complete", False)] * 2
    for each in results:
        assert "not-interleaved" in [warned.key for warned in each.warnings]
        turns = [block.position for block in each.samples[0].series[0].blocks]
        assert turns == list(range(len(turns)))  # nobody else's in between


def test_once_the_starts_are_known_workers_start_at_once_and_only_their_steps_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "run_design", lambda group: Design(fit_pilot=True))
    results = bench.run([own("step_data")], loop="step,resident", max_processes=2, output=tmp_path).results
    for each in results:
        assert each.status == "complete"
        assert each.interleaved
        alone, beside = each.samples
        assert beside.start_position is None
        assert beside.start_position != alone.start_position
        assert alone.latency
        assert not beside.latency
        assert "batch_copy" in alone.phases
        assert "batch_copy" not in beside.phases
        assert {found.n for found in each.summary.phases.values()} == {1}
        assert each.summary.step_seconds is not None
        assert each.summary.step_seconds.n == 2
        assert each.projection is not None
        assert each.projection.total_seconds.n == 1
    turns = [[block.position for block in each.samples[1].series[0].blocks] for each in results]
    assert sorted(turns[0] + turns[1]) == list(range(2 * len(turns[0])))


def test_where_time_is_short_only_the_first_trials_starts_are_measured_so_that_it_holds_more_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def short(seconds: float, settings: Any, pilot: int) -> bool:
        asked.append(seconds)
        return False

    monkeypatch.setattr(stopping, "has_time_for_pilot", short)
    results = bench.run([own("step_data")], loop="step,resident", max_processes=3, output=tmp_path).results
    assert max(Counter(asked).values()) == 2  # the first trial's seconds, before the second and before the third
    for each in results:
        places = [sample.start_position for sample in each.samples]
        assert places[1:] == [None, None]
        assert None not in places[:1]


def test_whoever_asks_for_a_run_never_imports_tensorflow(tmp_path: Path) -> None:
    asks = f"""
import json, sys, bench
(found,) = bench.run([{own("step_inputs")!r}], max_processes=1, output={str(tmp_path)!r}).results
print(json.dumps([found.status, sorted({{"tensorflow", "keras"}} & set(sys.modules))]))
"""
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["complete", []]


def test_a_program_named_as_our_package_is_measured_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(Path(own("step_inputs")).read_text(encoding="utf-8"), encoding="utf-8")
    program = str(Path(sys.executable).with_name("devbench"))
    words = [program, "run", "./bench.py", "--max-processes", "1"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = files.results(tmp_path / "results")
    assert (found.spec.workload, found.status) == ("bench", "complete")
