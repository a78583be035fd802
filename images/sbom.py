"""The bill of materials of an image that is built, as CycloneDX JSON: Python packages and the system's, with licences.

    python images/sbom.py                 writes those of all images that are built into dist/
    python images/sbom.py cpu hub         those of these

`ENGINE` names podman or docker and `IMAGE_NAME` the images, as for `images/build`. One image gives one document, to
the byte.
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

ROOT = Path(__file__).resolve().parent.parent
INVENTORY = ROOT / "images" / "inventory.py"
NAME = os.environ.get("IMAGE_NAME") or "devbench"
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


def told(*words: str, given: str = "") -> str:
    """What the engine prints.

    Raises:
        SystemExit: with its words, where it fails.
    """
    done = subprocess.run([engine(), *words], input=given, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip())
    return done.stdout


def built() -> set[str]:
    """The names of all images that are there, as they were given when they were built."""
    return {name.removeprefix("localhost/") for name in told("images", "--format", "{{.Repository}}:{{.Tag}}").split()}


def bill(image: str) -> Bom:
    """What an image holds.

    Args:
        image: its name.
    """
    (known,) = json.loads(told("image", "inspect", image))
    python = ("run", "--rm", "--interactive", "--network=none", "--entrypoint=/opt/devbench/bin/python", image, "-")
    found = json.loads(told(*python, given=INVENTORY.read_text(encoding="utf-8")))
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


def document(image: str) -> str:
    """The bill of materials of an image, as text."""
    return str(make_outputter(bill(image), OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1))


def main(named: list[str]) -> None:
    """Writes the documents of images; what is not built and was not asked for by name is left out, and told.

    Args:
        named: the images' tags; without one those of all Dockerfiles.

    Raises:
        SystemExit: a named one is not built, or none is.
    """
    there, folder = built(), Path("dist")
    written = []
    for tag in named or sorted(path.name.partition(".")[2] for path in ROOT.glob("Dockerfile.*")):
        image = f"{NAME}:{tag}"
        if image not in there:
            said = f"{image} is not built: make images IMAGES={tag}"
            if named:
                sys.exit(said)
            print(said, file=sys.stderr)
            continue
        folder.mkdir(exist_ok=True)
        path = folder / f"devbench-{tag}.cdx.json"
        temporary = path.with_suffix(".tmp")
        temporary.write_text(document(image) + "\n", encoding="utf-8")
        written.append(temporary.replace(path))
        print(path)
    if not written:
        sys.exit("none of the images is built: make images")


if __name__ == "__main__":
    main(sys.argv[1:])
