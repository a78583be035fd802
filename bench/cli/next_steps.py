"""The end of a command's output: what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from bench import backends
from bench.cli.command import announce
from bench.config.settings import RunSettings, arguments
from bench.model.result import Result
from bench.model.spec import Spec


def show(steps: Sequence[tuple[str, str]]) -> None:
    """Write the next steps to stderr: commands or addresses, each with its purpose."""
    if not steps:
        return
    width = max(len(command) for command, _ in steps)
    announce("next:")
    for command, purpose in steps:
        announce(f"  {command.ljust(width)}  # {purpose}")


def after_measuring(results: Sequence[Result], workload: str, settings: RunSettings) -> list[tuple[str, str]]:
    """Return the commands to run after a measurement, each with its purpose.

    Args:
        results: The results of the measurement, the baseline first.
        workload: The first of the workloads, as the user named it.
        settings: The settings of the measurement.
    """
    measured = [result for result in results if result.summary.step_seconds is not None]
    commands = []
    if measured:
        spec, recognition = measured[0].spec, measured[0].recognition
        case = ["--case", spec.case] if spec.case else []
        backend = ["--backend", spec.backend] if spec.backend != backends.reference() else []
        watch = ["--watch", str(spec.script.watch)] if spec.script and spec.script.watch else []
        explain = _command("explain", spec, workload, settings, [*case, *backend, *watch])
        commands.append((explain, "where the time goes, and what is faster"))
        if recognition is not None and recognition.others:
            several = arguments("backend", settings.backend) if len(settings.backend) > 1 else backend
            other = ["--watch", str(recognition.others[0].number), *several]
            commands.append((_command("run", spec, workload, settings, other), "another loop of the script"))
    if any(result.status == "complete" for result in results):
        folder = settings.output
        if len(list(folder.glob("*.json"))) > 1:
            commands.append((f"devbench compare {shlex.quote(str(folder))}", "compare all comparable results"))
        commands.append(report(folder))
    return commands


def after_slow_down(head: Spec, program: str, base: str, settings: RunSettings) -> list[tuple[str, str]]:
    """Return the commands to run after a gate that found a slow-down, each with its purpose.

    Args:
        head: The spec of the slower commit.
        program: The program, as the user named it.
        base: The commit that it was compared with.
        settings: The settings of the gate.
    """
    backend = ["--backend", head.backend] if head.backend != backends.reference() else []
    bisect = _command("bisect", head, program, settings, ["--good", base, "--bad", "HEAD", *backend])
    explain = _command("explain", head, program, settings, backend)
    return [(bisect, "which commit made it slower"), (explain, "where the time goes now")]


def _command(name: str, spec: Spec, workload: str, settings: RunSettings, options: Sequence[str]) -> str:
    """Return a command for the program of a spec, with the settings that change what it computes."""
    from bench.study.recommend import repeated

    script = spec.script
    program = ["-m", script.module] if script and script.module else [workload]
    own = settings.model_copy(update={"args": None, "watch": None})  # they follow
    workdir = arguments("workdir", settings.workdir) if settings.workdir else []
    rest = ["--", *script.arguments] if script and script.arguments else []
    return shlex.join(["devbench", name, *program, *options, *repeated(own), *workdir, *rest])


def report(folder: Path) -> tuple[str, str]:
    """Return the command that writes a report on a folder of results, with its purpose."""
    return f"devbench report {shlex.quote(str(folder))}", "one HTML page with charts"


def hub(address: str) -> tuple[str, str]:
    """Return the address of a hub, with what it shows."""
    return address.rstrip("/") + "/", "the results, in a browser"
