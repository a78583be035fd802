"""The shared fixtures and the rules about skips in `conftest.py`, tried on small suites."""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.once

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
ELSEWHERE = "windows" if sys.platform == "linux" else "linux"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # to load them takes most of a small session
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    pytester.makepyfile(marks=CONFTEST.with_name("marks.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\naddopts = -p xdist\nmarkers = needs(*capabilities): required capabilities\n")
    return pytester


def test_strict_skips_allow_a_skip_for_a_capability_that_the_machine_cannot_have(suite: pytest.Pytester) -> None:
    suite.makepyfile(f"import pytest\n\n@pytest.mark.needs({ELSEWHERE!r})\ndef test_it(): assert False\n")
    outcome = suite.runpytest_subprocess("-rs", "--strict-skips")
    outcome.assert_outcomes(skipped=1)
    outcome.stdout.fnmatch_lines([f"SKIPPED*needs {ELSEWHERE}: this is *. Use *."])


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\n\ndef test_it(): pytest.skip('not today')\n",
        "import pytest\npytest.skip('not today', allow_module_level=True)\n",
        "import pytest\n\n@pytest.mark.skip(reason='not today')\ndef test_it(): pass\n",
    ],
)
def test_strict_skips_fail_on_any_other_skip(suite: pytest.Pytester, source: str) -> None:
    suite.makepyfile(source)
    assert suite.runpytest_subprocess().parseoutcomes() == {"skipped": 1}
    strict = suite.runpytest_subprocess("--strict-skips")
    assert strict.ret != 0
    strict.stdout.fnmatch_lines(["*--strict-skips does not allow this skip*not today*"])


@pytest.mark.needs("linux")
def test_strict_skips_fail_on_a_missing_second_tensorflow_if_the_machine_supports_it(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it(directml_python): pass\n")
    assert suite.runpytest_subprocess().parseoutcomes() == {"skipped": 1}
    strict = suite.runpytest_subprocess("--strict-skips")
    strict.assert_outcomes(**({"errors": 1} if platform.machine() == "x86_64" else {"skipped": 1}))


def test_a_misspelt_capability_is_an_error(suite: pytest.Pytester) -> None:
    suite.makepyfile("import pytest\n\n@pytest.mark.needs('widnows')\ndef test_it(): pass\n")
    outcome = suite.runpytest_subprocess()
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["*test_it needs 'widnows', which is not one of *"])


def test_all_tests_of_a_file_run_in_one_process(suite: pytest.Pytester) -> None:
    tests = "import pytest\n\n@pytest.mark.parametrize('n', range(8))\ndef test_it(n): pass\n"
    suite.makepyfile(test_one=tests, test_other=tests)
    outcome = suite.runpytest_subprocess("-v", "-n", "2", "--dist", "loadgroup")
    outcome.assert_outcomes(passed=16)
    matches = [re.match(r"\[(gw\d)\].*PASSED (test_\w+)\.py", line) for line in outcome.outlines]
    assignments = {(match[1], match[2]) for match in matches if match}
    assert sorted(file for _, file in assignments) == ["test_one", "test_other"]


def test_the_users_settings_do_not_reach_the_tests(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVBENCH_OUTPUT", "elsewhere")
    suite.makepyfile("import os\n\ndef test_it(): assert 'DEVBENCH_OUTPUT' not in os.environ\n")
    suite.runpytest_subprocess().assert_outcomes(passed=1)
