"""Results on disk: one JSON file each. Any number of runs may write to a folder at the same time.

A file is replaced as a whole (`atomic`), so a reader sees the old document or the new one. A killed run leaves the last
state of its results.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from datetime import timezone
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.errors import DataError, OutputError
from bench.model.explanation import Explanation
from bench.model.result import SCHEMA_VERSION, Result
from bench.store import atomic, mount_hint

SUFFIX = ".json"
FIRST = b'{\n "schema_version": %d,' % SCHEMA_VERSION
"""Start of a file that `write` made."""

EXPLANATIONS = "explanations"
"""Name of the folder of explanations, inside the folder of their results."""

ALTERED = "It was cut short or changed. Measure again."


def prepare(folder: Path, option: str = "--output") -> None:
    """Make a folder and check that it can be written, before anything is measured.

    Args:
        folder: The folder.
        option: The option that names it.

    Raises:
        OutputError: The folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{secrets.token_hex(8)}.tmp"
        atomic.write_durably(probe, b"devbench was here\n")
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
        OutputError: The folder is full, or cannot be made or written.
    """
    return _put(result, folder / file_name(result))


def explanation_file(explanation: Explanation, folder: Path) -> Path:
    """Return the file of an explanation, in the folder `explanations` inside the folder of its results."""
    return folder / EXPLANATIONS / f"{explanation.id}{SUFFIX}"


def write_explanation(explanation: Explanation, folder: Path) -> Path:
    """Write an explanation into the folder `explanations` inside the folder of its results.

    Returns:
        The file.

    Raises:
        OutputError: The folder is full, or cannot be made or written.
    """
    return _put(explanation, explanation_file(explanation, folder))


def explanations(folder: Path) -> dict[str, Explanation]:
    """Return the explanations of a folder of results, by id.

    Raises:
        DataError: One of their files cannot be read, has another schema version, or is not an explanation.
    """
    by_id = {}
    for path in sorted((folder / EXPLANATIONS).glob(f"*{SUFFIX}")):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from None
        try:
            by_id[path.stem] = Explanation.model_validate_json(content)
            _check_version(path, {"schema_version": by_id[path.stem].schema_version})
        except ValidationError as error:
            _check_version(path, _document(path, content))
            raise DataError(f"{path} is not a valid explanation: {error.errors()[0]['msg']}", ALTERED) from None
    return by_id


def _put(document: Result | Explanation, path: Path) -> Path:
    try:
        path.parent.mkdir(exist_ok=True)
        with atomic.replacement(path) as temporary:
            atomic.write_durably(temporary, document.model_dump_json(indent=1).encode() + b"\n")
    except OSError as error:
        raise _unwritable(path.parent, error) from None
    return path


def read(path: Path) -> Result:
    """Return the result in a file.

    Raises:
        DataError: The file cannot be read, is cut short, has another schema version, or is not a result.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    if content.startswith(FIRST):
        with contextlib.suppress(ValidationError):
            return Result.model_validate_json(content)  # twice as fast as parsing the JSON first
    return _parsed(path, content)


def _parsed(path: Path, content: bytes) -> Result:
    """Return the result in a file with an unusual layout, or raise `DataError` with the reason."""
    document = _document(path, content)
    if not isinstance(document, dict) or not isinstance(document.get("schema_version"), int):
        raise DataError(f"{path} is not a result of devbench", "`devbench run` writes results.")
    _check_version(path, document)
    try:
        return Result.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise DataError(f"{path} is not a valid result: {field}: {first['msg']}", ALTERED) from None


def _document(path: Path, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not a complete JSON document: {error}", ALTERED) from None


def _check_version(path: Path, document: Any) -> None:
    """Raise `DataError` if a document has a schema version that this devbench does not read."""
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
    return sorted(map(read, files(folder)), key=lambda result: (result.created.astimezone(timezone.utc), result.id))


def files(folder: Path) -> list[Path]:
    """Return the files in a folder that should be results, by name.

    Raises:
        DataError: The folder does not exist or cannot be read.
    """
    if not folder.is_dir():
        raise DataError(f"folder {folder} does not exist", "`devbench run --output` writes results to a folder.")
    try:
        with os.scandir(folder) as entries:  # it knows the files without a system call for each
            names = [entry.name for entry in entries if entry.name.endswith(SUFFIX) and _is_file(entry)]
    except OSError as error:
        raise DataError(f"cannot read folder {folder}: {error.strerror or error}") from None
    return [folder / name for name in sorted(names)]


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a file, or a link that cannot be followed. Reading the link says why."""
    try:
        return entry.is_file()
    except OSError:
        return True


def find(argument: str, folder: Path) -> list[Path]:
    """Return the files of the results that an argument names.

    A path that ends with `.json`, or that has a separator, is returned even if there is no such file.

    Args:
        argument: A file, a folder, or an id. A part of a file's name is enough if no other file in `folder` has it.
        folder: The folder in which ids are looked up.

    Raises:
        DataError: The folder that the argument names is empty, or no file or several files match an id.
    """
    path = Path(argument)
    if path.is_dir():
        paths = files(path)
        if not paths:
            raise DataError(f"folder {path} holds no result", "`devbench run --output` writes results to a folder.")
        return paths
    if path.is_file() or path.suffix == SUFFIX or os.sep in argument:
        return [path]
    matches = [path for path in folder.glob(f"*{SUFFIX}") if argument in path.stem] if folder.is_dir() else []
    exact = [path for path in matches if f"-{path.stem}".endswith(f"-{argument}")]  # an id may be part of another one
    if len(matches) == 1 or len(exact) == 1:
        return exact or matches
    if matches:
        names = ", ".join(sorted(path.stem for path in matches)[:3])
        raise DataError(f"'{argument}' matches {len(matches)} results in {folder}", f"Write more of the id: {names}, …")
    raise DataError(
        f"'{argument}' is not a file, a folder or the id of a result in {folder}",
        "--output names the folder in which ids are looked up.",
    )


def _unwritable(folder: Path, error: OSError, option: str = "--output") -> OutputError:
    contents = "results" if option == "--output" else f"{option.lstrip('-')}s"
    hint = f"Choose another folder with {option} (or DEVBENCH_{option.lstrip('-').upper()})."
    if isinstance(error, PermissionError) and (advice := mount_hint.hint(folder)):
        hint += f"\n{advice}"
    return OutputError(f"cannot write {contents} to {folder}: {error.strerror or error}", hint)
