"""`devbench run`: measures, draws progress on stderr, and ends with the table or its JSON on stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from bench.cli.command import announce, as_json, build, complain, describe, print_json, say
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.errors import Interrupted, UsageError
from bench.machine import system
from bench.model.result import Result

KEEP = 'mkdir -p results && docker run -v "$PWD/results:/results" --user "$(id -u):$(id -g)" …'
"""A container whose results stay; without the folder an engine makes it, as root's, or refuses."""


def run(
    workloads: Annotated[list[str], typer.Argument(metavar="WORKLOAD…", help="A name, or the path of a .py file.")],
    settings: RunSettings,
    only: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Of the workloads, measure the one at this place, counted from 0; a cluster's Indexed Job says so.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Measure workloads on one backend or more, and write a result file for each."""
    if only is not None:
        workloads = [_at(workloads, only)]
    from bench import run as measure
    from bench.publish.prometheus.serving import serving
    from bench.render.terminal.progress import Drawer

    with serving(settings, announce) as served:
        stopped: Interrupted | None = None
        with Drawer(sys.stderr) as draw:
            try:
                results = measure(workloads, settings, listener=draw, served=served, warn=say)
            except Interrupted as error:
                stopped, results = error, list(error.results)
        _tell(results, stopped, settings)


def _tell(results: Sequence[Result], stopped: Interrupted | None, settings: RunSettings) -> None:
    """Shows what was measured, and ends with the code that this asks for."""
    if settings.json:
        from bench.analyse.outcome import Outcome

        outcome = Outcome.of(results, settings.threshold)
        document: dict[str, Any] = {
            "results": [as_json(each) for each in results],
            "comparisons": [as_json(each) for each in outcome.comparisons],
            "matrices": [as_json(each) for each in outcome.matrices],
        }
        print_json(document | ({"error": describe(stopped)} if stopped else {}))
    elif results:
        _show(results, settings.threshold)
    if results:
        typer.echo(f"results: {settings.output}", err=True)
        if system.image() and system.fleeting(settings.output):
            typer.echo(f"  They end with the container. To keep them: {KEEP}", err=True)
    if stopped:
        complain(stopped)
    code = stopped.exit_code if stopped else exit_code(results)
    if code:
        raise typer.Exit(code)


def _at(workloads: Sequence[str], place: int) -> str:
    if place >= len(workloads):
        raise UsageError(f"option --only can't be {place}", f"{len(workloads)} are named, and the first one is 0.")
    return workloads[place]


def exit_code(results: Sequence[Result]) -> int:
    """The exit code that results ask for: 0 without a failure, 3 for an absent device, 2 for the user's part."""
    kinds = {each.failure.kind if each.failure else "error" for each in results if each.status == "failed"}
    if "device" in kinds:
        return 3
    if kinds and kinds <= {"workload", "data"}:
        return 2
    return 1 if kinds else 0


def _show(results: Sequence[Result], threshold: float) -> None:
    from bench.analyse.outcome import Outcome
    from bench.render.terminal.table import show

    outcome = Outcome.of(results, threshold)
    show(results, outcome.comparisons, sys.stdout, outcome.matrices)


command = build(with_settings(run), "run")
