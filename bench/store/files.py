"""Results on disk: one JSON file each, written whole or not at all, by any number of runs at once.

A file is written beside its place and then put there in one move, so a reader meets the old document or
the new one, and a run that is cut off leaves what it had.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.errors import DataError, OutputError
from bench.model.explanation import Explanation
from bench.model.result import SCHEMA_VERSION, Result
from bench.store import mount_hint

SUFFIX = ".json"
FIRST = b'{\n "schema_version": %d,' % SCHEMA_VERSION
"""Begins a file that `write` made."""

EXPLANATIONS = "explanations"
"""Folder of what `devbench explain` found, beside its results."""

ALTERED = "It was cut short or altered; run it again."


def new_id() -> str:
    """An id that no other run makes: the time in UTC to the millisecond, so that ids sort, and 8 random digits."""
    now = datetime.now(timezone.utc)
    return f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}-{secrets.token_hex(4)}"


def namer(run_id: str | None) -> Callable[[], str]:
    """What makes a run's ids: by chance, or after what asked for the run, the same ones at each attempt.

    Args:
        run_id: what asked for it, such as a Job's UID and index.
    """
    if run_id is None:
        return new_id
    numbers = count(1)
    return lambda: f"{run_id}-{next(numbers):03d}"


def prepare(folder: Path, option: str = "--output") -> None:
    """Makes the folder and proves that it can be written, before anything is measured.

    Args:
        folder: for results, or for what else a run writes.
        option: that names it.

    Raises:
        OutputError: it can't.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{secrets.token_hex(8)}.tmp"
        _write(probe, b"devbench was here\n")
        probe.unlink()
    except OSError as error:
        raise _unwritable(folder, error, option) from None


def file_name(result: Result) -> str:
    """The name of a result's file: what was run, where, how, and its id."""
    spec = result.spec
    words = "-".join([spec.title, spec.backend, spec.loop])
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', words).strip('.-')}-{result.id}{SUFFIX}"


def write(result: Result, folder: Path) -> Path:
    """Puts a result into the folder, in place of an earlier state of the same one.

    `heads` relies on how it looks: an indent of one, the fields in the model's order.

    Returns:
        Its file.

    Raises:
        OutputError: the folder is gone, full or can't be written.
    """
    return _put(result, folder / file_name(result))


def explanation_file(explanation: Explanation, folder: Path) -> Path:
    """Return the file of an explanation, in the folder `explanations` beside its results."""
    return folder / EXPLANATIONS / f"{explanation.id}{SUFFIX}"


def write_explanation(found: Explanation, folder: Path) -> Path:
    """Puts an explanation into the folder `explanations` beside the results that it was read from.

    Returns:
        Its file.

    Raises:
        OutputError: the folder is gone, full or can't be written.
    """
    return _put(found, explanation_file(found, folder))


def explanations(folder: Path) -> dict[str, Explanation]:
    """The explanations beside a folder's results, by id.

    Raises:
        DataError: a file among them is none.
    """
    found = {}
    for path in sorted((folder / EXPLANATIONS).glob(f"*{SUFFIX}")):
        try:
            written = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path} can't be read: {error.strerror or error}") from None
        try:
            found[path.stem] = Explanation.model_validate_json(written)
            _check_version(path, {"schema_version": found[path.stem].schema_version})
        except ValidationError as error:
            _check_version(path, _document(path, written))
            raise DataError(f"{path} is no valid explanation: {error.errors()[0]['msg']}", ALTERED) from None
    return found


def _put(document: Result | Explanation, path: Path) -> Path:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(exist_ok=True)
        try:
            _write(temporary, document.model_dump_json(indent=1).encode() + b"\n")
            _replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path.parent, error) from None
    return path


def read(path: Path) -> Result:
    """The result in a file.

    Raises:
        DataError: it can't be read, is cut short, has another schema version, or is no result.
    """
    try:
        written = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror or error}") from None
    if written.startswith(FIRST):
        with contextlib.suppress(ValidationError):
            return Result.model_validate_json(written)  # in one go, which takes half as long
    return _judged(path, written)


def _judged(path: Path, written: bytes) -> Result:
    """The result in a file that is not quite as it should be, or what is wrong with it."""
    document = _document(path, written)
    if not isinstance(document, dict) or not isinstance(document.get("schema_version"), int):
        raise DataError(f"{path} is no result of devbench", "Results are the files that `devbench run` writes.")
    _check_version(path, document)
    try:
        return Result.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(f"{path} is no valid result: {where}: {first['msg']}", ALTERED) from None


