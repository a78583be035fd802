"""`python -m bench.registry FILE`: imports a user's file and describes it in JSON.

Parameters come as JSON on standard input. The description goes to standard output. Whatever the file prints goes to
stderr.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pydantic import BaseModel

from bench.errors import DevbenchError
from bench.machine import git_worktree
from bench.registry.description import ErrorDocument, inspect
from bench.registry.own_modules import import_from_own_checkout


def main() -> None:
    """Print the description, and redirect everything that the file prints to stderr."""
    assignments = json.loads(sys.stdin.read() or "{}")
    program = Path(sys.argv[1])
    folder = git_worktree.counterpart(Path.cwd(), program)
    if folder is not None:
        import_from_own_checkout(program)
        os.chdir(folder)
    channel = os.dup(1)
    os.dup2(2, 1)
    try:
        answer: BaseModel = inspect(program, assignments)
    except DevbenchError as error:
        answer = ErrorDocument.of(error)
    with os.fdopen(channel, "w", encoding="utf-8") as out:
        out.write(answer.model_dump_json())
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
