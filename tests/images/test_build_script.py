"""What `images/build` passes to the engine: the commit, labels, and the certificates for the package index.

A script stands in for the engine. It records its arguments, and knows the digest of the base image if it is told.
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


ENGINE = """#!/bin/sh
echo "$@" >> "$HOME/calls"
case "$1 $2 $3" in
  "build "*) printf "%s\\n" "$@" > "$HOME/arguments" ;;
  "image inspect --format") [ -n "$DIGEST" ] && echo "$DIGEST" ;;
  *) [ -n "$DIGEST" ] ;;
esac
"""
"""Knows the base image if `DIGEST` is set."""

KNOWN = f"python@sha256:{'5' * 64}"


def run_build(
    folder: Path, tree: Path = ROOT, words: tuple[str, ...] = ("cpu",), **variables: str
) -> tuple[list[str], str]:
    """Run the script, and return the arguments of the engine and the standard error of the script.

    Args:
        folder: home folder of the user.
        tree: folder with the script and the sources of an image.
        words: arguments of the script.
        variables: environment variables.
    """
    engine = folder / "engine"
    engine.write_text(ENGINE, encoding="utf-8")
    engine.chmod(0o755)
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "ENGINE": str(engine), "DIGEST": KNOWN, **variables}
    command = [str(tree / "images" / "build"), *words]
    process = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    return (folder / "arguments").read_text(encoding="utf-8").splitlines(), process.stderr


def secrets(folder: Path, **variables: str) -> dict[str, str]:
    """Return the files of the secrets of a build by id."""
    arguments, _ = run_build(folder, ROOT, ("cpu",), **variables)
    values = [value for option, value in pairwise(arguments) if option == "--secret"]
    return dict(value.removeprefix("id=").split(",src=") for value in values)


def build_arguments(arguments: list[str]) -> dict[str, str]:
    """Return the build arguments by name."""
    return dict(value.split("=", 1) for option, value in pairwise(arguments) if option == "--build-arg")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with certificates."""
    for name in ("ours.pem", "other.pem"):
        (tmp_path / name).write_text("a certificate\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("where", [".config/pip/pip.conf", ".pip/pip.conf", "Library/Application Support/pip/pip.conf"])
@pytest.mark.parametrize("line", ["cert = {}", "  cert={}", "cert: {}"])
def test_the_certificates_in_the_configuration_of_pip_reach_the_build(home: Path, where: str, line: str) -> None:
    configuration = home / where
    configuration.parent.mkdir(parents=True)
    configuration.write_text("[global]\ntimeout = 60\n" + line.format(home / "ours.pem") + "\n", encoding="utf-8")
    files = secrets(home)
    assert files["pip"] == str(configuration)
    assert files["certificates"] == str(home / "ours.pem")


@pytest.mark.parametrize("variable", ["PIP_CERT", "SSL_CERT_FILE"])
def test_a_variable_with_certificates_overrides_the_configuration(home: Path, variable: str) -> None:
    configuration = home / "pip.conf"
    configuration.write_text(f"[global]\ncert = {home / 'ours.pem'}\n", encoding="utf-8")
    files = secrets(home, PIP_CONFIG_FILE=str(configuration), **{variable: str(home / "other.pem")})
    assert files == {"pip": str(configuration), "certificates": str(home / "other.pem")}


def test_missing_certificates_are_not_a_secret(home: Path) -> None:
    assert "certificates" not in secrets(home, PIP_CERT=str(home / "none.pem"))


@pytest.mark.parametrize(("image_name", "name"), [("", "devbench"), ("ours", "ours")])
def test_images_are_named_by_image_name_and_not_by_the_variable_that_wsl_sets(
    home: Path, image_name: str, name: str
) -> None:
    arguments, _ = run_build(home, NAME="DESKTOP-X", IMAGE_NAME=image_name)
    tags = [value for option, value in pairwise(arguments) if option == "--tag"]
    assert tags == [f"{name}:cpu", f"{name}:{__version__}-cpu"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files that the script reads, outside a repository."""
    tree = tmp_path / "tree"
    for name in ("images/build", "bench/version.py", "Dockerfile.cpu", "pyproject.toml"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    return tree


@pytest.fixture
def repository(tree: Path) -> Path:
    """The same files in a repository, with a commit in a time zone two hours ahead of UTC."""
    if shutil.which("git") is None:
        pytest.skip("git is not on the path (on Debian: apt-get install git)")
    git(tree, "init", "--quiet")
    git(tree, "add", ".")
    git(tree, "-c", "user.name=Somebody", "-c", "user.email=somebody@localhost", "commit", "--quiet", "--message=All")
    return tree


def git(tree: Path, *arguments: str) -> str:
    """Run git and return its output."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(tree.parent), "GIT_COMMITTER_DATE": "2024-02-03T01:05:06+02:00"}
    return subprocess.run(
        ["git", "-C", tree, *arguments], env=environ, check=True, capture_output=True, text=True
    ).stdout


def test_an_image_has_its_commit_and_the_utc_time_of_the_commit_without_gnu_date(home: Path, repository: Path) -> None:
    programs = home / "programs"
    programs.mkdir()
    (programs / "date").write_text('#!/bin/sh\necho >&2 "date: illegal option -- -"\nexit 1\n', encoding="utf-8")
    (programs / "date").chmod(0o755)
    arguments, stderr = run_build(home, repository, PATH=f"{programs}:{os.environ['PATH']}", TZ="America/New_York")
    values = build_arguments(arguments)
    assert values["REVISION"] == git(repository, "rev-parse", "HEAD").strip()
    assert (values["SOURCE_DATE_EPOCH"], values["CREATED"]) == ("1706915106", "2024-02-02T23:05:06Z")
    assert stderr == ""


def test_an_uncommitted_change_marks_the_revision_as_dirty(home: Path, repository: Path) -> None:
    with (repository / "Dockerfile.cpu").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    values = build_arguments(run_build(home, repository)[0])
    assert values["REVISION"] == git(repository, "rev-parse", "HEAD").strip() + "-dirty"


def test_without_a_repository_the_revision_is_unknown_and_there_is_no_warning(home: Path, tree: Path) -> None:
    arguments, stderr = run_build(home, tree)
    values = build_arguments(arguments)
    assert (values["REVISION"], values["SOURCE_DATE_EPOCH"]) == ("unknown", "315532800")
    assert (values["CREATED"], stderr) == ("1980-01-01T00:00:00Z", "")


def test_a_repository_that_git_refuses_to_read_gives_a_warning_with_the_message_of_git(
    home: Path, repository: Path
) -> None:
    arguments, stderr = run_build(home, repository, GIT_TEST_ASSUME_DIFFERENT_OWNER="1", GIT_CONFIG_NOSYSTEM="1")
    assert build_arguments(arguments)["REVISION"] == "unknown"
    assert "warning: git failed, so the image has no revision" in stderr
    assert "dubious ownership" in stderr
    assert "safe.directory" in stderr


def labels(arguments: list[str]) -> dict[str, str]:
    """Return the labels that the engine is told to add, by their names without the prefix of OCI."""
    prefix = "--label=org.opencontainers.image."
    return dict(argument.removeprefix(prefix).split("=", 1) for argument in arguments if argument.startswith(prefix))


def test_an_image_has_the_digest_of_the_base_image_that_the_engine_knows(home: Path) -> None:
    arguments, stderr = run_build(home)
    assert labels(arguments)["base.digest"] == f"sha256:{'5' * 64}"
    assert stderr == ""
    default = "python:3.13-slim-trixie"
    assert f"ARG BASE_IMAGE={default}\n" in (ROOT / "Dockerfile.cpu").read_text(encoding="utf-8")
    assert f"image inspect --format {{{{index .RepoDigests 0}}}} {default}" in (home / "calls").read_text()


def test_a_base_image_that_the_engine_cannot_find_gives_a_warning_and_no_label(home: Path) -> None:
    arguments, stderr = run_build(home, BASE_IMAGE="registry.example/python:3.13", DIGEST="")
    assert "base.digest" not in labels(arguments)
    assert "does not know the digest of registry.example/python:3.13" in stderr
    assert "pull --quiet registry.example/python:3.13" in (home / "calls").read_text()


def test_the_addresses_of_the_project_are_labels_and_without_them_there_are_none(home: Path, tree: Path) -> None:
    project = (tree / "pyproject.toml").read_text(encoding="utf-8").partition("\n[project.urls]\n")[0]
    (tree / "pyproject.toml").write_text(project, encoding="utf-8")
    assert labels(run_build(home, tree)[0]).keys() == {"base.digest"}
    urls = """
[project.urls]
Homepage = "https://example.org/"
Source = "https://example.org/source"
Documentation = "https://example.org/docs"

[tool.other]
Source = "https://example.org/other"
"""
    (tree / "pyproject.toml").write_text(project + urls, encoding="utf-8")
    assert labels(run_build(home, tree)[0]) == {
        "base.digest": f"sha256:{'5' * 64}",
        "url": "https://example.org/",
        "source": "https://example.org/source",
        "documentation": "https://example.org/docs",
    }


@pytest.mark.parametrize("option", [("--platform", "linux/arm64"), ("--platform=linux/arm64",)])
def test_a_platform_is_passed_to_the_build_and_to_the_search_for_the_base_image(
    home: Path, option: tuple[str, ...]
) -> None:
    arguments, _ = run_build(home, words=(*option, "cpu"))
    assert ("--platform", "linux/arm64") in pairwise(arguments)
    assert "pull --quiet --platform linux/arm64 python:3.13-slim-trixie" in (home / "calls").read_text()


@pytest.mark.parametrize(("image", "reason"), [("cuda", "built without CUDA"), ("directml", "no wheel")])
@pytest.mark.parametrize("machine", ["", "aarch64", "arm64"])
def test_an_image_that_cannot_exist_for_arm64_is_refused_with_the_reason(
    home: Path, image: str, reason: str, machine: str
) -> None:
    programs = home / "programs"
    programs.mkdir()
    (programs / "uname").write_text(f"#!/bin/sh\necho {machine}\n", encoding="utf-8")
    (programs / "uname").chmod(0o755)
    words = ("cpu", image) if machine else ("--platform", "linux/arm64", "cpu", image)
    with pytest.raises(subprocess.CalledProcessError) as error:
        run_build(home, words=words, PATH=f"{programs}:{os.environ['PATH']}")
    assert error.value.returncode == 2
    assert f"Cannot build {image} for {machine or 'linux/arm64'}" in error.value.stderr
    assert reason in error.value.stderr
    assert not (home / "calls").exists()


def test_on_an_arm64_machine_every_image_can_be_built_for_amd64(home: Path) -> None:
    arguments, _ = run_build(home, words=("--platform", "linux/amd64", "cuda"))
    assert "Dockerfile.cuda" in arguments
