"""Which results of a folder get a chapter, and which are only listed."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic import explanation, folder, ladder_results, measured, swept

from bench.errors import DataError
from bench.render.report import chapters as module
from bench.render.report.chapters import Set, gather
from bench.store import files

pytestmark = pytest.mark.once


def ids(sets: list[Set]) -> list[list[str]]:
    return [[each.id for each in one.members] for one in sets]


def test_a_group_is_a_chapter_in_the_order_in_which_it_began_whatever_its_ids(tmp_path: Path) -> None:
    begun = measured("1", [0.1]).created
    found = gather(folder(tmp_path, measured("z", [0.1]), measured("a", [0.1], loop="fit", created=begun)))
    assert ids(found.sets) == [["z", "a"]]
    assert found.sets[0].together


def test_of_repeated_groups_the_newest_is_shown_with_their_count(tmp_path: Path) -> None:
    runs = [
        measured(f"{n}{m}", [0.1], group=f"g{n}", loop=loop) for n in (1, 2, 3) for m, loop in ((0, "fit"), (1, "step"))
    ]
    found = gather(folder(tmp_path, *runs))
    assert ids(found.sets) == [["30", "31"]]
    assert (found.sets[0].runs, found.repeated, found.crowded) == (3, 4, 0)


def test_a_group_stays_where_only_a_part_of_it_was_run_again(tmp_path: Path) -> None:
    pair = [measured("1", [0.1], group="pair"), measured("2", [0.1], group="pair", loop="fit")]
    found = gather(folder(tmp_path, *pair, measured("3", [0.1], group="alone")))
    assert ids(found.sets) == [["1", "2"], ["3"]]


def test_a_single_run_is_repeated_by_a_newer_group_that_holds_it(tmp_path: Path) -> None:
    pair = [measured("2", [0.1], group="pair"), measured("3", [0.1], group="pair", loop="fit")]
    found = gather(folder(tmp_path, measured("1", [0.1], group="alone"), *pair))
    assert ids(found.sets) == [["2", "3"]]
    assert found.sets[0].runs == 2


def test_the_same_spec_under_another_tensorflow_is_no_repetition(tmp_path: Path) -> None:
    old, new = ({"framework": {"tensorflow": version}} for version in ("2.10.0", "2.21.0"))
    runs = [measured("1", [0.1], group="a", environment=old), measured("2", [0.1], group="b", environment=new)]
    assert ids(gather(folder(tmp_path, *runs)).sets) == [["1", "2"]]


def test_what_was_measured_apart_stands_by_workload_with_the_cpu_first(tmp_path: Path) -> None:
    runs = [
        measured("1", [0.1], group="a", backend="cuda"),
        measured("2", [0.1], group="b"),
        measured("3", [0.1], group="c", workload="mnist"),
    ]
    found = gather(folder(tmp_path, *runs))
    assert ids(found.sets) == [["2", "1"], ["3"]]
    assert not found.sets[0].together


def test_a_chapter_and_a_report_hold_a_limited_number_and_count_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHAPTERS", 2)
    monkeypatch.setattr(module, "MEMBERS", 3)
    runs = [measured(str(n), [0.1], group=str(n), params={"batch": n}) for n in range(5)]
    runs += [measured(str(10 + n), [0.1], group=str(10 + n), workload=f"w{n}") for n in range(3)]
    found = gather(folder(tmp_path, *runs))
    assert [each.members[0].title for each in found.sets] == ["w1", "w2"]
    assert found.crowded == len(runs) - 2
    assert len(found.results) == len(runs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema_version": 1, "id": "x', "is no whole JSON document"),
        ('{"schema_version": 99, "devbench": "9.0"}', "was written by a newer devbench"),
        ('{"schema_version": 1}', "is no valid result"),
        ("[]", "is no result of devbench"),
    ],
)
def test_a_file_that_is_no_result_is_an_error_that_names_it(tmp_path: Path, text: str, message: str) -> None:
    folder(tmp_path, measured("1", [0.1]))
    (tmp_path / "broken.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"broken\.json {message}"):
        gather(tmp_path)


def test_a_folder_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no results in"):
        gather(tmp_path)
    with pytest.raises(DataError, match="there is no folder"):
        gather(tmp_path / "none")


def test_a_sweep_is_one_chapter_with_all_its_points(tmp_path: Path) -> None:
    (found,) = gather(folder(tmp_path, *swept())).sets
    assert found.sweep
    assert len(found.members) == len(swept())


def test_an_explanations_rungs_are_one_chapter_and_its_changes_are_listed_only(tmp_path: Path) -> None:
    results = ladder_results()
    files.write_explanation(explanation(results), folder(tmp_path, *results))
    gathered = gather(tmp_path)
    (found,) = gathered.sets
    assert found.explanation == explanation(results)
    assert [each.purpose for each in found.members] == ["level"] * 5
    assert len(found.hidden) == 3
    assert gathered.crowded == 0


def test_rungs_of_an_explanation_that_was_interrupted_are_shown_as_what_they_are(tmp_path: Path) -> None:
    gathered = gather(folder(tmp_path, *ladder_results()[:5]))
    assert [each.explanation for each in gathered.sets] == [None]


def test_a_newer_devbenchs_explanation_asks_for_an_upgrade(tmp_path: Path) -> None:
    written = files.write_explanation(explanation(ladder_results()), folder(tmp_path, *ladder_results()))
    text = written.read_text(encoding="utf-8").replace('"schema_version": 1', '"schema_version": 2, "more": 1')
    written.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"newer devbench \(schema 2\)") as caught:
        gather(tmp_path)
    assert "upgrade devbench" in caught.value.hint


def test_an_altered_explanation_is_told_by_its_name(tmp_path: Path) -> None:
    files.write_explanation(explanation(ladder_results()), folder(tmp_path, *ladder_results()))
    (path,) = (tmp_path / "explanations").iterdir()
    path.write_text(path.read_text(encoding="utf-8").replace('"parts"', '"pants"'), encoding="utf-8")
    with pytest.raises(DataError, match=r"why\.json is no valid explanation"):
        gather(tmp_path)
