"""How soon `devbench explain` names the cause of planted programs, and how often it is right.

`python -m benchmarks.explain [--busy] [--runs RUNS] [--until SECONDS] [--append FILE] [--cases FOLDER] [PROGRAM…]`
explains each program of `benchmarks/planted` RUNS times. Default: all programs, once. With `--cases`, it explains the
programs in FOLDER instead (`benchmarks/cases.py`). With `--busy`, another process keeps one core busy
meanwhile. With `--until`, each explanation is interrupted after so many seconds, and the explanation so far is scored.
With `--append`, the runs are added to a file, and the summary is of all runs in it. So a long measurement can be
divided.

For each planted program, it measures first what the cause takes: the program with and without it, interleaved. Then it
prints for each explanation when the first provisional sentence came, when a line named the cause, when everything was
known, the place of the cause in the answer, the share that the explanation gives it, the true share, and how many of
the parts that take at least 5% of the step are known to within 5 points.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

from bench.machine import environment, system
from bench.model.explanation import Explanation
from bench.model.result import Result
from benchmarks import cases, outcomes, planted

FOLDER = Path(planted.__file__).parent
PROVISIONAL = re.compile(r"^(note: so far|the largest part so far)")
"""What marks a provisional sentence."""

TARGETS = {
    "first sentence": 25.0,
    "cause named": 60.0,
    "all": 300.0,
}
"""Seconds, of issue 25."""

SHARE_ERROR = 0.10
"""How far the share that is given to a cause may be from its true share."""

LARGE_PART = 0.05
"""Share of the step from which a part must be known, to within the same number of points."""


class Run(BaseModel):
    """One run of `devbench explain`.

    Attributes:
        program: name of the program.
        healthy: whether it has no cause.
        busy: whether one core was busy.
        until: seconds after which the explanation was interrupted. None if it was not.
        load: the load average of the last minute, before the run. None on Windows.
        first: seconds until the first provisional sentence. None if none came.
        named: seconds until a line named the cause. None if none did.
        seconds: until the command ended.
        failure: what the command printed last, if it failed; otherwise empty.
        place: place of the cause in the answer, from 1. None if it is not named. For a healthy program, the number of
            causes in the answer.
        share: share of the step that the explanation gives the cause. None if it gives none.
        true_share: share that the cause takes. 0 for a healthy program. None if it is not known.
        large_parts: number of parts that take at least `LARGE_PART` of the step. 0 if most time passes between epochs,
            because the step is then divided only roughly.
        known_parts: number of those that are known to within `LARGE_PART`.
    """

    program: str
    healthy: bool
    busy: bool
    until: float | None
    load: float | None
    first: float | None
    named: float | None
    seconds: float
    failure: str
    place: int | None = None
    share: float | None = None
    true_share: float | None = 0.0
    large_parts: int = 0
    known_parts: int = 0


class Program(NamedTuple):
    """A program with its name and its cause, a regular expression that finds it in the answer. Empty if it has none."""

    name: str
    file: Path
    cause: str


def planted_programs() -> list[Program]:
    """Return the programs of `benchmarks/planted`."""
    names = sorted(module.name for module in pkgutil.iter_modules([str(FOLDER)]))
    return [
        Program(name, FOLDER / f"{name}.py", importlib.import_module(f"benchmarks.planted.{name}").CAUSE)
        for name in names
    ]


def cases_in(folder: Path) -> list[Program]:
    """Return the programs of `benchmarks/cases.py` that are in a folder."""
    files = [(name, folder / name / file) for name in cases.CAUSES for file in cases.FILES]
    return [Program(f"{name}/{file.stem}", file, cases.CAUSES[name]) for name, file in files if file.exists()]


def explain(program: Program, folder: Path, busy: bool, until: float | None, true: float | None) -> Run:
    """Explain a program, and note when its lines came.

    Args:
        program: what to explain.
        folder: for results.
        busy: whether to keep one core busy.
        until: seconds after which to interrupt the explanation.
        true: share that the cause takes. None if it is not known.
    """
    cause = program.cause
    load = environment.load_average()
    command = [*system.python("bench"), "explain", str(program.file), "--json", "--output", str(folder)]
    with busy_core() if busy else nullcontext():
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stderr is not None
        out: list[str] = []
        reader = threading.Thread(target=lambda stream: out.append(stream.read()), args=(process.stdout,))
        reader.start()
        interrupt = threading.Timer(until or 0.0, process.send_signal, [signal.SIGINT])
        if until:
            interrupt.start()
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
        interrupt.cancel()
        reader.join()
        seconds = time.monotonic() - started
    run = Run(
        program=program.name,
        healthy=not cause,
        busy=busy,
        until=until,
        load=load,
        first=first,
        named=named,
        seconds=seconds,
        failure="",
        true_share=true,
    )
    if process.returncode not in ((0, 130) if until else (0,)) or not out[0]:
        return run.model_copy(update={"failure": "".join(lines)[-300:] or f"exit code {process.returncode}"})
    return _scored(run, Explanation.model_validate(json.loads(out[0])["explanation"]), cause)


def _scored(run: Run, explanation: Explanation, cause: str) -> Run:
    """Return the run with what its explanation says."""
    parts = [] if explanation.steps_are_minor else explanation.parts
    large = [part.share for part in parts if part.share.value >= LARGE_PART]
    widths = [part.high - part.low for part in large if part.low is not None and part.high is not None]
    update: dict[str, object] = {
        "large_parts": len(large),
        "known_parts": sum(width <= 2 * LARGE_PART for width in widths),
    }
    if cause:
        update |= {"place": rank(explanation, cause), "share": share(explanation, cause)}
        if run.named is None and re.search(cause, explanation.model_dump_json()):
            update["named"] = run.seconds
    else:
        update["place"] = len(explanation.answer)
    return run.model_copy(update=update)


def true_share(program: Program, folder: Path) -> float | None:
    """Return the share of the step that the planted cause takes, by the program with and without it. None for a case.

    For a cause between epochs, it is the share of the training. An explanation gives its shares in the same way.
    """
    if program.file.parent != FOLDER:
        return None
    command = [*system.python("bench"), "run", str(program.file), "--vary", "planted=yes,no", "--json"]
    run = subprocess.run([*command, "--output", str(folder)], capture_output=True, text=True, check=True)
    results = [Result.model_validate(document) for document in json.loads(run.stdout)["results"]]
    between_epochs = getattr(importlib.import_module(f"benchmarks.planted.{program.name}"), "BETWEEN_EPOCHS", False)
    seconds = _training_seconds if between_epochs else _step_seconds
    planted_seconds, other = map(seconds, results)
    return 1 - other / planted_seconds


def _training_seconds(result: Result) -> float:
    """Return the seconds of a training after its first step."""
    assert result.projection is not None
    starts = [
        sum(sample.phases.get(name, 0.0) for name in ("build", "prepare", "trace", "first_step"))
        for sample in result.samples
    ]
    return result.projection.build_and_fit_seconds.value - statistics.fmean(starts)


def _step_seconds(result: Result) -> float:
    assert result.summary.step_seconds_mean is not None
    return result.summary.step_seconds_mean.value


def rank(explanation: Explanation, cause: str) -> int | None:
    """Return the place of the cause in the answer, from 1. None if it is not named."""
    for place, change in enumerate(explanation.answer, 1):
        if re.search(cause, json.dumps(change.model_dump(mode="json"))):
            return place
    return None


def share(explanation: Explanation, cause: str) -> float | None:
    """Return the share that an explanation gives to the cause, which may be several parts. None if it gives none."""
    named = [change for change in explanation.answer if re.search(cause, f"{change.name} {change.cause}")]
    shares = [change.share for change in named if change.share is not None]
    return min(1.0, sum(shares)) if shares else None


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


def line(run: Run) -> str:
    """Return the line of a run."""
    times = " ".join(map(seconds_of, (run.first, run.named, run.seconds)))
    if run.failure:
        return f"{run.program:20} {times}  failed: {run.failure}"
    given = "    –" if run.share is None else f"{run.share:5.0%}"
    true = "    –" if run.true_share is None else f"{run.true_share:5.0%}"
    parts = f"{run.known_parts} of {run.large_parts}"
    return f"{run.program:20} {times}  {run.place!s:>5}  {given} {true}  {parts}"


def print_summary(runs: Sequence[Run]) -> None:
    """Print how often the cause came first, how often its share was right, and the median times."""
    scored = [run for run in runs if not run.failure]
    planted_runs, healthy = [run for run in scored if not run.healthy], [run for run in scored if run.healthy]
    compared = [(run.share, run.true_share) for run in planted_runs if run.true_share is not None]
    right = [share for share, true in compared if share is not None and abs(share - true) <= SHARE_ERROR]
    print(f"{len(runs)} runs, {len(runs) - len(scored)} failed")
    print(f"cause first: {sum(run.place == 1 for run in planted_runs)} of {len(planted_runs)}", end="; ")
    print(f"in the first two: {sum(run.place in (1, 2) for run in planted_runs)}", end="; ")
    print(f"share within {SHARE_ERROR * 100:.0f} points: {len(right)} of {len(compared)}", end="; ")
    print(f"healthy programs given a cause: {sum(map(bool, (run.place for run in healthy)))} of {len(healthy)}")
    known, large = sum(run.known_parts for run in scored), sum(run.large_parts for run in scored)
    print(
        f"parts of {LARGE_PART:.0%} or more that are known to within {LARGE_PART * 100:.0f} points: {known} of {large}"
    )
    times: dict[str, list[float | None]] = {
        "first sentence": [run.first for run in scored],
        "cause named": [run.named for run in planted_runs],
        "all": [run.seconds for run in scored if run.until is None],
    }
    for name, values in times.items():
        seconds = [value for value in values if value is not None]
        if seconds:
            print(
                f"{name}: median {statistics.median(seconds):.0f} s, longest {max(seconds):.0f} s, "
                f"{sum(value <= TARGETS[name] for value in seconds)} of {len(values)} in time ({TARGETS[name]:.0f} s)"
            )


def main() -> None:
    """Explain the programs, print one line for each explanation, and summarize."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--until", type=float, metavar="SECONDS")
    parser.add_argument("--append", type=Path, metavar="FILE")
    parser.add_argument("--cases", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    programs = cases_in(arguments.cases) if arguments.cases else planted_programs()
    if unknown := set(arguments.programs) - {program.name for program in programs}:
        parser.error(f"no program {', '.join(sorted(unknown))}; there are {', '.join(p.name for p in programs)}")
    programs = [program for program in programs if program.name in arguments.programs] or programs
    runs = outcomes.read(arguments.append, Run)
    print(f"{'program':20} {'first':>6} {'named':>6} {'all':>6}  place  share  true  parts", flush=True)
    for program in programs:
        with tempfile.TemporaryDirectory(prefix="devbench-") as folder:
            known = next((run.true_share for run in runs if run.program == program.name and run.true_share), None)
            truth = (known or true_share(program, Path(folder))) if program.cause else 0.0
            for _ in range(arguments.runs):
                runs.append(explain(program, Path(folder), arguments.busy, arguments.until, truth))
                print(line(runs[-1]), flush=True)
                outcomes.append(arguments.append, runs[-1])
    print_summary(runs)


if __name__ == "__main__":
    main()
