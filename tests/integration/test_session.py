"""Sessions of runs that Python starts: what they write and import, and how they react to short memory or time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from background_runs import measured_program

import bench
from bench.model.run_state import Progress
from bench.session import memory_fit, stopping
from bench.session.design import Design
from bench.store import files
from bench.study import run as run_study

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("warm_workers")]


def test_a_trial_is_on_disk_before_the_next_begins(tmp_path: Path) -> None:
    measured_samples: list[int] = []

    def count_samples(progress: Progress) -> None:
        if progress.trial == 2 and progress.phase == "starting":
            (result,) = files.results(tmp_path)
            measured_samples.append(sum(bool(sample.series and sample.series[0].blocks) for sample in result.samples))

    bench.run([measured_program("step_inputs")], max_processes=2, output=tmp_path, listener=count_samples)
    assert measured_samples == [1]


def test_if_memory_is_short_whole_processes_alternate_and_the_result_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_fit, "memory_available", lambda: 0)
    results = bench.run(
        [measured_program("step_inputs")], loop="step,resident", max_processes=1, output=tmp_path
    ).results
    assert [(result.status, result.interleaved) for result in results] == [("complete", False)] * 2
    for result in results:
        assert "not-interleaved" in [warning.key for warning in result.warnings]
        positions = [block.position for block in result.samples[0].series[0].blocks]
        assert positions == list(range(len(positions)))  # no block of another worker in between


def test_after_the_first_trial_workers_start_together_and_only_their_steps_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_study, "run_design", lambda group: Design(fit_pilot=True))
    results = bench.run([measured_program("step_data")], loop="step,resident", max_processes=2, output=tmp_path).results
    for result in results:
        assert result.status == "complete"
        assert result.interleaved
        first, second = result.samples
        assert second.start_position is None
        assert second.start_position != first.start_position
        assert first.latency
        assert not second.latency
        assert "batch_copy" in first.phases
        assert "batch_copy" not in second.phases
        assert {interval.n for interval in result.summary.phases.values()} == {1}
        assert result.summary.step_seconds is not None
        assert result.summary.step_seconds.n == 2
        assert result.projection is not None
        assert result.projection.total_seconds.n == 1
    positions = [[block.position for block in result.samples[1].series[0].blocks] for result in results]
    assert sorted(positions[0] + positions[1]) == list(range(2 * len(positions[0])))


def test_if_time_is_short_only_the_first_trial_measures_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []

    def too_short(seconds: float, settings: Any, pilot: int) -> bool:
        calls.append(seconds)
        return False

    monkeypatch.setattr(stopping, "has_time_for_pilot", too_short)
    results = bench.run([measured_program("step_data")], loop="step,resident", max_processes=3, output=tmp_path).results
    later_trials = len(results[0].samples) - 1  # one if the comparison is clear after two trials
    assert later_trials >= 1
    assert max(Counter(calls).values()) == later_trials  # the seconds of the first trial, before each later one
    for result in results:
        start_positions = [sample.start_position for sample in result.samples]
        assert start_positions[1:] == [None] * later_trials
        assert None not in start_positions[:1]


def test_the_parent_process_never_imports_tensorflow(tmp_path: Path) -> None:
    script = f"""
import json, sys, bench
(result,) = bench.run([{measured_program("step_inputs")!r}], max_processes=1, output={str(tmp_path)!r}).results
print(json.dumps([result.status, sorted({{"tensorflow", "keras"}} & set(sys.modules))]))
"""
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=800, check=False)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == ["complete", []]


def test_a_program_named_bench_is_measured_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(
        Path(measured_program("step_inputs")).read_text(encoding="utf-8"), encoding="utf-8"
    )
    devbench = str(Path(sys.executable).with_name("devbench"))
    command = [devbench, "run", "./bench.py", "--max-processes", "1"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=800, check=False)
    assert process.returncode == 0, process.stderr
    (result,) = files.results(tmp_path / "results")
    assert (result.spec.workload, result.status) == ("bench", "complete")
