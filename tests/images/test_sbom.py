"""The bill of materials: valid CycloneDX that names what is really in the image, with licences, the same each time."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.version import __version__
from images.engine import NAME, ROOT, environment, mounted, podman, shell

pytestmark = [pytest.mark.once, pytest.mark.needs("container-engine"), pytest.mark.timeout(3600)]

LICENSED = {
    "cpu": {"tensorflow-cpu", "keras", "numpy", "scipy", "pydantic"},
    "directml": {"tensorflow-cpu", "tensorflow-directml-plugin", "keras", "numpy", "pydantic"},
    "hub": {"fastapi", "sqlalchemy", "numpy", "scipy", "pydantic"},
}
"""Packages of an image whose licence must be told."""


def make(tree: Path, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`make sbom` in a copy of what it reads of the project, with this environment.

    Args:
        tree: the copy, in whose folder `dist` the documents then are.
        name: of the images.
        words: what else make is told.
    """
    (tree / "images").mkdir(exist_ok=True)
    for path in (ROOT / "Makefile", *ROOT.glob("Dockerfile.*"), *ROOT.glob("images/*.py")):
        shutil.copy2(path, tree / path.relative_to(ROOT))
    made = ("--no-print-directory", f"VENV={sys.prefix}", f"--old-file={sys.prefix}/.dev")
    given = {**environment(), "ENGINE": "podman", "IMAGE_NAME": name}
    return subprocess.run(["make", *made, "sbom", *words], cwd=tree, env=given, capture_output=True, text=True)


@pytest.fixture(
    scope="module",
    params=[
        "cpu",
        pytest.param("directml", marks=pytest.mark.needs("tensorflow-2.10", "changed-directml-image")),
        "hub",
    ],
)
def image(request: pytest.FixtureRequest) -> str:
    """Each image."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture(scope="module")
def document(image: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its bill of materials."""
    return made(image, tmp_path_factory.mktemp("sbom"))


def plain(name: str) -> str:
    """A package's name in the one way that an index writes it."""
    return name.lower().replace("_", "-")


def made(image: str, tree: Path) -> str:
    """The document that `make sbom` writes."""
    tag = image.rpartition(":")[2]
    done = make(tree, NAME, f"IMAGES={tag}")
    assert done.returncode == 0, done.stderr
    (path,) = (tree / "dist").iterdir()
    assert path.name == f"devbench-{tag}.cdx.json"
    return path.read_text(encoding="utf-8")


def test_it_is_valid_and_the_same_each_time(document: str, image: str, tmp_path: Path) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(document) is None
    assert made(image, tmp_path) == document


def test_it_names_every_python_package_and_every_system_package_of_the_image(document: str, image: str) -> None:
    bom = json.loads(document)
    assert bom["metadata"]["component"]["version"] == __version__
    named = {each["purl"].partition("?")[0] for each in bom["components"] if "purl" in each}
    with mounted(image) as root:
        folders = list(root.glob("opt/devbench/lib/python3*/site-packages/*.dist-info"))
    there = {plain(folder.name.removesuffix(".dist-info")).rpartition("-") for folder in folders}
    assert len(there) >= 40
    assert {f"pkg:pypi/{name}@{version}" for name, _, version in there} <= named
    packages = shell(image, "dpkg-query --show --showformat '${Package} ${db:Status-Status}\\n'").splitlines()
    installed = {line.split()[0] for line in packages if line.endswith(" installed")}
    assert {"libc6", "ca-certificates"} <= installed
    assert installed == {each["name"] for each in bom["components"] if each.get("purl", "").startswith("pkg:deb/")}


def test_licences_are_listed(document: str, image: str) -> None:
    components = {plain(each["name"]): each for each in json.loads(document)["components"]}
    assert components["devbench"]["licenses"] == [{"expression": "Apache-2.0"}] or components["devbench"][
        "licenses"
    ] == [{"license": {"id": "Apache-2.0"}}]
    bare = {name for name, each in components.items() if not each.get("licenses")}
    assert len(bare) < len(components) / 5
    asked = LICENSED[image.rpartition(":")[2]]
    assert asked <= set(components)
    assert not asked & bare


@pytest.fixture
def name(hub: str) -> Iterator[str]:
    """A name under which the hub's image is built and no other."""
    given = f"{NAME}-{secrets.token_hex(4)}"
    podman("tag", hub, f"{given}:hub")
    yield given
    podman("untag", f"{given}:hub", f"{given}:hub")


def test_make_writes_what_is_built_and_says_what_is_not(name: str, tmp_path: Path) -> None:
    done = make(tmp_path, name)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "dist").iterdir()] == ["devbench-hub.cdx.json"]
    for tag in ("cpu", "cuda", "directml"):
        assert f"{name}:{tag} is not built: make images IMAGES={tag}" in done.stderr
    assert f"{name}:hub" not in done.stderr


def test_make_fails_for_an_image_that_is_named_and_not_built_and_leaves_what_there_was(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "devbench-cpu.cdx.json").write_text("of yesterday")
    done = make(tmp_path, name, "IMAGES=cpu hub")
    assert done.returncode != 0
    assert f"{name}:cpu is not built" in done.stderr
    assert [path.read_text() for path in (tmp_path / "dist").iterdir()] == ["of yesterday"]


def test_make_fails_where_no_image_is_built(tmp_path: Path) -> None:
    done = make(tmp_path, f"{NAME}-none")
    assert done.returncode != 0
    assert "none of the images is built: make images" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "dist").exists()
