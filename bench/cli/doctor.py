"""`devbench doctor`: what this machine has and lacks for measuring, each with its cause and its fix."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator

import typer

from bench import backends
from bench.cli.command import build, print_json
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, DeviceAbsent
from bench.model.check import Check
from bench.render.text import entry

MACHINE = "machine"
COLOURS = {"PASS": "green", "WARN": "yellow", "FAIL": "red", "SKIP": "bright_black"}


def doctor(settings: RunSettings) -> None:
    """Check what this machine has and lacks, with causes and fixes.

    Without --backend every backend is looked at, and one that is not there is no failure.
    """
    asked = settings.backend if "backend" in settings.model_fields_set else ()
    found: dict[str, list[Check]] = {}
    for part, checks in _parts(settings, asked):
        found[part] = []
        if not settings.json:
            typer.echo(part)
        for check in checks:
            found[part].append(check)
            if not settings.json:
                _print(check)
    if settings.json:
        print_json({part: [dataclasses.asdict(check) for check in checks] for part, checks in found.items()})
    code = exit_code(found, asked)
    if code:
        raise typer.Exit(code)


def exit_code(found: dict[str, list[Check]], asked: tuple[str, ...]) -> int:
    """0 without a failure, 3 where the device of an asked backend is not there, 1 for other failures."""
    failed = {part for part, checks in found.items() if any(check.status == "FAIL" for check in checks)}
    for name in asked:
        if name in failed:
            try:
                backends.load(name).require()
            except DeviceAbsent as error:
                return error.exit_code
            except DevbenchError:
                continue
    return 1 if failed else 0


def _parts(settings: RunSettings, asked: tuple[str, ...]) -> Iterator[tuple[str, Iterator[Check]]]:
    from bench.machine.checks import checks

    modules = {name: backends.load(name) for name in asked or backends.names()}
    yield MACHINE, checks(settings.output, settings.data_dir)
    for name, module in modules.items():
        yield name, (module.checks() if asked else _spared(module.checks()))


def _spared(checks: Iterator[Check]) -> Iterator[Check]:
    """The checks of a backend that nobody asked for: what it lacks is skipped, and after its packages all else is."""
    for number, check in enumerate(checks):
        if check.status != "FAIL":
            yield check
            continue
        yield dataclasses.replace(check, status="SKIP")
        if number == 0:
            return


def _print(check: Check) -> None:
    text = check.found + ("".join(f"\n→ {line}" for line in check.fix.splitlines()) if check.status != "PASS" else "")
    status: str = check.status
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        status = typer.style(status, fg=COLOURS[status])
    shown = entry(f"{check.status}  {check.name}", text, 2, 30)
    typer.echo(shown.replace(check.status, status, 1))


command = build(with_settings(doctor, ("backend", "output", "data_dir", "json")), "doctor")
