"""Every value of the chart: what null means, and which values start runs again."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rendering import (
    CHART,
    DEFAULTS,
    HELMS,
    TOKEN,
    HelmError,
    helm,
    jobs,
    merge,
    objects,
    only,
    pods,
    render,
    text,
    variables,
)
from value_paths import POOL, UNRELATED, nested, paths

from charts.source.pools import UNMEASURED, Pool
from charts.source.values import Values

pytestmark = [pytest.mark.once, pytest.mark.needs("go"), pytest.mark.timeout(1800)]

MEASURED: dict[str, Any] = {
    "image": {"tag": "2"},
    "workloads": ["cifar"],
    "settings": {"seed": 2},
    "poolDefaults": {"memory": "4Gi"},
    "rerun": 1,
    "global": {"imageRegistry": "registry.example.org"},
    "customWorkloads": {"cifar": {"inline": "a = 1\n"}},
}
"""Other values of the sections that change a measurement."""


def names(**values: Any) -> set[str]:
    return {job["metadata"]["name"] for job in jobs(render(values=values)).values()}


EVERYTHING: dict[str, Any] = {
    **merge(DEFAULTS, UNRELATED),
    "poolDefaults": {**POOL, "enabled": True, "workers": [], "exclusiveNode": True, "cpu": 1, "nodes": 1},
    "pools": {
        "t4": {"enabled": True, "backend": "cuda", "accelerator": "t4"},
        "many": {"workers": [1, 2], "kernelCache": {"size": ""}},
    },
    "runNow": False,
}
"""Values that turn on what is off by default."""
FILES = {
    "workloads": ["mine", "theirs"],
    "customWorkloads": {"mine": {"inline": "a = 1", "configMap": None}, "theirs": {"configMap": {"name": "ours"}}},
}


@pytest.mark.parametrize(("program", "base"), [("helm-4", DEFAULTS), ("helm-3", EVERYTHING)])
def test_null_stands_for_the_default_or_for_none_wherever_it_is(program: str, base: dict[str, Any]) -> None:
    """Helm removes a value that a user sets to null, so a template must not rely on any value."""

    def problems(path: tuple[str, ...]) -> list[str]:
        try:
            rendered = objects(text(values=merge(base, nested(path, None)), program=program))
        except HelmError as error:
            return [f"{'.'.join(path)}: {error}"]
        content = json.dumps(rendered)
        # null is a value of these fields, and Kubernetes takes it as absent.
        content = content.replace('"rollingUpdate": null', "")
        return [
            f"{'.'.join(path)}: renders {wrong}" for wrong in ("null", "%!", "<nil>", "<no value>") if wrong in content
        ]

    with ThreadPoolExecutor(2) as pool:
        required = [("pools", "t4", "accelerator"), ("hub", "auth", "scraperSecret"), ("hub", "database")]
        required += [("hub", "database", "existingSecret"), ("hub", "auth", "existingSecret")]
        values = [path for path in paths() if path not in required]
        found = [problem for result in pool.map(problems, values) for problem in result]
    assert found == []


@pytest.mark.parametrize("program", HELMS)
def test_null_removes_a_pool_an_entry_of_a_map_and_a_user_id(program: str) -> None:
    values = {
        "pools": {"t4": None},
        "security": {"runAsUser": None, "fsGroup": None},
        "watcher": {"resources": {"limits": {"cpu": None}}},
        "metrics": {"dashboards": {"enabled": True, "labels": None}},
    }
    rendered = render(values=values, program=program)
    assert set(jobs(rendered)) == {"cpu"}
    for name, template in pods(rendered):
        security = template["spec"]["securityContext"]
        assert set(security) == {"runAsNonRoot", "runAsGroup", "seccompProfile"}, name
    (container,) = only(rendered, "Deployment", "-watcher")["spec"]["template"]["spec"]["containers"]
    assert set(container["resources"]["limits"]) == {"memory", "ephemeral-storage"}
    assert "grafana_dashboard" not in only(rendered, "ConfigMap", "health")["metadata"]["labels"]


def test_a_source_of_a_workload_that_is_null_is_none() -> None:
    """So a file of values can replace the ConfigMap of another one by the content of a file."""
    volumes = jobs(render(values=FILES))["cpu"]["spec"]["template"]["spec"]["volumes"]
    assert len([volume for volume in volumes if "configMap" in volume]) == 2


def test_a_null_section_has_its_defaults() -> None:
    rendered = render(values={"poolDefaults": None, "metrics": None, "networkPolicy": None, "watcher": None})
    expected = render()
    assert jobs(rendered) == jobs(expected)
    assert {item["kind"] for item in rendered} == {item["kind"] for item in expected}


def test_a_release_of_an_older_chart_without_a_new_value_can_be_upgraded_with_reuse_values(tmp_path: Path) -> None:
    """With --reuse-values, Helm renders a new chart with the complete values of the old one."""
    chart = tmp_path / "devbench"
    shutil.copytree(CHART, chart)
    (chart / "values.yaml").write_text(
        "pools: {cpu: {}, t4: null}\nsecurity: {runAsUser: 10001, runAsGroup: 10001, fsGroup: 10001}\n",
        encoding="utf-8",
    )
    rendered = objects(text(values=TOKEN, chart=chart))
    assert set(jobs(rendered)) == {"cpu"}
    assert jobs(rendered) == jobs(render(values={"pools": {"t4": None}}))


@pytest.mark.parametrize("program", HELMS)
def test_the_chart_works_as_a_dependency_with_a_condition(tmp_path: Path, program: str) -> None:
    parent = tmp_path / "parent"
    shutil.copytree(CHART, parent / "charts" / "devbench")
    dependency = {"name": "devbench", "version": "*", "condition": "devbench.enabled"}
    description = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": [dependency]}
    (parent / "Chart.yaml").write_text(json.dumps(description), encoding="utf-8")
    on = {"global": {"team": "ml"}, "devbench": {"enabled": True, **TOKEN, "pools": {"t4": None}}}
    rendered = objects(text(values=on, chart=parent, program=program))
    assert set(jobs(rendered)) == {"cpu"}
    assert objects(text(values={"devbench": {"enabled": False}}, chart=parent, program=program)) == []


def test_every_value_of_a_pool_is_known_to_these_tests() -> None:
    assert set(POOL) == {field.alias for field in Pool.model_fields.values()}
    sections = {field.alias or name for name, field in Values.model_fields.items()}
    names_of_objects = {"nameOverride", "fullnameOverride"}
    assert sections - set(MEASURED) - set(UNRELATED) - names_of_objects == {"pools", "runNow"}


def test_exactly_what_changes_a_measurement_starts_a_run_again() -> None:
    def job(change: str) -> str:
        return str(jobs(render(values={"pools": {"t4": {change: POOL[change]}}}))["t4"]["metadata"]["name"])

    before = str(jobs(render())["t4"]["metadata"]["name"])
    with ThreadPoolExecutor(2) as pool:
        changes = [key for key in POOL if key != "enabled"]
        unchanged = {key for key, name in zip(changes, pool.map(job, changes), strict=True) if name == before}
    assert unchanged == UNMEASURED - {"enabled"}


@pytest.mark.parametrize("section", MEASURED)
def test_a_section_that_concerns_the_measurement_starts_all_runs_again(section: str) -> None:
    assert not names() & names(**{section: MEASURED[section]})


def test_no_other_section_starts_a_run() -> None:
    """Monitoring, prices and the hub's secrets would cost hours of GPUs otherwise."""
    image = {"pullPolicy": "Always", "pullSecrets": ["registry"]}
    assert names(**UNRELATED, image=image) == names()


