"""Export and import: everything that a hub holds as one file of JSON lines, read in one view while the hub goes on.

The first line says what it is, the last how many there are between them, so that a file that was cut short is seen.
Importing is sending again: what is there already stays, and the same file twice is one.
"""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, select

from bench.errors import DataError, OutputError
from bench.hub.db import documents, queries, writes
from bench.hub.db.database import Database
from bench.hub.db.tables import EXPLANATIONS, RESULTS, RUNS
from bench.hub.problems import Problem
from bench.version import __version__

FORMAT = 1
HEAD = "devbench_hub_export"
BATCH = 100


def dump(database: Database, file: Path) -> int:
    """Writes everything into a file, compressed where it is called `….gz`; an error on the way leaves what was there.

    Returns:
        How many documents there are.

    Raises:
        OutputError: the file can't be written.
    """
    temporary = file.with_name(f".{file.name}.tmp")
    count = 0
    try:
        try:
            with _opened(temporary, "wt", file.suffix) as stream, database.read() as connection:
                stream.write(_line({HEAD: FORMAT, "devbench": __version__}))
                for each in _everything(connection):
                    stream.write(_line(each))
                    count += 1
                stream.write(_line({"end": count}))
            temporary.replace(file)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{file} can't be written: {error.strerror or error}", "Name another file.") from None
    return count


def restore(database: Database, file: Path) -> int:
    """Takes in what `dump` wrote.

    Returns:
        How many documents there are in the file.

    Raises:
        DataError: it is no export, of a newer devbench, cut short or altered; what came before that is taken in.
    """
    count = 0
    try:
        with _opened(file, "rt", file.suffix) as stream:
            for each in _lines(stream, file):
                _taken(database, each, file, count + 2)
                count += 1
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{file} can't be read: {error}", f"{count} documents of it are taken in.") from None
    return count


def _everything(connection: Connection) -> Iterator[dict[str, Any]]:
    own = [RESULTS.c.id, RESULTS.c.received]
    last = ""
    while rows := connection.execute(select(*own).where(RESULTS.c.id > last).order_by(RESULTS.c.id).limit(BATCH)).all():
        for row in rows:
            yield {"result": queries.body(connection, row.id).decode(), "received": row.received}
        last = rows[-1].id
    for row in connection.execute(select(RUNS.c.document, RUNS.c.seen).order_by(RUNS.c.id)):
        yield {"run": row.document, "received": row.seen}
    for row in connection.execute(select(EXPLANATIONS).order_by(EXPLANATIONS.c.id)):
        yield {"explanation": row.document, "received": row.received}


def _lines(stream: IO[str], file: Path) -> Iterator[dict[str, Any]]:
    first = _document(stream.readline(), file, 1)
    version = first.get(HEAD)
    if not isinstance(version, int):
        raise DataError(f"{file} is no export of a hub", "`devbench hub export FILE` writes one.")
    if version > FORMAT:
        raise DataError(f"{file} is of a newer devbench ({first.get('devbench')})", "Upgrade devbench.")
    count = 0
    for number, line in enumerate(stream, 2):
        found = _document(line, file, number)
        if "end" in found:
            if found["end"] != count:
                break
            return
        count += 1
        yield found
    raise DataError(f"{file} was cut short or altered after {count} documents", "What came before is taken in.")


def _taken(database: Database, found: dict[str, Any], file: Path, number: int) -> None:
    received = found.get("received")
    when = received if isinstance(received, int) else None
    try:
        if "result" in found:
            body = str(found["result"]).encode()
            result = documents.result(body)
            documents.named(result, result.id)
            writes.put_result(database, result, body, when)
        elif "run" in found:
            run = documents.run(str(found["run"]).encode())
            documents.named(run, run.id)
            writes.put_run(database, run, when)
        else:
            body = str(found.get("explanation", "")).encode()
            explanation = documents.explanation(body)
            documents.named(explanation, explanation.id)
            writes.put_explanation(database, explanation, body, when)
    except Problem as problem:
        if problem.status == 409:  # what the hub knows stays
            return
        raise DataError(f"{file}, line {number}: {problem}", problem.hint) from None


def _document(line: str, file: Path, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError(f"{file}, line {number}, was cut short or altered", "What came before is taken in.")
    return found


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document) + "\n"


def _opened(file: Path, mode: str, suffix: str) -> Any:
    if suffix == ".gz":
        return gzip.open(file, mode, compresslevel=3, encoding="utf-8")
    return file.open(mode, encoding="utf-8")
