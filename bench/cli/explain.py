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
    from bench.publish.hub.reporter import attached
    from bench.publish.prometheus.serving import serving
    from bench.render.terminal.progress import Drawer
    from bench.signals import interruptible
    from bench.store import files
    from bench.study.explain import Explaining

    files.prepare(settings.output)
    if settings.profile is not None:
        files.prepare(settings.profile, "--profile")
    new_id = files.namer(settings.run_id)
    stopped: Interrupted | None = None
    with serving(settings, announce) as served:
        with Drawer(sys.stderr) as draw, attached(settings, f"explain {workload}", draw, new_id, say) as link:
            with interruptible():
                save, listen = served.saving(link.save), served.listening(link.listener)
                explaining = Explaining(workload, settings, save, listen, new_id)
                try:
                    explaining.run(changes)
                except Interrupted as error:
                    stopped = Interrupted(error.signum, explaining.results)
                    link.state = ("interrupted", stopped.message)
            found = explaining.found
            if found is not None:
                with link.writing(settings.output / files.EXPLANATIONS / f"{found.id}{files.SUFFIX}"):
                    files.write_explanation(found, settings.output)
        _tell(found, stopped, settings)


def _tell(found: Explanation | None, stopped: Interrupted | None, settings: RunSettings) -> None:
    """Shows what was found, and ends with an interruption's code where there was one."""
    from bench.render.terminal import explanation

    if found is not None and not settings.json:
        typer.echo(explanation.text(found), nl=False)
    typer.echo(f"results: {settings.output}", err=True)
    document = {"explanation": as_json(found)} if found is not None else {}
    end(document if settings.json else None, stopped)


command = build(with_settings(explain), "explain")