def test_an_entry_of_the_user_replaces_the_charts_entry_of_the_same_name() -> None:
    """Two entries of one name fail the installation with Helm 4."""
    own: dict[str, Any] = {
        "env": {"HOME": "/home", "DEVBENCH_HUB_WAIT": "1m", "DEVBENCH_HUB_PORT": "8081"},
        "podLabels": {"sidecar.istio.io/inject": "true"},
        "podAnnotations": {"linkerd.io/inject": "enabled"},
        "extraVolumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}],
        "extraVolumeMounts": [{"name": "tmp", "mountPath": "/tmp", "subPath": "own"}],
    }
    common = {"commonLabels": {"app.kubernetes.io/version": "ours", "team": "ml"}}
    rendered = render(values={"poolDefaults": own, "hub": own, "watcher": own, "test": own, **common})
    for name, template in pods(rendered):
        (container,) = template["spec"]["containers"]
        listed = [variable["name"] for variable in container["env"]]
        assert len(listed) == len(set(listed)), name
        assert variables(template)["HOME"] == "/home", name
        assert template["metadata"]["labels"]["sidecar.istio.io/inject"] == "true", name
        assert template["metadata"]["labels"]["team"] == "ml", name
        assert template["metadata"]["annotations"]["linkerd.io/inject"] == "enabled", name
        volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
        assert len(volumes) == len(template["spec"]["volumes"]), name
        assert volumes["tmp"] == own["extraVolumes"][0], name
        mounts = [mount for mount in container["volumeMounts"] if mount["mountPath"] == "/tmp"]
        assert mounts == own["extraVolumeMounts"], name
    for item in rendered:
        assert item["metadata"]["labels"]["app.kubernetes.io/version"] == "ours"


@pytest.mark.parametrize("key", ["devbench/pool", "app.kubernetes.io/component"])
def test_a_label_that_selects_pods_cannot_be_replaced(key: str) -> None:
    for values in ({"poolDefaults": {"podLabels": {key: "x"}}}, {"commonLabels": {key: "x"}}):
        with pytest.raises(HelmError, match=key):
            render(values=values)


def test_the_notes_of_a_dry_run_without_a_cluster_say_how_to_create_the_token() -> None:
    notes = helm("helm-4", "install", "devbench", str(CHART), "--dry-run=client")
    assert "create secret generic devbench-hub-token --from-literal=token=" in notes
    assert "kind: Secret" not in notes
