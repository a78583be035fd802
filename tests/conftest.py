"""What the suite needs of a machine, told by name: a test that can't run here is skipped with the reason and the fix.

`@pytest.mark.needs("nvidia-gpu")` names a capability of the table below. With `--strict-skips` (which
`make test-all STRICT=1` sets) a skip that this machine could have avoided fails; one that it could not (no GPU
in it, another operating system) stays a skip. A skip of any other origin fails under it too, so nothing is
left out in silence.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SECOND = ROOT / ".venv-directml"
XPROF = ROOT / ".venv-xprof" / "bin" / "python"
PROMETHEUS = ROOT / "tests" / "integration" / "go"
"""The Go module that says which Prometheus 3 it is and fixes all that it needs, and what builds it."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
EXCUSED = pytest.StashKey[bool]()
CLUSTER = os.environ.get("DEVBENCH_TEST_CLUSTER", "own")
"""Where the chart is tested: own makes a control plane here, existing takes the one of KUBECONFIG."""

CHANGED = "changed-"
"""Prefix of the capabilities of groups of tests that run only if their inputs changed (`inputs.py`)."""

PLUGINS = {"hubs": "hub", "planes": "cluster"}
pytest_plugins = tuple(name for name, folder in PLUGINS.items() if (ROOT / "tests" / folder).is_dir())
"""Fixtures of other folders, where they are: the tests of this file stand alone."""


@dataclass
class GroupRun:
    """What a session knows of a group of tests.

    Args:
        tests: ids of all its tests, also of those that the session deselects.
        passed: ids of those that passed.
        digest: hash of the group's inputs at the start.
    """

    tests: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    digest: str = ""


GROUPS: dict[str, GroupRun] = {}
"""Groups by name, of the tests that were collected."""


@dataclass(frozen=True)
class Absent:
    """Why a capability is not here.

    Args:
        reason: what was looked for and not found.
        fix: how to get it.
        avoidable: whether this machine could have it without other hardware or another operating system.
    """

    reason: str
    fix: str
    avoidable: bool


def _nvidia() -> Absent | None:
    if Path("/dev/nvidiactl").exists() or Path("/dev/nvidia0").exists():
        return None
    return Absent("this machine shows no NVIDIA GPU (/dev/nvidiactl)", "run it on a machine with one", avoidable=False)


def _no_nvidia() -> Absent | None:
    if _nvidia() is not None:
        return None
    return Absent("an NVIDIA GPU is here, and the test is about its absence", "run it without one", avoidable=False)


def _directml() -> Absent | None:
    if sys.platform == "win32" or Path("/dev/dxg").exists():
        return None
    return Absent("there is no DirectML adapter (/dev/dxg)", "run it on Windows or in WSL2", avoidable=False)


def _no_directml() -> Absent | None:
    if _directml() is not None:
        return None
    return Absent(
        "a DirectML adapter may be here, and the test is about its absence", "run it without", avoidable=False
    )


def _second_tensorflow() -> Absent | None:
    if (sys.platform, platform.machine()) not in {("linux", "x86_64"), ("win32", "AMD64")}:
        what = f"TensorFlow 2.10 with the DirectML plugin has no wheel for {sys.platform} on {platform.machine()}"
        return Absent(what, "run it on x86-64 Linux or Windows", avoidable=False)
    if second_python().exists():
        return None
    fix = "install Python 3.10 (for example `pyenv install 3.10`) and call `make test`, which makes it"
    return Absent(f"there is no {SECOND.name} with TensorFlow 2.10", fix, avoidable=True)


def _xprof() -> Absent | None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return Absent("xprof is locked for Linux on x86-64", "run it there", avoidable=False)
    if XPROF.exists():
        return None
    return Absent(f"there is no {XPROF.parent.parent.name}", "call `make test-all`, which makes it", avoidable=True)


