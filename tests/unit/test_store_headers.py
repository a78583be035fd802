"""Headers of result files. Reading only the header gives the same fields and the same errors as the whole file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from synthetic import result

from bench.errors import DataError
from bench.model.result import SCHEMA_VERSION
from bench.store import files, headers


def test_a_header_is_the_result_without_its_samples(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    complete = files.read(path)
    assert complete.samples
    assert headers.head(path) == complete.model_copy(update={"samples": []})


VERSION = b'"schema_version": %d' % SCHEMA_VERSION

UNREADABLE: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda text: text[:-100], "not a complete JSON document"),
    (lambda text: text.replace(b'"cifar"', b'"cifar"x'), "not a complete JSON document"),
    (lambda text: text.replace(VERSION, b'"schema_version": 99'), "newer devbench"),
    (lambda text: text.replace(VERSION, b'"schema_version": 1'), "older devbench"),
]


@pytest.mark.parametrize(
    ("reader", "damage", "message"),
    [
        *((reader, *case) for reader in (headers.head, headers.index_entry) for case in UNREADABLE),
        (
            headers.head,
            lambda text: text.replace(b'"loop": "as-written"', b'"loop": "sideways"'),
            "not a valid result: spec.loop",
        ),
        (headers.index_entry, lambda text: text.replace(b'"key"', b'"kee"'), "not a valid result: key"),
        (
            headers.index_entry,
            lambda text: text.replace(VERSION, b'"schema_version": "1"'),
            "not a result of devbench",
        ),
        (headers.index_entry, lambda text: text.replace(VERSION + b",", b""), "not a result of devbench"),
    ],
)
def test_an_invalid_file_gives_the_same_error_whichever_part_is_read(
    tmp_path: Path, reader: Callable[[Path], object], damage: Callable[[bytes], bytes], message: str
) -> None:
    path = files.write(result(), tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=message):
        reader(path)


def test_an_entry_identifies_a_result_and_its_repetitions(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    complete, entry = files.read(path), headers.index_entry(path)
    assert (entry.path, entry.id, entry.created) == (path, complete.id, complete.created)
    assert (entry.key, entry.purpose) == (complete.key, complete.purpose)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    assert headers.index_entry(path) == entry


def test_the_header_of_a_reformatted_file_is_read_too(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    assert headers.head(path) == result()


def test_times_with_and_without_a_zone_can_be_compared(tmp_path: Path) -> None:
    path = files.write(result("a"), tmp_path)
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, "created": "2026-01-02T03:04:05"}), encoding="utf-8")
    other = files.write(result("b"), tmp_path)
    assert headers.index_entry(path).created < headers.index_entry(other).created.replace(year=2030)
