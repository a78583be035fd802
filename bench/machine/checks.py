"""Doctor's checks of the machine: what would make figures wrong, or stop a run, whatever the backend."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bench.machine import installed, limits, system
from bench.machine.environment import governor, load
from bench.machine.system import ROOT
from bench.model.check import Check, guarded

OLDEST_PYTHON, NEWEST_PYTHON = (3, 10), (3, 13)

# A worker with TensorFlow takes 0.5 to 1 GB before its data; below this a trial of two may not fit.
_MEMORY = 2 * 2**30
# Others' work on this share of the CPUs already shows in the spread of the figures.
_LOAD = 0.25
_STEAL = 0.01


def checks(output: Path, data_dir: Path | None, root: Path = ROOT) -> Iterator[Check]:
    """Doctor's lines for this machine; never raises.

    Args:
        output: folder that results are to be written to; it need not exist yet.
        data_dir: folder with full data sets, where one is set.
        root: the folder that stands for `/` where the system's files are read.
    """
    looks: tuple[tuple[str, Callable[[], Iterable[Check]]], ...] = (
        ("Python", _python),
        ("TensorFlow", _tensorflow),
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
    for name, look in looks:
        yield from guarded(name, look)


def _python() -> Iterator[Check]:
    version, here = platform.python_version(), sys.version_info[:2]
    if OLDEST_PYTHON <= here <= NEWEST_PYTHON:
        yield Check("Python", "PASS", f"{version}; the directml backend needs 3.10" if here > (3, 10) else version)
    else:
        oldest, newest = (".".join(map(str, bound)) for bound in (OLDEST_PYTHON, NEWEST_PYTHON))
        yield Check("Python", "FAIL", f"{version} is not supported", f"use Python {oldest} to {newest}")


def _tensorflow() -> Iterator[Check]:
    found = installed.tensorflow()
    if found:
        yield Check("TensorFlow", "PASS", " ".join(found))
    else:
        fix = "pip install devbench[cpu], devbench[cuda] or devbench[directml]"
        yield Check("TensorFlow", "FAIL", "no TensorFlow is installed", fix)


def _cpus(root: Path) -> Iterator[Check]:
    seen, quota, threads = limits.affinity(), limits.cpu_quota(root), limits.thread_count(root)
    if quota is None or quota >= seen:
        yield Check("CPUs", "PASS", f"{seen} usable of {os.cpu_count()}, no quota below that; {threads} threads")
        return
    text = f"a quota of {quota:g} on {seen} CPUs; {threads} thread{'s' if threads > 1 else ''}"
    if quota < 1:
        fix = "give the container at least one whole CPU"
        yield Check("CPUs", "WARN", f"{text}: the thread is stopped for a part of every period", fix)
    elif quota != threads:
        yield Check("CPUs", "WARN", f"{text}: the fraction is not used", "give the container whole CPUs")
    else:
        yield Check("CPUs", "PASS", text)


def _load() -> Iterator[Check]:
    now, cpus = load(), os.cpu_count() or 1
    if now is None:
        yield Check("load", "SKIP", "this system has no load average")
    elif now > _LOAD * cpus:
        fix = "stop what else is running, or wait for it (the average takes a minute to fall)"
        yield Check("load", "WARN", f"{now:.2f} on {cpus} CPUs: something else is running", fix)
    else:
        yield Check("load", "PASS", f"{now:.2f} on {cpus} CPUs")


def _clock(root: Path) -> Iterator[Check]:
    name = governor(root)
    if name is None:
        yield Check("CPU clock", "SKIP", "the governor can't be read, as in most virtual machines")
    elif name == "performance":
        yield Check("CPU clock", "PASS", "governor performance")
    else:
        fix = "sudo cpupower frequency-set -g performance"
        yield Check("CPU clock", "WARN", f"governor {name}: the clock may change while measuring", fix)


def _memory(root: Path) -> Iterator[Check]:
    free, limit = limits.memory_available(root), limits.memory_limit(root)
    text = f"{free / 2**30:.1f} GiB available" + (f" of a limit of {limit / 2**30:.1f} GiB" if limit else "")
    if free < _MEMORY:
        yield Check("memory", "WARN", f"{text}: two workers at once may not fit", "free memory, or raise the limit")
    else:
        yield Check("memory", "PASS", text)


def _throttling(root: Path) -> Iterator[Check]:
    held = limits.throttling(root)
    if held is None:
        yield Check("throttling", "SKIP", "this system does not count it")
    elif held.periods:
        text = f"the CPU quota has held this container back for {held.seconds:.1f} s in {held.periods} periods so far"
        yield Check("throttling", "WARN", text, "raise the CPU limit, or stop what else runs within it")
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
    text = f"{share:.1%} of the CPU time since the start went to other machines on this host"
    if share > _STEAL:
        yield Check("stolen time", "WARN", text, "use a dedicated or larger instance type")
    else:
        yield Check("stolen time", "PASS", text)


def _virtual(root: Path) -> Iterator[Check]:
    parts = {"hypervisor": system.hypervisor(root), "container": system.container(root), "WSL": system.wsl(root)}
    found = ", ".join(f"{name}: {value}" for name, value in parts.items() if value)
    if parts["hypervisor"]:
        found += "; neighbours on the host may disturb, which the intervals show"
    yield Check("virtual machine", "PASS", found or "none seen")


def _output(output: Path) -> Iterator[Check]:
    fix = "name a folder that can be written: --output DIR"
    if output.exists() and not output.is_dir():
        yield Check("output folder", "FAIL", f"{output} is not a folder", fix)
        return
    folder = next(parent for parent in (output, *output.absolute().parents) if parent.exists())
    try:
        # Really written: the permission bits say nothing of a read-only file system, a quota, or root.
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"devbench")
    except OSError as error:
        yield Check("output folder", "FAIL", f"{folder} can't be written: {error.strerror or error}", fix)
    else:
        yield Check("output folder", "PASS", str(output) if output.exists() else f"{output} can be made")


def _data(data_dir: Path | None) -> Iterator[Check]:
    if data_dir is None:
        yield Check("data folder", "SKIP", "none is set: data sets are looked for in Keras' cache")
        return
    try:
        entries = len(list(data_dir.iterdir()))
    except OSError as error:
        fix = "name the folder that holds the data sets: --data-dir DIR"
        yield Check("data folder", "FAIL", f"{data_dir} can't be read: {error.strerror or error}", fix)
    else:
        yield Check("data folder", "PASS", f"{data_dir} ({entries} entr{'y' if entries == 1 else 'ies'})")
