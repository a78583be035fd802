"""Results on disk: one JSON file each, written completely or not at all, by any number of runs at once.

A file is written under a temporary name and then moved into place. So a reader sees the old document or the new one,
and a run that is cut off leaves what it had.
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
"""Start of a file that `write` made."""

EXPLANATIONS = "explanations"
"""Folder of explanations, beside their results."""

ALTERED = "It was cut short or changed. Measure again."


def new_id() -> str:
    """Return a unique id: the time in UTC to the millisecond, so that ids sort, and 8 random digits."""
    now = datetime.now(timezone.utc)
    return f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}-{secrets.token_hex(4)}"


def namer(run_id: str | None) -> Callable[[], str]:
    """Return a function that makes the ids of a run: random, or derived from `run_id` and equal at each attempt.

    Args:
        run_id: What requested the run, such as a Job's UID and index.
    """
    if run_id is None:
        return new_id
    numbers = count(1)
    return lambda: f"{run_id}-{next(numbers):03d}"


def prepare(folder: Path, option: str = "--output") -> None:
    """Make a folder and check that it can be written, before anything is measured.

    Args:
        folder: The folder.
        option: The option that names it.

    Raises:
        OutputError: It cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{secrets.token_hex(8)}.tmp"
        _write(probe, b"devbench was here\n")
        probe.unlink()
    except OSError as error:
        raise _unwritable(folder, error, option) from None


def file_name(result: Result) -> str:
    """Return the name of a result's file: workload, backend, loop and id."""
    spec = result.spec
    words = "-".join([spec.title, spec.backend, spec.loop])
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', words).strip('.-')}-{result.id}{SUFFIX}"


def write(result: Result, folder: Path) -> Path:
    """Write a result into the folder, replacing an earlier state of it.

    `headers` relies on the layout: an indent of one, the fields in the model's order.

    Returns:
        The file.

    Raises:
        OutputError: The folder is gone, full or cannot be written.
    """
    return _put(result, folder / file_name(result))


def explanation_file(explanation: Explanation, folder: Path) -> Path:
    """Return the file of an explanation, in the folder `explanations` beside its results."""
    return folder / EXPLANATIONS / f"{explanation.id}{SUFFIX}"


def write_explanation(explanation: Explanation, folder: Path) -> Path:
    """Write an explanation into the folder `explanations` beside its results.

    Returns:
        The file.

    Raises:
        OutputError: The folder is gone, full or cannot be written.
    """
    return _put(explanation, explanation_file(explanation, folder))


def explanations(folder: Path) -> dict[str, Explanation]:
    """Return the explanations beside a folder's results, by id.

    Raises:
        DataError: A file among them is not an explanation.
    """
    by_id = {}
    for path in sorted((folder / EXPLANATIONS).glob(f"*{SUFFIX}")):
        try:
            written = path.read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from None
        try:
            by_id[path.stem] = Explanation.model_validate_json(written)
            _check_version(path, {"schema_version": by_id[path.stem].schema_version})
        except ValidationError as error:
            _check_version(path, _document(path, written))
            raise DataError(f"{path} is not a valid explanation: {error.errors()[0]['msg']}", ALTERED) from None
    return by_id


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
    """Return the result in a file.

    Raises:
        DataError: It cannot be read, is cut short, has another schema version, or is not a result.
    """
    try:
        written = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    if written.startswith(FIRST):
        with contextlib.suppress(ValidationError):
            return Result.model_validate_json(written)  # twice as fast as parsing the JSON first
    return _judged(path, written)


def _judged(path: Path, written: bytes) -> Result:
    """Return the result in a file with an unusual layout, or say what is wrong with it."""
    document = _document(path, written)
    if not isinstance(document, dict) or not isinstance(document.get("schema_version"), int):
        raise DataError(f"{path} is not a result of devbench", "`devbench run` writes results.")
    _check_version(path, document)
    try:
        return Result.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(f"{path} is not a valid result: {where}: {first['msg']}", ALTERED) from None


def _document(path: Path, written: bytes) -> Any:
    try:
        return json.loads(written)
    except ValueError as error:
        raise DataError(f"{path} is not a complete JSON document: {error}", ALTERED) from None


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
    """Return every result in a folder, oldest first.

    Raises:
        DataError: The folder does not exist, or one of its JSON files is not a result.
    """
    return sorted(map(read, files(folder)), key=lambda each: (each.created.astimezone(timezone.utc), each.id))


def files(folder: Path) -> list[Path]:
    """Return the files in a folder that should be results, by name.

    Raises:
        DataError: The folder does not exist.
    """
    if not folder.is_dir():
        raise DataError(f"folder {folder} does not exist", "`devbench run --output` writes results to a folder.")
    with os.scandir(folder) as entries:  # knows what is a file without another system call each
        names = [entry.name for entry in entries if entry.name.endswith(SUFFIX) and entry.is_file()]
    return [folder / name for name in sorted(names)]


def write_text(path: Path, pieces: Iterable[str]) -> int:
    """Write a text to a file. An error leaves the old file unchanged.

    Args:
        path: The file.
        pieces: The text, in order.

    Returns:
        The number of bytes.

    Raises:
        OutputError: The file cannot be written.
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
            f"cannot write {path}: {error.strerror or error}", "Choose another file with --output."
        ) from None
    return size


def find(argument: str, folder: Path) -> list[Path]:
    """Return the files of the results that an argument names: a file, all of a folder, or the one with an id.

    Args:
        argument: A path, or an id or a unique part of one.
        folder: Where ids are looked up.

    Raises:
        DataError: There is no such result.
    """
    path = Path(argument)
    if path.is_dir():
        paths = files(path)
        if not paths:
            raise DataError(f"folder {path} holds no result", "`devbench run --output` writes results to a folder.")
        return paths
    if path.is_file() or path.suffix == SUFFIX or os.sep in argument:
        return [path]
    matches = [each for each in folder.glob(f"*{SUFFIX}") if argument in each.stem] if folder.is_dir() else []
    if len(matches) == 1:
        return matches
    if matches:
        names = ", ".join(sorted(each.stem for each in matches)[:3])
        raise DataError(f"'{argument}' matches {len(matches)} results in {folder}", f"Write more of the id: {names}, …")
    raise DataError(
        f"'{argument}' is not a file, a folder or the id of a result in {folder}",
        "--output names the folder in which ids are looked up.",
    )


def _write(path: Path, data: bytes) -> None:
    """Write a new file with the usual permissions, and wait until the disk has it."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _replace(temporary: Path, path: Path) -> None:
    """Move a file onto another. Windows refuses while somebody reads the other, so it is tried again."""
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
    return OutputError(f"cannot write {what} to {folder}: {error.strerror or error}", hint)
