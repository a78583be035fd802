"""`devbench await`: wait until a hub has the results of a cluster's Jobs. `helm test` runs it."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.cli import next_steps
from bench.cli.command import build
from bench.cli.options import HubUrl, TokenFile, duration, required_hub


def await_results(
    jobs: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB=WORKLOADS", help="A Job and the workloads that it measures, such as cpu=cifar,mnist."
        ),
    ],
    hub: HubUrl = None,
    hub_token_file: TokenFile = None,
    wait: Annotated[str, typer.Option(metavar="TIME", help="Maximum time to wait. Default: 30m.")] = "30m",
) -> None:
    """Wait until a hub has the results of Kubernetes Jobs.

    Fails if a result failed or is missing. Does not check how fast the results are.
    """
    from bench.publish.hub.client import connect
    from bench.watcher.wait import parse_jobs
    from bench.watcher.wait import wait as wait_for

    address, seconds = required_hub(hub), duration(wait, "--wait")
    wait_for(parse_jobs(jobs), connect(address, hub_token_file).get, seconds, typer.echo)
    next_steps.show([next_steps.hub(address)])


command = build(await_results, "await", "interrupted: the Jobs go on")
