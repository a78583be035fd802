"""A session records a group of tests if all of them passed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.once

TESTS = Path(__file__).resolve().parents[1]
CONFTEST = """
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "tests"))
pytest_plugins = ("groups",)


def check(capability):
    return None
"""
SLOW = """
import pytest

pytestmark = pytest.mark.needs("changed-slow")

@pytest.mark.parametrize("n", range(3))
def test_it(n): assert n < {limit}
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # to load them takes most of a small session
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\naddopts = -p xdist\nmarkers = needs(*capabilities): what it must have\n")
    (pytester.path / "input.txt").write_text("1")
    (pytester.path / "tests" / "passed").mkdir(parents=True)
    groups = 'GROUPS = {"slow": ("input.txt", "test_*.py")}\n'
    for name, more in (("groups.py", ""), ("marks.py", ""), ("inputs.py", groups)):
        (pytester.path / "tests" / name).write_text((TESTS / name).read_text(encoding="utf-8") + more)
    pytester.makepyfile(test_one=SLOW.format(limit=3), test_other=SLOW.format(limit=3))
    return pytester


def recorded(suite: pytest.Pytester, *words: str) -> bool:
    suite.runpytest_subprocess(*words)
    return (suite.path / "tests" / "passed" / "slow").exists()


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_group_is_recorded_if_all_its_tests_passed(suite: pytest.Pytester, processes: str) -> None:
    assert recorded(suite, "-n", processes)


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_group_with_a_failed_test_is_not_recorded(suite: pytest.Pytester, processes: str) -> None:
    suite.makepyfile(test_other=SLOW.format(limit=2))
    assert not recorded(suite, "-n", processes)


@pytest.mark.parametrize("words", [("test_one.py",), ("-k", "it and 1"), ("test_one.py::test_it", "test_other.py")])
def test_a_group_that_ran_in_part_is_not_recorded(suite: pytest.Pytester, words: tuple[str, ...]) -> None:
    assert not recorded(suite, *words)


def test_a_group_whose_input_changed_during_the_session_is_not_recorded(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_other=SLOW.format(limit=3) + "\ndef test_change(): open('input.txt', 'w').write('2')\n",
    )
    assert not recorded(suite)
