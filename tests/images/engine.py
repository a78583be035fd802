"""Podman as the tests use it: images are built by `images/build`, as users do, and run as users do.

No registry is asked. What a Dockerfile starts from is made here by Debian's own means, with no more in it than the
slim Python image has; the package index is reached as this machine's pip reaches it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.model.result import Result
from bench.registry import names, resolve

ROOT = Path(__file__).resolve().parents[2]
NAME = "devbench-test"
SECONDS = 900

RESTRICTED = ("--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--network=none")
"""What an image must be content with, whoever it runs as."""

BRIEF = ("--max-processes", "1", "--max-time", "5s")

WORKLOADS = sorted(set(names()) - {"transfer"})  # which has nothing to do on a CPU


def environment() -> dict[str, str]:
    """Variables for podman. Where only version 2 of control groups is there its own defaults do."""
    given = dict(os.environ)
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        given["CONTAINERS_CONF"] = str(Path(__file__).parent / "containers.conf")
    return given


def podman(*words: str, check: bool = True, timeout: float = SECONDS) -> subprocess.CompletedProcess[str]:
    """Runs podman and returns how it ended, with what it wrote.

    Raises:
        AssertionError: it failed, and `check`.
    """
    done = subprocess.run(
        ["podman", *words], env=environment(), capture_output=True, text=True, errors="replace", timeout=timeout
    )
    if check:
        assert done.returncode == 0, f"podman {' '.join(words)}:\n{done.stdout}\n{done.stderr}"
    return done


@contextmanager
def alone() -> Iterator[None]:
    """Within, no other process of the suite builds: what one has built the next one finds."""
    if sys.platform == "win32":
        raise NotImplementedError
    import fcntl

    with (Path(tempfile.gettempdir()) / f"{NAME}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(backend: str, base: str, name: str = NAME, *options: str) -> str:
    """Builds an image with the script that users build with; returns its name.

    Args:
        backend: which.
        base: image that it starts from.
        name: without the tag.
        options: of `podman build`.
    """
    variables = {**environment(), "ENGINE": "podman", "BASE_IMAGE": base, "IMAGE_NAME": name}
    given = ["--network=host", *options]
    command = [str(ROOT / "images" / "build"), backend, "--", *given]
    with alone():
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return f"{name}:{backend}"


@dataclass(frozen=True)
class Ended:
    """How a container ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What `--json` wrote; nothing else may be on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def results(self) -> list[Result]:
        """The results in that document."""
        return [Result.model_validate(each) for each in self.document["results"]]

    def said(self) -> str:
        """Everything that was shown, wrapped lines joined."""
        return " ".join(f"{self.out} {self.err}".split())


def run(image: str, *words: str, options: tuple[str, ...] = RESTRICTED) -> Ended:
    """Runs a container to its end, and removes it.

    Args:
        image: its name.
        words: what follows the image's name.
        options: of `podman run`.
    """
    done = podman("run", "--rm", *options, image, *words, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def run_all(image: str, *options: str) -> list[Ended]:
    """Run every workload that has something to do on a CPU, two containers at a time.

    Of a workload with cases, only the first case runs: all its cases need the same packages and files.
    """
    cases = {name: next(iter(resolve(name, {}).cases), None) for name in WORKLOADS}
    whole = [name for name, case in cases.items() if case is None]
    commands = [tuple(whole[::2]), tuple(whole[1::2])]
    commands += [(name, "--case", case) for name, case in cases.items() if case is not None]

    def run_one(words: tuple[str, ...]) -> Ended:
        command = ("run", *words, "--backend", "cpu", *BRIEF, "--data", "sample", "--json")
        return run(image, *command, options=(*RESTRICTED, *options))

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run_one, commands))


def complete(every: Collection[Ended]) -> list[Result]:
    """The results of such containers, which hold every workload, complete."""
    assert {each.code for each in every} == {0}, [each.err for each in every]
    results = [result for each in every for result in each.results]
    assert {each.spec.workload for each in results} == set(WORKLOADS)
    assert {each.status for each in results} == {"complete"}
    return results


def shell(image: str, script: str, *options: str) -> str:
    """What a shell script wrote in a container of an image."""
    return podman("run", "--rm", "--network=none", *options, "--entrypoint", "/bin/sh", image, "-euc", script).stdout


class Container:
    """A container under way, which is removed at the end.

    Args:
        image: its name.
        words: what follows the image's name.
        options: of `podman run`.
        waits: its first process is there, but has not become the image's program yet: see `begin`.
    """

    def __init__(self, image: str, *words: str, options: tuple[str, ...] = RESTRICTED, waits: bool = False) -> None:
        self.starting: subprocess.Popen[bytes] | None = None
        command = ("create",) if waits else ("run", "--detach")
        self.id = podman(*command, *options, image, *words).stdout.strip()
        if waits:
            podman("init", self.id)

    def until(self, text: str) -> None:
        """Waits until it has written a line that holds `text`."""
        logs = subprocess.Popen(
            ["podman", "logs", "--follow", self.id],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert logs.stdout is not None
        with logs.stdout as lines:
            heard = []
            for line in lines:
                heard.append(line)
                if text in line:
                    break
            else:
                raise AssertionError(f"it ended without a line that holds {text!r}:\n{''.join(heard)}")
        logs.terminate()
        logs.wait()

    def begin(self, program: str) -> int:
        """Lets the first process that waits become the image's program; returns its number here in that moment.

        Args:
            program: with which its command line then begins.
        """
        process = int(self.state("Pid"))
        line = Path(f"/proc/{process}/cmdline")
        self.starting = subprocess.Popen(["podman", "start", self.id], env=environment(), stdout=subprocess.DEVNULL)
        while not line.read_bytes().startswith(program.encode()):
            assert self.starting.poll() in (None, 0)
        return process

    def stop(self, seconds: int) -> int:
        """What `docker stop` does: SIGTERM, and SIGKILL after so many seconds; returns its exit code."""
        podman("stop", "--time", str(seconds), self.id)
        return int(self.state("ExitCode"))

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return int(podman("wait", self.id).stdout)

    def state(self, key: str) -> str:
        """One field of its state, such as OOMKilled."""
        return podman("inspect", "--format", f"{{{{.State.{key}}}}}", self.id).stdout.strip()

    def ended(self) -> Ended:
        """What it left when it ended."""
        code = self.wait()
        done = podman("logs", self.id)
        return Ended(code, done.stdout, done.stderr)

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        podman("rm", "--force", "--time", "0", self.id)
        if self.starting is not None:
            self.starting.wait()


def inspect(image: str) -> dict[str, Any]:
    """What the engine knows of an image."""
    (found,) = json.loads(podman("image", "inspect", image).stdout)
    assert isinstance(found, dict)
    return found


@contextmanager
def mounted(image: str) -> Iterator[Path]:
    """An image's files, to be read."""
    folder = Path(podman("image", "mount", image).stdout.strip())
    try:
        yield folder
    finally:
        podman("image", "unmount", image)


def variables(image: str) -> Mapping[str, str]:
    """The environment that an image gives."""
    return dict(each.split("=", 1) for each in inspect(image)["Config"]["Env"])
