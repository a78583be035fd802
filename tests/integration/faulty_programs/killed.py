"""A program that is killed, as by the OOM killer, while a child process holds its pipes open."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def as_written() -> Iterator[Any]:
    import tensorflow as tf

    if sys.platform == "win32":
        raise NotImplementedError
    for number in range(1000):
        if number == 60:
            child = os.fork()
            if not child:
                while True:
                    time.sleep(60)
            Path(os.environ["ORPHAN"]).write_text(str(child))
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        yield tf.constant(float(number)) + 1.0
