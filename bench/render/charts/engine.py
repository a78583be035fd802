"""The drawing library's engine, in a process of its own: it is a browser's, and never gives back what it has taken.

A hub lives for months and draws now and then, so what it took for a chart would stay its own. The engine ends when
nothing has been drawn for a while and after some charts, and the next chart starts another. It ends too when whoever
started it does, however that ended, since it reads from a pipe.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from queue import Empty, SimpleQueue
from typing import Any

from bench.errors import DevbenchError
from bench.machine import system

IDLE = 20.0
"""Seconds without a chart after which it ends."""

CHARTS = 100
"""Charts after which it ends: by then it holds half as much again as after the first."""


class Engine:
    """Draws; one chart at a time, whoever asks.

    Args:
        idle: seconds without a chart after which its process ends.
        charts: how many its process draws.

    Attributes:
        charts: of the next process.
    """

    def __init__(self, idle: float = IDLE, charts: int = CHARTS) -> None:
        self._idle = idle
        self.charts = charts
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def draw(self, chart: dict[str, Any]) -> str:
        """The SVG of a chart in Vega-Lite.

        Raises:
            ValueError: it is no chart.
            DevbenchError: the engine ended while it drew.
        """
        asked = json.dumps(chart).encode() + b"\n"
        with self._turn:
            answer = self._answer(asked) or self._answer(asked)  # it may have ended since the chart before
        if not answer:
            raise DevbenchError(
                "what draws the charts ended while it drew",
                "It needs some 150 MB of memory. The report as text needs nothing: --format markdown",
            )
        told = json.loads(answer)
        if "error" in told:
            raise ValueError(told["error"])
        svg: str = told["svg"]
        return svg

    def _answer(self, asked: bytes) -> bytes:
        """A line of the engine; an empty one where it has ended."""
        if self._process is None:
            command = [*system.python("bench.render.charts.engine"), str(self._idle), str(self.charts)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(asked)
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = b""
        if not answer.endswith(b"\n"):
            self.close()
            return b""
        return answer

    def close(self) -> None:
        """Ends it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()  # it holds nothing that could be lost
            process.communicate()


ENGINE = Engine()
"""Everybody's."""


def serve(idle: float, charts: int) -> None:
    """Reads charts, a line each, and answers each with a line; the process that draws does nothing else."""
    import signal

    import vl_convert

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to everyone; the one that asks ends this
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lines: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            lines.put(line)
        lines.put(b"")

    threading.Thread(target=read, daemon=True).start()
    for _ in range(charts):
        try:
            line = lines.get(timeout=idle)
        except Empty:
            break
        if not line:
            break
        try:
            told = {"svg": vl_convert.vegalite_to_svg(json.loads(line))}
        except ValueError as error:
            told = {"error": str(error)}
        try:
            answers.write(json.dumps(told).encode() + b"\n")
            answers.flush()
        except OSError:  # nobody asks any more
            break
    os._exit(0)  # the thread above may still wait for a line


if __name__ == "__main__":
    serve(float(sys.argv[1]), int(sys.argv[2]))
