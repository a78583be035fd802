"""Queries a driver in a separate process, because a broken driver may crash or hang its caller.

As a script, this file needs only the standard library and prints one JSON document:

    python _probe.py load LIBRARY…    whether the loader finds these shared libraries, with its error if not
    python _probe.py cuda LIBRARY     what the CUDA driver reports

`query` runs this file as a script. A worker that has already loaded the driver calls `cuda` directly.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# Attribute numbers of cuDeviceGetAttribute (CUdevice_attribute in cuda.h).
_MAJOR, _MINOR = 75, 76


def load(names: list[str]) -> dict[str, str | None]:
    """Return the loader's error for each shared library, or None if it loads."""
    errors: dict[str, str | None] = {}
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            errors[name] = str(error)
        else:
            errors[name] = None
    return errors


def cuda(library: str) -> dict[str, Any]:
    """Return what the CUDA driver reports.

    Args:
        library: name or path of the driver's library.

    Returns:
        `path`, where the loader found the library, if known. Then either `error`, or all of these: `driver`, the CUDA
        version that the driver supports (12040 for 12.4); `status`, the result of cuInit (0 for success), and its
        `name`; and `devices`, each with `name`, `capability` such as [7, 5] and `memory` in bytes.
    """
    answer: dict[str, Any] = {}
    try:
        driver = ctypes.CDLL(library)
        answer["path"] = _path(library)
        start, get_version = driver.cuInit, driver.cuDriverGetVersion
        count_devices, get_device = driver.cuDeviceGetCount, driver.cuDeviceGet
        get_name, get_attribute = driver.cuDeviceGetName, driver.cuDeviceGetAttribute
        get_memory = driver.cuDeviceTotalMem_v2
    except OSError as error:
        return {**answer, "error": str(error)}
    except AttributeError as error:
        return {**answer, "error": f"not a CUDA driver: {error}"}
    number = ctypes.c_int()
    if get_version(ctypes.byref(number)) == 0:
        answer["driver"] = number.value
    status = start(0)
    answer.update(status=status, name=_error_name(driver, status), devices=[])
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
        answer["devices"].append({"name": text, "capability": [major.value, minor.value], "memory": memory.value})
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


def query(*arguments: str, timeout: float) -> dict[str, Any]:
    """Run this file as a script in a separate process.

    Args:
        arguments: as listed in the module's docstring.
        timeout: seconds to wait for the answer.

    Returns:
        The document that it printed; or `error`, which says how the process ended, and `hung` or `crashed` set.
    """
    command = [sys.executable, "-I", str(Path(__file__).resolve()), *arguments]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {timeout:g} s", "hung": True}
    try:
        answer: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (process.stderr.strip().splitlines() or ["no output"])[-1]
        end = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
        return {"error": f"the query ended with {end} ({last})", "crashed": True}
    return answer


if __name__ == "__main__":
    print(json.dumps(cuda(sys.argv[2]) if sys.argv[1] == "cuda" else load(sys.argv[2:])))
