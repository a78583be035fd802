"""What `run`, `explain` and `sweep` have in common: measure with progress on stderr, then show what was measured."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bench.cli import completion
from bench.cli.command import announce, end, say
from bench.config.settings import RunSettings
from bench.errors import Interrupted

if TYPE_CHECKING:
    from bench.publish.recorder import Recorder

T = TypeVar("T")

WORKLOAD = typer.Argument(
    metavar="WORKLOAD", help="Name of a workload, or path of a .py file.", autocompletion=completion.workloads
)
WORKLOADS = typer.Argument(
    metavar="PROGRAM",
    help="Script, notebook, name of a workload, or path of a workload's file.",
    autocompletion=completion.workloads,
    show_default=False,
)
Workload = Annotated[str, WORKLOAD]


def measure(settings: RunSettings, work: Callable[[Recorder], T], show: Callable[[T, Interrupted | None], int]) -> None:
    """Measure, show the document, and end with an exit code. Metrics are served until the document has been shown.

    Args:
        settings: of the measurement.
        work: measures, and returns the document.
        show: shows the document, or what there is of it after an interruption. Returns the exit code.

    Raises:
        Interrupted: nothing was measured.
        typer.Exit: the exit code is not 0.
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
    end(code)