def _system(wanted: str, name: str) -> Callable[[], Absent | None]:
    def probe() -> Absent | None:
        if sys.platform == wanted:
            return None
        return Absent(f"this is {platform.system()}", f"run it on {name}", avoidable=False)

    return probe


def _posix() -> Absent | None:
    if sys.platform != "win32":
        return None
    return Absent("this is Windows, which has no signals", "run it on Linux or macOS", avoidable=False)


def _cpu_quota() -> Absent | None:
    top = Path("/sys/fs/cgroup")
    delegated = top / "cgroup.subtree_control"
    if delegated.exists():
        there = "cpu" in delegated.read_text().split() and os.access(top, os.W_OK)
    else:
        there = os.access(top / "cpu", os.W_OK)
    if there:
        return None
    return Absent("no control group for CPU can be made here", "run it as root on Linux", avoidable=False)


def _chromium() -> Absent | None:
    if chromium() is not None:
        return None
    fix = "install it (on Debian: apt-get install chromium)"
    return Absent(f"there is none of {', '.join(BROWSERS)} on the path", fix, avoidable=True)


def _container_engine() -> Absent | None:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return Absent("the images are built for Linux on x86-64", "run it there", avoidable=False)
    if os.geteuid() != 0:
        return Absent("base images can be made, and containers be limited, by root only", "run it as root", True)
    missing = [name for name in ("podman", "mmdebstrap", "runc") if shutil.which(name) is None]
    if not missing:
        return None
    fix = "install them (on Debian: apt-get install podman runc slirp4netns containernetworking-plugins mmdebstrap)"
    return Absent(f"there is no {', '.join(missing)} on the path", fix, avoidable=True)


def _docker() -> Absent | None:
    from images.docker import programs

    if programs() is not None:
        return None
    fix = "install both (on Debian: apt-get install docker.io)"
    return Absent("there is no dockerd with a docker of its version on the path", fix, avoidable=True)


def _changed(group: str) -> Callable[[], Absent | None]:
    def probe() -> Absent | None:
        import inputs

        if not inputs.unchanged(group):
            return None
        file = inputs.PASSED / group
        return Absent(
            "its group passed with the inputs that it has now", f"remove {file.relative_to(ROOT)}", avoidable=False
        )

    return probe


def _go() -> Absent | None:
    if sys.platform == "win32":
        return Absent("Helm is built for the tests on Linux and macOS only", "run it there", avoidable=False)
    if shutil.which("go"):
        return None
    fix = "install Go 1.26 or later, which builds Helm and the like for the tests"
    return Absent("there is no go on the path", fix, avoidable=True)


def _cluster() -> Absent | None:
    if CLUSTER == "existing" and not os.environ.get("KUBECONFIG"):
        return Absent("DEVBENCH_TEST_CLUSTER=existing, but no KUBECONFIG", "name its file", avoidable=True)
    if sys.platform != "linux":
        return Absent(f"this is {platform.system()}", "run it on Linux", avoidable=False)
    if not shutil.which("openssl"):
        fix = "install it (on Debian: apt-get install openssl)"
        return Absent("there is no openssl on the path", fix, avoidable=True)
    return _go()


def _postgresql() -> Absent | None:
    if sys.platform == "win32":
        return Absent("the tests start no PostgreSQL on Windows", "run it on Linux or macOS", avoidable=False)
    import postgres

    if postgres.programs() is not None:
        return None
    fix = "install it (on Debian: apt-get install postgresql)"
    return Absent("there is no PostgreSQL server (initdb, postgres)", fix, avoidable=True)


def _control_plane() -> Absent | None:
    if CLUSTER == "existing":
        what = "DEVBENCH_TEST_CLUSTER=existing, and the test plays kubelets, which a real cluster has"
        return Absent(what, "leave the variable out", avoidable=False)
    return _cluster()


