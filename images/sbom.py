"""Write the bill of materials of built images as CycloneDX JSON: Python and Debian packages, with licences.

    python images/sbom.py                 all built images; the documents go to dist/
    python images/sbom.py cpu hub         only these images

`ENGINE` and `IMAGE_NAME` mean the same as for `images/build`. The same image gives the same document, byte for byte.
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

from cyclonedx.contrib.license.factories import LicenseFactory
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
    """Return the container engine.

    Raises:
        SystemExit: No engine is installed.
    """
    program = os.environ.get("ENGINE") or shutil.which("podman") or shutil.which("docker")
    if not program:
        sys.exit("No container engine found. Install podman or docker, or name one with ENGINE=…")
    return program


def engine_output(*arguments: str, stdin: str = "") -> str:
    """Return what the engine prints.

    Args:
        arguments: Arguments of the engine.
        stdin: Text for its standard input.

    Raises:
        SystemExit: The engine failed. The message is the engine's.
    """
    done = subprocess.run([engine(), *arguments], input=stdin, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip())
    return done.stdout


def built_images() -> set[str]:
    """Return the names of all images on this machine, without podman's prefix."""
    names = engine_output("images", "--format", "{{.Repository}}:{{.Tag}}").split()
    return {name.removeprefix("localhost/") for name in names}


def bill(image: str) -> Bom:
    """Return the bill of materials of an image, by name."""
    (details,) = json.loads(engine_output("image", "inspect", image))
    python = ("run", "--rm", "--interactive", "--network=none", "--entrypoint=/opt/devbench/bin/python", image, "-")
    inventory = json.loads(engine_output(*python, stdin=INVENTORY.read_text(encoding="utf-8")))
    labels = details["Config"]["Labels"]
    container = Component(
        name=image.partition(":")[0],
        version=labels[f"{LABEL}version"],
        type=ComponentType.CONTAINER,
        bom_ref=image,
        licenses=_licences([labels[f"{LABEL}licenses"]]),
        properties=[Property(name="devbench:revision", value=labels[f"{LABEL}revision"])],
    )
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, details["Id"]))
    bom.metadata.component = container
    bom.metadata.timestamp = datetime.fromisoformat(labels[f"{LABEL}created"])
    distribution, interpreter = inventory["distribution"], inventory["interpreter"]
    components = [
        *(_python(package) for package in inventory["python"]),
        *(_system(package, distribution) for package in inventory["system"]),
        Component(name="python", version=interpreter, type=ComponentType.PLATFORM, bom_ref="python"),
    ]
    for component in components:
        bom.components.add(component)
    bom.register_dependency(container, components)
    return bom


def _python(package: dict[str, Any]) -> Component:
    url = PackageURL(type="pypi", name=package["name"].lower().replace("_", "-"), version=package["version"])
    return _component(package, url)


def _system(package: dict[str, Any], distribution: dict[str, str]) -> Component:
    url = PackageURL(
        type="deb",
        namespace=distribution["ID"],
        name=package["name"],
        version=package["version"],
        qualifiers={"arch": package["architecture"], "distro": distribution["VERSION_CODENAME"]},
    )
    return _component(package, url)


def _component(package: dict[str, Any], url: PackageURL) -> Component:
    return Component(
        name=package["name"],
        version=package["version"],
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=url.to_string(),
        licenses=_licences(package["licences"]),
    )


def _licences(names: Iterable[str]) -> list[Any]:
    """Return licences by name. A single one has its SPDX identifier or expression if it is one."""
    factory = LicenseFactory()
    licences = list(names)
    if len(licences) == 1:
        return [factory.make_from_string(licences[0])]
    return [factory.make_with_name(name) for name in licences]


def document(image: str) -> str:
    """Return the bill of materials of an image as JSON."""
    return str(make_outputter(bill(image), OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1))


def main(tags: list[str]) -> None:
    """Write the documents of images. Without tags, images that are not built are left out with a note on stderr.

    Args:
        tags: Tags of the images. Default: those of all Dockerfiles.

    Raises:
        SystemExit: A requested image is not built, or none is.
    """
    available, folder = built_images(), Path("dist")
    written = []
    for tag in tags or sorted(path.name.partition(".")[2] for path in ROOT.glob("Dockerfile.*")):
        image = f"{NAME}:{tag}"
        if image not in available:
            message = f"{image} is not built: make images IMAGES={tag}"
            if tags:
                sys.exit(message)
            print(message, file=sys.stderr)
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
