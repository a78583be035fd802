"""`devbench sweep`: a workload at many values of a parameter, and where one backend overtakes another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli import next_steps
from bench.cli.command import announce, as_json, build, conclude
from bench.cli.measure import Module, ProgramName, measure, one_of
from bench.cli.options import duration, with_settings
from bench.config.settings import MeasurementOptions, RunSettings, title
from bench.errors import DevbenchError, Interrupted, RunFailed

if TYPE_CHECKING:
    from bench.model.sweep import Sweep


def sweep(
    settings: RunSettings,
    workload: ProgramName = None,
    module: Module = None,
    point_time: Annotated[
        str,
        typer.Option(
            "--point-time",
            metavar="TIME",
            help="Time limit per point. Default: 45s.",
            rich_help_panel=title(MeasurementOptions),
        ),
    ] = "45s",
) -> None:
    """Measure a program over a range of a parameter.

    --param batch=1..4096 doubles the batch from point to point. Two ranges make a grid. --max-time limits the whole
    sweep.
    """
    from bench import api

    program = one_of(workload, module)
    limit = duration(point_time, "--point-time")
    measure(
        settings,
        lambda recorder: api.sweep(program, settings, limit, recorder),
        lambda sweep, interruption: _show(sweep, interruption, settings),
    )


def _show(sweep: Sweep, interruption: Interrupted | None, settings: RunSettings) -> int:
    """Show the sweep. Return the exit code."""
    from bench.render.terminal.sweep import text

    points = [point for curve in sweep.curves for point in curve.points]
    if interruption and all(point.step_seconds is None and not point.failure for point in points):
        interruption = Interrupted(interruption.signum)
    elif not settings.json:
        typer.echo(text(sweep), nl=False)
    announce(f"results: {settings.output}")
    failure: DevbenchError | None = interruption
    failed = any(point.failure and not point.out_of_memory for point in points)
    if not interruption and (failed or all(point.step_seconds is None for point in points)):
        failure = RunFailed(
            "some points of the sweep failed",
            "Their results say why. Running out of memory does not count as a failure.",
        )
    if failure is None and not settings.json:
        next_steps.show([next_steps.report(settings.output)])
    return conclude({"sweep": as_json(sweep)} if settings.json else None, failure)


TEXTS = {
    "param": "Range of a parameter, such as batch=1..4096, or a fixed value. Repeat it to set several.",
    "compare": "Not for sweeps. Use `devbench run`.",
    "max_time": "Time limit of the whole sweep. Default: 15m.",
    "full": "Not for sweeps. Use `devbench run`.",
    "profile": "Not for sweeps. Use `devbench run`.",
    "vary": "Not for sweeps. Use `devbench run`.",
}
"""Help that differs from that of `run`."""

command = build(with_settings(sweep, texts=TEXTS), "sweep")
