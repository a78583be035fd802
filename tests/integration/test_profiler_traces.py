"""Traces by TensorFlow's profiler: written by a run, read by devbench, and read by xprof as TensorBoard reads them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from background_runs import SECONDS
from devbench_process import BRIEF, ROOT, Ended, devbench

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.model.profile import Profile
from bench.render.terminal import table

pytestmark = pytest.mark.timeout(SECONDS)

READ = """
import json, sys
from xprof.convert import raw_to_tool_data
for tool in ("overview_page", "framework_op_stats", "trace_viewer"):
    data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], tool, {})
    print(json.dumps({"tool": tool, "data": json.loads(data)}))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    folder = tmp_path_factory.mktemp("profile")
    loops = ("--loop", "fit,step,fused")
    long_enough_for_a_trace = ("--param", "hidden=2048,batch=256")  # TensorFlow leaves out what takes it some 3 µs
    return devbench(folder, "run", "tabular", *long_enough_for_a_trace, *loops, *BRIEF, "--profile", "traces")


def profile(run: Ended, loop: str) -> Profile:
    (found,) = [each for each in run.every if each.spec.loop == loop]
    assert found.profile is not None, run.said()
    return found.profile


def trace(found: Profile) -> Path:
    (path,) = Path(found.folder).glob("plugins/profile/*/*.xplane.pb")
    return path


@pytest.mark.parametrize("loop", ["fit", "step", "fused"])
def test_a_trace_divides_a_step_of_each_loop_and_names_its_operations(run: Ended, loop: str) -> None:
    found = profile(run, loop)
    assert trace(found).stat().st_size > 1000
    assert found.steps >= 5
    assert found.device_share is not None
    shares = (found.device_share, found.input_share, found.host_share, found.idle_share)
    assert sum(shares) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in shares)
    assert found.device_share > 0
    products = [each for each in found.operations if "MatMul" in each.name]
    assert products, found.operations
    assert 1.5 <= products[0].calls <= 3.5  # two layers: two fused products forward, three plain ones backward
    assert 0 < products[0].seconds < found.step_seconds


def test_the_table_shows_the_shares_and_the_measured_steps_are_as_if_there_were_no_trace(run: Ended) -> None:
    shown = table.text(Outcome.of(pair_groups(run.every)), verbose=True)
    assert "share of a traced step" in shown
    assert "operations running" in shown
    assert all(len(each.samples) == 1 for each in run.every)


def test_a_step_that_waits_for_its_input_shows_in_the_trace(tmp_path: Path) -> None:
    slow = str(Path(__file__).parent / "explained_programs" / "slow_input.py")
    run = devbench(tmp_path, "run", slow, "--loop", "step", *BRIEF, "--profile", "traces")
    found = profile(run, "step")
    assert found.input_share > 0.5
    assert found.input_share > 5 * (found.device_share or 0)


def test_a_workload_without_steps_says_that_it_has_no_profile(tmp_path: Path) -> None:
    small = ("--param", "n=64,memory_bytes=65536,cache_bytes=4096,repeats=1")
    run = devbench(tmp_path, "run", "peaks", *small, *BRIEF, "--profile", "traces")
    (found,) = run.every
    assert run.code == 0
    assert found.profile is None
    assert "No profile: a profile traces steps" in " ".join(found.notes)


def test_a_folder_that_cant_be_written_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    run = devbench(tmp_path, "run", "tabular", "--case", "small", *BRIEF, "--profile", "taken")
    assert run.code == 2
    assert "taken" in run.err
    assert "--profile" in run.err
    assert not run.folder.exists() or not run.every


def read_by_xprof(python: Path, path: Path) -> dict[str, Any]:
    told = subprocess.run([python, "-c", READ, str(path)], check=True, capture_output=True, text=True, timeout=600)
    lines = [json.loads(line) for line in told.stdout.splitlines() if line.startswith("{")]
    return {line["tool"]: line["data"] for line in lines}


def seconds_of(stats: Any, kind: str) -> float:
    """Total seconds of operations of one kind in xprof's table of operations."""
    without_idle = stats[-1]
    rows = [[cell["v"] for cell in row["c"]] for row in without_idle["rows"]]
    return float(sum(row[5] for row in rows if row[2].removeprefix("_") == kind)) / 1e6


@pytest.mark.once
@pytest.mark.parametrize("version", ["2.21", "2.10"])
def test_xprof_reads_what_either_tensorflow_wrote_and_sees_the_same(
    version: str, run: Ended, tmp_path: Path, xprof_python: Path, request: pytest.FixtureRequest
) -> None:
    if version == "2.10":
        python = request.getfixturevalue("directml_python")
        words = ["-m", "bench", "run", "tabular", "--case", "small", "--loop", "step", *BRIEF, "--profile", "traces"]
        subprocess.run([python, *words, "--output", "results"], check=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
        found = profile(Ended(0, "", "", tmp_path / "results"), "step")
    else:
        found = profile(run, "step")
    told = read_by_xprof(xprof_python, trace(found))
    assert told["trace_viewer"]["traceEvents"]
    steps = told["overview_page"][1]["rows"]
    assert len(steps) >= found.steps - 2  # it leaves out those that it does not see whole
    busiest = next(each for each in found.operations if "MatMul" in each.name)
    assert seconds_of(told["framework_op_stats"], busiest.name) == pytest.approx(busiest.seconds * found.steps, rel=0.1)
