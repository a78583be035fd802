"""The objects of pools with `workers`: one Job or JobSet for each workload and each number of workers."""

from __future__ import annotations

from typing import Any

import pytest
from rendering import CHART, JOBSET, Object, jobs, notes, only, render, runs, variables

pytestmark = [pytest.mark.once, pytest.mark.needs("go"), pytest.mark.timeout(1800)]

UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
LONG: dict[str, Any] = {"fullnameOverride": "a-name-of-25-characters-x", "pool": "a-pool-of-20-letters"}
"""The longest names of a release and a pool."""


def scaling(*sizes: int, options: tuple[str, ...] = (), values: Object | None = None, **pool: Any) -> list[Object]:
    """Return the objects of one pool that measures the scaling of one workload."""
    own = {"preset": "none", "nodeSelector": {"pool": "own"}, "workers": list(sizes), **pool}
    pools = {"cpu": None, "t4": None, "own": own}
    return render(values={"workloads": ["cifar"], "pools": pools, **(values or {})}, options=options)


def jobsets(*sizes: int, **more: Any) -> list[Object]:
    """Return the same for a cluster that has JobSets."""
    return scaling(*sizes, options=(f"--api-versions={JOBSET}",), **more)


def template(run: Object) -> Object:
    """Return the template of the pods of a Job or JobSet."""
    spec = run["spec"] if run["kind"] == "Job" else run["spec"]["replicatedJobs"][0]["template"]["spec"]
    return dict(spec["template"])


def arguments(run: Object, job: str = "") -> list[str]:
    """Return the arguments of the container, as Kubernetes expands them in a Job of this name."""
    (container,) = template(run)["spec"]["containers"]
    return [str(word).replace("$(DEVBENCH_JOB_NAME)", job or run["metadata"]["name"]) for word in container["args"]]


def apart(run: Object) -> list[Object]:
    """Return the required terms of the anti-affinity."""
    affinity = template(run)["spec"]["affinity"]["podAntiAffinity"]
    return list(affinity["requiredDuringSchedulingIgnoredDuringExecution"])


def test_each_workload_runs_once_with_each_number_of_workers_in_any_order() -> None:
    rendered = render(values={"workloads": ["cifar", "mnist"], "pools": {"cpu": {"workers": [4, 1, 2]}}})
    made = [item["metadata"]["annotations"] for item in rendered if item["kind"] == "Job"]
    found = {(item["devbench/workloads"], item["devbench/workers"]) for item in made if "devbench/workers" in item}
    assert found == {(f'["{name}"]', str(size)) for name in ("cifar", "mnist") for size in (1, 2, 4)}
    assert "devbench/workers" not in jobs(rendered)["t4"]["metadata"]["annotations"]


def test_one_worker_is_a_job_with_one_pod_that_starts_again_after_an_eviction() -> None:
    rendered = scaling(1)
    job = runs(rendered)[1]
    assert arguments(job) == ["scale", "cifar", "--workers", "1"]
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["backoffLimitPerIndex"]) == (1, 1, 5)
    assert [item["metadata"]["name"] for item in rendered if item["kind"] == "Service"] == ["devbench-hub"]


