"""Queries a driver in a separate process, because a broken driver may crash or hang its caller.

As a script, this file needs only the standard library and prints one JSON document:

    python _probe.py load LIBRARY…    a `LoadedLibraries`
    python _probe.py cuda LIBRARY     a `CudaDriver`

`query_libraries` and `query_cuda` run this file as a script. A worker that has already loaded the driver calls `cuda`
directly.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

# Attribute numbers of cuDeviceGetAttribute (CUdevice_attribute in cuda.h).
_MAJOR, _MINOR = 75, 76


class QueryFailed(Exception):
    """The separate process gave no answer. The message says how it ended."""


@dataclass(frozen=True)
class LoadedLibraries:
    """Whether the loader finds shared libraries.

    Attributes:
        errors: the loader's error for each library; None if it loads.
    """

    errors: dict[str, str | None]


@dataclass(frozen=True)
class CudaGpu:
    """A GPU, as the CUDA driver reports it.

    Attributes:
        name: its model.
        capability: its compute capability, such as (7, 5).
        memory: its memory in bytes.
    """

    name: str
    capability: tuple[int, int]
    memory: int


@dataclass(frozen=True)
class CudaDriver:
    """What the CUDA driver reports.

    Attributes:
        path: where the loader found the library; None if it is not known.
        error: why the library cannot be used; "" if it can.
        version: the CUDA version that the driver supports (12040 for 12.4); None if it does not say.
        status: the result of cuInit (0 for success); None if there is an error.
        status_name: the name of the status, such as "CUDA_ERROR_NO_DEVICE".
        gpus: the GPUs, by their numbers.
    """

    path: str | None = None
    error: str = ""
    version: int | None = None
    status: int | None = None
    status_name: str = ""
    gpus: list[CudaGpu] = field(default_factory=list)


def load(names: list[str]) -> LoadedLibraries:
    """Try to load shared libraries."""
    errors: dict[str, str | None] = {}
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            errors[name] = str(error)
        else:
            errors[name] = None
    return LoadedLibraries(errors)


def cuda(library: str) -> CudaDriver:
    """Return what the CUDA driver reports.

    Args:
        library: name or path of the driver's library.
    """
    path = None
    try:
        driver = ctypes.CDLL(library)
        path = _path(library)
        start, get_version = driver.cuInit, driver.cuDriverGetVersion
        count_devices, get_device = driver.cuDeviceGetCount, driver.cuDeviceGet
        get_name, get_attribute = driver.cuDeviceGetName, driver.cuDeviceGetAttribute
        get_memory = driver.cuDeviceTotalMem_v2
    except OSError as error:
        return CudaDriver(path, str(error))
    except AttributeError as error:
        return CudaDriver(path, f"not a CUDA driver: {error}")
    number = ctypes.c_int()
    version = number.value if get_version(ctypes.byref(number)) == 0 else None
    status = start(0)
    answer = CudaDriver(path, "", version, status, _error_name(driver, status))
    if status != 0 or count_devices(ctypes.byref(number)) != 0:
        return answer
    for index in range(number.value):
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t()
        get_device(ctypes.byref(device), index)
        get_name(name, len(name), device)
        get_attribute(ctypes.byref(major), _MAJOR, device)
        get_attribute(ctypes.byref(minor), _MINOR, device)
        get_memory(ctypes.byref(memory), device)
        text = name.value.decode(errors="replace")
        answer.gpus.append(CudaGpu(text, (major.value, minor.value), memory.value))
    return answer


def _error_name(driver: Any, status: int) -> str:
    """Return the name of a status, such as "CUDA_ERROR_NO_DEVICE"."""
    text = ctypes.c_char_p()
    try:
        if driver.cuGetErrorName(status, ctypes.byref(text)) == 0 and text.value:
            return text.value.decode(errors="replace")
    except AttributeError:
        pass
    return "CUDA_SUCCESS" if status == 0 else f"error {status}"


def _path(library: str) -> str | None:
    """Return the path of a loaded library from this process's memory map; None if the system has no such map."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    stem = Path(library).name.split(".so")[0]
    paths = (line.split(maxsplit=5)[-1] for line in lines if "/" in line)
    return next((path for path in paths if Path(path).name.startswith(stem)), None)


def query_libraries(*names: str, timeout: float) -> LoadedLibraries:
    """Try to load shared libraries in a separate process.

    Args:
        names: names or paths of the libraries.
        timeout: seconds to wait for the answer.

    Raises:
        QueryFailed: the process gave no answer.
    """
    return LoadedLibraries(**_query("load", *names, timeout=timeout))


def query_cuda(library: str, timeout: float, environ: Mapping[str, str] | None = None) -> CudaDriver:
    """Return what the CUDA driver reports to a separate process.

    Args:
        library: name or path of the driver's library.
        timeout: seconds to wait for the answer.
        environ: the environment variables of the process; None for those of this one.

    Raises:
        QueryFailed: the process gave no answer.
    """
    answer = _query("cuda", library, timeout=timeout, environ=environ)
    gpus = [CudaGpu(gpu["name"], tuple(gpu["capability"]), gpu["memory"]) for gpu in answer.pop("gpus")]
    return CudaDriver(**answer, gpus=gpus)


def _query(
    what: Literal["load", "cuda"], *libraries: str, timeout: float, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run this file as a script in a separate process, and return the document that it prints."""
    command = [sys.executable, "-I", str(Path(__file__).resolve()), what, *libraries]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=timeout, check=False, env=environ
        )
    except subprocess.TimeoutExpired:
        raise QueryFailed(f"no answer within {timeout:g} s") from None
    except OSError as error:  # such as a limit of processes
        raise QueryFailed(f"the query cannot start: {error.strerror}") from None
    try:
        answer: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (process.stderr.strip().splitlines() or ["no output"])[-1]
        end = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
        raise QueryFailed(f"the query ended with {end} ({last})") from None
    return answer


if __name__ == "__main__":
    print(json.dumps(asdict(cuda(sys.argv[2]) if sys.argv[1] == "cuda" else load(sys.argv[2:]))))
