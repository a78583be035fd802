"""Builds the Prometheus 3 that `go.mod` names, which takes minutes, once; prints where the program is.

It is kept in the user's cache, a folder for each version. Run by itself it needs Go and Python alone, so that it can
be built while the environments that ask for it are still being made.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MODULE = Path(__file__).resolve().parent
PACKAGE = "github.com/prometheus/prometheus"


def program() -> Path:
    """Where the program is, whether or not it is built."""
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    cache = Path(home) if home else Path.home() / ".cache"
    version = hashlib.sha256((MODULE / "go.sum").read_bytes()).hexdigest()[:12]
    return cache / "devbench-tests" / f"prometheus-{version}" / f"prometheus{'.exe' * (sys.platform == 'win32')}"


def build(to: Path) -> None:
    """Builds it, without the discovery of targets in a dozen clouds, whose libraries are most of what there is."""
    to.parent.mkdir(parents=True, exist_ok=True)
    (major, minor) = re.findall(rf"{PACKAGE} v0\.(\d)(\d+)", (MODULE / "go.mod").read_text(encoding="utf-8"))[0]
    named = f"-s -w -X github.com/prometheus/common/version.Version={major}.{int(minor)}"
    with tempfile.TemporaryDirectory(dir=to.parent) as folder:
        made = Path(folder) / to.name
        command = ["go", "build", "-trimpath", "-tags", "remove_all_sd", "-ldflags", named, "-o", str(made)]
        environment = {**os.environ, "CGO_ENABLED": "0"}
        subprocess.run([*command, f"{PACKAGE}/cmd/prometheus"], check=True, cwd=MODULE, env=environment)
        made.replace(to)


if __name__ == "__main__":
    if not program().exists():
        build(program())
    print(program())
