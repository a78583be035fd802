"""What a page is made of, and how it is written down: by the report's templates and style."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from bench.hub.db.documents import FIGURE_ERRORS
from bench.hub.problems import Problem
from bench.render.messages import Message
from bench.render.report import html
from bench.render.report.document import Figure, Section, Table
from bench.version import __version__

STATIC = Path(__file__).parent / "static"
PAGES = {"Overview": "/", "Results": "/results", "Explanations": "/explanations", "Runs": "/runs"}
"""In the head of every page."""

T = TypeVar("T")


@dataclass(frozen=True)
class Choice:
    """A filter of a form: its name, what it is called, what can be chosen and what is."""

    name: str
    label: str
    choices: tuple[str, ...]
    chosen: str = ""


@dataclass(frozen=True)
class Form:
    """Filters, and the page that they lead to."""

    action: str
    fields: tuple[Choice, ...]


@dataclass(frozen=True)
class Page:
    """A page.

    Args:
        title: its heading.
        sections: what it shows.
        sentences: what came out, in so many words.
        about: how and when.
        links: where one can go from here: name and address.
        within: address of the page in the head that this one is, or belongs to.
        form: filters, where it has any.
        live: address of the events that keep its sections up to date; empty where nothing does.
    """

    title: str
    sections: tuple[Section, ...] = ()
    sentences: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    within: str = ""
    form: Form | None = field(default=None)
    live: str = ""


def render(page: Page, root: str) -> str:
    """A page as HTML.

    Args:
        page: what it shows; its addresses begin at the hub's own root.
        root: path under which a proxy shows the hub, which is put before all of them; empty where it has none.
    """
    return str(
        _templates(root)
        .get_template("hub.html")
        .render(page=page, pages=PAGES, version=__version__, stylesheet=_named("hub.css"), script=_named("live.js"))
    )


def problem_page(problem: Problem) -> Page:
    """Return the page that shows a problem."""
    message = Message("failure", problem.detail, (problem.hint,) if problem.hint else ())
    return Page(problem.title, (Section("What happened", (message,)),))


def fragment(sections: tuple[Section, ...], root: str) -> str:
    """Sections alone, to be put into a page."""
    return str(_templates(root).get_template("fragment.html").render(sections=sections))


def address(*parts: str, **query: str) -> str:
    """An address below the hub's own root, whatever characters its parts have."""
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    return f"{path}?{urlencode(query)}" if query else path


def careful(make: Callable[[], T], otherwise: T) -> T:
    """What is made of a document, or the other where its figures are of a kind that no run has."""
    try:
        return make()
    except FIGURE_ERRORS as error:
        logging.getLogger("devbench.hub").warning("a document's figures can't be shown: %s", error)
        return otherwise


def drawn(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Sections with their charts drawn, or with a remark in place of one that can't be."""
    return tuple(replace(each, content=tuple(map(_drawn, each.content))) for each in sections)


def _drawn(part: Table | Figure | Message) -> Table | Figure | Message:
    if not isinstance(part, Figure):
        return part
    figure, nothing = part, Message("warning", "these figures can't be drawn; the table has them")
    text = careful(figure.draw, "")
    return replace(figure, draw=lambda: text) if text else nothing


@cache
def asset(name: str) -> tuple[bytes, str] | None:
    """A file that pages load, and its media type; none where there is no such file."""
    texts = {
        _named("hub.css"): (_style(), "text/css; charset=utf-8"),
        _named("live.js"): ((STATIC / "live.js").read_text(encoding="utf-8"), "text/javascript; charset=utf-8"),
    }
    found = texts.get(name)
    return (found[0].encode(), found[1]) if found else None


@cache
def _named(name: str) -> str:
    """A file's name with a part of its hash, so that a browser may keep it for ever."""
    text = _style() if name.endswith(".css") else (STATIC / name).read_text(encoding="utf-8")
    stem, _, suffix = name.rpartition(".")
    return f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.{suffix}"


@cache
def _style() -> str:
    return html.style() + "\n" + (STATIC / "hub.css").read_text(encoding="utf-8")


@cache
def _templates(root: str) -> Any:
    found = html.environment(Path(__file__).parent)
    found.globals["root"] = root
    return found
