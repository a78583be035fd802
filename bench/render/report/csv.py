"""Every measured time as comma-separated values: one line for each phase, block and single step."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.model.result import Result
from bench.model.sample import ProcessSample
from bench.store import files
from bench.store.selection import result_files

RESULT = ("id", "key", "group", "status", "workload", "case", "backend", "loop")
PROCESS = ("trial", "pid")
VALUE = ("kind", "name", "index", "position", "steps", "seconds", "cpu_seconds")
"""`kind` is phase, warm-up, block, step or failure. `name` is the phase, the series, or the kind of failure. `step` is
a single step of the latency pass."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins with one of these characters is a formula to a spreadsheet."""


def lines(folder: Path) -> Iterator[str]:
    """Yield the header line and a line for each value, file by file.

    Raises:
        DataError: the folder is missing or has no results, or a file in it is not a result.
    """
    paths = result_files(folder)
    yield _line((*RESULT, *PROCESS, *VALUE))
    for path in paths:
        result = files.read(path)
        for sample in result.samples:
            columns = (*_result(result), sample.trial, sample.pid)
            yield from (_line((*columns, *values)) for values in _values(sample))
        if result.failure is not None and not any(sample.failure for sample in result.samples):
            no_process = ("",) * len(PROCESS)
            yield _line((*_result(result), *no_process, "failure", result.failure.kind, *[""] * 5))


def _result(result: Result) -> tuple[object, ...]:
    spec = result.spec
    identity = (result.id, result.key, result.group, result.status)
    return (*identity, spec.workload, spec.case or "", spec.backend, spec.loop)


def _values(sample: ProcessSample) -> Iterator[tuple[object, ...]]:
    for name, seconds in sample.phases.items():
        yield ("phase", name, "", "", "", seconds, "")
    for series in sample.series:
        for kind, blocks in (("warm-up", series.warmup), ("block", series.blocks)):
            for index, block in enumerate(blocks):
                yield (kind, series.name, index, block.position, block.steps, block.seconds, block.cpu_seconds)
    for index, seconds in enumerate(sample.latency):
        yield ("step", "step", index, "", 1, seconds, "")
    if sample.failure is not None:
        yield ("failure", sample.failure.kind, "", "", "", "", "")


def _line(values: Iterable[object]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(map(_cell, values))
    return stream.getvalue()


def _cell(value: object) -> object:
    """Return a cell. A text that a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
