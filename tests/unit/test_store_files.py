"""The store: whole files only, from any number of runs at once, and errors that say what is wrong with one."""

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
from bench.store import files


def test_a_result_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    wanted = result()
    path = files.write(wanted, tmp_path)
    assert path.name == f"cifar-cpu-as-written-{wanted.id}.json"
    assert files.read(path) == wanted


def test_results_that_began_in_one_millisecond_come_in_the_order_in_which_they_were_asked_for(tmp_path: Path) -> None:
    begun = datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=timezone.utc)
    for place, name in enumerate(("b", "c", "a")):
        files.write(
            result().model_copy(update={"id": name, "created": begun + timedelta(microseconds=place)}), tmp_path
        )
    assert [each.id for each in files.results(tmp_path)] == ["b", "c", "a"]


def test_a_later_state_takes_the_place_of_an_earlier_one_and_nothing_else_is_left(tmp_path: Path) -> None:
    files.write(result(status="partial"), tmp_path)
    path = files.write(result(), tmp_path)
    assert files.read(path).status == "complete"
    assert list(tmp_path.iterdir()) == [path]


def test_a_nan_is_null_in_the_file_and_a_nan_again_when_read(tmp_path: Path) -> None:
    wanted = result()
    wanted.samples[0].first_losses = [2.3, math.nan]
    path = files.write(wanted, tmp_path)
    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert document["samples"][0]["first_losses"] == [2.3, None]
    assert math.isnan(files.read(path).samples[0].first_losses[1])


def test_a_file_name_holds_nothing_that_a_file_system_refuses(tmp_path: Path) -> None:
    path = files.write(result(workload="../my model: 1", case="a/b"), tmp_path)
    assert path.parent == tmp_path
    assert path.name.startswith("my-model-1-a-b-cpu-as-written-")
    assert files.read(path).spec.workload == "../my model: 1"


def test_a_file_has_the_rights_that_other_files_get(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    usual = tmp_path / "usual"
    usual.touch()
    assert path.stat().st_mode == usual.stat().st_mode


def test_results_come_oldest_first_and_a_half_written_one_is_not_seen(tmp_path: Path) -> None:
    first, second = result("20260101T000000000-ffffffff"), result("20260102T000000000-00000000", workload="a")
    for each in (second, first):
        files.write(each, tmp_path)
    (tmp_path / ".cifar.json.1234.tmp").write_text("{", encoding="utf-8")
    assert files.results(tmp_path) == [first, second]


def test_a_truncated_file_is_named_with_the_fix(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="not a complete JSON document") as caught:
        files.results(tmp_path)
    assert str(path) in caught.value.message
    assert "Measure again" in caught.value.hint


@pytest.mark.parametrize(
    ("version", "who", "advice"),
    [(SCHEMA_VERSION + 1, "a newer devbench", "Upgrade devbench."), (1, "an older devbench", "Measure again.")],
)
def test_a_result_of_another_schema_version_is_refused(tmp_path: Path, version: int, who: str, advice: str) -> None:
    for document in ({"shape": "other"}, json.loads(result().model_dump_json())):
        path = tmp_path / "other.json"
        path.write_text(json.dumps({**document, "schema_version": version, "devbench": "9.0"}), encoding="utf-8")
        with pytest.raises(DataError) as caught:
            files.read(path)
        assert caught.value.message == f"{path} was written by {who} (9.0, schema {version})"
        assert caught.value.hint == f"This version reads schema {SCHEMA_VERSION}. {advice}"


@pytest.mark.parametrize("document", ["[]", "{}", '"text"', '{"schema_version": "1"}'])
def test_another_programs_json_is_no_result(tmp_path: Path, document: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(document, encoding="utf-8")
    with pytest.raises(DataError, match="is not a result of devbench"):
        files.read(path)


def test_an_altered_result_names_the_field(tmp_path: Path) -> None:
    path = files.write(result(), tmp_path)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["spec"]["loop"] = "sideways"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError, match=r"is not a valid result: spec\.loop"):
        files.read(path)


@pytest.mark.parametrize(
    ("text", "altered", "field"),
    [
        ('"first_step":0.2', '"first_step":-0.2', "samples.0.phases.first_step"),
        ('"steps":5', '"steps":0', "samples.0.series.0.warmup.0.steps"),
    ],
)
def test_what_no_run_can_have_measured_is_no_valid_result(tmp_path: Path, text: str, altered: str, field: str) -> None:
    path = files.write(measured("1", [0.1, 0.1]), tmp_path)
    written = re.sub(r"(?<=[:,])\s+", "", path.read_text(encoding="utf-8"))
    assert text in written
    path.write_text(written.replace(text, altered), encoding="utf-8")
    with pytest.raises(DataError, match=rf"is not a valid result: {re.escape(field)}"):
        files.read(path)


def test_an_absent_file_and_an_absent_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*absent\.json: No such file"):
        files.read(tmp_path / "absent.json")
    with pytest.raises(DataError, match="does not exist"):
        files.results(tmp_path / "absent")


def test_a_folder_is_made_with_its_parents_and_left_empty(tmp_path: Path) -> None:
    files.prepare(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def places() -> list[str]:
    """Where nobody can write, root included: below a file, and where the kernel makes all files."""
    return ["file/results", *(["/proc/devbench"] if sys.platform == "linux" else [])]


@pytest.mark.parametrize("place", places())
def test_a_folder_that_cannot_be_written_is_told_with_the_option(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / place
    with pytest.raises(OutputError) as caught:
        files.prepare(folder)
    assert caught.value.message.startswith(f"cannot write results to {folder}: ")
    assert "--output" in caught.value.hint
    with pytest.raises(OutputError):
        files.write(result(), folder)


def test_ids_differ_and_sort_by_time() -> None:
    ids = [files.new_id() for _ in range(500)]
    assert len(set(ids)) == 500
    stamps = [each.partition("-")[0] for each in ids]
    assert stamps == sorted(stamps)


WRITER = """
import sys
from pathlib import Path
from synthetic import result
from bench.store import files as store

folder, mark = Path(sys.argv[1]), sys.argv[2]
store.prepare(folder)
shared = "20260101T000000000-00000000"
for round in range(60):
    store.write(result(store.new_id(), group=mark), folder)
    store.write(result(shared, group=mark * 20000), folder)
    found = store.read(folder / f"cifar-cpu-as-written-{shared}.json").group
    assert found in ("a" * 20000, "b" * 20000), found[:10]
"""


def test_two_processes_write_one_folder_and_one_file_and_every_reader_meets_whole_documents(tmp_path: Path) -> None:
    here = Path(__file__).parent
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(here)!r})\n{WRITER}", str(tmp_path)]
    both = [subprocess.Popen([*command, mark], stderr=subprocess.PIPE, cwd=here.parent.parent) for mark in "ab"]
    ends = [(each.communicate(timeout=120)[1], each.returncode) for each in both]
    assert ends == [(b"", 0), (b"", 0)]
    groups = [each.group for each in files.results(tmp_path)]
    assert (groups.count("a"), groups.count("b"), len(groups)) == (60, 60, 121)
    assert [each.name for each in tmp_path.iterdir() if each.suffix != ".json"] == []
