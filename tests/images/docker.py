"""A Docker of the tests' own, beside podman: a daemon in a folder, without a bridge, which asks no registry."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from images.engine import ROOT, SECONDS, podman

NAME = "devbench-test"
PATIENCE = 120
"""Seconds until the daemon answers, and until a container writes what is waited for."""


def programs() -> tuple[str, str] | None:
    """The daemon and a client of its version, since another one's may lack what it builds with; none without both."""
    daemon = shutil.which("dockerd")
    if daemon is None:
        return None
    clients = (shutil.which("docker", path=folder) for folder in os.get_exec_path())
    return next(((daemon, client) for client in clients if client and _version(client) == _version(daemon)), None)


def _version(program: str) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return said.partition(",")[0]


class Docker:
    """A daemon that runs.

    Args:
        client: the program that asks it.
        folder: holds all that is its own.
    """

    def __init__(self, client: str, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.variables = {**os.environ, "DOCKER_HOST": f"unix://{folder}/sock", "DOCKER_CONFIG": str(folder)}

    def __call__(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs docker and returns how it ended, with what it wrote.

        Raises:
            AssertionError: it failed, and `check`.
        """
        command = [self.client, *words]
        done = subprocess.run(command, env=self.variables, capture_output=True, text=True, timeout=SECONDS)
        if check:
            assert done.returncode == 0, f"docker {' '.join(words)}:\n{done.stdout}\n{done.stderr}"
        return done

    def until(self, container: str, text: str) -> None:
        """Waits until a container has written `text`."""
        for _ in range(10 * PATIENCE):
            logs = self("logs", container)
            if text in logs.stdout + logs.stderr:
                return
            assert self("inspect", "--format", "{{.State.Running}}", container).stdout.strip() == "true", logs
            time.sleep(0.1)
        raise AssertionError(f"it has not written {text!r}: {logs}")

    def build(self, backend: str, base: str) -> str:
        """Builds an image with the script that users build with; returns its name.

        Args:
            backend: which.
            base: podman's image that it starts from.
        """
        archive = self.folder / "base.tar"
        podman("save", "--output", str(archive), base)
        loaded = self("load", "--input", str(archive)).stdout.split()[-1]
        archive.unlink()
        variables = {**self.variables, "ENGINE": self.client, "BASE_IMAGE": loaded, "IMAGE_NAME": NAME}
        command = [str(ROOT / "images" / "build"), backend, "--", "--network=host"]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=3600)
        assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return f"{NAME}:{backend}"

    @contextmanager
    def mounted(self, image: str) -> Iterator[Path]:
        """An image's files, to be read."""
        where = "{{.GraphDriver.Data.UpperDir}}:{{.GraphDriver.Data.LowerDir}}"
        layers = self("image", "inspect", "--format", where, image).stdout.strip()
        root = self.folder / "mounted"
        root.mkdir()
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"ro,lowerdir={layers}", root], check=True)
        try:
            yield root
        finally:
            subprocess.run(["umount", root], check=True)
            root.rmdir()


@contextmanager
def daemon(folder: Path) -> Iterator[Docker]:
    """A daemon as long as it is needed; what it made goes with it.

    Args:
        folder: for it alone, of a short path, since a socket's is limited.
    """
    found = programs()
    assert found
    program, client = found
    command = [program, f"--data-root={folder}/data", f"--exec-root={folder}/run", f"--pidfile={folder}/pid"]
    command += [f"--host=unix://{folder}/sock", "--bridge=none", "--iptables=false", "--storage-driver=overlay2"]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        docker = Docker(client, folder)
        try:
            for _ in range(10 * PATIENCE):
                if docker("version", check=False).returncode == 0:
                    break
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
            yield docker
        finally:
            process.terminate()
            process.wait()
