"""Capabilities of the machine that tests need. A test whose capability is missing is skipped with a reason and a fix.

`@pytest.mark.needs("nvidia-gpu")` names a capability of the table below. With `--strict-skips` (which
`make test-all STRICT=1` sets), a skip fails if this machine could have avoided it. It stays a skip if the machine could
not, for example because it has no GPU or runs another operating system. Skips that do not come from this table also
fail, so that no test is left out silently.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from marks import capabilities, group_of

ROOT = Path(__file__).resolve().parent.parent
DIRECTML_ENVIRONMENT = ROOT / ".venv-directml"
XPROF_PYTHON = ROOT / ".venv-xprof" / "bin" / "python"
PROMETHEUS = ROOT / "tests" / "integration" / "go"
"""The Go module that pins Prometheus 3 and its dependencies, and the script that builds it."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
UNAVOIDABLE = pytest.StashKey[bool]()
"""Whether the machine could not have avoided the skip of a test."""

defer_days = 0
"""The value of `--defer-long`."""

GROUP_OF_FOLDER = {
    "browser": "hub",
    "hub": "hub",
    "images": "images",
    "integration": "programs",
    "scripts": "scripts",
    "workers": "workers",
}
PROMETHEUS_TESTS = ("test_dashboard_queries.py", "test_prometheus.py")
ALWAYS = ("test_examples.py", "test_hub_end_to_end.py", "test_hub_settings.py")
"""Files of tests in no group, because their tests also read the documentation, or run workers and a hub."""

CLUSTER = os.environ.get("DEVBENCH_TEST_CLUSTER", "own")
"""Cluster that the chart is tested on: "own" starts a control plane, "existing" uses the one of KUBECONFIG."""

PLUGINS = {"hubs": "hub", "cluster_fixtures": "cluster", "groups": "passed", "warm_workers": "integration"}
pytest_plugins = tuple(name for name, folder in PLUGINS.items() if (ROOT / "tests" / folder).is_dir())
"""Fixtures of other folders. `test_conftest.py` copies this file to a place that lacks these folders."""


@dataclass(frozen=True)
class Missing:
    """Why the machine lacks a capability.

    Args:
        reason: what the machine lacks. A clause without a full stop.
        fix: how to provide it. An imperative clause without a full stop.
        avoidable: whether this machine could have it without other hardware or another operating system.
    """

    reason: str
    fix: str
    avoidable: bool


def _articles() -> Missing | None:
    if (ROOT.parent / "shared" / "articles").is_dir():
        return None
    return Missing("the articles are not in ../shared", "put the articles into ../shared/articles", avoidable=False)


def _nvidia() -> Missing | None:
    if Path("/dev/nvidiactl").exists() or Path("/dev/nvidia0").exists():
        return None
    return Missing("this machine has no NVIDIA GPU (/dev/nvidiactl)", "Use a machine with one", avoidable=False)


def _no_nvidia() -> Missing | None:
    if _nvidia() is not None:
        return None
    return Missing(
        "this machine has an NVIDIA GPU, and the test is about its absence",
        "Use a machine without one",
        avoidable=False,
    )


def _directml() -> Missing | None:
    if sys.platform == "win32" or Path("/dev/dxg").exists():
        return None
    return Missing("this machine has no DirectML adapter (/dev/dxg)", "Use Windows or WSL2", avoidable=False)


def _no_directml() -> Missing | None:
    if _directml() is not None:
        return None
    return Missing(
        "this machine may have a DirectML adapter, and the test is about its absence",
        "Use a machine without one",
        avoidable=False,
    )


def _tensorflow_2_10() -> Missing | None:
    if (sys.platform, platform.machine()) not in {("linux", "x86_64"), ("win32", "AMD64")}:
        reason = f"TensorFlow 2.10 with the DirectML plugin has no wheel for {sys.platform} on {platform.machine()}"
        return Missing(reason, "Use Linux or Windows on x86-64", avoidable=False)
    if directml_environment_python().exists():
        return None
    fix = "Install Python 3.10 (for example `pyenv install 3.10`) and run `make test`, which creates it"
    return Missing(f"this checkout has no {DIRECTML_ENVIRONMENT.name} with TensorFlow 2.10", fix, avoidable=True)


