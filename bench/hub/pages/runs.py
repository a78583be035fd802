"""Runs that go on, and the last that ended or were lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from bench.hub.db import queries, records
from bench.hub.db.queries import StoredRun
from bench.hub.pages import lists
from bench.hub.pages.layout import Page, address
from bench.render import numbers
from bench.render.messages import Message
from bench.render.report.document import Row, Section, Table
from bench.render.sentences import progress
from bench.render.text import plain

GOING = ("run", "state", "doing", "process", "known so far", "since its start", "heard of (UTC)", "pool")
ENDED = ("run", "state", "why", "results", "begun (UTC)", "heard of (UTC)", "pool")
SHOWN = 100
LINKED = 12


def page(connection: Connection, cursor: str | None = None) -> Page:
    """The page, which keeps itself up to date; from a cursor on older runs, which stay as they are.

    Raises:
        Problem: the cursor is none of ours.
    """
    found = queries.runs(connection, records.now(), SHOWN, cursor)
    about = ("A run that is silent for three of its heartbeats is lost.",)
    links = (("Older runs", address("runs", cursor=found.next)),) if found.next else ()
    made = _sections(found.items)
    if cursor is not None:
        return Page("Runs", made, about=about, links=(("Newest runs", address("runs")), *links), within="/runs")
    return Page("Runs", made, about=about, links=links, within="/runs", live="/runs/events")


def sections(connection: Connection) -> tuple[Section, ...]:
    """What is kept up to date."""
    return _sections(queries.runs(connection, records.now(), SHOWN).items)


def _sections(found: Sequence[StoredRun]) -> tuple[Section, ...]:
    going = [each for each in found if each.state == "running"]
    ended = [each for each in found if each.state != "running"]
    now: Table | Message = Message("note", "no run goes on")
    if going:
        now = Table("Runs that go on", GOING, tuple(map(_going, going)))
    made = [Section("Going on", (now,))]
    if ended:
        made.append(Section("Ended or lost", (Table("The last runs", ENDED, tuple(map(_ended, ended))),)))
    return tuple(made)


def _going(found: StoredRun) -> Row:
    run, now = found.run, found.run.progress
    doing = process = known = "–"
    elapsed = (found.last_seen - records.microseconds(run.started)) / 1e6
    if now is not None:
        doing = f"{now.title}: {progress.activity(now.phase, now.note)}"
        process = progress.process(now.trial, now.planned)
        known = "; ".join(
            f"{each.title} {progress.estimate(each.step_seconds, each.relative_error)}" for each in now.estimates
        )
    cells = (
        "running",
        doing,
        process,
        known or "–",
        numbers.time(max(0.0, elapsed)),
        _timestamp(found.last_seen),
        run.pool or "–",
    )
    return Row(plain(run.title), tuple(map(plain, cells)), links=_links(found))


def _ended(found: StoredRun) -> Row:
    run = found.run
    cells = (
        found.state,
        run.reason or "–",
        str(len(run.results)),
        _timestamp(records.microseconds(run.started)),
        _timestamp(found.last_seen),
        run.pool or "–",
    )
    kind = "" if found.state == "finished" else "alarm"
    return Row(plain(run.title), tuple(map(plain, cells)), "alarm" if kind else "", wrong=(0,), links=_links(found))


def _links(found: StoredRun) -> tuple[str, ...]:
    return (address("runs", found.run.id),)


def run(connection: Connection, name: str) -> Page:
    """One run with its results.

    Raises:
        Problem: there is none.
    """
    found = queries.run(connection, name, records.now())
    run = found.run
    head, row = (GOING, _going(found)) if found.state == "running" else (ENDED, _ended(found))
    made = [Section("How it stands", (Table("The run", head, (row,)),))]
    links: list[tuple[str, str]] = []
    if run.results:
        rows = queries.results_by_id(connection, run.results[:SHOWN])
        links = [
            (f"Compare {base.label} and {other.label}", address("compare", baseline=base.id, other=other.id))
            for base, other in _pairs(rows)
        ]
        made.append(Section("What it has measured", (lists.table(rows),)))
    about = (
        f"Begun {_timestamp(records.microseconds(run.started))} UTC, with devbench {plain(run.devbench)}; id {run.id}, "
    )
    about += f"attempt {run.attempt}."
    return Page(plain(run.title) or run.id, tuple(made), (), (about,), tuple(links), "/runs")


def _pairs(rows: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Runs that took turns, each with the first of its trials."""
    first: dict[str, Any] = {}
    runs = [row for row in rows if row.purpose == "run"]
    return [(base, row) for row in runs if (base := first.setdefault(row.group, row)) is not row][:LINKED]


def _timestamp(microseconds: int) -> str:
    return numbers.timestamp(records.to_datetime(microseconds), seconds=True)
