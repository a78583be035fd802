"""The objects that Helm 3 and Helm 4 render from the cases of `ci/`, without a cluster."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import programs
import pytest
from rendering import (
    CASES,
    CHART,
    GENERATED_TOKEN,
    HELMS,
    OFFLINE,
    TOKEN,
    Object,
    helm,
    jobs,
    notes,
    objects,
    only,
    operator_versions,
    pods,
    render,
    required_labels,
    text,
)

pytestmark = [pytest.mark.once, pytest.mark.needs("go"), pytest.mark.timeout(1800)]

cases = pytest.mark.parametrize("case", OFFLINE, ids=lambda path: path.stem)
helms = pytest.mark.parametrize("program", HELMS)


@helms
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_each_case_passes_helm_lint(case: Path, program: str) -> None:
    output = helm(program, "lint", "--strict", str(CHART), "--values", str(case), "--kube-version", "1.36.3")
    assert "0 chart(s) failed" in output


@cases
def test_helm_3_and_helm_4_render_the_same_objects(case: Path) -> None:
    helm_3, helm_4 = (objects(text(case, program=program, options=operator_versions())) for program in HELMS)
    assert helm_3 == helm_4
    assert helm_3


@cases
def test_kube_score_finds_nothing_critical(case: Path, tmp_path: Path) -> None:
    # A hub on SQLite and a watcher have one replica. The Job ends runs, so they need no disruption budget.
    ignored = (
        "deployment-replicas", "deployment-has-poddisruptionbudget", "deployment-has-host-podantiaffinity",
        "container-image-pull-policy", *(["pod-networkpolicy"] if "bare" in case.stem else []),
    )  # fmt: skip
    manifests = tmp_path / "all.yaml"
    manifests.write_text(text(case), encoding="utf-8")
    # The hub, the watcher and the test have no CPU limit. Another test checks the limits of runs.
    words = ["--ignore-container-cpu-limit", *(f"--ignore-test={name}" for name in ignored)]
    completed = subprocess.run(
        [str(programs.tool("kube-score")), "score", "--output-format=ci", *words, str(manifests)],
        capture_output=True,
        text=True,
    )
    critical = [line for line in completed.stdout.splitlines() if line.startswith("[CRITICAL]")]
    assert completed.stdout, completed.stderr
    assert not critical


def test_a_parent_chart_may_pass_global_values() -> None:
    assert render(values={"global": {"storageClass": "fast"}}) == render()


def test_a_registry_of_a_parent_chart_or_of_the_image_holds_for_every_repository_without_its_own() -> None:
    def images(values: Object) -> set[str]:
        return {template["spec"]["containers"][0]["image"] for _, template in pods(render(values=values))}

    tags = ("0.1.0-cpu", "0.1.0-cuda", "0.1.0-hub")
    assert images({"image": {"registry": "r.example.org"}}) == {f"r.example.org/devbench:{tag}" for tag in tags}
    values: Object = {"image": {"registry": "r.example.org"}, "global": {"imageRegistry": "g.example.org:5000"}}
    assert images(values) == {f"g.example.org:5000/devbench:{tag}" for tag in tags}
    pools = {"t4": {"image": {"repository": "team/own"}}, "cpu": {"image": {"repository": "h.example.org/own"}}}
    assert images({**values, "pools": pools}) == {
        "g.example.org:5000/team/own:0.1.0-cuda", "h.example.org/own:0.1.0-cpu", "g.example.org:5000/devbench:0.1.0-hub"
    }  # fmt: skip
    secrets = {"image": {"pullSecrets": ["a", "c"]}, "global": {"imagePullSecrets": [{"name": "b"}, "c"]}}
    for name, template in pods(render(values=secrets)):
        assert template["spec"]["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}, {"name": "c"}], name


@helms
def test_rendering_without_a_cluster_creates_no_token_and_pods_wait_for_its_secret(program: str) -> None:
    rendered = objects(text(GENERATED_TOKEN, program=program))
    assert not [item for item in rendered if item["kind"] == "Secret"]
    for _, template in pods(rendered):
        volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
        assert volumes["hub-token"]["secret"]["secretName"] == "devbench-hub-token"


def test_the_helm_test_waits_for_the_jobs_by_name() -> None:
    rendered = render()
    (container,) = only(rendered, "Pod")["spec"]["containers"]
    arguments = dict(word.split("=") for word in container["args"] if "=" in word)
    assert arguments == {job["metadata"]["name"]: "cifar,mnist" for job in jobs(rendered).values()}


def test_a_release_without_pools_has_no_helm_test() -> None:
    for pools in ({"cpu": None, "t4": None}, {"cpu": {"enabled": False}, "t4": {"enabled": False}}):
        rendered = render(values={"pools": pools})
        assert not [item for item in rendered if item["kind"] == "Pod"]
        assert not [item for item in rendered if item["metadata"]["name"].endswith("-test")]
        said = notes({"pools": pools})
        assert "devbench measures nothing, because no pool is enabled." in said
        assert "helm -n default test" not in said


def test_the_watchers_of_two_dependencies_of_one_chart_follow_different_runs(tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    shutil.copytree(CHART, parent / "charts" / "devbench")
    aliases = [{"name": "devbench", "version": "*", "alias": alias} for alias in ("small", "large")]
    description = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": aliases}
    (parent / "Chart.yaml").write_text(json.dumps(description), encoding="utf-8")
    rendered = objects(text(values={"small": TOKEN, "large": TOKEN}, chart=parent))
    for alias, other in (("small", "large"), ("large", "small")):
        watcher = only(rendered, "Deployment", f"-{alias}-watcher")["spec"]["template"]["spec"]["containers"][0]
        words = watcher["args"]
        selector = dict(word.split("=") for word in words[words.index("--selector") + 1].split(","))
        labels = {
            item["metadata"]["labels"]["app.kubernetes.io/name"]: item["metadata"]["labels"]
            for item in rendered
            if item["kind"] == "Job"
        }
        assert selector.items() <= labels[alias].items()
        assert not selector.items() <= labels[other].items()


def test_names_in_a_release_with_a_long_name_stay_within_the_limits_of_kubernetes() -> None:
    values = {"fullnameOverride": "a-name-of-25-characters-x", "pools": {"a-pool-of-20-letters": {"preset": "none"}}}
    for item in render(values=values):
        assert len(item["metadata"]["name"]) <= 63, item["metadata"]["name"]
    name = jobs(render(values=values))["a-pool-of-20-letters"]["metadata"]["name"]
    assert len(f"{name}.{'u' * 36}.999") <= 100, "the id of a run has at most 100 characters"


def test_the_pod_of_the_helm_test_has_the_image_of_the_hub() -> None:
    for image in ({"repository": "mirror/hub"}, {"digest": f"sha256:{'0' * 64}"}):
        rendered = render(values={"hub": {"image": image}})
        (hub,) = only(rendered, "Deployment", "-hub")["spec"]["template"]["spec"]["containers"]
        (test,) = only(rendered, "Pod")["spec"]["containers"]
        assert test["image"] == hub["image"]


def test_names_that_yaml_reads_as_something_else_stay_texts() -> None:
    """To YAML 1.1, `on` and `y` are true, and 2024 is a number."""
    names = {"on": "on", "y": "y", "2024": "2024", "null": "null"}
    pool = {"preset": "none", "instanceType": "4", "runtimeClassName": "on", "dataClaim": "no", "workers": [2]}
    own = {
        "nameOverride": "on",
        "fullnameOverride": "y",
        "pools": {"cpu": None, "t4": None, "on": pool, "yes": {"preset": "none", "serviceAccountName": "off"}},
        "hub": {
            "auth": {"existingSecret": "123", "tokenKey": "true", "readersSecret": "1e3", "scraperSecret": "7"},
            "database": {"existingSecret": "0", "key": "no"},
            "ingress": {"enabled": True, "className": "yes"},
        },
        "image": {"pullSecrets": ["5"]},
        "schedule": {"cron": "0 3 * * 1"},
        "metrics": {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}},
        "commonLabels": names,
    }
    words = ("template", "2024", str(CHART), "--namespace", "1234", "--values", "-")
    for item in objects(helm("helm-4", *words, stdin=json.dumps(own))):
        assert list(_names_that_are_no_texts(item)) == [], item["metadata"]["name"]


def _names_that_are_no_texts(part: object, path: str = "") -> Iterator[str]:
    """Yield where an object has something else than a text although Kubernetes expects one."""
    texts = ("name", "value", "key", "namespace", "className", "ClassName", "secretName", "claimName", "AccountName")
    if isinstance(part, dict):
        for key, value in part.items():
            if isinstance(value, dict | list):
                is_map = key in ("labels", "matchLabels", "annotations")
                yield from (f"{path}.{key}.{name}" for name in value if is_map and not isinstance(value[name], str))
                yield from _names_that_are_no_texts(value, f"{path}.{key}")
            elif key.endswith(texts) and not isinstance(value, str):
                yield f"{path}.{key}"
    elif isinstance(part, list):
        for place, value in enumerate(part):
            is_value = path.endswith((".values", ".args", ".verbs")) and not path.endswith("onExitCodes.values")
            if is_value and not isinstance(value, str):
                yield f"{path}[{place}]"
            yield from _names_that_are_no_texts(value, f"{path}[{place}]")


def test_names_that_are_cut_or_changed_stay_different_and_valid() -> None:
    def service(release: str, **values: str) -> str:
        words = ("template", release, str(CHART), "--values", "-")
        rendered = objects(helm("helm-4", *words, stdin=json.dumps({**TOKEN, **values})))
        return str(only(rendered, "Service")["metadata"]["name"])

    releases = ("benchmarks-of-the-team-eu-1", "benchmarks-of-the-team-eu-2", "a.b", "a-b", "1a")
    names = [service(release) for release in releases]
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch("[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name)] == []
    assert service("devbench") == "devbench-hub"
    assert service("x", fullnameOverride="bench") == "bench-hub"


def test_the_hub_the_watcher_and_the_test_run_where_their_image_runs_and_avoid_runs_and_gpus() -> None:
    for name, template in pods(render()):
        labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
        spec = template["spec"]
        if "devbench/pool" in template["metadata"]["labels"]:
            assert labels.items() <= required_labels(spec).items(), name
            continue
        assert spec["nodeSelector"] == labels, name
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        (node,) = spec["affinity"]["nodeAffinity"][preferred]
        avoided = {item["key"] for item in node["preference"]["matchExpressions"] if item["operator"] == "DoesNotExist"}
        assert {"nvidia.com/gpu.present", "cloud.google.com/gke-accelerator"} <= avoided, name
        (pod, *_) = spec["affinity"]["podAntiAffinity"][preferred]
        selector = pod["podAffinityTerm"]["labelSelector"]
        assert selector == {"matchExpressions": [{"key": "devbench/pool", "operator": "Exists"}]}
        (container,) = spec["containers"]
        assert "cpu" in container["resources"]["limits"], "a quota of limits.cpu would refuse the pod"


def test_every_pod_opts_out_of_service_meshes() -> None:
    for name, template in pods(render()):
        assert template["metadata"]["labels"]["sidecar.istio.io/inject"] == "false", name
        assert template["metadata"]["labels"]["istio.io/dataplane-mode"] == "none", name
        assert template["metadata"]["annotations"]["linkerd.io/inject"] == "disabled", name


def test_a_hub_on_sqlite_removes_the_rolling_update_of_a_hub_on_postgresql() -> None:
    manifests = text(values=TOKEN)
    assert "rollingUpdate: null" in manifests
    assert "rollingUpdate: {maxSurge" in text(CHART / "ci" / "postgresql-values.yaml")


@cases
def test_every_pod_is_restricted_and_only_the_watcher_has_a_service_account_token(case: Path) -> None:
    for name, template in pods(render(case)):
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"], name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["enableServiceLinks"] is False, name
        assert spec["automountServiceAccountToken"] is name.endswith("-watcher"), name
        for container in spec["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"], name
            assert not security["allowPrivilegeEscalation"], name
            assert security["capabilities"] == {"drop": ["ALL"]}, name
            assert "KEY" not in str(container["args"]).upper().replace("TOKENKEY", ""), name


def test_the_watcher_may_only_read_in_its_own_namespace() -> None:
    rendered = render()
    assert {item["kind"] for item in rendered if "Role" in item["kind"]} == {"Role", "RoleBinding"}
    rules = only(rendered, "Role")["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert {name for rule in rules for name in rule["resources"]} == {"jobs", "pods", "events"}


def test_no_secret_is_written_into_a_manifest() -> None:
    for case in OFFLINE:
        assert not [item for item in render(case) if item["kind"] == "Secret"], case
