"""The selection of results: chapters, and results that are only listed."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic import explanation, folder, ladder_results, measured, sweep_results

from bench.errors import DataError
from bench.model.result import SCHEMA_VERSION
from bench.store import files, selection
from bench.store.selection import ChapterEntries, select

pytestmark = pytest.mark.once


def ids(chapters: list[ChapterEntries]) -> list[list[str]]:
    return [[entry.id for entry in chapter.members] for chapter in chapters]


def test_a_group_is_a_chapter_in_the_order_of_its_start_times(tmp_path: Path) -> None:
    start = measured("1", [0.1]).created
    selected = select(folder(tmp_path, measured("z", [0.1]), measured("a", [0.1], loop="fit", created=start)))
    assert ids(selected.chapters) == [["z", "a"]]
    assert selected.chapters[0].grouped


def test_only_the_newest_of_repeated_groups_is_selected_and_the_others_are_counted(tmp_path: Path) -> None:
    runs = [
        measured(f"{n}{m}", [0.1], group=f"g{n}", loop=loop) for n in (1, 2, 3) for m, loop in ((0, "fit"), (1, "step"))
    ]
    selected = select(folder(tmp_path, *runs))
    assert ids(selected.chapters) == [["30", "31"]]
    assert (selected.chapters[0].runs, selected.repeated, selected.omitted) == (3, 4, 0)


def test_a_group_stays_if_only_a_part_of_it_was_repeated(tmp_path: Path) -> None:
    pair = [measured("1", [0.1], group="pair"), measured("2", [0.1], group="pair", loop="fit")]
    selected = select(folder(tmp_path, *pair, measured("3", [0.1], group="alone")))
    assert ids(selected.chapters) == [["1", "2"], ["3"]]


def test_a_newer_group_that_contains_the_spec_repeats_a_single_run(tmp_path: Path) -> None:
    pair = [measured("2", [0.1], group="pair"), measured("3", [0.1], group="pair", loop="fit")]
    selected = select(folder(tmp_path, measured("1", [0.1], group="alone"), *pair))
    assert ids(selected.chapters) == [["2", "3"]]
    assert selected.chapters[0].runs == 2


def test_the_same_spec_with_another_tensorflow_is_not_a_repetition(tmp_path: Path) -> None:
    old, new = ({"framework": {"tensorflow": version}} for version in ("2.10.0", "2.21.0"))
    runs = [measured("1", [0.1], group="a", environment=old), measured("2", [0.1], group="b", environment=new)]
    assert ids(select(folder(tmp_path, *runs)).chapters) == [["1", "2"]]


def test_results_of_different_groups_are_collected_by_workload_with_the_cpu_first(tmp_path: Path) -> None:
    runs = [
        measured("1", [0.1], group="a", backend="cuda"),
        measured("2", [0.1], group="b"),
        measured("3", [0.1], group="c", workload="mnist"),
    ]
    selected = select(folder(tmp_path, *runs))
    assert ids(selected.chapters) == [["2", "1"], ["3"]]
    assert not selected.chapters[0].grouped


def test_the_size_of_a_chapter_and_of_a_report_is_limited_and_omitted_results_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "CHAPTERS", 2)
    monkeypatch.setattr(selection, "MEMBERS", 3)
    runs = [measured(str(n), [0.1], group=str(n), params={"batch": n}) for n in range(5)]
    runs += [measured(str(10 + n), [0.1], group=str(10 + n), workload=f"w{n}") for n in range(3)]
    selected = select(folder(tmp_path, *runs))
    assert [chapter.members[0].title for chapter in selected.chapters] == ["w1", "w2"]
    assert selected.omitted == len(runs) - 2
    assert len(selected.entries) == len(runs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema_version": 1, "id": "x', "is not a complete JSON document"),
        ('{"schema_version": 99, "devbench": "9.0"}', "was written by a newer devbench"),
        ('{"schema_version": 1, "devbench": "0.1"}', "was written by an older devbench"),
        (f'{{"schema_version": {SCHEMA_VERSION}}}', "is not a valid result"),
        ("[]", "is not a result of devbench"),
    ],
)
def test_a_file_that_is_not_a_result_is_an_error_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    folder(tmp_path, measured("1", [0.1]))
    (tmp_path / "broken.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"broken\.json {message}"):
        select(tmp_path)


def test_a_folder_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no results in"):
        select(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        select(tmp_path / "none")


def test_a_sweep_is_one_chapter_with_all_its_points(tmp_path: Path) -> None:
    (chapter,) = select(folder(tmp_path, *sweep_results())).chapters
    assert chapter.sweep
    assert len(chapter.members) == len(sweep_results())


def test_the_levels_of_an_explanation_are_one_chapter_and_its_what_ifs_are_only_listed(tmp_path: Path) -> None:
    results = ladder_results()
    files.write_explanation(explanation(results), folder(tmp_path, *results))
    selected = select(tmp_path)
    (chapter,) = selected.chapters
    assert chapter.explanation == explanation(results)
    assert [entry.purpose for entry in chapter.members] == ["level"] * 5
    assert len(chapter.hidden) == 3
    assert selected.omitted == 0


def test_levels_without_an_explanation_are_ordinary_results(tmp_path: Path) -> None:
    selected = select(folder(tmp_path, *ladder_results()[:5]))
    assert [chapter.explanation for chapter in selected.chapters] == [None]


@pytest.mark.parametrize("more", ["", ', "more": 1'])
@pytest.mark.parametrize(
    ("version", "age", "advice"), [(SCHEMA_VERSION + 1, "newer", "Upgrade devbench."), (1, "older", "Measure again.")]
)
def test_an_explanation_of_another_schema_version_is_refused(
    tmp_path: Path, version: int, age: str, advice: str, more: str
) -> None:
    path = files.write_explanation(explanation(ladder_results()), folder(tmp_path, *ladder_results()))
    current, other = f'"schema_version": {SCHEMA_VERSION}', f'"schema_version": {version}{more}'
    path.write_text(path.read_text(encoding="utf-8").replace(current, other), encoding="utf-8")
    with pytest.raises(DataError, match=rf"{age} devbench \(schema {version}\)") as caught:
        select(tmp_path)
    assert caught.value.hint == f"This version reads schema {SCHEMA_VERSION}. {advice}"


def test_an_invalid_explanation_is_an_error_with_its_name(tmp_path: Path) -> None:
    files.write_explanation(explanation(ladder_results()), folder(tmp_path, *ladder_results()))
    (path,) = (tmp_path / "explanations").iterdir()
    path.write_text(path.read_text(encoding="utf-8").replace('"parts"', '"pants"'), encoding="utf-8")
    with pytest.raises(DataError, match=r"why\.json is not a valid explanation"):
        select(tmp_path)
