"""The program `devbench` and the table of its commands.

The module of a command is imported only when the command runs, so that help and completion are fast. Each module holds
`command`, made by `bench.cli.command.build`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

COMMANDS = {
    "run": ("bench.cli.run", "Measure scripts or workloads on one or more backends."),
    "compare": ("bench.cli.compare", "Compare results: which is faster, and by how much."),
    "explain": ("bench.cli.explain", "Find out where the time goes and what makes a program faster."),
    "sweep": ("bench.cli.sweep", "Measure a program over a range of a parameter."),
    "scale": ("bench.cli.scale", "Measure how a program scales from one worker to several."),
    "gate": ("bench.cli.gate", "Fail if the current commit makes a program slower."),
    "bisect": ("bench.cli.bisect", "Find the version or commit that made a program slower."),
    "report": ("bench.cli.report", "Write a report on results as HTML, Markdown or CSV."),
    "list": ("bench.cli.list", "List workloads and backends, or the parameters of a workload."),
    "doctor": ("bench.cli.doctor", "Check whether this machine can run and measure workloads."),
    "hub": ("bench.cli.hub", "Run a results server, or export or import its results."),
    "run-token": ("bench.cli.run_token", "Make a token that may only write the results of one run."),
    "push": ("bench.cli.push", "Send a folder of results to a hub."),
    "watch": ("bench.cli.watch", "Report runs that failed before they could report themselves."),
    "await": ("bench.cli.await_", "Wait until a hub has the results of Kubernetes Jobs."),
}
"""The module of each command, and the first line of its help."""

HINT = "Use -h or --help to see the commands and options."

ClickUsageError: Any = typer.BadParameter.__mro__[1]
"""Click's UsageError, taken from Typer, because some versions of Typer contain their own copy of Click."""


def load(name: str) -> Any:
    """Import a command's module and return the command."""
    return importlib.import_module(COMMANDS[name][0]).command


class LazyGroup(TyperGroup):
    """A group that knows the name and the summary of each command before it loads any."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Parse the arguments before the command's name."""
        with _usage_errors_as_json():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Parse the command's own arguments, and run it."""
        with _usage_errors_as_json():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command's name and summary as a stub, for help and completion. None if it does not exist."""
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that the arguments name. If there is none, suggest similar names and exit with code 2."""
        near = difflib.get_close_matches(args[0], COMMANDS, cutoff=0.5) if args[0] not in COMMANDS else []
        if near and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{args[0]}'. Did you mean {' or '.join(near)}?")
        name, command, rest = super().resolve_command(ctx, args)
        return name, load(name) if name in COMMANDS else command, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the table of commands into the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@contextmanager
def _usage_errors_as_json() -> Iterator[None]:
    """Write usage errors to stdout as JSON under `--json`, and end the command if the disk is full.

    A usage error is raised again, so that Click shows it on stderr.
    """
    try:
        yield
    except ClickUsageError as error:
        from bench.cli.command import json_requested, print_json

        if json_requested():
            print_json({"error": {"message": error.format_message(), "hint": HINT, "exit_code": error.exit_code}})
        raise
    except OSError as error:  # such as when help is written to a full disk
        from bench.cli.command import end_if_full

        end_if_full(error)
        raise


app = typer.Typer(
    name="devbench",
    cls=LazyGroup,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def devbench(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Find out which device runs a TensorFlow program faster, and why."""
    if version:
        from bench.version import __version__

        typer.echo(f"devbench {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