def _real_node() -> Absent | None:
    if sys.platform != "linux":
        return _control_plane()
    programs = ("containerd", "ctr", "runc", "iptables", "ip", "nsenter", "gcc")
    missing = [name for name in programs if not shutil.which(name)]
    if missing:
        fix = "install them (on Debian: apt-get install containerd containernetworking-plugins gcc iproute2 iptables)"
        return Absent(f"{', '.join(missing)}: not on the path", fix, avoidable=True)
    if os.geteuid() != 0:
        return Absent("a kubelet and network namespaces need root", "run it as root", avoidable=False)
    return _control_plane() or _container_engine()


def _mounts() -> Absent | None:
    if sys.platform == "linux" and os.geteuid() == 0:
        return None
    return Absent("mounting a file system needs Linux and root", "run it there as root", avoidable=False)


def _prometheus() -> Absent | None:
    if shutil.which("prometheus") and shutil.which("promtool"):
        return None
    fix = "install it (on Debian: apt-get install prometheus)"
    return Absent("prometheus and promtool are not on the path", fix, avoidable=True)


def _prometheus_3() -> Absent | None:
    if shutil.which("go"):
        return None
    return Absent("there is no Go to build Prometheus 3 with", "install Go 1.26 or newer", avoidable=True)


def _sqlite3() -> Absent | None:
    if shutil.which("sqlite3"):
        return None
    fix = "install it (on Debian: apt-get install sqlite3)"
    return Absent("SQLite's shell sqlite3 is not on the path", fix, avoidable=True)


def _pushgateway() -> Absent | None:
    if shutil.which("prometheus-pushgateway"):
        return None
    fix = "install it (on Debian: apt-get install prometheus-pushgateway)"
    return Absent("prometheus-pushgateway is not on the path", fix, avoidable=True)


def _grafana_sdk() -> Absent | None:
    if importlib.util.find_spec("grafana_foundation_sdk"):
        return None
    what = "there is no grafana-foundation-sdk in this environment"
    if sys.version_info < (3, 11):
        return Absent(f"{what}, which needs Python 3.11", "run it with Python 3.11 or newer", avoidable=False)
    return Absent(what, "call `make test`, which installs it", avoidable=True)


CAPABILITIES: dict[str, Callable[[], Absent | None]] = {
    "nvidia-gpu": _nvidia,
    "no-nvidia-gpu": _no_nvidia,
    "directml-adapter": _directml,
    "no-directml-adapter": _no_directml,
    "tensorflow-2.10": _second_tensorflow,
    "xprof": _xprof,
    "posix": _posix,
    "cpu-quota": _cpu_quota,
    "chromium": _chromium,
    "container-engine": _container_engine,
    "docker": _docker,
    "changed-cuda-image": _changed("cuda-image"),
    "changed-directml-image": _changed("directml-image"),
    "changed-hub-kills": _changed("hub-kills"),
    "go": _go,
    "cluster": _cluster,
    "control-plane": _control_plane,
    "real-node": _real_node,
    "mounts": _mounts,
    "postgresql": _postgresql,
    "prometheus": _prometheus,
    "prometheus-3": _prometheus_3,
    "pushgateway": _pushgateway,
    "sqlite3": _sqlite3,
    "grafana-sdk": _grafana_sdk,
    "linux": _system("linux", "Linux"),
    "windows": _system("win32", "Windows"),
    "macos": _system("darwin", "macOS"),
}


