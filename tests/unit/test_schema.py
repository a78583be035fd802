"""The committed JSON Schema and the documents that follow it."""

from __future__ import annotations

import json
import math
from typing import Any

import jsonschema
import pytest
import referencing
from referencing.jsonschema import DRAFT202012
from synthetic import busy_machine, killed, misplaced, result

from bench.model.schema import COMMITTED, schema, text


def committed() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(COMMITTED.read_text(encoding="utf-8"))
    return document


def test_the_committed_schema_is_up_to_date() -> None:
    assert committed() == schema(), "make it again: python -m bench.model.schema > bench/model/schema.json"
    assert COMMITTED.read_text(encoding="utf-8") == text()


def test_a_written_result_is_valid() -> None:
    document = result(placement=misplaced(), failure=killed(), warnings=busy_machine())
    document.samples[0].first_losses = [math.nan, 1.0]
    validator = jsonschema.Draft202012Validator(committed())
    validator.check_schema(committed())
    validator.validate(json.loads(document.model_dump_json()))


def test_the_id_of_the_schema_is_a_name_with_its_version_that_references_resolve_against() -> None:
    document = committed()
    version = document["properties"]["schema_version"]["const"]
    assert document["$id"] == f"urn:devbench:result:{version}"
    registry: Any = referencing.Registry().with_resource(document["$id"], DRAFT202012.create_resource(document))
    assert registry.resolver(document["$id"]).lookup("#/$defs/Spec").contents == document["$defs"]["Spec"]
    by_id = jsonschema.Draft202012Validator({"$ref": document["$id"]}, registry=registry)
    by_id.validate(json.loads(result().model_dump_json()))
    assert not by_id.is_valid({})


@pytest.mark.parametrize(
    "change", [{"extra": 1}, {"schema_version": 1}, {"status": "fine"}, {"created": 5}, {"samples": [{"trial": 1}]}]
)
def test_the_schema_refuses_an_invalid_document(change: dict[str, Any]) -> None:
    document = {**json.loads(result().model_dump_json()), **change}
    assert not jsonschema.Draft202012Validator(committed()).is_valid(document)
