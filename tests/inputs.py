"""Groups of slow tests. A file of such tests is skipped until something changes that it depends on.

A group's inputs are files and the version of Python. A test file depends on the inputs of its group, but not on other
test files, unless it imports them. `tests/passed/GROUP` holds, for each test file of the group, the day on which its
tests last passed, and hashes of the file and of all that it depended on that day. A session in which all tests of a
file pass updates `tests/passed`: commit it. To run tests whose inputs are unchanged, remove the line of their file.

The groups in `LONG` take two hours together, too long for each change. `pytest --defer-long DAYS` also skips a file of
such a group if the file is unchanged and passed less than DAYS days ago, although other inputs have changed since. A
file that passed longer ago runs every `PERIOD` days, on a day of its own, so that they do not all run on one day. The
skipped files are counted at the end.
"""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import dataclass
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
    "workers-2.10": (*_WORKER, "bench/study/scale*.py", "bench/analyse/scaling*.py", "tests/workers/*.py"),
}
"""Patterns of each group's inputs, relative to the root of the repository. "!" excludes files."""


LONG = ("programs", "prometheus", "quiet", "scripts", "tensorflow-2.10", "workers", "workers-2.10")
"""Groups that measure programs with TensorFlow. All together take two hours on two cores."""

PERIOD = 14
"""Each file that passed too long ago runs on one of so many days. Four or five files run on a day, for ten minutes."""


def inputs(group: str, root: Path = ROOT) -> list[Path]:
    """Return the input files of a group, sorted."""
    included, excluded = set[Path](), set[Path]()
    for pattern in GROUPS[group]:
        (excluded if pattern.startswith("!") else included).update(root.glob(pattern.removeprefix("!")))
    return sorted(path for path in included - excluded if path.is_file() and path.parent.name != "__pycache__")


@dataclass(frozen=True)
class Passed:
    """When the tests of a file last passed.

    Args:
        day: the day.
        file: hash of the test file on that day.
        inputs: hash of all that the file depended on, and of itself.
    """

    day: date
    file: str
    inputs: str


def is_test(path: Path) -> bool:
    """Return whether a file holds tests."""
    return path.name.startswith("test_") and path.suffix == ".py"


def content(path: Path) -> str:
    """Return the hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def digest(group: str, test: Path, root: Path = ROOT) -> str:
    """Return the hash of the version of Python, and of the names and contents of all that a test file depends on."""
    files = {path for path in inputs(group, root) if not is_test(path)} | _with_imports(test, root)
    total = hashlib.sha256(f"Python {sys.version_info.major}.{sys.version_info.minor}\n".encode())
    for path in sorted(files):
        total.update(f"{path.relative_to(root).as_posix()}\n{content(path)}\n".encode())
    return total.hexdigest()


def _with_imports(test: Path, root: Path) -> set[Path]:
    """Return a test file, and the test files that it imports."""
    found, rest = set[Path](), [test]
    while rest:
        path = rest.pop()
        found.add(path)
        for name in re.findall(r"^\s*(?:from|import) (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            places = (path.with_name(f"{name}.py"), *(root / "tests").glob(f"*/{name}.py"))
            rest += [place for place in places if place.exists() and place not in found]
    return found


@cache
def last_passed(group: str, test: Path) -> Passed | None:
    """Return when the tests of a file that belong to a group last passed, or None if they never did."""
    return _read(group).get(test.relative_to(ROOT).as_posix())


def unchanged(group: str, test: Path) -> bool:
    """Return whether the tests of a file passed with the inputs that they have now."""
    last = last_passed(group, test)
    return last is not None and last.inputs == digest(group, test)


def deferred(group: str, test: Path, days: int) -> bool:
    """Return whether the tests of a file, whose inputs changed, can wait.

    They can if they are long, the file itself is unchanged, and they passed less than `days` days ago or today is not
    their day. No file waits if `days` is 0.
    """
    last = last_passed(group, test)
    if not days or group not in LONG or last is None or last.file != content(test) or unchanged(group, test):
        return False
    return (date.today() - last.day).days < days or not has_turn(group, test, date.today())


def has_turn(group: str, test: Path, day: date) -> bool:
    """Return whether a day is one of those on which a file runs that passed too long ago."""
    name = f"{group} {test.relative_to(ROOT).as_posix()}"
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % PERIOD == day.toordinal() % PERIOD


def write(group: str, digests: dict[Path, str]) -> None:
    """Record that tests of a group passed today: the hash of the inputs, by test file. Forget files that are gone."""
    lines = {name: passed for name, passed in _read(group).items() if (ROOT / name).exists()}
    for test, total in digests.items():
        lines[test.relative_to(ROOT).as_posix()] = Passed(date.today(), content(test), total)
    text = "".join(f"{name} {last.day} {last.file} {last.inputs}\n" for name, last in sorted(lines.items()))
    (PASSED / group).write_text(text, encoding="utf-8")


def _read(group: str) -> dict[str, Passed]:
    path = PASSED / group
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {name: Passed(date.fromisoformat(day), *hashes) for name, day, *hashes in map(str.split, lines)}
