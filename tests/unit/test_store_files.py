"""Files of results: complete documents only, from concurrent writers, and errors that say what is wrong."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from synthetic import measured, result

from bench.errors import DataError, OutputError
from bench.model.result import SCHEMA_VERSION
from bench.store import files, ids


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    original = result()
    path = files.write(original, tmp_path)
    assert path.name == f"cifar-cpu-as-written-{original.id}.json"
    assert files.read(path) == original


def test_results_that_started_in_the_same_millisecond_keep_their_order(tmp_path: Path) -> None:
    start = datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=timezone.utc)
    for index, name in enumerate(("b", "c", "a")):
        files.write(
            result().model_copy(update={"id": name, "created": start + timedelta(microseconds=index)}), tmp_path
        )
    assert [result.id for result in files.results(tmp_path)] == ["b", "c", "a"]


def test_writing_a_result_again_replaces_its_file_and_leaves_no_other_file(tmp_path: Path) -> None:
    files.write(result(status="partial"), tmp_path)
    path = files.write(result(), tmp_path)
    assert files.read(path).status == "complete"
    assert list(tmp_path.iterdir()) == [path]


def test_a_nan_is_null_in_the_file_and_nan_when_it_is_read(tmp_path: Path) -> None:
    original = result()
    original.samples[0].first_losses = [2.3, math.nan]
    path = files.write(original, tmp_path)
    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert document["samples"][0]["first_losses"] == [2.3, None]
    assert math.isnan(files.read(path).samples[0].first_losses[1])


def test_a_file_name_has_only_characters_that_every_file_system_allows(tmp_path: Path) -> None:
    path = files.write(result(workload="../my model: 1", case="a/b"), tmp_path)
    assert path.parent == tmp_path
    assert path.name.startswith("my-model-1-a-b-cpu-as-written-")
    assert files.read(path).spec.workload == "../my model: 1"


def test_a_file_has_the_default_permissions_of_new_files(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert path.stat().st_mode == ordinary.stat().st_mode


def test_results_are_listed_oldest_first_without_temporary_files(tmp_path: Path) -> None:
    first, second = result("20260101T000000000-ffffffff"), result("20260102T000000000-00000000", workload="a")
    for document in (second, first):
        files.write(document, tmp_path)
    (tmp_path / ".cifar.json.1234.tmp").write_text("{", encoding="utf-8")
    assert files.results(tmp_path) == [first, second]


def test_a_truncated_file_is_an_error_with_its_name_and_a_fix(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="not a complete JSON document") as caught:
        files.results(tmp_path)
    assert str(path) in caught.value.message
    assert "Measure again" in caught.value.hint


@pytest.mark.parametrize(
    ("version", "writer", "advice"),
    [(SCHEMA_VERSION + 1, "a newer devbench", "Upgrade devbench."), (1, "an older devbench", "Measure again.")],
)
def test_a_result_of_another_schema_version_is_refused(tmp_path: Path, version: int, writer: str, advice: str) -> None:
    for document in ({"shape": "other"}, json.loads(result().model_dump_json())):
        path = tmp_path / "other.json"
        path.write_text(json.dumps({**document, "schema_version": version, "devbench": "9.0"}), encoding="utf-8")
        with pytest.raises(DataError) as caught:
            files.read(path)
        assert caught.value.message == f"{path} was written by {writer} (9.0, schema {version})"
        assert caught.value.hint == f"This version reads schema {SCHEMA_VERSION}. {advice}"


@pytest.mark.parametrize("document", ["[]", "{}", '"text"', '{"schema_version": "1"}'])
def test_json_of_another_program_is_not_a_result(tmp_path: Path, document: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(document, encoding="utf-8")
    with pytest.raises(DataError, match="is not a result of devbench"):
        files.read(path)


def test_a_result_with_an_invalid_field_is_an_error_that_names_the_field(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["spec"]["loop"] = "sideways"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError, match=r"is not a valid result: spec\.loop"):
        files.read(path)


@pytest.mark.parametrize(
    ("text", "replacement", "field"),
    [
        ('"first_step":0.2', '"first_step":-0.2', "samples.0.phases.first_step"),
        ('"steps":5', '"steps":0', "samples.0.series.0.warmup.0.steps"),
    ],
)
def test_a_result_with_an_impossible_figure_is_invalid(tmp_path: Path, text: str, replacement: str, field: str) -> None:
    path = files.write(measured("1", [0.1, 0.1]), tmp_path)
    original = re.sub(r"(?<=[:,])\s+", "", path.read_text(encoding="utf-8"))
    assert text in original
    path.write_text(original.replace(text, replacement), encoding="utf-8")
    with pytest.raises(DataError, match=rf"is not a valid result: {re.escape(field)}"):
        files.read(path)


def test_a_missing_file_or_folder_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*absent\.json: No such file"):
        files.read(tmp_path / "absent.json")
    with pytest.raises(DataError, match="does not exist"):
        files.results(tmp_path / "absent")


def test_preparing_a_folder_creates_it_with_its_parents_and_leaves_it_empty(tmp_path: Path) -> None:
    files.prepare(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def unwritable_folders() -> list[str]:
    """Return paths where even root cannot write: below a file, and in `/proc`."""
    return ["file/results", *(["/proc/devbench"] if sys.platform == "linux" else [])]


@pytest.mark.parametrize("place", unwritable_folders())
def test_a_folder_that_is_not_writable_is_an_error_that_names_the_option(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / place
    with pytest.raises(OutputError) as caught:
        files.prepare(folder)
    assert caught.value.message.startswith(f"cannot write results to {folder}: ")
    assert "--output" in caught.value.hint
    with pytest.raises(OutputError):
        files.write(result(), folder)


def test_ids_are_unique_and_sorted_by_time() -> None:
    names = [ids.new_id() for _ in range(500)]
    assert len(set(names)) == 500
    stamps = [name.partition("-")[0] for name in names]
    assert stamps == sorted(stamps)


WRITER = """
import sys
from pathlib import Path
from synthetic import result
from bench.store import files as store, ids

folder, mark = Path(sys.argv[1]), sys.argv[2]
store.prepare(folder)
shared = "20260101T000000000-00000000"
for round in range(60):
    store.write(result(ids.new_id(), group=mark), folder)
    store.write(result(shared, group=mark * 20000), folder)
    group = store.read(folder / f"cifar-cpu-as-written-{shared}.json").group
    assert group in ("a" * 20000, "b" * 20000), group[:10]
"""


def test_concurrent_writers_of_one_file_never_leave_an_incomplete_document(tmp_path: Path) -> None:
    tests = Path(__file__).parent
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tests)!r})\n{WRITER}", str(tmp_path)]
    writers = [subprocess.Popen([*command, mark], stderr=subprocess.PIPE, cwd=tests.parent.parent) for mark in "ab"]
    ends = [(writer.communicate(timeout=120)[1], writer.returncode) for writer in writers]
    assert ends == [(b"", 0), (b"", 0)]
    groups = [result.group for result in files.results(tmp_path)]
    assert (groups.count("a"), groups.count("b"), len(groups)) == (60, 60, 121)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".json"] == []
