"""The images that the tests run: built once a session, from stand-ins that are made once a machine.

The cuda and directml images are built only if one of their inputs changed (`tests/inputs.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import inputs
import pytest

from images.docker import Docker, daemon, programs
from images.engine import ROOT, alone, build
from images.standins import python_3_10, python_3_13

FOLDER = Path(__file__).parent

ORDER = ("cpu", "directml", "hub", "docker_cpu", "cuda")
"""In which the images are built, the last ones while tests of the first run; `docker_cpu` is Docker's cpu image."""


class Builds:
    """Images that are being built in the background, one after another.

    Args:
        wanted: which.
        folder: for what is needed on the way.
        docker: builds `docker_cpu`.
    """

    def __init__(self, wanted: Iterable[str], folder: Path, docker: Docker | None) -> None:
        self.folder = folder
        self.docker = docker
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
        if image == "docker_cpu":
            assert self.docker
            return self.docker.build("cpu", base)
        return build(image, base)


def images_of(item: pytest.Item) -> set[str]:
    """The images that a test asks for."""
    if item.path.parent != FOLDER:
        return set()
    asked = {*getattr(item, "fixturenames", ())} | {*getattr(getattr(item, "callspec", None), "params", {}).values()}
    return asked & set(ORDER)


@pytest.fixture(scope="session")
def builds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builds]:
    """All that the tests of this session ask for and can have."""
    wanted = set[str]().union(*map(images_of, request.session.items))
    wanted -= {image for image in ("cuda", "directml") if inputs.unchanged(f"{image}-image")}
    if not (ROOT / ".venv-directml").is_dir():
        wanted.discard("directml")
    with ExitStack() as stack:
        docker = None
        if "docker_cpu" in wanted and (docker := _docker(stack)) is None:
            wanted.discard("docker_cpu")
        made = Builds(wanted, tmp_path_factory.mktemp("base"), docker)
        yield made
        made.pool.shutdown(cancel_futures=True)


def _docker(stack: ExitStack) -> Docker | None:
    if programs() is None:
        return None
    folder = stack.enter_context(TemporaryDirectory(prefix="devbench-"))  # of a short path, for the sake of its socket
    return stack.enter_context(daemon(Path(folder)))


@pytest.fixture(scope="session")
def cpu(builds: Builds) -> str:
    """The cpu image."""
    return builds.name("cpu")


@pytest.fixture(scope="session")
def docker_cpu(builds: Builds) -> str:
    """The cpu image, built by Docker from nothing; it needs "docker"."""
    return builds.name("docker_cpu")


@pytest.fixture(scope="session")
def docker(builds: Builds) -> Docker:
    """A Docker of the tests' own; it needs "docker"."""
    assert builds.docker
    return builds.docker


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
    """Order the tests by the images that they use, because the images are built one after another."""
    places = [place for place, item in enumerate(items) if item.path.parent == FOLDER]
    ours = sorted(
        (items[place] for place in places), key=lambda item: max(map(ORDER.index, images_of(item)), default=0)
    )
    for place, item in zip(places, ours, strict=True):
        items[place] = item
