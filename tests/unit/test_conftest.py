from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
ELSEWHERE = "windows" if sys.platform == "linux" else "linux"


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers = needs(*capabilities): what it must have\n")
    return pytester


def test_a_skip_that_the_machine_could_not_avoid_is_named_and_excused(suite: pytest.Pytester) -> None:
    suite.makepyfile(f"import pytest\n\n@pytest.mark.needs({ELSEWHERE!r})\ndef test_it(): assert False\n")
    ran = suite.runpytest_subprocess("-rs", "--strict-skips")
    ran.assert_outcomes(skipped=1)
    ran.stdout.fnmatch_lines([f"SKIPPED*needs {ELSEWHERE}: this is *. Use *."])


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\n\ndef test_it(): pytest.skip('not today')\n",
        "import pytest\npytest.skip('not today', allow_module_level=True)\n",
        "import pytest\n\n@pytest.mark.skip(reason='not today')\ndef test_it(): pass\n",
    ],
)
def test_any_other_skip_passes_by_itself_and_fails_under_strictness(suite: pytest.Pytester, source: str) -> None:
    suite.makepyfile(source)
    assert suite.runpytest_subprocess().parseoutcomes() == {"skipped": 1}
    strict = suite.runpytest_subprocess("--strict-skips")
    assert strict.ret != 0
    strict.stdout.fnmatch_lines(["*--strict-skips does not allow this skip*not today*"])


@pytest.mark.needs("linux")
def test_a_missing_second_tensorflow_fails_under_strictness_where_it_could_be(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it(directml_python): pass\n")
    assert suite.runpytest_subprocess().parseoutcomes() == {"skipped": 1}
    strict = suite.runpytest_subprocess("--strict-skips")
    strict.assert_outcomes(**({"errors": 1} if platform.machine() == "x86_64" else {"skipped": 1}))


def test_a_misspelt_capability_is_refused(suite: pytest.Pytester) -> None:
    suite.makepyfile("import pytest\n\n@pytest.mark.needs('widnows')\ndef test_it(): pass\n")
    ran = suite.runpytest_subprocess()
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(["*test_it needs 'widnows', which is not one of *"])


def test_all_of_a_file_goes_to_one_process_where_several_run(suite: pytest.Pytester) -> None:
    several = "import pytest\n\n@pytest.mark.parametrize('n', range(8))\ndef test_it(n): pass\n"
    suite.makepyfile(test_one=several, test_other=several)
    ran = suite.runpytest_subprocess("-v", "-n", "2", "--dist", "loadgroup")
    ran.assert_outcomes(passed=16)
    told = [re.match(r"\[(gw\d)\].*PASSED (test_\w+)\.py", line) for line in ran.outlines]
    whose = {(found[1], found[2]) for found in told if found}
    assert sorted(file for _, file in whose) == ["test_one", "test_other"]


def test_the_users_settings_do_not_reach_the_tests(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVBENCH_OUTPUT", "elsewhere")
    suite.makepyfile("import os\n\ndef test_it(): assert 'DEVBENCH_OUTPUT' not in os.environ\n")
    suite.runpytest_subprocess().assert_outcomes(passed=1)