def _xprof() -> Missing | None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return Missing("xprof is locked for Linux on x86-64", "Use Linux on x86-64", avoidable=False)
    if XPROF_PYTHON.exists():
        return None
    fix = "Run `make test-all`, which creates it"
    return Missing(f"this checkout has no {XPROF_PYTHON.parent.parent.name}", fix, avoidable=True)


def _system(platform_name: str, title: str) -> Callable[[], Missing | None]:
    def probe() -> Missing | None:
        if sys.platform == platform_name:
            return None
        return Missing(f"this is {platform.system()}", f"Use {title}", avoidable=False)

    return probe


def _posix() -> Missing | None:
    if sys.platform != "win32":
        return None
    return Missing("this is Windows, which has no signals", "Use Linux or macOS", avoidable=False)


def _cpu_quota() -> Missing | None:
    root = Path("/sys/fs/cgroup")
    controllers = root / "cgroup.subtree_control"
    if controllers.exists():
        writable = "cpu" in controllers.read_text().split() and os.access(root, os.W_OK)
    else:
        writable = os.access(root / "cpu", os.W_OK)
    if writable:
        return None
    return Missing("this user cannot create a control group for CPU", "Use Linux as root", avoidable=False)


def _chromium() -> Missing | None:
    if chromium() is not None:
        return None
    fix = "Install Chromium (on Debian: apt-get install chromium)"
    return Missing(f"none of {', '.join(BROWSERS)} is on the path", fix, avoidable=True)


def _container_engine() -> Missing | None:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return Missing("the images are built for Linux on x86-64", "Use Linux on x86-64", avoidable=False)
    if os.geteuid() != 0:
        return Missing("only root can build base images and limit containers", "Run the tests as root", True)
    missing = [name for name in ("podman", "mmdebstrap", "runc") if shutil.which(name) is None]
    if not missing:
        return None
    fix = "Install them (on Debian: apt-get install podman runc slirp4netns containernetworking-plugins mmdebstrap)"
    return Missing(f"not on the path: {', '.join(missing)}", fix, avoidable=True)


def _docker() -> Missing | None:
    from images.docker import programs

    if programs() is not None:
        return None
    fix = "Install both (on Debian: apt-get install docker.io)"
    return Missing("dockerd and a docker of the same version are not on the path", fix, avoidable=True)


def _go() -> Missing | None:
    if sys.platform == "win32":
        return Missing("the tests build Helm only on Linux and macOS", "Use Linux or macOS", avoidable=False)
    if shutil.which("go"):
        return None
    fix = "Install Go 1.26 or later, which builds Helm and other programs for the tests"
    return Missing("go is not on the path", fix, avoidable=True)


def _cluster() -> Missing | None:
    if CLUSTER == "existing" and not os.environ.get("KUBECONFIG"):
        return Missing(
            "DEVBENCH_TEST_CLUSTER is 'existing', but KUBECONFIG is not set", "Set KUBECONFIG", avoidable=True
        )
    if sys.platform != "linux":
        return Missing(f"this is {platform.system()}", "Use Linux", avoidable=False)
    if not shutil.which("openssl"):
        fix = "Install it (on Debian: apt-get install openssl)"
        return Missing("openssl is not on the path", fix, avoidable=True)
    return _go()


def _postgresql() -> Missing | None:
    if sys.platform == "win32":
        return Missing("the tests do not start PostgreSQL on Windows", "Use Linux or macOS", avoidable=False)
    import postgres

    if postgres.programs() is not None:
        return None
    fix = "Install it (on Debian: apt-get install postgresql)"
    return Missing("no PostgreSQL server (initdb, postgres) is installed", fix, avoidable=True)


def _control_plane() -> Missing | None:
    if CLUSTER == "existing":
        reason = "DEVBENCH_TEST_CLUSTER is 'existing', and the test simulates kubelets, which a real cluster has"
        return Missing(reason, "Unset DEVBENCH_TEST_CLUSTER", avoidable=False)
    return _cluster()


