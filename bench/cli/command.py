"""The commands of `devbench`, one module each, and what they have in common: how they end.

An error of ours or the user's becomes two lines on stderr and its exit code, and under `--json` a
document as well. Whatever else escapes is a fault of devbench and says how to see where.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from bench.errors import DevbenchError, Interrupted

if TYPE_CHECKING:
    from pydantic import BaseModel

TRACEBACK_VARIABLE = "DEVBENCH_TRACEBACK"


def build(function: Callable[..., None], name: str) -> Any:
    """Makes the command that calls a function, whose errors end as this module says."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, context_settings={"help_option_names": ["-h", "--help"]})(_guarded(function))
    return typer.main.get_command(app)


def print_json(document: Any) -> None:
    """Writes the one document of `--json` to stdout."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def as_json(document: BaseModel) -> Any:
    """A document as its file holds it, where a value that is no number is null."""
    return json.loads(document.model_dump_json())


def announce(line: str) -> None:
    """Writes a line to stderr."""
    typer.echo(line, err=True)


def end(document: dict[str, Any] | None, error: DevbenchError | None) -> None:
    """Ends a command that has something to show although it failed: one document with the error in it, and its code.

    Args:
        document: for stdout under `--json`; none without that.
        error: what went wrong; none where nothing did.

    Raises:
        typer.Exit: with the error's code.
    """
    if document is not None:
        print_json(document | ({"error": describe(error)} if error else {}))
    if error:
        complain(error)
        raise typer.Exit(error.exit_code)


def describe(error: DevbenchError) -> dict[str, Any]:
    """An error as `--json` shows it."""
    return {"message": error.message, "hint": error.hint, "exit_code": error.exit_code}


def complain(error: DevbenchError) -> None:
    """Writes what happened and what to do about it to stderr."""
    typer.echo(f"error: {error.message}", err=True)
    for line in error.hint.splitlines():
        typer.echo(f"  {line}", err=True)


def say(text: str) -> None:
    """Writes what is worth knowing to stderr."""
    typer.echo(f"note: {text}", err=True)


def _guarded(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def run(*args: Any, **given: Any) -> None:
        try:
            function(*args, **given)
        except DevbenchError as error:
            _end(error)
        except KeyboardInterrupt:
            _end(Interrupted(signal.SIGINT))
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if os.environ.get(TRACEBACK_VARIABLE):
                raise
            fault = f"a fault of devbench itself: {type(error).__name__}: {error}"
            _end(DevbenchError(fault, f"{TRACEBACK_VARIABLE}=1 shows where; please report it."))

    return run


def json_asked() -> bool:
    """Whether a document is due; asked of the line itself, for the settings may be what is wrong."""
    given = [word for word in sys.argv if word in ("--json", "--no-json")]
    environ = os.environ.get("DEVBENCH_JSON", "").lower() in ("1", "true", "t", "yes", "y", "on")
    return given[-1] == "--json" if given else environ


def _end(error: DevbenchError) -> None:
    complain(error)
    if json_asked():
        print_json({"error": describe(error)})
    raise typer.Exit(error.exit_code)
