"""`devbench await`: waits for the results of a cluster's Jobs at the hub, as `helm test` does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.command import build
from bench.cli.watch import HUB, TOKEN_FILE
from bench.config import syntax
from bench.errors import SettingsError


def awaited(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB=WORKLOAD,…", help="Jobs with what they measure.")],
    wait: Annotated[str, typer.Option(metavar="TIME", help="How long to wait at most.")] = "30m",
    hub: Annotated[str | None, typer.Option(metavar="URL", help="The hub's address.", envvar=HUB)] = None,
    hub_token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File that holds the hub's token.", envvar=TOKEN_FILE)
    ] = None,
) -> None:
    """Wait until a hub has the results of a cluster's Jobs.

    It fails on failed or missing ones, never on slow ones.
    """
    from bench.publish.hub.client import token
    from bench.watcher import wait as awaiting

    if not hub:
        raise SettingsError("there is no hub to ask", f"Name one: --hub URL, or {HUB}.")
    try:
        seconds = syntax.seconds(wait)
    except ValueError as error:
        raise SettingsError(f"option --wait can't be '{wait}'", str(error)) from None
    awaiting.wait(awaiting.expected(jobs), awaiting.asker(hub, token(hub_token_file)), seconds, typer.echo)


command = build(awaited, "await")
