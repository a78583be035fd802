"""Describes how a worker failed, from its exit status and the end of its stderr."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

from bench.config.syntax import write_seconds
from bench.model.failure import SMALLER_BATCH, Failure, fatal_memory_request
from bench.model.phase import Activity
from bench.registry.program_errors import is_devbench

LAST_LINES = 20

NOT_PROGRAM = re.compile(r'  File "(<frozen runpy>|[^"]*\brunpy\.py"|<string>", line 1 in )|Extension modules: ')
"""Lines of Python's fault handler that are about no source file of the user or of devbench."""

FAULT_FRAME = re.compile(r'  File "([^"]+)", line \d+ in ')
"""A frame that Python's fault handler wrote. The group holds the source file."""

STARTING = re.compile(
    r"WARNING: All log messages before absl::InitializeLog\(\)|cpu_feature_guard\.cc|oneDNN custom operations are on"
    r"|To enable (the following instructions|them in other operations)"
)
"""Lines that TensorFlow logs whenever it starts on a CPU."""


LIMITS = (600.0, 3600.0, 14_400.0)
"""Values of `--worker-timeout` to suggest, in seconds."""


def last_lines(stderr: str) -> list[str]:
    """Return the last lines of a worker's stderr, without those that are not about the user's program."""
    lines = [line for line in stderr.replace("\r", "\n").splitlines() if line.strip()]
    shown = [line for line in lines if not (_is_ours(line) or NOT_PROGRAM.match(line) or STARTING.search(line))]
    return [line[-500:] for line in shown[-LAST_LINES:]]


def _is_ours(line: str) -> bool:
    """Return whether Python's fault handler wrote a line about a frame of devbench. Built-in workloads are programs."""
    frame = FAULT_FRAME.match(line)
    return frame is not None and is_devbench(Path(frame.group(1)))


def hung(seconds: float, phase: Activity, stderr: str, file: str | None) -> Failure:
    """Return the failure of a worker that was silent for too long and was ended.

    Args:
        seconds: How long it was silent.
        phase: What it was doing.
        stderr: The end of its stderr.
        file: The user's file, if it ran one.
    """
    limit = next((limit for limit in LIMITS if limit > seconds), 2 * seconds)
    return Failure(
        kind="hung",
        message=f"the worker was silent for {seconds:g} s{_user_line(stderr, file)} and was ended",
        hint=f"If this phase may take that long, raise the limit: --worker-timeout {write_seconds(limit)}",
        phase=phase,
        last_lines=last_lines(stderr),
    )


def closed_its_output(phase: Activity, stderr: str) -> Failure:
    """Return the failure of a worker that still runs but closed its connection to devbench."""
    return Failure(
        kind="crashed",
        message="the worker still runs, but it closed its connection to devbench",
        hint="Close only the file descriptors that the program opened.",
        phase=phase,
        last_lines=last_lines(stderr),
    )


def exited(code: int, phase: Activity, stderr: str, file: str | None) -> Failure:
    """Return the failure of a worker that exited before it was done.

    Args:
        code: Its exit code; the negative number of a signal that killed it.
        phase: What it was doing.
        stderr: The end of its stderr.
        file: The user's file, if it ran one.
    """
    name = None
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
    kind: Any = "killed" if name in ("SIGKILL", "SIGTERM") else "crashed"
    request = None
    hint = "Its last lines are below. Check whether the program also crashes without devbench."
    if name == "SIGKILL":
        hint = "If nobody killed it, it ran out of memory: use a smaller batch, or look for 'oom' in the kernel's log."
    elif request := fatal_memory_request(stderr.splitlines()):
        kind, hint = "memory", SMALLER_BATCH
    ending = f"was killed by {name}" if name else f"ended with exit code {code}"
    cause = f": {request}" if request else ""
    return Failure(
        kind=kind,
        message=f"the worker {ending}{_user_line(stderr, file)}{cause}",
        hint=hint,
        exit_code=code if code >= 0 else None,
        signal=name,
        phase=phase,
        last_lines=last_lines(stderr),
    )


def _user_line(stderr: str, file: str | None) -> str:
    """Return where in the user's file a worker ended, in parentheses, if Python's fault handler wrote it."""
    stack = stderr.rpartition("(most recent call first)")[2]
    match = re.search(rf'File "{re.escape(file or "")}", (line \d+) in ', stack)
    return f" ({Path(file or '').name}, {match.group(1)})" if match else ""
