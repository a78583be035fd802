"""The command line: a table of commands, each loaded only when it is asked for, so that help comes at once.

A command is a module of `bench.cli.command` that holds `command`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "list": ("bench.cli.list", "Show all workloads and backends, or the parameters of one workload."),
    "doctor": ("bench.cli.doctor", "Check whether this machine can run and measure workloads."),
    "run": ("bench.cli.run", "Measure workloads on one backend or more."),
    "compare": ("bench.cli.compare", "Say which result is faster, by how much, and from which step on."),
    "explain": (
        "bench.cli.explain",
        "Find by experiment where the time goes and what makes it faster.",
    ),
    "sweep": ("bench.cli.sweep", "Measure a workload over a range of a parameter."),
    "watch": ("bench.cli.watch", "Tell a hub of a cluster's runs that can't speak for themselves."),
    "await": ("bench.cli.await_", "Wait until a hub has the results of a cluster's Jobs."),
    "report": ("bench.cli.report", "Write results up as one HTML page, as Markdown or as CSV."),
    "push": ("bench.cli.push", "Send a folder's results to a hub."),
    "hub": ("bench.cli.hub", "Serve results: take what runs send, and show it."),
}
"""Command: (module, one line of help)."""

HELP = "-h or --help shows what there is."


Misused: Any = typer.BadParameter.__mro__[1]
"""Click's UsageError; some versions of Typer bring a Click of their own."""


class Lazy(TyperGroup):
    """A group that knows its commands by name and line of help before it has loaded any."""

    def make_context(self, *args: Any, **given: Any) -> Any:
        """Reads the words before the command's name."""
        with _told():
            return super().make_context(*args, **given)

    def invoke(self, ctx: Any) -> Any:
        """Reads the command's own words, and runs it."""
        with _told():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Loads a command's module, or returns None for a name that is not in the table."""
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(COMMANDS[cmd_name][0]).command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the command, or ends with exit code 2 and the nearest names."""
        near = difflib.get_close_matches(args[0], COMMANDS, cutoff=0.5) if args[0] not in COMMANDS else []
        if near:
            ctx.fail(f"No such command '{args[0]}'. Did you mean {' or '.join(near)}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the table into the help, loading nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@contextmanager
def _told() -> Iterator[None]:
    """A line that can't be understood is, under `--json`, told as a document too."""
    try:
        yield
    except Misused as error:
        from bench.cli.command import json_asked, print_json

        if json_asked():
            print_json({"error": {"message": error.format_message(), "hint": HELP, "exit_code": error.exit_code}})
        raise


app = typer.Typer(
    name="devbench",
    cls=Lazy,
    add_completion=False,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def devbench(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and end.")] = False,
) -> None:
    """Which device runs my TensorFlow program faster, and why."""
    if version:
        from bench.version import __version__

        typer.echo(f"devbench {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
