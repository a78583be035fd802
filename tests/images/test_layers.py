"""The layers of an image reveal nothing about the machine that built it."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.engine import inspect, mounted, podman

pytestmark = [pytest.mark.once, pytest.mark.needs("container-engine"), pytest.mark.timeout(3600)]


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


def hosts() -> set[bytes]:
    """Return the host names of the package index of pip on this machine, and of proxies."""
    code = "from pip._internal.models.index import PyPI; print(PyPI.netloc, PyPI.file_storage_domain)"
    index = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    configuration = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True
    ).stdout
    proxies = " ".join(value for name, value in os.environ.items() if name.lower().endswith("_proxy"))
    names = re.findall(r"//(?:[^@/\s']*@)?([\w.-]+\.[a-z]+)", f"{configuration} {proxies}")
    return {name.encode() for name in [*index, *names] if name != "localhost"}


def own_certificates() -> set[bytes]:
    """Return the lines of certificates that this machine trusts in addition to those of Debian."""
    bundle = Path(os.environ.get("SSL_CERT_FILE", ""))
    if not bundle.is_file():
        return set()
    shipped = {
        line for path in Path("/usr/share/ca-certificates").rglob("*.crt") for line in path.read_bytes().split(b"\n")
    }
    return {line for line in bundle.read_bytes().split(b"\n") if len(line) == 64} - shipped


def layers(image: str, folder: Path) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield every regular file of the layers above the base image, with its archive."""
    podman("save", "--format", "docker-archive", "--output", str(folder / "image.tar"), image)
    with tarfile.open(folder / "image.tar") as archive:
        manifest = json.load(archive.extractfile("manifest.json") or sys.stdin)
        for name in manifest[0]["Layers"][1:]:
            with tarfile.open(fileobj=archive.extractfile(name)) as layer:
                yield from ((layer, member) for member in layer if member.isfile())
    (folder / "image.tar").unlink()


def published_hashes(root: Path) -> dict[str, str]:
    """Return the hashes that packages record of their files, by path relative to the root.

    Files of the standard library have an empty hash. They are in the base image, and a layer has their compiled form.
    """
    hashes = {path.relative_to(root).as_posix(): "" for path in root.glob("usr/**/lib/python3*/**/*.py")}
    for record in root.glob("opt/devbench/lib/python3*/site-packages/*.dist-info/RECORD"):
        for name, digest, _ in csv.reader(record.read_text(encoding="utf-8").splitlines()):
            hashes[(record.parent.parent / name).relative_to(root).as_posix()] = digest
    return hashes


def is_published(path: str, data: bytes, hashes: dict[str, str]) -> bool:
    """Return whether a file is unchanged from a package, or compiled from a file of a package or of Python."""
    if path.endswith(".pyc"):
        source = re.sub(r"__pycache__/([^/]+)\.cpython-\d+\.pyc$", r"\1.py", path)
        return source in hashes
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return hashes.get(path) == f"sha256={digest}"


def test_no_layer_contains_a_secret_or_the_name_of_a_package_index(image: str, tmp_path: Path) -> None:
    with mounted(image) as root:
        hashes = published_hashes(root)
    names, certificates = hosts(), own_certificates()
    assert len(names) >= 2
    host = re.compile(b"|".join(map(re.escape, sorted(names))))
    secret = re.compile(rb"-----BEGIN (?:\w+ )?PRIVATE KEY-----|://[^/\s:@]+:[^/\s:@]+@")
    count, leaks = 0, []
    for layer, member in layers(image, tmp_path):
        file = layer.extractfile(member)
        assert file is not None
        data = file.read()
        count += 1
        if is_published(member.name, data, hashes):
            continue
        if host.search(data) or (len(data) < 10**6 and secret.search(data)):
            leaks.append(member.name)
        if certificates and certificates & set(data.split(b"\n")):
            leaks.append(f"{member.name} contains a certificate of this machine")
    assert count > 5_000
    assert leaks == []


def test_the_metadata_of_an_image_reveals_nothing_about_the_machine_that_built_it(image: str) -> None:
    data = inspect(image)
    text = json.dumps([data["Config"], data["History"]]).encode()
    assert not [name for name in hosts() if name in text]
    for variable in ("PIP_", "UV_", "SSL_CERT", "proxy", "PROXY", "token", "TOKEN"):
        assert variable.encode() not in text


def contents(root: Path) -> dict[str, str]:
    """Return the mode, the owner and a hash of the content of every file, folder and link below a root."""
    entries = {}
    for folder, folders, names in os.walk(root):
        for name in [*folders, *names]:
            path = Path(folder, name)
            state = path.lstat()
            if path.is_symlink():
                content = str(path.readlink())
            elif path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                content = ""
            entries[path.relative_to(root).as_posix()] = f"{state.st_mode:o} {state.st_uid}:{state.st_gid} {content}"
    return entries
