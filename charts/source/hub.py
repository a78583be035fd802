"""The hub and the watcher."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from bench.config.hub_settings import HubSettings
from charts.source.base import Bytes, ImageOverride, Objects, Part, PodOptions, Resources, Strings, settings_schema

DECIDED_BY_THE_CHART = frozenset({"database", "host", "port", "tokens_file", "readers_file"})
"""Settings of the hub that other values or the chart set."""

HubOptions = Annotated[dict[str, Any], WithJsonSchema(settings_schema(HubSettings, DECIDED_BY_THE_CHART))]


class Auth(Part):
    """Authentication of writers and readers of the hub."""

    existing_secret: str = Field(
        "",
        description="Existing Secret with the token for writing. Default: the chart creates one and keeps it. "
        "Required if templates are rendered without a cluster, for example by helm template or Argo CD.",
    )
    token_key: str = Field("token", min_length=1, description="Key in the Secret. Its value has one token per line.")
    run_tokens: bool = Field(
        True,
        description="Give each run a token that may only write its own results. An init container makes it. If false, "
        "a measured program can read the hub's token. Set it to false if `hub.url` is a hub that knows no such tokens.",
    )
    readers_secret: str = Field(
        "", description="Existing Secret with the readers of the hub. Default: anyone can read."
    )
    readers_key: str = Field(
        "readers", min_length=1, description="Key in the Secret. Its value has one reader per line, as NAME:PASSWORD."
    )
    scraper_secret: str = Field(
        "",
        description="Existing Secret with the reader that Prometheus uses, in the keys username and password. Required "
        "if there are a `readersSecret` and a ServiceMonitor.",
    )


class Persistence(Part):
    """Volume of the SQLite database."""

    enabled: bool = Field(True, description="Keep results on a volume. If false, results are lost with the pod.")
    size: Bytes = Field("8Gi", description="Size of the volume.")
    storage_class: str = Field(
        "", description="Storage class of the volume, for block storage. Default: the cluster's default."
    )
    existing_claim: str = Field("", description="Existing claim to use instead of a new volume.")
    annotations: Strings = Field({}, description="Extra annotations of the claim.")


class Database(Part):
    """PostgreSQL instead of SQLite."""

    existing_secret: str = Field("", description="Existing Secret with the URL of the database. Default: SQLite.")
    key: str = Field("url", min_length=1, description="Key of the URL in the Secret.")


class Service(Part):
    """Service of the hub."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field("ClusterIP", description="Type of the Service.")
    port: int = Field(80, ge=1, le=65535, description="Port of the Service.")
    annotations: Strings = Field({}, description="Extra annotations.")
    node_port: int = Field(0, ge=0, le=65535, description="Port of the nodes. Default: the cluster chooses one.")
    load_balancer_class: str = Field("", description="Class of the load balancer. Default: the cluster's default.")
    load_balancer_source_ranges: list[str] = Field([], description="Clients of the load balancer. Default: all.")
    external_traffic_policy: Literal["", "Cluster", "Local"] = Field(
        "", description="Routing of external traffic. Default: the cluster's default."
    )
    ip_family_policy: Literal["", "SingleStack", "PreferDualStack", "RequireDualStack"] = Field(
        "", description="IP families of the Service. Default: the cluster's default."
    )
    ip_families: list[Literal["IPv4", "IPv6"]] = Field(
        [], description="IP families, in order. Default: the cluster's default."
    )


class Ingress(Part):
    """An Ingress, under `settings.root_path` if that is set."""

    enabled: bool = Field(False, description="Create an Ingress to the hub.")
    class_name: str = Field("", description="Ingress class. Default: the cluster's default.")
    annotations: Strings = Field({}, description="Extra annotations.")
    labels: Strings = Field({}, description="Extra labels.")
    path_type: Literal["Prefix", "ImplementationSpecific", "Exact"] = Field("Prefix", description="Type of the path.")
    hosts: list[str] = Field([], description="Host names. Default: all.")
    tls: Objects = Field([], description="TLS section of the Ingress.")


class HttpRoute(Part):
    """An HTTPRoute of the Gateway API, under `settings.root_path` if that is set."""

    enabled: bool = Field(False, description="Create an HTTPRoute to the hub.")
    annotations: Strings = Field({}, description="Extra annotations.")
    labels: Strings = Field({}, description="Extra labels.")
    parent_refs: Objects = Field([], description="Gateways to attach to.")
    hostnames: list[str] = Field([], description="Host names. Default: all.")


def _filled(*path: str) -> dict[str, Any]:
    """Return a schema that requires a non-empty string at a path."""
    schema: dict[str, Any] = {"type": "string", "minLength": 1}
    for name in reversed(path):
        schema = {"type": "object", "properties": {name: schema}, "required": [name]}
    return schema


class Hub(PodOptions):
    """The results server."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {
                    "if": {
                        "type": "object",
                        "properties": {"replicas": {"type": "integer", "minimum": 2}},
                        "required": ["replicas"],
                    },
                    "then": _filled("database", "existingSecret"),
                },
                {
                    "if": {
                        "type": "object",
                        "properties": {"enabled": {"const": False}},
                        "required": ["enabled"],
                    },
                    "then": {"allOf": [_filled("url"), _filled("auth", "existingSecret")]},
                },
            ]
        }
    )

    enabled: bool = Field(True, description="Install a hub. If false, set `hub.url`.")
    url: str = Field(
        "", pattern="^(https?://.+)?$", description="URL of an existing hub. Required if `hub.enabled` is false."
    )
    replicas: int = Field(1, ge=1, description="Number of pods. More than one requires PostgreSQL (`hub.database`).")
    image: ImageOverride = Field(ImageOverride(), description="Image of the hub, and of the pod of `helm test`.")
    settings: HubOptions = Field({}, description="Settings of `devbench hub`, with their names in devbench.toml.")
    auth: Auth = Field(Auth(), description="Authentication of writers and readers.")
    persistence: Persistence = Field(Persistence(), description="Volume of the SQLite database.")
    database: Database = Field(Database(), description="PostgreSQL instead of SQLite.")
    service: Service = Field(Service(), description="Service of the hub.")
    ingress: Ingress = Field(Ingress(), description="Ingress to the hub.")
    http_route: HttpRoute = Field(HttpRoute(), description="HTTPRoute of the Gateway API to the hub.")
    resources: Resources = Field(
        Resources(
            requests={"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "256Mi"},
            limits={"cpu": "2", "memory": "512Mi", "ephemeral-storage": "1Gi"},
        ),
        description="Resources of the container.",
    )


class Watcher(PodOptions):
    """Reports runs that failed too early to report themselves: no node, no image, out of memory, time limit."""

    enabled: bool = Field(True, description="Install the watcher.")
    wait_seconds: int = Field(
        1800,
        ge=1,
        description="Seconds after which a run that waits for a node is reported as failed. It may still start later, "
        "but a Job of a CronJob is ended.",
    )
    image: ImageOverride = Field(ImageOverride(), description="Image of the watcher.")
    resources: Resources = Field(
        Resources(
            requests={"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "64Mi"},
            limits={"cpu": "500m", "memory": "256Mi", "ephemeral-storage": "256Mi"},
        ),
        description="Resources of the container.",
    )
