"""Runs within an image, with nothing but the standard library: prints what is installed there as one JSON document."""

import json
import platform
import subprocess
from importlib import metadata
from pathlib import Path

FIELDS = ("Package", "Version", "Architecture", "source:Package")


def licences(one: metadata.Distribution) -> list[str]:
    """What a package says of its licence: an expression, a short text, or its classifiers."""
    said = one.metadata
    if expressions := said.get_all("License-Expression"):
        return expressions
    listed = [each.rpartition(" :: ")[2] for each in said.get_all("Classifier", []) if each.startswith("License :: ")]
    texts = [text.strip() for text in said.get_all("License", [])]
    return listed or [text for text in texts if 0 < len(text) < 60 and "\n" not in text]


def debian_licences(package: str) -> list[str]:
    """The licences that a Debian package's copyright file names in its fields, sorted."""
    try:
        lines = Path("/usr/share/doc", package, "copyright").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return sorted({line.partition(":")[2].strip() for line in lines if line.startswith("License:")} - {""})


def system() -> list[dict[str, object]]:
    """The Debian packages."""
    form = "\t".join(f"${{{field}}}" for field in FIELDS) + "\t${db:Status-Status}\n"
    told = subprocess.run(["dpkg-query", "--show", "--showformat", form], capture_output=True, text=True, check=True)
    rows = (line.split("\t") for line in told.stdout.splitlines())
    return [
        {"name": name, "version": version, "architecture": kind, "source": source, "licences": debian_licences(name)}
        for name, version, kind, source, status in rows
        if status == "installed"
    ]


def python() -> list[dict[str, object]]:
    """The Python packages."""
    found = {one.metadata["Name"]: one for one in metadata.distributions()}
    return [
        {"name": name, "version": one.version, "licences": licences(one)}
        for name, one in sorted(found.items(), key=lambda item: item[0].lower())
    ]


if __name__ == "__main__":
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    print(
        json.dumps(
            {
                "python": python(),
                "system": system(),
                "interpreter": platform.python_version(),
                "distribution": {key: release.get(key, "").strip('"') for key in ("ID", "VERSION_CODENAME")},
            }
        )
    )
