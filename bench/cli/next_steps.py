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
        explain = _command("explain", spec, workload, settings, _selection(spec))
        commands.append((explain, "where the time goes, and what is faster"))
        if recognition is not None and recognition.others:
            backend = [] if spec.backend == backends.reference() else ["--backend", spec.backend]
            several = arguments("backend", settings.backend) if len(settings.backend) > 1 else backend
            other = ["--watch", str(recognition.others[0].number), *several]
            commands.append((_command("run", spec, workload, settings, other), "another loop of the script"))
    if any(result.status == "complete" for result in results):
        folder = settings.output
        if len(list(folder.glob("*.json"))) > 1:
            commands.append((f"devbench compare {shlex.quote(str(folder))}", "compare all comparable results"))
        commands.append(report(folder))
    return commands


def after_slow_down(
    spec: Spec, program: str, commits: Sequence[str], settings: RunSettings, *, explained: bool = False
) -> list[tuple[str, str]]:
    """Return the commands to run after a gate that found a slow-down, each with its purpose.

    Args:
        spec: The spec of the slower side.
        program: The program, as the user named it.
        commits: The commits from the base to the head.
        settings: The settings of the gate.
        explained: Whether the slow-down was explained.
    """
    shared = _selection(spec)
    commands = []
    if not explained:
        commands.append((_command("explain", spec, program, settings, shared), "where the time goes now"))
    if len(commits) > 2:
        loop = ["--loop", spec.loop] if spec.script is None and settings.loop else []
        is_default = settings.threshold == RunSettings.model_fields["threshold"].default
        threshold = [] if is_default else arguments("threshold", settings.threshold)
        ends = ["--good", commits[0][:12], "--bad", commits[-1][:12]]
        without_env = settings.model_copy(update={"env": {}})  # bisect makes its own
        bisect = _command("bisect", spec, program, without_env, [*ends, *shared, *loop, *threshold])
        commands.insert(0, (bisect, "which commit made it slower"))
    return commands


def _selection(spec: Spec) -> list[str]:
    """Return the options that select the case, the backend and the loop of a script that a spec has."""
    case = ["--case", spec.case] if spec.case else []
    backend = ["--backend", spec.backend] if spec.backend != backends.reference() else []
    watch = ["--watch", str(spec.script.watch)] if spec.script and spec.script.watch else []
    return [*case, *backend, *watch]


def _command(name: str, spec: Spec, workload: str, settings: RunSettings, options: Sequence[str]) -> str:
    """Return a command for the program of a spec, with the settings that change what it computes."""
    from bench.study.recommend import place_of, repeated

    script = spec.script
    program = ["-m", script.module] if script and script.module else [workload]
    own = settings.model_copy(update={"args": None, "watch": None})  # they follow
    place = place_of(spec, settings)
    rest = ["--", *script.arguments] if script and script.arguments else []
    return shlex.join(["devbench", name, *program, *options, *repeated(own), *place, *rest])


def report(folder: Path) -> tuple[str, str]:
    """Return the command that writes a report on a folder of results, with its purpose."""
    return f"devbench report {shlex.quote(str(folder))}", "one HTML page with charts"


def hub(address: str) -> tuple[str, str]:
    """Return the address of a hub, with what it shows."""
    return address.rstrip("/") + "/", "the results, in a browser"
