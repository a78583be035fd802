"""A worker server that tests share. It also forks processes that read the programs of users, or run scripts of tests.

Run as a program, with the descriptor of a socket as its argument (`bench.worker.server`).
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import time
from pathlib import Path

PROGRAM, SCRIPT = "program", "script"
"""Files in the folder for temporary files of a process that is no worker. One holds the path of the program that the
process reads, the other the script that it runs."""


def main() -> None:
    """Import TensorFlow, serve, and become a worker or a reader in each process that is forked."""
    sys.path[0] = str(Path(__file__).parents[2])
    from bench.registry import __main__ as reader
    from bench.worker.main import die_with_parent, work
    from bench.worker.server import ForkServer
    from bench.worker.start_up import import_tensorflow

    die_with_parent()
    connection = socket.socket(fileno=int(sys.argv.pop()))
    gc.freeze()
    import_tensorflow()
    ForkServer(connection).serve()
    program, script = (Path(os.environ["TMPDIR"], name) for name in (PROGRAM, SCRIPT))
    if program.exists():
        sys.argv.append(program.read_text(encoding="utf-8"))
        reader.main()
    elif script.exists():
        exec(compile(script.read_text(encoding="utf-8"), "<string>", "exec"), {"__name__": "__main__"})
    else:
        work(time.time())


if __name__ == "__main__":
    main()
