"""Every time that was measured, unsummarised, as comma-separated values: a line a phase, block and single step."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.errors import DataError
from bench.model.result import ProcessSample, Result
from bench.store import files as store

ABOUT = ("id", "key", "group", "status", "workload", "case", "backend", "loop", "trial", "pid")
VALUES = ("kind", "name", "index", "position", "steps", "seconds", "cpu_seconds")
"""`kind` is phase, warm-up or block (of a series), step (alone, synchronised), or failure, whose name says how."""


def lines(folder: Path) -> Iterator[str]:
    """The head and a line for each value, file by file.

    Raises:
        DataError: the folder is not there, holds no result, or a file in it is none.
    """
    files = store.files(folder)
    if not files:
        raise DataError(f"there are no results in {folder}", "`devbench run` writes results there with --output.")
    yield _line((*ABOUT, *VALUES))
    for path in files:
        result = store.read(path)
        for sample in result.samples:
            about = _about(result, sample)
            yield from (_line((*about, *values)) for values in _values(sample))
        if result.failure is not None and not any(sample.failure for sample in result.samples):
            nobody = ("",) * 2
            yield _line((*_of(result), *nobody, "failure", result.failure.kind, *[""] * 5))


def _of(result: Result) -> tuple[object, ...]:
    spec = result.spec
    about = (result.id, result.key, result.group, result.status, spec.workload, spec.case or "")
    return (*about, spec.backend, spec.loop)


def _about(result: Result, sample: ProcessSample) -> tuple[object, ...]:
    return (*_of(result), sample.trial, sample.pid)


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
    csv.writer(stream, lineterminator="\n").writerow(values)
    return stream.getvalue()
