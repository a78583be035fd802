"""`devbench report`: a folder of results as an HTML page, as Markdown, or as raw times in CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bench.cli.command import announce, build, print_json
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.errors import UsageError
from bench.version import __version__

Format = Literal["html", "markdown", "csv"]
PAGE = Path("report.html")


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of results.")],
    settings: RunSettings,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"File to write. Default: {PAGE} for HTML, stdout for the others."),
    ] = None,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="[html|markdown|csv]",
            help="html: a page with charts. markdown: text for a pull request. csv: raw times. Default: html.",
        ),
    ] = "html",
) -> None:
    """Write a report on results as HTML, Markdown or CSV."""
    from bench.store import atomic

    path = output or (PAGE if form == "html" else None)
    if path is None and settings.json:
        raise UsageError(f"--json and {form} cannot both go to stdout", "Set a file with --output.")
    made = _made(folder, form, settings.threshold)
    if path is None:
        _print(made)
        return
    count = atomic.write_text(path, made)
    if settings.json:
        print_json({"report": {"file": str(path), "format": form, "bytes": count}})
    else:
        announce(f"report: {path}" + (". Open it in a browser." if form == "html" else ""))


def _made(folder: Path, form: Format, threshold: float) -> Iterable[str]:
    """Return the report in pieces. CSV is made file by file, so that only one result's raw times are in memory."""
    if form == "csv":
        from bench.render.report import csv

        return csv.lines(folder)
    from bench import api
    from bench.render.charts import vega
    from bench.render.report import html, markdown
    from bench.render.report.compose import compose

    if form == "html":
        vega.require()  # before a large folder is read in vain
    document = compose(*api.report(folder, threshold))
    return [html.render(document, __version__) if form == "html" else markdown.render(document, __version__)]


def _print(pieces: Iterable[str]) -> None:
    """Write to stdout as UTF-8 instead of the terminal's encoding, because the output usually goes into a file."""
    stream: Any = sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8", newline="\n")
    for piece in pieces:
        stream.write(piece)
    stream.flush()


TEXTS = {"threshold": "Smallest difference that matters. Default: 2%."}
"""Help that differs from that of `run`."""

command = build(with_settings(report, ("threshold", "json"), TEXTS), "report")
