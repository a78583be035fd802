"""`devbench explain`: where a step's time goes, and what makes it faster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bench.commands import announce, as_json, build, end, say
from bench.commands.options import with_settings
from bench.errors import Interrupted
from bench.settings import RunSettings

if TYPE_CHECKING:
    from bench.analyse.explain import Explanation


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
    from bench.measure.explain import Explaining
    from bench.measure.interrupt import interruptible
    from bench.output import store
    from bench.output.progress import Drawer
    from bench.output.sending.sender import attached
    from bench.serving import serving

    store.prepare(settings.output)
    if settings.profile is not None:
        store.prepare(settings.profile, "--profile")
    new_id = store.namer(settings.run_id)
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
                with link.writing(settings.output / store.EXPLANATIONS / f"{found.id}{store.SUFFIX}"):
                    store.write_explanation(found, settings.output)
        _tell(found, stopped, settings)


def _tell(found: Explanation | None, stopped: Interrupted | None, settings: RunSettings) -> None:
    """Shows what was found, and ends with an interruption's code where there was one."""
    from bench.output import explanations

    if found is not None and not settings.json:
        typer.echo(explanations.text(found), nl=False)
    typer.echo(f"results: {settings.output}", err=True)
    document = {"explanation": as_json(found)} if found is not None else {}
    end(document if settings.json else None, stopped)


command = build(with_settings(explain), "explain")
