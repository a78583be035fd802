"""`python -m bench.registry FILE`: loads a user's file in a process of its own and answers in JSON.

Assignments come as JSON on standard input. The answer goes to what was standard output; whatever the file prints
goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pydantic import BaseModel

from bench.errors import DevbenchError
from bench.registry.description import Problem, inspect


def main() -> None:
    """Answers on what was standard output; whatever the file prints goes to stderr."""
    given = json.loads(sys.stdin.read() or "{}")
    channel = os.dup(1)
    os.dup2(2, 1)
    try:
        answer: BaseModel = inspect(Path(sys.argv[1]), given)
    except DevbenchError as error:
        answer = Problem(error=type(error).__name__, message=error.message, hint=error.hint)
    with os.fdopen(channel, "w", encoding="utf-8") as out:
        out.write(answer.model_dump_json())
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