def second_python() -> Path:
    """Interpreter of the environment that holds TensorFlow 2.10, whether or not it is there."""
    return SECOND / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def chromium() -> str | None:
    """The browser's program, or none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@cache
def absent(capability: str) -> Absent | None:
    """Why this machine lacks a capability, or none; looked at once."""
    return CAPABILITIES[capability]()


def skip_without(item: pytest.Item, capability: str) -> None:
    """Skip `item` by name if the capability is not here, and note whether strictness excuses that."""
    if lack := absent(capability):
        item.stash[EXCUSED] = not lack.avoidable
        pytest.skip(f"needs {capability}: {lack.reason}; to get it: {lack.fix}")


@pytest.fixture
def directml_python(request: pytest.FixtureRequest) -> Path:
    """Python of the environment with TensorFlow 2.10 and the DirectML plugin; skips by name without it."""
    skip_without(request.node, "tensorflow-2.10")
    return second_python()


@pytest.fixture
def xprof_python(request: pytest.FixtureRequest) -> Path:
    """Python of the environment with xprof, which reads profiler traces; skips by name without it."""
    skip_without(request.node, "xprof")
    return XPROF


@pytest.fixture(scope="session")
def prometheus_programs() -> dict[str, str]:
    """Prometheus by its major version; where the third is not there it is built, which takes minutes, once."""
    ran = subprocess.run([sys.executable, PROMETHEUS / "build.py"], check=True, stdout=subprocess.PIPE, text=True)
    return {"2": shutil.which("prometheus") or "", "3": ran.stdout.strip()}


@pytest.fixture(scope="session")
def scraped(tmp_path_factory: pytest.TempPathFactory, prometheus_programs: dict[str, str]) -> Iterator[Any]:
    """A run that a Prometheus 2 and a Prometheus 3 scraped (`integration/scraping.py`), one for all who ask."""
    from scraping import scraped_run

    with scraped_run(tmp_path_factory.mktemp("scraped"), prometheus_programs) as made:
        yield made


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The browser's program, for tests that need "chromium"."""
    return chromium() or ""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--strict-skips`."""
    parser.addoption("--strict-skips", action="store_true", help="a skip that this machine could have avoided fails")


def pytest_configure() -> None:
    """Keep the user's own settings out of the tests."""
    for name in [name for name in os.environ if name.startswith("DEVBENCH_")]:
        del os.environ[name]


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist's own, which reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse capabilities that the table lacks, keep files in one process, and count all unit tests as essential.

    A test with a misspelt capability would never be skipped, or always.
    """
    for item in items:
        for name in _needed(item):
            if name not in CAPABILITIES:
                raise pytest.UsageError(f"{item.nodeid} needs '{name}', which is none of {', '.join(CAPABILITIES)}")
            if name.startswith(CHANGED):
                GROUPS.setdefault(name.removeprefix(CHANGED), GroupRun()).tests.add(item.nodeid)
        item.add_marker(pytest.mark.xdist_group(_together(item)))
        if item.path.parent.name == "unit":
            item.add_marker(pytest.mark.essential)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine lacks the means for."""
    for name in _needed(item):
        skip_without(item, name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under strictness, turn an avoidable skip of a test into its failure."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and not item.stash.get(EXCUSED, False):
        _forbid(item.config, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Under strictness, turn the skip of a whole file into an error."""
    report = yield
    if report.skipped:
        _forbid(collector.config, report)
    return report


def pytest_collection_finish() -> None:
    """Remember the inputs that the tests of each group run with."""
    if GROUPS:
        import inputs

        for group, state in GROUPS.items():
            state.digest = inputs.digest(group)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember which tests of a group passed."""
    if report.when == "call" and report.passed:
        for state in GROUPS.values():
            # pytest-xdist appends "@" and the name of its group.
            state.passed |= {report.nodeid, report.nodeid.rpartition("@")[0]} & state.tests


def pytest_sessionfinish() -> None:
    """Record the groups all of whose tests passed, if their inputs did not change meanwhile."""
    for group, state in GROUPS.items():
        import inputs

        if state.tests == state.passed and state.digest == inputs.digest(group):
            inputs.write(group, state.digest)


def _together(item: pytest.Item) -> str:
    """What goes to one process where several run: a file, all images, all that ask for what Prometheus scraped."""
    if "scraped" in getattr(item, "fixturenames", ()):
        return "scraped"
    return "images" if item.path.parent.name == "images" else item.path.name


def _needed(item: pytest.Item) -> Iterator[str]:
    for mark in item.iter_markers("needs"):
        yield from mark.args


def _forbid(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    if config.getoption("--strict-skips"):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"this machine can run it, and strictness allows no such skip. {why}"
