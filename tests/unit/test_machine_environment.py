"""The description of the machine in a result, on this machine and on prepared trees of system files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.backends import recorded_prefixes
from bench.machine import environment, installed, system
from bench.machine.environment import governor, host, variables
from bench.model.environment import Deployment

INTEL = "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\nflags\t\t: fpu sse4_2 avx2 smep{}\n\nprocessor\t: 1\n"


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_the_description_of_the_host_is_complete_and_is_json() -> None:
    description = json.loads(host(environ={}).model_dump_json())
    assert description["cpu"]["logical_cores"] >= description["cpu"]["affinity"] >= 1
    assert description["cpu"]["model"]
    assert description["memory"]["total"] >= description["memory"]["available"] > 0
    assert description["system"]["kernel"]
    assert description["python"]["version"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert description["python"]["implementation"] == "CPython"


def test_describing_the_host_does_not_import_tensorflow() -> None:
    code = (
        "import sys; from bench.machine.environment import host; host();"
        "print([name for name in sys.modules if name.split('.')[0] in ('tensorflow', 'keras', 'numpy')])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_a_machine_without_system_files_is_described_without_an_error(tmp_path: Path) -> None:
    description = host(tmp_path, {})
    assert description.cpu.governor is None
    assert description.system.container is None
    assert description.system.cgroup is None


def test_the_deployment_comes_from_devbench_variables_that_are_set() -> None:
    environ = {"DEVBENCH_IMAGE": "devbench-cpu:1", "DEVBENCH_POOL": "t4", "DEVBENCH_NODE": ""}
    assert host(environ=environ).deployment == Deployment(image="devbench-cpu:1", pool="t4")


def test_relevant_variables_are_recorded_and_secrets_are_not() -> None:
    environ = {
        "TF_XLA_FLAGS": "--tf_xla_auto_jit=2",
        "XLA_FLAGS": "--xla_dump_to=x",
        "OMP_NUM_THREADS": "4",
        "KERAS_BACKEND": "tensorflow",
        "CUDA_VISIBLE_DEVICES": "0",
        "NVIDIA_API_KEY": "s1",
        "NVIDIA_NGC_TOKEN": "s2",
        "TF_PASSWORD": "s3",
        "KERAS_ACCESS_KEY": "s4",
        "TF_VAR_database": "s5",
        "TF_CPP_PROXY": "http://user:s6@proxy:80/x",
        "HOME": "/somewhere",
        "DEVBENCH_TOKEN": "s7",
    }
    recorded = variables(environ, recorded_prefixes())
    assert set(recorded) == {
        "TF_XLA_FLAGS", "XLA_FLAGS", "OMP_NUM_THREADS", "KERAS_BACKEND", "CUDA_VISIBLE_DEVICES", "TF_CPP_PROXY",
    }  # fmt: skip
    assert recorded["TF_CPP_PROXY"] == "http://proxy:80/x"


def test_the_cpu_has_its_model_and_the_extensions_that_tensorflow_uses(tmp_path: Path) -> None:
    root = write_files(tmp_path, {"proc/cpuinfo": INTEL.format("")})
    assert system.cpu_features(root) == ["avx2", "sse4_2"]
    if sys.platform == "linux":
        assert system.cpu_model(root) == "Some CPU @ 2.00GHz"


def test_an_arm_cpu_lists_its_features_too(tmp_path: Path) -> None:
    root = write_files(
        tmp_path, {"proc/cpuinfo": "processor : 0\nFeatures : fp asimd sve bf16 crc32\nCPU part : 0xd40\n"}
    )
    assert system.cpu_features(root) == ["asimd", "bf16", "sve"]


@pytest.mark.parametrize(
    ("vendor", "product", "flag", "expected"),
    [
        ("QEMU", "Standard PC", " hypervisor", "kvm"),
        ("Amazon EC2", "c5.large", " hypervisor", "nitro"),
        ("Amazon EC2", "c5.metal", "", None),
        ("Microsoft Corporation", "Virtual Machine", " hypervisor", "hyper-v"),
        ("VMware, Inc.", "VMware7,1", " hypervisor", "vmware"),
        ("Dell Inc.", "PowerEdge R740", "", None),
        ("", "", " hypervisor", "unknown"),
    ],
)
def test_the_hypervisor_is_known_from_the_firmware_and_the_cpu(
    tmp_path: Path, vendor: str, product: str, flag: str, expected: str | None
) -> None:
    files = {
        "proc/cpuinfo": INTEL.format(flag),
        "sys/class/dmi/id/sys_vendor": vendor,
        "sys/class/dmi/id/product_name": product,
    }
    assert system.hypervisor(write_files(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("files", "environ", "expected"),
    [
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"proc/1/cgroup": "0::/kubepods/besteffort/pod1/c"}, {}, "kubernetes"),
        ({}, {"container": "lxc"}, "lxc"),
        ({"proc/1/cgroup": "0::/init.scope"}, {}, None),
    ],
)
def test_a_container_is_named_by_its_engine(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], expected: str | None
) -> None:
    assert system.container(write_files(tmp_path, files), environ) == expected


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("5.15.167.4-microsoft-standard-WSL2", "wsl2"),
        ("4.4.0-19041-Microsoft", "wsl1"),
        ("6.1.0-18-amd64", None),
    ],
)
def test_wsl_is_known_from_the_kernels_release(tmp_path: Path, release: str, expected: str | None) -> None:
    assert system.wsl(write_files(tmp_path, {"proc/sys/kernel/osrelease": release})) == expected


def test_all_governors_are_named_if_cpus_differ(tmp_path: Path) -> None:
    folder = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    root = write_files(tmp_path, {folder.format(0): "powersave\n", folder.format(1): "performance\n"})
    assert governor(root) == "performance+powersave"


def test_numa_nodes_and_frequency_are_read_from_the_kernels_lists(tmp_path: Path) -> None:
    files = {
        "sys/devices/system/node/online": "0-1,4\n",
        "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3500000\n",
    }
    description = host(write_files(tmp_path, files), {})
    assert description.cpu.numa_nodes == 3
    assert description.cpu.max_frequency_hz == 3.5e9


def test_the_installed_tensorflow_and_its_build_are_read_without_importing_it() -> None:
    code = (
        "import sys; from bench.machine import installed;"
        "print(installed.tensorflow(), installed.build().is_cuda_build);"
        "assert 'tensorflow' not in sys.modules"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tensorflow" in process.stdout
    assert process.stdout.split()[-1] in ("True", "False")


def test_packages_are_recorded_by_pattern_with_their_versions() -> None:
    packages = environment._packages(("pydantic*", "no-such-*"))
    assert packages["pydantic"] == installed.version("pydantic")
    assert "pydantic-core" in packages
    assert not packages.keys() & {"typer", "no-such-distribution"}


def test_the_packages_of_an_extra_are_listed() -> None:
    distribution = installed.tensorflow()
    assert distribution is not None
    if distribution[1].startswith("2.21."):
        assert "nvidia-cudnn-cu12" in installed.extra_requirements(distribution[0], "and-cuda")
    assert installed.extra_requirements("no-such-distribution", "and-cuda") == []
