"""A report as one HTML file, which asks for nothing: style and drawings stand in it, and there is no script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.render.charts import drawing
from bench.render.charts.bars import OTHER, PALETTE
from bench.render.report.parts import FIGURE, Figure, Remark, Report, Table

HERE = Path(__file__).parent
LEAD = 6
"""Sentences of one chapter at the top; the others stand in the chapter."""


def render(report: Report, version: str) -> str:
    """The document.

    Args:
        report: what it says.
        version: of devbench.

    Raises:
        UsageError: what draws and writes it is not installed.
    """
    drawing.require()
    return str(environment().get_template("page.html").render(report=report, style=style(), version=version))


def environment(*folders: Path) -> Any:
    """What renders templates: the report's, whose parts others may use too, and those in further folders."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([HERE, *folders]), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(lead=LEAD, root="")
    environment.filters.update(svg=_svg)
    environment.tests.update(
        table=lambda part: isinstance(part, Table),
        measured=lambda text: FIGURE.match(text) is not None,
        figure=lambda part: isinstance(part, Figure),
        remark=lambda part: isinstance(part, Remark),
    )
    return environment


def style() -> str:
    """The style of a report's parts, with what gives drawings the page's colours."""
    return _styled((HERE / "page.css").read_text(encoding="utf-8"))


def _svg(figure: Figure) -> Any:
    """The drawing, as one picture with a text for those who do not see it."""
    import markupsafe

    drawn = figure.draw()
    alt = markupsafe.escape(figure.alt)
    return markupsafe.Markup(drawn.replace("<svg ", f'<svg role="img" aria-label="{alt}" ', 1))


def _styled(text: str) -> str:
    """The style, with the rules that give a drawing the page's colours."""
    names = {
        "ink": drawing.INK,
        "muted": drawing.MUTED,
        "grid": drawing.GRID,
        "accent": drawing.ACCENT,
        "band": drawing.BAND,
    }
    rules = [
        f'svg [{attribute}="{colour}"] {{ {attribute}: var(--{name}); }}'
        for name, colour in names.items()
        for attribute in ("fill", "stroke")
    ]
    swatches = [f".c{colour[1:]} {{ background: {colour}; }}" for colour in dict.fromkeys([*PALETTE.values(), OTHER])]
    return "\n".join([text, *rules, *swatches])
