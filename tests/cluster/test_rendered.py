"""The objects that Helm 3 and Helm 4 render from the cases of `ci/`, without a cluster."""

from __future__ import annotations

import json
import re
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
    secrets = {"image": {"pullSecrets": ["a"]}, "global": {"imagePullSecrets": [{"name": "b"}, "c"]}}
    for name, template in pods(render(values=secrets)):
        assert template["spec"]["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}, {"name": "c"}], name


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
    with pytest.raises(HelmError, match="accelerator is 'k80', but the preset eks has only a100, h100, l4, l40s, t4"):
        render(values={"pools": {"t4": {"preset": "eks", "accelerator": "k80"}}})


@helms
def test_rendering_without_a_cluster_creates_no_token_and_pods_wait_for_its_secret(program: str) -> None:
    rendered = objects(text(GENERATED_TOKEN, program=program))
    assert not [item for item in rendered if item["kind"] == "Secret"]
    for _, template in pods(rendered):
        volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
        assert volumes["hub-token"]["secret"]["secretName"] == "devbench-hub-token"


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


def test_another_content_of_a_workload_starts_its_runs_again() -> None:
    def names(content: str) -> set[str]:
        values = {"workloads": ["mine"], "customWorkloads": {"mine": {"inline": content}, "unused": {"inline": "b"}}}
        return {job["metadata"]["name"] for job in jobs(render(values=values)).values()}

    assert not names("a = 1\n") & names("a = 2\n")


def test_a_new_version_of_the_chart_starts_no_run_and_a_new_version_of_the_app_starts_all(tmp_path: Path) -> None:
    chart = tmp_path / "devbench"
    shutil.copytree(CHART, chart)
    description = (CHART / "Chart.yaml").read_text(encoding="utf-8")
    (chart / "Chart.yaml").write_text(description.replace("version: 0.1.0", "version: 9.9.9"), encoding="utf-8")
    before, after = jobs(render()), jobs(render(chart=chart))
    for pool, job in before.items():
        assert after[pool]["spec"] == job["spec"]
        assert after[pool]["metadata"]["name"] == job["metadata"]["name"]
        assert after[pool]["metadata"]["labels"]["helm.sh/chart"] == "devbench-9.9.9"
    (chart / "Chart.yaml").write_text(description.replace("0.1.0", "9.9.9"), encoding="utf-8")
    rendered = render(chart=chart)
    names = {job["metadata"]["name"] for job in before.values()}
    assert not names & {job["metadata"]["name"] for job in jobs(rendered).values()}
    images = {template["spec"]["containers"][0]["image"] for _, template in pods(rendered)}
    assert images == {"devbench:9.9.9-cpu", "devbench:9.9.9-cuda", "devbench:9.9.9-hub"}


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


def test_runs_of_two_releases_with_different_names_never_share_a_node() -> None:
    def selector(values: Object) -> Object:
        spec = jobs(render(values=values))["cpu"]["spec"]["template"]["spec"]
        (term,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        return dict(term["labelSelector"])

    assert selector({"nameOverride": "other"}) == selector({})


@helms
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"workloads": ["cifr"]}, "workloads names 'cifr', which is neither a built-in workload .*cifar"),
        ({"pools": {"cpu": {"workloads": ["nmist"]}}}, "pools.cpu.workloads names 'nmist'"),
        ({"workloads": ["cifar", "cifar"]}, "workloads"),
        ({"workloads": ["x" * 60]}, "workloads"),
        ({"customWorkloads": {"my workload": {"inline": "a"}}}, "my workload"),
        ({"poolDefaults": {"memory": 16}}, "memory"),
        ({"poolDefaults": {"memory": "16"}}, "memory"),
        ({"hub": {"resources": {"limits": {"memory": 512}}}}, "memory"),
        ({"hub": {"persistence": {"size": "8"}}}, "size"),
        ({"nameOverride": "a.b"}, "nameOverride"),
        ({"fullnameOverride": "Bench"}, "fullnameOverride"),
        ({"poolDefaults": {"env": {"a b": "c"}}}, "a b"),
        ({"pools": {"cpu": {"nodes": 2, "exclusiveNode": False}}}, "pools.cpu.exclusiveNode must be true"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_would_fail_later_is_refused_before_anything_is_installed(
    values: Object, message: str, program: str
) -> None:
    with pytest.raises(HelmError, match=message):
        render(values=values, program=program)


def test_custom_workloads_whose_names_differ_only_in_case_or_underscores_have_their_own_volumes() -> None:
    own = {name: {"configMap": {"name": f"map-{n}"}} for n, name in enumerate(("a_b", "a-b", "A-b"))}
    job = jobs(render(values={"workloads": list(own), "customWorkloads": own}))["cpu"]
    spec = job["spec"]["template"]["spec"]
    maps = {volume["name"]: volume["configMap"]["name"] for volume in spec["volumes"] if "configMap" in volume}
    mounts = {
        mount["mountPath"]: maps[mount["name"]]
        for mount in spec["containers"][0]["volumeMounts"]
        if mount["name"] in maps
    }
    assert mounts == {f"/workloads/{name}.py": own[name]["configMap"]["name"] for name in own}


def test_the_hub_the_watcher_and_the_test_run_where_their_image_runs_and_avoid_runs_and_gpus() -> None:
    for name, template in pods(render()):
        labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
        spec = template["spec"]
        if "devbench/pool" in template["metadata"]["labels"]:
            assert labels.items() <= _required_labels(spec).items(), name
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


def test_a_pool_without_a_preset_still_requires_a_node_that_its_image_supports() -> None:
    own = {"preset": "none", "nodeSelector": {"kubernetes.io/arch": "arm64"}}
    by_pool = jobs(render(values={"pools": {"own": own, "any": {"preset": "none"}}}))
    labels = {pool: _required_labels(job["spec"]["template"]["spec"]) for pool, job in by_pool.items()}
    assert labels["own"] == {"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux"}
    assert labels["any"] == {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}


def test_the_node_labels_of_a_pool_hold_beside_the_users_own_affinity() -> None:
    """They are an affinity, because Kueue writes the nodeSelector of admitted Jobs."""
    zones = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": zones}}
    pool = {"preset": "none", "nodeSelector": {"pool": "own"}, "affinity": {"nodeAffinity": required}}
    spec = jobs(render(values={"pools": {"own": pool}}))["own"]["spec"]["template"]["spec"]
    assert "nodeSelector" not in spec
    assert set(spec["affinity"]) == {"nodeAffinity"}
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchExpressions"][0] for term in terms] == [zone["matchExpressions"][0] for zone in zones]
    for term in terms:
        assert {"key": "pool", "operator": "In", "values": ["own"]} in term["matchExpressions"]


def test_a_pool_can_measure_several_nodes_at_the_same_time() -> None:
    rendered = render(values={"pools": {"cpu": {"nodes": 2}}})
    job = jobs(rendered)["cpu"]
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (4, 2)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["run", "cifar", "cifar", "mnist", "mnist", "--only", "$(JOB_COMPLETION_INDEX)"]
    assert json.loads(job["metadata"]["annotations"]["devbench/workloads"]) == ["cifar", "cifar", "mnist", "mnist"]


def test_a_pool_can_request_a_partition_of_a_gpu_or_a_resource_claim() -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    pool = {"backend": "cuda", "accelerator": "t4"}
    by_pool = jobs(
        render(
            values={
                "pools": {
                    "mig": {**pool, "gpuResource": "nvidia.com/mig-1g.5gb"},
                    "dra": {**pool, "resourceClaims": claims},
                }
            }
        )
    )
    limits = {
        name: job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] for name, job in by_pool.items()
    }
    gpus = {name: [key for key in limits[name] if "/" in key] for name in ("t4", "mig", "dra")}
    assert gpus == {"t4": ["nvidia.com/gpu"], "mig": ["nvidia.com/mig-1g.5gb"], "dra": []}
    spec = by_pool["dra"]["spec"]["template"]["spec"]
    assert spec["resourceClaims"] == claims
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "gpu"}]


