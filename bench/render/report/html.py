"""A report as one HTML file that loads nothing. It contains its styles and charts, and no script."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bench.render.charts import phases, vega
from bench.render.messages import Message
from bench.render.report.document import FIGURE, Figure, ReportDocument, Table

HERE = Path(__file__).parent
LEAD = 6
"""Sentences of each chapter in the table of contents. The chapter itself has all of them."""


def render(report: ReportDocument, version: str) -> str:
    """Return the HTML of a report.

    Args:
        report: the report.
        version: the version of devbench.

    Raises:
        UsageError: a package for HTML reports is not installed.
    """
    vega.require()
    return str(environment().get_template("page.html").render(report=report, style=style(), version=version))


def environment(*folders: Path) -> Any:
    """Return a Jinja environment for the report's templates and for those in further folders."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([HERE, *folders]), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(lead=LEAD, root="")
    environment.filters.update(svg=_svg, code=_code)
    environment.tests.update(
        table=lambda item: isinstance(item, Table),
        measured=lambda text: FIGURE.match(text) is not None,
        figure=lambda item: isinstance(item, Figure),
        message=lambda item: isinstance(item, Message),
    )
    return environment


def style() -> str:
    """Return the style sheet, with rules that give charts the colours of the page."""
    variables = {"ink": vega.INK, "muted": vega.MUTED, "grid": vega.GRID, "accent": vega.ACCENT, "band": vega.BAND}
    rules = [
        f'svg [{attribute}="{colour}"] {{ {attribute}: var(--{name}); }}'
        for name, colour in variables.items()
        for attribute in ("fill", "stroke")
    ]
    colours = dict.fromkeys([*phases.PALETTE.values(), phases.OTHER])
    swatches = [f".c{colour[1:]} {{ background: {colour}; }}" for colour in colours]
    return "\n".join([(HERE / "page.css").read_text(encoding="utf-8"), *rules, *swatches])


def _code(text: str) -> Any:
    """Return a text as HTML, with the words between backticks as code."""
    import markupsafe

    return markupsafe.Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(text))))


def _svg(figure: Figure) -> Any:
    """Return the chart as one image with a text alternative."""
    import markupsafe

    alt = markupsafe.escape(figure.alt)
    return markupsafe.Markup(figure.draw().replace("<svg ", f'<svg role="img" aria-label="{alt}" ', 1))
