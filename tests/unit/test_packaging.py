"""The wheel that pip builds, its metadata on each platform, and the lock files."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from bench import backends
from bench.version import install_command

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "images").glob("*.lock"))
DIRECTML = {"tensorflow-cpu", "tensorflow-directml-plugin", "numpy"}
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix"}
ARM = LINUX | {"platform_machine": "aarch64"}
WINDOWS = {"sys_platform": "win32", "platform_system": "Windows", "platform_machine": "AMD64", "os_name": "nt"}
MACOS = {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64", "os_name": "posix"}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    build = [sys.executable, "-m", "pip", "wheel", *offline, "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, cwd=folder)
    (path,) = folder.glob("devbench_tf-*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="session")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


def required(metadata: Message, extra: str, python: str, machine: dict[str, str]) -> dict[str, Requirement]:
    """Return the requirements that an extra adds on a machine."""
    environment = {**machine, "python_version": python, "python_full_version": f"{python}.0", "extra": extra}
    requirements = [Requirement(text) for text in metadata.get_all("Requires-Dist", []) if "extra ==" in text]
    return {
        requirement.name: requirement
        for requirement in requirements
        if requirement.marker is not None and requirement.marker.evaluate({**environment})
    }


def test_the_wheel_contains_only_the_package_its_samples_and_its_licence(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "bench").rglob("*") if path.is_file()}
    assert {"bench/py.typed", "bench/datasets/samples/cifar10.npz", "bench/datasets/samples/mnist.npz"} <= files
    assert {name for name in names if ".dist-info/" not in name} == {
        name for name in files if "/__pycache__/" not in name
    }
    assert [wheel.getinfo(name).file_size > 10_000 for name in names if name.endswith("/LICENSE")] == [True]


def test_the_wheel_installs_the_devbench_command(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    assert "devbench=bench.__main__:main" in wheel.read(name).decode().replace(" ", "")


def test_no_file_tells_anybody_to_install_the_package_of_somebody_else(metadata: Message) -> None:
    assert metadata["Name"] == "devbench-tf"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    own = Path(__file__).relative_to(ROOT).as_posix()
    foreign = re.compile(r"pip[\w.]* install [^\n`|]*(?<![\w./-])devbench(?!-tf)\b|(?<![\w./-])devbench\[[a-z]")
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if name in ("", own) or not path.is_file() or path.suffix in (".npz", ".png", ".gz"):
            continue
        assert not foreign.search(path.read_text(encoding="utf-8", errors="replace")), name


def test_the_install_command_names_an_extra_of_the_package(metadata: Message) -> None:
    for extra in (*backends.names(), "report", "notebook", "hub"):
        assert extra in metadata.get_all("Provides-Extra", [])
        assert install_command(extra) == f"pip install '.[{extra}]'"


def test_the_metadata_lists_the_supported_versions_of_python_and_the_licence(metadata: Message) -> None:
    python = SpecifierSet(metadata["Requires-Python"])
    supported = [minor for minor in range(8, 16) if f"3.{minor}" in python]
    assert supported == [10, 11, 12, 13]
    classifiers = [text.rpartition(" ")[2] for text in metadata.get_all("Classifier", []) if ":: 3." in text]
    assert classifiers == [f"3.{minor}" for minor in supported]
    assert metadata["License-Expression"] == "Apache-2.0"


@pytest.mark.parametrize(
    ("extra", "python", "machine", "expected"),
    [
        ("cpu", "3.10", LINUX, {"tensorflow-cpu"}),
        ("cpu", "3.13", LINUX, {"tensorflow-cpu"}),
        ("cpu", "3.12", WINDOWS, {"tensorflow-cpu"}),
        ("cpu", "3.12", ARM, {"tensorflow"}),
        ("cpu", "3.12", MACOS, {"tensorflow"}),
        ("cuda", "3.12", LINUX, {"tensorflow", "nvidia-ml-py"}),
        ("cuda", "3.12", MACOS, set()),
        ("cuda", "3.12", WINDOWS, set()),
        ("report", "3.10", LINUX, {"jinja2", "vl-convert-python"}),
        ("directml", "3.10", LINUX, DIRECTML),
        ("directml", "3.10", WINDOWS, {*DIRECTML, "tensorflow-intel", "tensorflow-io-gcs-filesystem"}),
        ("directml", "3.10", MACOS, {"numpy"}),
        ("directml", "3.11", LINUX, {"numpy"}),
    ],
)
def test_an_extra_requires_only_packages_that_exist_on_the_platform(
    metadata: Message, extra: str, python: str, machine: dict[str, str], expected: set[str]
) -> None:
    assert set(required(metadata, extra, python, machine)) == expected


@pytest.mark.parametrize("python", ["3.10", "3.13"])
def test_the_cpu_lock_contains_the_packages_of_the_report_extra(metadata: Message, python: str) -> None:
    locked = pins(ROOT / "images" / "cpu.lock", python, LINUX)
    for requirement in required(metadata, "report", python, LINUX).values():
        assert locked[canonicalize_name(requirement.name)] in requirement.specifier


def test_the_directml_extra_keeps_numpy_below_2(metadata: Message) -> None:
    numpy = required(metadata, "directml", "3.10", LINUX)["numpy"]
    assert "1.26.4" in numpy.specifier
    assert "2.0.0" not in numpy.specifier


def pins(lock: Path, python: str, machine: dict[str, str]) -> dict[str, Version]:
    """Return the version of each package that a lock file installs on a machine, by canonical name."""
    environment = {**machine, "python_version": python, "python_full_version": f"{python}.0"}
    requirements = [Requirement(text) for text in re.findall(r"^[^\s#].*?(?= *\\?$)", lock.read_text(), re.MULTILINE)]
    return {
        canonicalize_name(requirement.name): Version(str(requirement.specifier).removeprefix("=="))
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({**environment})
    }


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_pins_and_hashes_every_package_and_names_no_index(lock: Path) -> None:
    text = lock.read_text()
    entries = re.split(r"\n(?=[A-Za-z0-9])", text)[1:]
    assert entries
    assert [entry for entry in entries if not re.match(r"[\w.\-\[\]]+==\S+", entry)] == []
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert re.findall(r"https?://|^-.*", text, re.MULTILINE) == []


@pytest.mark.parametrize(
    ("extra", "python", "machine"),
    [
        *[("cpu", python, LINUX) for python in ("3.10", "3.11", "3.12", "3.13")],
        ("cpu", "3.12", WINDOWS),
        ("cpu", "3.12", MACOS),
        ("cpu", "3.13", ARM),
        ("hub", "3.13", ARM),
        ("cuda", "3.12", LINUX),
        ("directml", "3.10", LINUX),
        ("directml", "3.10", WINDOWS),
    ],
)
def test_a_lock_satisfies_every_requirement_of_the_package_and_its_extra(
    metadata: Message, extra: str, python: str, machine: dict[str, str]
) -> None:
    locked = pins(ROOT / "images" / f"{extra}.lock", python, machine)
    plain = [Requirement(text) for text in metadata.get_all("Requires-Dist", []) if "extra ==" not in text]
    requirements = plain + list(required(metadata, extra, python, machine).values())
    assert len(requirements) > len(plain) > 0
    assert [
        str(requirement)
        for requirement in requirements
        if locked.get(canonicalize_name(requirement.name), Version("0")) not in requirement.specifier
    ] == []


@pytest.mark.parametrize(
    ("tools", "base", "python"), [("dev", "cpu", "3.13"), ("dev", "cpu", "3.10"), ("dev-directml", "directml", "3.10")]
)
def test_a_lock_of_the_tools_agrees_with_the_backend_lock_in_the_same_environment(
    tools: str, base: str, python: str
) -> None:
    tool_pins, base_pins = (pins(ROOT / "images" / f"{name}.lock", python, LINUX) for name in (tools, base))
    shared = tool_pins.keys() & base_pins.keys()
    assert shared
    assert {name: tool_pins[name] for name in shared} == {name: base_pins[name] for name in shared}


def test_the_cpu_and_cuda_locks_have_the_same_versions_of_shared_packages() -> None:
    cpu, cuda = (pins(ROOT / "images" / f"{name}.lock", "3.12", LINUX) for name in ("cpu", "cuda"))
    assert cuda["tensorflow"] == cpu["tensorflow-cpu"]
    assert {name: cpu[name] for name in cpu.keys() & cuda.keys()} == {
        name: cuda[name] for name in cpu.keys() & cuda.keys()
    }


def test_the_build_backend_has_the_locked_version() -> None:
    version = re.search(r'requires = \["flit_core==([\d.]+)"\]', (ROOT / "pyproject.toml").read_text())
    assert version is not None
    assert pins(ROOT / "images" / "build.lock", "3.12", LINUX) == {"flit-core": Version(version[1])}


@pytest.mark.needs("posix")
def test_make_checks_on_each_call_whether_the_lock_of_an_environment_changed() -> None:
    rules = subprocess.run(["make", "-pn", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (phony,) = re.findall(r"^\.PHONY: (.*)", rules, re.MULTILINE)
    assert {".venv-directml", ".venv-xprof"} <= set(phony.split())
