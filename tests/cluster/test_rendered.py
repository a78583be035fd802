"""What Helm makes of the chart in each case of `ci/`, with both of its major versions, without a cluster."""

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
    MADE,
    OFFLINE,
    OPERATOR,
    TOKEN,
    Object,
    Refused,
    helm,
    jobs,
    objects,
    one,
    pods,
    render,
    text,
    variables,
)

pytestmark = [pytest.mark.once, pytest.mark.needs("go"), pytest.mark.timeout(1800)]

HELMS = ("helm-3", "helm-4")
CLOSED = {"readersSecret": "devbench-readers"}
"""Reads of the hub need a reader."""

cases = pytest.mark.parametrize("case", OFFLINE, ids=lambda path: path.stem)
helms = pytest.mark.parametrize("program", HELMS)


@helms
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_each_case_passes_helm_lint(case: Path, program: str) -> None:
    said = helm(program, "lint", "--strict", str(CHART), "--values", str(case), "--kube-version", "1.36.3")
    assert "0 chart(s) failed" in said


@cases
def test_helm_3_and_helm_4_render_the_same_objects(case: Path) -> None:
    first, second = (objects(text(case, program=program, options=_with_operator())) for program in HELMS)
    assert first == second
    assert first


@cases
def test_kube_score_finds_nothing_critical(case: Path, tmp_path: Path) -> None:
    # An emptyDir has no other owner; one hub on SQLite and one watcher can't be two; runs are ended by their Job.
    ignored = (
        "deployment-replicas", "deployment-has-poddisruptionbudget", "deployment-has-host-podantiaffinity",
        "container-image-pull-policy", *(["pod-networkpolicy"] if "bare" in case.stem else []),
    )  # fmt: skip
    written = tmp_path / "all.yaml"
    written.write_text(text(case), encoding="utf-8")
    # The hub, the watcher and the test may use CPU that nobody else wants; runs have limits (below).
    words = ["--ignore-container-cpu-limit", *(f"--ignore-test={name}" for name in ignored)]
    done = subprocess.run(
        [str(programs.tool("kube-score")), "score", "--output-format=ci", *words, str(written)],
        capture_output=True,
        text=True,
    )
    critical = [line for line in done.stdout.splitlines() if line.startswith("[CRITICAL]")]
    assert done.stdout, done.stderr
    assert not critical


@helms
@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"worklods": ["cifar"]}, "worklods"),
        ({"pools": {"t4": {"cuda_cache": {}}}}, "cuda_cache"),
        ({"settings": {"max_tme": "1m"}}, "max_tme"),
        ({"hub": {"auth": {"secret": "x"}}}, "secret"),
        ({"poolDefaults": {"memmory": "1Gi"}}, "memmory"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_an_unknown_key_is_an_error_that_names_it(values: Object, key: str, program: str) -> None:
    with pytest.raises(Refused, match=key):
        render(values=values, program=program)


def test_a_parent_chart_may_pass_global_values() -> None:
    assert render(values={"global": {"storageClass": "fast"}}) == render()


@helms
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"hub": {"replicas": 2}}, "existingSecret"),
        ({"hub": {"enabled": False}}, "url"),
        ({"pools": {"Big": {}}}, "Big"),
        ({"pools": {"t4": {"cpu": 2.5}}}, "cpu"),
        ({"settings": {"backend": "cuda"}}, "backend"),
        ({"customWorkloads": {"mine": {"inline": "x", "configMap": {"name": "y"}}}}, "mine"),
        (
            {"hub": {"auth": CLOSED}, "metrics": {"serviceMonitor": {"enabled": True}}},
            "hub.auth.scraperSecret must name",
        ),
    ],
    ids=[
        *("two hubs on SQLite", "no hub at all", "a name that is no label", "half a CPU", "a pool's backend", "two"),
        "a monitor that may not read",
    ],
)
def test_invalid_values_are_refused(values: Object, said: str, program: str) -> None:
    with pytest.raises(Refused, match=said):
        render(values=values, program=program)


