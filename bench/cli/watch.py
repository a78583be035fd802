"""`devbench watch`: report runs of a cluster that cannot report themselves."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from bench.cli.command import build
from bench.cli.options import HubUrl, TokenFile, duration, required_hub


def watch(
    hub: HubUrl = None,
    hub_token_file: TokenFile = None,
    wait: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Time that a run may wait for a node before it counts as failed. Default: 30m."
        ),
    ] = "30m",
    selector: Annotated[
        str,
        typer.Option(
            metavar="LABELS", help="Label selector of the Jobs and pods. Default: app.kubernetes.io/component=run."
        ),
    ] = "app.kubernetes.io/component=run",
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="Namespace of the Jobs. Default: the pod's own.")
    ] = None,
    server: Annotated[str | None, typer.Option(metavar="URL", help="API server. Default: the cluster's own.")] = None,
    account: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder with token and ca.crt of a service account. Default: the pod's own."),
    ] = None,
    end_scheduled: Annotated[
        bool,
        typer.Option(
            "--end-scheduled",
            help="End a Job of a CronJob that waits for a node for longer than --wait, because it blocks the next Job. "
            "Requires the permission to patch Jobs.",
        ),
    ] = False,
    health_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, metavar="PORT", help="Port for Kubernetes' probes, /healthz and /readyz. Default: none."
        ),
    ] = None,
) -> None:
    """Report runs that failed before they could report themselves.

    Watches the Jobs of a cluster. Reports to a hub the pods that get no node, cannot pull their image, or cannot start
    a container. Also reports pods that ran out of memory, were evicted, or exceeded their deadline. With
    --end-scheduled, also ends Jobs of a CronJob that get no node.
    """
    from bench.publish.hub.client import connect
    from bench.watcher import loop
    from bench.watcher.api import ACCOUNT, Server
    from bench.watcher.health import Health, serve

    address, patience, health = required_hub(hub), duration(wait, "--wait"), Health("Job", "Pod", "Event")
    send = loop.sender(connect(address, hub_token_file), health)
    with ExitStack() as stack:
        if health_port is not None:
            stack.enter_context(serve(health, health_port))
        loop.run(Server(namespace, server, account or ACCOUNT), selector, patience, send, health, end_scheduled)


command = build(watch, "watch", "interrupted: the watcher has ended")
