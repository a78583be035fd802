"""Build the version of Prometheus that `go.mod` pins, if it is not in the cache, and print the path of the program.

A build takes minutes. The user's cache has one folder per version. This script needs only Go and Python, so that it can
run while the environments of the tests are being created.
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
    """Return the path of the program. It may not be built yet."""
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    cache = Path(home) if home else Path.home() / ".cache"
    version = hashlib.sha256((MODULE / "go.sum").read_bytes()).hexdigest()[:12]
    return cache / "devbench-tests" / f"prometheus-{version}" / f"prometheus{'.exe' * (sys.platform == 'win32')}"


def build(path: Path) -> None:
    """Build the program without service discovery in clouds, whose libraries are most of the code."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (major, minor) = re.findall(rf"{PACKAGE} v0\.(\d)(\d+)", (MODULE / "go.mod").read_text(encoding="utf-8"))[0]
    linker_flags = f"-s -w -X github.com/prometheus/common/version.Version={major}.{int(minor)}"
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        output = Path(folder) / path.name
        command = ["go", "build", "-trimpath", "-tags", "remove_all_sd", "-ldflags", linker_flags, "-o", str(output)]
        environment = {**os.environ, "CGO_ENABLED": "0"}
        subprocess.run([*command, f"{PACKAGE}/cmd/prometheus"], check=True, cwd=MODULE, env=environment)
        output.replace(path)


if __name__ == "__main__":
    if not program().exists():
        build(program())
    print(program())
