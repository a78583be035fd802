"""The OpenAPI document: the hub's responses match it, for valid and for invalid requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hubs import TOKEN, RunningHub
from hypothesis import HealthCheck, given, settings
from synthetic import explanation, ladder_results, measured
from test_hub_runs import run, send

pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("default")]  # warnings of other libraries do not matter here

EXAMPLES = 20
"""Cases per operation."""


def test_the_document_has_the_schemas_of_request_bodies(hub: RunningHub) -> None:
    document = hub.get("/openapi.json")
    schemas = document["components"]["schemas"]
    assert {"Result", "RunState", "Explanation", "Comparison", "Problem", "ResultPage"} <= schemas.keys()
    references = set(_references(document))
    assert {reference.rpartition("/")[2] for reference in references} <= schemas.keys()
    assert all(reference.startswith("#/components/schemas/") for reference in references)


def _references(part: Any) -> Any:
    if isinstance(part, dict):
        yield from (value for name, value in part.items() if name == "$ref" and isinstance(value, str))
        for child in part.values():
            yield from _references(child)
    elif isinstance(part, list):
        for child in part:
            yield from _references(child)


@pytest.mark.timeout(600)
def test_schemathesis_finds_no_response_that_the_document_does_not_describe(serve: Callable[..., RunningHub]) -> None:
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    hub = serve()
    for result in ladder_results():
        hub.send(result)
    hub.send(measured("1", [0.1, 0.1]))
    hub.put("/api/v1/explanations/why", explanation(ladder_results()).model_dump_json().encode())
    send(hub, run("r"))
    document = json.loads(hub.request("GET", "/openapi.json").data)
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=hub.url)
    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    operations = 0
    for item in schema.get_all_operations():
        operations += 1
        operation: Any = item
        _check_operation(operation.ok(), hub, checks)
    assert operations == 13
    rows = hub.get("/api/v1/results?limit=500")["results"]
    assert len(rows) >= 9


def _check_operation(operation: Any, hub: RunningHub, checks: list[Any]) -> None:
    """Call one operation with many cases."""

    def check(case: Any) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        case.call_and_validate(base_url=hub.url, headers=headers, checks=checks, timeout=60)

    suppressed = list(HealthCheck)
    repeated = settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=suppressed, derandomize=True
    )
    run_cases: Any = repeated(given(case=operation.as_strategy())(check))
    run_cases()
