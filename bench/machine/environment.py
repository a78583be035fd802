"""Reads the environment of a run: everything that a reader needs to judge a figure or to reproduce it.

The parent calls `host`, which imports no TensorFlow. The worker calls `framework`. A value that cannot be read is None.
It is never guessed.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from fnmatch import filter as matching
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.machine import cgroup, installed, limits, system
from bench.machine.system import ROOT, read
from bench.machine.urls import without_user
from bench.model.environment import Cpu, Deployment, Host, Memory, Python, System
from bench.model.framework import Framework, ThreadPools
from bench.version import __version__

VARIABLE_PREFIXES = ("TF_", "XLA_", "OMP_", "MKL_", "KMP_", "KERAS_")
"""Environment variables with these prefixes change what TensorFlow does on any backend."""

PACKAGES = ("protobuf", "h5py", "ml-dtypes", "keras")
"""Distributions that TensorFlow computes with on any backend."""

_FOREIGN = ("TF_CLI_", "TF_VAR_", "TF_HTTP_")  # Terraform's, which may hold secrets
_SECRET = re.compile(
    r"SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|(^|_)(PASS|PWD)(_|$)|CREDENTIAL|COOKIE|AUTH|(^|_)(API|ACCESS|PRIVATE)?_?KEY(_|$)"
)

DEPLOYMENT = tuple(name for name in Deployment.model_fields if name != "image_id")
"""Fields that an image or the chart sets by an environment variable: `pool` by DEVBENCH_POOL, and so on."""


def variables(environ: Mapping[str, str], prefixes: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the environment variables that change what TensorFlow or its libraries do, sorted by name.

    A variable whose name suggests a secret is left out. User and password are removed from URLs.

    Args:
        environ: the environment variables to read.
        prefixes: prefixes besides `VARIABLE_PREFIXES`, such as those of the backends.
    """
    return {
        name: without_user(value)
        for name, value in sorted(environ.items())
        if name.upper().startswith((*VARIABLE_PREFIXES, *prefixes))
        and not name.upper().startswith(_FOREIGN)
        and not _SECRET.search(name.upper())
    }


