"""Each cause, planted in a file of its own, is found with its line and its fix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from background_runs import SECONDS
from devbench_process import Ended, started

from bench.model.explanation import Explanation
from bench.render.sentences import explanation as sentences
from bench.render.terminal import explanation as explanations

USERFILES = Path(__file__).parent / "explained_programs"
pytestmark = [pytest.mark.timeout(SECONDS), pytest.mark.once, pytest.mark.quiet]

ASKED = {
    "slow_input": ("--loop", "step", "--max-processes", "2", "--max-time", "30m", "--profile", "traces"),
    "reads_loss": ("--max-processes", "1"),
    "retraces": ("--max-processes", "1"),
    "computes_float64": ("--max-processes", "1"),
    "calls_python": ("--max-processes", "1"),
    "shuffle_buffer": ("--max-processes", "1"),
    "converts_rows": ("--xla", "off", "--max-processes", "2", "--max-time", "30m"),
    "large_arrays": ("--loop", "host-batches", "--max-processes", "3", "--max-time", "30m"),
    "small_steps": ("--loop", "resident", "--xla", "on", "--max-processes", "2", "--max-time", "30m"),
}


def explain(folder: Path, name: str, words: tuple[str, ...]) -> Ended:
    asked = ("explain", str(USERFILES / f"{name}.py"), "--no-changes", "--json", *words)
    with started(
        folder / name, *asked, XDG_CACHE_HOME=str(folder)
    ) as run:  # so that the peaks of the machine are measured once
        run.process.wait(timeout=SECONDS)
        return run.end()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Ended]]]:
    folder = tmp_path_factory.mktemp("explain")
    pool = ThreadPoolExecutor(2)
    try:
        yield {name: pool.submit(explain, folder, name, words) for name, words in ASKED.items()}
    finally:
        pool.shutdown(cancel_futures=True)


def explanation(runs: dict[str, Future[Ended]], name: str) -> dict[str, Any]:
    ended = runs[name].result()
    assert ended.code == 0, ended.said()
    found: dict[str, Any] = json.loads(ended.out)["explanation"]
    return found


def finding(runs: dict[str, Future[Ended]], name: str, cause: str) -> dict[str, Any]:
    found = explanation(runs, name)["findings"]
    assert cause in [each["cause"] for each in found], found
    told: dict[str, Any] = next(each for each in found if each["cause"] == cause)
    assert told["fix"]
    return told


def part(runs: dict[str, Future[Ended]], name: str, what: str) -> dict[str, Any]:
    """Return a part of the ladder. It takes most of the step and has a fix."""
    told: dict[str, Any] = next(each for each in explanation(runs, name)["parts"] if each["name"] == what)
    assert told["measurable"], told
    assert told["share"]["value"] > 0.5
    return told


def line_of(name: str, text: str) -> str:
    """Return the file name and line number of the line that contains a text, as findings show it."""
    lines = (USERFILES / f"{name}.py").read_text(encoding="utf-8").splitlines()
    return f"{name}.py line {next(n for n, line in enumerate(lines, 1) if text in line)}"


def test_slow_input_is_found_with_its_slow_stage(runs: dict[str, Future[Ended]]) -> None:
    assert "prefetch" in part(runs, "slow_input", "input")["fix"]
    told = finding(runs, "slow_input", "slow input")
    assert line_of("slow_input", "def load") in told["sentence"]
    assert "load" in told["evidence"]


def test_a_loss_that_is_read_in_each_step_is_found_with_its_line(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "reads_loss", "per-step synchronization")
    assert "1 number" in told["sentence"]
    assert line_of("reads_loss", "yield float(loss)") in told["sentence"]


def test_eager_operations_are_counted_and_named(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "reads_loss", "eager execution")
    assert "MatMul" in told["sentence"]
    assert "tf.function" in told["fix"]


def test_a_function_that_is_traced_in_each_step_is_found(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "retraces", "retracing")
    assert "scaled (retraces.py line" in told["sentence"]


def test_float64_is_found_with_its_line(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "computes_float64", "float64")
    assert line_of("computes_float64", "x @ x") in told["sentence"]


def test_rows_that_are_converted_in_each_step_are_found_with_their_share(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "converts_rows", "float64")
    assert told["sentence"] == "Batches arrive as float64 and are converted in each step."
    assert told["share"] > 0.5
    assert "as-written minus host-batches is" in told["evidence"]


def test_copies_of_arrays_are_a_part_with_a_fix(runs: dict[str, Future[Ended]]) -> None:
    assert "Pass tensors to a step, not arrays" in part(runs, "large_arrays", "copies")["fix"]


def test_dispatch_of_small_steps_is_a_part_with_a_fix(runs: dict[str, Future[Ended]]) -> None:
    assert "larger batch" in part(runs, "small_steps", "dispatch")["fix"]


def test_a_partial_batch_that_compiles_again_is_found_with_its_share_of_the_epoch(
    runs: dict[str, Future[Ended]],
) -> None:
    told = finding(runs, "small_steps", "partial last batch")
    assert told["share"] > 0.5
    assert "drop_remainder" in told["fix"]


def test_a_trace_is_compared_with_the_ladder(runs: dict[str, Future[Ended]]) -> None:
    found = Explanation.model_validate(explanation(runs, "slow_input"))
    assert found.profile is not None
    assert found.profile.input_share > 0.5
    assert part(runs, "slow_input", "input")["share"]["value"] > 0.5
    assert list(Path(found.profile.folder).glob("plugins/profile/*/*.xplane.pb"))
    (traced,) = [
        each for each in explanations.text(found, width=9999).split("\n\n") if each.startswith("Profiler trace")
    ]
    assert f"waiting for input {found.profile.input_share:.0%}" in traced
    assert all(each in traced for each in sentences.trace_check(found))


def test_python_inside_the_graph_is_found_with_its_line(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "calls_python", "Python inside the graph")
    assert line_of("calls_python", "numpy_function") in told["sentence"]


def test_a_shuffle_buffer_that_fills_is_found(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "shuffle_buffer", "filling the shuffle buffer")
    assert "shuffle(400)" in told["sentence"]
    assert "each epoch" in told["sentence"]


def test_a_cause_that_was_not_planted_is_not_found(runs: dict[str, Future[Ended]]) -> None:
    for name in ("computes_float64", "calls_python"):
        causes = {each["cause"] for each in explanation(runs, name)["findings"]}
        assert not causes & {"retracing", "per-step synchronization", "slow input", "partial last batch"}
