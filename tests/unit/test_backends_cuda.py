"""The checks of the cuda backend with drivers that are absent, broken, too old, or fine.

These tests need no GPU. The C compiler builds a small stand-in for the driver's library, with NVIDIA's functions, and
the real loader loads it. The variable `DRIVER` selects its behaviour. The tests write the files that
identify a CUDA build of TensorFlow.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.backends import _cuda_cards, _cuda_checks, cuda
from bench.errors import DeviceAbsent
from bench.machine import installed
from bench.model.check import Check
from bench.model.spec import Data, Env, Loop, Spec, Threads
from bench.worker.start_up import slow_first_step

pytestmark = pytest.mark.needs("linux")

SOURCE = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int is(const char *what) { const char *v = getenv("DRIVER"); return v && !strcmp(v, what); }
static int chosen(const char *gpu) { const char *v = getenv("CUDA_VISIBLE_DEVICES"); return v && !strcmp(v, gpu); }
int cuInit(unsigned flags) {
    if (chosen("7")) return 100;
    if (is("hang")) pause();
    if (is("crash")) raise(SIGSEGV);
    return is("stub") ? 34 : is("no-device") ? 100 : 0;
}
int cuDriverGetVersion(int *v) { *v = is("old") ? 11040 : 12040; return 0; }
int cuDeviceGetCount(int *n) { *n = is("none") ? 0 : 2; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetName(char *name, int size, int device) {
    const char *order = getenv("CUDA_DEVICE_ORDER");  /* the second one on the bus is the faster one */
    int by_bus = order && !strcmp(order, "PCI_BUS_ID");
    strncpy(name, device == by_bus ? "Second" : "First", size); return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)16 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (attribute == 75) *value = is("blackwell") ? 12 : is("hopper") ? 9 : is("pascal") ? 6 : is("kepler") ? 3 : 7;
    if (attribute == 76) *value = is("blackwell") || is("hopper") || is("volta") ? 0 : is("pascal") ? 1 : 5;
    return 0;
}
int cuGetErrorName(int error, const char **name) {
    *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN"; return 0;
}
"""

BUILD = """import collections
build_info = collections.OrderedDict([('cuda_compute_capabilities', ['compute_90', 'sm_60', 'sm_70', 'sm_80']),
    ('cuda_version', '12.5.1'), ('cudnn_version', '9'), ('is_cuda_build', True)])
"""

RUN = """
from bench.backends import cuda
from bench.errors import DeviceAbsent
for check in cuda.checks():
    print(check.status, check.name, check.detail, check.fix, sep=" | ")
try:
    cuda.require()
except DeviceAbsent as error:
    print("ABSENT", error.message)
else:
    print("PRESENT")
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a stand-in for libcuda.so.1."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler to make a stand-in for the driver; to get it: apt-get install gcc libc6-dev")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(SOURCE, encoding="utf-8")
    command = [compiler, "-shared", "-fPIC", "-o", str(folder / _cuda_checks.LIBRARY), str(folder / "driver.c")]
    subprocess.run(command, check=True, capture_output=True)
    return folder


Behave = Callable[[str], None]


@pytest.fixture
def behave(driver: Path, monkeypatch: pytest.MonkeyPatch) -> Behave:
    """Put the stand-in on the loader's path and choose how it behaves."""

    def set_up(behaviour: str) -> None:
        monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
        monkeypatch.setenv("DRIVER", behaviour)

    return set_up


@pytest.fixture(autouse=True)
def _nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("NVIDIA_VISIBLE_DEVICES", raising=False)


def by_name(root: Path, timeout: float = 10.0) -> dict[str, Check]:
    return {check.name: check for check in _cuda_checks.checks(root, timeout)}


@pytest.mark.needs("no-nvidia-gpu", "linux", "no-directml-adapter")
def test_without_a_gpu_each_missing_part_is_named_with_its_fix() -> None:
    with pytest.raises(DeviceAbsent) as caught:
        cuda.require()
    assert caught.value.exit_code == 3
    library, nodes = "libcuda.so.1 not found", "/dev/nvidia0 and /dev/nvidiactl do not exist"
    for part in ("built without CUDA", "nvidia-* packages", library, nodes):
        assert part in caught.value.message
    assert "pip install '.[cuda]'" in caught.value.hint
    assert _cuda_checks.OLDEST_DRIVER in caught.value.hint


