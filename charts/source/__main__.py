"""Makes `values.yaml`, `values.schema.json` and the table of the chart's README from the declaration.

`python -m charts.source` writes them; `python -m charts.source --check` ends with 1 where one is out of date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from charts.source.values import Values

CHART = Path(__file__).resolve().parent.parent / "devbench"
PART = re.compile(r"(<!-- made from values -->\n).*?(?=<!-- end -->)", re.DOTALL)
WIDTH = 118


def values_yaml() -> str:
    """The default values, each under a comment that says what it is."""
    head = "# Made by `python -m charts.source` from charts/source; change it there.\n"
    return head + "\n".join(_lines(Values(), 0)) + "\n"


def schema_json() -> str:
    """The JSON Schema that Helm holds a user's values to."""
    schema = _strict(Values.model_json_schema(by_alias=True))
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "devbench", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def readme() -> str:
    """The chart's README with its table of values made anew."""
    page = (CHART / "README.md").read_text(encoding="utf-8")
    rows = ["| value | default | meaning |", "|---|---|---|", *_rows(Values, "", Values())]
    return PART.sub(lambda found: found[1] + "\n".join(rows) + "\n", page)


def _lines(part: BaseModel, depth: int) -> Iterator[str]:
    pad = "  " * depth
    for name, field in _fields(type(part)):
        key, value = field.alias or name, getattr(part, name)
        yield from _comment(field.description or "", pad)
        if isinstance(value, BaseModel):
            yield f"{pad}{key}:"
            yield from _lines(value, depth + 1)
        elif value is None:
            yield f"{pad}# {key}:"
        elif isinstance(value, dict) and value:
            yield f"{pad}{key}:"
            yield from (f"{pad}  {inner}: {_flow(each)}" for inner, each in value.items())
        else:
            yield f"{pad}{key}: {_flow(value)}"


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """A part's fields, its own before those it inherits."""
    own = model.__annotations__
    yield from sorted(model.model_fields.items(), key=lambda each: each[0] not in own)


def _comment(text: str, pad: str) -> Iterator[str]:
    line = f"{pad}#"
    for word in text.split():
        if len(line) + 1 + len(word) > WIDTH:
            yield line
            line = f"{pad}#"
        line += f" {word}"
    yield line


def _flow(value: Any) -> str:
    """A value on one line; JSON is YAML too."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return json.dumps(value, ensure_ascii=False)


def _rows(model: type[BaseModel], prefix: str, defaults: BaseModel | None) -> Iterator[str]:
    for name, field in _fields(model):
        key = prefix + (field.alias or name)
        value = getattr(defaults, name) if defaults is not None else None
        inner = _model(field)
        yield f"| `{key}` | {_default(value, inner, field)} | {(field.description or '').replace('|', chr(92) + '|')} |"
        if inner is None:
            continue
        if key == "poolDefaults":  # what a pool may say is listed once, with what applies if it doesn't
            yield from _rows(inner, "pools.NAME.", inner())
        elif isinstance(value, BaseModel):
            yield from _rows(inner, key + ".", value)
        elif isinstance(value, dict) and key != "pools":
            yield from _rows(inner, key + ".NAME.", None)
        elif value is None:
            yield from _rows(inner, key + ".", None)


def _default(value: Any, inner: type[BaseModel] | None, field: FieldInfo) -> str:
    if value is None or value in ("", {}, []) or isinstance(value, BaseModel):
        return "–"
    if inner is not None and isinstance(value, dict):
        return f"`{', '.join(value)}`"
    return f"`{_flow(value)}`"


def _model(field: FieldInfo) -> type[BaseModel] | None:
    """The model that a field holds, by itself, in a map or as one of two."""
    seen = [field.annotation]
    while seen:
        each = seen.pop()
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
        seen += get_args(each)
    return None


def _strict(schema: Any) -> Any:
    """The same schema without the titles that repeat its keys, and with no other names where names have a pattern."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    return {**made, "additionalProperties": False} if "patternProperties" in made else made


FILES = {"values.yaml": values_yaml, "values.schema.json": schema_json, "README.md": readme}


def main(words: list[str]) -> int:
    """Writes the files, or says which are out of date."""
    stale = 0
    for name, made in FILES.items():
        path, text = CHART / name, made()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale += 1
            if "--check" in words:
                print(f"{path} is out of date: python -m charts.source", file=sys.stderr)
            else:
                path.write_text(text, encoding="utf-8", newline="\n")
    return 1 if stale and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
