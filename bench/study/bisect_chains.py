"""What can be bisected: released versions of a package, and commits of a repository. Each can race against another."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.analyse.compare import compare
from bench.config.settings import RunSettings
from bench.errors import NotApplicable, OutputError, SettingsError, UsageError
from bench.machine import pip, uv
from bench.machine.urls import without_user
from bench.model.bisection import Found, Race
from bench.model.result import Result
from bench.study import checkout, made_envs

Measure = Callable[[Sequence[str | Path], RunSettings], Sequence[Result]]
"""Measures programs, interleaved, and returns their results."""

PRE = re.compile(r"^[^+]*\d[-_.]?(a|b|c|rc|alpha|beta|pre|preview|dev)[-_.]?\d", re.IGNORECASE)
"""A version that is a pre-release. What follows "+" is a local version, such as that of a build for cuda11."""

PINNED = re.compile(r"(?P<package>[A-Za-z0-9._-]+)(?P<extras>\[[A-Za-z0-9._,-]+\])?==(?P<version>\S+)")


class Chain(Protocol):
    """Versions or commits, from a good one to a bad one."""

    names: list[str]
    settings: RunSettings

    def race(self, name: str, against: str) -> Race:
        """Race one name of the chain against another."""


def chain(program: str, good: str, bad: str, settings: RunSettings, measure: Measure, more: str = "") -> Chain:
    """Return the chain between two ends.

    Args:
        program: name or file.
        good: the fast end: a pinned requirement, such as tensorflow==2.19.0, or a commit.
        bad: the slow end, of the same kind.
        settings: of each race.
        measure: measures programs.
        more: other requirements of the environments, separated by spaces.

    Raises:
        UsageError: the ends are of different kinds, or there is no such version or commit.
    """
    ends = [PINNED.fullmatch(end) for end in (good, bad)]
    if all(ends):
        packages = [end["package"] for end in ends if end]
        if len({re.sub(r"[-_.]+", "-", package).lower() for package in packages}) > 1:
            raise UsageError(f"{good} and {bad} are different packages", "Name two versions of one package.")
        bounds = [end["version"] for end in ends if end]
        available = released(packages[0], made_envs.chosen_python(more), pre=any(map(PRE.search, bounds)))
        versions = between(bounds, available, packages[0])
        extras = ends[1]["extras"] or "" if ends[1] else ""
        names = [f"{packages[0]}{extras}=={version}" for version in versions]
        return Versions(names, program, settings, measure, more)
    if any(ends):
        raise UsageError(
            f"--good {good} and --bad {bad} mix a version and a commit", "Name two versions, or two commits."
        )
    if more:
        raise UsageError("--with applies only to versions of a package", "Leave it out.")
    path = Path(program)
    root = checkout.root_of(path)
    return Commits(checkout.commits(root, good, bad), root, path, settings, measure)


def released(package: str, python: str | None = None, pre: bool = False) -> list[str]:
    """Return the versions of a package in uv's own index, or in the one that pip is configured for, the oldest first.

    Args:
        package: its name.
        python: version of Python. Default: that of devbench.
        pre: whether to include pre-releases.

    Raises:
        SettingsError: pip cannot list them.
    """
    options = ["--pre"] * pre + (["--python-version", python, "--only-binary", ":all:"] if python else [])
    done = pip.run("index", "versions", *options, package, variables=uv.index_for_pip())
    listed = re.search(r"^Available versions: (.+)$", done.stdout, re.MULTILINE)
    if done.returncode or listed is None:
        said = without_user(" ".join(done.stderr.split()))[-300:]
        raise SettingsError(f"pip cannot list the versions of {package}: {said}", "Check the name and the network.")
    return [version.strip() for version in reversed(listed[1].split(","))]


def between(ends: Sequence[str], versions: Sequence[str], package: str) -> list[str]:
    """Return the versions from one end to the other. An end may have more or fewer ".0" than the index.

    Raises:
        UsageError: an end is not among them, or the ends are in the wrong order.
    """
    listed = {_normal(version): version for version in versions}
    ends = [end if end in versions else listed.get(_normal(end), end) for end in ends]
    for end in ends:
        if end not in versions:
            nearest = ", ".join(versions[-5:])
            raise UsageError(
                f"{package} {end} is not available for this version of Python", f"The latest versions are {nearest}."
            )
    first, last = (versions.index(end) for end in ends)
    if first >= last:
        raise UsageError(f"{package} {ends[0]} is not older than {ends[1]}", "Name the older version with --good.")
    return list(versions[first : last + 1])


def _normal(version: str) -> str:
    """Return a version as others write it too: 2.20rc1 for v2.20.0-RC1."""
    public, plus, local = version.lower().removeprefix("v").partition("+")
    public = re.sub(r"[-_.]?(rc|c|preview|pre)[-_.]?(?=\d)", "rc", public)
    public = re.sub(r"[-_.]?(alpha|beta|a|b)[-_.]?(?=\d)", lambda match: match[1][0], public)
    return re.sub(r"(\.0+)+(?=$|[a-z]|\.[a-z])", "", public) + plus + local


@dataclass
class Versions:
    """Versions of a package, each in an environment of its own."""

    names: list[str]
    program: str
    settings: RunSettings
    measure: Measure
    more: str = ""

    def race(self, name: str, against: str) -> Race:
        """Race one name of the chain against another."""
        start = time.monotonic()
        try:
            envs = {each: str(made_envs.environment(f"{each} {self.more}".strip())) for each in (against, name)}
        except uv.Unreachable:
            raise  # the version may be installed later
        except SettingsError as error:
            return _skipped(name, against, error.message, start)
        settings = self.settings.model_copy(update={"env": envs})
        return _raced(self, name, against, lambda: self.measure([self.program], settings), start)


@dataclass
class Commits:
    """Commits of the repository that a program is in, each in a worktree of its own."""

    names: list[str]
    root: Path
    program: Path
    settings: RunSettings
    measure: Measure

    def race(self, name: str, against: str) -> Race:
        """Race one name of the chain against another."""
        start = time.monotonic()
        with ExitStack() as stack:
            try:
                files = [
                    stack.enter_context(checkout.at(self.root, self.program, each, each[:12], self.settings.output))
                    for each in (against, name)
                ]
            except UsageError as error:
                return _skipped(name, against, error.message, start)
            settings = self.settings.model_copy(update={"compare": True})
            return _raced(self, name, against, lambda: self.measure(files, settings), start)


def _skipped(name: str, against: str, reason: str, start: float) -> Race:
    return Race(name=name, against=against, verdict="skipped", reason=reason, seconds=time.monotonic() - start)


def _raced(chain: Chain, name: str, against: str, measure: Callable[[], Sequence[Result]], start: float) -> Race:
    """Race, and return what the race showed. What does not run is skipped."""
    try:
        results = measure()
    except (OutputError, uv.Unreachable):  # of the command, not of one version
        raise
    except UsageError as error:
        if isinstance(error, NotApplicable) and (against, name) == (chain.names[0], chain.names[-1]):
            raise  # its hint tells what to change; a commit between the ends may support something else
        return _skipped(name, against, error.message, start)
    failed = next((result.failure for result in reversed(results) if result.failure is not None), None)
    if failed is not None:
        return _skipped(name, against, failed.brief, start)
    comparison = compare(results[0], results[-1], chain.settings.threshold)
    if comparison.unfair:
        return _skipped(name, against, f"it cannot be compared: {comparison.unfair[0].reason}", start)
    verdicts: dict[str, Found] = {"slower": "bad", "same": "good", "faster": "good"}
    return Race(
        name=name,
        against=against,
        verdict=verdicts.get(comparison.verdict, "undecided"),
        ratio=comparison.ratio,
        seconds=time.monotonic() - start,
    )