def test_several_workers_are_the_pods_of_one_indexed_job_that_fails_with_any_of_them() -> None:
    spec = runs(scaling(1, 3))[3]["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 3)
    assert spec["backoffLimit"] == 0
    assert "backoffLimitPerIndex" not in spec


def test_each_worker_has_a_stable_name_in_the_headless_service_of_its_run() -> None:
    rendered = scaling(2, values={"watcher": {"waitSeconds": 600}})
    job = runs(rendered)[2]
    name = job["metadata"]["name"]
    service = only(rendered, "Service", name)["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    assert service["selector"].items() <= template(job)["metadata"]["labels"].items()
    assert template(job)["spec"]["subdomain"] == name
    hosts = f"{name}-0.{name},{name}-1.{name}"
    words = ["scale", "cifar", "--workers", "2", "--hosts", hosts, "--rendezvous-timeout", "600s"]
    assert arguments(job) == words


def test_a_custom_workload_is_scaled_from_its_file() -> None:
    own: Object = {"workloads": ["mine"], "customWorkloads": {"mine": {"inline": "a = 1\n"}}}
    assert arguments(runs(scaling(2, values=own))[2])[:2] == ["scale", "/workloads/mine.py"]


def test_all_workers_are_one_run_whose_results_come_from_index_0() -> None:
    container = template(runs(scaling(1, 2))[2])
    for part in (container, {"spec": {"containers": container["spec"]["initContainers"]}}):
        assert variables(part)["DEVBENCH_RUN_ID"] == "$(DEVBENCH_JOB_NAME).$(DEVBENCH_JOB_UID).0"
    # The index has no count of failures, because the Job has no limit per index.
    assert variables(container)["DEVBENCH_FAILURES"] == "0"


def test_workers_of_a_run_need_a_node_each_and_runs_of_a_pool_exclude_each_other() -> None:
    rendered = scaling(1, 2)
    for run in runs(rendered).values():
        name = template(run)["metadata"]["labels"]["devbench/run"]
        assert name == run["metadata"]["name"]
        exclusive, one_per_node, one_run = apart(run)
        assert exclusive["labelSelector"] == {"matchExpressions": [{"key": "devbench/pool", "operator": "Exists"}]}
        assert one_per_node["topologyKey"] == "kubernetes.io/hostname"
        assert one_per_node["labelSelector"] == {"matchExpressions": [{"key": "devbench/run", "operator": "Exists"}]}
        assert one_run["topologyKey"] == "kubernetes.io/os"
        assert one_run["labelSelector"]["matchExpressions"] == [
            {"key": "devbench/pool", "operator": "In", "values": ["own"]},
            {"key": "devbench/run", "operator": "NotIn", "values": [name]},
        ]


def test_workers_stay_apart_with_a_shared_node_or_the_users_own_affinity() -> None:
    assert len(apart(runs(scaling(2, exclusiveNode=False))[2])) == 2
    own = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [own]}}
    assert [term["topologyKey"] for term in apart(runs(scaling(2, affinity=affinity))[2])] == [
        "zone", "kubernetes.io/hostname", "kubernetes.io/hostname", "kubernetes.io/os"
    ]  # fmt: skip


@pytest.mark.parametrize(("pool", "size"), [({}, "1Gi"), ({"sharedMemory": "8Gi"}, "8Gi")])
def test_workers_have_shared_memory(pool: Object, size: str) -> None:
    for run in runs(scaling(1, 2, **pool)).values():
        spec = template(run)["spec"]
        (mount,) = [mount for mount in spec["containers"][0]["volumeMounts"] if mount["mountPath"] == "/dev/shm"]
        (volume,) = [volume for volume in spec["volumes"] if volume["name"] == mount["name"]]
        assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": size}


