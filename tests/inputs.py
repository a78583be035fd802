"""Groups of slow tests that are skipped as long as none of their inputs has changed since they last passed.

A group's inputs are files and the version of Python. `tests/passed/GROUP` holds the date on which the group last
passed, and the hash of its inputs on that date. A session in which all tests of a group pass writes that file: commit
it. To run a group whose inputs are unchanged, remove its file.

The groups in `LONG` take two hours together, too long for each change. `pytest --defer-long DAYS` also skips those that
passed less than DAYS days ago with other inputs, and names them at the end.

A test joins a group by `@pytest.mark.needs("changed-GROUP")`, or by its folder (`conftest.py`). Essential tests join no
group by their folder, so they always run.
"""

from __future__ import annotations

import hashlib
import sys
from datetime import date
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PASSED = ROOT / "tests" / "passed"

_IMAGE = (
    ".dockerignore",
    "images/base",
    "images/build",
    "images/build.lock",
    "images/devbench",
    "images/packages",
    "images/tools.lock",
    "tests/images/engine.py",
    # How a run looks for its device, and what it says without one. All else in the wheel is the same in the cpu image,
    # which is built and run every time.
    "bench/__main__.py",
    "bench/backends/*.py",
    "bench/errors.py",
    "bench/machine/gpu.py",
    "bench/machine/installed.py",
    "bench/machine/system.py",
    "bench/model/check.py",
    "bench/model/device.py",
    "bench/model/spec.py",
    "bench/version.py",
)

_RUN = (
    "bench/**/*",
    # What no run, sweep or explanation executes. `test_inputs.py` compares this with the imports.
    "!bench/hub/**/*",
    "!bench/watcher/**/*",
    "!bench/render/charts/**/*",
    "!bench/render/report/**/*",
    "!bench/cli/await_.py",
    "!bench/cli/hub.py",
    "!bench/cli/push.py",
    "!bench/cli/report.py",
    "!bench/cli/run_token.py",
    "!bench/cli/watch.py",
    "!bench/config/hub_settings.py",
    "!bench/model/schema.*",
    "images/dev.lock",
    "tests/integration/devbench_process.py",
    "tests/integration/warm_*.py",
)
"""What measures a program: everything that `run`, `sweep`, `explain`, `compare`, `list` and `doctor` can execute."""

_WORKER = (
    "bench/backends/*.py",
    "bench/config/*.py",
    "bench/datasets/**/*.py",
    "bench/errors.py",
    "bench/machine/*.py",
    "bench/model/*.py",
    "bench/registry/*.py",
    "bench/session/*.py",
    "bench/whatif/*.py",
    "bench/worker/**/*.py",
    "bench/workloads/*.py",
    "images/dev-directml.lock",
    "images/directml.lock",
)
"""All that runs in a worker, and what the parent asks of it."""

