"""What-ifs on real programs: in an explanation, with the machine's peaks, and by `--change`."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path

import pytest
from background_runs import SECONDS
from devbench_process import BRIEF, run_devbench
from warm_workers import WarmServer

from bench.config.settings import load
from bench.publish.recorder import Recorder
from bench.session import interleave
from bench.session.worker_servers import WorkerServers
from bench.store import files
from bench.study import explain_levels, explain_what_ifs, peaks
from bench.study.explain import ExplainStudy
from bench.whatif import Program, WhatIf, candidates

EXPLAINED_PROGRAMS = Path(__file__).parent / "explained_programs"
FIT_PIPELINE = str(EXPLAINED_PROGRAMS / "fit_pipeline.py")
FIT_WHAT_IFS = ("parallel-map", "cache", "prefetch", "steps-per-execution", "without-metrics")
"""What-ifs that apply to a bare `fit` of this program."""
pytestmark = pytest.mark.timeout(SECONDS)


def run_study(folder: Path, file: str, trials: int, loops: tuple[str, ...], names: Collection[str]) -> ExplainStudy:
    """Explain a program in a few trials, on some levels and with some what-ifs, all in one session."""
    settings = load(max_processes=str(trials), max_time="30m", backend="cpu", output=str(folder / "results"))
    files.prepare(settings.output)

    def selected(program: Program) -> list[WhatIf]:
        return [what_if for what_if in candidates(program) if what_if.name in names]

    with pytest.MonkeyPatch.context() as patched, WorkerServers() as servers:
        patched.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patched.setattr(explain_levels, "LOOPS", loops)
        patched.setattr(explain_what_ifs, "TOGETHER", 16)
        patched.setattr(explain_what_ifs, "candidates", selected)
        patched.setattr(peaks, "TRIALS", 1)
        if trials == 1:  # ratios are not the subject
            patched.setattr(interleave, "BLOCKS", 8)
        study = ExplainStudy(file, settings, Recorder(settings), servers)
        study.run()
    return study


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> tuple[ExplainStudy, Path]:
    """An explanation with the what-ifs that no other test tries."""
    folder = tmp_path_factory.mktemp("what-ifs")
    names = {*FIT_WHAT_IFS, "graph", "without-callbacks", "batch", "xla"}
    return run_study(folder, FIT_PIPELINE, 1, ("as-written", "fit"), names), folder


@pytest.mark.once
def test_every_what_if_that_applies_is_tried_and_none_fails(explained: tuple[ExplainStudy, Path]) -> None:
    explanation = explained[0].explanation
    assert explanation is not None
    assert {gain.option: gain.failure for gain in explanation.gains if gain.failure} == {}
    fit_options = {f"--change {name}" for name in (*FIT_WHAT_IFS, "without-callbacks")}
    expected = fit_options | {"--param batch=128", "--param batch=512", "--xla on"}  # not 2048: there are 640 rows
    small = {what_if.option for what_if in explanation.untried if what_if.at_most < 0.05}
    assert {gain.option for gain in explanation.gains} == expected - small
    assert all(gain.ratio is not None for gain in explanation.gains)
    assert {gain.unit for gain in explanation.gains if "batch" in gain.option} == {"example"}
    assert explanation.what_if_loop == "fit"  # most what-ifs cannot change the loop inside the program
    own = {gain.option for gain in explanation.gains if gain.loop == "as-written"}
    assert own == {"--change without-callbacks", "--change without-metrics"}  # they change its call of fit


@pytest.mark.once
def test_the_peaks_of_the_machine_are_measured_once_and_cached(explained: tuple[ExplainStudy, Path]) -> None:
    study, folder = explained
    assert study.explanation is not None
    roofline = study.explanation.roofline
    assert roofline is not None
    assert roofline.compute_peak > roofline.flops_per_second > 0
    assert roofline.bytes > 8 * 4 * 32
    (result,) = [result for result in files.results(folder / "results") if result.purpose == "peaks"]
    cached = list((folder / "cache" / "devbench").glob("peaks-*.json"))
    assert len(cached) == 1
    assert result.status == "complete"
    assert {result.parent for result in files.results(folder / "results")} == {study.explanation.id}


@pytest.mark.once
@pytest.mark.quiet
def test_what_ifs_that_are_faster_are_combined_and_the_fastest_command_runs(
    tmp_path: Path, usual_blocks: WarmServer | None
) -> None:
    names = {"cache", "without-callbacks"}
    explanation = run_study(tmp_path, str(EXPLAINED_PROGRAMS / "two_causes.py"), 3, ("as-written",), names).explanation
    assert explanation is not None
    faster = {gain.option: gain for gain in explanation.gains if gain.verdict == "faster"}
    assert set(faster) >= {"--change cache", "--change without-callbacks"}
    assert {gain.cause for gain in faster.values()} >= {"preparing the same batches in each epoch"}
    assert explanation.combined is not None
    assert explanation.combined.ratio is not None
    assert explanation.combined.ratio.value < min(gain.ratio.value for gain in faster.values() if gain.ratio)
    assert explanation.fastest is not None
    command, *arguments = shlex.split(explanation.fastest.command)
    assert command == "devbench"
    (result,) = run_devbench(tmp_path / "again", *arguments, *BRIEF, warm=usual_blocks).results
    assert {"cache", "without-callbacks"} <= set(result.spec.what_ifs)
    assert result.summary.step_seconds is not None
    assert result.summary.step_seconds.value < 0.5 * explanation.step_seconds


def test_all_what_ifs_are_applied_and_recorded_in_the_spec(tmp_path: Path, warm_server: WarmServer | None) -> None:
    names = "cache,prefetch,parallel-map,steps-per-execution,without-callbacks,without-metrics"
    run = run_devbench(tmp_path, "run", FIT_PIPELINE, *BRIEF, "--change", names, warm=warm_server)
    (result,) = run.results
    assert result.status == "complete", run.text()
    assert result.spec.what_ifs == tuple(names.split(","))
    assert result.summary.step_seconds is not None


def test_steps_per_execution_counts_fewer_steps_in_the_last_call_of_an_epoch(
    tmp_path: Path, warm_server: WarmServer | None
) -> None:
    slow = str(EXPLAINED_PROGRAMS / "slow_input.py")  # 10 batches of 48 rows per epoch, 1 ms per row
    options = ("--loop", "fit", "--param", "batch=48", "--change", "steps-per-execution")
    run = run_devbench(tmp_path, "run", slow, *options, *BRIEF, warm=warm_server)
    (result,) = run.results
    assert result.summary.step_seconds is not None, run.text()
    assert result.summary.step_seconds.value > 0.048


def test_a_what_if_that_does_not_apply_is_refused(tmp_path: Path) -> None:
    run = run_devbench(tmp_path, "run", "tabular", "--case", "small", "--loop", "fit", *BRIEF, "--change", "cache")
    assert run.code == 2
    assert "--change cache does not apply to this program and loop" in run.text()


def test_without_metrics_removes_the_operations_of_a_metric(tmp_path: Path, warm_server: WarmServer | None) -> None:
    slow = str(EXPLAINED_PROGRAMS / "slow_metric.py")
    run_devbench(tmp_path, "run", slow, *BRIEF, warm=warm_server)
    run = run_devbench(tmp_path, "run", slow, *BRIEF, "--change", "without-metrics", warm=warm_server)
    without, unchanged = sorted(run.results, key=lambda result: not result.spec.what_ifs)
    assert [result.status for result in run.results] == ["complete", "complete"], run.text()
    operations = [result.samples[0].facts.flops_per_step or 0 for result in (unchanged, without)]
    assert operations[0] > 1e9 > 1e6 > operations[1]  # eight products of 400 x 400 in each step's metric
