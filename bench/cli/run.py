"""`devbench run`: measure, draw progress on stderr, and write the table or the JSON document to stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.analyse.samples import has_measurements
from bench.cli import next_steps
from bench.cli.command import announce, as_json, build, complain, describe, print_json
from bench.cli.measure import PROGRAM, Module, measure, named
from bench.cli.options import with_settings
from bench.config.settings import OutputOptions, RunSettings, SelectionOptions, title
from bench.errors import Interrupted, UsageError
from bench.machine import system
from bench.model.result import Result

if TYPE_CHECKING:
    from bench.analyse.outcome import Outcome

KEEP = 'mkdir -p results && docker run -v "$PWD/results:/results" --user "$(id -u):$(id -g)" …'
"""Command that keeps the results of a container.

Without `mkdir`, the container engine would create the folder, and root would own it.
"""


def run(
    settings: RunSettings,
    workloads: Annotated[list[str] | None, PROGRAM] = None,
    module: Module = None,
    packages: Annotated[
        str | None,
        typer.Option(
            "--with",
            metavar="PACKAGES,…",
            help="Requirements of Python environments to create with uv and compare, interleaved. Separate "
            "environments with commas and packages with spaces, as in tensorflow==2.20.0,tensorflow==2.21.0.",
            rich_help_panel=title(SelectionOptions),
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Measure only workload number N, counted from 0. For indexed Kubernetes Jobs."
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", help="Show every phase, every figure and the notes.", rich_help_panel=title(OutputOptions)
        ),
    ] = False,
) -> None:
    """Measure scripts or workloads on one or more backends.

    A script runs as `python train.py` runs it, in a copy of the current folder. The script gets the arguments after
    --. Each measurement runs in a new process. devbench shows the results and writes them to a folder.
    """
    programs = named(workloads or [], module)
    if only is not None:
        programs = [_at(programs, only)]
    from bench import api

    if packages is not None:
        from bench.study import made_envs

        announce("creating the environments")
        made = {name: str(folder) for name, folder in made_envs.make(packages).items()}
        settings = settings.model_copy(update={"env": {**settings.env, **made}})
    measure(
        settings,
        lambda recorder: api.run(programs, settings, recorder=recorder),
        lambda outcome, interruption: _show(outcome, interruption, settings, programs[0], verbose),
    )


def _show(
    outcome: Outcome, interruption: Interrupted | None, settings: RunSettings, workload: str, verbose: bool = False
) -> int:
    """Show what was measured. Return the exit code."""
    if interruption and not any(map(has_measurements, outcome.results)):
        interruption = Interrupted(interruption.signum)
    elif not settings.json and outcome.results:
        from bench.render.terminal.table import show

        show(outcome, sys.stdout, verbose)
    if settings.json:
        print_json(document(outcome) | ({"error": describe(interruption)} if interruption else {}))
    if outcome.results:
        announce(f"results: {settings.output}")
        if system.image() and system.is_ephemeral(settings.output):
            announce(f"  They are deleted with the container. To keep them: {KEEP}")
    if interruption:
        complain(interruption)
    elif not settings.json:
        next_steps.show(next_steps.after_measuring(outcome.results, workload, settings))
    return interruption.exit_code if interruption else exit_code(outcome.results)


def document(outcome: Outcome) -> dict[str, Any]:
    """Return the document of `run --json`."""
    return {
        "results": [as_json(result) for result in outcome.results],
        "comparisons": [as_json(comparison) for comparison in outcome.comparisons],
        "matrices": [as_json(matrix) for matrix in outcome.matrices],
    }


def _at(workloads: Sequence[str], place: int) -> str:
    if place >= len(workloads):
        raise UsageError(
            f"invalid value '{place}' for --only", f"Workloads are counted from 0. The command names {len(workloads)}."
        )
    return workloads[place]


def exit_code(results: Sequence[Result]) -> int:
    """Return the exit code for results.

    Returns:
        0 if no result failed, 3 if a device is absent, 2 if all failures are errors of the user, otherwise 1.
    """
    kinds = {result.failure.kind if result.failure else "error" for result in results if result.status == "failed"}
    if "device" in kinds:
        return 3
    if kinds and kinds <= {"workload", "data"}:
        return 2
    return 1 if kinds else 0


command = build(with_settings(run), "run")
