"""Does `devbench scale` attribute an all-reduce over a slow link correctly?

`python -m benchmarks.workers [MEGABITS…]`, as root on Linux with iproute2. Two workers run in network namespaces of
their own, which a pair of virtual devices connects. A token bucket limits the rate of both. A ring sends each gradient
once in either direction, so that an all-reduce should take the bytes of the gradients over the rate. The program
compares that with the part of the step that the study calls all-reduce. Two cores show that the attribution works, not
how fast a program scales.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.model.scaling import ScalingStudy, Size

RATES = (100, 200)
"""Rates of the link in megabits per second."""

OVERHEAD = 1514 / 1448
"""Bytes of an Ethernet frame over the bytes of data in it. The token bucket counts whole frames."""

ADDRESSES = ("10.77.0.1", "10.77.0.2")
PROGRAM = Path(__file__).with_name("wide_layer.py")


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


@contextlib.contextmanager
def linked_namespaces(megabits: int) -> Iterator[list[str]]:
    """Make two network namespaces with a link of a rate between them. Yield their names.

    Args:
        megabits: megabits per second in either direction.
    """
    names = [f"devbench{os.getpid()}-{index}" for index in range(2)]
    devices = [f"dvb{os.getpid() % 100_000}{end}" for end in "ab"]
    try:
        for name in names:
            _run("ip", "netns", "add", name)
        _run("ip", "link", "add", devices[0], "netns", names[0], "type", "veth", "peer", devices[1], "netns", names[1])
        for name, device, address in zip(names, devices, ADDRESSES, strict=True):
            inside = ("ip", "netns", "exec", name)
            _run(*inside, "ip", "link", "set", "lo", "up")
            _run(*inside, "ip", "address", "add", f"{address}/24", "dev", device)
            _run(*inside, "ip", "link", "set", device, "up")
            rate = ("rate", f"{megabits}mbit", "burst", "64kb", "latency", "400ms")
            _run(*inside, "tc", "qdisc", "add", "dev", device, "root", "tbf", *rate)
        yield names
    finally:
        for name in names:
            subprocess.run(("ip", "netns", "delete", name), check=False)


def measure(names: Sequence[str], folder: Path, seconds: int) -> ScalingStudy:
    """Run `devbench scale` with a worker in each namespace. Return what the first one shows.

    Args:
        names: the namespaces.
        folder: for the results.
        seconds: time limit.
    """
    command = [sys.executable, "-m", "bench", "scale", str(PROGRAM), "--workers", "2", "--hosts", ",".join(ADDRESSES)]
    command += ["--threads", "1", "--max-time", f"{seconds}s", "--json"]
    # Each worker has a CPU of its own, as on two machines.
    placed = [["ip", "netns", "exec", name, "taskset", "-c", str(cpu)] for cpu, name in enumerate(names)]
    other = subprocess.Popen(
        [*placed[1], *command, "--index", "1", "--output", str(folder / "1")], stderr=subprocess.DEVNULL
    )
    try:
        first = subprocess.run(
            [*placed[0], *command, "--index", "0", "--output", str(folder / "0")], stdout=subprocess.PIPE, check=True
        )
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            other.wait(timeout=30)
        other.kill()
    return ScalingStudy.model_validate(json.loads(first.stdout)["scaling"])


def _largest(study: ScalingStudy) -> Size:
    return study.sizes[-1]


def main() -> None:
    """Measure at each rate and print the comparison."""
    if not hasattr(os, "geteuid") or os.geteuid() or not shutil.which("tc"):
        raise SystemExit("benchmarks.workers needs root on Linux, and iproute2, for network namespaces")
    rates = list(map(int, sys.argv[1:])) or list(RATES)
    print("megabits/s  step       all-reduce  expected   measured / expected")
    for megabits in rates:
        with tempfile.TemporaryDirectory() as folder, linked_namespaces(megabits) as names:
            size = _largest(measure(names, Path(folder), 180))
        if size.step_seconds is None or size.all_reduce_bytes is None:
            print(f"{megabits:10}  failed: {size.failure or size.refused}")
            continue
        reduction = next(part.seconds.value for part in size.parts if part.name == "all-reduce")
        expected = size.all_reduce_bytes * OVERHEAD * 8 / (megabits * 1e6)
        values = (f"{seconds * 1000:.1f} ms" for seconds in (size.step_seconds.value, reduction, expected))
        cells = itertools.chain([f"{megabits:10}"], values)
        print("  ".join(f"{cell:<9}" for cell in cells), f" {reduction / expected:.3f}", flush=True)


if __name__ == "__main__":
    main()
