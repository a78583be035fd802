"""Podman for the tests. Images are built with `images/build` and run as users do.

No registry is needed. Base images are made from packages of Debian (`base_images.py`), with no more than the slim
Python images contain. The package index is the one that pip uses on this machine.
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
"""Options of `podman run` under which an image must work, as any user."""

BRIEF = ("--max-processes", "1", "--max-time", "5s")

WORKLOADS = sorted(set(names()) - {"transfer"})  # it is not applicable on a CPU


def environment() -> dict[str, str]:
    """Return the environment for podman. With control groups of version 2 only, its defaults work."""
    variables = dict(os.environ)
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        variables["CONTAINERS_CONF"] = str(Path(__file__).parent / "containers.conf")
    return variables


def podman(*arguments: str, check: bool = True, timeout: float = SECONDS) -> subprocess.CompletedProcess[str]:
    """Run podman and return its exit code and output.

    Raises:
        AssertionError: the command failed, and `check` is true.
    """
    process = subprocess.run(
        ["podman", *arguments], env=environment(), capture_output=True, text=True, errors="replace", timeout=timeout
    )
    if check:
        assert process.returncode == 0, f"podman {' '.join(arguments)}:\n{process.stdout}\n{process.stderr}"
    return process


@contextmanager
def build_lock() -> Iterator[None]:
    """Hold the lock for builds, so that other processes of the suite wait and then reuse what this one built."""
    if sys.platform == "win32":
        raise NotImplementedError
    import fcntl

    with (Path(tempfile.gettempdir()) / f"{NAME}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(backend: str, base: str, name: str = NAME, *options: str) -> str:
    """Build an image with `images/build`, as users do, and return its name.

    Args:
        backend: backend of the image.
        base: base image.
        name: name without the tag.
        options: options of `podman build`.
    """
    variables = {**environment(), "ENGINE": "podman", "BASE_IMAGE": base, "IMAGE_NAME": name}
    command = [str(ROOT / "images" / "build"), backend, "--", "--network=host", *options]
    with build_lock():
        process = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=3600)
    assert process.returncode == 0, f"{process.stdout[-4000:]}\n{process.stderr[-4000:]}"
    return f"{name}:{backend}"


@dataclass(frozen=True)
class CompletedContainer:
    """The exit code and output of a container."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The document of `--json`. Standard output contains nothing else."""
        document: dict[str, Any] = json.loads(self.out)
        return document

    @property
    def results(self) -> list[Result]:
        """The results in the document."""
        return [Result.model_validate(result) for result in self.document["results"]]

    def text(self) -> str:
        """Return both outputs, with wrapped lines joined."""
        return " ".join(f"{self.out} {self.err}".split())


def run(image: str, *arguments: str, options: tuple[str, ...] = RESTRICTED) -> CompletedContainer:
    """Run a container until it ends, and remove it.

    Args:
        image: name of the image.
        arguments: what follows the name of the image.
        options: options of `podman run`.
    """
    process = podman("run", "--rm", *options, image, *arguments, check=False)
    return CompletedContainer(process.returncode, process.stdout, process.stderr)


def run_all(image: str, *options: str) -> list[CompletedContainer]:
    """Run every workload that is applicable on a CPU, two containers at a time.

    Of a workload with cases, only the first runs, because all cases need the same packages and files.
    """
    cases = {name: next(iter(resolve(name, {}).cases), None) for name in WORKLOADS}
    without_cases = [name for name, case in cases.items() if case is None]
    commands = [tuple(without_cases[::2]), tuple(without_cases[1::2])]
    commands += [(name, "--case", case) for name, case in cases.items() if case is not None]

    def run_one(arguments: tuple[str, ...]) -> CompletedContainer:
        command = ("run", *arguments, "--backend", "cpu", *BRIEF, "--data", "sample", "--json")
        return run(image, *command, options=(*RESTRICTED, *options))

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run_one, commands))


def check_complete(runs: Collection[CompletedContainer]) -> list[Result]:
    """Check that the results of `run_all` are complete and include every workload. Return them."""
    assert {run.code for run in runs} == {0}, [run.err for run in runs]
    results = [result for run in runs for result in run.results]
    assert {result.spec.workload for result in results} == set(WORKLOADS)
    assert {result.status for result in results} == {"complete"}
    return results


def shell(image: str, script: str, *options: str) -> str:
    """Run a shell script in a container of an image, and return its output."""
    return podman("run", "--rm", "--network=none", *options, "--entrypoint", "/bin/sh", image, "-euc", script).stdout


class Container:
    """A running container. It is removed at the end.

    Args:
        image: name of the image.
        arguments: what follows the name of the image.
        options: options of `podman run`.
        suspended: do not run the program of the image until `begin` is called.
    """

    def __init__(
        self, image: str, *arguments: str, options: tuple[str, ...] = RESTRICTED, suspended: bool = False
    ) -> None:
        self.starting: subprocess.Popen[bytes] | None = None
        command = ("create",) if suspended else ("run", "--detach")
        self.id = podman(*command, *options, image, *arguments).stdout.strip()
        if suspended:
            podman("init", self.id)

    def wait_for(self, text: str) -> None:
        """Wait until the container has written a line that contains `text`."""
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
            lines_so_far = []
            for line in lines:
                lines_so_far.append(line)
                if text in line:
                    break
            else:
                raise AssertionError(
                    f"the container ended without a line that contains {text!r}:\n{''.join(lines_so_far)}"
                )
        logs.terminate()
        logs.wait()

    def begin(self, program: str) -> int:
        """Run the program of a suspended container, and return its process id on this machine as soon as it runs.

        Args:
            program: start of the command line of the program.
        """
        process = int(self.state("Pid"))
        line = Path(f"/proc/{process}/cmdline")
        self.starting = subprocess.Popen(["podman", "start", self.id], env=environment(), stdout=subprocess.DEVNULL)
        while not line.read_bytes().startswith(program.encode()):
            assert self.starting.poll() in (None, 0)
        return process

    def stop(self, seconds: int) -> int:
        """Send SIGTERM, and SIGKILL after this time, as `docker stop` does. Return the exit code."""
        podman("stop", "--time", str(seconds), self.id)
        return int(self.state("ExitCode"))

    def wait(self) -> int:
        """Wait until the container ends, and return its exit code."""
        return int(podman("wait", self.id).stdout)

    def state(self, key: str) -> str:
        """Return a field of the state of the container, such as OOMKilled."""
        return podman("inspect", "--format", f"{{{{.State.{key}}}}}", self.id).stdout.strip()

    def complete(self) -> CompletedContainer:
        """Wait until the container ends, and return its exit code and output."""
        code = self.wait()
        process = podman("logs", self.id)
        return CompletedContainer(code, process.stdout, process.stderr)

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        podman("rm", "--force", "--time", "0", self.id)
        if self.starting is not None:
            self.starting.wait()


def inspect(image: str) -> dict[str, Any]:
    """Return what the engine stores about an image."""
    (data,) = json.loads(podman("image", "inspect", image).stdout)
    assert isinstance(data, dict)
    return data


@contextmanager
def mounted(image: str) -> Iterator[Path]:
    """Mount the files of an image, read-only."""
    folder = Path(podman("image", "mount", image).stdout.strip())
    try:
        yield folder
    finally:
        podman("image", "unmount", image)


def variables(image: str) -> Mapping[str, str]:
    """Return the environment variables that an image sets."""
    return dict(variable.split("=", 1) for variable in inspect(image)["Config"]["Env"])
