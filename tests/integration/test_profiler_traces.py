"""Traces by TensorFlow's profiler: written by a run, read by devbench, and read by xprof as TensorBoard reads them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from background_runs import SECONDS
from devbench_process import BRIEF, ROOT, CompletedRun, run_devbench
from warm_workers import WarmServer

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair_groups
from bench.model.profile import Profile
from bench.render.terminal import table

pytestmark = pytest.mark.timeout(SECONDS)

XPROF_SCRIPT = """
import json, sys
from xprof.convert import raw_to_tool_data
for tool in ("overview_page", "framework_op_stats", "trace_viewer"):
    data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], tool, {})
    print(json.dumps({"tool": tool, "data": json.loads(data)}))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, warm_server: WarmServer | None) -> CompletedRun:
    folder = tmp_path_factory.mktemp("profile")
    loops = ("--loop", "fit,step,fused")
    sizes = ("--param", "hidden=2048,batch=256")  # TensorFlow omits operations of up to about 3 µs
    return run_devbench(folder, "run", "tabular", *sizes, *loops, *BRIEF, "--profile", "traces", warm=warm_server)


def profile_of(run: CompletedRun, loop: str) -> Profile:
    (result,) = [result for result in run.results if result.spec.loop == loop]
    assert result.profile is not None, run.text()
    return result.profile


def trace_file(profile: Profile) -> Path:
    (path,) = Path(profile.folder).glob("plugins/profile/*/*.xplane.pb")
    return path


@pytest.mark.parametrize("loop", ["fit", "step", "fused"])
def test_a_trace_divides_a_step_of_each_loop_and_names_its_operations(run: CompletedRun, loop: str) -> None:
    profile = profile_of(run, loop)
    assert trace_file(profile).stat().st_size > 1000
    assert profile.steps >= 5
    assert profile.device_share is not None
    shares = (profile.device_share, profile.input_share, profile.host_share, profile.idle_share)
    assert sum(shares) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in shares)
    assert profile.device_share > 0
    products = [operation for operation in profile.operations if "MatMul" in operation.name]
    assert products, profile.operations
    assert 1.5 <= products[0].calls <= 3.5  # two layers: two fused products forward, three separate products backward
    assert 0 < products[0].seconds < profile.step_seconds


def test_the_table_shows_the_shares_and_the_profiled_steps_are_not_measured(run: CompletedRun) -> None:
    output = table.text(Outcome.of(pair_groups(run.results)), verbose=True)
    assert "share of a traced step" in output
    assert "operations running" in output
    assert all(len(result.samples) == 1 for result in run.results)


def test_a_step_that_waits_for_its_input_shows_in_the_trace(tmp_path: Path, warm_server: WarmServer | None) -> None:
    slow = str(Path(__file__).parent / "explained_programs" / "slow_input.py")
    run = run_devbench(tmp_path, "run", slow, "--loop", "step", *BRIEF, "--profile", "traces", warm=warm_server)
    profile = profile_of(run, "step")
    assert profile.input_share > 0.5
    assert profile.input_share > 5 * (profile.device_share or 0)


def test_a_workload_without_steps_has_a_note_instead_of_a_profile(
    tmp_path: Path, warm_server: WarmServer | None
) -> None:
    small = ("--param", "n=64,memory_bytes=65536,cache_bytes=4096,repeats=1")
    run = run_devbench(tmp_path, "run", "peaks", *small, *BRIEF, "--profile", "traces", warm=warm_server)
    (result,) = run.results
    assert run.code == 0
    assert result.profile is None
    assert "No profile: a profile traces steps" in " ".join(result.notes)


def test_an_unwritable_folder_is_reported_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("a file")
    run = run_devbench(tmp_path, "run", "tabular", "--case", "small", *BRIEF, "--profile", "occupied")
    assert run.code == 2
    assert "occupied" in run.err
    assert "--profile" in run.err
    assert not run.folder.exists() or not run.results


def read_with_xprof(python: Path, path: Path) -> dict[str, Any]:
    process = subprocess.run(
        [python, "-c", XPROF_SCRIPT, str(path)], check=True, capture_output=True, text=True, timeout=600
    )
    lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    return {line["tool"]: line["data"] for line in lines}


def seconds_of(stats: Any, kind: str) -> float:
    """Return the total seconds of operations of one kind in xprof's table of operations."""
    without_idle = stats[-1]
    rows = [[cell["v"] for cell in row["c"]] for row in without_idle["rows"]]
    return float(sum(row[5] for row in rows if row[2].removeprefix("_") == kind)) / 1e6


@pytest.mark.once
@pytest.mark.parametrize("version", ["2.21", "2.10"])
def test_xprof_reads_the_same_figures_from_traces_of_both_tensorflows(
    version: str, run: CompletedRun, tmp_path: Path, xprof_python: Path, request: pytest.FixtureRequest
) -> None:
    if version == "2.10":
        python = request.getfixturevalue("directml_python")
        arguments = [
            "-m",
            "bench",
            "run",
            "tabular",
            "--case",
            "small",
            "--loop",
            "step",
            *BRIEF,
            "--profile",
            "traces",
        ]
        subprocess.run(
            [python, *arguments, "--output", "results"], check=True, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}
        )
        profile = profile_of(CompletedRun(0, "", "", tmp_path / "results"), "step")
    else:
        profile = profile_of(run, "step")
    tools = read_with_xprof(xprof_python, trace_file(profile))
    assert tools["trace_viewer"]["traceEvents"]
    steps = tools["overview_page"][1]["rows"]
    assert len(steps) >= profile.steps - 2  # xprof omits incomplete steps
    busiest = next(operation for operation in profile.operations if "MatMul" in operation.name)
    assert seconds_of(tools["framework_op_stats"], busiest.name) == pytest.approx(
        busiest.seconds * profile.steps, rel=0.1
    )
