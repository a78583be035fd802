"""The images that the tests run: built once a session, from stand-ins that are made once a machine.

The cuda image is built only where its inputs are not those that last passed (`stamp.py`); the session in which its
tests pass writes that down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from images import stamp
from images.engine import ROOT, alone, build
from images.standins import python_3_10, python_3_13

CUDA = Path(__file__).parent / "test_cuda.py"
collected: set[str] = set()
passed: set[str] = set()


ORDER = ("cpu", "directml", "hub", "again", "cuda")
"""In which the images are built, the last ones while tests of the first run; `again` is the cpu image a second time."""


class Builds:
    """Images that are being built in the background, one after another.

    Args:
        wanted: which.
        folder: for what is needed on the way.
    """

    def __init__(self, wanted: Iterable[str], folder: Path) -> None:
        self.folder = folder
        self.pool = ThreadPoolExecutor(1)
        self.made = {name: self.pool.submit(self._build, name) for name in ORDER if name in set(wanted)}

    def name(self, image: str) -> str:
        """The image's name, once it is built."""
        return self.made[image].result()

    def _build(self, image: str) -> str:
        with alone():
            if image == "directml":
                base = python_3_10(self.folder, ROOT / ".venv-directml" / "bin" / "python")
            else:
                base = python_3_13(self.folder)
        return build("cpu", base, "devbench-test-again", "--no-cache") if image == "again" else build(image, base)


def images_of(item: pytest.Item) -> set[str]:
    """The images that a test asks for."""
    asked = {*getattr(item, "fixturenames", ())} | {*getattr(getattr(item, "callspec", None), "params", {}).values()}
    return asked & set(ORDER) if item.path.parent == CUDA.parent else set()


@pytest.fixture(scope="session")
def builds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builds]:
    """All that the tests of this session ask for and can have."""
    wanted = set[str]().union(*map(images_of, request.session.items))
    if stamp.unchanged():
        wanted.discard("cuda")
    if not (ROOT / ".venv-directml").is_dir():
        wanted.discard("directml")
    made = Builds(wanted, tmp_path_factory.mktemp("base"))
    yield made
    made.pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def cpu(builds: Builds) -> str:
    """The cpu image."""
    return builds.name("cpu")


@pytest.fixture(scope="session")
def again(builds: Builds) -> str:
    """The cpu image, built a second time from nothing."""
    return builds.name("again")


@pytest.fixture(scope="session")
def directml(builds: Builds) -> str:
    """The directml image; it needs "tensorflow-2.10"."""
    return builds.name("directml")


@pytest.fixture(scope="session")
def hub(builds: Builds) -> str:
    """The hub's image."""
    return builds.name("hub")


@pytest.fixture(scope="session")
def cuda(builds: Builds) -> str:
    """The cuda image."""
    return builds.name("cuda")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Note what there is to pass before any of it is deselected; let those wait whose image is built last."""
    collected.update(item.nodeid for item in items if item.path == CUDA)
    places = [place for place, item in enumerate(items) if item.path.parent == CUDA.parent]
    ours = sorted(
        (items[place] for place in places), key=lambda item: max(map(ORDER.index, images_of(item)), default=0)
    )
    for place, item in zip(places, ours, strict=True):
        items[place] = item


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what has passed."""
    if report.when == "call" and report.passed:
        passed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write down that the cuda image passed as it is."""
    if collected and collected <= passed:
        stamp.write()
