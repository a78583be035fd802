"""The bill of materials: valid CycloneDX that names what is really in the image, with licences, the same each time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bench import __version__
from images.engine import ROOT, environment, mounted, shell

pytestmark = [pytest.mark.once, pytest.mark.needs("container-engine"), pytest.mark.timeout(3600)]


def made(image: str) -> str:
    """The document as `make sbom` writes it."""
    command = [sys.executable, str(ROOT / "images" / "sbom.py"), image]
    given = {**environment(), "ENGINE": "podman"}
    return subprocess.run(command, env=given, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def document(cpu: str) -> str:
    """Of the cpu image."""
    return made(cpu)


def test_it_is_valid_and_the_same_each_time(document: str, cpu: str) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(document) is None
    assert made(cpu) == document


def test_it_names_every_python_package_and_every_system_package_of_the_image(document: str, cpu: str) -> None:
    bom = json.loads(document)
    assert bom["metadata"]["component"]["version"] == __version__
    named = {each["purl"].partition("?")[0] for each in bom["components"] if "purl" in each}
    with mounted(cpu) as root:
        folders = list(root.glob("opt/devbench/lib/python3*/site-packages/*.dist-info"))
    there = {folder.name.removesuffix(".dist-info").lower().replace("_", "-").rpartition("-") for folder in folders}
    assert len(there) > 40
    assert {f"pkg:pypi/{name}@{version}" for name, _, version in there} <= named
    packages = shell(cpu, "dpkg-query --show --showformat '${Package} ${db:Status-Status}\\n'").splitlines()
    installed = {line.split()[0] for line in packages if line.endswith(" installed")}
    assert {"libc6", "ca-certificates"} <= installed
    assert installed == {each["name"] for each in bom["components"] if each.get("purl", "").startswith("pkg:deb/")}


def test_licences_are_listed(document: str) -> None:
    components = {each["name"]: each for each in json.loads(document)["components"]}
    assert components["devbench"]["licenses"] == [{"expression": "Apache-2.0"}] or components["devbench"][
        "licenses"
    ] == [{"license": {"id": "Apache-2.0"}}]
    bare = [name for name, each in components.items() if not each.get("licenses")]
    assert len(bare) < len(components) / 5
    assert not {"tensorflow-cpu", "keras", "numpy", "scipy", "pydantic"} & set(bare)


def test_without_the_image_it_says_so() -> None:
    command = [sys.executable, str(ROOT / "images" / "sbom.py"), "localhost/devbench-none:cpu"]
    done = subprocess.run(command, env={**environment(), "ENGINE": "podman"}, capture_output=True, text=True)
    assert done.returncode != 0
    assert "devbench-none" in done.stderr
    assert "Traceback" not in done.stderr
