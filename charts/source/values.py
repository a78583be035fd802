"""All values of the chart."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from charts.source.base import Object, Part, Placing, Resources, Strings
from charts.source.hub import Hub, Watcher
from charts.source.observe import Metrics, NetworkPolicy
from charts.source.pools import Pool, PoolName, RunOptions, Seconds, Workload


class Image(Part):
    """The container images."""

    registry: str = Field("", description="Registry. It is put before the repository.")
    repository: str = Field("devbench", min_length=1, description="Repository of all devbench images.")
    tag: str = Field(
        "", description="Version. The backend's name is appended, as in 1.0-cuda. Default: the backend's name alone."
    )
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="Pull policy of all images."
    )
    pull_secrets: list[str] = Field([], description="Names of image pull Secrets.")


class ConfigMapFile(Part):
    """A file in an existing ConfigMap."""

    name: str = Field(
        min_length=1,
        description="Name of the ConfigMap. The chart does not see its content: to run a changed file, use a new name.",
    )
    key: str = Field("", description="Key in the ConfigMap. Default: the workload's name with .py.")


class CustomWorkload(Part):
    """Your own workload: the text of a file, or the ConfigMap that holds it."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    inline: str | None = Field(None, min_length=1, description="Text of the file.")
    config_map: ConfigMapFile | None = Field(None, description="ConfigMap that holds the file.")


class Schedule(Part):
    """Repeated runs, to find regressions."""

    cron: str = Field("", description="Cron schedule, such as '0 3 * * 1'. Default: no schedule.")
    time_zone: str = Field("Etc/UTC", description="Time zone of the schedule.")
    suspend: bool = Field(False, description="Suspend the schedule.")
    history_limit: int = Field(
        3, ge=0, description="Number of finished Jobs to keep per pool. Results stay in the hub."
    )


class Test(Placing):
    """`helm test`. It fails if a result failed or is missing, never because a pool is slower."""

    enabled: bool = Field(True, description="Create the test.")
    wait_seconds: Seconds = Field(1800, description="Seconds to wait for results. Give `helm test` a longer --timeout.")
    resources: Resources = Field(
        Resources(
            requests={"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "64Mi"},
            limits={"memory": "256Mi", "ephemeral-storage": "256Mi"},
        ),
        description="Resources of the test.",
    )


class PodSecurity(Part):
    """User and group of all pods. Everything else of the restricted Pod Security level is fixed."""

    run_as_user: int = Field(10001, ge=1, description="User id.")
    run_as_group: int = Field(10001, ge=1, description="Group id.")
    fs_group: int = Field(10001, ge=1, description="Group id of volumes.")


Global = Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]


class Values(Part):
    """Values of the devbench chart."""

    name_override: str = Field("", max_length=40, description="Replaces the chart's name.")
    fullname_override: str = Field("", max_length=25, description="Replaces the release's and the chart's name.")
    global_: Global = Field({}, alias="global", description="Values of a parent chart. Not used.")
    image: Image = Field(Image(), description="The container images.")
    workloads: list[Workload] = Field(
        ["cifar", "mnist"],
        min_length=1,
        description="Workloads to measure: built-in names, or names in customWorkloads.",
    )
    custom_workloads: dict[Workload, CustomWorkload] = Field({}, description="Your own workloads, by name.")
    settings: RunOptions = Field({}, description="Settings of all runs, under their names in devbench.toml.")
    pool_defaults: Pool = Field(Pool(), description="Defaults of every pool.")
    pools: dict[PoolName, Pool] = Field(
        {"cpu": Pool(backend="cpu"), "t4": Pool(backend="cuda", accelerator="t4")},
        description="Pools of nodes to measure on, by name. To leave one out, set it to null.",
    )
    run_now: bool = Field(True, description="Run once for each change. If false, run only on the schedule.")
    schedule: Schedule = Field(Schedule(), description="Repeated runs.")
    security: PodSecurity = Field(PodSecurity(), description="User and group of all pods.")
    hub: Hub = Field(Hub(), description="The results server.")
    watcher: Watcher = Field(Watcher(), description="Reports runs that failed before they could report themselves.")
    metrics: Metrics = Field(Metrics(), description="Prometheus metrics, rules and dashboards.")
    network_policy: NetworkPolicy = Field(NetworkPolicy(), description="Network policies.")
    test: Test = Field(Test(), description="`helm test`.")
    common_labels: Strings = Field({}, description="Extra labels of every object except pods.")
    extra_objects: list[Object] = Field([], description="Extra manifests.")
