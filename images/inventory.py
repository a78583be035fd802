"""Print the packages installed in an image as one JSON document. It runs in the image, without other packages."""

import json
import platform
import subprocess
from importlib import metadata
from pathlib import Path

FIELDS = ("Package", "Version", "Architecture", "source:Package")


def licences(distribution: metadata.Distribution) -> list[str]:
    """Return the licences in a package's metadata: an expression, classifiers or a short text."""
    fields = distribution.metadata
    if expressions := fields.get_all("License-Expression"):
        return expressions
    classifiers = [text for text in fields.get_all("Classifier", []) if text.startswith("License :: ")]
    names = [text.rpartition(" :: ")[2] for text in classifiers]
    texts = [text.strip() for text in fields.get_all("License", [])]
    return names or [text for text in texts if 0 < len(text) < 60 and "\n" not in text]


def debian_licences(package: str) -> list[str]:
    """Return the licences in the fields of a Debian package's copyright file, sorted."""
    try:
        lines = Path("/usr/share/doc", package, "copyright").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return sorted({line.partition(":")[2].strip() for line in lines if line.startswith("License:")} - {""})


def system() -> list[dict[str, object]]:
    """Return the installed Debian packages."""
    form = "\t".join(f"${{{field}}}" for field in FIELDS) + "\t${db:Status-Status}\n"
    done = subprocess.run(["dpkg-query", "--show", "--showformat", form], capture_output=True, text=True, check=True)
    rows = (line.split("\t") for line in done.stdout.splitlines())
    return [
        {"name": name, "version": version, "architecture": kind, "source": source, "licences": debian_licences(name)}
        for name, version, kind, source, status in rows
        if status == "installed"
    ]


def python() -> list[dict[str, object]]:
    """Return the installed Python packages."""
    packages = {distribution.metadata["Name"]: distribution for distribution in metadata.distributions()}
    return [
        {"name": name, "version": distribution.version, "licences": licences(distribution)}
        for name, distribution in sorted(packages.items(), key=lambda item: item[0].lower())
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
