"""Runs a script as `python FILE`, `python -m MODULE` or Jupyter would, without a keyboard or a screen."""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, TextIO

from bench.model.printed import Printed
from bench.model.spec import Script
from bench.worker.protocol import ScriptRun
from bench.worker.script import notebook, plots
from bench.worker.script.notes import once, place_of

KEPT_LINES = 10
"""Number of first lines and of last lines of a script's output that are kept."""

LONGEST_LINE = 500


class KeptLines(io.TextIOBase):
    """A stream that passes everything on, and keeps the first and the last lines.

    Args:
        stream: the stream to pass on to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rest = ""
        self.count = 0
        self.first: list[str] = []
        self.last: deque[str] = deque(maxlen=KEPT_LINES)

    def write(self, text: str) -> int:
        """Write a text."""
        *lines, self._rest = (self._rest + text)[-100_000:].split("\n")
        for line in lines:
            self._add(line)
        return self._stream.write(text)

    def read_all(self) -> Printed:
        """Return what was written. An unfinished last line counts as a line."""
        rest, self._rest = self._rest, ""
        if rest:
            self._add(rest)
        return Printed(lines=self.count, first=self.first, last=list(self.last))

    def latest(self) -> list[str]:
        """Return the latest lines."""
        printed = self.read_all()
        return [*printed.first, *printed.last][-KEPT_LINES:]

    def flush(self) -> None:
        """Pass on what is buffered."""
        self._stream.flush()

    def writable(self) -> bool:
        """Whether text can be written: always."""
        return True

    def isatty(self) -> bool:
        """Whether this is a terminal: never."""
        return False

    def fileno(self) -> int:
        """Return the file descriptor of the underlying stream."""
        return self._stream.fileno()

    @property
    def name(self) -> str:
        """The name of the underlying stream."""
        return str(self._stream.name)

    def detach(self) -> BinaryIO:
        """Return the underlying stream of bytes. What is written there is not kept."""
        return self._stream.buffer

    @property
    def buffer(self) -> BinaryIO:
        """The underlying stream of bytes. What is written there is not kept."""
        return self._stream.buffer

    def reconfigure(self, **options: Any) -> None:
        """Change the options of the underlying stream."""
        if isinstance(self._stream, io.TextIOWrapper):
            self._stream.reconfigure(**options)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the underlying stream."""
        return self._stream.encoding

    def _add(self, line: str) -> None:
        line = line.rpartition("\r")[2][:LONGEST_LINE]  # what a progress bar shows last
        self.count += 1
        if len(self.first) < KEPT_LINES:
            self.first.append(line)
        else:
            self.last.append(line)


MOST_ANSWERS = 100
"""How many calls of `input` in one line get an empty line. A script may ask until it gets a certain answer."""


class ScriptProgram:
    """A script that is about to run.

    Args:
        script: how it is called.
        place: its file and folder.
        note: takes a sentence for the reader of the result.

    Attributes:
        out: what it prints.
        err: what it writes to stderr.
    """

    def __init__(self, script: Script, place: ScriptRun, note: Callable[[str], None]) -> None:
        self.out = KeptLines(sys.stdout)
        self.err = KeptLines(sys.stderr)
        self._script = script
        self._file = Path(place.file)
        self._folder = Path(place.folder)
        self._cells = place.cells
        self._note = once(note)
        self._asked: Counter[str] = Counter()

    def run(self) -> int:
        """Run it to its end. Return its exit code: 0 if it set none, 1 if it ended with `sys.exit(MESSAGE)`.

        Raises:
            BaseException: what the script raises, except SystemExit.
        """
        sys.stdout, sys.stderr = self.out, self.err
        builtins.input = self._input
        plots.open_no_windows(self._note)
        sys.argv = [self._command(), *self._script.arguments]
        try:
            if self._script.module:
                sys.path.insert(0, str(self._folder))  # not resolved, so that all files are below it
                runpy.run_module(self._script.module, run_name="__main__", alter_sys=True)
            elif self._cells:
                sys.path.insert(0, str(self._file.parent))
                notebook.run(self._cells, self._file.parent)
            else:
                sys.path.insert(0, str(self._file.parent))
                self._run_file()
        except SystemExit as ending:
            if ending.code is None or isinstance(ending.code, int):
                return ending.code or 0
            print(ending.code, file=sys.stderr)
            return 1
        return 0

    def _command(self) -> str:
        """Return the first element of `sys.argv`, which argparse shows as the program's name."""
        try:
            return os.path.relpath(self._file)
        except ValueError:  # another drive
            return str(self._file)

    def _run_file(self) -> None:
        module = ModuleType("__main__")
        module.__file__ = str(self._file)
        module.__builtins__ = builtins  # type: ignore[attr-defined]
        sys.modules["__main__"] = module  # processes that multiprocessing spawns import this file
        code = compile(self._file.read_bytes(), str(self._file), "exec", dont_inherit=True)
        exec(code, module.__dict__)

    def _input(self, prompt: object = "") -> str:
        frame = sys._getframe(1)
        print(prompt, end="", flush=True)
        where = place_of(frame)
        self._asked[where] += 1
        self._note(f"The script asked for input in {where}, and devbench answered with an empty line.")
        if self._asked[where] > MOST_ANSWERS:
            raise EOFError(f"the script asks for input again and again in {where}, but devbench has no keyboard")
        return ""
