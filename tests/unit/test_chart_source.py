"""The chart's values: one declaration makes the defaults, the schema and the reference, settings included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bench.backends import capabilities, names
from bench.config.hub_settings import HubSettings
from bench.config.settings import RunSettings
from charts.source import hub, pools
from charts.source.__main__ import CHART, main, schema_json, values_yaml
from charts.source.values import Values

pytestmark = pytest.mark.once

SCHEMA: dict[str, Any] = json.loads(schema_json())


def refused(**values: Any) -> list[str]:
    checked = jsonschema.Draft202012Validator(SCHEMA).iter_errors(values)
    return [error.message for error in checked]


def test_defaults_schema_and_reference_are_what_the_source_says() -> None:
    assert main(["--check"]) == 0


def test_the_defaults_keep_to_the_schema() -> None:
    assert refused(**json.loads(Values().model_dump_json(by_alias=True, exclude_none=True))) == []


def test_every_setting_of_a_run_and_of_the_hub_can_be_given_or_is_said_by_the_chart() -> None:
    run = SCHEMA["properties"]["settings"]["properties"]
    server = SCHEMA["$defs"]["Hub"]["properties"]["settings"]["properties"]
    assert set(run) == set(RunSettings.model_fields) - pools.DECIDED_BY_THE_CHART
    assert set(server) == set(HubSettings.model_fields) - hub.DECIDED_BY_THE_CHART


def test_every_value_is_explained_in_the_reference() -> None:
    page = (CHART / "README.md").read_text(encoding="utf-8")
    for part in ("pools.NAME.runSeconds", "hub.database.existingSecret", "watcher.waitSeconds", "networkPolicy.users"):
        assert f"| `{part}` |" in page
    for name, schema in SCHEMA["properties"].items():
        assert f"| `{name}` |" in page
        assert schema.get("description") or "$ref" in schema, name


def test_a_pool_can_have_each_backend_that_a_cluster_can_offer_and_no_template_compares_its_name() -> None:
    backends = SCHEMA["$defs"]["Pool"]["properties"]["backend"]["enum"]
    assert backends == [name for name in names() if capabilities(name).resource or not capabilities(name).gpu]
    assert "cuda" in backends
    assert "directml" not in backends
    for template in (CHART / "templates").rglob("*.*"):
        found = [name for name in names() if f'.backend "{name}"' in template.read_text(encoding="utf-8")]
        assert found == [], template


def test_a_value_can_be_written_as_the_command_line_has_it() -> None:
    assert refused(settings={"loop": "step,fit", "max_time": "2m", "param": {"batch": 64}}) == []
    assert refused(settings={"loop": ["step", "fit"], "max_time": 120}) == []


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"pols": {}}, "pols"),
        ({"pools": {"t4": {"gpu": 1}}}, "gpu"),
        ({"pools": {"T4": {}}}, "T4"),
        ({"pools": {"a-name-of-21-letters-": {}}}, "21"),
        ({"settings": {"batch": 64}}, "batch"),
        ({"settings": {"hub": "http://elsewhere"}}, "hub"),
        ({"hub": {"replicas": 2}}, "database"),
        ({"hub": {"enabled": False}}, "url"),
        ({"customWorkloads": {"mine": {}}}, "{}"),
        ({"metrics": {"podMonitor": {"enabled": "maybe"}}}, "maybe"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_means_nothing_is_refused_by_name(values: dict[str, Any], named: str) -> None:
    assert any(named in message for message in refused(**values))


def test_a_hub_on_postgresql_may_have_replicas() -> None:
    assert refused(hub={"replicas": 2, "database": {"existingSecret": "devbench-database"}}) == []


def test_the_chart_names_the_packages_version() -> None:
    from bench.version import __version__

    assert f'appVersion: "{__version__}"' in Path(CHART / "Chart.yaml").read_text(encoding="utf-8")
    assert "cuda" in values_yaml()
