"""The parts of the documentation that are made from the code, so that nothing is written twice.

What stands in a page between `<!-- made from X -->` and `<!-- end -->` is X: `settings` and `metrics` are the tables of
them all, anything else is a file, named from the page's folder and shown as it is. After a change of either, make it
again: `python -m bench.render.reference docs/reference.md`
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from bench.config.settings import RunSettings, default, option, variable
from bench.publish.prometheus.counters import INFO
from bench.publish.prometheus.metrics import METRICS, Declared

PART = re.compile(r"(<!-- made from (\S+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json"}


def current(page: Path) -> str:
    """The page's text, its made parts made anew.

    Raises:
        OSError: the page, or a file that it shows, can't be read.
    """
    return PART.sub(lambda found: found[1] + _made(found[2], page), page.read_text(encoding="utf-8"))


def settings_table() -> str:
    """Every setting: its option, variable, key of `devbench.toml`, default and meaning."""
    lines = ["| option | variable | key | default | meaning |", "|---|---|---|---|---|"]
    for name, field in RunSettings.model_fields.items():
        cells = [_options(name, field), f"`{variable(name)}`", f"`{name}`", default(field) or "–", _meaning(field)]
        lines.append("| " + " | ".join(each.replace("|", r"\|") for each in cells) + " |")
    return "\n".join(lines) + "\n"


def metrics_table() -> str:
    """Every metric of a run: its type, unit, labels beside `run`, and meaning."""
    lines = ["| metric | type | unit | labels | meaning |", "|---|---|---|---|---|"]
    for each in METRICS:
        lines.append(f"| `{each.name}` | {each.kind} | {each.unit or '–'} | {_labels(each)} | {each.help} |")
    return "\n".join(lines) + "\n"


def _labels(metric: Declared) -> str:
    names = [*(INFO if metric.kind == "info" else ()), *(["le"] if metric.kind == "histogram" else ())]
    names += [f"{metric.each}"] if metric.each else []
    return ", ".join(f"`{each}`" for each in names) or "–"


TABLES = {"settings": settings_table, "metrics": metrics_table}


def _made(source: str, page: Path) -> str:
    if source in TABLES:
        return TABLES[source]()
    shown = page.parent / source
    return f"```{LANGUAGES.get(shown.suffix, '')}\n{shown.read_text(encoding='utf-8')}```\n"


def _options(name: str, field: FieldInfo) -> str:
    names = [option(name), option(f"no_{name}")] if field.annotation is bool else [option(name)]
    return ", ".join(f"`{each}`" for each in names)


def _meaning(field: FieldInfo) -> str:
    allowed = [f"`{each}`" for each in _choices(field)]
    return (field.description or "") + (f" One of {', '.join(allowed)}." if allowed else "")


def _choices(field: FieldInfo) -> Iterator[str]:
    if get_origin(field.annotation) is Literal:
        yield from get_args(field.annotation)


def main(pages: list[str]) -> None:
    """Rewrites the pages whose made parts are no longer what the code says."""
    for page in map(Path, pages):
        text = current(page)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
