"""A session records a group of tests if all of them passed."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.once

TESTS = Path(__file__).resolve().parents[1]
CONFTEST = """
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
    pytester.makeini(
        "[pytest]\naddopts = -p xdist\npythonpath = tests\nmarkers = needs(*capabilities): what it must have\n"
    )
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


@pytest.mark.parametrize(("days", "outcome"), [(3, {"skipped": 1}), (2, {"passed": 1})])
def test_a_long_group_with_changed_inputs_waits_a_number_of_days(
    suite: pytest.Pytester, days: int, outcome: dict[str, int]
) -> None:
    passed = date.today() - timedelta(days=2)
    text = f"The tests of the group programs passed on {passed} with inputs of this hash:\n123\n"
    (suite.path / "tests" / "passed" / "programs").write_text(text)
    groups = 'GROUPS = {"programs": ("input.txt", "test_*.py")}\n'
    (suite.path / "tests" / "inputs.py").write_text((TESTS / "inputs.py").read_text(encoding="utf-8") + groups)
    suite.makeconftest((TESTS / "conftest.py").read_text(encoding="utf-8") + '\npytest_plugins = ("groups",)\n')
    (suite.path / "test_other.py").unlink()
    suite.makepyfile(
        test_one="import pytest\n\n@pytest.mark.needs('changed-programs')\ndef test_it(): pass\n",
    )
    ran = suite.runpytest_subprocess("--strict-skips", "--defer-long", str(days))
    assert ran.parseoutcomes() == outcome
    named = f"--defer-long postpones the group programs: it passed on {passed} with other inputs."
    assert (named in ran.outlines) == ("skipped" in outcome)