def _real_node() -> Missing | None:
    if sys.platform != "linux":
        return _control_plane()
    programs = ("containerd", "ctr", "runc", "iptables", "ip", "nsenter", "gcc")
    missing = [name for name in programs if not shutil.which(name)]
    if missing:
        fix = "Install them (on Debian: apt-get install containerd containernetworking-plugins gcc iproute2 iptables)"
        return Missing(f"not on the path: {', '.join(missing)}", fix, avoidable=True)
    if os.geteuid() != 0:
        return Missing("a kubelet and network namespaces need root", "Run the tests as root", avoidable=False)
    return _control_plane() or _container_engine()


def _mounts() -> Missing | None:
    if sys.platform == "linux" and os.geteuid() == 0:
        return None
    return Missing("only root on Linux can mount a file system", "Use Linux as root", avoidable=False)


def _prometheus() -> Missing | None:
    if shutil.which("prometheus") and shutil.which("promtool"):
        return None
    fix = "Install it (on Debian: apt-get install prometheus)"
    return Missing("prometheus and promtool are not on the path", fix, avoidable=True)


def _prometheus_3() -> Missing | None:
    if shutil.which("go"):
        return None
    return Missing("go, which builds Prometheus 3, is not on the path", "Install Go 1.26 or later", avoidable=True)


def _sqlite3() -> Missing | None:
    if shutil.which("sqlite3"):
        return None
    fix = "Install it (on Debian: apt-get install sqlite3)"
    return Missing("sqlite3, SQLite's command-line shell, is not on the path", fix, avoidable=True)


def _pushgateway() -> Missing | None:
    if shutil.which("prometheus-pushgateway"):
        return None
    fix = "Install it (on Debian: apt-get install prometheus-pushgateway)"
    return Missing("prometheus-pushgateway is not on the path", fix, avoidable=True)


def _grafana_sdk() -> Missing | None:
    if importlib.util.find_spec("grafana_foundation_sdk"):
        return None
    reason = "grafana-foundation-sdk is not installed in this environment"
    if sys.version_info < (3, 11):
        return Missing(f"{reason}. It needs Python 3.11", "Use Python 3.11 or later", avoidable=False)
    return Missing(reason, "Run `make test`, which installs it", avoidable=True)


