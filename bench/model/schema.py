"""The JSON Schema of a result, for readers in other languages.

It is committed beside this file; after a change of the model, make it again:
`python -m bench.model.schema > bench/model/schema.json`
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.model.result import SCHEMA_VERSION, Result

COMMITTED = Path(__file__).with_name("schema.json")


def schema() -> dict[str, Any]:
    """The schema of what `devbench run` writes, in JSON Schema's draft 2020-12."""
    document = Result.model_json_schema(mode="serialization")
    document["properties"]["schema_version"] = {"const": SCHEMA_VERSION, "title": "Schema Version", "type": "integer"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": "A result of devbench"}


def text() -> str:
    """The schema as it is committed."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(text(), end="")
