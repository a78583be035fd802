"""How large an image is, what fills it, and how much longer its help takes than a bare container of its base image.

`python -m benchmarks.images [ROUNDS] [IMAGE…]`. Default images: devbench:cpu, devbench:cuda and devbench:directml, if
they exist. Claim: 1.3, 5.5 and 1.6 GB unpacked; help within 0.5 s of the bare container.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import subprocess
import sys
import time
from typing import Any

CLAIMED = {"cpu": 1.3e9, "cuda": 5.5e9, "directml": 1.6e9}
SHOWN = 12

SIZES = """
import json, os, sys
sizes = {}
for folder, _, names in os.walk("/", onerror=None):
    if folder.startswith(("/proc", "/sys", "/dev")):
        continue
    for name in names:
        path = os.path.join(folder, name)
        if not os.path.islink(path):
            parts = path.split("/")
            package = parts[6] if "/site-packages/" in path and len(parts) > 6 else "system and Python"
            kind = "bytecode" if path.endswith(".pyc") and package != "system and Python" else package
            sizes[kind] = sizes.get(kind, 0) + os.path.getsize(path)
print(json.dumps(sizes))
"""


def engine(*arguments: str) -> str:
    """Return what podman prints, or docker if there is no podman."""
    command = shutil.which("podman") or shutil.which("docker")
    return subprocess.run([command, *arguments], check=True, capture_output=True, text=True).stdout if command else ""


def images(names: list[str]) -> list[str]:
    """Return the images that exist."""
    wanted = names or [f"devbench:{backend}" for backend in CLAIMED]
    available = engine("images", "--format", "{{.Repository}}:{{.Tag}}").split()
    return [name for name in wanted if any(image.removeprefix("localhost/") == name for image in available)]


def base(image: str) -> str:
    """Return the base image of an image."""
    (details,) = json.loads(engine("image", "inspect", image))
    return str(details["Config"]["Labels"]["org.opencontainers.image.base.name"])


def weigh(image: str) -> None:
    """Print an image's size, the claim, and its largest parts."""
    (details,) = json.loads(engine("image", "inspect", image))
    claim = CLAIMED.get(image.rpartition(":")[2].rpartition("-")[2])
    against = f", claim {claim / 1e9:.1f} GB" if claim else ""
    (base_details,) = json.loads(engine("image", "inspect", base(image)))
    print(f"{image}: {details['Size'] / 1e9:.3f} GB unpacked{against}")
    print(f"  base image {base(image)}: {base_details['Size'] / 1e6:.0f} MB")
    python = ("--entrypoint=/opt/devbench/bin/python", image, "-c", SIZES)
    sizes: dict[str, Any] = json.loads(engine("run", "--rm", "--network=none", "--user=0", *python))
    parts = sorted(sizes.items(), key=lambda item: -item[1])
    rest = sum(size for _, size in parts[SHOWN:])
    for name, size in [*parts[:SHOWN], ("everything else", rest)]:
        print(f"  {size / 1e6:8.0f} MB  {name}")


def start(image: str, rounds: int) -> None:
    """Print how much longer the help takes than a container of the base image that does nothing."""
    bare = ("run", "--rm", "--network=none", "--entrypoint=/bin/true", base(image))
    commands = {"bare": bare, "help": ("run", "--rm", "--network=none", image, "--help")}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name in random.sample(list(commands), len(commands)):
            start_time = time.perf_counter()
            engine(*commands[name])
            times[name].append(time.perf_counter() - start_time)
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    differences = sorted(b - a for a, b in zip(times["bare"], times["help"], strict=True))
    print(
        f"  start: bare {medians['bare']:.2f} s, help {medians['help']:.2f} s, "
        f"difference {statistics.median(differences):.2f} s [{differences[0]:.2f}, {differences[-1]:.2f}], "
        f"{rounds} rounds, claim 0.5 s"
    )


def main() -> None:
    """Measure each image that exists."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    available = images(sys.argv[2:])
    if not available:
        print("No image exists. Build them: make images")
    for image in available:
        weigh(image)
        start(image, rounds)


if __name__ == "__main__":
    main()
