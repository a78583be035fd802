"""The end of a command's output: what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from bench import backends
from bench.cli.command import announce
from bench.model.result import Result


def show(steps: Sequence[tuple[str, str]]) -> None:
    """Write the next steps to stderr: commands or addresses, each with its purpose."""
    if not steps:
        return
    width = max(len(command) for command, _ in steps)
    announce("next:")
    for command, purpose in steps:
        announce(f"  {command.ljust(width)}  # {purpose}")


def after_measuring(results: Sequence[Result], workload: str, folder: Path) -> list[tuple[str, str]]:
    """Return the commands to run after a measurement, each with its purpose.

    Args:
        results: The results of the measurement, the baseline first.
        workload: The first of the workloads, as the user named it.
        folder: The folder of the results.
    """
    steps = [result for result in results if result.summary.step_seconds is not None]
    commands = []
    if steps:
        spec = steps[0].spec
        case = ["--case", spec.case] if spec.case else []
        backend = ["--backend", spec.backend] if spec.backend != backends.reference() else []
        name = ["-m", spec.script.module] if spec.script and spec.script.module else [workload]
        words = ["devbench", "explain", *name, *case, *backend]
        recognition = steps[0].recognition
        if spec.script is not None:
            words += ["--watch", str(spec.script.watch)] if spec.script.watch else []
            words += ["--", *spec.script.arguments] if spec.script.arguments else []
        commands.append((shlex.join(words), "where the time goes, and what is faster"))
        if recognition is not None and recognition.others:
            commands.append((_watching(steps[0]), "another loop of the script"))
    if any(result.status == "complete" for result in results):
        if len(list(folder.glob("*.json"))) > 1:
            commands.append((f"devbench compare {shlex.quote(str(folder))}", "which is faster, where that is fair"))
        commands.append(report(folder))
    return commands


def _watching(result: Result) -> str:
    """Return the command that times another loop of a script."""
    assert result.spec.script is not None
    script, recognition = result.spec.script, result.recognition
    assert recognition is not None
    name = ["-m", script.module] if script.module else [result.spec.file or ""]
    arguments = ["--", *script.arguments] if script.arguments else []
    return shlex.join(["devbench", "run", *name, "--watch", str(recognition.others[0].number), *arguments])


def report(folder: Path) -> tuple[str, str]:
    """Return the command that writes a report on a folder of results, with its purpose."""
    return f"devbench report {shlex.quote(str(folder))}", "one HTML page with charts"


def hub(address: str) -> tuple[str, str]:
    """Return the address of a hub, with what it shows."""
    return address.rstrip("/") + "/", "the results, in a browser"