def test_every_pod_opts_out_of_service_meshes() -> None:
    for name, template in pods(render()):
        assert template["metadata"]["labels"]["sidecar.istio.io/inject"] == "false", name
        assert template["metadata"]["labels"]["istio.io/dataplane-mode"] == "none", name
        assert template["metadata"]["annotations"]["linkerd.io/inject"] == "disabled", name


def test_a_hub_on_sqlite_removes_the_rolling_update_of_a_hub_on_postgresql() -> None:
    manifests = text(values=TOKEN)
    assert "rollingUpdate: null" in manifests
    assert "rollingUpdate: {maxSurge" in text(CHART / "ci" / "postgresql-values.yaml")


def test_a_scheduled_job_ends_even_if_its_pool_has_no_nodes() -> None:
    rendered = render(values={"schedule": {"cron": "0 3 * * 1"}, "watcher": {"waitSeconds": 600}})
    for item in rendered:
        if item["kind"] == "CronJob":
            assert item["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 600 + 2 * 7200
        elif item["kind"] == "Job":
            assert "activeDeadlineSeconds" not in item["spec"]


def test_without_a_run_at_installation_there_is_a_suspended_schedule_to_start_runs_from() -> None:
    rendered = render(values={"runNow": False})
    assert not jobs(rendered)
    crons = [item["spec"] for item in rendered if item["kind"] == "CronJob"]
    assert [spec["suspend"] for spec in crons] == [True, True]
    assert "kubectl -n default create job --from=cronjob/devbench-POOL NAME" in _notes({"runNow": False})


def test_monitors_have_common_labels_timeouts_and_relabelings() -> None:
    scrape = {"enabled": True, "timeoutSeconds": 5, "relabelings": [{"action": "labelmap", "regex": "a"}]}
    metrics = {
        "labels": {"release": "stack", "team": "ml"},
        "podMonitor": {**scrape, "labels": {"team": "own"}},
        "serviceMonitor": {**scrape, "metricRelabelings": [{"action": "drop", "regex": "b"}]},
        "prometheusRule": {"enabled": True},
    }
    rendered = render(values={"metrics": metrics})
    (endpoint,) = only(rendered, "ServiceMonitor")["spec"]["endpoints"]
    assert (endpoint["scrapeTimeout"], endpoint["relabelings"], endpoint["metricRelabelings"]) == (
        "5s", scrape["relabelings"], [{"action": "drop", "regex": "b"}],
    )  # fmt: skip
    assert only(rendered, "PodMonitor")["metadata"]["labels"]["team"] == "own"
    for kind in ("PodMonitor", "ServiceMonitor", "PrometheusRule"):
        assert only(rendered, kind)["metadata"]["labels"]["release"] == "stack", kind


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


PUBLISHED = {"hub": {"service": {"type": "NodePort"}}}


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        (PUBLISHED, False),
        ({}, False),
        ({**PUBLISHED, "networkPolicy": {"users": [{"namespaceSelector": {}}]}}, True),
        ({**PUBLISHED, "networkPolicy": {"users": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}}, False),
        ({**PUBLISHED, "networkPolicy": {"enabled": False, "users": [{"namespaceSelector": {}}]}}, False),
    ],
)
def test_the_notes_warn_if_the_network_policy_blocks_external_access_to_the_hub(values: Object, warned: bool) -> None:
    assert ("The NetworkPolicy of the hub admits only pods" in _notes(values)) is warned


