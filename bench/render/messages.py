"""Failures, warnings and notes of results, which the terminal and the report show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench.model.failure import Failure
from bench.model.result import Result
from bench.render.labels import phase_label
from bench.render.text import plain

LAST_LINES = 8
"""Lines of a failed program's output that are shown."""


@dataclass(frozen=True)
class Message:
    """A failure, a warning, a note, or a cause that an explanation found.

    Args:
        kind: which of the four it is.
        text: one sentence.
        details: what to do about it, or evidence.
        output: the last lines that the program wrote.
    """

    kind: Literal["failure", "warning", "note", "cause"]
    text: str
    details: tuple[str, ...] = ()
    output: tuple[str, ...] = ()


def messages(results: Sequence[Result], labels: Sequence[str]) -> list[Message]:
    """Return the failures of results, then their warnings and notes.

    Args:
        results: at least one.
        labels: one for each result. A message that does not concern all results begins with the labels of those that it
            concerns.
    """
    return [*failures(results, labels), *warnings_and_notes(results, labels)]


def failures(results: Sequence[Result], labels: Sequence[str]) -> list[Message]:
    """Return the failure of each failed result, with its hint and the last lines of output. See `messages`."""
    labelled = list(zip(labels, results, strict=True))
    return [
        Message(
            "failure",
            plain((f"{label}: " if len(labelled) > 1 else "") + _sentence(failure)),
            _lines(failure.hint),
            _output(failure),
        )
        for label, result in labelled
        if (failure := result.failure) is not None
    ]


def warnings_and_notes(results: Sequence[Result], labels: Sequence[str]) -> list[Message]:
    """Return the warnings and notes of results, each once. See `messages`."""
    labelled = list(zip(labels, results, strict=True))
    warnings = [
        Message("warning", plain(prefix + message), (plain(fix),) if fix else ())
        for (message, fix), prefix in _shared(labelled, _warnings)
    ]
    notes = [Message("note", plain(prefix + note)) for note, prefix in _shared(labelled, _notes)]
    return [*warnings, *notes]


def _warnings(result: Result) -> Iterator[tuple[str, str]]:
    for warning in result.warnings:
        yield warning.message, warning.fix


def _notes(result: Result) -> Iterator[str]:
    yield from result.notes
    for sample in result.samples:
        yield from sample.notes


def _sentence(failure: Failure) -> str:
    """Return what happened, in which phase, and how the process ended."""
    phase = f"in phase {phase_label(failure.phase)}" if failure.phase else ""
    end = failure.signal or (f"exit code {failure.exit_code}" if failure.exit_code is not None else "")
    circumstances = ", ".join(filter(None, (phase, end if end not in failure.message else "")))
    return failure.message.rstrip(".") + (f" ({circumstances})" if circumstances else "")


def _lines(text: str) -> tuple[str, ...]:
    return tuple(map(plain, text.splitlines()))


def _output(failure: Failure) -> tuple[str, ...]:
    return tuple(plain(line).rstrip() for line in failure.last_lines[-LAST_LINES:])


def _shared(labelled: Sequence[tuple[str, Result]], read: Callable[[Result], Iterable[Any]]) -> list[tuple[Any, str]]:
    """Return each item once, with a prefix that names the results that have it. The prefix is empty if all have it."""
    labels_of: dict[Any, list[str]] = {}
    for label, result in labelled:
        for item in dict.fromkeys(read(result)):
            labels_of.setdefault(item, []).append(label)
    return [
        (item, "" if len(labels) == len(labelled) else f"{'; '.join(labels)}: ") for item, labels in labels_of.items()
    ]
