"""How soon `devbench explain` names the cause of planted programs, and how often it is right.

`python -m benchmarks.explain [busy] [RUNS] [PROGRAM…]` explains each program of `benchmarks/planted` RUNS times.
Default: all programs, once. With `busy`, another process keeps one core busy meanwhile.

For each program, it measures first what the planted cause takes: the program with and without it, interleaved. Then it
prints for each explanation when the first provisional sentence came, when a line named the cause, when everything was
known, the place of the cause in the answer, and the share that the explanation gives it.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.machine import system
from bench.model.explanation import Explanation
from bench.model.result import Result
from benchmarks import planted

FOLDER = Path(planted.__file__).parent
PROVISIONAL = re.compile(r"so far")
"""What marks a provisional sentence."""

TARGETS = {
    "first sentence": 25.0,
    "cause named": 60.0,
    "all": 300.0,
}
"""Seconds, of issue 25."""

SHARE_ERROR = 0.10


@dataclass
class Explained:
    """One run of `devbench explain`.

    Attributes:
        explanation: the document. None if the command failed.
        first: seconds until the first provisional sentence. None if none came.
        named: seconds until a line named the cause. None if none did.
        seconds: until the command ended.
        output: what the command printed, for a failure.
    """

    explanation: Explanation | None
    first: float | None
    named: float | None
    seconds: float
    output: str


def explain(program: str, cause: str, folder: Path) -> Explained:
    """Explain a program, and note when its lines came."""
    started = time.monotonic()
    command = [*system.python("bench"), "explain", str(FOLDER / f"{program}.py"), "--json", "--output", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    out: list[str] = []
    reader = threading.Thread(target=lambda stream: out.append(stream.read()), args=(process.stdout,))
    reader.start()
    first = named = None
    lines = []
    for line in process.stderr:
        lines.append(line)
        elapsed = time.monotonic() - started
        if first is None and PROVISIONAL.search(line):
            first = elapsed
        if named is None and cause and PROVISIONAL.search(line) and re.search(cause, line):
            named = elapsed
    process.wait()
    reader.join()
    seconds = time.monotonic() - started
    document = json.loads(out[0])["explanation"] if process.returncode == 0 else None
    explanation = Explanation.model_validate(document) if document else None
    if named is None and explanation is not None and cause and re.search(cause, explanation.model_dump_json()):
        named = seconds
    return Explained(explanation, first, named, seconds, "".join(lines))


def true_share(program: str, folder: Path) -> float:
    """Return the share of the training that the planted cause takes, by the program with and without it."""
    command = [*system.python("bench"), "run", str(FOLDER / f"{program}.py"), "--vary", "planted=yes,no", "--json"]
    run = subprocess.run([*command, "--output", str(folder)], capture_output=True, text=True, check=True)
    results = [Result.model_validate(document) for document in json.loads(run.stdout)["results"]]
    planted_seconds, other = (_training_seconds(result) for result in results)
    return 1 - other / planted_seconds


def _training_seconds(result: Result) -> float:
    """Return the seconds of a training after its first step. Of a loop without an end, those of a step."""
    if result.projection is not None:
        starts = [
            sum(sample.phases.get(name, 0.0) for name in ("build", "prepare", "trace", "first_step"))
            for sample in result.samples
        ]
        return result.projection.build_and_fit_seconds.value - statistics.fmean(starts)
    assert result.summary.step_seconds_mean is not None
    return result.summary.step_seconds_mean.value


def rank(explanation: Explanation, cause: str) -> int | None:
    """Return the place of the cause in the answer, from 1. None if it is not named."""
    for place, change in enumerate(explanation.answer, 1):
        if re.search(cause, json.dumps(change.model_dump(mode="json"))):
            return place
    return None


def share(explanation: Explanation, cause: str) -> float | None:
    """Return the share that an explanation gives to the cause. None if it gives none."""
    for change in explanation.answer:
        if re.search(cause, json.dumps(change.model_dump(mode="json"))):
            return change.share
    return None


@contextmanager
def busy_core() -> Iterator[None]:
    """Keep one core busy with another process."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def seconds_of(value: float | None) -> str:
    """Return seconds in a column."""
    return "     –" if value is None else f"{value:5.0f}s"


def main(arguments: list[str]) -> None:
    """Explain the programs and print one line for each explanation."""
    busy = "busy" in arguments
    runs = next((int(argument) for argument in arguments if argument.isdecimal()), 1)
    names = [argument for argument in arguments if argument != "busy" and not argument.isdecimal()]
    names = names or sorted(module.name for module in pkgutil.iter_modules([str(FOLDER)]))
    print(f"{'program':20} {'first':>6} {'named':>6} {'all':>6}  place  share  true", flush=True)
    explained: list[tuple[str, Explained]] = []
    for name in names:
        cause = importlib.import_module(f"benchmarks.planted.{name}").CAUSE
        with tempfile.TemporaryDirectory(prefix="devbench-") as folder:
            truth = true_share(name, Path(folder)) if cause else 0.0
            for _ in range(runs):
                if busy:
                    with busy_core():
                        run = explain(name, cause, Path(folder))
                else:
                    run = explain(name, cause, Path(folder))
                explained.append((cause, run))
                print(_line(name, cause, run, truth), flush=True)
    _print_summary(explained)


def _line(name: str, cause: str, run: Explained, truth: float) -> str:
    times = " ".join(map(seconds_of, (run.first, run.named, run.seconds)))
    if run.explanation is None:
        return f"{name:20} {times}  failed: {run.output[-300:]}"
    place = rank(run.explanation, cause) if cause else len(run.explanation.answer)
    given = share(run.explanation, cause) if cause else None
    return f"{name:20} {times}  {place!s:>5}  {'    –' if given is None else f'{given:5.0%}'} {truth:5.0%}"


def _print_summary(explained: list[tuple[str, Explained]]) -> None:
    """Print how often the cause came first, and the median times."""
    complete = [(cause, run.explanation) for cause, run in explained if run.explanation is not None]
    places = [rank(explanation, cause) for cause, explanation in complete if cause]
    healthy = [len(explanation.answer) for cause, explanation in complete if not cause]
    print(f"cause first: {sum(place == 1 for place in places)} of {len(places)}", end="; ")
    print(f"in the first two: {sum(place in (1, 2) for place in places)}", end="; ")
    print(f"healthy programs given a cause: {sum(map(bool, healthy))} of {len(healthy)}")
    times: dict[str, list[float | None]] = {
        "first sentence": [run.first for _, run in explained],
        "cause named": [run.named for cause, run in explained if cause],
        "all": [run.seconds for _, run in explained],
    }
    for name, values in times.items():
        known = [value for value in values if value is not None]
        if known:
            print(
                f"{name}: median {statistics.median(known):.0f} s, longest {max(known):.0f} s, "
                f"{len(known)} of {len(values)} known (target {TARGETS[name]:.0f} s)"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