def test_a_docker_container_gets_the_option_for_docker_and_podman(tmp_path: Path) -> None:
    checks = by_name(write(tmp_path, {".dockerenv": ""}))
    assert "docker" in checks["container"].detail
    assert "docker run --gpus all" in checks["container"].fix
    assert "podman run --device nvidia.com/gpu=all" in checks["container"].fix


def test_a_pod_gets_the_resource_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert "nvidia.com/gpu: 1" in by_name(tmp_path)["container"].fix


def test_wsl_gets_its_own_device_node_library_and_driver(tmp_path: Path) -> None:
    root = write(tmp_path, {"proc/sys/kernel/osrelease": "5.15.1-microsoft-standard-WSL2"})
    check = by_name(root)["device nodes"]
    assert "/dev/dxg" in check.detail
    assert "/usr/lib/wsl/lib/libcuda.so.1" in check.detail
    assert "on Windows" in check.fix


def test_existing_device_nodes_pass(tmp_path: Path) -> None:
    checks = by_name(write(tmp_path, {"dev/nvidia0": "", "dev/nvidiactl": "", ".dockerenv": ""}))
    assert checks["device nodes"].status == "PASS"
    assert "container" not in checks


@pytest.mark.parametrize("value", ["", "-1", "-1,0"])
def test_a_variable_that_hides_every_gpu_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    check = by_name(tmp_path)["visible GPUs"]
    assert check.status == "FAIL"
    assert f"CUDA_VISIBLE_DEVICES='{value}'" in check.detail
    assert check.fix == "unset CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize("value", ["0", "1,0", "GPU-abc"])
def test_a_variable_that_selects_a_gpu_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert "visible GPUs" not in by_name(tmp_path)


def test_a_variable_that_selects_an_absent_gpu_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behave: Behave
) -> None:
    behave("")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    found = by_name(tmp_path)
    check = found["visible GPUs"]
    assert check.status == "FAIL"
    assert check.detail == "CUDA_VISIBLE_DEVICES='7' names none of the GPUs (0: First, 1: Second)"
    assert check.fix == "export CUDA_VISIBLE_DEVICES=0"
    assert not {"driver library", "device nodes", "GPU"} & found.keys()


def test_a_library_that_is_not_a_driver_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import _ctypes

    shutil.copy(_ctypes.__file__, tmp_path / _cuda_checks.LIBRARY)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    check = by_name(tmp_path)["driver library"]
    assert check.status == "FAIL"
    assert str(tmp_path / _cuda_checks.LIBRARY) in check.detail
    assert "not a CUDA driver" in check.detail
    assert "LD_LIBRARY_PATH" in check.fix


def test_a_library_that_does_not_load_is_named_with_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {_cuda_checks.LIBRARY: "no library at all"})
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    check = by_name(tmp_path)["driver library"]
    assert check.status == "FAIL"
    assert f"{tmp_path / _cuda_checks.LIBRARY} exists but does not load" in check.detail


def test_the_toolkits_stub_is_recognized(tmp_path: Path, behave: Behave) -> None:
    behave("stub")
    check = by_name(tmp_path)["driver library"]
    assert check.status == "FAIL"
    assert "stub of the CUDA toolkit" in check.detail


def test_a_driver_without_a_device_reports_its_error_and_the_device_nodes_are_checked(
    tmp_path: Path, behave: Behave
) -> None:
    behave("no-device")
    checks = by_name(tmp_path)
    assert "CUDA_ERROR_NO_DEVICE" in checks["driver library"].detail
    assert checks["device nodes"].status == "FAIL"


def test_a_driver_that_crashes_fails_its_check_but_does_not_end_devbench(tmp_path: Path, behave: Behave) -> None:
    behave("crash")
    check = by_name(tmp_path)["driver library"]
    assert check.status == "FAIL"
    assert "signal 11" in check.detail


def test_a_driver_that_hangs_fails_after_the_timeout(tmp_path: Path, behave: Behave) -> None:
    behave("hang")
    check = by_name(tmp_path, timeout=1.0)["driver library"]
    assert check.status == "FAIL"
    assert "no answer within 1 s" in check.detail
    assert "nvidia-smi" in check.fix


def test_a_driver_too_old_for_cuda_12_fails_with_the_required_version(tmp_path: Path, behave: Behave) -> None:
    behave("old")
    check = by_name(tmp_path)["driver version"]
    assert check.status == "FAIL"
    assert "CUDA 11.4" in check.detail
    assert _cuda_checks.OLDEST_DRIVER in check.fix


def test_a_driver_that_reports_no_gpu_fails(tmp_path: Path, behave: Behave) -> None:
    behave("none")
    assert by_name(tmp_path)["GPU"].status == "FAIL"


