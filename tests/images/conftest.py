"""The images that the tests run: built once a session, from stand-ins that are made once a machine.

The cuda image is built only where its inputs are not those that last passed (`stamp.py`); the session in which its
tests pass writes that down.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from images import stamp
from images.engine import ROOT, alone, build
from images.standins import python_3_10, python_3_13

CUDA = Path(__file__).parent / "test_cuda.py"
collected: set[str] = set()
passed: set[str] = set()


@pytest.fixture(scope="session")
def base_3_13(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What stands in for the Python image that the cpu and the cuda image start from."""
    with alone():
        return python_3_13(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="session")
def base_3_10(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What stands in for the Python image that the directml image starts from; it needs "tensorflow-2.10"."""
    with alone():
        return python_3_10(tmp_path_factory.mktemp("base"), ROOT / ".venv-directml" / "bin" / "python")


@pytest.fixture(scope="session")
def cpu(base_3_13: str) -> str:
    """The cpu image."""
    return build("cpu", base_3_13)


@pytest.fixture(scope="session")
def directml(base_3_10: str) -> str:
    """The directml image."""
    return build("directml", base_3_10)


@pytest.fixture(scope="session")
def cuda(base_3_13: str) -> str:
    """The cuda image."""
    return build("cuda", base_3_13)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Note what there is to pass before any of it is deselected."""
    collected.update(item.nodeid for item in items if item.path == CUDA)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what has passed."""
    if report.when == "call" and report.passed:
        passed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write down that the cuda image passed as it is."""
    if collected and collected <= passed:
        stamp.write()
