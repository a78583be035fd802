"""The worker server: a process that imports TensorFlow once and forks a worker for each request.

An import of TensorFlow takes most of a worker's start. A process that has imported TensorFlow but has not used it has
no thread of TensorFlow, no device and no graph, so it can fork (`benchmarks/forked.py`). A worker then sets up its
threads, its device and its program itself, as a fresh one does. After the import of TensorFlow 2.21 or 2.10,
/proc/self/task lists the main thread and the threads of OpenBLAS, which NumPy and SciPy load. With OMP_NUM_THREADS=1,
OpenBLAS has no threads. It ends its threads before a fork and starts them again when they are needed
(`pthread_atfork`).

The parent asks for a worker over a socket. A request holds the variables that differ from the server's environment, and
four descriptors: the worker's stdin, stdout and stderr, and a pipe for its process id and, later, its exit code. The
server has no thread of its own. SIGCHLD interrupts its wait for the next request.

The kernel kills a worker when the server ends, and the server when the parent ends. Linux only.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from bench.worker.main import die_with_parent, work
from bench.worker.start_up import import_tensorflow

if sys.platform != "linux":
    raise NotImplementedError("only Linux has worker servers")

READY = b"ready"
"""What the server sends when it can fork."""

GPU_FILES = ("/dev/nvidia", "/dev/dxg")
"""Beginnings of the paths of the files by which a process uses a GPU. WSL2 has the second one."""

LONGEST_REQUEST = 65_536
DESCRIPTORS = 4


class ForkServer:
    """Forks workers until its parent closes the connection.

    Args:
        connection: a socket that keeps the boundaries of messages.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reports: dict[int, int] = {}  # a worker's process id to the pipe for its exit code

    def serve(self) -> None:
        """Fork a worker for each request. Return only in a worker."""
        assert sys.platform == "linux"
        signal.signal(signal.SIGCHLD, self._reap)
        self._connection.send(READY)
        while True:
            request, descriptors, _, _ = socket.recv_fds(self._connection, LONGEST_REQUEST, DESCRIPTORS)
            if not request:
                os._exit(0)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # until `_reap` knows the worker
            server = os.getpid()
            try:
                pid = os.fork()
            except OSError as error:
                os.write(descriptors[3], f"{error}\n".encode())
                pid = -1
            if pid == 0:
                self._become_worker(server, descriptors, json.loads(request))
                return
            if pid > 0:
                os.write(descriptors[3], b"%d\n" % pid)
                self._reports[pid] = os.dup(descriptors[3])
            for descriptor in descriptors:
                os.close(descriptor)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])

    def _become_worker(self, server: int, descriptors: list[int], variables: dict[str, str]) -> None:
        """Make this process what a fresh worker is: its session, descriptors, signals and variables."""
        assert sys.platform == "linux"
        os.setsid()
        die_with_parent()
        if os.getppid() != server:  # the server ended before `die_with_parent`
            os._exit(1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        self._connection.close()
        for target, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, target)
        for descriptor in [*descriptors, *self._reports.values()]:
            os.close(descriptor)
        os.environ.update(variables)
        tempfile.tempdir = None

    def _reap(self, signum: int, frame: FrameType | None) -> None:
        """Report the exit code of each worker that ended."""
        assert sys.platform == "linux"
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            report = self._reports.pop(pid, None)
            if report is None:
                continue
            with contextlib.suppress(BrokenPipeError):  # the parent no longer wants to know
                os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
            os.close(report)


def opened(beginnings: tuple[str, ...] = GPU_FILES) -> list[str]:
    """Return the paths of open files that have one of these beginnings."""
    paths = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor of the listing itself is closed by now
            paths.add(str(descriptor.readlink()))
    return sorted(path for path in paths if path.startswith(beginnings))


def main() -> None:
    """Import TensorFlow and serve. In each forked process, become a worker.

    As in a fresh worker, the garbage collector ignores only devbench's own imports, which come before TensorFlow's.
    """
    die_with_parent()
    connection = socket.socket(fileno=int(sys.argv.pop()))
    gc.freeze()
    import_tensorflow()
    if files := opened():
        sys.exit(f"the import of TensorFlow opened {', '.join(files)}, which a forked process cannot use")
    ForkServer(connection).serve()
    work(time.time())


if __name__ == "__main__":
    main()
