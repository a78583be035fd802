"""The values of the Helm chart. Defaults, schema and reference are generated from one declaration."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from bench.backends import capabilities, names
from bench.config.hub_settings import HubSettings
from bench.config.settings import RunSettings
from charts.source import hub, pools
from charts.source.__main__ import CHART, main, schema_json, values_yaml
from charts.source.facts import facts_json
from charts.source.values import Values

pytestmark = pytest.mark.once

SCHEMA: dict[str, Any] = json.loads(schema_json())


def errors(**values: Any) -> list[str]:
    """Return the messages with which the schema refuses these values."""
    problems = jsonschema.Draft202012Validator(SCHEMA).iter_errors(values)
    return [error.message for error in problems]


def test_the_generated_defaults_schema_and_reference_are_up_to_date() -> None:
    assert main(["--check"]) == 0


def test_the_defaults_conform_to_the_schema() -> None:
    assert errors(**json.loads(Values().model_dump_json(by_alias=True, exclude_none=True))) == []


def test_every_setting_of_a_run_and_of_the_hub_is_a_value_or_set_by_the_chart() -> None:
    run = SCHEMA["properties"]["settings"]["properties"]
    server = SCHEMA["$defs"]["Hub"]["properties"]["settings"]["properties"]
    assert set(run) == set(RunSettings.model_fields) - pools.DECIDED_BY_THE_CHART
    assert set(server) == set(HubSettings.model_fields) - hub.DECIDED_BY_THE_CHART


def test_every_value_is_documented_in_the_reference() -> None:
    page = (CHART / "README.md").read_text(encoding="utf-8")
    for part in ("pools.NAME.runSeconds", "hub.database.existingSecret", "watcher.waitSeconds", "networkPolicy.users"):
        assert f"| `{part}` |" in page
    for name, schema in SCHEMA["properties"].items():
        assert f"| `{name}` |" in page
        assert schema.get("description") or "$ref" in schema, name


def test_a_pool_accepts_every_backend_of_a_cluster_and_no_template_compares_the_name_of_a_backend() -> None:
    backends = SCHEMA["$defs"]["Pool"]["properties"]["backend"]["enum"]
    assert backends[:-1] == [name for name in names() if capabilities(name).resource or not capabilities(name).gpu]
    assert "cuda" in backends
    assert "directml" not in backends
    for template in (CHART / "templates").rglob("*.*"):
        text = template.read_text(encoding="utf-8")
        assert [name for name in names() if f'.backend "{name}"' in text] == [], template


def test_what_kubernetes_and_a_driver_call_a_device_comes_from_its_backend_and_is_in_no_template_or_value() -> None:
    backends = [capabilities(name) for name in names() if capabilities(name).resource]
    assert all(backend.product_label for backend in backends)
    words = {word for backend in backends for word in (backend.resource, backend.product_label, backend.kernel_cache)}
    files = [*(CHART / "templates").rglob("*.*"), CHART / "values.schema.json", CHART / "values.yaml"]
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert [word for word in words if word in text] == [], file
    keys = [key.lower() for key in SCHEMA["$defs"]["Pool"]["properties"]]
    assert [key for key in keys for name in names() if capabilities(name).gpu and name in key] == []


def test_null_is_allowed_for_every_value_because_helm_keeps_it_when_values_are_reused() -> None:
    def nulls(schema: dict[str, Any]) -> dict[str, Any]:
        return dict.fromkeys(schema["properties"])

    assert errors(**nulls(SCHEMA)) == []
    for name in ("Pool", "Hub", "Metrics", "Resources", "ImageOverride", "PodSecurity"):
        validator = jsonschema.Draft202012Validator({**SCHEMA["$defs"][name], "$defs": SCHEMA["$defs"]})
        assert list(validator.iter_errors(nulls(SCHEMA["$defs"][name]))) == [], name
    assert errors(pools={"t4": None}, hub={"replicas": None}, settings={"seed": None}) == []


def test_a_missing_value_has_its_default_except_entries_of_maps_and_ids_that_may_be_null() -> None:
    defaults = json.loads(facts_json())["defaults"]
    assert defaults["poolDefaults"]["memory"] == Values().pool_defaults.memory
    assert defaults["hub"]["service"] == Values().hub.service.model_dump(by_alias=True)
    assert defaults["security"] == {}
    assert defaults["pools"] == {}
    assert defaults["hub"]["resources"] == {"requests": {}, "limits": {}}


def test_a_value_may_use_the_syntax_of_the_command_line() -> None:
    assert errors(settings={"loop": "step,fit", "max_time": "2m", "param": {"batch": 64}}) == []
    assert errors(settings={"loop": ["step", "fit"], "max_time": 120}) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("max_time", value) for value in ("90", "90s", "1h30m", "1.5 M", " 2m 5s ", ".5h", "500ms", 0.5)),
        *(("target_error", value) for value in ("3%", "0.5 %", ".03", "0.03", 0.03)),
        *(("loop", value) for value in ("fit", "fit, step", ["fit", "as-written"], [])),
        *(("change", value) for value in ("cache,prefetch", ["cache"])),
        *(("xla", value) for value in ("on", True, False, "auto")),
        *(("args", value) for value in ("--epochs 3", "")),
        ("vary", {"xla": "on,off"}),
    ],
)
def test_a_setting_of_a_run_is_accepted_as_on_the_command_line(name: str, value: Any) -> None:
    assert errors(settings={name: value}) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("max_time", value) for value in ("2 minutes", "a while", "-1s", 0, "")),
        *(("target_error", value) for value in ("3", 3, 0, "half")),
        *(("loop", value) for value in ("stepp", "fit,stepp", "fit step", ["fitt"])),
        *(("change", value) for value in ("cahce", ["cahce"])),
        ("args", ["--epochs", "3"]),
        ("vary", {"xla": "on,off", "seed": "1,2"}),
        ("compare", True),
        ("scrape_interval", 5),
    ],
)
def test_a_setting_that_a_run_would_refuse_is_refused(name: str, value: Any) -> None:
    assert errors(settings={name: value}) != []


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        *(("keep_days", value, True) for value in ("90", "90d", "12h", 1.5)),
        *(("keep_days", value, False) for value in ("90 days", 0)),
        *(("root_path", value, True) for value in ("/devbench", "/a/b/", "")),
        *(("root_path", value, False) for value in ("devbench", "/a b")),
    ],
)
def test_a_setting_that_the_hub_would_refuse_is_refused(name: str, value: Any, fits: bool) -> None:
    assert (errors(hub={"settings": {name: value}}) == []) is fits


def test_a_setting_that_devbench_scale_refuses_is_refused_for_a_pool_with_workers() -> None:
    from bench.errors import SettingsError
    from bench.study.scale import check_settings

    values: dict[str, Any] = {
        "env": {"a": "/a"},
        "vary": {"xla": "on,off"},
        "full": True,
        "compare": True,
        "profile": "a",
    }
    refused = set()
    for name in RunSettings.model_fields.keys() - {"backend"}:
        set_value: dict[str, Any] = {name: values.get(name, ("cache",))}
        changed = RunSettings.model_construct(**set_value)
        try:
            check_settings(changed)
        except SettingsError:
            refused.add(name)
    assert refused - pools.DECIDED_BY_THE_CHART == set(pools.NOT_WITH_WORKERS)


@pytest.mark.parametrize("name", ["JOB_COMPLETION_INDEX", "DEVBENCH_RUN_ID", "DEVBENCH_ATTEMPT"])
def test_a_variable_that_identifies_a_run_cannot_be_replaced(name: str) -> None:
    assert any(name in message for message in errors(poolDefaults={"env": {name: "1"}}))
    assert errors(poolDefaults={"env": {"JOB_NAME": "mine"}}) == []


@pytest.mark.parametrize(
    ("values", "name"),
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
    ids=lambda argument: argument if isinstance(argument, str) else "",
)
def test_an_invalid_value_is_refused_with_its_name(values: dict[str, Any], name: str) -> None:
    assert any(name in message for message in errors(**values))


def test_a_hub_on_postgresql_may_have_replicas() -> None:
    assert errors(hub={"replicas": 2, "database": {"existingSecret": "devbench-database"}}) == []


def test_the_chart_has_the_version_of_the_package() -> None:
    from bench.version import __version__

    description = (CHART / "Chart.yaml").read_text(encoding="utf-8")
    assert f'appVersion: "{__version__}"' in description
    for image in ("cpu", "cuda", "hub"):
        assert f"image: devbench:{__version__}-{image}\n" in description
    assert "cuda" in values_yaml()
