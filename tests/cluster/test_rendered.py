"""The objects that Helm 3 and Helm 4 render from the cases of `ci/`, without a cluster."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import programs
import pytest
from rendering import (
    CASES,
    CHART,
    GENERATED_TOKEN,
    OFFLINE,
    OPERATOR,
    TOKEN,
    HelmError,
    Object,
    helm,
    jobs,
    objects,
    only,
    pods,
    render,
    text,
    variables,
)

pytestmark = [pytest.mark.once, pytest.mark.needs("go"), pytest.mark.timeout(1800)]

HELMS = ("helm-3", "helm-4")
RESTRICTED = {"readersSecret": "devbench-readers"}
"""Only readers may read the hub."""

cases = pytest.mark.parametrize("case", OFFLINE, ids=lambda path: path.stem)
helms = pytest.mark.parametrize("program", HELMS)


@helms
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_each_case_passes_helm_lint(case: Path, program: str) -> None:
    output = helm(program, "lint", "--strict", str(CHART), "--values", str(case), "--kube-version", "1.36.3")
    assert "0 chart(s) failed" in output


@cases
def test_helm_3_and_helm_4_render_the_same_objects(case: Path) -> None:
    helm_3, helm_4 = (objects(text(case, program=program, options=_operator_versions())) for program in HELMS)
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


@helms
@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"worklods": ["cifar"]}, "worklods"),
        ({"pools": {"t4": {"kernel_cache": {}}}}, "kernel_cache"),
        ({"settings": {"max_tme": "1m"}}, "max_tme"),
        ({"hub": {"auth": {"secret": "x"}}}, "secret"),
        ({"poolDefaults": {"memmory": "1Gi"}}, "memmory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unknown_key_is_an_error_that_names_it(values: Object, key: str, program: str) -> None:
    with pytest.raises(HelmError, match=key):
        render(values=values, program=program)


def test_a_parent_chart_may_pass_global_values() -> None:
    assert render(values={"global": {"storageClass": "fast"}}) == render()


@helms
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hub": {"replicas": 2}}, "existingSecret"),
        ({"hub": {"enabled": False}}, "url"),
        ({"pools": {"Big": {}}}, "Big"),
        ({"pools": {"t4": {"cpu": 2.5}}}, "cpu"),
        ({"settings": {"backend": "cuda"}}, "backend"),
        ({"customWorkloads": {"mine": {"inline": "x", "configMap": {"name": "y"}}}}, "mine"),
        (
            {"hub": {"auth": RESTRICTED}, "metrics": {"serviceMonitor": {"enabled": True}}},
            "hub.auth.scraperSecret is required",
        ),
    ],
    ids=[
        *("two hubs on SQLite", "no hub", "an invalid label", "half a CPU", "a backend for all pools", "two sources"),
        "a monitor without a reader",
    ],
)
def test_invalid_values_are_refused(values: Object, message: str, program: str) -> None:
    with pytest.raises(HelmError, match=message):
        render(values=values, program=program)


def test_more_cpus_than_the_node_can_spare_are_refused() -> None:
    with pytest.raises(HelmError, match=r"pools\.t4\.cpu is 4, but a n1-standard-4 has 4 vCPUs .* at most 3"):
        render(values={"pools": {"t4": {"preset": "gke", "cpu": 4}}})


def test_an_unknown_gpu_is_refused_with_a_list_of_those_that_the_preset_knows() -> None:
    with pytest.raises(HelmError, match="accelerator is 'h100', but the preset eks has only l4, t4"):
        render(values={"pools": {"t4": {"preset": "eks", "accelerator": "h100"}}})


@helms
def test_rendering_without_a_cluster_requires_an_existing_secret(program: str) -> None:
    with pytest.raises(HelmError, match="existingSecret is required if templates are rendered without a cluster"):
        text(GENERATED_TOKEN, program=program)


def test_a_pool_is_one_indexed_job_that_runs_one_workload_at_a_time() -> None:
    by_pool = jobs(render(values={"workloads": ["cifar", "mnist", "matmul"]}))
    assert set(by_pool) == {"cpu", "t4"}
    for job in by_pool.values():
        spec = job["spec"]
        assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 1)
        assert spec["backoffLimitPerIndex"] == 5
        assert "ttlSecondsAfterFinished" not in spec
        assert "suspend" not in spec
        assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["Count", "FailJob", "FailIndex"]
        (container,) = spec["template"]["spec"]["containers"]
        assert container["args"] == ["run", "cifar", "mnist", "matmul", "--only", "$(JOB_COMPLETION_INDEX)"]


def test_a_gpu_pool_also_measures_its_cpu_unless_cpu_column_is_off() -> None:
    by_pool = jobs(render(values={"pools": {"alone": {"backend": "cuda", "accelerator": "t4", "cpuColumn": False}}}))
    backends = {pool: variables(job["spec"]["template"])["DEVBENCH_BACKEND"] for pool, job in by_pool.items()}
    assert backends == {"cpu": "cpu", "t4": "cpu,cuda", "alone": "cuda"}


def test_only_a_gpu_pool_with_allow_shared_gpu_allows_its_runs_a_shared_gpu() -> None:
    exclusive = {"backend": "cuda", "accelerator": "t4"}
    pools = {"t4": {"allowSharedGpu": True}, "cpu": {"allowSharedGpu": True}, "own": exclusive}
    by_pool = jobs(render(values={"pools": pools}))
    shared_gpu = {pool: variables(job["spec"]["template"]).get("DEVBENCH_SHARED_GPU") for pool, job in by_pool.items()}
    assert shared_gpu == {"cpu": None, "t4": "allowed", "own": None}


def test_settings_become_variables_and_a_pool_can_override_them() -> None:
    by_pool = jobs(render(CHART / "ci/custom-workloads-values.yaml"))
    cpu, t4 = (variables(by_pool[pool]["spec"]["template"]) for pool in ("cpu", "t4"))
    assert (cpu["DEVBENCH_MAX_TIME"], t4["DEVBENCH_MAX_TIME"]) == ("1m", "30s")
    assert t4["DEVBENCH_LOOP"] == "as-written,step"
    assert t4["DEVBENCH_PARAM"] == "batch=64"
    assert t4["DEVBENCH_DETERMINISTIC"] == "true"
    assert t4["DEVBENCH_SEED"] == "4294967295"


def test_the_name_of_a_job_depends_on_its_immutable_fields() -> None:
    def names(**values: object) -> set[str]:
        return {job["metadata"]["name"] for job in jobs(render(values=values)).values()}

    workload = {"workloads": ["mine"], "customWorkloads": {"mine": {"inline": "a = 1\n"}}}
    changed_workload = {"workloads": ["mine"], "customWorkloads": {"mine": {"inline": "a = 2\n"}}}
    name_sets = [
        names(), names(workloads=["cifar"]), names(settings={"seed": 2}), names(image={"tag": "2"}),
        names(poolDefaults={"memory": "4Gi"}), names(security={"runAsUser": 2000}), names(**workload),
        names(**changed_workload),
    ]  # fmt: skip
    assert len(set.union(*name_sets)) == sum(map(len, name_sets))


@pytest.mark.parametrize(
    "values",
    [
        {
            "hub": {
                "resources": {"limits": {"memory": "1Gi"}},
                "service": {"port": 8000},
                "settings": {"threshold": 0.1},
            }
        },
        {"hub": {"ingress": {"enabled": True}, "nodeSelector": {"a": "b"}, "persistence": {"size": "1Gi"}}},
        {"watcher": {"waitSeconds": 5}, "test": {"waitSeconds": 5}, "networkPolicy": {"enabled": False}},
        {"commonLabels": {"team": "ml"}, "poolDefaults": {"jobSeconds": 60, "queue": "later"}},
        {"hub": {"enabled": False, "url": "http://elsewhere:8080"}},
    ],
    ids=[
        "settings of the hub",
        "placement of the hub",
        "the watcher, the test and policies",
        "mutable fields of a Job",
        "an external hub",
    ],
)
def test_changes_that_do_not_affect_runs_start_none(values: Object) -> None:
    before, after = jobs(render()), jobs(render(values=values))
    for pool, job in before.items():
        assert after[pool]["metadata"]["name"] == job["metadata"]["name"]
        assert after[pool]["spec"]["template"] == job["spec"]["template"]


def test_a_new_version_of_the_chart_and_the_app_alone_starts_no_run(tmp_path: Path) -> None:
    chart = tmp_path / "devbench"
    shutil.copytree(CHART, chart)
    description = (CHART / "Chart.yaml").read_text(encoding="utf-8").replace("0.1.0", "9.9.9")
    (chart / "Chart.yaml").write_text(description, encoding="utf-8")
    before, after = jobs(render()), jobs(render(chart=chart))
    for pool, job in before.items():
        assert after[pool]["spec"] == job["spec"]
        assert after[pool]["metadata"]["name"] == job["metadata"]["name"]
        assert after[pool]["metadata"]["labels"]["app.kubernetes.io/version"] == "9.9.9"


def test_the_helm_test_waits_for_the_jobs_by_name() -> None:
    rendered = render()
    (container,) = only(rendered, "Pod")["spec"]["containers"]
    arguments = dict(word.split("=") for word in container["args"] if "=" in word)
    assert arguments == {job["metadata"]["name"]: "cifar,mnist" for job in jobs(rendered).values()}


def test_names_in_a_release_with_a_long_name_stay_within_the_limits_of_kubernetes() -> None:
    values = {"fullnameOverride": "a-name-of-25-characters-x", "pools": {"a-pool-of-20-letters": {"preset": "none"}}}
    for item in render(values=values):
        assert len(item["metadata"]["name"]) <= 63, item["metadata"]["name"]
    name = jobs(render(values=values))["a-pool-of-20-letters"]["metadata"]["name"]
    assert len(f"{name}.{'u' * 36}.999") <= 100, "the id of a run has at most 100 characters"


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


@cases
def test_a_run_requests_a_whole_number_of_cpus_equal_to_its_limit(case: Path) -> None:
    for name, template in pods(render(case)):
        if "devbench/pool" in template["metadata"]["labels"]:
            (container,) = template["spec"]["containers"]
            assert container["resources"]["requests"] == container["resources"]["limits"], name
            assert isinstance(container["resources"]["limits"]["cpu"], int), name


def test_the_watcher_may_only_read_in_its_own_namespace() -> None:
    rendered = render()
    assert {item["kind"] for item in rendered if "Role" in item["kind"]} == {"Role", "RoleBinding"}
    rules = only(rendered, "Role")["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert {name for rule in rules for name in rule["resources"]} == {"jobs", "pods", "events"}


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        ({"hub": {"service": {"type": "NodePort"}}}, True),
        ({}, False),
        (
            {
                "hub": {"service": {"type": "LoadBalancer"}},
                "networkPolicy": {"users": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
            },
            False,
        ),
        ({"hub": {"service": {"type": "NodePort"}}, "networkPolicy": {"enabled": False}}, False),
    ],
)
def test_the_notes_warn_if_the_network_policy_blocks_external_access_to_the_hub(values: Object, warned: bool) -> None:
    complete = json.dumps({**values, "hub": {**values.get("hub", {}), **TOKEN["hub"]}})
    notes = helm("helm-4", "install", "devbench", str(CHART), "--dry-run=client", "--values", "-", stdin=complete)
    assert ("its NetworkPolicy admits only pods" in notes) is warned


@pytest.mark.parametrize(
    ("metrics", "seconds"),
    [({}, "60"), ({"podMonitor": {"intervalSeconds": 120}}, "240"), ({"lingerSeconds": 0}, "0")],
)
def test_a_run_lingers_for_two_scrapes_by_default(metrics: Object, seconds: str) -> None:
    rendered = render(CHART / "ci" / "default-values.yaml", values={"metrics": metrics})
    for job in jobs(rendered).values():
        assert variables(job["spec"]["template"])["DEVBENCH_LINGER"] == seconds


def test_a_hub_with_a_root_path_is_routed_only_under_that_path() -> None:
    routes = {"ingress": {"enabled": True}, "httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}]}}
    for settings, path in (({}, "/"), ({"root_path": "/devbench"}, "/devbench")):
        rendered = render(CHART / "ci" / "default-values.yaml", values={"hub": {"settings": settings, **routes}})
        (rule,) = only(rendered, "Ingress")["spec"]["rules"]
        assert [entry["path"] for entry in rule["http"]["paths"]] == [path]
        (route,) = only(rendered, "HTTPRoute")["spec"]["rules"]
        assert [match["path"]["value"] for match in route["matches"]] == [path]


def test_no_secret_is_written_into_a_manifest() -> None:
    for case in OFFLINE:
        assert not [item for item in render(case) if item["kind"] == "Secret"], case


def test_monitors_are_rendered_if_the_cluster_knows_their_kinds_or_the_values_enable_them() -> None:
    def kinds(values: Object, *options: str) -> set[str]:
        rendered = render(values=values, options=options)
        return {item["kind"] for item in rendered if item["apiVersion"].startswith("monitoring")}

    enabled = {name: {"enabled": True} for name in ("podMonitor", "serviceMonitor")}
    disabled = {name: {"enabled": False} for name in ("podMonitor", "serviceMonitor", "prometheusRule")}
    assert kinds({}) == set()
    assert kinds({"metrics": enabled}) == {"PodMonitor", "ServiceMonitor"}
    assert kinds({}, *_operator_versions()) >= {"PodMonitor", "ServiceMonitor"}
    assert kinds({"metrics": disabled}, *_operator_versions()) == set()


def test_prometheus_scrapes_a_restricted_hub_as_a_reader_and_never_gets_the_write_tokens() -> None:
    def endpoint(**auth: str) -> Object:
        values = {"hub": {"auth": auth}, "metrics": {"serviceMonitor": {"enabled": True}}}
        (item,) = only(render(values=values), "ServiceMonitor")["spec"]["endpoints"]
        return {name: value for name, value in item.items() if name not in ("port", "path", "interval")}

    read = {name: {"name": "devbench-scraper", "key": name} for name in ("username", "password")}
    assert endpoint(**RESTRICTED, scraperSecret="devbench-scraper") == {"basicAuth": read}
    assert endpoint(scraperSecret="devbench-scraper") == endpoint() == {}


def test_a_restricted_hub_without_a_monitor_has_no_scrape_annotations_and_needs_no_scraper() -> None:
    def has_scrape_annotations(auth: Object, monitor: object = "auto") -> bool:
        values = {"hub": {"auth": auth}, "metrics": {"serviceMonitor": {"enabled": monitor}}}
        annotations = only(render(values=values), "Deployment", "-hub")["spec"]["template"]["metadata"]["annotations"]
        assert annotations["devbench/token"] == "devbench-token"
        return any(name.startswith("prometheus.io/") for name in annotations)

    for monitor in ("auto", False):
        assert has_scrape_annotations({}, monitor)
        assert not has_scrape_annotations(RESTRICTED, monitor)


def test_the_api_versions_of_the_cluster_do_not_affect_runs() -> None:
    before, after = jobs(render()), jobs(render(options=_operator_versions()))
    assert {job["metadata"]["name"] for job in before.values()} == {job["metadata"]["name"] for job in after.values()}


def test_dashboards_become_config_maps_with_the_label_of_grafanas_sidecar(tmp_path: Path) -> None:
    chart = tmp_path / "devbench"
    shutil.copytree(CHART, chart)
    (chart / "dashboards").mkdir(exist_ok=True)
    (chart / "dashboards" / "try_it.json").write_text('{"title": "{{ x }}"}', encoding="utf-8")
    values = {"metrics": {"dashboards": {"enabled": True, "annotations": {"grafana_folder": "devbench"}}}}
    config_map = only(render(values=values, chart=chart), "ConfigMap", "try-it")
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert config_map["metadata"]["annotations"] == {"grafana_folder": "devbench"}
    assert config_map["data"] == {"devbench-try_it.json": '{"title": "{{ x }}"}'}


def test_a_scheduled_run_has_the_same_pods_as_an_immediate_one() -> None:
    values = {"schedule": {"cron": "0 3 * * 1"}, "poolDefaults": {"queue": "benchmarks"}}
    rendered = render(values=values)
    crons = {item["metadata"]["labels"]["devbench/pool"]: item for item in rendered if item["kind"] == "CronJob"}
    for pool, job in jobs(rendered).items():
        template = crons[pool]["spec"]["jobTemplate"]
        assert template["spec"] == job["spec"]
        assert template["metadata"]["annotations"] == job["metadata"]["annotations"]
        assert template["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "benchmarks"


def _operator_versions() -> tuple[str, ...]:
    return tuple(f"--api-versions={kind}" for kind in OPERATOR)