def test_the_first_gpu_is_shown_with_its_capability_and_memory(tmp_path: Path, behave: Behave) -> None:
    behave("fine")
    nodes = {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22"}
    checks = by_name(write(tmp_path, nodes))
    assert checks["driver library"].status == "PASS"
    assert checks["driver version"] == Check("driver version", "PASS", "driver 550.54.14, CUDA 12.4")
    assert checks["GPU"].detail == "First, compute capability 7.5, 16.0 GiB (and 1 more, unused)"


def test_doctor_looks_at_the_gpu_that_a_worker_uses(
    tmp_path: Path, behave: Behave, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave("fine")
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    assert by_name(tmp_path)["GPU"].detail.startswith("First,")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    assert by_name(tmp_path)["GPU"].detail.startswith("Second,")


@pytest.mark.parametrize(
    ("capability", "targets", "expected"),
    [
        ((7, 5), ["sm_60", "sm_70", "compute_90"], "code"),
        ((9, 0), ["sm_60", "sm_89", "compute_90"], "code"),
        ((10, 0), ["sm_89", "compute_90"], "ptx"),
        ((8, 6), ["sm_89", "sm_80"], "code"),
        ((8, 0), ["sm_89"], "none"),
        ((3, 7), ["sm_60", "compute_90"], "none"),
        ((12, 0), ["sm_120"], "code"),
        ((9, 0), ["sm_90a"], "code"),
        ((10, 0), ["sm_90a", "compute_90a"], "none"),
        ((10, 3), ["sm_100f"], "code"),
        ((10, 3), ["sm_100a", "compute_100a"], "none"),
        ((12, 0), ["sm_100f", "compute_100f"], "none"),
        ((10, 3), ["compute_100f"], "ptx"),
        ((9, 0), ["gfx906", "sm_x"], "none"),
        ((7, 5), [], "unknown"),
    ],
)
def test_machine_code_supports_its_own_generation_and_ptx_all_later_ones(
    capability: tuple[int, int], targets: list[str], expected: str
) -> None:
    assert _cuda_cards.build_support(capability, targets) == expected


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((12, 0), "no machine code for this GPU (12.0)"),
        ((8, 6), ""),
    ],
)
def test_a_worker_reports_a_slow_first_start_only_if_code_has_to_be_compiled(
    capability: tuple[int, int], expected: str
) -> None:
    config = SimpleNamespace(  # what TensorFlow reports about a GPU
        list_physical_devices=lambda kind: ["GPU:0"],
        experimental=SimpleNamespace(get_device_details=lambda device: {"compute_capability": capability}),
    )
    built = {"cuda_compute_capabilities": ["sm_80", "compute_90"]}
    tf = SimpleNamespace(config=config, sysconfig=SimpleNamespace(get_build_info=lambda: built))
    reason = cuda.slow_start(tf)
    assert expected in reason
    assert bool(reason) == bool(expected)


@pytest.mark.parametrize(
    ("loop", "xla", "expected"),
    [
        ("as-written", None, True),  # Keras' `fit` may decide for XLA
        ("fit", None, True),
        ("step", None, True),  # a function of the program may
        ("step", True, True),
        ("fit", False, False),
    ],
)
def test_the_first_step_may_be_slow_only_if_xla_may_compile_it(loop: Loop, xla: bool | None, expected: bool) -> None:
    threads = Threads(intra=1, inter=1)
    spec = Spec(workload="cifar", backend="cuda", loop=loop, xla=xla, threads=threads, data=Data(kind="own"))
    assert bool(slow_first_step(spec)) is expected
    assert not slow_first_step(spec.model_copy(update={"backend": "cpu"}))


def cuda_build(folder: Path) -> Path:
    """Write the files of a CUDA build of TensorFlow and of its packages, as far as the checks read them."""
    wheel = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n"
    requirement = 'Requires-Dist: nvidia-cudnn-cu12<10.0,>=9.3; extra == "and-cuda"\n'
    return write(
        folder,
        {
            "tensorflow/__init__.py": "raise ImportError('doctor must not import TensorFlow')",
            "tensorflow/python/platform/build_info.py": BUILD,
            "tensorflow-2.21.0.dist-info/METADATA": wheel.format("tensorflow", "2.21.0") + requirement,
            "nvidia_cudnn_cu12-9.3.0.75.dist-info/METADATA": wheel.format("nvidia-cudnn-cu12", "9.3.0.75"),
        },
    )


