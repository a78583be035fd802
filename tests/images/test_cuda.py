"""The cuda image on a machine without a GPU: how to provide one, which driver it finds, and what it contains.

The image is built only if one of its inputs changed since its tests last passed (`tests/inputs.py`).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.backends._cuda_libraries import LIBRARIES
from bench.version import __version__
from images.engine import RESTRICTED, check_complete, inspect, mounted, run, run_all, shell, variables

pytestmark = [
    pytest.mark.once,
    pytest.mark.needs("container-engine", "no-nvidia-gpu"),
    pytest.mark.group("cuda-image"),
    pytest.mark.timeout(3600),
]

STUB = """
int cuInit(unsigned flags) { return 34; }
int cuDriverGetVersion(int *version) { *version = 12050; return 0; }
int cuDeviceGetCount(int *count) { *count = 0; return 0; }
int cuDeviceGet(int *device, int index) { return 101; }
int cuDeviceGetName(char *name, int size, int device) { return 101; }
int cuDeviceTotalMem_v2(unsigned long *bytes, int device) { return 101; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { return 101; }
"""

T4 = """
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, "Tesla T4", size); return 0; }
int cuDeviceTotalMem_v2(unsigned long *bytes, int device) { *bytes = 16ul << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute == 75 ? 7 : 5; return 0; }
"""
"""A driver library with a T4. Attributes 75 and 76 are the two parts of its compute capability."""


def library(folder: Path, source: str) -> Path:
    """Compile a driver library from C in a new folder, and return its path."""
    folder.mkdir()
    (folder / "driver.c").write_text(source)
    path = folder / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, folder / "driver.c"], check=True)
    return path


@pytest.fixture
def cdi(tmp_path: Path) -> Iterator[None]:
    """A GPU in a CDI file, as from NVIDIA's Container Toolkit, with a test driver and device nodes without a device."""
    tmp_path.chmod(0o755)
    driver = library(tmp_path / "driver", T4)
    nodes = [{"path": f"/dev/{name}", "type": "c", "major": 1, "minor": 3} for name in ("nvidia0", "nvidiactl")]
    target = f"/usr/lib/x86_64-linux-gnu/{driver.name}"
    mount = {"hostPath": str(driver), "containerPath": target, "options": ["ro", "nosuid", "nodev", "bind"]}
    edits = {"deviceNodes": nodes, "mounts": [mount]}
    text = {
        "cdiVersion": "0.3.0", "kind": "nvidia.com/gpu", "devices": [{"name": "all", "containerEdits": edits}]
    }  # fmt: skip
    path = Path("/var/run/cdi/devbench-test.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(text))
    yield
    path.unlink()


def test_without_arguments_it_prints_help(cuda: str) -> None:
    completed = run(cuda)
    assert (completed.code, completed.err) == (0, "")
    assert "Usage: devbench" in completed.out


def test_the_size_and_labels_of_the_image_are_as_documented(cuda: str) -> None:
    data = inspect(cuda)
    assert 3e9 < data["Size"] <= 5.5e9
    assert data["Config"]["User"] == "1000"
    assert data["Config"]["Labels"]["org.opencontainers.image.version"] == __version__


@pytest.mark.parametrize("backend", [(), ("--backend", "cuda"), ("--backend", "cpu,cuda")])
def test_without_a_gpu_the_exit_code_is_3_and_the_message_names_the_flag(cuda: str, backend: tuple[str, ...]) -> None:
    completed = run(cuda, "run", "cifar", *backend)
    assert completed.code == 3
    for part in ("docker run --gpus all", "--device nvidia.com/gpu=all", "/dev/nvidia0"):
        assert part in completed.text()


def test_doctor_finds_all_cuda_libraries(cuda: str) -> None:
    completed = run(cuda, "doctor", "--backend", "cuda", "--json")
    checks = {check["name"]: check for check in completed.document["cuda"]}
    assert checks["TensorFlow with CUDA"]["status"] == "PASS"
    assert checks["CUDA libraries"]["status"] == "PASS"
    assert checks["driver library"]["status"] == "FAIL"
    assert completed.code == 3


def test_the_libraries_that_tensorflow_needs_load_and_ptxas_runs(cuda: str) -> None:
    script = """
import ctypes, pathlib, subprocess, sysconfig
nvidia = pathlib.Path(sysconfig.get_path("platlib"), "nvidia")
loaded = [ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL) for name in (
    "nvjitlink/lib/libnvJitLink.so.12", "cuda_runtime/lib/libcudart.so.12", "cublas/lib/libcublasLt.so.12",
    "cublas/lib/libcublas.so.12", "cufft/lib/libcufft.so.11", "cusparse/lib/libcusparse.so.12",
    "cusolver/lib/libcusolver.so.11", "cudnn/lib/libcudnn.so.9",
) for path in [nvidia / name]]
(ptxas,) = nvidia.rglob("bin/ptxas")
print(subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout)
assert list(nvidia.rglob("libdevice*.bc"))
"""
    assert "ptxas" in shell(cuda, f"/opt/devbench/bin/python - <<'E'\n{script}\nE")


def named_folders(library: Path) -> set[Path]:
    """Return the folders where a shared library lets the loader search for others (its RUNPATH)."""
    command = ["readelf", "--dynamic", "--wide", str(library)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (folders,) = re.findall(r"\(RUNPATH\).*\[(.*)\]", output)
    return {Path(folder.replace("$ORIGIN", str(library.parent))).resolve() for folder in folders.split(":")}


def test_the_folders_that_tensorflow_names_hold_all_libraries_but_cusolver(cuda: str) -> None:
    with mounted(cuda) as root:
        (packages,) = (root.resolve() / "opt/devbench/lib").glob("python3*/site-packages")
        folders = named_folders(packages / "tensorflow" / "libtensorflow_framework.so.2")
        named = {folder.parent.name: folder for folder in folders if folder.is_relative_to(packages / "nvidia")}
        assert {name for name, folder in named.items() if not list(folder.glob("lib*.so.*"))} == {"nvshmem"}
        assert {"cublas", "cuda_cupti", "cuda_runtime", "cudnn", "cufft", "cusparse", "nccl"} <= named.keys()
        absent = [name for name in LIBRARIES if not any((folder / name).exists() for folder in folders)]
        assert absent == ["libcusolver.so.11"], "if TensorFlow finds it, remove `_cuda_libraries.search_path`"


def test_tensorflow_loads_all_cuda_libraries_in_the_environment_of_a_worker(cuda: str) -> None:
    # Each of TensorFlow's functions returns a status, through a pointer. The status 1 means success.
    load = """
import ctypes, sysconfig
tensorflow = ctypes.CDLL(sysconfig.get_path("platlib") + "/tensorflow/libtensorflow_framework.so.2")
for name in ("CudaRuntime", "Cublas", "CublasLt", "Cufft", "Cusolver", "Cusparse", "Cudnn", "Cupti", "Nccl"):
    name = f"Get{name}DsoHandle"
    load = getattr(tensorflow, f"_ZN3tsl8internal9DsoLoader{len(name)}{name}Ev")
    load.argtypes, load.restype = [ctypes.c_void_p], ctypes.c_void_p
    result = (ctypes.c_uint64 * 8)()
    load(result)
    if result[0] != 1:
        print(name)
"""
    script = f"""
import os, subprocess, sys
from bench.backends import _cuda_libraries
for variables in ({{}}, _cuda_libraries.search_path()):
    environ = os.environ | variables
    print(subprocess.check_output([sys.executable, "-c", {load!r}], env=environ, text=True).split())
"""
    failed = shell(cuda, f"/opt/devbench/bin/python - <<'E'\n{script}\nE").splitlines()
    assert failed == ["['GetCusolverDsoHandle']", "[]"]


def test_the_image_requests_compute_and_leaves_the_choice_of_gpu_open(cuda: str) -> None:
    environ = variables(cuda)
    assert environ["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert "NVIDIA_VISIBLE_DEVICES" not in environ
    assert environ["CUDA_CACHE_PATH"] == "/cache"
    assert "/usr/local/nvidia/lib64" in environ["LD_LIBRARY_PATH"].split(":")
    assert "/usr/local/nvidia/bin" in environ["PATH"].split(":")
    with mounted(cuda) as root:
        assert (root / "cache").stat().st_mode & 0o7777 == 0o1777


def test_a_driver_that_gke_mounts_is_found_and_identified(cuda: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    library(tmp_path / "lib64", STUB)
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho found\n")
    smi.chmod(0o755)
    tmp_path.chmod(0o755)
    mount = f"--volume={tmp_path}:/usr/local/nvidia:ro"
    completed = run(cuda, "doctor", "--backend", "cuda", "--json", options=(*RESTRICTED, mount))
    checks = {check["name"]: check for check in completed.document["cuda"]}
    assert checks["driver library"]["status"] == "FAIL"
    assert "/usr/local/nvidia/lib64/libcuda.so.1" in checks["driver library"]["detail"]
    assert "stub" in checks["driver library"]["detail"]
    assert shell(cuda, "nvidia-smi", mount) == "found\n"


def test_a_gpu_from_cdi_is_found_with_its_driver(cuda: str, cdi: None) -> None:
    completed = run(cuda, "doctor", "--backend", "cuda", "--json", options=(*RESTRICTED, "--device=nvidia.com/gpu=all"))
    checks = {check["name"]: check for check in completed.document["cuda"]}
    assert {name: checks[name]["status"] for name in ("driver library", "driver version", "GPU")} == dict.fromkeys(
        ("driver library", "driver version", "GPU"), "PASS"
    )
    assert "/usr/lib/x86_64-linux-gnu/libcuda.so.1" in checks["driver library"]["detail"]
    assert checks["GPU"]["detail"].startswith("Tesla T4, compute capability 7.5, 16.0 GiB")
    assert not {"device nodes", "container"} & checks.keys()


def test_every_workload_measures_the_cpu_too(cuda: str) -> None:
    results = check_complete(run_all(cuda))
    assert results[0].environment.framework is not None
    assert results[0].environment.framework.build.is_cuda_build is True
    assert results[0].environment.host.deployment.image == "devbench:cuda"
