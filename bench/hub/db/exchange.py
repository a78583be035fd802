"""Export and import: everything that a hub holds, in one file of JSON lines.

An export is one consistent view, even while the hub serves. The first line identifies the file, and the last one holds
the number of documents between them, so that a truncated file is detected. An import stores each document as if it were
sent again, so importing a file twice changes nothing.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, select

from bench.errors import DataError, OutputError
from bench.hub.db import documents, edits, records, result_queries, writes
from bench.hub.db.database import Database
from bench.hub.db.tables import DELETED, EXPLANATIONS, RESULTS, RUNS
from bench.hub.problems import Problem
from bench.version import __version__

FORMAT = 1
FORMAT_KEY = "devbench_hub_export"
BATCH = 100
"""Results that are read at a time."""


def export_to(database: Database, file: Path) -> int:
    """Write everything to a file, compressed if its name ends with `.gz`. After an error the old file is unchanged.

    Returns:
        The number of documents.

    Raises:
        OutputError: the file cannot be written.
    """
    temporary = file.with_name(f".{file.name}.tmp")
    count = 0
    try:
        try:
            with _open(temporary, "wt", file.suffix) as stream, database.read() as connection:
                stream.write(_line({FORMAT_KEY: FORMAT, "devbench": __version__}))
                for entry in _entries(connection):
                    stream.write(_line(entry))
                    count += 1
                stream.write(_line({"end": count}))
            temporary.replace(file)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {file}: {error.strerror or error}", "Choose another file.") from None
    return count


def import_from(database: Database, file: Path) -> int:
    """Import what `export_to` wrote.

    Returns:
        The number of documents in the file.

    Raises:
        DataError: the file is not an export, is truncated or altered, or holds a document of another version of
            devbench. The documents before that place are imported.
    """
    count = 0
    try:
        with _open(file, "rt", file.suffix) as stream:
            for entry in _read_entries(stream, file):
                _store(database, entry, file, count + 2)
                count += 1
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"cannot read {file}: {error}", f"Imported {count} documents before the error.") from None
    return count


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


def _read_entries(stream: IO[str], file: Path) -> Iterator[dict[str, Any]]:
    first = _parse_line(stream.readline(), file, 1)
    version = first.get(FORMAT_KEY)
    if not isinstance(version, int):
        raise DataError(f"{file} is not an export of a hub", "Write one with `devbench hub export FILE`.")
    if version > FORMAT:
        raise DataError(f"a newer version of devbench ({first.get('devbench')}) wrote {file}", "Upgrade devbench.")
    count = 0
    for number, line in enumerate(stream, 2):
        entry = _parse_line(line, file, number)
        if "end" in entry:
            if entry["end"] != count:
                break
            return
        count += 1
        yield entry
    raise DataError(f"{file} is truncated or altered", f"Imported {count} documents before the error.")


def _store(database: Database, entry: dict[str, Any], file: Path, line: int) -> None:
    time = entry.get("received")
    if not isinstance(time, int) or isinstance(time, bool) or not 0 <= time <= records.LATEST:
        raise DataError(f"{file}, line {line}: invalid time of receipt", "Write the file with `devbench hub export`.")
    try:
        if "result" in entry:
            body = str(entry["result"]).encode()
            result = documents.result(body)
            documents.check_id(result, result.id)
            outcome = writes.put_result(database, result, body, time)
            if outcome != "superseded" and "annotations" in entry and not _is_annotated(database, result.id):
                change = edits.Annotations.parse(json.dumps(entry["annotations"]).encode())
                edits.annotate(database, result.id, change)
        elif "deleted" in entry:
            edits.keep_deletion(database, str(entry["deleted"]), entry.get("precedence"), time)
        elif "run" in entry:
            run = documents.run(str(entry["run"]).encode())
            documents.check_id(run, run.id)
            writes.put_run(database, run, time)
        else:
            body = str(entry.get("explanation", "")).encode()
            explanation = documents.explanation(body)
            documents.check_id(explanation, explanation.id)
            writes.put_explanation(database, explanation, body, time)
    except Problem as problem:
        if problem.status == 409:  # the stored result stays
            return
        raise DataError(f"{file}, line {line}: {problem}", problem.hint) from None


def _is_annotated(database: Database, id_: str) -> bool:
    with database.read() as connection:
        row = result_queries.result_row(connection, id_)
    return bool(row.tags.strip() or row.note or row.silenced)


def _parse_line(line: str, file: Path, number: int) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        imported = max(0, number - 2)
        hint = f"Imported {imported} documents before the error."
        raise DataError(f"{file} is truncated or altered at line {number}", hint)
    return entry


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document) + "\n"


def _open(file: Path, mode: str, suffix: str) -> Any:
    if suffix == ".gz":
        return gzip.open(file, mode, compresslevel=3, encoding="utf-8")
    return file.open(mode, encoding="utf-8")
