"""`devbench run`: measures, draws progress on stderr, and ends with the table or its JSON on stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.cli.command import announce, as_json, build, complain, describe, print_json, say
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.errors import Interrupted, UsageError
from bench.machine import system
from bench.model.result import Result

if TYPE_CHECKING:
    from bench.analyse.outcome import Outcome

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
    verbose: Annotated[bool, typer.Option("--verbose", help="Show every phase, every figure and the notes.")] = False,
) -> None:
    """Measure workloads on one backend or more, and write a result file for each."""
    if only is not None:
        workloads = [_at(workloads, only)]
    from bench import api
    from bench.analyse.outcome import Outcome
    from bench.publish.recorder import recording
    from bench.render.terminal.progress import ProgressDisplay

    with recording(settings, announce, say) as recorder:
        interruption: Interrupted | None = None
        with ProgressDisplay(sys.stderr) as display:
            try:
                outcome = api.run(workloads, settings, listener=display, recorder=recorder)
            except Interrupted as error:
                interruption, outcome = error, Outcome.of(error.results, settings.threshold)
        _show(outcome, interruption, settings, verbose)


def _show(outcome: Outcome, interruption: Interrupted | None, settings: RunSettings, verbose: bool = False) -> None:
    """Show what was measured, and end with the exit code that it asks for."""
    if settings.json:
        print_json(document(outcome) | ({"error": describe(interruption)} if interruption else {}))
    elif outcome.results:
        from bench.render.terminal.table import show

        show(outcome, sys.stdout, verbose)
    if outcome.results:
        typer.echo(f"results: {settings.output}", err=True)
        if system.image() and system.is_ephemeral(settings.output):
            typer.echo(f"  They end with the container. To keep them: {KEEP}", err=True)
    if interruption:
        complain(interruption)
    code = interruption.exit_code if interruption else exit_code(outcome.results)
    if code:
        raise typer.Exit(code)


def document(outcome: Outcome) -> dict[str, Any]:
    """Return the document of `run --json`."""
    return {
        "results": [as_json(result) for result in outcome.results],
        "comparisons": [as_json(comparison) for comparison in outcome.comparisons],
        "matrices": [as_json(matrix) for matrix in outcome.matrices],
    }


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


command = build(with_settings(run), "run")
