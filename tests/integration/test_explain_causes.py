"""Each cause, planted in a file that devbench has never seen, is named with its line and its cure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from commandline import Ended, started
from measuring import SECONDS

USERFILES = Path(__file__).parent / "userfiles_explain"
pytestmark = [pytest.mark.timeout(SECONDS), pytest.mark.once]

ASKED = {
    "slow_input": ("--loop", "step", "--max-processes", "2", "--max-time", "30m"),
    "reads_eagerly": ("--max-processes", "1"),
    "retraces": ("--max-processes", "1"),
    "doubles": ("--max-processes", "1"),
    "calls_python": ("--max-processes", "1"),
    "shuffles": ("--max-processes", "1"),
}


def explain(folder: Path, name: str, words: tuple[str, ...]) -> Ended:
    asked = ("explain", str(USERFILES / f"{name}.py"), "--no-changes", "--json", *words)
    with started(folder / name, *asked, XDG_CACHE_HOME=str(folder)) as run:  # the machine's peaks are measured once
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
    assert told["cure"]
    return told


def line_of(name: str, text: str) -> str:
    """How the line of a file that holds this text is told."""
    lines = (USERFILES / f"{name}.py").read_text(encoding="utf-8").splitlines()
    return f"{name}.py line {next(n for n, line in enumerate(lines, 1) if text in line)}"


def test_slow_input_is_named_with_the_stage_that_is_slow(runs: dict[str, Future[Ended]]) -> None:
    parts = {p["name"]: p for p in explanation(runs, "slow_input")["parts"]}
    assert parts["input"]["share"]["value"] > 0.5
    told = finding(runs, "slow_input", "slow input")
    assert line_of("slow_input", "def load") in told["sentence"]
    assert "load" in told["evidence"]


def test_a_loss_that_is_read_at_each_step_is_named_with_its_line(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "reads_eagerly", "per-step synchronisation")
    assert "1 number" in told["sentence"]
    assert line_of("reads_eagerly", "yield float(loss)") in told["sentence"]


def test_eager_operations_are_counted_and_named(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "reads_eagerly", "eager execution")
    assert "MatMul" in told["sentence"]
    assert "tf.function" in told["cure"]


def test_a_function_that_is_traced_at_each_step_is_named(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "retraces", "retracing")
    assert "scaled (retraces.py line" in told["sentence"]


def test_float64_is_named_with_its_line(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "doubles", "float64")
    assert line_of("doubles", "x @ x") in told["sentence"]


def test_python_within_the_graph_is_named_with_its_line(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "calls_python", "Python within the graph")
    assert line_of("calls_python", "numpy_function") in told["sentence"]


def test_a_shuffle_buffer_that_fills_is_told_apart_from_steps(runs: dict[str, Future[Ended]]) -> None:
    told = finding(runs, "shuffles", "a shuffle buffer that fills")
    assert "shuffle(400)" in told["sentence"]
    assert "each epoch" in told["sentence"]


def test_a_cause_that_was_not_planted_is_not_named(runs: dict[str, Future[Ended]]) -> None:
    for name in ("doubles", "calls_python"):
        causes = {each["cause"] for each in explanation(runs, name)["findings"]}
        assert not causes & {"retracing", "per-step synchronisation", "slow input", "a partial last batch"}
