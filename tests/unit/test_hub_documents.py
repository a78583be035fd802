"""Documents that the hub rejects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError
from synthetic import measured

from bench.hub.db import documents
from bench.hub.db.first_errors import validator
from bench.hub.problems import Problem
from bench.model.result import Result

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("field", "value"), [("latency", ["a"] * 2000), ("phases", {"import": "a", "data": "a", "build": "a"})]
)
def test_a_document_is_rejected_at_its_first_wrong_item(field: str, value: Any) -> None:
    document = json.loads(measured("1", [0.1]).model_dump_json())
    document["samples"][0][field] = value
    with pytest.raises(ValidationError) as error:
        validator(Result).validate_python(document)
    assert error.value.error_count() == 1
    with pytest.raises(Problem, match=rf"invalid result at 'samples\.0\.{field}"):
        documents.result(json.dumps(document).encode())


def test_a_valid_document_is_parsed_as_by_its_model() -> None:
    result = measured("1", [0.1])
    assert documents.result(result.model_dump_json().encode()) == result
