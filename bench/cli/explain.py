"""`devbench explain`: where a step's time goes, and what makes it faster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.command import announce, as_json, build, end, say
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.errors import Interrupted

if TYPE_CHECKING:
    from bench.model.explanation import Explanation


def explain(
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help="A name, or the path of a .py file.")],
    settings: RunSettings,
    changes: Annotated[
        bool, typer.Option("--changes/--no-changes", help="Try single changes too, which takes most of the time.")
    ] = True,
) -> None:
    """Find by experiment where the time goes and what makes it faster.

    It runs the program against barer and barer loops, then against single changes; --max-time is for each of these.
    """
    from bench import api
    from bench.publish.recorder import recording
    from bench.render.terminal.progress import ProgressDisplay

    interruption: Interrupted | None = None
    with recording(settings, announce, say) as recorder:
        with ProgressDisplay(sys.stderr) as display:
            recorder.listeners.append(display)
            try:
                explanation: Explanation | None = api.explain(workload, settings, recorder, what_ifs=changes)
            except Interrupted as error:
                interruption, explanation = error, error.document
        _show(explanation, interruption, settings)


def _show(explanation: Explanation | None, interruption: Interrupted | None, settings: RunSettings) -> None:
    """Show the explanation, and end with the exit code of an interruption if there was one."""
    from bench.render.terminal.explanation import text

    if explanation is not None and not settings.json:
        typer.echo(text(explanation), nl=False)
    typer.echo(f"results: {settings.output}", err=True)
    document = {"explanation": as_json(explanation)} if explanation is not None else {}
    end(document if settings.json else None, interruption)


command = build(with_settings(explain), "explain")
