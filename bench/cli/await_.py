"""`devbench await`: wait until a hub has the results of a cluster's Jobs. `helm test` runs it."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.cli.command import build
from bench.cli.watch import HubOption, TokenFileOption, parse_wait, required_hub


def await_results(
    jobs: Annotated[
        list[str], typer.Argument(metavar="JOB=WORKLOAD,…", help="A Job and the workloads that it measures.")
    ],
    wait: Annotated[str, typer.Option(metavar="TIME", help="Maximum time to wait.")] = "30m",
    hub: HubOption = None,
    hub_token_file: TokenFileOption = None,
) -> None:
    """Wait until a hub has the results of a cluster's Jobs.

    It fails if a result failed or is missing. It does not judge how fast the results are.
    """
    from bench.publish.hub.client import token
    from bench.watcher.wait import hub_getter, parse_jobs
    from bench.watcher.wait import wait as wait_for

    address, seconds = required_hub(hub), parse_wait(wait)
    wait_for(parse_jobs(jobs), hub_getter(address, token(hub_token_file)), seconds, typer.echo)


command = build(await_results, "await")
