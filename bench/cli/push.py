"""`devbench push`: send a folder of results to a hub."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from bench.cli import next_steps
from bench.cli.command import build, conclude, end, say
from bench.cli.options import HUB, with_settings
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, RunFailed, UsageError


def push(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")],
    settings: RunSettings,
) -> None:
    """Send a folder of results to a hub.

    Includes explanations, and documents that earlier runs could not send. The hub keeps its complete results.
    """
    from bench.publish.hub.client import connect
    from bench.publish.hub.delivery import deliveries
    from bench.publish.hub.errors import HubBusy
    from bench.publish.hub.outbox import Outbox, Pending
    from bench.store import files

    if settings.hub is None:
        raise UsageError("no hub is set", f"Use --hub URL or {HUB}.")
    outbox = Outbox(folder, settings.hub)
    paths = [*files.files(folder), *sorted((folder / files.EXPLANATIONS).glob(f"*{files.SUFFIX}"))]
    listed = {pending.path: pending for pending in outbox.pending()}
    documents = [listed.pop(path, Pending(path, ())) for path in paths] + list(listed.values())
    client = connect(settings.hub, settings.hub_token_file)
    outcomes: Counter[str] = Counter()
    failure: DevbenchError | None = None
    for _, outcome in deliveries(client, outbox, documents):
        if isinstance(outcome, str):
            outcomes[outcome] += 1
            continue
        outcomes["busy" if isinstance(outcome, HubBusy) else "refused"] += 1
        say(" ".join(filter(None, (f"{outcome.message}.", outcome.hint))))
    client.close()
    if undelivered := outcomes["refused"] + outcomes["busy"]:
        hint = "The hub was busy. Push again to send the rest." if outcomes["busy"] else ""
        failure = RunFailed(f"the hub did not store {undelivered} of {len(documents)} documents", hint)
    if not settings.json:
        summary = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "there was nothing to send"
        typer.echo(f"{settings.hub}: {summary}")
        if outcomes.total() > undelivered:
            next_steps.show([next_steps.hub(settings.hub)])
    end(conclude({"push": {"hub": settings.hub, **outcomes}} if settings.json else None, failure))


command = build(
    with_settings(push, ("hub", "hub_token_file", "json")),
    "push",
    "interrupted: the hub keeps what it has received. Push again to send the rest",
)
