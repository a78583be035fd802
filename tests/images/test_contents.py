"""What an image contains and what it does not: files, labels and size."""

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
"""Maximum size in bytes, uncompressed, including the base image."""

EACH_BACKEND = pytest.mark.parametrize(
    "backend",
    [
        "cpu",
        pytest.param("directml", marks=[pytest.mark.needs("tensorflow-2.10"), pytest.mark.group("directml-image")]),
    ],
)


@pytest.fixture
def image(request: pytest.FixtureRequest, backend: str) -> str:
    """The image of a backend."""
    name = request.getfixturevalue(backend)
    assert isinstance(name, str)
    return name


@EACH_BACKEND
def test_without_arguments_it_prints_help(image: str) -> None:
    completed = run(image)
    assert completed.code == 0
    assert "Usage: devbench" in completed.out
    assert completed.err == ""


@EACH_BACKEND
def test_the_size_is_as_documented(image: str, backend: str) -> None:
    assert 2e8 < inspect(image)["Size"] <= LIMITS[backend]


@EACH_BACKEND
def test_labels_and_variables_have_the_version_and_revision(image: str, backend: str) -> None:
    labels = {key.rpartition(".")[2]: value for key, value in inspect(image)["Config"]["Labels"].items()}
    environ = variables(image)
    assert labels["version"] == environ["DEVBENCH_IMAGE_VERSION"] == __version__
    assert labels["revision"] == environ["DEVBENCH_REVISION"]
    assert labels["revision"].removesuffix("-dirty") == head()
    assert labels["licenses"] == "Apache-2.0"
    assert labels["digest"] == inspect(labels["name"])["RepoDigests"][0].partition("@")[2]  # of the base image
    assert labels["title"].startswith("devbench")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", labels["created"])
    assert environ["DEVBENCH_IMAGE"] == f"devbench:{backend}"


def test_an_image_of_another_commit_with_the_same_files_has_the_other_revision(hub: str) -> None:
    base = inspect(hub)["Config"]["Labels"]["org.opencontainers.image.base.name"]
    assert variables(hub)["DEVBENCH_REVISION"] != "another"
    rebuilt = build("hub", base, f"{NAME}-again", "--build-arg=REVISION=another")
    data = inspect(rebuilt)
    try:
        assert variables(rebuilt)["DEVBENCH_REVISION"] == "another"
        assert data["Config"]["Labels"]["org.opencontainers.image.revision"] == "another"
        assert shell(rebuilt, "cat /opt/devbench/revision").strip() == "another"
    finally:
        podman("rmi", "--force", data["Id"])


def head() -> str:
    """Return the commit that is checked out, or "unknown" without git or a repository."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    process = subprocess.run(command, capture_output=True, text=True) if shutil.which("git") else None
    return process.stdout.strip() if process and process.returncode == 0 else "unknown"


@EACH_BACKEND
def test_it_runs_as_an_unprivileged_user(image: str) -> None:
    assert inspect(image)["Config"]["User"] == "1000"


@EACH_BACKEND
def test_the_image_has_no_installers_compilers_or_tests(image: str) -> None:
    absent = "pip pip3 uv uvx gcc g++ cc clang ld as strip make nvcc cmake git"
    output = shell(image, f"for program in {absent}; do command -v $program || true; done")
    assert output == ""
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


@EACH_BACKEND
def test_every_module_is_compiled(image: str) -> None:
    with mounted(image) as root:
        modules = [path for path in site_packages(root).rglob("*.py") if "lib2to3" not in path.parts]
        uncompiled = [path for path in modules if not list((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"))]
        assert len(modules) > 3000
        # A few are templates, or use the syntax of a newer Python.
        assert [path for path in uncompiled if compilable(path)] == []
        bench = [path for path in uncompiled if "bench" in path.parts]
        assert bench == []


def compilable(path: Path) -> bool:
    """Return whether a file is valid Python."""
    try:
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


@EACH_BACKEND
def test_no_cache_or_log_of_the_build_remains(image: str) -> None:
    with mounted(image) as root:
        folders = (
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
        remaining = [str(path) for folder in folders for path in files_below(root / folder)]
        assert remaining == []
        assert not (root / "var/log/dpkg.log").exists()


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, or none if it does not exist."""
    if folder.is_dir():
        yield from (path for path in folder.rglob("*") if path.is_file())


def site_packages(root: Path) -> Path:
    """Return the folder of the installed packages."""
    (folder,) = (root / "opt/devbench/lib").glob("python3*/site-packages")
    return folder
