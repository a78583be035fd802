"""The search for what made a program slower, with races whose outcome is known."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest
from git_repository import GitRepository

from bench.cli.bisect import state_file
from bench.config.settings import RunSettings
from bench.errors import NotApplicable, SettingsError, UsageError
from bench.machine import uv
from bench.model.bisection import Bisection, Found, Race
from bench.model.interval import Interval
from bench.model.result import Result
from bench.study import bisect_chains
from bench.study.bisect import _begun
from bench.study.bisect_chains import between, chain, released
from bench.study.bisect_search import NotSlower, Search
from benchmarks.changes import PACKAGE, wheel

pytestmark = pytest.mark.once

CHAIN = [f"1.{number}" for number in range(16)]


def searched(
    times: Mapping[str, float],
    broken: set[str] | None = None,
    known: Bisection | None = None,
    undecided: float = 0.01,
    surely_bad: Collection[str] = (),
) -> Bisection:
    """Return the bisection of a chain.

    Args:
        times: what each version takes.
        broken: versions that do not run.
        known: an earlier search.
        undecided: half of the width of each interval. A race is undecided if its interval contains the threshold.
        surely_bad: versions whose race has the right verdict nevertheless.
    """

    def race(name: str, against: str) -> Race:
        if name in (broken or ()):
            return Race(name=name, against=against, verdict="skipped", reason="it does not build", seconds=1.0)
        ratio = times[name] / times[against]
        interval = Interval(value=ratio, low=ratio - undecided, high=ratio + undecided, n=5)
        verdict: Found = "bad" if ratio > 1.03 else "good"
        if name not in surely_bad and ratio - undecided < 1.02 < ratio + undecided:
            verdict = "undecided"
        return Race(name=name, against=against, verdict=verdict, ratio=interval, seconds=1.0)

    bisection = known or Bisection(chain=list(times))
    Search(bisection, race, lambda: None).run()
    return bisection


def slower_from(*places: int, factor: float = 1.05) -> dict[str, float]:
    """Return times that grow by a factor at some places of the chain."""
    return {name: math.prod(factor for place in places if number >= place) for number, name in enumerate(CHAIN)}


@pytest.mark.parametrize("place", range(1, 16))
def test_the_first_slow_version_is_found_in_few_races(place: int) -> None:
    bisection = searched(slower_from(place))
    (found,) = bisection.slow_downs
    assert (found.last_good, found.first_bad, found.skipped) == (CHAIN[place - 1], CHAIN[place], [])
    assert found.ratio.value == pytest.approx(1.05)
    assert len(bisection.races) <= 6  # both ends, four halvings, and the bad end against what was found


@pytest.mark.parametrize(("first", "second"), [(1, 2), (3, 11), (14, 15), (7, 8)])
def test_two_versions_that_each_add_a_slow_down_are_both_found(first: int, second: int) -> None:
    found = searched(slower_from(first, second)).slow_downs
    assert [slow_down.first_bad for slow_down in found] == [CHAIN[first], CHAIN[second]]
    assert found[1].ratio.value == pytest.approx(1.05)


def test_versions_that_do_not_run_are_skipped_and_named_if_one_of_them_may_be_the_first() -> None:
    (found,) = searched(slower_from(8), broken={"1.7", "1.8"}).slow_downs
    assert (found.last_good, found.first_bad, found.skipped) == ("1.6", "1.9", ["1.7", "1.8"])
    (found,) = searched(slower_from(12), broken={"1.7", "1.8"}).slow_downs
    assert (found.last_good, found.first_bad, found.skipped) == ("1.11", "1.12", [])


def test_a_search_goes_on_after_an_interruption_with_what_it_knows() -> None:
    whole = searched(slower_from(5, 12))
    for count in range(len(whole.races)):
        resumed = Bisection(chain=CHAIN, races=whole.races[:count])
        assert searched(slower_from(5, 12), known=resumed) == whole


def test_a_chain_whose_ends_do_not_differ_or_do_not_run_is_refused() -> None:
    with pytest.raises(NotSlower, match=r"1\.15 is not slower than 1\.0"):
        searched(slower_from())
    with pytest.raises(UsageError, match=r"1\.15 cannot race against 1\.0: it does not build"):
        searched(slower_from(3), broken={"1.15"})


def test_any_number_of_broken_versions_never_hides_the_slow_one() -> None:
    rng = random.Random(1)
    for _ in range(300):
        place, broken = rng.randrange(1, 16), {name for name in CHAIN[1:-1] if rng.random() < 0.5}
        (found,) = searched(slower_from(place), broken).slow_downs
        candidates = [*found.skipped, found.first_bad]
        assert CHAIN[place] in candidates
        assert set(found.skipped) <= broken


def test_an_undecided_race_is_decided_by_half_of_the_slow_down() -> None:
    times = slower_from(6, factor=1.10)
    bisection = searched(times, undecided=0.04)
    assert [slow_down.first_bad for slow_down in bisection.slow_downs] == [CHAIN[6]]
    assert "undecided" in {race.verdict for race in bisection.races}


def test_a_race_that_says_nothing_leaves_its_version_among_the_candidates() -> None:
    (found,) = searched(slower_from(8, factor=1.05), undecided=0.2, surely_bad={CHAIN[15]}).slow_downs
    assert found.first_bad == CHAIN[15]
    assert found.skipped == CHAIN[1:15]


def test_ends_without_a_verdict_are_refused() -> None:
    with pytest.raises(NotSlower, match=r"1\.15 may be slower than 1\.0: the race is undecided"):
        searched(slower_from(8, factor=1.05), undecided=0.2)


def test_versions_lie_between_the_ends_in_the_order_of_the_index() -> None:
    versions = ["1.8", "1.9", "1.10", "2.0"]
    assert between(["1.9", "2.0"], versions, "it") == ["1.9", "1.10", "2.0"]
    assert between(["1.9", "2"], versions, "it") == ["1.9", "1.10", "2.0"]
    assert between(["v1.9.0", "2.0-RC.1"], ["1.9", "2.0.0rc1", "2.0.0rc10"], "it") == ["1.9", "2.0.0rc1"]
    assert between(["1.0+cpu", "1.10"], ["1.0+cpu", "1", "1.1", "1.10.0"], "it") == ["1.0+cpu", "1", "1.1", "1.10.0"]
    with pytest.raises(UsageError, match=r"it 2\.0 is not older than 1\.9"):
        between(["2.0", "1.9"], versions, "it")
    with pytest.raises(UsageError, match=r"it 1\.7 is not available"):
        between(["1.7", "2.0"], versions, "it")


@pytest.mark.parametrize(
    ("version", "is_pre"),
    [("2.0", False), ("2.0+cuda12", False), ("2.0.post1", False), ("2.0rc1", True), ("2.0.dev3+a1", True)],
)
def test_prereleases_are_searched_only_if_an_end_is_one(
    version: str, is_pre: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def listed(package: str, python: str | None, pre: bool) -> list[str]:
        asked.append(pre)
        return ["1.0", version]

    monkeypatch.setattr(bisect_chains, "released", listed)
    found = chain("train.py", "Its_Name==1.0", f"its-name=={version}", RunSettings(), lambda programs, settings: [])
    assert asked == [is_pre]
    assert found.names[-1].endswith(version)


def test_a_search_of_versions_ends_if_the_network_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[SettingsError] = [uv.Unreachable("the network failed"), SettingsError("it has no wheel")]
    versions = bisect_chains.Versions(["it==1", "it==2"], "train.py", RunSettings(), lambda programs, settings: [])

    def environment(name: str) -> Path:
        raise failures.pop(0)

    monkeypatch.setattr("bench.study.made_envs.environment", environment)
    with pytest.raises(uv.Unreachable):
        versions.race("it==2", "it==1")
    assert versions.race("it==2", "it==1").reason == "it has no wheel"

    def measure(programs: object, settings: RunSettings) -> list[Result]:
        raise uv.Unreachable("pydantic cannot be installed")

    monkeypatch.setattr("bench.study.made_envs.environment", Path)
    with pytest.raises(uv.Unreachable):
        bisect_chains.Versions(["it==1", "it==2"], "train.py", RunSettings(), measure).race("it==2", "it==1")


def test_a_commit_that_does_not_support_the_settings_is_skipped(tmp_path: Path) -> None:
    repository = GitRepository(tmp_path / "project")
    names = [repository.commit({"train.py": f"print({number})\n"}) for number in range(3)]

    def measure(programs: Sequence[str | Path], settings: RunSettings) -> list[Result]:
        raise NotApplicable("train defines no step")

    commits = bisect_chains.Commits(
        names, repository.folder, repository.folder / "train.py", RunSettings(output=tmp_path / "results"), measure
    )
    race = commits.race(names[1], names[0])
    assert (race.verdict, race.reason) == ("skipped", "train defines no step")
    with pytest.raises(NotApplicable):
        commits.race(names[2], names[0])


def test_the_index_of_pip_is_asked_for_the_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    for version in ("1.10", "1.9", "1.2"):
        wheel(tmp_path, version, "")
    assert released(PACKAGE) == ["1.2", "1.9", "1.10"]
    with pytest.raises(SettingsError, match="pip cannot list the versions of absent"):
        released("absent")


def test_the_index_that_uv_is_configured_for_is_asked_for_the_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "simple" / PACKAGE
    folder.mkdir(parents=True)
    for version in ("1.0", "2.0"):
        wheel(folder, version, "")
    links = "".join(f'<a href="{file.name}">{file.name}</a>' for file in folder.iterdir())
    (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"own={(tmp_path / 'simple').as_uri()}")
    assert released(PACKAGE) == ["1.0", "2.0"]


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("tensorflow==2.19.0", "keras==3.0.0", "are different packages"),
        ("tensorflow==2.19.0", "HEAD", "mix a version and a commit"),
    ],
)
def test_ends_of_different_kinds_are_refused(good: str, bad: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        chain("train.py", good, bad, RunSettings(), lambda programs, settings: [])


def test_a_search_starts_over_if_a_module_changed_but_not_after_its_own_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project" / "mine" / "deep").mkdir(parents=True)
    (tmp_path / "library").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    tmp_path /= "project"
    (tmp_path / "train.py").write_text("import mine.deep\n")
    settings = RunSettings(output=Path())

    def state(good: str = "it==1", bad: str = "it==2") -> Path:
        return state_file(settings, "train.py", good, bad, "tensorflow ../library")

    before = state(), state("HEAD~1", "HEAD")
    assert len({*before}) == 2
    before[0].parent.mkdir()
    before[0].write_text("{}")
    (tmp_path / "20260101-cifar.json").write_text("{}")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "module.py").write_text("")
    assert state() == before[0]
    (tmp_path / "mine" / "deep" / "__init__.py").write_text("A = 1\n")
    assert state() != before[0]
    changed = state()
    (tmp_path.parent / "library" / "library.py").write_text("")
    assert state() != changed
    assert state("HEAD~1", "HEAD") == before[1]  # the commits have files of their own


def test_a_search_up_to_a_branch_keeps_its_races_when_the_branch_grows(tmp_path: Path) -> None:
    pairs: dict[tuple[str, str], Found] = {
        ("c", "a"): "bad",
        ("b", "a"): "good",
        ("x", "a"): "bad",
        ("d", "a"): "undecided",
    }
    races = [Race(name=name, against=against, verdict=found, seconds=1.0) for (name, against), found in pairs.items()]
    (tmp_path / "it.json").write_text(Bisection(chain=["a", "b", "x", "c"], races=races).model_dump_json())
    assert _begun(["a", "b", "c", "d"], tmp_path / "it.json") == Bisection(chain=["a", "b", "c", "d"], races=races[:2])


@pytest.mark.parametrize("text", ["{", '{"chain": ["a", "b"], "of": "another version"}'])
def test_a_file_of_another_version_starts_the_search_over(text: str, tmp_path: Path) -> None:
    (tmp_path / "it.json").write_text(text)
    assert _begun(["a", "b"], tmp_path / "it.json") == Bisection(chain=["a", "b"])
