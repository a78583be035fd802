"""Export and import: everything that a hub holds, in one file of JSON lines.

An export is one consistent view, even while the hub serves. The first line identifies the file, and the last one holds
the number of documents between them, so that a truncated file is detected. An import stores each document as if it were
sent again, so importing a file twice changes nothing. It skips documents that it cannot store, and names them at the
end.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, select
from sqlalchemy.exc import DataError as ValueRefused
from sqlalchemy.exc import SQLAlchemyError

from bench.errors import DataError, OutputError
from bench.hub.db import documents, edits, records, result_queries, writes
from bench.hub.db.database import Database, cannot_use
from bench.hub.db.stored_runs import with_short_title
from bench.hub.db.tables import DELETED, EXPLANATIONS, RESULTS, RUNS
from bench.hub.problems import Problem
from bench.render import numbers
from bench.store import atomic
from bench.version import __version__

FORMAT = 1
FORMAT_KEY = "devbench_hub_export"
BATCH = 100
"""Results that are read at a time."""

NAMED = 20
"""Maximum number of documents that a message names."""


@dataclass
class _Import:
    """An import that has begun.

    Args:
        file: the file.
        imported: the number of documents that the hub has now.
        skipped: the lines of the documents that it cannot store, and why.
    """

    file: Path
    imported: int = 0
    skipped: list[tuple[int, Problem]] = field(default_factory=list)

    def error(self, what: str, hint: str = "") -> DataError:
        """Return the error that ends the import, with what was imported until then."""
        done = f"Imported {numbers.count(self.imported, 'document')} before the error."
        return DataError(what, "\n".join(filter(None, [hint, *self._named(self.skipped), done])))

    def check(self) -> None:
        """Check that no document was skipped.

        Raises:
            DataError: at least one was.
        """
        if self.skipped:
            (line, problem), *others = self.skipped
            done = f"Imported {self.imported} of {numbers.count(self.imported + len(self.skipped), 'document')}."
            hint = "\n".join(filter(None, [problem.hint, *self._named(others), done]))
            raise DataError(f"{self.file}, line {line}: {problem}", hint)

    def _named(self, skipped: list[tuple[int, Problem]]) -> list[str]:
        lines = [f"Not imported: line {line}: {problem}" for line, problem in skipped[:NAMED]]
        more = len(skipped) - NAMED
        return [*lines, f"Not imported: {numbers.count(more, 'other document')}."] if more > 0 else lines


def export_to(database: Database, file: Path) -> int:
    """Write everything to a file, compressed if its name ends with `.gz`. After an error the old file is unchanged.

    Returns:
        The number of documents.

    Raises:
        OutputError: the file cannot be written.
        UsageError: the database cannot be read.
    """
    count = 0
    try:
        with (
            atomic.replacement(file) as temporary,
            _open(temporary, "wt", file.suffix) as stream,
            database.read() as connection,
        ):
            stream.write(_line({FORMAT_KEY: FORMAT, "devbench": __version__}))
            for entry in _entries(connection):
                stream.write(_line(entry))
                count += 1
            stream.write(_line({"end": count}))
    except OSError as error:
        raise OutputError(f"cannot write {file}: {error.strerror or error}", "Choose another file.") from None
    except SQLAlchemyError as error:
        raise cannot_use(database, error) from None
    return count


def import_from(database: Database, file: Path) -> int:
    """Import what `export_to` wrote.

    Returns:
        The number of documents in the file.

    Raises:
        DataError: the file is not an export, is truncated or altered, or holds documents that this version of devbench
            cannot read. All others are imported.
        DataError: the database cannot be written. The documents before that place are imported.
    """
    progress = _Import(file)
    try:
        with _open(file, "rt", file.suffix) as stream:
            for line, entry in _read_entries(stream, progress):
                try:
                    _store(database, entry)
                    progress.imported += 1
                except Problem as problem:
                    progress.skipped.append((line, problem))
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise progress.error(f"cannot read {file}: {error}") from None
    except SQLAlchemyError as error:
        failure = cannot_use(database, error)
        raise progress.error(failure.message, failure.hint) from None
    progress.check()
    return progress.imported


def _entries(connection: Connection) -> Iterator[dict[str, Any]]:
    columns = [RESULTS.c.id, RESULTS.c.received, RESULTS.c.tags, RESULTS.c.note, RESULTS.c.silenced]
    last_id = ""
    while rows := connection.execute(
        select(*columns).where(RESULTS.c.id > last_id).order_by(RESULTS.c.id).limit(BATCH)
    ).all():
        for row in rows:
            entry = {"result": result_queries.result_body(connection, row.id).decode(), "received": row.received}
            if row.tags or row.note or row.silenced:
                entry["annotations"] = {"tags": row.tags.split(), "note": row.note, "silenced": row.silenced}
            yield entry
        last_id = rows[-1].id
    for row in connection.execute(select(RUNS.c.document, RUNS.c.last_seen).order_by(RUNS.c.id)):
        yield {"run": row.document, "received": row.last_seen}
    for row in connection.execute(select(EXPLANATIONS).order_by(EXPLANATIONS.c.id)):
        yield {"explanation": row.document, "received": row.received}
    for row in connection.execute(select(DELETED).order_by(DELETED.c.id)):
        yield {"deleted": row.id, "precedence": row.precedence, "received": row.deleted}


def _read_entries(stream: IO[str], progress: _Import) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the entries between the first and the last line, and their lines. Lines that are no entries are skipped."""
    file = progress.file
    try:
        first = _parsed(stream.readline())
    except Problem:
        raise progress.error(f"{file} is truncated or altered at line 1") from None
    version = first.get(FORMAT_KEY)
    if not isinstance(version, int):
        raise DataError(f"{file} is not an export of a hub", "Write one with `devbench hub export FILE`.")
    if version > FORMAT:
        raise DataError(f"a newer version of devbench ({first.get('devbench')}) wrote {file}", "Upgrade devbench.")
    for line, text in enumerate(stream, 2):
        try:
            entry = _parsed(text)
        except Problem as problem:
            progress.skipped.append((line, problem))
            continue
        if "end" in entry:
            if entry["end"] != line - 2:
                break
            return
        yield line, entry
    raise progress.error(f"{file} is truncated or altered")


