"""All values of the chart."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from charts.source.base import Object, Part, Placing, Resources, Strings
from charts.source.hub import Hub, Watcher
from charts.source.observe import Metrics, NetworkPolicy
from charts.source.pools import Pool, PoolName, RunOptions, Seconds, Workload


class Image(Part):
    """Where the images are."""

    registry: str = Field("", description="Registry, put before the repository.")
    repository: str = Field("devbench", min_length=1, description="Repository of all devbench images.")
    tag: str = Field("", description="Version; the backend's name follows it (1.0-cuda). Empty: the backend's alone.")
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field("IfNotPresent", description="When to pull.")
    pull_secrets: list[str] = Field([], description="Names of Secrets for pulling.")


class ConfigMapFile(Part):
    """A file in a ConfigMap that is there already."""

    name: str = Field(min_length=1, description="The ConfigMap. Its content is not seen here: name a new one anew.")
    key: str = Field("", description="Its key; empty: the workload's name with .py.")


class CustomWorkload(Part):
    """A workload of your own: the text of a file, or the ConfigMap that holds it."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    inline: str | None = Field(None, min_length=1, description="The file's text.")
    config_map: ConfigMapFile | None = Field(None, description="The ConfigMap that holds the file.")


class Schedule(Part):
    """Runs again and again, for finding regressions."""

    cron: str = Field("", description="When, as cron has it: '0 3 * * 1'; empty: once for each change.")
    time_zone: str = Field("Etc/UTC", description="Of that time.")
    suspend: bool = Field(False, description="Hold it.")
    history_limit: int = Field(3, ge=0, description="Finished Jobs kept of each pool; results stay in the hub.")


class Test(Placing):
    """`helm test`: fails on failed or missing results, never because one pool is slower."""

    enabled: bool = Field(True, description="Whether there is one.")
    wait_seconds: Seconds = Field(1800, description="How long it waits for results; give helm test a longer --timeout.")
    resources: Resources = Field(
        Resources(
            requests={"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "64Mi"},
            limits={"memory": "256Mi", "ephemeral-storage": "256Mi"},
        ),
        description="What it asks for and may use.",
    )


class PodSecurity(Part):
    """Ids that all pods run as; everything else of the restricted level is fixed."""

    run_as_user: int = Field(10001, ge=1, description="User id.")
    run_as_group: int = Field(10001, ge=1, description="Group id.")
    fs_group: int = Field(10001, ge=1, description="Group id of volumes.")


Global = Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]


class Values(Part):
    """Values of the devbench chart."""

    name_override: str = Field("", max_length=40, description="In place of the chart's name.")
    fullname_override: str = Field("", max_length=25, description="In place of release and chart name.")
    global_: Global = Field({}, alias="global", description="Of a parent chart; not read.")
    image: Image = Field(Image(), description="Where the images are.")
    workloads: list[Workload] = Field(
        ["cifar", "mnist"], min_length=1, description="What to measure: built-in names and those of customWorkloads."
    )
    custom_workloads: dict[Workload, CustomWorkload] = Field({}, description="Workloads of your own, by name.")
    settings: RunOptions = Field({}, description="Settings of all runs, as in devbench.toml.")
    pool_defaults: Pool = Field(Pool(), description="What every pool is unless it says otherwise.")
    pools: dict[PoolName, Pool] = Field(
        {"cpu": Pool(backend="cpu"), "t4": Pool(backend="cuda", accelerator="t4")},
        description="Kinds of nodes to measure on, by name; one is left out by null or enabled: false.",
    )
    run_now: bool = Field(True, description="Run once for each change; off: only on schedule.")
    schedule: Schedule = Field(Schedule(), description="Runs again and again.")
    security: PodSecurity = Field(PodSecurity(), description="Ids that pods run as.")
    hub: Hub = Field(Hub(), description="The server that keeps and shows the results.")
    watcher: Watcher = Field(Watcher(), description="Tells the hub of runs that can't tell it themselves.")
    metrics: Metrics = Field(Metrics(), description="What Prometheus reads.")
    network_policy: NetworkPolicy = Field(NetworkPolicy(), description="Which flows are let through.")
    test: Test = Field(Test(), description="What `helm test` does.")
    common_labels: Strings = Field({}, description="Further labels of every object but pods.")
    extra_objects: list[Object] = Field([], description="Further manifests, as they stand.")
