"""`devbench doctor`: check whether this machine can measure, and name the cause and the fix of each problem."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import typer

from bench import backends
from bench.cli import next_steps
from bench.cli.command import build, print_json
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, DeviceAbsent
from bench.model.check import Check
from bench.render.terminal.colour import has_colour
from bench.render.text import entry

MACHINE = "machine"
COLOURS = {"PASS": "green", "WARN": "yellow", "FAIL": "red", "SKIP": "bright_black"}


def doctor(settings: RunSettings) -> None:
    """Check whether this machine can run and measure workloads.

    WARN: runs work, but their results are less reliable. FAIL: runs cannot start. SKIP: there was nothing to check.
    Without --backend, doctor checks all backends, and a missing one is not a failure.
    """
    requested = settings.backend if "backend" in settings.model_fields_set else ()
    results: dict[str, list[Check]] = {}
    for section, checks in _sections(settings, requested):
        results[section] = []
        if not settings.json:
            typer.echo(section)
        for check in checks:
            results[section].append(check)
            if not settings.json:
                _print(check)
    if settings.json:
        print_json({name: [dataclasses.asdict(check) for check in checks] for name, checks in results.items()})
    code = exit_code(results, requested)
    if code:
        raise typer.Exit(code)
    if not settings.json:
        names = ["--backend", ",".join(requested)] if requested else []
        next_steps.show([(" ".join(["devbench", "run", "cifar", *names]), "measure a small training")])


def exit_code(results: Mapping[str, Sequence[Check]], requested: Sequence[str]) -> int:
    """Return 0 if no check failed, 3 if a requested backend's device is absent, 1 for other failures."""
    failed = {section for section, checks in results.items() if any(check.status == "FAIL" for check in checks)}
    for name in requested:
        if name in failed:
            try:
                backends.load(name).require()
            except DeviceAbsent as error:
                return error.exit_code
            except DevbenchError:
                continue
    return 1 if failed else 0


def _sections(settings: RunSettings, requested: Sequence[str]) -> Iterator[tuple[str, Iterator[Check]]]:
    from bench.machine.checks import checks

    modules = {name: backends.load(name) for name in requested or backends.names()}
    yield MACHINE, checks(settings.output, settings.data_dir, backends=list(modules))
    for name, module in modules.items():
        yield name, (module.checks() if requested else _optional(module.checks()))
    if settings.env:
        from bench.session import env_checks

        for name, path in settings.env.items():
            yield f"environment {name}", env_checks.checks(name, Path(path))


def _optional(checks: Iterator[Check]) -> Iterator[Check]:
    """Yield the checks of a backend that was not requested, with each FAIL as SKIP.

    The first check is about the packages of the backend. If it fails, the other checks are left out.
    """
    for number, check in enumerate(checks):
        if check.status != "FAIL":
            yield check
            continue
        yield dataclasses.replace(check, status="SKIP")
        if number == 0:
            return


def _print(check: Check) -> None:
    fixes = [f"→ {line}" for line in check.fix.splitlines()] if check.status != "PASS" else []
    status: str = check.status
    if has_colour(sys.stdout):
        status = typer.style(status, fg=COLOURS[status])
    line = entry(f"{check.status}  {check.name}", "\n".join([check.detail, *fixes]), 2, 30)
    typer.echo(line.replace(check.status, status, 1))


TEXTS = {
    "backend": "Backends to check, such as cpu,cuda. Default: all.",
    "env": "Python environment to check, as NAME=PATH. Repeat it to check several.",
}
"""Help that differs from that of `run`."""

command = build(with_settings(doctor, ("backend", "env", "output", "data_dir", "json"), TEXTS), "doctor")
