"""The bill of materials of an image that is built, as CycloneDX JSON: Python packages and the system's, with licences.

    python images/sbom.py devbench:cpu >devbench-cpu.cdx.json

`ENGINE` names podman or docker, as for `images/build`. One image gives one document, to the byte.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

INVENTORY = Path(__file__).parent / "inventory.py"
LABEL = "org.opencontainers.image."


def engine() -> str:
    """The container engine.

    Raises:
        SystemExit: there is none.
    """
    found = os.environ.get("ENGINE") or shutil.which("podman") or shutil.which("docker")
    if not found:
        sys.exit("No container engine found: install podman or docker, or name one with ENGINE=…")
    return found


def told(*words: str, given: str = "") -> Any:
    """The JSON that the engine prints.

    Raises:
        SystemExit: with its words, where it fails.
    """
    done = subprocess.run([engine(), *words], input=given, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)


def bill(image: str) -> Bom:
    """What an image holds.

    Args:
        image: its name.
    """
    (known,) = told("image", "inspect", image)
    python = ("run", "--rm", "--interactive", "--network=none", "--entrypoint=/opt/devbench/bin/python", image, "-")
    found = told(*python, given=INVENTORY.read_text(encoding="utf-8"))
    labels = known["Config"]["Labels"]
    whole = Component(
        name=image.partition(":")[0],
        version=labels[f"{LABEL}version"],
        type=ComponentType.CONTAINER,
        bom_ref=image,
        licenses=_licences([labels[f"{LABEL}licenses"]]),
        properties=[Property(name="devbench:revision", value=labels[f"{LABEL}revision"])],
    )
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, known["Id"]))
    bom.metadata.component = whole
    bom.metadata.timestamp = datetime.fromisoformat(labels[f"{LABEL}created"])
    parts = [*map(_python, found["python"]), *(_system(each, found["distribution"]) for each in found["system"])]
    parts.append(Component(name="python", version=found["interpreter"], type=ComponentType.PLATFORM, bom_ref="python"))
    for part in parts:
        bom.components.add(part)
    bom.register_dependency(whole, parts)
    return bom


def _python(each: dict[str, Any]) -> Component:
    url = PackageURL(type="pypi", name=each["name"].lower().replace("_", "-"), version=each["version"])
    return _component(each, url)


def _system(each: dict[str, Any], distribution: dict[str, str]) -> Component:
    given = {"arch": each["architecture"], "distro": distribution["VERSION_CODENAME"]}
    url = PackageURL(
        type="deb", namespace=distribution["ID"], name=each["name"], version=each["version"], qualifiers=given
    )
    return _component(each, url)


def _component(each: dict[str, Any], url: PackageURL) -> Component:
    return Component(
        name=each["name"],
        version=each["version"],
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=url.to_string(),
        licenses=_licences(each["licences"]),
    )


def _licences(names: Iterable[str]) -> list[Any]:
    """Licences by their SPDX ids where they have one, else by name; an expression can only stand alone."""
    made = LicenseFactory()
    listed = list(names)
    if len(listed) == 1:
        return [made.make_from_string(listed[0])]
    return [made.make_with_name(name) for name in listed]


def main(image: str) -> None:
    """Prints the document of an image."""
    outputter = make_outputter(bill(image), OutputFormat.JSON, SchemaVersion.V1_6)
    print(outputter.output_as_string(indent=1))


if __name__ == "__main__":
    main(sys.argv[1])
