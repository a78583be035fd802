"""`devbench bisect`: which version of a package, or which commit, made a program slower."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from bench import registry
from bench.cli import next_steps
from bench.cli.command import announce, as_json, build, conclude
from bench.cli.measure import PROGRAM, measure
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.errors import Interrupted
from bench.machine import sources
from bench.model.bisection import Bisection
from bench.model.spec import ROLES


def bisect(
    program: Annotated[str, PROGRAM],
    settings: RunSettings,
    good: Annotated[
        str, typer.Option("--good", metavar="END", help="The fast end: tensorflow==2.19.0, or a commit such as v1.2.")
    ],
    bad: Annotated[str, typer.Option("--bad", metavar="END", help="The slow end: tensorflow==2.21.0, or HEAD.")],
    packages: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="PACKAGES",
            help="Additional packages for each environment, separated by spaces.",
        ),
    ] = "",
) -> None:
    """Find the version or commit that made a program slower.

    Searches the versions of a package, or the commits of a repository, between a fast end and a slow one. Measures
    each that it tests interleaved with a good one, until the verdict is settled. Skips those that do not run. If you
    run the same command again after an interruption, it continues.
    """
    from bench import api

    measure(
        settings,
        lambda recorder: api.bisect(
            program, good, bad, settings, packages, recorder, state_file(settings, program, good, bad, packages)
        ),
        lambda bisection, interruption: _show(bisection, interruption, settings),
    )


def state_file(settings: RunSettings, program: str, good: str, bad: str, packages: str) -> Path:
    """Return the file that holds the races of a search so far.

    Its name is a hash of the arguments and of the settings that can change a result. A search of versions runs the
    program as it is in the working folder, so the sources there count too. If one of them changes, the search starts
    again.
    """
    from bench.study import made_envs
    from bench.study.bisect_chains import PINNED

    options = {option for role in ROLES.values() for option in role.options} & set(RunSettings.model_fields)
    request = settings.model_dump_json(include={*options, "threshold", "args", "workdir"})
    path, digest = Path(program).absolute(), ""
    if registry.is_path(program) and PINNED.fullmatch(good) and path.is_file():
        folder = Path.cwd() if Path.cwd() in path.parents else path.parent  # which it may import modules from
        digest = "".join((sources.digest(path), sources.digest(folder), *made_envs.local_digests(packages)))
    key = "\n".join((str(path), good, bad, packages, request, digest)).encode(errors="surrogateescape")
    return settings.output / "bisections" / f"{hashlib.sha256(key).hexdigest()[:12]}.json"


def _show(bisection: Bisection, interruption: Interrupted | None, settings: RunSettings) -> int:
    from bench.render.terminal.bisection import text

    if not settings.json:
        typer.echo(text(bisection), nl=False)
    announce(f"results: {settings.output}")
    code = conclude({"bisection": as_json(bisection)} if settings.json else None, interruption)
    if interruption is None and not settings.json:
        next_steps.show([next_steps.report(settings.output)])
    return code


command = build(with_settings(bisect), "bisect")
