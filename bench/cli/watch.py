"""`devbench watch`: in a cluster, tells the hub of runs whose pods can't tell it themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.command import build
from bench.config import syntax
from bench.errors import SettingsError

HUB, TOKEN_FILE = "DEVBENCH_HUB", "DEVBENCH_HUB_TOKEN_FILE"


def watch(
    selector: Annotated[
        str, typer.Option(help="Labels of the Jobs and pods to watch.")
    ] = "app.kubernetes.io/component=run",
    wait: Annotated[str, typer.Option(metavar="TIME", help="A run that waits longer for a node has failed.")] = "30m",
    namespace: Annotated[
        str | None, typer.Option(help="Whose Jobs. [default: the pod's own]", show_default=False)
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The API server. [default: the cluster's own]", show_default=False),
    ] = None,
    account: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of token and ca.crt. [default: the pod's own]", show_default=False),
    ] = None,
    hub: Annotated[str | None, typer.Option(metavar="URL", help="The hub's address.", envvar=HUB)] = None,
    hub_token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File that holds the hub's token.", envvar=TOKEN_FILE)
    ] = None,
) -> None:
    """Tell a hub of a cluster's runs that can't speak for themselves.

    Those are pods that get no node, no image or no container, or are killed for memory, evicted or past a deadline.
    """
    from bench.publish.hub.client import connected
    from bench.watcher import loop
    from bench.watcher.api import ACCOUNT, Server

    if not hub:
        raise SettingsError("the watcher has no hub to tell", f"Name one: --hub URL, or {HUB}.")
    try:
        patience = syntax.seconds(wait)
    except ValueError as error:
        raise SettingsError(f"option --wait can't be '{wait}'", str(error)) from None
    say = loop.sayer(connected(hub, hub_token_file))
    loop.run(Server(namespace, server, account or ACCOUNT), selector, patience, say)


command = build(watch, "watch")
