"""`devbench report`: a folder of results as an HTML page, as text for a pull request, or as raw times."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bench.cli.command import build, print_json
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.errors import UsageError
from bench.version import __version__

Format = Literal["html", "markdown", "csv"]
PAGE = Path("report.html")


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of results, as `run` writes them.")],
    settings: RunSettings,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"Where to write it. [default: {PAGE}; others: stdout]", show_default=False),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="A page, text for a pull request, or raw times.")] = "html",
) -> None:
    """Write results up as one HTML page, as Markdown or as CSV."""
    from bench.store import files

    path = output or (PAGE if form == "html" else None)
    if path is None and settings.json:
        raise UsageError(f"--json and the {form} can't both go to stdout", "Name a file for it with --output.")
    made = _made(folder, form, settings.threshold)
    if path is None:
        _print(made)
        return
    count = files.write_text(path, made)
    if settings.json:
        print_json({"report": {"file": str(path), "format": form, "bytes": count}})
    else:
        typer.echo(f"report: {path}", err=True)


def _made(folder: Path, form: Format, threshold: float) -> Iterable[str]:
    """The report in pieces, so that raw times need not be held all at once."""
    if form == "csv":
        from bench.render.report import csv

        return csv.lines(folder)
    from bench.render.charts import vega
    from bench.render.report import html, markdown
    from bench.render.report.compose import compose

    if form == "html":
        vega.require()  # before a large folder is read for nothing
    found = compose(folder, threshold)
    return [html.render(found, __version__) if form == "html" else markdown.render(found, __version__)]


def _print(pieces: Iterable[str]) -> None:
    """Writes to stdout as UTF-8, whatever the terminal says of itself: it mostly goes into a file."""
    stream: Any = sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8", newline="\n")
    for piece in pieces:
        stream.write(piece)
    stream.flush()


command = build(with_settings(report, ("threshold", "json")), "report")
