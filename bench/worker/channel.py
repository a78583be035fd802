"""The worker's end of the line to its parent: orders in, events out, both out of the program's reach.

The original stdin and stdout become descriptors of their own; then descriptor 0 reads nothing and
descriptor 1 writes to stderr, before TensorFlow or a user's file is imported. So nothing that a program
prints or reads can disturb the conversation. `os.dup` and `os.dup2` do this on Windows too.
"""

from __future__ import annotations

import os
import sys

from pydantic import BaseModel

from bench.worker.protocol import ORDER, Order


class Channel:
    """Reads orders and sends events, one JSON document a line."""

    def __init__(self) -> None:
        self._in = os.fdopen(os.dup(0), "rb")
        self._out = os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        sys.stdout.flush()
        os.dup2(2, 1)

    def send(self, event: BaseModel) -> None:
        """Sends one event, whole, whatever its length; ends this process when the parent is gone."""
        line = event.model_dump_json().encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._out, line) :]
        except BrokenPipeError:
            os._exit(1)

    def receive(self) -> Order:
        """Waits for the next order; ends this process when the parent is gone.

        It ends at once, not by an exception: a program that swallows exceptions would run on without its parent.
        """
        line = self._in.readline()
        if not line:
            os._exit(1)
        return ORDER.validate_json(line)
