"""The bill of materials is valid CycloneDX, lists the packages of the image with licences, and is reproducible."""

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
"""Packages of an image whose licence must be listed."""


def run_make(tree: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `make sbom` in a copy of the files that it reads, with this environment.

    Args:
        tree: folder of the copy. Documents are written to `dist` in it.
        name: name of the images.
        arguments: other arguments of make.
    """
    (tree / "images").mkdir(exist_ok=True)
    for path in (ROOT / "Makefile", *ROOT.glob("Dockerfile.*"), *ROOT.glob("images/*.py")):
        shutil.copy2(path, tree / path.relative_to(ROOT))
    options = ("--no-print-directory", f"VENV={sys.prefix}", f"--old-file={sys.prefix}/.dev")
    environ = {**environment(), "ENGINE": "podman", "IMAGE_NAME": name}
    return subprocess.run(["make", *options, "sbom", *arguments], cwd=tree, env=environ, capture_output=True, text=True)


@pytest.fixture(
    scope="module",
    params=[
        "cpu",
        pytest.param("directml", marks=[pytest.mark.needs("tensorflow-2.10"), pytest.mark.group("directml-image")]),
        "hub",
    ],
)
def image(request: pytest.FixtureRequest) -> str:
    """The image that a test checks."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture(scope="module")
def document(image: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The bill of materials of the image."""
    return write_sbom(image, tmp_path_factory.mktemp("sbom"))


def plain(name: str) -> str:
    """Return the normalized name of a package."""
    return name.lower().replace("_", "-")


def write_sbom(image: str, tree: Path) -> str:
    """Return the document that `make sbom` writes for an image."""
    tag = image.rpartition(":")[2]
    process = run_make(tree, NAME, f"IMAGES={tag}")
    assert process.returncode == 0, process.stderr
    (path,) = (tree / "dist").iterdir()
    assert path.name == f"devbench-{tag}.cdx.json"
    return path.read_text(encoding="utf-8")


def test_the_document_is_valid_and_reproducible(document: str, image: str, tmp_path: Path) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(document) is None
    assert write_sbom(image, tmp_path) == document


def test_every_python_and_system_package_of_the_image_is_listed(document: str, image: str) -> None:
    bom = json.loads(document)
    assert bom["metadata"]["component"]["version"] == __version__
    listed = {component["purl"].partition("?")[0] for component in bom["components"] if "purl" in component}
    with mounted(image) as root:
        folders = list(root.glob("opt/devbench/lib/python3*/site-packages/*.dist-info"))
    installed_packages = {plain(folder.name.removesuffix(".dist-info")).rpartition("-") for folder in folders}
    assert len(installed_packages) >= (39 if image.endswith(":hub") else 40)
    assert {f"pkg:pypi/{name}@{version}" for name, _, version in installed_packages} <= listed
    packages = shell(image, "dpkg-query --show --showformat '${Package} ${db:Status-Status}\\n'").splitlines()
    installed = {line.split()[0] for line in packages if line.endswith(" installed")}
    assert {"libc6", "ca-certificates"} <= installed
    assert installed == {
        component["name"] for component in bom["components"] if component.get("purl", "").startswith("pkg:deb/")
    }


def test_licences_are_listed(document: str, image: str) -> None:
    components = {plain(component["name"]): component for component in json.loads(document)["components"]}
    assert components["devbench-tf"]["licenses"] in (
        [{"expression": "Apache-2.0"}],
        [{"license": {"id": "Apache-2.0"}}],
    )
    unlicensed = {name for name, component in components.items() if not component.get("licenses")}
    assert len(unlicensed) < len(components) / 5
    required = LICENSED[image.rpartition(":")[2]]
    assert required <= set(components)
    assert not required & unlicensed


@pytest.fixture
def name(hub: str) -> Iterator[str]:
    """A name for images of which only the hub image exists."""
    name = f"{NAME}-{secrets.token_hex(4)}"
    podman("tag", hub, f"{name}:hub")
    yield name
    podman("untag", f"{name}:hub", f"{name}:hub")


def test_make_writes_documents_of_the_built_images_and_names_the_others(name: str, tmp_path: Path) -> None:
    process = run_make(tmp_path, name)
    assert process.returncode == 0, process.stderr
    assert [path.name for path in (tmp_path / "dist").iterdir()] == ["devbench-hub.cdx.json"]
    for tag in ("cpu", "cuda", "directml"):
        assert f"{name}:{tag} is not built: make images IMAGES={tag}" in process.stderr
    assert f"{name}:hub" not in process.stderr


def test_make_fails_for_a_named_image_that_is_not_built_and_keeps_old_documents(name: str, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "devbench-cpu.cdx.json").write_text("old document")
    process = run_make(tmp_path, name, "IMAGES=cpu hub")
    assert process.returncode != 0
    assert f"{name}:cpu is not built" in process.stderr
    assert [path.read_text() for path in (tmp_path / "dist").iterdir()] == ["old document"]


def test_make_fails_if_no_image_is_built(tmp_path: Path) -> None:
    process = run_make(tmp_path, f"{NAME}-none")
    assert process.returncode != 0
    assert "none of the images is built: make images" in process.stderr
    assert "Traceback" not in process.stderr
    assert not (tmp_path / "dist").exists()