def _document(path: Path, written: bytes) -> Any:
    try:
        return json.loads(written)
    except ValueError as error:
        raise DataError(f"{path} is no whole JSON document: {error}", ALTERED) from None


def _check_version(path: Path, document: Any) -> None:
    """Raise `DataError` if a document has another schema version than this devbench reads."""
    version = document.get("schema_version") if isinstance(document, dict) else None
    if not isinstance(version, int) or version == SCHEMA_VERSION:
        return
    age, advice = ("newer", "Upgrade devbench.") if version > SCHEMA_VERSION else ("older", "Measure again.")
    release = f"{document['devbench']}, " if "devbench" in document else ""
    raise DataError(
        f"{path} was written by {'a' if age == 'newer' else 'an'} {age} devbench ({release}schema {version})",
        f"This version reads schema {SCHEMA_VERSION}. {advice}",
    )


def results(folder: Path) -> list[Result]:
    """Every result in a folder, oldest first.

    Raises:
        DataError: the folder is not there, or one of its JSON files is no result.
    """
    return sorted(map(read, files(folder)), key=lambda each: (each.created.astimezone(timezone.utc), each.id))


def files(folder: Path) -> list[Path]:
    """The files that should be results, by name: for a folder that holds more than should be read at once.

    Raises:
        DataError: the folder is not there.
    """
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}", "`devbench run` writes results there with --output.")
    with os.scandir(folder) as found:  # which knows what is a file without asking again for each
        names = [each.name for each in found if each.name.endswith(SUFFIX) and each.is_file()]
    return [folder / name for name in sorted(names)]


def write_text(path: Path, pieces: Iterable[str]) -> int:
    """Puts a text into a file in one move, so that an error on the way leaves what was there.

    Args:
        path: the file.
        pieces: the text, in order.

    Returns:
        Its bytes.

    Raises:
        OutputError: the file can't be written.
    """
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
    size = 0
    try:
        try:
            with temporary.open("xb") as file:
                for piece in pieces:
                    size += file.write(piece.encode())
            _replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"{path} can't be written: {error.strerror or error}", "Choose another file with --output."
        ) from None
    return size


def find(named: str, folder: Path) -> list[Path]:
    """The files of the results that an argument names: a file, a folder's all, or the one whose id this is.

    Args:
        named: a path, or an id or a part of it that only one result in `folder` has.
        folder: where ids are looked up.

    Raises:
        DataError: nothing is there.
    """
    path = Path(named)
    if path.is_dir():
        found = files(path)
        if not found:
            raise DataError(f"there is no result in {path}", "`devbench run` writes results there with --output.")
        return found
    if path.is_file() or path.suffix == SUFFIX or os.sep in named:
        return [path]
    known = [each for each in folder.glob(f"*{SUFFIX}") if named in each.stem] if folder.is_dir() else []
    if len(known) == 1:
        return known
    if known:
        names = ", ".join(sorted(each.stem for each in known)[:3])
        raise DataError(f"{len(known)} results in {folder} are called '{named}'", f"Write more of the id: {names}, …")
    raise DataError(
        f"'{named}' is no file, no folder and no result in {folder}",
        "--output names the folder that ids are looked up in.",
    )


def _write(path: Path, data: bytes) -> None:
    """Writes a new file and waits until the disk has it; the file's rights are the usual ones."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _replace(temporary: Path, path: Path) -> None:
    """Moves a file onto another. Windows refuses while somebody reads the other, which passes."""
    for pause in (0.01, 0.05, 0.2, 1.0) if sys.platform == "win32" else ():
        try:
            temporary.replace(path)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    temporary.replace(path)


def _unwritable(folder: Path, error: OSError, option: str = "--output") -> OutputError:
    what = "results" if option == "--output" else f"{option.lstrip('-')}s"
    hint = f"Choose another folder with {option} (or DEVBENCH_{option.lstrip('-').upper()})."
    if isinstance(error, PermissionError) and (more := mount_hint.hint(folder)):
        hint += f"\n{more}"
    return OutputError(f"{what} can't be written to {folder}: {error.strerror or error}", hint)
