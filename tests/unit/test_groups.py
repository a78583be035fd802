"""A session records the files whose tests of a group all passed, and skips them until an input changes."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.once

TESTS = Path(__file__).resolve().parents[1]
SLOW = """
import pytest

@pytest.mark.group("programs")
@pytest.mark.parametrize("n", range(3))
def test_it(n): assert n < {limit}
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # to load them takes most of a small session
    markers = "markers =\n  needs(*capabilities): conditions\n  group(name): inputs\n"
    pytester.makeini(f"[pytest]\naddopts = -p xdist -p groups\npythonpath = tests\n{markers}")
    pytester.makeconftest((TESTS / "conftest.py").read_text(encoding="utf-8"))
    (pytester.path / "input.txt").write_text("1")
    (pytester.path / "tests" / "passed").mkdir(parents=True)
    groups = 'GROUPS = {"programs": ("input.txt", "test_*.py")}\n'
    for name, more in (("groups.py", ""), ("marks.py", ""), ("inputs.py", groups)):
        (pytester.path / "tests" / name).write_text((TESTS / name).read_text(encoding="utf-8") + more)
    pytester.makepyfile(test_one=SLOW.format(limit=3), test_other=SLOW.format(limit=3))
    return pytester


def recorded(suite: pytest.Pytester, *words: str) -> list[str]:
    """Run the suite, and return the test files that it records."""
    suite.runpytest_subprocess(*words)
    path = suite.path / "tests" / "passed" / "programs"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_file_is_recorded_if_all_its_tests_passed(suite: pytest.Pytester, processes: str) -> None:
    suite.makepyfile(test_other=SLOW.format(limit=2))
    assert recorded(suite, "-n", processes) == ["test_one.py"]


def test_sessions_that_run_a_file_each_record_both(suite: pytest.Pytester) -> None:
    assert recorded(suite, "test_one.py") == ["test_one.py"]
    assert recorded(suite, "test_other.py") == ["test_one.py", "test_other.py"]


@pytest.mark.parametrize("words", [("-k", "it and 1"), ("test_one.py::test_it",)])
def test_a_file_that_ran_in_part_is_not_recorded(suite: pytest.Pytester, words: tuple[str, ...]) -> None:
    assert recorded(suite, *words) == []


def test_a_file_whose_input_changed_during_the_session_is_not_recorded(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_other=SLOW.format(limit=3) + "\ndef test_change(): open('input.txt', 'w').write('2')\n",
    )
    assert recorded(suite) == []


def outcomes(suite: pytest.Pytester, *words: str) -> dict[str, int]:
    return suite.runpytest_subprocess("--strict-skips", *words).parseoutcomes()


def test_a_file_that_passed_runs_again_if_it_or_an_input_of_its_group_changes(suite: pytest.Pytester) -> None:
    assert outcomes(suite) == {"passed": 6}
    assert outcomes(suite) == {"skipped": 6}
    suite.makepyfile(test_other=SLOW.format(limit=4))
    assert outcomes(suite) == {"passed": 3, "skipped": 3}
    (suite.path / "input.txt").write_text("2")
    assert outcomes(suite) == {"passed": 6}


def test_a_file_runs_again_if_a_test_file_that_it_imports_changes(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_other="import test_one\n" + SLOW.format(limit=3))
    assert outcomes(suite) == {"passed": 6}
    suite.makepyfile(test_one=SLOW.format(limit=4))
    assert outcomes(suite) == {"passed": 6}


def test_a_long_group_with_changed_inputs_waits_a_number_of_days(suite: pytest.Pytester) -> None:
    assert outcomes(suite) == {"passed": 6}
    (suite.path / "input.txt").write_text("2")
    path = suite.path / "tests" / "passed" / "programs"
    path.write_text(path.read_text().replace(str(date.today()), str(date.today() - timedelta(days=2))))
    ran = suite.runpytest_subprocess("--strict-skips", "--defer-long", "3")
    assert ran.parseoutcomes() == {"skipped": 6}
    assert "--defer-long postpones 2 files of the group programs." in ran.outlines
    assert outcomes(suite) == {"passed": 6}


def test_a_new_or_edited_file_of_a_long_group_does_not_wait(suite: pytest.Pytester) -> None:
    assert outcomes(suite) == {"passed": 6}
    (suite.path / "input.txt").write_text("2")
    suite.makepyfile(test_other=SLOW.format(limit=4), test_third=SLOW.format(limit=5))
    assert outcomes(suite, "--defer-long", "3") == {"passed": 6, "skipped": 3}
