"""Fixtures with the images, which are built once per session. Their base images are built once per machine.

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
from marks import group_of

from images.base_images import python_3_10, python_3_13
from images.docker import Docker, daemon, programs
from images.engine import ROOT, build, build_lock

FOLDER = Path(__file__).parent

ORDER = ("cpu", "directml", "hub", "docker_cpu", "cuda")
"""Order of the builds. Tests of the first images run during later builds. `docker_cpu` is Docker's cpu image."""


class Builds:
    """Builds of images in the background, one after another.

    Args:
        wanted: names of the images.
        folder: for temporary files.
        docker: builds `docker_cpu`.
    """

    def __init__(self, images: Iterable[str], folder: Path, docker: Docker | None) -> None:
        self.folder = folder
        self.docker = docker
        self.pool = ThreadPoolExecutor(1)
        self.futures = {name: self.pool.submit(self._build, name) for name in ORDER if name in set(images)}

    def name(self, image: str) -> str:
        """Wait until an image is built, and return its full name."""
        return self.futures[image].result()

    def _build(self, image: str) -> str:
        with build_lock():
            if image == "directml":
                base = python_3_10(self.folder, ROOT / ".venv-directml" / "bin" / "python")
            else:
                base = python_3_13(self.folder)
        if image == "docker_cpu":
            assert self.docker
            return self.docker.build("cpu", base)
        return build(image, base)


def images_of(item: pytest.Item) -> set[str]:
    """Return the images that a test uses."""
    if item.path.parent != FOLDER:
        return set()
    names = {*getattr(item, "fixturenames", ())} | {*getattr(getattr(item, "callspec", None), "params", {}).values()}
    return names & set(ORDER)


@pytest.fixture(scope="session")
def builds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builds]:
    """The builds of all images that the tests of this session use and that this machine can build."""
    images = set[str]().union(*map(images_of, filter(_has_to_run, request.session.items)))
    if not (ROOT / ".venv-directml").is_dir():
        images.discard("directml")
    with ExitStack() as stack:
        docker = None
        if "docker_cpu" in images and (docker := _docker(stack)) is None:
            images.discard("docker_cpu")
        builds = Builds(images, tmp_path_factory.mktemp("base"), docker)
        yield builds
        builds.pool.shutdown(cancel_futures=True)


def _has_to_run(item: pytest.Item) -> bool:
    group = group_of(item)
    return group is None or not inputs.unchanged(group, item.path)


def _docker(stack: ExitStack) -> Docker | None:
    if programs() is None:
        return None
    folder = stack.enter_context(TemporaryDirectory(prefix="devbench-"))  # the path of a socket must be short
    return stack.enter_context(daemon(Path(folder)))


@pytest.fixture(scope="session")
def cpu(builds: Builds) -> str:
    """The cpu image."""
    return builds.name("cpu")


@pytest.fixture(scope="session")
def docker_cpu(builds: Builds) -> str:
    """The cpu image, built by Docker without a cache. Needs "docker"."""
    return builds.name("docker_cpu")


@pytest.fixture(scope="session")
def docker(builds: Builds) -> Docker:
    """A Docker daemon for the tests. Needs "docker"."""
    assert builds.docker
    return builds.docker


@pytest.fixture(scope="session")
def directml(builds: Builds) -> str:
    """The directml image. Needs "tensorflow-2.10"."""
    return builds.name("directml")


@pytest.fixture(scope="session")
def hub(builds: Builds) -> str:
    """The hub image."""
    return builds.name("hub")


@pytest.fixture(scope="session")
def cuda(builds: Builds) -> str:
    """The cuda image."""
    return builds.name("cuda")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests by the images that they use, because the images are built one after another."""
    positions = [position for position, item in enumerate(items) if item.path.parent == FOLDER]
    ordered = sorted(
        (items[position] for position in positions), key=lambda item: max(map(ORDER.index, images_of(item)), default=0)
    )
    for position, item in zip(positions, ordered, strict=True):
        items[position] = item