def load_average() -> float | None:
    """Return the load average of the last minute. None on Windows, which has none."""
    if sys.platform == "win32":
        return None
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def host(root: Path = ROOT, environ: Mapping[str, str] = os.environ, prefixes: tuple[str, ...] = ()) -> Host:
    """Return the machine, the system and the interpreter.

    Args:
        root: the folder that is read as `/`.
        environ: the environment variables to read.
        prefixes: prefixes of variables to record besides `VARIABLE_PREFIXES`.
    """
    import psutil

    return Host(
        devbench=__version__,
        python=Python(
            version=platform.python_version(),
            implementation=platform.python_implementation(),
            build=" ".join(platform.python_build()),
            compiler=platform.python_compiler(),
        ),
        cpu=Cpu(
            model=system.cpu_model(root),
            architecture=platform.machine(),
            features=system.cpu_features(root),
            physical_cores=psutil.cpu_count(logical=False),
            logical_cores=psutil.cpu_count(logical=True),
            affinity=limits.affinity(),
            cpuset=limits.cpuset(),
            limit=limits.cpu_limit(root),
            quota=limits.cpu_quota(root),
            governor=governor(root),
            max_frequency_hz=_max_frequency(root),
            numa_nodes=len(_ids(read(root / "sys/devices/system/node/online"))) or None,
            smt={"0": False, "1": True}.get(read(root / "sys/devices/system/cpu/smt/active") or ""),
        ),
        memory=Memory(
            total=int(psutil.virtual_memory().total),
            available=limits.memory_available(root),
            limit=limits.memory_limit(root),
            transparent_hugepages=_bracketed_word(read(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        ),
        system=System(
            os=_os_name(root),
            kernel=platform.release(),
            cgroup=cgroup.version(root),
            hypervisor=system.hypervisor(root),
            container=system.container(root, environ),
            wsl=system.wsl(root),
            load=load_average(),
        ),
        deployment=deployment(root, environ),
        variables=variables(environ, prefixes),
    )


def deployment(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> Deployment:
    """Return the image and the place in a cluster.

    Args:
        root: the folder that is read as `/`.
        environ: the environment variables to read.
    """
    fields = {name: environ.get(f"DEVBENCH_{name.upper()}") or None for name in DEPLOYMENT}
    image_id = re.search(r'^imageid="(.+)"', read(root / "run/.containerenv") or "", re.MULTILINE)
    return Deployment(**fields, image_id=image_id[1] if image_id else None)


def governor(root: Path = ROOT) -> str | None:
    """Return the frequency governor, such as "performance". If CPUs differ, "+" joins their governors."""
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return "+".join(sorted({text for text in map(read, files) if text})) or None


def _max_frequency(root: Path) -> float | None:
    text = read(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    return int(text) * 1e3 if text and text.isdigit() else None


def _ids(text: str | None) -> list[int]:
    """Return the numbers in a list of the kernel, such as "0-3,8"."""
    numbers: list[int] = []
    for part in (text or "").split(","):
        low, _, high = part.partition("-")
        if low.isdigit():
            numbers += range(int(low), int(high or low) + 1)
    return numbers


def _bracketed_word(text: str | None) -> str | None:
    """Return the word in brackets, as in "always [madvise] never"."""
    match = re.search(r"\[(\w+)\]", text or "")
    return match[1] if match else None


def _os_name(root: Path) -> str:
    """Return name and version, such as "Debian GNU/Linux 12 (bookworm)" or "macOS 15.1"."""
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    if sys.platform == "win32":
        return f"Windows {platform.release()} {platform.version()}"
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', read(root / "etc/os-release") or "", re.MULTILINE)
    return match[1] if match else platform.system()


def framework(tf: Any, packages: tuple[str, ...] = ()) -> Framework:
    """Return what TensorFlow is in this process. Call it after TensorFlow is configured.

    Args:
        tf: the imported TensorFlow.
        packages: distributions to record besides `PACKAGES`, as patterns such as "nvidia-*-cu[0-9]*".
    """
    return Framework(
        tensorflow=tf.__version__,
        git_version=tf.version.GIT_VERSION,
        distribution=installed.tensorflow(),
        compiler=tf.version.COMPILER_VERSION,
        xla_flags=os.environ.get("XLA_FLAGS"),
        tf_xla_flags=os.environ.get("TF_XLA_FLAGS"),
        build=installed.build_of(tf.sysconfig.get_build_info()),
        keras=installed.keras(tf),
        numpy=installed.version("numpy"),
        packages=_packages(packages),
        onednn=onednn(tf),
        tf32=bool(tf.config.experimental.tensor_float_32_execution_enabled()),
        jit=tf.config.optimizer.get_jit() or None,
        cpu_features=system.cpu_features(),
        threads=ThreadPools(
            intra=tf.config.threading.get_intra_op_parallelism_threads(),
            inter=tf.config.threading.get_inter_op_parallelism_threads(),
        ),
    )


def onednn(tf: Any) -> bool | None:
    """Return whether oneDNN's operations are on. None if the build decides and does not say.

    In newer releases `IsMklEnabled` takes the variable and the CPU into account. In older ones it only says how
    TensorFlow was built, and the variable alone decides.
    """
    try:
        from tensorflow.python.util import _pywrap_util_port as port

        on = bool(port.IsMklEnabled())
    except (ImportError, AttributeError):
        on = False
    if on or tuple(int(part) for part in tf.__version__.split(".")[:2]) >= (2, 16):
        return on
    variable = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "").lower()
    return {"1": True, "true": True, "0": False, "false": False}.get(variable)


def _packages(patterns: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of the installed distributions that match `PACKAGES` or a pattern, by name."""
    distributions = (distribution.metadata["Name"] or "" for distribution in metadata.distributions())
    installed_names = {re.sub(r"[-_.]+", "-", name).lower() for name in distributions}
    names = [name for pattern in (*PACKAGES, *patterns) for name in sorted(matching(installed_names, pattern))]
    return {name: version for name in names if (version := installed.version(name))}
