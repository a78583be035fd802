"""All values of the chart."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from charts.source.base import Object, Part, Placing, Resources, Strings
from charts.source.hub import Hub, Watcher
from charts.source.observe import Metrics, NetworkPolicy
from charts.source.pools import Pool, PoolName, RunOptions, Seconds, Workload


class Image(Part):
    """Container images."""

    registry: str = Field(
        "", description="Registry of the repository, such as registry.example.org. Default: the container runtime's."
    )
    repository: str = Field("devbench", min_length=1, description="Repository of all devbench images.")
    tag: str = Field(
        "",
        description="Version of the image. With 1.0, the tag for cuda is 1.0-cuda. Default: the backend "
        "alone, such as cuda.",
    )
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="Image pull policy of all pods."
    )
    pull_secrets: list[str] = Field([], description="Names of the Secrets for pulling images.")


class ConfigMapFile(Part):
    """A file in an existing ConfigMap."""

    name: str = Field(
        min_length=1,
        description="Name of the ConfigMap. The chart cannot see its content, so use a new name to run a changed file.",
    )
    key: str = Field("", description="Key of the file. Default: the workload's name with .py.")


class CustomWorkload(Part):
    """Your own workload: the content of a Python file, or the ConfigMap that holds the file."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    inline: str | None = Field(None, min_length=1, description="Content of the Python file.")
    config_map: ConfigMapFile | None = Field(None, description="ConfigMap with the Python file.")


class Schedule(Part):
    """Scheduled runs, to find regressions."""

    cron: str = Field("", description="Cron expression, such as '0 3 * * 1'. Default: no scheduled runs.")
    time_zone: str = Field("Etc/UTC", description="Time zone of the cron expression.")
    suspend: bool = Field(False, description="Suspend the schedule.")
    history_limit: int = Field(
        3, ge=0, description="Number of finished Jobs to keep per pool. Results stay in the hub."
    )


class Test(Placing):
    """`helm test`. It fails if a result failed or is missing, never because a pool is slower."""

    enabled: bool = Field(True, description="Create the test pod.")
    wait_seconds: Seconds = Field(
        1800, description="Seconds to wait for results. `helm test` needs a longer --timeout."
    )
    resources: Resources = Field(
        Resources(
            requests={"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "64Mi"},
            limits={"memory": "256Mi", "ephemeral-storage": "256Mi"},
        ),
        description="Resources of the container.",
    )


class PodSecurity(Part):
    """User and groups of all pods. Everything else of the restricted Pod Security level is fixed."""

    run_as_user: int = Field(10001, ge=1, description="User ID.")
    run_as_group: int = Field(10001, ge=1, description="Group ID.")
    fs_group: int = Field(10001, ge=1, description="Group ID of volumes.")


Global = Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]


class Values(Part):
    """Values of the devbench chart."""

    name_override: str = Field("", max_length=40, description="Name to use instead of the chart's name.")
    fullname_override: str = Field(
        "", max_length=25, description="Prefix of all object names. Default: the names of the release and the chart."
    )
    global_: Global = Field({}, alias="global", description="Values of a parent chart. Not used.")
    image: Image = Field(Image(), description="Container images.")
    workloads: list[Workload] = Field(
        ["cifar", "mnist"],
        min_length=1,
        description="Workloads to measure: names of built-in workloads, or of `customWorkloads`.",
    )
    custom_workloads: dict[Workload, CustomWorkload] = Field({}, description="Your own workloads, by name.")
    settings: RunOptions = Field({}, description="Settings of all runs, with their names in devbench.toml.")
    pool_defaults: Pool = Field(Pool(), description="Default values of all pools.")
    pools: dict[PoolName, Pool] = Field(
        {"cpu": Pool(backend="cpu"), "t4": Pool(backend="cuda", accelerator="t4")},
        description="Pools of nodes to measure on, by name. Set a pool to null to remove it.",
    )
    run_now: bool = Field(
        True, description="Run at installation and whenever the runs change. If false, run only on the schedule."
    )
    schedule: Schedule = Field(Schedule(), description="Scheduled runs.")
    security: PodSecurity = Field(PodSecurity(), description="User and groups of all pods.")
    hub: Hub = Field(Hub(), description="The hub, which keeps and shows the results.")
    watcher: Watcher = Field(
        Watcher(), description="The watcher, which reports runs that failed too early to report themselves."
    )
    metrics: Metrics = Field(Metrics(), description="Prometheus metrics, rules and Grafana dashboards.")
    network_policy: NetworkPolicy = Field(NetworkPolicy(), description="Network policies of all pods.")
    test: Test = Field(Test(), description="The pod that `helm test` runs.")
    common_labels: Strings = Field({}, description="Extra labels of all objects except pods.")
    extra_objects: list[Object] = Field([], description="Extra manifests to install.")
