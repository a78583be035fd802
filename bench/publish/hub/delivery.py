"""Delivers files from the outbox to a hub, one by one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator

from bench.errors import DataError, DevbenchError
from bench.publish.hub.client import BRIEF, PATIENT, Client
from bench.publish.hub.errors import HubBusy, HubRefused, HubUnavailable, RefusedForever
from bench.publish.hub.outbox import RUNS, Outbox, Pending
from bench.store import files, headers

BUSY_IN_A_ROW = 10
"""Number of consecutive documents that a busy hub may put off before delivery stops. A few may be faulty ones."""


def deliveries(
    client: Client, outbox: Outbox, queue: Iterable[Pending], retries: int = PATIENT, limit: float = math.inf
) -> Iterator[tuple[Pending, str | DevbenchError]]:
    """Deliver files one by one, and yield each with its outcome at the hub or the error.

    A file that a busy hub puts off does not hold up the next ones. These have no retries until the hub takes one.

    Args:
        client: Sends the files.
        outbox: Lists the files.
        queue: The files.
        retries: Maximum number of retries of a file, unless the file before it was put off.
        limit: When to give up, by `time.monotonic`.

    Raises:
        HubUnavailable: The hub cannot be reached, or has put off `BUSY_IN_A_ROW` files, or the time is over.
    """
    put_off = 0
    for pending in queue:
        if time.monotonic() >= limit:
            raise HubUnavailable(f"the hub {client.hub} was too slow to take all documents")
        try:
            yield pending, deliver(client, outbox, pending, BRIEF if put_off else retries, limit)
            put_off = 0
        except HubBusy as error:
            put_off += 1
            if put_off == BUSY_IN_A_ROW:
                raise
            yield pending, error
        except (HubRefused, DataError) as error:
            yield pending, error


def deliver(client: Client, outbox: Outbox, pending: Pending, retries: int = PATIENT, limit: float = math.inf) -> str:
    """Deliver one file in its current state, and return the outcome at the hub.

    Raises:
        HubUnavailable: The hub cannot take it now.
        HubRefused: The hub refuses it.
        DataError: The file is gone or cannot be read.
    """
    path = pending.path
    folders = {outbox.folder / files.EXPLANATIONS: "explanations", outbox.notes / RUNS: RUNS}
    kind = folders.get(path.parent, "results")
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        if pending.notes and not any(note.exists() for note in pending.notes):
            return "same"  # another process has delivered it
        outbox.confirm(pending)
        raise DataError(f"{path} is gone, so it cannot be sent to the hub") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        outcome = client.put(
            kind, path.stem if kind != "results" else headers.index_entry(path).id, body, retries, limit
        )
    except RefusedForever:
        outbox.confirm(pending)  # the file stays, but no later run tries again
        raise
    outbox.confirm(pending)
    return outcome
