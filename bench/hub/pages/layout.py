"""What a page consists of, and its rendering with the report's templates and style."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from bench.hub.db import records
from bench.hub.db.documents import FIGURE_ERRORS
from bench.hub.problems import Problem
from bench.render import numbers
from bench.render.messages import Message
from bench.render.report import html
from bench.render.report.document import Section
from bench.version import __version__

STATIC = Path(__file__).parent / "static"
NAVIGATION = {"Overview": "/", "Results": "/results", "Explanations": "/explanations", "Runs": "/runs"}
"""The links at the top of every page."""

NONE = "–"
"""A table's cell without a value."""

T = TypeVar("T")


@dataclass(frozen=True)
class Choice:
    """A filter in a form: parameter, label, the values it offers, and the selected value or ""."""

    name: str
    label: str
    values: tuple[str, ...]
    selected: str = ""


@dataclass(frozen=True)
class Form:
    """Filters, and the address that they are sent to."""

    action: str
    fields: tuple[Choice, ...]


@dataclass(frozen=True)
class Edit:
    """What people may change about a result: the address of the API, and the current values."""

    address: str
    tags: str
    note: str
    silenced: bool


@dataclass(frozen=True)
class Page:
    """A page.

    Args:
        title: the heading.
        sections: tables, charts and messages.
        sentences: the outcome, in complete sentences.
        about: how and when it was measured.
        links: names and addresses of related pages.
        current: address of the navigation link that the page belongs to.
        form: filters, or None.
        events: address of the events that update the sections; empty if nothing updates them.
        edit: what people may change, or None.
    """

    title: str
    sections: tuple[Section, ...] = ()
    sentences: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    current: str = ""
    form: Form | None = None
    events: str = ""
    edit: Edit | None = None


def render(page: Page, root: str) -> str:
    """Return a page as HTML.

    Args:
        page: the page. Its addresses start at the hub's own root.
        root: path under which a proxy serves the hub. It is put before all addresses.
    """
    return str(
        _templates(root)
        .get_template("hub.html")
        .render(
            page=page,
            navigation=NAVIGATION,
            version=__version__,
            stylesheet=_hashed_name("hub.css"),
            script=_hashed_name("live.js"),
            edit_script=_hashed_name("edit.js"),
        )
    )


def fragment(sections: tuple[Section, ...], root: str) -> str:
    """Return sections as HTML, to be inserted into a page."""
    return str(_templates(root).get_template("fragment.html").render(sections=sections))


def problem_page(problem: Problem) -> Page:
    """Return the page that shows a problem."""
    message = Message("failure", problem.detail, (problem.hint,) if problem.hint else ())
    return Page(problem.title, (Section("What happened", (message,)),))


def address(*parts: str, **query: str) -> str:
    """Return an address below the hub's root, from path segments with any characters and a query."""
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    return f"{path}?{urlencode(query)}" if query else path


def timestamp(stored: int, seconds: bool = False) -> str:
    """Write a time of the database, in microseconds since 1970: to the minute, or to the second with `seconds`."""
    return numbers.timestamp(records.to_datetime(stored), seconds=seconds)


def guarded(make: Callable[[], T], fallback: T) -> T:
    """Return what `make` returns, or the fallback if a document has figures that no run can have."""
    try:
        return make()
    except FIGURE_ERRORS as error:
        logging.getLogger("devbench.hub").warning("cannot show the figures of a document: %s", error)
        return fallback


def asset(name: str) -> tuple[bytes, str] | None:
    """Return a file that pages load, and its media type; None if there is no such file."""
    return _assets().get(name)


@cache
def _assets() -> dict[str, tuple[bytes, str]]:
    kinds = {"hub.css": "text/css", "live.js": "text/javascript", "edit.js": "text/javascript"}
    return {_hashed_name(name): (_text(name).encode(), f"{kind}; charset=utf-8") for name, kind in kinds.items()}


@cache
def _hashed_name(name: str) -> str:
    """Return a file's name with a part of its hash, so that browsers may cache it forever."""
    stem, _, suffix = name.rpartition(".")
    return f"{stem}-{hashlib.sha256(_text(name).encode()).hexdigest()[:12]}.{suffix}"


@cache
def _text(name: str) -> str:
    """Return a file's content. The stylesheet extends the report's."""
    own = (STATIC / name).read_text(encoding="utf-8")
    return f"{html.style()}\n{own}" if name == "hub.css" else own


@cache
def _templates(root: str) -> Any:
    environment = html.environment(Path(__file__).parent)
    environment.globals["root"] = root
    return environment
