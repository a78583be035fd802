"""What the layers of an image tell of the machine that built it, read file by file: nothing; and twice the same."""

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
        pytest.param("directml", marks=pytest.mark.needs("tensorflow-2.10", "changed-directml-image")),
        "hub",
    ],
)
def image(request: pytest.FixtureRequest) -> str:
    """Each image."""
    return str(request.getfixturevalue(request.param))


def hosts() -> set[bytes]:
    """Names of the package index as this machine's pip knows it, and of what stands between."""
    code = "from pip._internal.models.index import PyPI; print(PyPI.netloc, PyPI.file_storage_domain)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    proxies = " ".join(value for name, value in os.environ.items() if name.lower().endswith("_proxy"))
    named = re.findall(r"//(?:[^@/\s']*@)?([\w.-]+\.[a-z]+)", f"{listed} {proxies}")
    return {each.encode() for each in [*told, *named] if each != "localhost"}


def own_certificates() -> set[bytes]:
    """Lines of certificates that this machine trusts and Debian does not ship."""
    bundle = Path(os.environ.get("SSL_CERT_FILE", ""))
    if not bundle.is_file():
        return set()
    shipped = {
        line for path in Path("/usr/share/ca-certificates").rglob("*.crt") for line in path.read_bytes().split(b"\n")
    }
    return {line for line in bundle.read_bytes().split(b"\n") if len(line) == 64} - shipped


def layers(image: str, folder: Path) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Every regular file of every layer that lies over the base image, with the archive that it is in."""
    podman("save", "--format", "docker-archive", "--output", str(folder / "image.tar"), image)
    with tarfile.open(folder / "image.tar") as archive:
        manifest = json.load(archive.extractfile("manifest.json") or sys.stdin)
        for name in manifest[0]["Layers"][1:]:
            with tarfile.open(fileobj=archive.extractfile(name)) as layer:
                yield from ((layer, member) for member in layer if member.isfile())
    (folder / "image.tar").unlink()


def recorded(root: Path) -> dict[str, str]:
    """The files of all packages with the hashes that their authors gave: path from the root, hash.

    Without a hash those of Python's own library, which the base image brings and of which a layer has compiled forms.
    """
    found = {path.relative_to(root).as_posix(): "" for path in root.glob("usr/**/lib/python3*/**/*.py")}
    for record in root.glob("opt/devbench/lib/python3*/site-packages/*.dist-info/RECORD"):
        for name, digest, _ in csv.reader(record.read_text(encoding="utf-8").splitlines()):
            found[(record.parent.parent / name).relative_to(root).as_posix()] = digest
    return found


def as_published(path: str, data: bytes, record: dict[str, str]) -> bool:
    """Whether a file is one of a package's, as its author published it; its compiled form counts as it."""
    if path.endswith(".pyc"):
        source = re.sub(r"__pycache__/([^/]+)\.cpython-\d+\.pyc$", r"\1.py", path)
        return source in record
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return record.get(path) == f"sha256={digest}"


def test_no_layer_holds_a_secret_or_names_a_package_index(image: str, tmp_path: Path) -> None:
    with mounted(image) as root:
        record = recorded(root)
    names, certificates = hosts(), own_certificates()
    assert len(names) >= 2
    telling = re.compile(b"|".join(map(re.escape, sorted(names))))
    secret = re.compile(rb"-----BEGIN (?:\w+ )?PRIVATE KEY-----|://[^/\s:@]+:[^/\s:@]+@")
    seen, found = 0, []
    for layer, member in layers(image, tmp_path):
        opened = layer.extractfile(member)
        assert opened is not None
        data = opened.read()
        seen += 1
        if as_published(member.name, data, record):
            continue
        if telling.search(data) or (len(data) < 10**6 and secret.search(data)):
            found.append(member.name)
        if certificates and certificates & set(data.split(b"\n")):
            found.append(f"{member.name} holds a certificate of this machine")
    assert seen > 5_000
    assert found == []


def test_what_the_engine_knows_of_an_image_tells_nothing_of_the_machine_that_built_it(image: str) -> None:
    known = inspect(image)
    told = json.dumps([known["Config"], known["History"]]).encode()
    assert not [name for name in hosts() if name in told]
    for variable in ("PIP_", "UV_", "SSL_CERT", "proxy", "PROXY", "token", "TOKEN"):
        assert variable.encode() not in told


def contents(root: Path) -> dict[str, str]:
    """Every file, folder and link of a root: its kind, rights, owner and a hash of what is in it."""
    found = {}
    for folder, folders, names in os.walk(root):
        for name in [*folders, *names]:
            path = Path(folder, name)
            state = path.lstat()
            if path.is_symlink():
                inside = str(path.readlink())
            elif path.is_file():
                inside = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                inside = ""
            found[path.relative_to(root).as_posix()] = f"{state.st_mode:o} {state.st_uid}:{state.st_gid} {inside}"
    return found
