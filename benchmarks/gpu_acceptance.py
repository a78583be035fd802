"""Run devbench on a machine with a GPU, judge what it says, and pack the results for a report.

`python -m benchmarks.gpu_acceptance [--only NAME,…] [--max-time SECONDS] [--output DIR] [--cpu]`, or
`make gpu-acceptance`. It takes at most 25 minutes. `--judge` judges the outputs in DIR again, without running anything.
`--cpu` runs a short part of it on the CPU, to test the program itself. docs/gpu-acceptance.md lists the commands and
what must hold.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import gpu_conditions as conditions
from benchmarks.gpu_conditions import Condition, Judge, Output

ROOT = Path(__file__).resolve().parent.parent
TOTAL_SECONDS = 25 * 60.0
CPU_SECONDS = 10.0
GRACE_SECONDS = 60.0
"""How much longer than its `--max-time` a command may take. A first start may compile kernels."""
TRAINING_SECONDS = 120.0
"""How much longer `--full` may take, which trains once more after its `--max-time`."""


@dataclass(frozen=True)
class Check:
    """A command and what must hold for its output.

    Args:
        name: its name.
        command: the arguments of Python. {devices} is `cpu,cuda` and {gpu} is `cuda`; with `--cpu`, both are `cpu`.
        judge: what must hold.
        seconds: the value of `--max-time`; None if the command has no such option.
        cpu: whether `--cpu` runs it.
        grace: seconds that it may take longer than its `--max-time`.
    """

    name: str
    command: str
    judge: Judge
    seconds: float | None = None
    cpu: bool = False
    grace: float = GRACE_SECONDS


RUN = "-m bench run"
SCRIPT = "{root}/benchmarks/gpu_training.py"
CHECKS = (
    Check("doctor", "-m bench doctor --backend {gpu}", conditions.doctor, cpu=True),
    Check("device-scope", "-m benchmarks.device_scope", conditions.device_scope),
    Check("cifar", f"{RUN} cifar --data sample --backend {{devices}}", conditions.gpu_is_faster, 90, cpu=True),
    Check("mnist", f"{RUN} mnist --data sample --backend {{devices}}", conditions.compared, 90),
    Check("matmul", f"{RUN} matmul --loop step --backend {{devices}}", conditions.compared, 60),
    Check(
        "full",
        f"{RUN} cifar --data sample --param epochs=2 --backend {{gpu}} --full",
        conditions.projected,
        90,
        grace=TRAINING_SECONDS,
    ),
    Check(
        "explain",
        "-m bench explain tabular --case small --no-changes --profile traces --backend {gpu}",
        conditions.explained,
        240,
    ),
    Check("script", f"{RUN} {SCRIPT} --backend {{devices}}", conditions.unchanged_script, 60),
    Check(
        "explain-script", f"-m bench explain {SCRIPT} --no-changes --backend {{gpu}}", conditions.explained_input, 180
    ),
    Check("peaks", f"{RUN} peaks --backend {{gpu}} --param n={{n}}", conditions.peaks, 90, cpu=True),
    Check("transfer", f"{RUN} transfer --backend {{gpu}}", conditions.copied, 60),
    Check("op-granularity", f"{RUN} op-granularity --case add,matmul --backend {{gpu}}", conditions.measured, 60),
    Check(
        "sweep",
        "-m bench sweep tabular --case small --loop step --param batch=16..256 --backend {devices}",
        conditions.swept,
        200,
    ),
    Check(
        "out-of-memory", f"{RUN} {{root}}/benchmarks/out_of_memory.py --backend {{gpu}}", conditions.out_of_memory, 30
    ),
    Check("warm-start", f"{RUN} cifar --data sample --backend {{gpu}}", conditions.started_warm, 45),
)
"""In order of value: the first ones tell most if the time runs out."""


def arguments_of(check: Check, cpu: bool, max_time: float) -> list[str]:
    """Return the arguments of Python for a check, whose `--max-time` is at most `max_time` seconds."""
    device = "cpu" if cpu else "cuda"
    words = {"devices": "cpu" if cpu else "cpu,cuda", "gpu": device, "n": 256 if cpu else 8192, "root": ROOT}
    arguments = [word.format(**words) for word in check.command.split()]
    if check.seconds is not None:
        arguments += ["--max-time", f"{min(check.seconds, max_time):g}s"]
    return [*arguments, "--json"] if arguments[:2] == ["-m", "bench"] else arguments


def run(arguments: Sequence[str], folder: Path, cpu: bool, limit: float) -> None:
    """Run a check in a folder of its own, and keep its output, its messages and its exit code there.

    Args:
        arguments: of Python.
        folder: where.
        cpu: whether it runs on the CPU only.
        limit: seconds after which it is ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    with (folder / "output.json").open("wb") as out, (folder / "messages.txt").open("wb") as messages:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=messages)
        code: int | None
        try:
            code = process.wait(timeout=max(1.0, limit))
        except subprocess.TimeoutExpired:
            code = None
            process.send_signal(signal.SIGTERM)  # devbench then ends its workers and keeps its results
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    (folder / "exit.json").write_text(json.dumps({"code": code, "cpu": cpu}), encoding="utf-8")


