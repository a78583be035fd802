"""Record which tests of a group passed with which inputs (`inputs.py`). A plugin of pytest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import inputs
import pytest
from marks import capabilities, group_of


@dataclass
class FileRun:
    """The tests of a file that belong to one group, in a session.

    Args:
        digest: hash of all that they depend on, at the start.
        tests: ids of all tests that this machine can run, including those that the session deselects.
        passed: ids of the tests that passed.
    """

    digest: str
    tests: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)


class Session:
    """What a session, or one of its processes, knows of its groups.

    Args:
        runs: by name of the group and path of the test file.
    """

    def __init__(self) -> None:
        self.runs: dict[tuple[str, str], FileRun] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Find the groups before tests are deselected."""
        from conftest import check

        for item in items:
            lacking = [missing for name in capabilities(item) if (missing := check(name))]
            if (group := group_of(item)) and all(missing.avoidable for missing in lacking):
                key = group, str(item.path)
                if key not in self.runs:
                    self.runs[key] = FileRun(inputs.digest(group, item.path))
                self.runs[key].tests.add(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note which tests passed."""
        if report.when == "call" and report.passed:
            # pytest-xdist appends "@" and the name of its group to the id.
            ids = {report.nodeid, report.nodeid.rpartition("@")[0]}
            for run in self.runs.values():
                run.passed |= ids & run.tests

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a process of pytest-xdist knows."""
        for group, path, digest, tests, passed in getattr(node, "workeroutput", {}).get("groups", ()):
            run = self.runs.setdefault((group, path), FileRun(digest))
            run.tests |= set(tests)
            run.passed |= set(passed)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Record each file whose tests of a group all passed, or hand over what this process knows."""
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output["groups"] = [
                (group, path, run.digest, sorted(run.tests), sorted(run.passed))
                for (group, path), run in self.runs.items()
            ]
            return
        if any("::" in word for word in session.config.args):
            return  # these are not all tests of their files
        inputs.digest.cache_clear()
        passed: dict[str, dict[Path, str]] = {}
        for (group, path), run in self.runs.items():
            if run.tests == run.passed and run.digest == inputs.digest(group, Path(path)):
                passed.setdefault(group, {})[Path(path)] = run.digest
        for group, digests in passed.items():
            inputs.write(group, digests)

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Count the files that the session postponed."""
        days = config.getoption("--defer-long", 0)
        deferred = Counter(group for group, path in self.runs if inputs.deferred(group, Path(path), days))
        for group, files in sorted(deferred.items()):
            terminalreporter.write_line(f"--defer-long postpones {files} files of the group {group}.")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the session."""
    if Path(str(config.rootpath)) == inputs.ROOT:
        config.pluginmanager.register(Session())
