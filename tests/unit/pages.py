"""Read the pages of the documentation: sections, tables, links and command lines."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import bench

ROOT = Path(bench.__file__).parent.parent
FOLDERS = (".", "docs", "benchmarks", "charts/devbench", "examples")
PAGES = sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))
DOCS = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")}
"""The text of each page of `docs`, by its name without the suffix."""

SHELL = {"", "sh", "bash", "shell", "console"}
ENDS_A_COMMAND = {"|", "||", "&&", "&", ";", ">", ">>", "2>", "<"}


@dataclass(frozen=True)
class Fence:
    """A fenced block, with its language and its text."""

    language: str
    text: str


def fences(text: str) -> list[Fence]:
    """Return the fenced blocks of a page."""
    return [Fence(match[2], match[3]) for match in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```", text, re.M | re.S)]


def prose(text: str) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^( *)```\w*\n.*?^\1```", "", text, flags=re.M | re.S)


def section(text: str, title: str) -> str:
    """Return the text under a heading of the second level."""
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert match, f"there is no heading '## {title}'"
    return match[1]


def spans(text: str) -> list[str]:
    """Return the texts between backquotes."""
    return re.findall(r"`([^`\n]+)`", text)


def rows(text: str) -> list[list[str]]:
    """Return the cells of all tables, without their headers."""
    lines = [line for line in prose(text).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    rules = {index for index, row in enumerate(cells) if set("".join(row)) <= set("-:")}
    return [row for index, row in enumerate(cells) if not {index, index + 1} & rules]


def first_column(text: str) -> set[str]:
    """Return the texts between backquotes in the first cells of all tables."""
    return {name for row in rows(text) for name in spans(row[0])}


def links(text: str) -> list[str]:
    """Return the targets of a page's links, without links to the network."""
    targets = re.findall(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(text)))
    return [target for target in targets if not re.match(r"\w+:", target)]


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", prose(text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def command_lines(text: str) -> list[str]:
    """Return the lines that call devbench: in shell blocks, after `$` if a block shows output too, and in the text."""
    calls = [span for span in spans(prose(text)) if re.match(r"(\w+=\S+ )*devbench ", span)]
    for fence in fences(text):
        if fence.language in SHELL:
            lines = fence.text.replace("\\\n", " ").splitlines()
            prompted = fence.language == "console" or any(line.startswith("$ ") for line in lines)
            commands = [line[2:] for line in lines if line.startswith("$ ")] if prompted else lines
            calls += [line for line in commands if re.match(r"\s*(\w+=\S+ )*(\S*/)?devbench ", line)]
    return calls


def words(line: str) -> tuple[list[str], list[str]]:
    """Return the variables of a command line, and its words after `devbench`."""
    parts = shlex.split(line, comments=True)
    end = next((index for index, part in enumerate(parts) if part in ENDS_A_COMMAND), len(parts))
    start = next(index for index, part in enumerate(parts) if part.rpartition("/")[2] == "devbench")
    return [part.partition("=")[0] for part in parts[:start]], parts[start + 1 : end]