def test_more_cpus_than_the_node_can_spare_are_refused() -> None:
    with pytest.raises(Refused, match=r"pools\.t4\.cpu is 4, but a n1-standard-4 has 4 vCPUs .* at most 3"):
        render(values={"pools": {"t4": {"preset": "gke", "cpu": 4}}})


def test_an_unknown_gpu_is_refused_with_a_list_of_those_that_the_preset_knows() -> None:
    with pytest.raises(Refused, match="accelerator is 'h100', but the preset eks has only l4, t4"):
        render(values={"pools": {"t4": {"preset": "eks", "accelerator": "h100"}}})


@helms
def test_rendering_without_a_cluster_requires_an_existing_secret(program: str) -> None:
    with pytest.raises(Refused, match="existingSecret is required if templates are rendered without a cluster"):
        text(MADE, program=program)


def test_a_pool_is_one_indexed_job_that_runs_one_workload_at_a_time() -> None:
    found = jobs(render(values={"workloads": ["cifar", "mnist", "matmul"]}))
    assert set(found) == {"cpu", "t4"}
    for job in found.values():
        spec = job["spec"]
        assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 1)
        assert spec["backoffLimitPerIndex"] == 0
        assert "ttlSecondsAfterFinished" not in spec
        assert "suspend" not in spec
        assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["Ignore", "FailJob", "FailIndex"]
        (container,) = spec["template"]["spec"]["containers"]
        assert container["args"] == ["run", "cifar", "mnist", "matmul", "--only", "$(JOB_COMPLETION_INDEX)"]


def test_a_gpu_pool_also_measures_its_cpu_unless_cpu_column_is_off() -> None:
    found = jobs(render(values={"pools": {"alone": {"backend": "cuda", "accelerator": "t4", "cpuColumn": False}}}))
    backends = {pool: variables(job["spec"]["template"])["DEVBENCH_BACKEND"] for pool, job in found.items()}
    assert backends == {"cpu": "cpu", "t4": "cpu,cuda", "alone": "cuda"}


def test_only_a_gpu_pool_with_allow_shared_gpu_allows_its_runs_a_shared_gpu() -> None:
    own = {"backend": "cuda", "accelerator": "t4"}
    pools = {"t4": {"allowSharedGpu": True}, "cpu": {"allowSharedGpu": True}, "own": own}
    found = jobs(render(values={"pools": pools}))
    told = {pool: variables(job["spec"]["template"]).get("DEVBENCH_SHARED_GPU") for pool, job in found.items()}
    assert told == {"cpu": None, "t4": "allowed", "own": None}


def test_settings_become_variables_and_a_pool_can_override_them() -> None:
    found = jobs(render(CHART / "ci/custom-workloads-values.yaml"))
    cpu, t4 = (variables(found[pool]["spec"]["template"]) for pool in ("cpu", "t4"))
    assert (cpu["DEVBENCH_MAX_TIME"], t4["DEVBENCH_MAX_TIME"]) == ("1m", "30s")
    assert t4["DEVBENCH_LOOP"] == "as-written,step"
    assert t4["DEVBENCH_PARAM"] == "batch=64"
    assert t4["DEVBENCH_DETERMINISTIC"] == "true"
    assert t4["DEVBENCH_SEED"] == "4294967295"


def test_the_name_of_a_job_depends_on_its_immutable_fields() -> None:
    def names(**values: object) -> set[str]:
        return {job["metadata"]["name"] for job in jobs(render(values=values)).values()}

    mine = {"workloads": ["mine"], "customWorkloads": {"mine": {"inline": "a = 1\n"}}}
    theirs = {"workloads": ["mine"], "customWorkloads": {"mine": {"inline": "a = 2\n"}}}
    seen = [
        names(), names(workloads=["cifar"]), names(settings={"seed": 2}), names(image={"tag": "2"}),
        names(poolDefaults={"memory": "4Gi"}), names(security={"runAsUser": 2000}), names(**mine), names(**theirs),
    ]  # fmt: skip
    assert len(set.union(*seen)) == sum(map(len, seen))


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
        "the hub's own",
        "the hub's place",
        "the watcher, the test and policies",
        "what may change in a Job",
        "another hub",
    ],
)
def test_changes_that_do_not_affect_runs_start_none(values: Object) -> None:
    before, after = jobs(render()), jobs(render(values=values))
    for pool, job in before.items():
        assert after[pool]["metadata"]["name"] == job["metadata"]["name"]
        assert after[pool]["spec"]["template"] == job["spec"]["template"]