def judge(check: Check, folder: Path) -> list[Condition]:
    """Return the conditions of a check that ran in a folder; one that does not hold if it did not run."""
    try:
        ended: dict[str, Any] = json.loads((folder / "exit.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return [Condition("it ran", held=False, seen="the time was over before it started")]
    text = (folder / "output.json").read_text(encoding="utf-8")
    try:
        document = json.loads(text) if text.strip() else {}
        return list(check.judge(Output(ended["code"], document, gpu=not ended["cpu"])))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return [Condition("its output can be read", held=False, seen=f"{type(error).__name__}: {error}")]


def passed(conditions: list[Condition]) -> bool:
    """Return whether all conditions of a check hold."""
    return all(condition.held for condition in conditions)


def report(name: str, conditions: list[Condition]) -> str:
    """Return the conditions of a check as text, one line each."""
    lines = [f"{'PASS' if passed(conditions) else 'FAIL'}  {name}"]
    for condition in conditions:
        seen = f" ({condition.seen})" if condition.seen else ""
        lines.append(f"      {'held' if condition.held else 'NOT HELD'}: {condition.text}{seen}")
    return "\n".join(lines)


def pack(folder: Path) -> Path:
    """Pack a folder with all outputs and results, and return the archive."""
    archive = folder.with_name(f"{folder.name}.tar.gz")
    with tarfile.open(archive, "w:gz") as file:
        file.add(folder, arcname=folder.name)
    return archive


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and judge the checks. Return 0 if every condition holds, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_acceptance", description=(__doc__ or "").split("\n")[0]
    )
    names = [check.name for check in CHECKS]
    parser.add_argument("--only", help=f"Checks to run, separated by commas: {', '.join(names)}. Default: all.")
    parser.add_argument("--max-time", type=float, help="Most seconds for `--max-time` of a command. Default: no limit.")
    parser.add_argument("--output", type=Path, default=Path("gpu-acceptance"), help="Folder. Default: gpu-acceptance.")
    parser.add_argument("--judge", action="store_true", help="Judge the outputs in the folder; run nothing.")
    parser.add_argument("--cpu", action="store_true", help="Run a short part on the CPU, to test this program.")
    options = parser.parse_args(arguments)
    only = options.only.split(",") if options.only else names
    if unknown := [name for name in only if name not in names]:
        parser.error(f"there is no check {unknown[0]!r}: choose from {', '.join(names)}")
    checks = [check for check in CHECKS if check.name in only and (check.cpu or not options.cpu)]
    output = options.output.absolute()
    max_time = CPU_SECONDS if options.cpu else options.max_time or float("inf")
    deadline = time.monotonic() + TOTAL_SECONDS
    for check in [] if options.judge else checks:  # an output of an earlier run must not be judged as one of this
        shutil.rmtree(output / check.name, ignore_errors=True)
    output.mkdir(parents=True, exist_ok=True)
    judged: dict[str, list[Condition]] = {}
    with (output / "report.txt").open("w", encoding="utf-8") as file:

        def say(text: str) -> None:
            for stream in (sys.stdout, file):
                print(text, file=stream, flush=True)

        for check in checks:
            left = deadline - time.monotonic()
            if left > 0 and not options.judge:
                arguments = arguments_of(check, options.cpu, max_time)
                print(f"{check.name}: {' '.join(arguments)}", file=sys.stderr, flush=True)
                limit = min(check.seconds or 2 * GRACE_SECONDS, max_time) + check.grace
                run(arguments, output / check.name, options.cpu, min(left, limit))
            judged[check.name] = judge(check, output / check.name)
            say(report(check.name, judged[check.name]))
        say(f"{sum(map(passed, judged.values()))} of {len(judged)} checks passed")
    print(f"results: {pack(output)}")
    return 0 if all(map(passed, judged.values())) else 1


if __name__ == "__main__":
    sys.exit(main())
