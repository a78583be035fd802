"""`devbench watch`: report runs of a cluster that cannot report themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.command import build
from bench.config import syntax
from bench.errors import SettingsError

HUB, TOKEN_FILE = "DEVBENCH_HUB", "DEVBENCH_HUB_TOKEN_FILE"

HubOption = Annotated[str | None, typer.Option(metavar="URL", help="Address of the hub.", envvar=HUB)]
TokenFileOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File with the hub's token.", envvar=TOKEN_FILE)
]


def watch(
    selector: Annotated[
        str, typer.Option(help="Label selector of the Jobs and pods.")
    ] = "app.kubernetes.io/component=run",
    wait: Annotated[
        str, typer.Option(metavar="TIME", help="Time that a run may wait for a node before it counts as failed.")
    ] = "30m",
    namespace: Annotated[
        str | None, typer.Option(help="Namespace of the Jobs. [default: the pod's own]", show_default=False)
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The API server. [default: the cluster's own]", show_default=False),
    ] = None,
    account: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder with token and ca.crt of the service account. [default: the pod's own]",
            show_default=False,
        ),
    ] = None,
    hub: HubOption = None,
    hub_token_file: TokenFileOption = None,
) -> None:
    """Report runs that failed before they could report themselves.

    It watches the Jobs of a cluster and tells a hub about pods without a node, an image or a container, and about pods
    that were killed for memory, evicted, or stopped at their deadline.
    """
    from bench.publish.hub.client import connected
    from bench.watcher import loop
    from bench.watcher.api import ACCOUNT, Server

    address, patience = required_hub(hub), parse_wait(wait)
    send = loop.sender(connected(address, hub_token_file))
    loop.run(Server(namespace, server, account or ACCOUNT), selector, patience, send)


def required_hub(hub: str | None) -> str:
    """Return the address of the hub.

    Raises:
        SettingsError: it is not set.
    """
    if not hub:
        raise SettingsError("no hub is set", f"Use --hub URL or {HUB}.")
    return hub


def parse_wait(wait: str) -> float:
    """Return the value of --wait in seconds.

    Raises:
        SettingsError: it is not a time.
    """
    try:
        return syntax.seconds(wait)
    except ValueError as error:
        raise SettingsError(f"invalid value '{wait}' for --wait", str(error)) from None


command = build(watch, "watch")