def test_a_new_version_of_the_chart_and_the_app_alone_starts_no_run(tmp_path: Path) -> None:
    later = tmp_path / "devbench"
    shutil.copytree(CHART, later)
    named = (CHART / "Chart.yaml").read_text(encoding="utf-8").replace("0.1.0", "9.9.9")
    (later / "Chart.yaml").write_text(named, encoding="utf-8")
    before, after = jobs(render()), jobs(render(chart=later))
    for pool, job in before.items():
        assert after[pool]["spec"] == job["spec"]
        assert after[pool]["metadata"]["name"] == job["metadata"]["name"]
        assert after[pool]["metadata"]["labels"]["app.kubernetes.io/version"] == "9.9.9"


def test_the_helm_test_waits_for_the_jobs_by_name() -> None:
    found = render()
    (container,) = one(found, "Pod")["spec"]["containers"]
    named = dict(word.split("=") for word in container["args"] if "=" in word)
    assert named == {job["metadata"]["name"]: "cifar,mnist" for job in jobs(found).values()}


def test_names_in_a_release_with_a_long_name_stay_within_the_limits_of_kubernetes() -> None:
    values = {"fullnameOverride": "a-name-of-25-characters-x", "pools": {"a-pool-of-20-letters": {"preset": "none"}}}
    for each in render(values=values):
        assert len(each["metadata"]["name"]) <= 63, each["metadata"]["name"]
    name = jobs(render(values=values))["a-pool-of-20-letters"]["metadata"]["name"]
    assert len(f"{name}.{'u' * 36}.999") <= 100, "an id of a run has at most 100 characters"


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
    found = render()
    assert {each["kind"] for each in found if "Role" in each["kind"]} == {"Role", "RoleBinding"}
    rules = one(found, "Role")["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert {name for rule in rules for name in rule["resources"]} == {"jobs", "pods", "events"}


@pytest.mark.parametrize(
    ("values", "said"),
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
def test_the_notes_warn_if_the_network_policy_blocks_external_access_to_the_hub(values: Object, said: bool) -> None:
    given = json.dumps({**values, "hub": {**values.get("hub", {}), **TOKEN["hub"]}})
    notes = helm("helm-4", "install", "devbench", str(CHART), "--dry-run=client", "--values", "-", given=given)
    assert ("its NetworkPolicy admits only pods" in notes) is said


@pytest.mark.parametrize(
    ("metrics", "seconds"),
    [({}, "60"), ({"podMonitor": {"intervalSeconds": 120}}, "240"), ({"lingerSeconds": 0}, "0")],
)
def test_a_run_lingers_for_two_scrapes_by_default(metrics: Object, seconds: str) -> None:
    found = render(CHART / "ci" / "default-values.yaml", values={"metrics": metrics})
    for job in jobs(found).values():
        assert variables(job["spec"]["template"])["DEVBENCH_LINGER"] == seconds


def test_a_hub_with_a_root_path_is_routed_only_under_that_path() -> None:
    ways = {"ingress": {"enabled": True}, "httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}]}}
    for settings, path in (({}, "/"), ({"root_path": "/devbench"}, "/devbench")):
        found = render(CHART / "ci" / "default-values.yaml", values={"hub": {"settings": settings, **ways}})
        (rule,) = one(found, "Ingress")["spec"]["rules"]
        assert [each["path"] for each in rule["http"]["paths"]] == [path]
        (route,) = one(found, "HTTPRoute")["spec"]["rules"]
        assert [each["path"]["value"] for each in route["matches"]] == [path]


def test_no_secret_is_written_into_a_manifest() -> None:
    for case in OFFLINE:
        assert not [each for each in render(case) if each["kind"] == "Secret"], case


def test_monitors_are_rendered_if_the_cluster_knows_their_kinds_or_the_values_enable_them() -> None:
    def kinds(values: Object, *options: str) -> set[str]:
        found = render(values=values, options=options)
        return {each["kind"] for each in found if each["apiVersion"].startswith("monitoring")}

    asked = {name: {"enabled": True} for name in ("podMonitor", "serviceMonitor")}
    never = {name: {"enabled": False} for name in ("podMonitor", "serviceMonitor", "prometheusRule")}
    assert kinds({}) == set()
    assert kinds({"metrics": asked}) == {"PodMonitor", "ServiceMonitor"}
    assert kinds({}, *_with_operator()) >= {"PodMonitor", "ServiceMonitor"}
    assert kinds({"metrics": never}, *_with_operator()) == set()


def test_prometheus_scrapes_a_restricted_hub_as_a_reader_and_never_gets_the_write_tokens() -> None:
    def endpoint(**auth: str) -> Object:
        values = {"hub": {"auth": auth}, "metrics": {"serviceMonitor": {"enabled": True}}}
        (found,) = one(render(values=values), "ServiceMonitor")["spec"]["endpoints"]
        return {name: value for name, value in found.items() if name not in ("port", "path", "interval")}

    read = {name: {"name": "devbench-scraper", "key": name} for name in ("username", "password")}
    assert endpoint(**CLOSED, scraperSecret="devbench-scraper") == {"basicAuth": read}
    assert endpoint(scraperSecret="devbench-scraper") == endpoint() == {}


def test_a_restricted_hub_without_a_monitor_has_no_scrape_annotations_and_needs_no_scraper() -> None:
    def asked(auth: Object, monitor: object = "auto") -> bool:
        values = {"hub": {"auth": auth}, "metrics": {"serviceMonitor": {"enabled": monitor}}}
        annotations = one(render(values=values), "Deployment", "-hub")["spec"]["template"]["metadata"]["annotations"]
        assert annotations["devbench/token"] == "devbench-token"
        return any(name.startswith("prometheus.io/") for name in annotations)

    for monitor in ("auto", False):
        assert asked({}, monitor)
        assert not asked(CLOSED, monitor)


def test_the_api_versions_of_the_cluster_do_not_affect_runs() -> None:
    bare, able = jobs(render()), jobs(render(options=_with_operator()))
    assert {job["metadata"]["name"] for job in bare.values()} == {job["metadata"]["name"] for job in able.values()}


def test_dashboards_become_config_maps_with_the_label_of_grafanas_sidecar(tmp_path: Path) -> None:
    chart = tmp_path / "devbench"
    shutil.copytree(CHART, chart)
    (chart / "dashboards").mkdir(exist_ok=True)
    (chart / "dashboards" / "try_it.json").write_text('{"title": "{{ x }}"}', encoding="utf-8")
    values = {"metrics": {"dashboards": {"enabled": True, "annotations": {"grafana_folder": "devbench"}}}}
    found = one(render(values=values, chart=chart), "ConfigMap", "try-it")
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["metadata"]["annotations"] == {"grafana_folder": "devbench"}
    assert found["data"] == {"devbench-try_it.json": '{"title": "{{ x }}"}'}


def test_a_scheduled_run_has_the_same_pods_as_an_immediate_one() -> None:
    values = {"schedule": {"cron": "0 3 * * 1"}, "poolDefaults": {"queue": "benchmarks"}}
    found = render(values=values)
    crons = {each["metadata"]["labels"]["devbench/pool"]: each for each in found if each["kind"] == "CronJob"}
    for pool, job in jobs(found).items():
        made = crons[pool]["spec"]["jobTemplate"]
        assert made["spec"] == job["spec"]
        assert made["metadata"]["annotations"] == job["metadata"]["annotations"]
        assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "benchmarks"


def _with_operator() -> tuple[str, ...]:
    return tuple(f"--api-versions={kind}" for kind in OPERATOR)
