"""The first part of a result's file says the same as the whole, and what is no result is refused by it too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from synthetic import result

from bench.errors import DataError
from bench.model.result import SCHEMA_VERSION
from bench.store import files, headers


def test_a_head_is_the_result_without_its_samples(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    whole = files.read(path)
    assert whole.samples
    assert headers.head(path) == whole.model_copy(update={"samples": []})


VERSION = b'"schema_version": %d' % SCHEMA_VERSION

UNREADABLE: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda text: text[:-100], "not a complete JSON document"),
    (lambda text: text.replace(b'"cifar"', b'"cifar"x'), "not a complete JSON document"),
    (lambda text: text.replace(VERSION, b'"schema_version": 99'), "newer devbench"),
    (lambda text: text.replace(VERSION, b'"schema_version": 1'), "older devbench"),
]


@pytest.mark.parametrize(
    ("read", "spoil", "message"),
    [
        *((read, *each) for read in (headers.head, headers.entry) for each in UNREADABLE),
        (
            headers.head,
            lambda text: text.replace(b'"loop": "as-written"', b'"loop": "sideways"'),
            "not a valid result: spec.loop",
        ),
        (headers.entry, lambda text: text.replace(b'"key"', b'"kee"'), "not a valid result: key"),
        (
            headers.entry,
            lambda text: text.replace(VERSION, b'"schema_version": "1"'),
            "not a result of devbench",
        ),
        (headers.entry, lambda text: text.replace(VERSION + b",", b""), "not a result of devbench"),
    ],
)
def test_a_head_or_an_entry_of_a_file_that_is_no_result_is_refused_as_the_whole_is(
    tmp_path: Path, read: Callable[[Path], object], spoil: Callable[[bytes], bytes], message: str
) -> None:
    path = files.write(result(), tmp_path)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(DataError, match=message):
        read(path)


def test_an_entry_is_what_tells_a_result_from_its_repetitions(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    whole, found = files.read(path), headers.entry(path)
    assert (found.path, found.id, found.created) == (path, whole.id, whole.created)
    assert (found.key, found.purpose) == (whole.key, whole.purpose)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    assert headers.entry(path) == found


def test_a_file_that_another_program_has_formatted_has_a_head_too(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    assert headers.head(path) == result()
