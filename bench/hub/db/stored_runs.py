"""Stored runs, as far as this version of devbench can read them.

A list shows every run. So a run stays readable although another version stored it, or a newer limit would refuse it.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Row

from bench.hub.db import documents, records
from bench.hub.problems import Problem
from bench.model.run_state import TITLE, RunState


def stored_run(row: Row[Any]) -> RunState:
    """Return the last message of a run. Fields that cannot be read have their defaults.

    Args:
        row: a row of `tables.RUNS`.
    """
    try:
        return documents.stored(row.document, RunState)
    except Problem:
        pass
    try:
        document = json.loads(row.document)
    except (ValueError, RecursionError):
        document = {}
    given = with_short_title(document) if isinstance(document, dict) else {}
    known = {name: value for name, value in given.items() if name in RunState.model_fields and name != "schema_version"}
    columns = {
        "id": row.id,
        "attempt": row.attempt,
        "state": row.state,
        "started": records.to_datetime(row.started),
    }
    required = {"title": "", "devbench": ""}
    try:
        return RunState.model_validate({**required, **known, **columns})
    except ValidationError as error:
        for invalid in error.errors():
            known.pop(str(invalid["loc"][0]), None)
    return RunState.model_validate({**required, **known, **columns})


def with_short_title(document: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a run with a title that is not too long."""
    title = document.get("title")
    return {**document, "title": title[:TITLE]} if isinstance(title, str) else document
