"""What all commands have in common: the layout of their help, and how they end.

A `DevbenchError` becomes a message and a hint on stderr, and an exit code. Under `--json`, it is also written to stdout
as JSON. Any other exception is an internal error of devbench. Its hint says how to get a traceback.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from bench.errors import DISK_FULL, DevbenchError, Interrupted, OutputError

if TYPE_CHECKING:
    from pydantic import BaseModel

TRACEBACK_VARIABLE = "DEVBENCH_TRACEBACK"

Json = Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout, and nothing else.")]


class Command(TyperCommand):
    """A command whose help lists the arguments, then the options by group (`rich_help_panel`)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and check that they name a program if the command needs one.

        In a command that runs scripts, the words after `--` become the value of `--args`.
        """
        if "--" in args and any(parameter.name == "args" for parameter in self.params):
            place = args.index("--")
            args = [*args[:place], "--args", shlex.join(args[place + 1 :])]
        parsed: list[str] = super().parse_args(ctx, args)
        named = any(ctx.params.get(name) for name in ("workloads", "workload", "module"))
        if "module" in ctx.params and not named and not ctx.resilient_parsing:
            ctx.fail("Missing argument 'PROGRAM'.")
        return parsed

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line after the command's name."""
        return [
            "[OPTIONS]",
            *(_usage(parameter) for parameter in self.params if parameter.param_type_name == "argument"),
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the groups of options. Options without a group come last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in sorted(self.get_params(ctx), key=lambda parameter: _title(parameter) == OPTIONS):
            sections.setdefault(_title(parameter), []).append(record(parameter, ctx))
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


OPTIONS = "Options"
"""Title of the options without a group."""


def _title(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or OPTIONS


def _usage(argument: Any) -> str:
    name = argument.metavar if argument.required else f"[{argument.metavar}]"
    return f"{name}..." if argument.nargs == -1 else name


def record(parameter: Any, ctx: Any) -> tuple[str, str]:
    """Return the syntax and the help text of an argument or option."""
    if parameter.param_type_name == "argument":
        return _usage(parameter), parameter.help
    return parameter.get_help_record(ctx)[0], parameter.help


def build(function: Callable[..., None], name: str, interrupted: str = "") -> Any:
    """Return the command that calls a function and handles its errors.

    Args:
        function: What the command does. Its parameters are the arguments and options.
        name: The command's name.
        interrupted: The message after Ctrl-C. Default: that of a command that measures.
    """
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, cls=Command, context_settings={"help_option_names": ["-h", "--help"]})(
        _guarded(function, interrupted)
    )
    return typer.main.get_command(app)


def print_json(document: Any) -> None:
    """Write the document of `--json` to stdout."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def as_json(document: BaseModel) -> Any:
    """Return a document as JSON types, as in its file. NaN and infinity become null."""
    return json.loads(document.model_dump_json())


def announce(line: str) -> None:
    """Write a line to stderr. If nobody reads stderr any more, the line is lost."""
    with suppress(OSError):
        typer.echo(line, err=True)


def conclude(document: dict[str, Any] | None, error: DevbenchError | None) -> int:
    """Show the document and the error of a command that may have results although it failed.

    Args:
        document: What `--json` writes to stdout, together with the error. None without `--json`.
        error: What went wrong. None if nothing did.

    Returns:
        The exit code.
    """
    if document is not None:
        print_json(document | ({"error": describe(error)} if error else {}))
    if error:
        complain(error)
    return error.exit_code if error else 0


def end(code: int) -> None:
    """End the command with an exit code.

    Raises:
        typer.Exit: The code is not 0.
    """
    if code:
        raise typer.Exit(code)


def describe(error: DevbenchError) -> dict[str, Any]:
    """Return an error as `--json` shows it."""
    return {"message": error.message, "hint": error.hint, "exit_code": error.exit_code}


def complain(error: DevbenchError) -> None:
    """Write an error and its hint to stderr."""
    from bench.render.text import plain

    announce(f"error: {error.message}")
    for line in error.hint.splitlines():  # it may quote what a program wrote
        announce(f"  {plain(line)}")


def say(text: str) -> None:
    """Write a note to stderr."""
    announce(f"note: {text}")


def _guarded(function: Callable[..., None], interrupted: str) -> Callable[..., None]:
    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> None:
        try:
            function(*args, **options)
        except DevbenchError as error:
            _end(error)
        except KeyboardInterrupt:
            _end(Interrupted(signal.SIGINT, message=interrupted))
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            end_if_full(error)
            if os.environ.get(TRACEBACK_VARIABLE):
                raise
            message = f"internal error of devbench: {type(error).__name__}: {error}"
            _end(DevbenchError(message, f"Set {TRACEBACK_VARIABLE}=1 to get a traceback, and report it."))

    return run


def end_if_full(error: Exception) -> None:
    """End the command if an error says that the disk is full.

    Raises:
        typer.Exit: The disk is full, or the disk quota is exceeded.
    """
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        reason = error.strerror or "the disk is full"
        _end(OutputError(f"cannot write the output: {reason}", "Free some space, or write it elsewhere."))


def json_requested() -> bool:
    """Return whether the command line or `DEVBENCH_JSON` asks for JSON.

    This reads the command line itself, because the settings may be invalid.
    """
    own = itertools.takewhile(lambda word: word != "--", sys.argv)  # the rest are a script's arguments
    flags = [word for word in own if word in ("--json", "--no-json")]
    variable = os.environ.get("DEVBENCH_JSON", "").lower() in ("1", "true", "t", "yes", "y", "on")
    return flags[-1] == "--json" if flags else variable


def _end(error: DevbenchError) -> None:
    complain(error)
    if json_requested():
        with suppress(OSError):  # such as a full disk, which is what the error says
            print_json({"error": describe(error)})
    raise typer.Exit(error.exit_code)
