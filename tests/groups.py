"""Record which groups of tests passed with which inputs (`inputs.py`). A plugin of pytest."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import inputs
import pytest
from marks import capabilities

CHANGED = "changed-"
"""Prefix of the capability that the tests of a group need: that one of its inputs changed."""


@dataclass
class GroupRun:
    """The state of a group in a session.

    Args:
        digest: hash of the group's inputs at the start.
        tests: ids of all tests of the group that this machine can run, including those that the session deselects.
        passed: ids of the tests that passed.
    """

    digest: str
    tests: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)


class Session:
    """What a session, or one of its processes, knows of its groups.

    Args:
        groups: by name.
        files: paths of the collected test files.
    """

    def __init__(self) -> None:
        self.groups: dict[str, GroupRun] = {}
        self.files: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Find the groups before tests are deselected."""
        from conftest import check

        for item in items:
            self.files.add(str(item.path))
            needed = list(capabilities(item))
            others = [missing for name in needed if not name.startswith(CHANGED) and (missing := check(name))]
            if any(not missing.avoidable for missing in others):
                continue
            for name in needed:
                if name.startswith(CHANGED):
                    group = name.removeprefix(CHANGED)
                    if group not in self.groups:
                        self.groups[group] = GroupRun(inputs.digest(group))
                    self.groups[group].tests.add(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note which tests passed."""
        if report.when == "call" and report.passed:
            for group in self.groups.values():
                # pytest-xdist appends "@" and the name of its group to the id.
                group.passed |= {report.nodeid, report.nodeid.rpartition("@")[0]} & group.tests

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a process of pytest-xdist knows."""
        output = getattr(node, "workeroutput", {})
        self.files.update(output.get("files", ()))
        for name, (digest, tests, passed) in output.get("groups", {}).items():
            group = self.groups.setdefault(name, GroupRun(digest))
            group.tests |= set(tests)
            group.passed |= set(passed)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Record each group whose tests all passed, or hand over what this process knows."""
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            groups = self.groups.items()
            output["files"] = sorted(self.files)
            output["groups"] = {name: (run.digest, sorted(run.tests), sorted(run.passed)) for name, run in groups}
            return
        if any("::" in word for word in session.config.args):
            return  # these are not all tests of their files
        for name, run in self.groups.items():
            paths = inputs.inputs(name)
            complete = {str(path) for path in paths if path.name.startswith("test_")} <= self.files
            if complete and run.tests == run.passed and run.digest == inputs.digest(name):
                inputs.write(name, run.digest)

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Name the groups that the session postponed."""
        days = config.getoption("--defer-long", 0)
        for name in sorted(name for name in self.groups if inputs.deferred(name, days)):
            terminalreporter.write_line(
                f"--defer-long postpones the group {name}: it passed on {inputs.passed_on(name)} with other inputs."
            )


def pytest_configure(config: pytest.Config) -> None:
    """Watch the session."""
    if Path(str(config.rootpath)) == inputs.ROOT:
        config.pluginmanager.register(Session())
