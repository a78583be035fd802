"""A Docker daemon for the tests, with its files in a folder, no bridge and no registry. Podman runs beside it."""

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
TIMEOUT = 120
"""Time limit until the daemon responds, and until a container writes the expected text, in seconds."""


def programs() -> tuple[str, str] | None:
    """Return the paths of the daemon and of a client of its version, or None. Another client may lack the builder."""
    daemon = shutil.which("dockerd")
    if daemon is None:
        return None
    clients = (shutil.which("docker", path=folder) for folder in os.get_exec_path())
    return next(((daemon, client) for client in clients if client and _version(client) == _version(daemon)), None)


def _version(program: str) -> str:
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return output.partition(",")[0]


class Docker:
    """A running daemon.

    Args:
        client: path of the client.
        folder: holds all files of the daemon.
    """

    def __init__(self, client: str, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.variables = {**os.environ, "DOCKER_HOST": f"unix://{folder}/sock", "DOCKER_CONFIG": str(folder)}

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run docker and return its exit code and output.

        Raises:
            AssertionError: the command failed, and `check` is true.
        """
        command = [self.client, *arguments]
        process = subprocess.run(command, env=self.variables, capture_output=True, text=True, timeout=SECONDS)
        if check:
            assert process.returncode == 0, f"docker {' '.join(arguments)}:\n{process.stdout}\n{process.stderr}"
        return process

    def wait_for(self, container: str, text: str) -> None:
        """Wait until a container has written `text`."""
        for _ in range(10 * TIMEOUT):
            logs = self("logs", container)
            if text in logs.stdout + logs.stderr:
                return
            assert self("inspect", "--format", "{{.State.Running}}", container).stdout.strip() == "true", logs
            time.sleep(0.1)
        raise AssertionError(f"the container has not written {text!r}: {logs}")

    def build(self, backend: str, base: str) -> str:
        """Build an image with `images/build`, as users do, and return its name.

        Args:
            backend: backend of the image.
            base: base image, in podman.
        """
        archive = self.folder / "base.tar"
        podman("save", "--output", str(archive), base)
        loaded = self("load", "--input", str(archive)).stdout.split()[-1]
        archive.unlink()
        variables = {**self.variables, "ENGINE": self.client, "BASE_IMAGE": loaded, "IMAGE_NAME": NAME}
        command = [str(ROOT / "images" / "build"), backend, "--", "--network=host"]
        process = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=3600)
        assert process.returncode == 0, f"{process.stdout[-4000:]}\n{process.stderr[-4000:]}"
        return f"{NAME}:{backend}"

    @contextmanager
    def mounted(self, image: str) -> Iterator[Path]:
        """Mount the files of an image, read-only."""
        template = "{{.GraphDriver.Data.UpperDir}}:{{.GraphDriver.Data.LowerDir}}"
        layers = self("image", "inspect", "--format", template, image).stdout.strip()
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
    """Run a daemon. Its images and containers end with it.

    Args:
        folder: an empty folder with a short path, because the length of the path of a socket is limited.
    """
    paths = programs()
    assert paths
    program, client = paths
    command = [program, f"--data-root={folder}/data", f"--exec-root={folder}/run", f"--pidfile={folder}/pid"]
    command += [f"--host=unix://{folder}/sock", "--bridge=none", "--iptables=false", "--storage-driver=overlay2"]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        docker = Docker(client, folder)
        try:
            for _ in range(10 * TIMEOUT):
                if docker("version", check=False).returncode == 0:
                    break
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
            yield docker
        finally:
            process.terminate()
            process.wait()
