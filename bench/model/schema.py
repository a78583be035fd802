"""The JSON Schema of a result, for readers in other languages.

It is committed beside this file. After a change of the model, generate it again:
`python -m bench.model.schema > bench/model/schema.json`
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.model.result import SCHEMA_VERSION, Result

ID = f"urn:devbench:result:{SCHEMA_VERSION}"
"""The `$id` of the schema, which changes with its version. It is a name, not an address."""

COMMITTED = Path(__file__).with_name("schema.json")


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a result."""
    document = Result.model_json_schema(mode="serialization")
    document["properties"]["schema_version"] = {"const": SCHEMA_VERSION, "title": "Schema Version", "type": "integer"}
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "$id": ID, **document, "title": "A result of devbench"}


def text() -> str:
    """Return the schema as the text of the committed file."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(text(), end="")
