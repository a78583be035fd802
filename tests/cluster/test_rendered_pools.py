"""The Jobs of pools: their names, nodes, images and resources."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from rendering import (
    CHART,
    OFFLINE,
    Object,
    jobs,
    notes,
    only,
    operator_versions,
    pods,
    render,
    required_labels,
    variables,
)

from bench.config.settings import load

pytestmark = [pytest.mark.once, pytest.mark.needs("go"), pytest.mark.timeout(1800)]


def test_a_hub_with_allowed_hosts_accepts_the_runs_of_its_own_release() -> None:
    for hosts in (["hub.example.org", "*.example.net"], "hub.example.org,*.example.net"):
        rendered = render(values={"hub": {"settings": {"allowed_hosts": hosts}}})
        hub = only(rendered, "Deployment", "-hub")["spec"]["template"]
        url = only(rendered, "ConfigMap", "-hub-address")["data"]["url"]
        allowed = variables(hub)["DEVBENCH_HUB_ALLOWED_HOSTS"].split(",")
        assert allowed == ["hub.example.org", "*.example.net", url.removeprefix("http://").partition(":")[0]]


cases = pytest.mark.parametrize("case", OFFLINE, ids=lambda path: path.stem)


def test_a_pool_is_one_indexed_job_that_runs_one_workload_at_a_time() -> None:
    by_pool = jobs(render(values={"workloads": ["cifar", "mnist", "matmul"]}))
    assert set(by_pool) == {"cpu", "t4"}
    for job in by_pool.values():
        spec = job["spec"]
        assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 1)
        assert spec["backoffLimitPerIndex"] == 5
        assert "ttlSecondsAfterFinished" not in spec
        assert "suspend" not in spec
        _, absent, failed = spec["podFailurePolicy"]["rules"]
        assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["Count", "FailJob", "FailIndex"]
        assert absent["onExitCodes"] == {"containerName": "devbench", "operator": "In", "values": [3]}
        assert failed["onExitCodes"] == {"operator": "NotIn", "values": [0]}  # of any container
        (container,) = spec["template"]["spec"]["containers"]
        assert container["args"] == ["run", "cifar", "mnist", "matmul", "--only", "$(JOB_COMPLETION_INDEX)"]


def mounted(container: Object, template: Object) -> dict[str, list[str]]:
    """Return the volumes that a container mounts, by path: the keys of their declarations."""
    volumes = {volume["name"]: sorted(set(volume) - {"name"}) for volume in template["spec"]["volumes"]}
    return {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}


@cases
def test_the_container_that_measures_sees_no_secret_but_a_token_of_its_own_run(case: Path) -> None:
    runs = [(name, template) for name, template in pods(render(case)) if "-hub" not in name and "Job/" in name]
    assert runs
    for name, template in runs:
        init = template["spec"]["initContainers"][0]
        (container,) = template["spec"]["containers"]
        token = variables(template)["DEVBENCH_HUB_TOKEN_FILE"].removeprefix("/etc/devbench/hub/")
        assert (init["name"], init["args"]) == ("run-token", ["run-token", f"/etc/devbench/run/{token}"]), name
        assert mounted(init, template)["/etc/devbench/hub"] == ["secret"], name
        assert mounted(container, template)["/etc/devbench/hub"] == ["emptyDir"], name
        assert ["secret"] not in mounted(container, template).values(), name
        own = {variable["name"]: variable for variable in container["env"]}
        for variable in init["env"]:
            assert own[variable["name"]] == variable, name
        assert init["image"] == container["image"]
        assert init["securityContext"] == container["securityContext"]
        for kind in ("requests", "limits"):
            assert init["resources"][kind].items() <= container["resources"][kind].items(), name
            assert "nvidia.com/gpu" not in init["resources"][kind], name


def test_without_run_tokens_a_run_sees_the_token_of_the_hub_and_is_not_started_again() -> None:
    with_tokens = jobs(render())
    without = jobs(render(values={"hub": {"auth": {"runTokens": False}}}))
    for pool, job in without.items():
        assert job["metadata"]["name"] == with_tokens[pool]["metadata"]["name"]
        template = job["spec"]["template"]
        assert "initContainers" not in template["spec"]
        assert mounted(template["spec"]["containers"][0], template)["/etc/devbench/hub"] == ["secret"]


def test_init_containers_of_the_user_run_after_the_one_that_makes_the_token() -> None:
    own = [{"name": "own", "image": "own:1"}]
    template = jobs(render(values={"poolDefaults": {"initContainers": own}}))["cpu"]["spec"]["template"]
    assert [container["name"] for container in template["spec"]["initContainers"]] == ["run-token", "own"]


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
    assert t4["DEVBENCH_DETERMINISTIC"] == "on"
    assert t4["DEVBENCH_SEED"] == "4294967295"


def test_a_pool_measures_several_python_environments_of_one_image(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = {"old": "/opt/tf-2.20", "new": "/opt/tf 2.21"}
    by_pool = jobs(render(values={"pools": {"cpu": {"settings": {"env": envs}}}}))
    monkeypatch.setenv("DEVBENCH_ENV", variables(by_pool["cpu"]["spec"]["template"])["DEVBENCH_ENV"])
    assert load().env == envs


def test_another_content_of_a_workload_starts_its_runs_again() -> None:
    def names(content: str) -> set[str]:
        values = {"workloads": ["mine"], "customWorkloads": {"mine": {"inline": content}, "unused": {"inline": "b"}}}
        return {job["metadata"]["name"] for job in jobs(render(values=values)).values()}

    assert not names("a = 1\n") & names("a = 2\n")


def test_a_change_of_one_workload_leaves_the_pools_of_others_and_their_files_as_they_are() -> None:
    def rendered(content: str) -> list[Object]:
        own = {"mine": {"inline": "a = 1\n"}, "theirs": {"inline": content}}
        pools = {"cpu": {"workloads": ["mine"]}, "t4": {"workloads": ["theirs"]}}
        return render(values={"workloads": ["mine"], "customWorkloads": own, "pools": pools})

    before, after = rendered("b = 1\n"), rendered("b = 2\n")
    assert jobs(before)["cpu"] == jobs(after)["cpu"]
    assert jobs(before)["t4"]["metadata"]["name"] != jobs(after)["t4"]["metadata"]["name"]
    volumes = jobs(after)["cpu"]["spec"]["template"]["spec"]["volumes"]
    (name,) = [volume["configMap"]["name"] for volume in volumes if "configMap" in volume]
    assert only(after, "ConfigMap", name)["data"] == {"mine.py": "a = 1\n"}


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


def test_a_new_version_of_the_chart_that_avoids_more_nodes_starts_no_run(tmp_path: Path) -> None:
    chart = tmp_path / "devbench"
    shutil.copytree(CHART, chart)
    common = chart / "presets" / "common.yaml"
    common.write_text(common.read_text(encoding="utf-8").replace("g4dn.xlarge,", "g4dn.xlarge, g9.xlarge,"))
    before, after = jobs(render())["cpu"], jobs(render(chart=chart))["cpu"]
    assert before["spec"] != after["spec"]
    assert before["metadata"]["name"] == after["metadata"]["name"]


def test_a_new_version_of_the_chart_with_more_gpu_models_and_options_starts_no_run(tmp_path: Path) -> None:
    chart = tmp_path / "devbench"
    shutil.copytree(CHART, chart)
    preset = chart / "presets" / "generic.yaml"
    preset.write_text(preset.read_text(encoding="utf-8").replace("[Tesla-T4]", "[Tesla-T4, Tesla-T4-B]"))
    backends = chart / "backends.yaml"
    backends.write_text(backends.read_text(encoding="utf-8").replace('"gpu": ', '"new": "a", "gpu": '))
    facts = json.loads((chart / "facts.json").read_text(encoding="utf-8"))
    pool = facts["defaults"]["poolDefaults"]
    facts["defaults"]["poolDefaults"] = {**pool, "new": "auto", "kernelCache": {**pool["kernelCache"], "new": "a"}}
    (chart / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    values = {"pools": {"t4": {"kernelCache": {"size": "1Gi"}}}}
    before, after = jobs(render(values=values)), jobs(render(values=values, chart=chart))
    assert before["t4"]["spec"] != after["t4"]["spec"]
    for pool in ("cpu", "t4"):
        assert before[pool]["metadata"]["name"] == after[pool]["metadata"]["name"]


def test_a_value_that_equals_its_default_starts_no_run() -> None:
    explicit = jobs(render(values={"pools": {"t4": {"memory": "10Gi", "cpuColumn": True, "image": {"tag": ""}}}}))
    assert explicit["t4"]["metadata"]["name"] == jobs(render())["t4"]["metadata"]["name"]


def test_the_users_own_variable_job_name_does_not_change_the_id_of_a_run() -> None:
    template = jobs(render(values={"poolDefaults": {"env": {"JOB_NAME": "mine"}}}))["cpu"]["spec"]["template"]
    for container in (*template["spec"]["initContainers"], *template["spec"]["containers"]):
        names = [variable["name"] for variable in container["env"]]
        values = {variable["name"]: variable.get("value", "") for variable in container["env"]}
        assert values["JOB_NAME"] == "mine"
        used = re.findall(r"\$\((\w+)\)", values["DEVBENCH_RUN_ID"])
        assert len(used) == 3
        # Kubernetes expands only variables that come before.
        assert all(names.index(name) < names.index("DEVBENCH_RUN_ID") for name in used)
        assert not {"JOB_NAME", "JOB_UID"} & set(used)


@pytest.mark.parametrize(
    ("values", "kept"), [({}, False), ({"schedule": {"cron": "0 3 * * 1"}}, True), ({"runNow": False}, True)]
)
def test_the_file_of_a_job_outside_the_release_outlives_an_upgrade(values: Object, kept: bool) -> None:
    own = {"workloads": ["mine"], "customWorkloads": {"mine": {"inline": "a = 1\n"}}}
    (config_map,) = (item for item in render(values={**own, **values}) if "mine.py" in item.get("data", {}))
    annotations = config_map["metadata"].get("annotations", {})
    assert (annotations.get("helm.sh/resource-policy") == "keep") is kept


def test_runs_of_two_releases_with_different_names_never_share_a_node() -> None:
    def selector(values: Object) -> Object:
        spec = jobs(render(values=values))["cpu"]["spec"]["template"]["spec"]
        (term,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        return dict(term["labelSelector"])

    assert selector({"nameOverride": "other"}) == selector({})


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


def test_a_pool_without_a_preset_still_requires_a_node_that_its_image_supports() -> None:
    own = {"preset": "none", "nodeSelector": {"kubernetes.io/arch": "arm64"}}
    by_pool = jobs(render(values={"pools": {"own": own, "any": {"preset": "none"}}}))
    labels = {pool: required_labels(job["spec"]["template"]["spec"]) for pool, job in by_pool.items()}
    assert labels["own"] == {"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux"}
    assert labels["any"] == {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}


def test_the_node_labels_of_a_pool_hold_beside_the_users_own_affinity() -> None:
    """They are an affinity, because Kueue writes the nodeSelector of admitted Jobs."""
    zones = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": zones}}
    pool = {"preset": "none", "nodeSelector": {"pool": "own"}, "affinity": {"nodeAffinity": required}}
    spec = jobs(render(values={"pools": {"own": pool}}))["own"]["spec"]["template"]["spec"]
    assert "nodeSelector" not in spec
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchExpressions"][0] for term in terms] == [zone["matchExpressions"][0] for zone in zones]
    for term in terms:
        assert {"key": "pool", "operator": "In", "values": ["own"]} in term["matchExpressions"]


def test_a_pool_keeps_its_gpu_model_beside_the_users_own_affinity() -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [zone]}}
    pool = {"enabled": True, "preset": "generic", "affinity": {"nodeAffinity": required}}
    spec = jobs(render(values={"pools": {"t4": pool}}))["t4"]["spec"]["template"]["spec"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    products = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["Tesla-T4"]}
    assert zone["matchExpressions"][0] in term["matchExpressions"]
    assert products in term["matchExpressions"]


def test_a_pool_avoids_other_runs_and_gpu_nodes_beside_the_users_own_affinity() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "noisy"}}}
    own = {
        "nodeAffinity": {required: {"nodeSelectorTerms": [zone]}},
        "podAntiAffinity": {required: [term], "preferredDuringSchedulingIgnoredDuringExecution": []},
    }
    default, changed = (jobs(render(values={"poolDefaults": {"affinity": affinity}})) for affinity in (None, own))
    for pool in ("cpu", "t4"):
        before, after = (each[pool]["spec"]["template"]["spec"]["affinity"] for each in (default, changed))
        assert after["podAntiAffinity"][required] == [term, *before["podAntiAffinity"][required]]
        ((ours,), (both,)) = (each["nodeAffinity"][required]["nodeSelectorTerms"] for each in (before, after))
        assert both["matchExpressions"] == [*zone["matchExpressions"], *ours["matchExpressions"]]


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


def test_a_scheduled_job_ends_even_if_its_pool_has_no_nodes() -> None:
    rendered = render(values={"schedule": {"cron": "0 3 * * 1"}, "watcher": {"waitSeconds": 600}})
    for item in rendered:
        if item["kind"] == "CronJob":
            assert item["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 600 + 2 * 7200
        elif item["kind"] == "Job":
            assert "activeDeadlineSeconds" not in item["spec"]


@pytest.mark.parametrize("schedule", [True, False])
def test_the_watcher_may_end_jobs_only_if_there_is_a_schedule(schedule: bool) -> None:
    rendered = render(values={"schedule": {"cron": "0 3 * * 1"}} if schedule else {})
    (role,) = (item for item in rendered if item["kind"] == "Role" and item["metadata"]["name"].endswith("-watcher"))
    (watcher,) = (
        item for item in rendered if item["kind"] == "Deployment" and item["metadata"]["name"].endswith("-watcher")
    )
    (container,) = watcher["spec"]["template"]["spec"]["containers"]
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} - {"get", "list", "watch"} == (
        {"patch"} if schedule else set()
    )
    assert ("--end-scheduled" in container["args"]) is schedule


def test_without_a_run_at_installation_there_is_a_suspended_schedule_to_start_runs_from() -> None:
    rendered = render(values={"runNow": False})
    assert not jobs(rendered)
    crons = [item["spec"] for item in rendered if item["kind"] == "CronJob"]
    assert [spec["suspend"] for spec in crons] == [True, True]
    said = notes({"runNow": False})
    assert "kubectl -n default create job --from=cronjob/devbench-POOL NAME" in said
    assert "helm -n default test" not in said  # it would pass although no run was started
    assert "helm -n default test" in notes({})


@cases
def test_a_run_requests_a_whole_number_of_cpus_equal_to_its_limit(case: Path) -> None:
    for name, template in pods(render(case)):
        if "devbench/pool" in template["metadata"]["labels"]:
            (container,) = template["spec"]["containers"]
            assert container["resources"]["requests"] == container["resources"]["limits"], name
            assert isinstance(container["resources"]["limits"]["cpu"], int), name


@pytest.mark.parametrize(
    ("metrics", "interval", "linger"),
    [({}, "30", None), ({"podMonitor": {"intervalSeconds": 120}}, "120", None), ({"lingerSeconds": 0}, "30", "0")],
)
def test_a_run_knows_the_scrape_interval_and_lingers_for_a_given_time_only_on_request(
    metrics: Object, interval: str, linger: str | None
) -> None:
    rendered = render(CHART / "ci" / "default-values.yaml", values={"metrics": metrics})
    for job in jobs(rendered).values():
        environment = variables(job["spec"]["template"])
        assert environment["DEVBENCH_SCRAPE_INTERVAL"] == interval
        assert environment.get("DEVBENCH_LINGER") == linger


def test_the_api_versions_of_the_cluster_do_not_affect_runs() -> None:
    before, after = jobs(render()), jobs(render(options=operator_versions()))
    assert {job["metadata"]["name"] for job in before.values()} == {job["metadata"]["name"] for job in after.values()}


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