def _store(database: Database, entry: dict[str, Any]) -> None:
    """Store an entry of an export.

    Raises:
        Problem: its document cannot be stored.
    """
    time = entry.get("received")
    if not isinstance(time, int) or isinstance(time, bool) or not 0 <= time <= records.LATEST:
        raise _unusable("invalid time of receipt", "Write the file with `devbench hub export`.")
    try:
        if "result" in entry:
            _store_result(database, entry, time)
        elif "deleted" in entry:
            edits.keep_deletion(database, str(entry["deleted"]), entry.get("precedence"), time)
        elif "run" in entry:
            document = with_short_title(_parsed(str(entry["run"])))
            run = documents.run(json.dumps(document).encode(), long_texts=True)
            documents.check_id(run, run.id)
            writes.put_run(database, run, time, imported=True)
        else:
            body = str(entry.get("explanation", "")).encode()
            explanation = documents.explanation(body, long_texts=True)
            documents.check_id(explanation, explanation.id)
            writes.put_explanation(database, explanation, body, time)
    except UnicodeEncodeError:
        raise _unusable("the document has a character that is not valid Unicode") from None
    except ValueRefused:
        raise _unusable("the database cannot hold a value of the document") from None


def _store_result(database: Database, entry: dict[str, Any], time: int) -> None:
    body = str(entry["result"]).encode()
    result = documents.result(body, long_texts=True)
    documents.check_id(result, result.id)
    try:
        outcome = writes.put_result(database, result, body, time)
    except Problem as problem:
        if problem.status == 409:  # the stored result stays
            return
        raise
    if outcome != "superseded" and "annotations" in entry and not _is_annotated(database, result.id):
        change = edits.Annotations.parse(json.dumps(entry["annotations"]).encode())
        edits.annotate(database, result.id, change)


def _is_annotated(database: Database, id_: str) -> bool:
    with database.read() as connection:
        row = result_queries.result_row(connection, id_)
    return bool(row.tags.strip() or row.note or row.silenced)


def _parsed(line: str) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        Problem: it is none, or it is nested too deeply.
    """
    try:
        document = json.loads(line)
    except ValueError:
        document = None
    except RecursionError:
        raise _unusable("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise _unusable("it is not a JSON object")
    return document


def _unusable(why: str, hint: str = "") -> Problem:
    return Problem(422, "invalid-document", why, hint)


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document) + "\n"


def _open(file: Path, mode: str, suffix: str) -> Any:
    if suffix == ".gz":
        return gzip.open(file, mode, compresslevel=3, encoding="utf-8")
    return file.open(mode, encoding="utf-8")
