"""The worker's connection to its parent: orders in, events out. The program cannot reach it.

The original stdin and stdout move to other descriptors. Then descriptor 0 reads nothing, and descriptor 1 writes to
stderr. This happens before TensorFlow or a user's file is imported, so nothing that a program prints or reads can
disturb the connection. `os.dup` and `os.dup2` work the same way on Windows.
"""

from __future__ import annotations

import json
import os
import sys
import threading

from pydantic import BaseModel

from bench.worker.protocol import ORDER, Order


class Channel:
    """Receives orders and sends events, one JSON document per line.

    Attributes:
        lines: the stream from the parent, one order per line.
        renames: old text to new text, for all events. Example: the path of a copy to the path of the original.
    """

    def __init__(self) -> None:
        self.renames: dict[str, str] = {}
        self.lines = os.fdopen(os.dup(0), "rb")
        self._out = os.dup(1)
        self._sending = threading.Lock()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        sys.stdout.flush()
        os.dup2(2, 1)

    def send(self, event: BaseModel) -> None:
        """Send one event. End this process if the parent is gone."""
        text = event.model_dump_json()
        for old, new in self.renames.items():
            text = text.replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1])
        line = text.encode() + b"\n"
        try:
            with self._sending:
                while line:
                    line = line[os.write(self._out, line) :]
        except ConnectionError:
            os._exit(1)

    def disconnect(self) -> None:
        """Send nothing more. A process that the program forked calls this."""
        self._out = os.open(os.devnull, os.O_WRONLY)

    def receive(self) -> Order:
        """Wait for the next order. End this process if the parent is gone.

        The process ends at once, without an exception, because a program may catch all exceptions and run on.
        """
        line = self.lines.readline()
        if not line:
            os._exit(1)
        return ORDER.validate_json(line)