@pytest.mark.parametrize(
    ("hub", "line"),
    [
        ({}, "port-forward service/devbench-hub 8080:80"),
        ({"ingress": {"enabled": True, "hosts": ["b.example.org"]}}, "  http://b.example.org/"),
        (
            {"ingress": {"enabled": True, "hosts": ["b.org"], "tls": [{}]}, "settings": {"root_path": "/bench"}},
            "  https://b.org/bench",
        ),
        ({"httpRoute": {"enabled": True, "hostnames": ["b.example.org"]}}, "  http://b.example.org/"),
        ({"service": {"type": "LoadBalancer", "port": 81}}, "open http://ADDRESS:81/"),
        ({"service": {"type": "NodePort"}}, "open http://ADDRESS-OF-A-NODE:PORT/"),
    ],
)
def test_the_notes_say_where_the_results_are(hub: Object, line: str) -> None:
    assert line in _notes({"hub": hub})


def _notes(values: Object) -> str:
    complete = json.dumps({**values, "hub": {**values.get("hub", {}), **TOKEN["hub"]}})
    return helm("helm-4", "install", "devbench", str(CHART), "--dry-run=client", "--values", "-", stdin=complete)


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
        assert {**template["spec"], "activeDeadlineSeconds": None} == {**job["spec"], "activeDeadlineSeconds": None}
        annotations = {k: v for k, v in job["metadata"]["annotations"].items() if k != "devbench/spec"}
        assert template["metadata"]["annotations"] == annotations
        assert template["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "benchmarks"


def _required_labels(spec: Object) -> dict[str, str]:
    """Return the node labels that a run requires."""
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    return {item["key"]: item["values"][0] for item in term["matchExpressions"] if item["operator"] == "In"}


def _operator_versions() -> tuple[str, ...]:
    return tuple(f"--api-versions={kind}" for kind in OPERATOR)
