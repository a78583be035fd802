"""The process that draws charts.

The drawing library contains a browser's JavaScript engine, which never returns the memory it has taken. A hub runs for
months and draws a chart now and then, so the library runs in a process of its own. This process ends after some time
without a chart, and after a number of charts. The next chart starts a new process. The process also ends when its
parent ends for any reason, because it reads from a pipe to the parent.

A hub draws charts of documents that others made. It limits how long a chart may take, and how many threads wait for the
process (`Limits`).
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.errors import DevbenchError
from bench.machine import system

IDLE = 20.0
"""Seconds without a chart after which the process ends."""

CHARTS = 100
"""Charts after which the process ends. By then it uses 1.5 times the memory that it used after the first chart."""

NICE = 10
"""How much lower the priority of the process is than that of its parent, which also answers other requests."""

_DIGITS = re.compile(r"\d+\.\d{3,}(?:e-?\d+)?")


@dataclass(frozen=True)
class Limits:
    """Limits on drawing charts.

    Args:
        charts: how many charts one process draws.
        seconds: how long a chart may take, including the start of the process. None for no limit.
        wait: how many seconds a thread waits for the charts of other threads. None for no limit.
        waiting: how many threads may wait at the same time. None for no limit.
    """

    charts: int = CHARTS
    seconds: float | None = None
    wait: float | None = None
    waiting: int | None = None


class ChartNotDrawn(DevbenchError):
    """A chart cannot be drawn now, or not within its time limit."""


class VegaProcess:
    """Draws charts, one at a time, for any thread.

    Args:
        idle: seconds without a chart after which the process ends.
        limits: the limits on drawing.

    Attributes:
        limits: the limits on drawing. A new value applies from the next chart on.
    """

    def __init__(self, idle: float = IDLE, limits: Limits = Limits()) -> None:
        self._idle = idle
        self.limits = limits
        self._lock = threading.Lock()
        self._waiting = 0
        self._counting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def draw(self, chart: dict[str, Any]) -> str:
        """Return the SVG of a Vega-Lite chart, without its size and ARIA roles and with rounded coordinates.

        Raises:
            ValueError: Vega-Lite does not accept the chart.
            ChartNotDrawn: the process ended while it drew, or a limit was reached.
        """
        request = json.dumps(chart).encode() + b"\n"
        with self._turn(), self._time_limit() as expired:
            line = self._ask(request)
            if not line and not expired.is_set():
                line = self._ask(request)  # the process may have ended since the last chart
        if not line and expired.is_set():
            raise ChartNotDrawn(f"a chart took more than {self.limits.seconds:g} s")
        if not line:
            raise ChartNotDrawn(
                "the process that draws charts ended",
                "It needs about 150 MB of memory. --format markdown needs none.",
            )
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        svg: str = answer["svg"]
        return svg

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until this thread may draw.

        Raises:
            ChartNotDrawn: too many others wait, or they take too long.
        """
        limits = self.limits
        with self._counting:
            if limits.waiting is not None and self._waiting > limits.waiting:
                raise ChartNotDrawn("too many other charts are being drawn")
            self._waiting += 1
        try:
            if not self._lock.acquire(timeout=-1 if limits.wait is None else limits.wait):
                raise ChartNotDrawn("other charts are being drawn")
            try:
                yield
            finally:
                self._lock.release()
        finally:
            with self._counting:
                self._waiting -= 1

    @contextmanager
    def _time_limit(self) -> Iterator[threading.Event]:
        """Kill the process when the time of a chart is over. Yield an event that tells whether that happened."""
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            if (process := self._process) is not None:
                process.kill()

        timer = threading.Timer(self.limits.seconds, expire) if self.limits.seconds is not None else None
        if timer:
            timer.daemon = True
            timer.start()
        try:
            yield expired
        finally:
            if timer:
                timer.cancel()
                timer.join()  # it must not kill the process of the next chart

    def _ask(self, request: bytes) -> bytes:
        """Send a line and return the line that answers it; empty if the process has ended."""
        if self._process is None:
            command = [*system.python(__name__), str(self._idle), str(self.limits.charts)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (OSError, ValueError):  # the process has ended
            line = b""
        if not line.endswith(b"\n"):
            self.close()
            return b""
        return line

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()  # it holds no state
            process.communicate()


VEGA = VegaProcess()
"""Draws the charts of this program."""


def serve(idle: float, charts: int) -> None:
    """Answer each line of stdin, a chart in JSON, with a line on stdout. This runs in the process that draws."""
    import signal

    import vl_convert

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the parent ends this one
    if sys.platform != "win32":
        os.nice(NICE)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the library may print, and the parent reads only answers
    timer = _exit_after(idle)
    for line in itertools.islice(sys.stdin.buffer, charts):
        timer.cancel()
        try:
            answer = {"svg": _tidy(vl_convert.vegalite_to_svg(json.loads(line)))}
        except ValueError as error:
            answer = {"error": str(error)}
        try:
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
        except OSError:  # the parent is gone
            return
        timer = _exit_after(idle)


def _tidy(svg: str) -> str:
    """Return an SVG without its size and ARIA roles, and with rounded coordinates."""
    text = re.sub(r'(<svg[^>]*?) width="[\d.]+" height="[\d.]+"', r"\1", svg, count=1)
    text = re.sub(r' (?:(?:role|aria-\w+|pointer-events)="[^"]*"|opacity="1")(?=[^<>]*>)', "", text)
    return re.sub(r'(?<= d=")[^"]+|(?<=transform=")[^"]+', lambda match: _DIGITS.sub(_rounded, match[0]), text)


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match[0]):.2f}"


def _exit_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()
    return timer


if __name__ == "__main__":
    serve(float(sys.argv[1]), int(sys.argv[2]))
