"""Doctor's checks of the machine: what would stop a run, or distort its figures, on any backend."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from bench.machine import installed, limits, system
from bench.machine.environment import governor, load_average
from bench.machine.system import ROOT
from bench.model.check import Check, run_check
from bench.version import install_command

OLDEST_PYTHON, NEWEST_PYTHON = (3, 10), (3, 13)

# A worker needs 0.5 to 1 GB for TensorFlow alone. Below this, two workers may not fit.
_MIN_MEMORY = 2 * 2**30
# Other work on this share of the CPUs already widens the intervals.
_MAX_LOAD = 0.25
_MAX_STEAL = 0.01


def checks(output: Path, data_dir: Path | None, root: Path = ROOT, *, backends: Sequence[str]) -> Iterator[Check]:
    """Yield doctor's checks of this machine. Never raises.

    Args:
        output: folder for the results. It may not exist yet.
        data_dir: folder with full data sets, or None.
        root: folder to use as `/` when reading system files.
        backends: the backends whose extras of devbench install TensorFlow.
    """
    parts: tuple[tuple[str, Callable[[], Iterable[Check]]], ...] = (
        ("Python", _python),
        ("TensorFlow", lambda: _tensorflow(backends)),
        ("CPUs", lambda: _cpus(root)),
        ("load", _load),
        ("CPU clock", lambda: _clock(root)),
        ("memory", lambda: _memory(root)),
        ("throttling", lambda: _throttling(root)),
        ("stolen time", _steal),
        ("virtual machine", lambda: _virtual(root)),
        ("output folder", lambda: _output(output)),
        ("data folder", lambda: _data(data_dir)),
    )
    for name, check in parts:
        yield from run_check(name, check)


def _python() -> Iterator[Check]:
    version = platform.python_version()
    if OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        yield Check("Python", "PASS", version)
    else:
        oldest, newest = (".".join(map(str, bound)) for bound in (OLDEST_PYTHON, NEWEST_PYTHON))
        yield Check("Python", "FAIL", f"{version} is not supported", f"Use Python {oldest} to {newest}.")


def _tensorflow(backends: Sequence[str]) -> Iterator[Check]:
    distribution = installed.tensorflow()
    if distribution:
        yield Check("TensorFlow", "PASS", " ".join(distribution))
    else:
        fix = "In a checkout of devbench, run one of: " + ", ".join(map(install_command, backends))
        yield Check("TensorFlow", "FAIL", "TensorFlow is not installed", fix)


def _cpus(root: Path) -> Iterator[Check]:
    cpus, quota, threads = limits.affinity(), limits.cpu_quota(root), limits.thread_count(root)
    using = f"devbench uses {threads} thread{'s' if threads > 1 else ''}"
    if quota is None or quota >= cpus:
        yield Check("CPUs", "PASS", f"{cpus} of {os.cpu_count()} usable, no CPU quota; {using}")
        return
    text = f"CPU quota of {quota:g} on {cpus} CPUs; {using}"
    if quota < 1:
        yield Check("CPUs", "WARN", f"{text}, which the quota stops for a part of every period", limits.WHOLE_CPUS)
    elif quota != threads:
        yield Check("CPUs", "WARN", f"{text}, so a fraction of a CPU stays unused", limits.WHOLE_CPUS)
    else:
        yield Check("CPUs", "PASS", text)


def _load() -> Iterator[Check]:
    now, cpus = load_average(), os.cpu_count() or 1
    if now is None:
        yield Check("load", "SKIP", "this system does not report a load average")
    elif now > _MAX_LOAD * cpus:
        fix = "Close other programs, or wait for them to end. The average falls within a minute."
        yield Check("load", "WARN", f"load average {now:.2f} on {cpus} CPUs: other programs are running", fix)
    else:
        yield Check("load", "PASS", f"load average {now:.2f} on {cpus} CPUs")


def _clock(root: Path) -> Iterator[Check]:
    name = governor(root)
    if name is None:
        yield Check("CPU clock", "SKIP", "the frequency governor cannot be read, as in most virtual machines")
    elif name == "performance":
        yield Check("CPU clock", "PASS", "frequency governor: performance")
    else:
        fix = "sudo cpupower frequency-set -g performance"
        yield Check("CPU clock", "WARN", f"frequency governor: {name}. The clock may change during measurements", fix)


def _memory(root: Path) -> Iterator[Check]:
    free, limit = limits.memory_available(root), limits.memory_limit(root)
    text = f"{free / 2**30:.1f} GiB available" + (f" of a limit of {limit / 2**30:.1f} GiB" if limit else "")
    if free < _MIN_MEMORY:
        yield Check("memory", "WARN", f"{text}: two workers may not fit", "Free memory, or raise the limit.")
    else:
        yield Check("memory", "PASS", text)


def _throttling(root: Path) -> Iterator[Check]:
    throttled = limits.throttling(root)
    if throttled is None:
        yield Check("throttling", "SKIP", "this system does not count it")
    elif throttled.periods:
        text = (
            f"the CPU quota has throttled threads for {throttled.seconds:.1f} s in {throttled.periods} periods so far"
        )
        yield Check("throttling", "WARN", text, limits.WHOLE_CPUS)
    else:
        yield Check("throttling", "PASS", "none so far")


def _steal() -> Iterator[Check]:
    import psutil

    times = psutil.cpu_times()
    steal = getattr(times, "steal", None)
    if steal is None:
        yield Check("stolen time", "SKIP", "this system does not count it")
        return
    share = steal / (sum(times) or 1.0)
    text = f"other virtual machines took {share:.1%} of the CPU time since this one started"
    if share > _MAX_STEAL:
        yield Check("stolen time", "WARN", text, "Use a dedicated or larger instance type.")
    else:
        yield Check("stolen time", "PASS", text)


def _virtual(root: Path) -> Iterator[Check]:
    parts = {"hypervisor": system.hypervisor(root), "container": system.container(root), "WSL": system.wsl(root)}
    text = ", ".join(f"{name}: {value}" for name, value in parts.items() if value)
    if parts["hypervisor"]:
        text += ". Other virtual machines on the host may disturb measurements; the intervals show it"
    yield Check("virtual machine", "PASS", text or "none detected")


def _output(output: Path) -> Iterator[Check]:
    fix = "Choose a writable folder: --output DIR"
    folder = output
    try:
        if output.exists() and not output.is_dir():
            yield Check("output folder", "FAIL", f"{output} is not a folder", fix)
            return
        folder = next(parent for parent in (output, *output.absolute().parents) if parent.exists())
        # Permission bits do not show a read-only file system, a quota or a mapped user, so write a file.
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"devbench")
    except OSError as error:
        yield Check("output folder", "FAIL", f"{folder} is not writable: {error.strerror or error}", fix)
    else:
        yield Check("output folder", "PASS", str(output) if folder == output else f"{output} (will be created)")


def _data(data_dir: Path | None) -> Iterator[Check]:
    if data_dir is None:
        yield Check("data folder", "SKIP", "not set; data sets are searched in Keras' cache")
        return
    try:
        entries = len(list(data_dir.iterdir()))
    except OSError as error:
        fix = "Choose the folder that holds the data sets: --data-dir DIR"
        yield Check("data folder", "FAIL", f"{data_dir} cannot be read: {error.strerror or error}", fix)
    else:
        yield Check("data folder", "PASS", f"{data_dir} ({entries} entr{'y' if entries == 1 else 'ies'})")
