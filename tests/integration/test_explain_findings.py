"""Programs that each have one cause of lost time: `explain` reports it with its line and its fix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from background_runs import SECONDS
from devbench_process import CompletedRun, run_devbench
from warm_workers import WarmServer

from bench.model.explanation import Explanation
from bench.render.sentences import explanation as sentences
from bench.render.terminal import explanation as explanations

EXPLAINED_PROGRAMS = Path(__file__).parent / "explained_programs"
pytestmark = [pytest.mark.timeout(SECONDS), pytest.mark.once, pytest.mark.quiet]

OPTIONS = {
    "slow_input": ("--loop", "step", "--max-processes", "2", "--max-time", "30m", "--profile", "traces"),
    "reads_loss": ("--max-processes", "1"),
    "retraces": ("--max-processes", "1"),
    "single_rows": ("--max-processes", "1"),
    "predicts_in_callback": ("--max-processes", "1"),
    "slow_metric": ("--max-processes", "1"),
    "growing_history": ("--max-processes", "2", "--max-time", "30m"),
    "computes_float64": ("--max-processes", "1"),
    "calls_python": ("--max-processes", "1"),
    "shuffle_buffer": ("--max-processes", "1"),
    "converts_rows": ("--xla", "off", "--max-processes", "2", "--max-time", "30m"),
    "large_arrays": ("--loop", "host-batches", "--max-processes", "3", "--max-time", "30m"),
    "small_steps": ("--loop", "resident", "--xla", "on", "--max-processes", "2", "--max-time", "30m"),
}


def explain(folder: Path, name: str, options: tuple[str, ...], warm: WarmServer | None) -> CompletedRun:
    command = ("explain", str(EXPLAINED_PROGRAMS / f"{name}.py"), "--no-changes", "--json", *options)
    # The cache is shared, so that the peaks of the machine are measured once.
    return run_devbench(folder / name, *command, seconds=SECONDS, warm=warm, XDG_CACHE_HOME=str(folder))


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory, usual_blocks: WarmServer | None
) -> Iterator[dict[str, Future[CompletedRun]]]:
    folder = tmp_path_factory.mktemp("explain")
    pool = ThreadPoolExecutor(2)
    try:
        yield {name: pool.submit(explain, folder, name, options, usual_blocks) for name, options in OPTIONS.items()}
    finally:
        pool.shutdown(cancel_futures=True)


def explanation_of(runs: dict[str, Future[CompletedRun]], name: str) -> dict[str, Any]:
    run = runs[name].result()
    assert run.code == 0, run.text()
    document: dict[str, Any] = json.loads(run.out)["explanation"]
    return document


def find(runs: dict[str, Future[CompletedRun]], name: str, cause: str) -> dict[str, Any]:
    findings = explanation_of(runs, name)["findings"]
    assert cause in [finding["cause"] for finding in findings], findings
    match: dict[str, Any] = next(finding for finding in findings if finding["cause"] == cause)
    assert match["fix"]
    return match


def part(runs: dict[str, Future[CompletedRun]], name: str, part_name: str) -> dict[str, Any]:
    """Return a part of the ladder. It takes most of the step and has a fix."""
    match: dict[str, Any] = next(part for part in explanation_of(runs, name)["parts"] if part["name"] == part_name)
    assert match["measurable"], match
    assert match["share"]["value"] > 0.5
    return match


def line_of(name: str, text: str) -> str:
    """Return the file name and line number of the line that contains a text, as findings show it."""
    lines = (EXPLAINED_PROGRAMS / f"{name}.py").read_text(encoding="utf-8").splitlines()
    return f"{name}.py line {next(n for n, line in enumerate(lines, 1) if text in line)}"


def test_slow_input_is_reported_with_its_slow_stage(runs: dict[str, Future[CompletedRun]]) -> None:
    fix = part(runs, "slow_input", "input")["fix"]
    assert "num_parallel_calls" in fix
    assert "prefetch" not in fix  # the pipeline has it
    finding = find(runs, "slow_input", "slow input")
    assert line_of("slow_input", "def load") in finding["sentence"]
    assert "load" in finding["evidence"]


def test_a_loss_that_is_read_in_each_step_is_reported_with_its_line(runs: dict[str, Future[CompletedRun]]) -> None:
    finding = find(runs, "reads_loss", "per-step synchronization")
    assert "1 number" in finding["sentence"]
    assert line_of("reads_loss", "yield float(loss)") in finding["sentence"]


def test_eager_operations_are_counted_and_named(runs: dict[str, Future[CompletedRun]]) -> None:
    finding = find(runs, "reads_loss", "eager execution")
    assert "MatMul" in finding["sentence"]
    assert "tf.function" in finding["fix"]


def test_eager_operations_take_a_larger_share_of_the_step_than_a_read_after_it(
    runs: dict[str, Future[CompletedRun]],
) -> None:
    eager = find(runs, "reads_loss", "eager execution")["share"]
    assert eager > 0.5
    assert find(runs, "reads_loss", "per-step synchronization")["share"] < eager / 3


def test_a_function_that_is_traced_in_each_step_is_reported(runs: dict[str, Future[CompletedRun]]) -> None:
    finding = find(runs, "retraces", "retracing")
    assert "scaled (retraces.py line" in finding["sentence"]
    assert "because its argument number changes, for example from" in finding["sentence"]
    assert finding["fix"].startswith("Pass number as a tensor")
    assert finding["share"] > 0.5


def test_calls_that_build_a_dataset_for_each_row_are_reported_with_their_lines(
    runs: dict[str, Future[CompletedRun]],
) -> None:
    finding = find(runs, "single_rows", "a new dataset for each call")
    assert "predict on 1 row" in finding["sentence"]
    assert "fit on 1 row" in finding["sentence"]
    for name in ("predict", "fit"):
        assert name in finding["sentence"]
        assert line_of("single_rows", f"model.{name}(").split()[-1] in finding["sentence"]
    assert "train_on_batch" in finding["fix"]
    assert finding["share"] > 0.8
    causes = [found["cause"] for found in explanation_of(runs, "single_rows")["findings"]]
    assert "retracing" not in causes
    assert "per-step synchronization" not in causes  # what predict returns is read, whoever calls it


def test_a_callback_that_predicts_after_each_batch_is_reported_with_its_share(
    runs: dict[str, Future[CompletedRun]],
) -> None:
    finding = find(runs, "predicts_in_callback", "callbacks and logging")
    assert "HoldOut (calls predict)" in finding["sentence"]
    assert finding["share"] > 0.5


def test_metrics_that_take_much_of_the_step_are_reported(runs: dict[str, Future[CompletedRun]]) -> None:
    finding = find(runs, "slow_metric", "metrics in each step")
    assert "slow" in finding["sentence"]
    assert finding["share"] > 0.5


def test_steps_that_take_longer_and_longer_are_reported(runs: dict[str, Future[CompletedRun]]) -> None:
    finding = find(runs, "growing_history", "steps that take longer and longer")
    assert finding["share"] > 0.5


def test_float64_is_reported_with_its_line(runs: dict[str, Future[CompletedRun]]) -> None:
    finding = find(runs, "computes_float64", "float64")
    assert line_of("computes_float64", "x @ x") in finding["sentence"]


def test_rows_that_are_converted_in_each_step_are_reported_with_their_share(
    runs: dict[str, Future[CompletedRun]],
) -> None:
    finding = find(runs, "converts_rows", "float64")
    assert finding["sentence"] == "Batches arrive as float64 and are converted in each step."
    assert finding["share"] > 0.5
    assert "as-written minus host-batches is" in finding["evidence"]


def test_copies_of_arrays_are_a_part_with_a_fix(runs: dict[str, Future[CompletedRun]]) -> None:
    assert "Pass tensors to a step, not arrays" in part(runs, "large_arrays", "copies")["fix"]


def test_dispatch_of_small_steps_is_a_part_with_a_fix(runs: dict[str, Future[CompletedRun]]) -> None:
    assert "larger batch" in part(runs, "small_steps", "dispatch")["fix"]


def test_a_partial_batch_that_compiles_again_is_reported_with_its_share_of_all_steps(
    runs: dict[str, Future[CompletedRun]],
) -> None:
    finding = find(runs, "small_steps", "partial last batch")
    assert finding["share"] > 0.5
    assert "drop_remainder" in finding["fix"]


def test_a_trace_is_compared_with_the_ladder(runs: dict[str, Future[CompletedRun]]) -> None:
    explanation = Explanation.model_validate(explanation_of(runs, "slow_input"))
    assert explanation.profile is not None
    assert explanation.profile.input_share > 0.5
    assert part(runs, "slow_input", "input")["share"]["value"] > 0.5
    assert list(Path(explanation.profile.folder).glob("plugins/profile/*/*.xplane.pb"))
    paragraphs = explanations.text(explanation, width=9999).split("\n\n")
    (trace_text,) = [paragraph for paragraph in paragraphs if paragraph.startswith("Profiler trace")]
    assert f"waiting for input {explanation.profile.input_share:.0%}" in trace_text
    assert all(sentence in trace_text for sentence in sentences.trace_check(explanation))


def test_python_inside_the_graph_is_reported_with_its_line(runs: dict[str, Future[CompletedRun]]) -> None:
    finding = find(runs, "calls_python", "Python inside the graph")
    assert line_of("calls_python", "numpy_function") in finding["sentence"]


def test_a_shuffle_buffer_that_fills_is_reported(runs: dict[str, Future[CompletedRun]]) -> None:
    finding = find(runs, "shuffle_buffer", "filling the shuffle buffer")
    assert "shuffle(400)" in finding["sentence"]
    assert "each epoch" in finding["sentence"]


def test_a_finding_whose_cause_is_absent_is_not_reported(runs: dict[str, Future[CompletedRun]]) -> None:
    for name in ("computes_float64", "calls_python"):
        causes = {finding["cause"] for finding in explanation_of(runs, name)["findings"]}
        assert not causes & {"retracing", "per-step synchronization", "slow input", "partial last batch"}
