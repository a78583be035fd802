"""Describes an exception of a program: its message without long lists of values, and the line of the program.

Only frames of the program are shown, not those of devbench, of TensorFlow or of Python's library.
"""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
"""The folder of this package."""

LONGEST = 1000
"""Maximum characters of a message."""

_NUMBER = r"(?:[-+]?(?:\d[\w.+-]*|\.\d+|nan|inf)|True|False)"
_VALUES = re.compile(rf"({_NUMBER}(?:[\s,\[\]]+{_NUMBER}){{2}})(?:[\s,\[\]]+{_NUMBER}){{6,}}")
"""Nine or more numbers in a row, as arrays print them. The group holds the first three."""

_FRAME = re.compile(r'^[ \t]*File "([^"\n]+)", line \d+.*\n?(?:^[ \t]+(?!File ")(?!\w+Error: ).*\n?)?', re.MULTILINE)
"""A line of a traceback within a message, with the line of source below it."""

_HEADER = re.compile(r"in user code:\s*")


def error_text(error: BaseException, file: Path | None) -> str:
    """Return an exception's type and message, and the line of the program that led to it, if there is one.

    Args:
        error: the exception.
        file: the user's file. None for a built-in workload.
    """
    if isinstance(error, SyntaxError) and error.filename and file is not None:
        text = f"{type(error).__name__}: {error.msg}"
        return f"{text}\n{_place(Path(error.filename), error.lineno or 0, error.text or '', file)}"
    text = f"{_name(error)}: {message(error, file)}".removesuffix(": ")
    frames = program_frames(error, file)
    if not frames or file is None:
        return text
    return f"{text}\n{_place(Path(frames[-1].filename), frames[-1].lineno or 0, frames[-1].line or '', file)}"


def message(error: BaseException, file: Path | None) -> str:
    """Return an exception's message without long lists of values, and without frames that are not the program's."""

    def keep(match: re.Match[str]) -> str:
        return match.group() if is_program(Path(match.group(1)), file) else ""

    text = _FRAME.sub(keep, str(error).strip())
    if not _FRAME.search(text):
        text = _HEADER.sub("", text)
    text = _VALUES.sub(r"\1 …", text).strip()
    if len(text) > LONGEST:  # TensorFlow often says at the end what happened
        text = f"{text[: LONGEST * 2 // 3]} … {text[-LONGEST // 3 :]}"
    return text


def names_program(error: BaseException, file: Path | None) -> bool:
    """Return whether an exception came from a line of the program, by its traceback or the frames in its message."""
    in_message = (Path(match.group(1)) for match in _FRAME.finditer(str(error)))
    return bool(program_frames(error, file)) or any(is_program(path, file) for path in in_message)


def program_frames(error: BaseException, file: Path | None) -> list[traceback.FrameSummary]:
    """Return the frames of an exception's traceback that are the program's, the innermost last."""
    return [frame for frame in traceback.extract_tb(error.__traceback__) if is_program(Path(frame.filename), file)]


def is_program(path: Path, file: Path | None) -> bool:
    """Return whether a source file is the program's: the user's file, or a file in its folder that is not installed.

    Args:
        path: the source file.
        file: the user's file. None for a built-in workload.
    """
    if file is None:
        return PACKAGE / "workloads" in path.parents
    return path == file or (file.parent in path.parents and not is_installed(path))


def is_devbench(path: Path) -> bool:
    """Return whether a source file is devbench's own, and not a built-in workload."""
    return PACKAGE in path.parents and PACKAGE / "workloads" not in path.parents


def traceback_lines(error: BaseException, file: Path | None) -> Iterator[str]:
    """Yield the lines of a traceback without devbench's own frames. If there are no others, keep them.

    Args:
        error: the exception.
        file: the user's file. None for a built-in workload.
    """
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from traceback_lines(cause, file)
        yield "\nThen:\n\n"
    frames = traceback.extract_tb(error.__traceback__)
    others = [frame for frame in frames if not is_devbench(Path(frame.filename))]
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_list(others or list(frames))
    yield f"{_name(error)}: {message(error, file)}\n"


def _name(error: BaseException) -> str:
    """Return the name of an exception's type. AutoGraph derives types of its own, such as MultilineMessageKeyError."""
    return type(error).__name__.removeprefix("MultilineMessage")


def is_installed(path: Path) -> bool:
    """Return whether a source file belongs to Python's library, to an installed package, or to devbench."""
    libraries = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    named = {"site-packages", "dist-packages"} & set(path.parts)
    return bool(named) or PACKAGE in path.parents or not libraries.isdisjoint(path.parents)


def _place(path: Path, line: int, source: str, file: Path) -> str:
    name = path.relative_to(file.parent) if file.parent in path.parents else path
    return f"  {name}, line {line}" + (f": {source.strip()}" if source.strip() else "")
