"""The process that draws charts.

The drawing library contains a browser's JavaScript engine, which never returns the memory it has taken. A hub lives
for months and draws now and then, so the library runs in a process of its own. That process ends when it has been idle
for a while, and after some charts; the next chart starts another. It also ends with its parent, however that ended,
because it reads from a pipe.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import subprocess
import sys
import threading
from typing import Any

from bench.errors import DevbenchError
from bench.machine import system

IDLE = 20.0
"""Seconds without a chart after which the process ends."""

CHARTS = 100
"""Charts after which the process ends. By then it uses 1.5 times the memory that it used after the first chart."""


class VegaProcess:
    """Draws charts, one at a time, for any thread.

    Args:
        idle: seconds without a chart after which the process ends.
        charts: how many charts one process draws.

    Attributes:
        charts: the same, for the next process.
    """

    def __init__(self, idle: float = IDLE, charts: int = CHARTS) -> None:
        self._idle = idle
        self.charts = charts
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def draw(self, chart: dict[str, Any]) -> str:
        """Return the SVG of a Vega-Lite chart.

        Raises:
            ValueError: Vega-Lite does not accept the chart.
            DevbenchError: the process ended while it drew.
        """
        request = json.dumps(chart).encode() + b"\n"
        with self._lock:
            line = self._ask(request) or self._ask(request)  # the process may have ended since the last chart
        if not line:
            raise DevbenchError(
                "the process that draws charts ended",
                "It needs about 150 MB of memory. --format markdown needs none.",
            )
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        svg: str = answer["svg"]
        return svg

    def _ask(self, request: bytes) -> bytes:
        """Send a line and return the line that answers it; empty if the process has ended."""
        if self._process is None:
            command = [*system.python(__name__), str(self._idle), str(self.charts)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            self.close()
            return b""
        return line

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()  # it has nothing to lose
            process.communicate()


VEGA = VegaProcess()
"""The process of this program."""


def serve(idle: float, charts: int) -> None:
    """Answer each chart, a line of stdin, with a line on stdout. Run in the process that draws."""
    import signal

    import vl_convert

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the parent ends this one
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the library may print, and the parent reads only answers
    timer = _exit_after(idle)
    for line in itertools.islice(sys.stdin.buffer, charts):
        timer.cancel()
        try:
            answer = {"svg": vl_convert.vegalite_to_svg(json.loads(line))}
        except ValueError as error:
            answer = {"error": str(error)}
        try:
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
        except OSError:  # the parent is gone
            return
        timer = _exit_after(idle)


def _exit_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()
    return timer


if __name__ == "__main__":
    serve(float(sys.argv[1]), int(sys.argv[2]))
