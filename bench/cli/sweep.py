"""`devbench sweep`: a workload at many values of a parameter, and where one backend overtakes another."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.command import announce, as_json, build, end, say
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.config.syntax import seconds
from bench.errors import DevbenchError, Interrupted, RunFailed, SettingsError

if TYPE_CHECKING:
    from bench.model.sweep import Sweep


def sweep(
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help="A name, or the path of a .py file.")],
    settings: RunSettings,
    point_time: Annotated[
        str, typer.Option("--point-time", metavar="TIME", help="Start no more processes for a point after this.")
    ] = "45s",
) -> None:
    """Measure a workload over a range of a parameter.

    --param batch=1..4096 doubles; --max-time is for the whole sweep; two ranges make a grid.
    """
    from bench.analyse.sweep import memory_ended
    from bench.publish.hub.reporter import attached
    from bench.publish.prometheus.serving import serving
    from bench.render.terminal.progress import Drawer
    from bench.signals import interruptible
    from bench.store import files
    from bench.study.sweep import Sweeping

    try:
        limit = seconds(point_time)
    except ValueError as error:
        raise SettingsError(f"option --point-time can't be '{point_time}'", f"{str(error).capitalize()}.") from None
    files.prepare(settings.output)
    stopped: Interrupted | None = None
    new_id = files.namer(settings.run_id)
    with serving(settings, announce) as served:
        with (
            Drawer(sys.stderr) as draw,
            attached(settings, f"sweep {workload}", draw, new_id, say) as link,
            interruptible(),
        ):
            save, listen = served.saving(link.save), served.listening(link.listener)
            sweeping = Sweeping(workload, settings, save, listen, new_id, point_time=limit)
            try:
                found = sweeping.run()
                link.judge([each for each in sweeping.results if not memory_ended(each)])
            except Interrupted as error:
                if not sweeping.results:
                    raise
                stopped = Interrupted(error.signum, sweeping.results)
                link.state = ("interrupted", stopped.message)
                sweeping.cut_short("it was interrupted")
                found = sweeping.read()
        _tell(found, stopped, settings)


def _tell(found: Sweep, stopped: Interrupted | None, settings: RunSettings) -> None:
    """Shows what was found, and ends with the code that this asks for."""
    from bench.render.terminal import sweep as sweeps

    if not settings.json:
        typer.echo(sweeps.text(found), nl=False)
    typer.echo(f"results: {settings.output}", err=True)
    wrong: DevbenchError | None = stopped
    failures = [p for c in found.curves for p in c.points if p.failure and not p.memory]
    if not stopped and (failures or all(p.step_seconds is None for c in found.curves for p in c.points)):
        wrong = RunFailed("points of the sweep failed", "Their results say how; memory that ends is no failure.")
    end({"sweep": as_json(found)} if settings.json else None, wrong)


command = build(with_settings(sweep), "sweep")