CAPABILITIES: dict[str, Callable[[], Missing | None]] = {
    "articles": _articles,
    "nvidia-gpu": _nvidia,
    "no-nvidia-gpu": _no_nvidia,
    "directml-adapter": _directml,
    "no-directml-adapter": _no_directml,
    "tensorflow-2.10": _tensorflow_2_10,
    "xprof": _xprof,
    "posix": _posix,
    "cpu-quota": _cpu_quota,
    "chromium": _chromium,
    "container-engine": _container_engine,
    "docker": _docker,
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


def directml_environment_python() -> Path:
    """Return the path of the interpreter of the environment with TensorFlow 2.10. It may not exist."""
    return DIRECTML_ENVIRONMENT / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def chromium() -> str | None:
    """Return the path of the browser, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@cache
def check(capability: str) -> Missing | None:
    """Return why this machine lacks a capability, or None. Each capability is checked once."""
    return CAPABILITIES[capability]()


def skip_without(item: pytest.Item, capability: str) -> None:
    """Skip a test if the machine lacks a capability, and record whether the machine could have avoided the skip."""
    if missing := check(capability):
        item.stash[UNAVOIDABLE] = not missing.avoidable
        pytest.skip(f"needs {capability}: {missing.reason}. {missing.fix}.")


@pytest.fixture
def directml_python(request: pytest.FixtureRequest) -> Path:
    """Python of the environment with TensorFlow 2.10 and the DirectML plugin. Skip the test if it is missing."""
    skip_without(request.node, "tensorflow-2.10")
    return directml_environment_python()


@pytest.fixture
def xprof_python(request: pytest.FixtureRequest) -> Path:
    """Python of the environment with xprof, which reads profiler traces. Skip the test if it is missing."""
    skip_without(request.node, "xprof")
    return XPROF_PYTHON


@pytest.fixture(scope="session")
def prometheus_programs() -> dict[str, str]:
    """Paths of Prometheus by major version. Version 3 is built once, which takes minutes."""
    build = subprocess.run([sys.executable, PROMETHEUS / "build.py"], check=True, stdout=subprocess.PIPE, text=True)
    return {"2": shutil.which("prometheus") or "", "3": build.stdout.strip()}


@pytest.fixture(scope="session")
def scraped(tmp_path_factory: pytest.TempPathFactory, prometheus_programs: dict[str, str]) -> Iterator[Any]:
    """A run that Prometheus 2 and Prometheus 3 scraped (`integration/prometheus_server.py`)."""
    from prometheus_server import scraped_run

    with scraped_run(tmp_path_factory.mktemp("scraped"), prometheus_programs) as run:
        yield run


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The path of the browser, for tests that need "chromium"."""
    return chromium() or ""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this suite."""
    parser.addoption(
        "--strict-skips", action="store_true", help="Fail tests whose skip this machine could have avoided."
    )
    parser.addoption(
        "--defer-long",
        type=int,
        default=0,
        metavar="DAYS",
        help="Skip long groups of tests that passed less than DAYS days ago with other inputs. Default: 0.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the options, and remove the user's settings from the environment of the tests."""
    global defer_days
    defer_days = config.getoption("--defer-long")
    for name in [name for name in os.environ if name.startswith("DEVBENCH_")]:
        del os.environ[name]


@pytest.hookimpl(tryfirst=True)  # before the hook of pytest-xdist, which reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse unknown capabilities, keep each file in one process, and add the marks that follow from folders."""
    for item in items:
        for name in capabilities(item):
            if name not in CAPABILITIES:
                raise pytest.UsageError(f"{item.nodeid} needs '{name}', which is not one of {', '.join(CAPABILITIES)}")
        item.add_marker(pytest.mark.xdist_group(_process_group(item)))
        if item.path.parent.name == "unit":
            item.add_marker(pytest.mark.essential)
        if not group_of(item) and (group := _group(item)):
            item.add_marker(pytest.mark.group(group))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test if the machine lacks a capability that it needs, or if its group need not run."""
    for name in capabilities(item):
        skip_without(item, name)
    if (group := group_of(item)) and (reason := _unneeded(group, item.path)):
        item.stash[UNAVOIDABLE] = True
        pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With `--strict-skips`, turn the avoidable skip of a test into a failure."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and not item.stash.get(UNAVOIDABLE, False):
        _fail_if_strict(item.config, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """With `--strict-skips`, turn the skip of a file into an error."""
    report = yield
    if report.skipped:
        _fail_if_strict(collector.config, report)
    return report


def _process_group(item: pytest.Item) -> str:
    """Return the group of tests that run in one process: those of a file, of the images, or of the scraped run."""
    if "scraped" in getattr(item, "fixturenames", ()):
        return "scraped"
    return "images" if item.path.parent.name == "images" else item.path.name


def _group(item: pytest.Item) -> str | None:
    """Return the group (`inputs.py`) that a test joins by its folder, or None if it always runs."""
    folder = item.path.parent.name
    essential, once, quiet = (item.get_closest_marker(name) is not None for name in ("essential", "once", "quiet"))
    if Path(sys.prefix) == DIRECTML_ENVIRONMENT:
        # Everything but the worker is tested with TensorFlow 2.21.
        always = once or (essential and folder == "integration")
        if folder == "workers" and not always:
            return "workers-2.10"
        return "tensorflow-2.10" if folder in ("integration", "scripts") and not always else None
    if essential or item.path.name in ALWAYS:
        return None
    if quiet:
        return "quiet"
    if item.path.name in PROMETHEUS_TESTS:
        return "prometheus"
    return GROUP_OF_FOLDER.get(folder)


def _unneeded(group: str, test: Path) -> str | None:
    """Return why the tests of a file that belong to a group need not run, or None if they have to."""
    import inputs

    if inputs.unchanged(group, test):
        return f"the inputs have not changed since it passed. Remove its line in tests/passed/{group} to run it."
    if inputs.deferred(group, test, defer_days):
        return f"--defer-long {defer_days} postpones the group {group}. Run `make test-all` to run it."
    return None


def _fail_if_strict(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    if config.getoption("--strict-skips"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"--strict-skips does not allow this skip: {reason}"
