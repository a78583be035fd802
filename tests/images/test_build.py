"""What `images/build` hands to the engine: the package index's certificates, wherever pip would find them; the commit.

In place of an engine a program notes what it is asked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from bench.version import __version__
from images.engine import ROOT

pytestmark = [pytest.mark.once, pytest.mark.needs("posix")]


def asked(folder: Path, tree: Path = ROOT, **variables: str) -> tuple[list[str], str]:
    """What the engine is asked, word by word, and what the script says on stderr.

    Args:
        folder: stands for the user's own folder.
        tree: holds the script and what it builds from.
        variables: of the environment.
    """
    engine = folder / "engine"
    engine.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$HOME/asked"\n', encoding="utf-8")
    engine.chmod(0o755)
    given = {"PATH": os.environ["PATH"], "HOME": str(folder), "ENGINE": str(engine), **variables}
    command = [str(tree / "images" / "build"), "cpu"]
    done = subprocess.run(command, env=given, check=True, capture_output=True, text=True)
    return (folder / "asked").read_text(encoding="utf-8").splitlines(), done.stderr


def secrets(folder: Path, **variables: str) -> dict[str, str]:
    """The secrets of a build, by id: their files; as `asked`."""
    words, _ = asked(folder, ROOT, **variables)
    named = [after for word, after in pairwise(words) if word == "--secret"]
    return dict(each.removeprefix("id=").split(",src=") for each in named)


def arguments(words: list[str]) -> dict[str, str]:
    """The build's arguments, by name."""
    return dict(after.split("=", 1) for word, after in pairwise(words) if word == "--build-arg")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's folder with certificates in it."""
    for name in ("ours.pem", "other.pem"):
        (tmp_path / name).write_text("a certificate\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("where", [".config/pip/pip.conf", ".pip/pip.conf", "Library/Application Support/pip/pip.conf"])
@pytest.mark.parametrize("line", ["cert = {}", "  cert={}", "cert: {}"])
def test_the_certificates_that_pips_configuration_names_reach_the_build(home: Path, where: str, line: str) -> None:
    configuration = home / where
    configuration.parent.mkdir(parents=True)
    configuration.write_text("[global]\ntimeout = 60\n" + line.format(home / "ours.pem") + "\n", encoding="utf-8")
    found = secrets(home)
    assert found["pip"] == str(configuration)
    assert found["certificates"] == str(home / "ours.pem")


@pytest.mark.parametrize("variable", ["PIP_CERT", "SSL_CERT_FILE"])
def test_a_variable_that_names_certificates_wins_over_the_configuration(home: Path, variable: str) -> None:
    configuration = home / "pip.conf"
    configuration.write_text(f"[global]\ncert = {home / 'ours.pem'}\n", encoding="utf-8")
    found = secrets(home, PIP_CONFIG_FILE=str(configuration), **{variable: str(home / "other.pem")})
    assert found == {"pip": str(configuration), "certificates": str(home / "other.pem")}


def test_certificates_that_are_not_there_are_no_secret(home: Path) -> None:
    assert "certificates" not in secrets(home, PIP_CERT=str(home / "none.pem"))


@pytest.mark.parametrize(("given", "name"), [("", "devbench"), ("ours", "ours")])
def test_images_are_named_as_asked_and_not_by_the_variable_that_wsl_sets(home: Path, given: str, name: str) -> None:
    words, _ = asked(home, NAME="DESKTOP-X", IMAGE_NAME=given)
    tags = [after for word, after in pairwise(words) if word == "--tag"]
    assert tags == [f"{name}:cpu", f"{name}:{__version__}-cpu"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What the script reads of the project, in no repository."""
    made = tmp_path / "tree"
    for name in ("images/build", "bench/version.py", "Dockerfile.cpu"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, made / name)
    return made


@pytest.fixture
def repository(tree: Path) -> Path:
    """The same in a repository, committed where clocks are two hours ahead of UTC."""
    if shutil.which("git") is None:
        pytest.skip("there is no git on the path (on Debian: apt-get install git)")
    git(tree, "init", "--quiet")
    git(tree, "add", ".")
    git(tree, "-c", "user.name=Somebody", "-c", "user.email=somebody@localhost", "commit", "--quiet", "--message=All")
    return tree


def git(tree: Path, *words: str) -> str:
    """What git prints."""
    given = {"PATH": os.environ["PATH"], "HOME": str(tree.parent), "GIT_COMMITTER_DATE": "2024-02-03T01:05:06+02:00"}
    return subprocess.run(["git", "-C", tree, *words], env=given, check=True, capture_output=True, text=True).stdout


def test_an_image_names_its_commit_and_the_commits_time_in_utc_without_gnus_date(home: Path, repository: Path) -> None:
    programs = home / "programs"
    programs.mkdir()
    (programs / "date").write_text('#!/bin/sh\necho >&2 "date: illegal option -- -"\nexit 1\n', encoding="utf-8")
    (programs / "date").chmod(0o755)
    words, said = asked(home, repository, PATH=f"{programs}:{os.environ['PATH']}", TZ="America/New_York")
    told = arguments(words)
    assert told["REVISION"] == git(repository, "rev-parse", "HEAD").strip()
    assert (told["SOURCE_DATE_EPOCH"], told["CREATED"]) == ("1706915106", "2024-02-02T23:05:06Z")
    assert said == ""


def test_a_change_that_is_not_committed_is_told(home: Path, repository: Path) -> None:
    with (repository / "Dockerfile.cpu").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    told = arguments(asked(home, repository)[0])
    assert told["REVISION"] == git(repository, "rev-parse", "HEAD").strip() + "-dirty"


def test_without_a_repository_the_revision_is_unknown_and_nothing_is_complained_of(home: Path, tree: Path) -> None:
    words, said = asked(home, tree)
    told = arguments(words)
    assert (told["REVISION"], told["SOURCE_DATE_EPOCH"]) == ("unknown", "315532800")
    assert (told["CREATED"], said) == ("1980-01-01T00:00:00Z", "")


def test_a_repository_that_git_refuses_to_read_is_a_warning_in_gits_own_words(home: Path, repository: Path) -> None:
    words, said = asked(home, repository, GIT_TEST_ASSUME_DIFFERENT_OWNER="1", GIT_CONFIG_NOSYSTEM="1")
    assert arguments(words)["REVISION"] == "unknown"
    assert "warning: git failed, so the image has no revision" in said
    assert "dubious ownership" in said
    assert "safe.directory" in said
