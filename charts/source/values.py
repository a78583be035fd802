"""All values of the chart."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from charts.source.base import LABEL, Labels, Object, Part, PodOptions, Resources, Strings
from charts.source.hub import Hub, Watcher
from charts.source.observe import Metrics, NetworkPolicy
from charts.source.pools import Pool, PoolName, RunOptions, Seconds, Workload, Workloads


class Image(Part):
    """Container images."""

    registry: str = Field(
        "",
        description="Registry of the repositories, such as registry.example.org. `global.imageRegistry` overrides it. "
        "Default: the container runtime's.",
    )
    repository: str = Field("devbench", min_length=1, description="Repository of all devbench images.")
    tag: str = Field(
        "",
        description="Version of the images. With 1.0, the tag for cuda is 1.0-cuda. Default: the chart's appVersion. "
        "Do not use a tag that can move to another image, because two nodes could then run different builds.",
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


def _has(name: str) -> dict[str, Any]:
    """Return a schema that requires a value. null stands for none."""
    return {"type": "object", "properties": {name: {"not": {"const": None}}}, "required": [name]}


class CustomWorkload(Part):
    """Your own workload: the content of a Python file, or the ConfigMap that holds the file."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [_has("inline"), _has("configMap")]})

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


class Test(PodOptions):
    """`helm test`. It fails if a result failed or is missing, never because a pool is slower."""

    enabled: bool = Field(
        True,
        description="Create the test pod. It has the image of the hub. Without `runNow`, there is no run to wait for, "
        "and no test pod.",
    )
    wait_seconds: Seconds = Field(
        1800, description="Seconds to wait for results. `helm test` needs a longer --timeout."
    )
    resources: Resources = Field(
        Resources(
            requests={"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "64Mi"},
            limits={"cpu": "500m", "memory": "256Mi", "ephemeral-storage": "256Mi"},
        ),
        description="Resources of the container.",
    )


class PodSecurity(Part):
    """User and groups of all pods. Everything else of the restricted Pod Security level is fixed."""

    run_as_user: Annotated[int, Field(ge=1)] | None = Field(
        10001, description="User ID. null: the cluster chooses one, as OpenShift does."
    )
    run_as_group: Annotated[int, Field(ge=1)] | None = Field(
        10001, description="Group ID. null: the cluster chooses one."
    )
    fs_group: Annotated[int, Field(ge=1)] | None = Field(
        10001, description="Group ID of volumes. null: the cluster chooses one."
    )


Global = Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]


class Values(Part):
    """Values of the devbench chart."""

    name_override: str = Field(
        "", max_length=63, pattern=f"{LABEL}|^$", description="Name to use instead of the chart's name."
    )
    fullname_override: str = Field(
        "",
        max_length=25,
        pattern=f"{LABEL}|^$",
        description="Prefix of all object names. Default: the names of the release and the chart.",
    )
    enabled: bool = Field(
        True, description="For the `condition` of a parent chart. If false, the parent chart does not install this one."
    )
    global_: Global = Field(
        {},
        alias="global",
        description="Values of a parent chart. Of these, the chart uses `imageRegistry` and `imagePullSecrets`.",
    )
    image: Image = Field(Image(), description="Container images.")
    workloads: Workloads = Field(
        ["cifar", "mnist"],
        min_length=1,
        description="Workloads to measure: names of built-in workloads, or of `customWorkloads`.",
    )
    custom_workloads: dict[Workload, CustomWorkload] = Field({}, description="Your own workloads, by name.")
    settings: RunOptions = Field({}, description="Settings of all runs, with their names in devbench.toml.")
    pool_defaults: Pool = Field(Pool(), description="Default values of all pools.")
    pools: dict[PoolName, Pool] = Field(
        {"cpu": Pool(backend="cpu"), "t4": Pool(enabled=False, backend="cuda", accelerator="t4")},
        description="Pools of nodes to measure on, by name. Set a pool to null to remove it. Enable t4 if the cluster "
        "has such nodes: `--set pools.t4.enabled=true`.",
    )
    rerun: int = Field(
        0, ge=0, description="Increase this number to start all runs again, although nothing else has changed."
    )
    run_now: bool = Field(
        True,
        description="Run at installation and whenever the runs change. If false, run on the schedule, or by hand: "
        "`kubectl create job --from=cronjob/…` starts a run that does not belong to the release.",
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
    common_labels: Labels = Field({}, description="Extra labels of all objects and pods.")
    common_annotations: Strings = Field({}, description="Extra annotations of all objects and pods.")
    extra_objects: list[Object] = Field([], description="Extra manifests to install.")
