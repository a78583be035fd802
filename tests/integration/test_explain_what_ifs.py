"""What-ifs on real programs: in an explanation, with the machine's peaks, and by `--change`."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path

import pytest
from background_runs import SECONDS
from devbench_process import BRIEF, devbench

from bench.config.settings import load
from bench.publish.recorder import Recorder
from bench.store import files
from bench.study import explain, peaks
from bench.study.explain import ExplainStudy
from bench.whatif import Program, WhatIf, candidates

USERFILES = Path(__file__).parent / "explained_programs"
FITS = str(USERFILES / "fit_pipeline.py")
OUTSIDE = ("parallel-map", "cache", "prefetch", "steps-per-execution", "without-metrics")
"""What-ifs that have something to change in a bare fit of this program."""
pytestmark = pytest.mark.timeout(SECONDS)


def explaining(folder: Path, file: str, trials: int, loops: tuple[str, ...], names: Collection[str]) -> ExplainStudy:
    """Explain a program in a few trials, on some levels and with some what-ifs, all in one session."""
    settings = load(max_processes=str(trials), backend="cpu", output=str(folder / "results"))
    files.prepare(settings.output)

    def some(program: Program) -> list[WhatIf]:
        return [each for each in candidates(program) if each.name in names]

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patched.setattr(explain, "LOOPS", loops)
        patched.setattr(explain, "TOGETHER", 16)
        patched.setattr(explain, "candidates", some)
        patched.setattr(peaks, "TRIALS", 1)
        made = ExplainStudy(file, settings, Recorder(settings))
        made.run()
    return made


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> tuple[ExplainStudy, Path]:
    """An explanation with the what-ifs that no other test tries."""
    folder = tmp_path_factory.mktemp("changes")
    return explaining(
        folder, FITS, 1, ("as-written", "fit"), {*OUTSIDE, "graph", "without-callbacks", "batch", "xla"}
    ), folder


@pytest.mark.once
def test_every_what_if_that_applies_is_tried_and_none_fails(explained: tuple[ExplainStudy, Path]) -> None:
    found = explained[0].explanation
    assert found is not None
    assert {gain.option: gain.failure for gain in found.gains if gain.failure} == {}
    outside = {f"--change {name}" for name in OUTSIDE}
    expected = outside | {"--param batch=128", "--param batch=512", "--xla on"}  # not 2048: there are 640 rows
    assert {gain.option for gain in found.gains} == expected
    assert all(gain.ratio is not None for gain in found.gains)
    assert {gain.unit for gain in found.gains if "batch" in gain.option} == {"example"}
    assert found.what_if_loop == "fit"  # a program with a loop of its own is not reached within it


@pytest.mark.once
def test_the_peaks_of_the_machine_are_measured_once_and_kept(explained: tuple[ExplainStudy, Path]) -> None:
    made, folder = explained
    assert made.explanation is not None
    roofline = made.explanation.roofline
    assert roofline is not None
    assert roofline.compute_peak > roofline.flops_per_second > 0
    assert roofline.bytes > 8 * 4 * 32
    (result,) = [each for each in files.results(folder / "results") if each.purpose == "peaks"]
    kept = list((folder / "cache" / "devbench").glob("peaks-*.json"))
    assert len(kept) == 1
    assert result.status == "complete"
    assert {each.parent for each in files.results(folder / "results")} == {made.explanation.id}


@pytest.mark.once
@pytest.mark.quiet
def test_what_ifs_that_are_faster_are_combined_and_the_fastest_command_runs(tmp_path: Path) -> None:
    names = {"cache", "without-callbacks"}
    found = explaining(tmp_path, str(USERFILES / "two_causes.py"), 3, ("as-written",), names).explanation
    assert found is not None
    faster = {gain.option: gain for gain in found.gains if gain.verdict == "faster"}
    assert set(faster) >= {"--change cache", "--change without-callbacks"}
    assert {gain.fixes for gain in faster.values()} >= {"preparing the same batches in each epoch"}
    assert found.combined is not None
    assert found.combined.ratio is not None
    assert found.combined.ratio.value < min(gain.ratio.value for gain in faster.values() if gain.ratio)
    assert found.fastest is not None
    program, *words = shlex.split(found.fastest.command)
    assert program == "devbench"
    (again,) = devbench(tmp_path / "again", *words, *BRIEF).every
    assert {"cache", "without-callbacks"} <= set(again.spec.what_ifs)
    assert again.summary.step_seconds is not None
    assert again.summary.step_seconds.value < 0.5 * found.step_seconds


def test_all_changes_are_applied_and_recorded_in_the_spec(tmp_path: Path) -> None:
    asked = "cache,prefetch,parallel-map,steps-per-execution,without-callbacks,without-metrics"
    ended = devbench(tmp_path, "run", FITS, *BRIEF, "--change", asked)
    (result,) = ended.every
    assert result.status == "complete", ended.said()
    assert result.spec.what_ifs == tuple(asked.split(","))
    assert result.summary.step_seconds is not None


def test_steps_per_execution_counts_fewer_steps_in_the_last_call_of_an_epoch(tmp_path: Path) -> None:
    slow = str(USERFILES / "slow_input.py")  # 48 rows a batch, each a millisecond: 10 batches an epoch, not 32
    ended = devbench(
        tmp_path, "run", slow, "--loop", "fit", "--param", "batch=48", *BRIEF, "--change", "steps-per-execution"
    )
    (result,) = ended.every
    assert result.summary.step_seconds is not None, ended.said()
    assert result.summary.step_seconds.value > 0.048


def test_a_change_that_does_not_apply_is_refused(tmp_path: Path) -> None:
    ended = devbench(tmp_path, "run", "tabular", "--case", "small", "--loop", "fit", *BRIEF, "--change", "cache")
    assert ended.code == 2
    assert "--change cache does not apply to this program and loop" in ended.said()


def test_without_metrics_removes_the_operations_of_a_metric(tmp_path: Path) -> None:
    slow = str(USERFILES / "slow_metric.py")
    devbench(tmp_path, "run", slow, *BRIEF)
    ended = devbench(tmp_path, "run", slow, *BRIEF, "--change", "without-metrics")
    without, as_it_is = sorted(ended.every, key=lambda each: not each.spec.what_ifs)
    assert [each.status for each in ended.every] == ["complete", "complete"], ended.said()
    operations = [each.samples[0].facts.flops_per_step or 0 for each in (as_it_is, without)]
    assert operations[0] > 1e9 > 1e6 > operations[1]  # eight products of 400 x 400 in each step's metric