GROUPS: dict[str, tuple[str, ...]] = {
    "cuda-image": (*_IMAGE, "Dockerfile.cuda", "images/cuda.lock", "tests/images/test_cuda.py"),
    "directml-image": (
        *_IMAGE,
        "Dockerfile.directml",
        "images/directml.lock",
        "tests/images/base_images.py",
        "tests/images/test_directml.py",
        "tests/images/test_layers.py",
        "tests/images/test_sbom.py",
        "tests/images/test_contents.py",
    ),
    "hub-kills": (
        "bench/cli/hub.py",
        "bench/cli/push.py",
        "bench/config/*.py",
        "bench/errors.py",
        "bench/hub/db/**/*.py",
        "bench/hub/problems.py",
        "bench/hub/web/*.py",
        "bench/model/explanation.py",
        "bench/model/failure.py",
        "bench/model/interval.py",
        "bench/model/placement.py",
        "bench/model/profile.py",
        "bench/model/record.py",
        "bench/model/result.py",
        "bench/model/run_state.py",
        "bench/model/sample.py",
        "bench/model/telemetry.py",
        "bench/publish/hub/*.py",
        "bench/publish/recorder.py",
        "bench/signals.py",
        "bench/store/*.py",
        "images/hub.lock",
        "tests/hub/hubs.py",
        "tests/hub/killable.py",
        "tests/hub/postgres.py",
        "tests/hub/test_hub_killed.py",
    ),
    "hub": (
        "bench/**/*",
        "!bench/backends/**/*",
        "!bench/datasets/**/*",
        "!bench/registry/**/*",
        "!bench/session/**/*",
        "!bench/study/**/*",
        "!bench/whatif/**/*",
        "!bench/worker/**/*",
        "!bench/workloads/**/*",
        "images/dev.lock",
        "images/hub.lock",
        "tests/browser/*.py",
        "tests/hub/*.py",
        "tests/unit/synthetic.py",
    ),
    "images": (
        "bench/**/*",
        ".dockerignore",
        "Dockerfile*",
        "compose*.yaml",
        "Makefile",
        "images/**/*",
        "observe/**/*",
        "pyproject.toml",
        "tests/images/*",
        "tests/scripts/programs/**/*",
    ),
    "programs": (*_RUN, "tests/integration/**/*.py"),
    "prometheus": (
        *_RUN,
        "charts/devbench/**/*",
        "dashboards/*.py",
        "tests/integration/prometheus_server.py",
        "tests/integration/test_dashboard_queries.py",
        "tests/integration/test_prometheus.py",
    ),
    "quiet": (*_RUN, "tests/integration/**/*.py"),
    "scripts": (*_RUN, "action.yml", "tests/integration/tensorflow_script.py", "tests/scripts/**/*"),
    "tensorflow-2.10": (*_WORKER, "tests/integration/**/*.py", "tests/scripts/**/*.py"),
    "workers": (*_RUN, "tests/workers/*.py"),
    "workers-2.10": (*_WORKER, "bench/study/scale*.py", "bench/analyse/scaling.py", "tests/workers/*.py"),
}
"""Patterns of each group's inputs, relative to the root of the repository. "!" excludes files."""


LONG = ("programs", "prometheus", "quiet", "scripts", "tensorflow-2.10", "workers", "workers-2.10")
"""Groups that measure programs with TensorFlow. All together take two hours on two cores."""


def inputs(group: str, root: Path = ROOT) -> list[Path]:
    """Return the input files of a group, sorted."""
    included, excluded = set[Path](), set[Path]()
    for pattern in GROUPS[group]:
        (excluded if pattern.startswith("!") else included).update(root.glob(pattern.removeprefix("!")))
    return sorted(path for path in included - excluded if path.is_file() and path.parent.name != "__pycache__")


def digest(group: str, root: Path = ROOT) -> str:
    """Return the hash of the version of Python, and of the names and contents of a group's inputs."""
    total = hashlib.sha256(f"Python {sys.version_info.major}.{sys.version_info.minor}\n".encode())
    for path in inputs(group, root):
        total.update(f"{path.relative_to(root).as_posix()}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


@cache
def unchanged(group: str) -> bool:
    """Return whether a group last passed with the inputs that it has now."""
    file = PASSED / group
    return file.exists() and file.read_text(encoding="utf-8").split()[-1:] == [digest(group)]


def passed_on(group: str) -> date | None:
    """Return the day on which a group last passed, or None if that is unknown."""
    file = PASSED / group
    words = file.read_text(encoding="utf-8").split() if file.exists() else []
    return date.fromisoformat(words[words.index("on") + 1]) if "on" in words else None


def deferred(group: str, days: int) -> bool:
    """Return whether a group that has to run can wait: it is long, and it passed less than `days` days ago."""
    day = passed_on(group)
    return group in LONG and not unchanged(group) and day is not None and (date.today() - day).days < days


def write(group: str, passed: str) -> None:
    """Record that a group passed today with the inputs of this hash."""
    text = f"The tests of the group {group} passed on {date.today()} with inputs of this hash:\n{passed}\n"
    (PASSED / group).write_text(text, encoding="utf-8")
