"""`devbench explain`: where the time of a step goes, and what makes it shorter."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli import next_steps
from bench.cli.command import announce, as_json, build, conclude
from bench.cli.measure import Module, ProgramName, interrupted_early, measure, one_of
from bench.cli.options import with_settings
from bench.config.settings import OutputOptions, RunSettings, SelectionOptions, title
from bench.errors import Interrupted

if TYPE_CHECKING:
    from bench.model.explanation import Explanation


def explain(
    settings: RunSettings,
    workload: ProgramName = None,
    module: Module = None,
    changes: Annotated[
        bool,
        typer.Option(
            "--changes/--no-changes",
            help="Try what-ifs. They take most of the time. Default: on.",
            rich_help_panel=title(SelectionOptions),
        ),
    ] = True,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Show every fix, and findings that are small or follow from a larger cause.",
            rich_help_panel=title(OutputOptions),
        ),
    ] = False,
) -> None:
    """Find out where the time goes and what makes a program faster.

    Measures the program in a series of loops. Each loop leaves out one more thing, such as the input. Then tries
    what-ifs: single changes to the program or its settings, and the best of them together. --max-time limits the whole
    explanation. The output says what was left out for lack of time.
    """
    from bench import api

    program = one_of(workload, module)
    measure(
        settings,
        lambda recorder: api.explain(program, settings, recorder, what_ifs=changes),
        lambda explanation, interruption: _show(explanation, interruption, settings, verbose),
    )


def _show(
    explanation: Explanation | None, interruption: Interrupted | None, settings: RunSettings, verbose: bool = False
) -> int:
    """Show the explanation. Return the exit code."""
    from bench.render.terminal.explanation import text
    from bench.render.text import encodable

    if explanation is not None and not settings.json:
        typer.echo(encodable(text(explanation, verbose=verbose), sys.stdout.encoding), nl=False)
    elif explanation is None and interruption is not None:
        message = "interrupted before a trial was complete, so there is nothing to explain yet"
        interruption = interrupted_early(interruption, message)
    announce(f"results: {settings.output}")
    if explanation is not None and interruption is None and not settings.json:
        next_steps.show([next_steps.report(settings.output)])
    document = {"explanation": as_json(explanation)} if explanation is not None else {}
    return conclude(document if settings.json else None, interruption)


TEXTS = {
    "backend": "Backend to measure on. Exactly one. Default: cpu, or the backend of the devbench image.",
    "loop": "Loop at the top of the ladder. At most one. Default: the workload's own loop, usually as-written.",
    "case": "Case of the workload to explain. Required if it has several.",
    "compare": "Not for explanations. Use `devbench run`.",
    "max_time": "Time limit of the whole explanation. Default: 5m.",
    "full": "No effect on explanations. Use `devbench run`.",
    "vary": "Not for explanations. Use `devbench run`.",
}
"""Help that differs from that of `run`."""

command = build(with_settings(explain, texts=TEXTS), "explain")
