"""What the commands that measure have in common: how they name programs, show progress and end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bench import registry
from bench.cli import completion
from bench.cli.command import announce, end, say
from bench.config.settings import RunSettings
from bench.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from bench.publish.recorder import Recorder

T = TypeVar("T")

PROGRAM = typer.Argument(
    metavar="PROGRAM",
    help="Script, notebook, name of a workload, or path of a workload's file.",
    autocompletion=completion.workloads,
    show_default=False,
)
ProgramName = Annotated[str | None, PROGRAM]
Module = Annotated[
    str | None,
    typer.Option("-m", metavar="MODULE", help="Module to run as a script, as `python -m` does.", show_default=False),
]


def named(programs: Sequence[str], module: str | None) -> list[str]:
    """Return the programs that the user named. A module gets the prefix that `registry.resolve` expects."""
    return [*programs, *([f"{registry.MODULE}{module}"] if module else [])]


def one_of(program: str | None, module: str | None) -> str:
    """Return the one program that the user named.

    Raises:
        UsageError: A program and a module are named.
    """
    first, *others = named([program] if program else [], module)
    if others:
        raise UsageError(f"{first} and -m {module} are two programs", "Name one of them.")
    return first


def interrupted_early(interruption: Interrupted, message: str) -> Interrupted:
    """Say why there is no document after an interruption. Return the error to show.

    Args:
        interruption: What ended the command.
        message: Why there is no document yet.
    """
    from bench.analyse.samples import has_measurements

    announce(message)
    kept = any(map(has_measurements, interruption.results))
    return interruption if kept else Interrupted(interruption.signum)


def measure(settings: RunSettings, work: Callable[[Recorder], T], show: Callable[[T, Interrupted | None], int]) -> None:
    """Measure with progress on stderr, show the outcome, and end with an exit code.

    Metrics are served until the outcome has been shown. If a signal ended the last wait for the hub, the exit code says
    so, unless the outcome has one of its own.

    Args:
        settings: The settings of the measurement.
        work: Measures, and returns the outcome, explanation or other document.
        show: Shows the document and returns the exit code. After an interruption, it gets the document so far, which
            may be None, and the interruption.

    Raises:
        Interrupted: A signal arrived before the first result.
        typer.Exit: The exit code is not 0.
    """
    from bench.publish.recorder import recording
    from bench.render.terminal.progress import ProgressDisplay

    interruption: Interrupted | None = None
    with recording(settings, announce, say) as recorder:
        with ProgressDisplay(sys.stderr) as display:
            recorder.listeners.append(display)
            try:
                document = work(recorder)
            except Interrupted as error:
                if error.document is None and not error.results:
                    raise
                interruption, document = error, error.document
        code = show(document, interruption)
    end(code or (Interrupted(recorder.cut_short).exit_code if recorder.cut_short else 0))
