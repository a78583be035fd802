"""The program `devbench`, also as `python -m bench`."""

from __future__ import annotations

import io
import os
import signal
import sys


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal or pipe that can't show "±" (a Windows code page, LANG=C) gets "?", not a crash.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    # Nothing is begun yet that Ctrl-C could spoil: until here it ends this process without a traceback.
    usual = signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.getpid() == 1:
        # The kernel spares a container's first process every signal that it has no handler for.
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda signum, _: os._exit(128 + signum))
    if sys.platform != "win32":  # an image starts this with signals held back until they are answered (images/devbench)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    from bench.cli.app import app

    signal.signal(signal.SIGINT, usual)
    app(prog_name="devbench")


if __name__ == "__main__":
    main()
