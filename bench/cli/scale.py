"""`devbench scale`: measure a program with one worker and with several, and show what limits the speed-up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, cast

import typer

from bench.cli import next_steps
from bench.cli.command import announce, as_json, build, conclude
from bench.cli.measure import Module, ProgramName, interrupted_early, measure, one_of
from bench.cli.options import duration, with_settings
from bench.config import settings_errors
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, Interrupted, RunFailed, SettingsError
from bench.model.spec import Scaling, Strategy

if TYPE_CHECKING:
    from bench.model.scaling import ScalingStudy

PANEL = "Workers"

INDEX = "JOB_COMPLETION_INDEX"
"""The variable in which Kubernetes gives each pod of an Indexed Job its index."""


def scale(
    settings: RunSettings,
    workload: ProgramName = None,
    module: Module = None,
    workers: Annotated[
        str, typer.Option(metavar="N,…", help="Numbers of workers. Default: 1,2.", rich_help_panel=PANEL)
    ] = "1,2",
    scaling: Annotated[
        str,
        typer.Option(
            metavar="[strong|weak]",
            help="strong: the workers share each batch. weak: each worker has batches of its own, of the same size. "
            "Default: strong.",
            rich_help_panel=PANEL,
        ),
    ] = "strong",
    strategy: Annotated[
        str,
        typer.Option(
            metavar="[multi-worker|mirrored]",
            help="multi-worker: a process for each worker. mirrored: one process with a replica for each of its GPUs, "
            "which runs fit. Default: multi-worker.",
            rich_help_panel=PANEL,
        ),
    ] = "multi-worker",
    hosts: Annotated[
        str,
        typer.Option(
            metavar="HOST,…",
            help="Names or addresses of the machines, one for each worker. Run the same command on each of them. "
            "Default: all workers run on this machine.",
            rich_help_panel=PANEL,
        ),
    ] = "",
    index: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            envvar=INDEX,
            show_envvar=False,
            help="Number of this machine in --hosts, counted from 0. Machine 0 shows the results. Default: the index "
            "of the Kubernetes Job. [env: JOB_COMPLETION_INDEX]",
            rich_help_panel=PANEL,
        ),
    ] = 0,
    port: Annotated[
        int,
        typer.Option(
            min=1,
            max=65535,
            metavar="N",
            help="Port of machine 0 to which the others connect. Default: 2222.",
            rich_help_panel=PANEL,
        ),
    ] = 2222,
    rendezvous_timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long machines wait for each other. Default: 5m.", rich_help_panel=PANEL),
    ] = "5m",
) -> None:
    """Measure how a program scales from one worker to several.

    The workers train together with MultiWorkerMirroredStrategy. On one machine, each worker is pinned to CPUs of its
    own, or gets one GPU. The table shows the speed-up of each number of workers and where the rest of the time goes.
    """
    from bench import api
    from bench.study.scale_hosts import Hosts

    program = one_of(workload, module)
    if scaling not in ("strong", "weak"):
        raise settings_errors.invalid(scaling, "--scaling", "choose strong or weak")
    if strategy not in ("multi-worker", "mirrored"):
        raise settings_errors.invalid(strategy, "--strategy", "choose multi-worker or mirrored")
    names = tuple(name.strip().strip("[]") for name in hosts.split(",") if name.strip())
    if index and not names and INDEX not in os.environ:
        raise SettingsError("--index needs --hosts", "Name all hosts, the same on every host.")
    cluster = Hosts(names, index if names else 0, port, duration(rendezvous_timeout, "--rendezvous-timeout"))
    sizes = _sizes(workers)
    if cluster.index:
        api.join_scaling(program, settings, cluster, announce)
        return
    measure(
        settings,
        lambda recorder: api.scale(
            program, settings, sizes, cast("Scaling", scaling), cast("Strategy", strategy), cluster, recorder
        ),
        lambda study, interruption: _show(study, interruption, settings),
    )


def _sizes(text: str) -> list[int]:
    """Read the numbers of workers.

    Raises:
        SettingsError: One of them is not a whole number of at least 1.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) for word in words):
        raise settings_errors.invalid(text, "--workers", "name numbers from 1 on, such as 1,2,4")
    return [int(word) for word in words]


def _show(study: ScalingStudy | None, interruption: Interrupted | None, settings: RunSettings) -> int:
    """Show the study, if a trial was complete. Return the exit code."""
    from bench.render.terminal.scaling import text

    failure: DevbenchError | None = interruption
    if study is None and interruption is not None:
        message = "interrupted before one worker alone was measured, so there is nothing to compare yet"
        failure = interrupted_early(interruption, message)
    elif study is not None:
        if not settings.json:
            typer.echo(text(study), nl=False)
        failure = failure or _failure(study)
    announce(f"results: {settings.output}")
    if failure is None and not settings.json:
        next_steps.show([next_steps.report(settings.output)])
    document = {"scaling": as_json(study)} if study is not None else {}
    return conclude(document if settings.json else None, failure)


def _failure(study: ScalingStudy) -> RunFailed | None:
    """Return why a number of workers has no figures, or its step no parts. None if nothing failed."""
    from bench.render.scaling_table import noun

    size = next((size for size in study.sizes if size.failure or size.refused), None)
    if size is None and study.failures:
        message = f"a level that divides the step could not be measured: {study.failures[0]}"
        return RunFailed(message, study.failure_hint)
    if size is None:
        return None
    workers = f"{size.workers} {noun(study)}{'s' * (size.workers > 1)}"
    if size.refused:
        return RunFailed(f"the figures of {workers} do not count: {size.refused}")
    return RunFailed(f"{workers} could not be measured: {size.failure}", size.hint)


TEXTS = {
    "max_time": "Time limit of the whole study. Default: 10m.",
    "backend": "Backend to measure on. Default: cpu, or the backend of the devbench image.",
    "threads": "Threads in each of TensorFlow's thread pools of a worker. Default: the number of CPUs of a worker.",
    **dict.fromkeys(
        ("loop", "env", "vary", "full", "profile", "compare", "change"), "Not for scale. Use `devbench run`."
    ),
}
"""Help that differs from that of `run`."""

command = build(with_settings(scale, texts=TEXTS), "scale")