def test_a_pool_without_workers_has_shared_memory_only_if_its_values_say_so() -> None:
    by_pool = jobs(render(values={"pools": {"t4": {"sharedMemory": "2Gi"}}}))
    mounts = {
        pool: {mount["mountPath"] for mount in job["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]}
        for pool, job in by_pool.items()
    }
    assert {pool for pool, paths in mounts.items() if "/dev/shm" in paths} == {"t4"}


def test_a_gpu_pool_with_workers_measures_only_its_gpu() -> None:
    rendered = scaling(2, backend="cuda", preset="generic", accelerator="t4")
    assert variables(template(runs(rendered)[2]))["DEVBENCH_BACKEND"] == "cuda"


def test_another_number_of_workers_leaves_the_runs_of_the_others_as_they_are() -> None:
    before, after = runs(scaling(1, 2)), runs(scaling(1, 4, 2))
    assert set(after) - set(before) == {4}
    assert all(after[size] == before[size] for size in before)
    changed = runs(scaling(1, 2, settings={"seed": 2}))
    assert all(changed[size]["metadata"]["name"] != before[size]["metadata"]["name"] for size in before)


def test_a_jobset_replaces_the_job_and_the_service_if_the_cluster_has_jobsets() -> None:
    rendered = jobsets(1, 2)
    assert set(runs(rendered)) == {1}, "one worker needs no JobSet"
    jobset = runs(rendered, "JobSet")[2]
    job, name = runs(scaling(2))[2], jobset["metadata"]["name"]
    assert name == job["metadata"]["name"], "the kind does not affect the measurement"
    network = {"enableDNSHostnames": True, "publishNotReadyAddresses": True, "subdomain": name}
    assert jobset["spec"]["network"] == network
    (replicated,) = jobset["spec"]["replicatedJobs"]
    assert (replicated["name"], replicated["replicas"]) == ("workers", 1)
    assert replicated["template"]["spec"] == job["spec"]
    hosts = f"{name}-workers-0-0.{name},{name}-workers-0-1.{name}"
    assert hosts in arguments(jobset, job=f"{name}-workers-0")
    assert [item for item in rendered if item["kind"] == "Service" and "hub" not in item["metadata"]["name"]] == []


def test_the_job_of_a_jobset_is_found_by_the_watcher() -> None:
    jobset, job = runs(jobsets(2), "JobSet")[2], runs(scaling(2))[2]
    metadata = jobset["spec"]["replicatedJobs"][0]["template"]["metadata"]
    assert metadata["labels"] == job["metadata"]["labels"]
    kept = {key: value for key, value in job["metadata"]["annotations"].items() if key != "devbench/spec"}
    assert metadata["annotations"] == kept


@pytest.mark.parametrize(
    ("on", "option", "kind"),
    [(False, f"--api-versions={JOBSET}", "Job"), (True, "--include-crds", "JobSet"), ("auto", "--include-crds", "Job")],
)
def test_the_values_can_force_or_forbid_jobsets(on: object, option: str, kind: str) -> None:
    rendered = scaling(2, jobSet=on, options=(option,))
    assert [found for found in ("Job", "JobSet") if 2 in runs(rendered, found)] == [kind]


def test_kueue_admits_the_job_or_the_jobset_as_a_whole() -> None:
    label = "kueue.x-k8s.io/queue-name"
    for job in runs(scaling(1, 2, queue="benchmarks")).values():
        assert job["metadata"]["labels"][label] == "benchmarks"
    jobset = runs(jobsets(2, queue="benchmarks"), "JobSet")[2]
    assert jobset["metadata"]["labels"][label] == "benchmarks"
    inner = jobset["spec"]["replicatedJobs"][0]["template"]["metadata"]["labels"]
    assert (label in inner, inner["devbench/queue"]) == (False, "benchmarks")


def test_the_helm_test_waits_for_the_job_of_each_run() -> None:
    def awaited(rendered: list[Object]) -> set[str]:
        (container,) = only(rendered, "Pod")["spec"]["containers"]
        return {word for word in container["args"] if "=" in word}

    names = {size: job["metadata"]["name"] for size, job in runs(scaling(1, 2)).items()}
    assert awaited(scaling(1, 2)) == {f"{names[1]}=cifar", f"{names[2]}=cifar"}
    assert awaited(jobsets(1, 2)) == {f"{names[1]}=cifar", f"{names[2]}-workers-0=cifar"}


def test_a_scheduled_run_has_workers_with_names_of_its_own() -> None:
    schedule: Object = {"schedule": {"cron": "0 3 * * 1"}, "watcher": {"waitSeconds": 600}}
    rendered = jobsets(1, 2, values=schedule)
    cron = runs(rendered, "CronJob")[2]
    name, spec = cron["metadata"]["name"], cron["spec"]["jobTemplate"]["spec"]
    assert name != runs(rendered, "JobSet")[2]["metadata"]["name"]
    made = {"kind": "Job", "metadata": {"name": f"{name}-29400000"}, "spec": spec}
    assert f"{name}-29400000-0.{name},{name}-29400000-1.{name}" in arguments(made)
    assert only(rendered, "Service", name)["spec"]["selector"]["devbench/run"] == name
    # The two runs of the pool wait for each other.
    assert spec["activeDeadlineSeconds"] == 600 + 2 * 7200


def test_names_of_workers_stay_within_the_limits_of_kubernetes_and_different() -> None:
    pool = {"preset": "none", "workers": [999], "jobSet": True}
    schedule = {"cron": "0 3 * * 1"}
    own = {"workloads": ["cifar"], "fullnameOverride": LONG["fullnameOverride"], "schedule": schedule}
    pools = {"cpu": None, LONG["pool"]: pool, LONG["pool"][:-1] + "z": pool}
    rendered = render(values={**own, "pools": pools})
    sets = [item["metadata"]["name"] for item in rendered if item["kind"] == "JobSet"]
    crons = [item["metadata"]["name"] for item in rendered if item["kind"] == "CronJob" and "-w999-" in str(item)]
    assert len(set(sets) | set(crons)) == 4, "names that are cut stay different"
    for name in sets:
        # What JobSet checks: the name of the last pod, with the suffix of five characters that Kubernetes appends.
        assert len(f"{name}-workers-0-998-abcde") <= 63
        assert len(f"{name}-workers-0.{UID}.0") <= 100, "the id of a run has at most 100 characters"
    for name in crons:
        assert len(f"{name}-29400000-998") <= 63


def test_the_notes_name_the_numbers_of_workers_and_how_to_start_their_runs() -> None:
    text = notes({"pools": {"cpu": {"workers": [1, 2]}}, "runNow": False})
    assert "workers: 1, 2" in text
    assert "get cronjobs -l app.kubernetes.io/instance=devbench" in text


def test_the_case_of_the_chart_has_every_kind_of_run() -> None:
    rendered = render(CHART / "ci" / "workers-values.yaml", options=(f"--api-versions={JOBSET}",))
    assert {"Job", "JobSet", "CronJob", "Service", "NetworkPolicy"} <= {item["kind"] for item in rendered}
