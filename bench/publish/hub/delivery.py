"""Delivering files to a hub, one by one: what became of each, and when to leave the hub alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bench.errors import DataError, DevbenchError
from bench.publish.hub.client import BRIEF, PATIENT, Busy, Client, Final, Refused
from bench.publish.hub.outbox import RUNS, Spool, Waiting
from bench.store import files, headers

BUSY_IN_A_ROW = 10
"""Documents that a hub may put off one after another before it is left alone: fewer may be what is wrong themselves."""


def deliveries(
    client: Client, spool: Spool, every: Iterable[Waiting], retries: int = PATIENT
) -> Iterator[tuple[Waiting, str | DevbenchError]]:
    """Delivers files one by one: what became of each at the hub, or why it was not taken.

    What the hub puts off holds up no other, and is asked for patiently once only.

    Raises:
        Away: the hub can't be reached, or has put off `BUSY_IN_A_ROW` files.
    """
    put_off = 0
    for waiting in every:
        try:
            yield waiting, deliver(client, spool, waiting, BRIEF if put_off else retries)
            put_off = 0
        except Busy as error:
            put_off += 1
            if put_off == BUSY_IN_A_ROW:
                raise
            yield waiting, error
        except (Refused, DataError) as error:
            yield waiting, error


def deliver(client: Client, spool: Spool, waiting: Waiting, retries: int = PATIENT) -> str:
    """Delivers one file in the state that it has now; returns what became of it at the hub.

    Raises:
        Away: the hub can't take it now.
        Refused: the hub won't take it.
        DataError: the file is no longer there or can't be read.
    """
    path = waiting.path
    folders = {spool.folder / files.EXPLANATIONS: "explanations", spool.notes / RUNS: RUNS}
    kind = folders.get(path.parent, "results")
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        if waiting.notes and not any(note.exists() for note in waiting.notes):
            return "same"  # another process has delivered it meanwhile
        spool.done(waiting)
        raise DataError(f"{path} is gone, so the hub won't get it") from None
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror or error}") from None
    try:
        outcome = client.put(kind, path.stem if kind != "results" else headers.entry(path).id, body, retries)
    except Final:
        spool.done(waiting)  # it stays where it is, but no later run need try
        raise
    spool.done(waiting)
    return outcome
