"""The pages of runs: those in progress, the latest that ended or were lost, and a single one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from bench.hub.db import records, result_queries, run_queries
from bench.hub.db.names import names
from bench.hub.db.run_queries import StoredRun
from bench.hub.pages import lists
from bench.hub.pages.layout import NONE, Page, address, timestamp
from bench.render import messages, numbers
from bench.render.labels import short_labels
from bench.render.messages import Message
from bench.render.report.document import Row, Section, Table
from bench.render.sentences import progress as phrases
from bench.render.text import plain

RUNNING = ("run", "step so far", "activity", "process", "elapsed", "state", "last seen (UTC)", "pool")
ENDED = ("run", "state", "reason", "results", "started (UTC)", "last seen (UTC)", "pool")
SHOWN = 100
"""Maximum number of runs on a page, and of results on the page of one run."""

COMPARISONS = 12
"""Maximum number of links to comparisons on the page of one run."""


def page(connection: Connection, cursor: str | None = None) -> Page:
    """Return a page of runs. The first page updates itself; the pages of older runs do not.

    Args:
        connection: a connection to the database.
        cursor: `next` of the previous page.

    Raises:
        Problem: the cursor is invalid.
    """
    listed = run_queries.runs(connection, records.now(), SHOWN, cursor)
    about = ("A run that misses three heartbeats is lost.",)
    links = (("Older runs", address("runs", cursor=listed.next)),) if listed.next else ()
    content = _sections(listed.items)
    if cursor is not None:
        links = (("Newest runs", address("runs")), *links)
    events = "/runs/events" if cursor is None else ""
    return Page("Runs", content, about=about, links=links, current="/runs", events=events)


def sections(connection: Connection) -> tuple[Section, ...]:
    """Return the part of the first page that changes."""
    return _sections(run_queries.runs(connection, records.now(), SHOWN).items)


def run(connection: Connection, id_: str) -> Page:
    """Return the page of one run, with its results.

    Raises:
        Problem: there is no such run.
    """
    stored = run_queries.run(connection, id_, records.now())
    message = stored.run
    head, row = (RUNNING, _running(stored)) if stored.state == "running" else (ENDED, _ended(stored))
    content = [Section("Status", (Table("The run", head, (row,)),))]
    links: list[tuple[str, str]] = []
    rows = result_queries.results_by_id(connection, message.results[:SHOWN]) if message.results else []
    if failures := _failures(connection, stored, rows):
        content.insert(0, Section("Failures", tuple(failures)))
    if message.results:
        name = dict(zip((row.id for row in rows), names(connection, rows), strict=True))
        links = [
            (
                f"Compare {name[baseline.id]} and {name[other.id]}",
                address("compare", baseline=baseline.id, other=other.id),
            )
            for baseline, other in _pairs(rows)
        ]
        content.append(Section("Results", (lists.result_table(connection, rows),)))
    about = (
        f"Started {timestamp(records.microseconds(message.started), seconds=True)} UTC "
        f"with devbench {plain(message.devbench)}. "
        f"Id: {message.id}. Attempt: {message.attempt}."
    )
    return Page(plain(message.title) or message.id, tuple(content), (), (about,), tuple(links), "/runs")


def _sections(runs: Sequence[StoredRun]) -> tuple[Section, ...]:
    running = [run for run in runs if run.state == "running"]
    ended = [run for run in runs if run.state != "running"]
    in_progress: Table | Message = Message("note", "No run is in progress.")
    if running:
        in_progress = Table("Runs in progress", RUNNING, tuple(map(_running, running)))
    content = [Section("In progress", (in_progress,))]
    if ended:
        table = Table("Runs that ended or were lost, last seen first", ENDED, tuple(map(_ended, ended)))
        content.append(Section("Ended or lost", (table,)))
    return tuple(content)


def _running(stored: StoredRun) -> Row:
    message, progress = stored.run, stored.run.progress
    activity = process = estimates = ""
    elapsed = (stored.last_seen - records.microseconds(message.started)) / 1e6
    if progress is not None:
        activity = f"{progress.title}: {phrases.activity(progress.phase, progress.note)}"
        process = phrases.process(progress.trial, progress.planned)
        estimates = phrases.estimates(progress.estimates)
        if progress.largest_part is not None:
            estimates = f"{phrases.largest_part(progress.largest_part)}; {estimates}"
    cells = (
        estimates or NONE,
        activity or NONE,
        process or NONE,
        numbers.time(max(0.0, elapsed)),
        "running",
        timestamp(stored.last_seen, seconds=True),
        message.pool or NONE,
    )
    return Row(plain(message.title), tuple(map(plain, cells)), links=(address("runs", message.id),))


def _ended(stored: StoredRun) -> Row:
    message = stored.run
    cells = (
        stored.state,
        message.reason or NONE,
        str(len(message.results)),
        timestamp(records.microseconds(message.started), seconds=True),
        timestamp(stored.last_seen, seconds=True),
        message.pool or NONE,
    )
    return Row(
        plain(message.title),
        tuple(map(plain, cells)),
        "" if stored.state == "finished" else "alarm",
        wrong=(0,),
        links=(address("runs", message.id), "", "", address("runs", message.id) if message.results else ""),
    )


def _failures(connection: Connection, stored: StoredRun, rows: Sequence[Any]) -> list[Message]:
    """Return why a run failed, then how each of its results failed."""
    shown = [Message("failure", plain(stored.run.reason or "The run failed."))] if stored.state == "failed" else []
    failed = result_queries.headers(connection, [row.id for row in rows if row.status == "failed"])
    if failed:
        shown += messages.failures(failed, short_labels(failed))
    return shown


def _pairs(rows: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return the first result of each group with each other result of the group."""
    first: dict[str, Any] = {}
    runs = [row for row in rows if row.purpose == "run"]
    pairs = [(baseline, row) for row in runs if (baseline := first.setdefault(row.group, row)) is not row]
    return pairs[:COMPARISONS]
