"""What an image holds and what it does not, read from its files, its layers and what the engine knows of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.version import __version__
from images.engine import NAME, ROOT, build, inspect, mounted, podman, run, shell, variables

pytestmark = [pytest.mark.once, pytest.mark.needs("container-engine"), pytest.mark.timeout(3600)]

LIMITS = {"cpu": 1.3e9, "directml": 1.6e9}
"""Bytes, unpacked, base image included."""

EACH = pytest.mark.parametrize(
    "backend", ["cpu", pytest.param("directml", marks=pytest.mark.needs("tensorflow-2.10", "changed-directml-image"))]
)


@pytest.fixture
def image(request: pytest.FixtureRequest, backend: str) -> str:
    """The image of a backend."""
    name = request.getfixturevalue(backend)
    assert isinstance(name, str)
    return name


@EACH
def test_alone_it_prints_help(image: str) -> None:
    ended = run(image)
    assert ended.code == 0
    assert "Usage: devbench" in ended.out
    assert ended.err == ""


@EACH
def test_it_is_as_small_as_is_claimed(image: str, backend: str) -> None:
    assert 2e8 < inspect(image)["Size"] <= LIMITS[backend]


@EACH
def test_labels_and_variables_say_what_it_is_and_from_which_revision(image: str, backend: str) -> None:
    labels = {key.rpartition(".")[2]: value for key, value in inspect(image)["Config"]["Labels"].items()}
    given = variables(image)
    assert labels["version"] == given["DEVBENCH_IMAGE_VERSION"] == __version__
    assert labels["revision"] == given["DEVBENCH_REVISION"]
    assert labels["revision"].removesuffix("-dirty") == head()
    assert labels["licenses"] == "Apache-2.0"
    assert labels["title"].startswith("devbench")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", labels["created"])
    assert given["DEVBENCH_IMAGE"] == f"devbench:{backend}"


def test_an_image_of_another_commit_with_the_same_files_tells_that_commit(hub: str) -> None:
    base = inspect(hub)["Config"]["Labels"]["org.opencontainers.image.base.name"]
    assert variables(hub)["DEVBENCH_REVISION"] != "another"
    again = build("hub", base, f"{NAME}-again", "--build-arg=REVISION=another")
    found = inspect(again)
    try:
        assert variables(again)["DEVBENCH_REVISION"] == "another"
        assert found["Config"]["Labels"]["org.opencontainers.image.revision"] == "another"
        assert shell(again, "cat /opt/devbench/revision").strip() == "another"
    finally:
        podman("rmi", "--force", found["Id"])


def head() -> str:
    """The commit that is checked out, or "unknown" where git can't tell."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True) if shutil.which("git") else None
    return done.stdout.strip() if done and done.returncode == 0 else "unknown"


@EACH
def test_it_runs_as_somebody_without_rights(image: str) -> None:
    assert inspect(image)["Config"]["User"] == "1000"


@EACH
def test_nothing_in_it_installs_builds_or_tests(image: str) -> None:
    absent = "pip pip3 uv uvx gcc g++ cc clang ld as strip make nvcc cmake git"
    found = shell(image, f"for each in {absent}; do command -v $each || true; done")
    assert found == ""
    with mounted(image) as root:
        packages = site_packages(root)
        assert (packages / "tensorflow").is_dir()
        assert (packages / "bench").is_dir()
        names = {path.name.partition("-")[0] for path in packages.iterdir()}
        assert not names & {"pip", "uv", "flit_core", "pytest", "libclang", "clang"}
        assert not [*root.glob("usr/local/lib/python3*/ensurepip"), *root.glob("usr/lib/python3*/ensurepip")]
        assert not (packages / "tensorflow" / "include").exists()
        assert [str(path) for path in packages.rglob("tests") if path.is_dir()] == []
        assert list(packages.rglob("*.a")) == []
        assert [str(path) for form in ("*.h", "*.hpp", "*.cuh") for path in packages.rglob(form)] == []


@EACH
def test_all_that_can_be_compiled_is(image: str) -> None:
    with mounted(image) as root:
        modules = [path for path in site_packages(root).rglob("*.py") if "lib2to3" not in path.parts]
        bare = [path for path in modules if not list((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"))]
        assert len(modules) > 3000
        # A few are templates, or tell of a newer Python's syntax.
        assert [path for path in bare if compilable(path)] == []
        bench = [path for path in bare if "bench" in path.parts]
        assert bench == []


def compilable(path: Path) -> bool:
    """Whether a file is a program at all."""
    try:
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


@EACH
def test_no_cache_or_log_of_its_making_is_left(image: str) -> None:
    with mounted(image) as root:
        places = (
            "tmp",
            "root/.cache",
            "var/cache/apt",
            "var/lib/apt/lists",
            "wheels",
            "images",
            "source",
            "tools",
            "mnt",
        )
        left = [str(path) for place in places for path in files_below(root / place)]
        assert left == []
        assert not (root / "var/log/dpkg.log").exists()


def files_below(folder: Path) -> Iterator[Path]:
    """The files in a folder, or none where there is no folder."""
    if folder.is_dir():
        yield from (path for path in folder.rglob("*") if path.is_file())


def site_packages(root: Path) -> Path:
    """Where the packages are."""
    (found,) = (root / "opt/devbench/lib").glob("python3*/site-packages")
    return found