def output_of(path: Path, driver: Path, behaviour: str, **variables: str) -> list[str]:
    """Return the lines that the backend prints in a fresh process with this TensorFlow and this driver."""
    root = Path(__file__).resolve().parents[2]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{path}{os.pathsep}{root}",
        "LD_LIBRARY_PATH": str(driver),
        "DRIVER": behaviour,
    }
    process = subprocess.run(
        [sys.executable, "-c", RUN], env=environment | variables, capture_output=True, text=True, check=True
    )
    return process.stdout.splitlines()


def test_a_run_can_start_if_nothing_is_missing(tmp_path: Path, driver: Path) -> None:
    lines = output_of(cuda_build(tmp_path), driver, "fine")
    assert lines[-1] == "PRESENT"
    text = "\n".join(lines)
    assert "PASS | TensorFlow with CUDA | tensorflow 2.21.0, built for CUDA 12.5.1" in text
    assert "PASS | CUDA libraries | all 1 nvidia-* packages" in text


def test_a_gpu_without_code_in_the_build_is_refused(tmp_path: Path, driver: Path) -> None:
    lines = output_of(cuda_build(tmp_path), driver, "kepler")
    assert lines[-1].startswith("ABSENT no CUDA device: GPU: First, compute capability 3.5")


def test_a_gpu_whose_code_is_compiled_at_the_first_start_is_a_warning(tmp_path: Path, driver: Path) -> None:
    path = cuda_build(tmp_path)
    assert not any("GPU code" in line for line in output_of(path, driver, "hopper"))
    build = path / "tensorflow/python/platform/build_info.py"
    build.write_text(BUILD.replace("compute_90", "compute_80"), encoding="utf-8")
    lines = output_of(path, driver, "hopper")
    assert lines[-1] == "PRESENT"
    assert any(line.startswith("WARN | GPU code") and "CUDA_CACHE_PATH" in line for line in lines)
    assert any(line.startswith("WARN | GPU code") and "unsupported PTX" in line for line in lines)
    lines = output_of(path, driver, "hopper", CUDA_CACHE_PATH="/cache")
    assert any(line.startswith("PASS | GPU code") and "/cache" in line for line in lines)


def test_a_blackwell_gpu_without_machine_code_is_refused(tmp_path: Path, driver: Path) -> None:
    path = cuda_build(tmp_path)
    line = output_of(path, driver, "blackwell")[-1]
    assert line.startswith("ABSENT no CUDA device: GPU: First, compute capability 12.0")
    assert "no machine code for this GPU" in line
    build = path / "tensorflow/python/platform/build_info.py"
    build.write_text(BUILD.replace("'sm_80'", "'sm_80', 'sm_120'"), encoding="utf-8")
    assert output_of(path, driver, "blackwell")[-1] == "PRESENT"


@pytest.mark.parametrize("gpu", ["pascal", "volta"])
def test_a_gpu_that_the_installed_cudnn_no_longer_supports_is_refused(tmp_path: Path, driver: Path, gpu: str) -> None:
    path = cuda_build(tmp_path)
    assert output_of(path, driver, gpu)[-1] == "PRESENT"
    (path / "nvidia_cudnn_cu12-9.3.0.75.dist-info").rename(path / "nvidia_cudnn_cu12-9.28.0.42.dist-info")
    metadata = path / "nvidia_cudnn_cu12-9.28.0.42.dist-info/METADATA"
    metadata.write_text(metadata.read_text(encoding="utf-8").replace("9.3.0.75", "9.28.0.42"), encoding="utf-8")
    lines = output_of(path, driver, gpu)
    assert "cuDNN 9.28.0.42 needs a GPU of compute capability 7.5 or higher" in lines[-1]
    assert any("pip install 'nvidia-cudnn-cu12<9.11'" in line for line in lines)
    text = "\n".join(output_of(path, driver, gpu, DEVBENCH_IMAGE="devbench:cuda"))
    assert "build an image with cuDNN 9.10 (docs/containers.md, GPUs before Turing)" in text
    assert "pip install" not in text  # the image has no pip
    assert output_of(path, driver, "fine")[-1] == "PRESENT"


def test_a_missing_package_is_named(tmp_path: Path, driver: Path) -> None:
    path = cuda_build(tmp_path)
    metadata = path / "tensorflow-2.21.0.dist-info/METADATA"
    more = 'Requires-Dist: nvidia-cufft-cu12>=11.2; extra == "and-cuda"\n'
    metadata.write_text(metadata.read_text(encoding="utf-8") + more, encoding="utf-8")
    assert "CUDA libraries: not installed: nvidia-cufft-cu12" in output_of(path, driver, "fine")[-1]


LOADED = (  # by TensorFlow, before it lists the GPUs
    "libcublas.so.12",
    "libcublasLt.so.12",
    "libcudart.so.12",
    "libcudnn.so.9",
    "libcufft.so.11",
    "libcusolver.so.11",
    "libcusparse.so.12",
)


@pytest.mark.parametrize("absent", LOADED)
def test_every_library_without_which_tensorflow_uses_no_gpu_is_checked(
    tmp_path: Path, driver: Path, absent: str
) -> None:
    path = cuda_build(tmp_path)
    shutil.rmtree(path / "nvidia_cudnn_cu12-9.3.0.75.dist-info")  # the libraries come from the system
    shutil.copy(driver / _cuda_checks.LIBRARY, path)
    for library in LOADED:
        shutil.copy(driver / _cuda_checks.LIBRARY, path / library)
    assert output_of(path, path, "fine")[-1] == "PRESENT"
    (path / absent).unlink()
    line = output_of(path, path, "fine")[-1]
    assert "CUDA libraries" in line
    assert f"not on the system: {absent}" in line


def spec(**more: object) -> Spec:
    fixed = {"workload": "cifar", "backend": "cuda", "threads": Threads(intra=3, inter=2), "data": Data(kind="own")}
    return Spec.model_validate({**fixed, **more})


def test_a_worker_numbers_gpus_as_nvml_does_unless_the_user_chose_an_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    assert cuda.environment(spec())["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    assert cuda.environment(spec())["CUDA_DEVICE_ORDER"] == "FASTEST_FIRST"


@pytest.mark.parametrize("own", ["", "/usr/local/nvidia/lib64"])
def test_a_worker_searches_the_folder_of_cusolver_which_the_wheel_of_tensorflow_does_not_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str
) -> None:
    monkeypatch.syspath_prepend(str(cuda_build(tmp_path)))
    monkeypatch.setenv("LD_LIBRARY_PATH", own)
    assert "LD_LIBRARY_PATH" not in cuda.environment(spec())  # CUDA's libraries come from the system
    folder = tmp_path / "nvidia/cusolver/lib"
    folder.mkdir(parents=True)
    assert cuda.environment(spec())["LD_LIBRARY_PATH"].split(os.pathsep) == [*filter(None, [own]), str(folder)]


def test_a_worker_of_another_environment_searches_only_its_own_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    for name in ("own", "other"):
        (tmp_path / name / "nvidia/cusolver/lib").mkdir(parents=True)
    monkeypatch.setattr(installed, "site_packages", lambda: tmp_path / "own")
    env = Env(name="it", python="python", version="3.12.3", sha256="", site_packages=str(tmp_path / "other"))
    variables = cuda.environment(spec(env=env))
    assert variables["LD_LIBRARY_PATH"] == str(tmp_path / "other/nvidia/cusolver/lib")
    without = env.model_copy(update={"site_packages": str(tmp_path / "none")})
    assert "LD_LIBRARY_PATH" not in cuda.environment(spec(env=without))


def test_the_users_choice_of_gpu_and_cache_is_kept() -> None:
    assert not {"CUDA_VISIBLE_DEVICES", "CUDA_CACHE_PATH"} & cuda.environment(spec()).keys()


def test_the_cache_of_compiled_kernels_holds_all_of_them_unless_the_user_set_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUDA_CACHE_MAXSIZE", raising=False)
    assert cuda.environment(spec())["CUDA_CACHE_MAXSIZE"] == "4294967296"
    monkeypatch.setenv("CUDA_CACHE_MAXSIZE", "1000")
    assert cuda.environment(spec())["CUDA_CACHE_MAXSIZE"] == "1000"


def test_a_spec_without_tf32_turns_it_off_in_the_libraries_too() -> None:
    assert cuda.environment(spec(tf32=False))["NVIDIA_TF32_OVERRIDE"] == "0"
    assert "NVIDIA_TF32_OVERRIDE" not in cuda.environment(spec(tf32=True))


@pytest.mark.parametrize("value", ["-1", ""])
def test_a_program_that_hides_all_gpus_is_told_so(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    tf = SimpleNamespace(
        config=SimpleNamespace(list_physical_devices=lambda kind: []),
        test=SimpleNamespace(is_built_with_cuda=lambda: True),
    )
    with pytest.raises(DeviceAbsent, match=f"^CUDA_VISIBLE_DEVICES='{value}' hides all GPUs$"):
        cuda.configure(tf)
