"""The hub and the watcher beside it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from bench.config.hub_settings import HubSettings
from charts.source.base import ImageOverride, Objects, Part, Placing, Quantity, Resources, Strings, settings_schema

DECIDED_BY_THE_CHART = frozenset({"database", "host", "port", "tokens_file", "readers_file"})
"""Settings of the hub that other values or the chart itself say."""

HubOptions = Annotated[dict[str, Any], WithJsonSchema(settings_schema(HubSettings, DECIDED_BY_THE_CHART))]


class Auth(Part):
    """Who may write to the hub and read from it."""

    existing_secret: str = Field(
        "",
        description="Secret with the token for writes; empty: one is made and kept over upgrades. Needed where "
        "templates are rendered without a cluster (helm template, Argo CD).",
    )
    token_key: str = Field("token", min_length=1, description="Its key; several tokens stand on a line each.")
    readers_secret: str = Field("", description="Secret with NAME:PASSWORD for reads; empty: reads are open.")
    readers_key: str = Field("readers", min_length=1, description="Its key; several readers stand on a line each.")
    scraper_secret: str = Field(
        "",
        description="Secret with the keys username and password, one of these readers, for Prometheus. Needed where "
        "reads are closed and there is a ServiceMonitor.",
    )


class Persistence(Part):
    """The volume of the results, on SQLite."""

    enabled: bool = Field(True, description="Off: results go with the pod.")
    size: Quantity = Field("8Gi", description="Its size.")
    storage_class: str = Field("", description="Storage class of a block volume; empty: the cluster's default.")
    existing_claim: str = Field("", description="A claim that is there already.")
    annotations: Strings = Field({}, description="Further annotations of the claim.")


class Database(Part):
    """PostgreSQL in place of SQLite."""

    existing_secret: str = Field("", description="Secret with the database's URL; empty: SQLite on the volume.")
    key: str = Field("url", min_length=1, description="Its key.")


class Service(Part):
    """How the hub is reached inside the cluster."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field("ClusterIP", description="Kind of Service.")
    port: int = Field(80, ge=1, le=65535, description="Its port.")
    annotations: Strings = Field({}, description="Its annotations.")


class Ingress(Part):
    """A way in through an ingress controller, under `settings.root_path` where it is set."""

    enabled: bool = Field(False, description="Whether there is one.")
    class_name: str = Field("", description="Ingress class; empty: the cluster's default.")
    annotations: Strings = Field({}, description="Its annotations.")
    hosts: list[str] = Field([], description="Host names; empty: any.")
    tls: Objects = Field([], description="TLS, as Kubernetes has it.")


class HttpRoute(Part):
    """A way in through the Gateway API, under `settings.root_path` where it is set."""

    enabled: bool = Field(False, description="Whether there is one.")
    annotations: Strings = Field({}, description="Its annotations.")
    parent_refs: Objects = Field([], description="Gateways that it belongs to.")
    hostnames: list[str] = Field([], description="Host names; empty: any.")


def _filled(*path: str) -> dict[str, Any]:
    """A schema that asks for a text that is not empty at a place."""
    schema: dict[str, Any] = {"type": "string", "minLength": 1}
    for name in reversed(path):
        schema = {"type": "object", "properties": {name: schema}, "required": [name]}
    return schema


class Hub(Placing):
    """The server that keeps and shows the results."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {
                    "if": {"properties": {"replicas": {"minimum": 2}}, "required": ["replicas"]},
                    "then": _filled("database", "existingSecret"),
                },
                {
                    "if": {"properties": {"enabled": {"const": False}}, "required": ["enabled"]},
                    "then": {"allOf": [_filled("url"), _filled("auth", "existingSecret")]},
                },
            ]
        }
    )

    enabled: bool = Field(True, description="Off: `hub.url` names one outside.")
    url: str = Field("", pattern="^(https?://.+)?$", description="An outside hub, where the chart's own is off.")
    replicas: int = Field(1, ge=1, description="More than one needs PostgreSQL (`hub.database`).")
    image: ImageOverride = Field(ImageOverride(), description="Another image.")
    settings: HubOptions = Field({}, description="Settings of `devbench hub`, as in devbench.toml.")
    auth: Auth = Field(Auth(), description="Who may write and read.")
    persistence: Persistence = Field(Persistence(), description="The volume of the results.")
    database: Database = Field(Database(), description="PostgreSQL in place of SQLite.")
    service: Service = Field(Service(), description="How it is reached inside the cluster.")
    ingress: Ingress = Field(Ingress(), description="A way in through an ingress controller.")
    http_route: HttpRoute = Field(HttpRoute(), description="A way in through the Gateway API.")
    resources: Resources = Field(
        Resources(
            requests={"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "256Mi"},
            limits={"memory": "512Mi", "ephemeral-storage": "1Gi"},
        ),
        description="What it asks for and may use.",
    )
    env: Strings = Field({}, description="Further variables.")


class Watcher(Placing):
    """What tells the hub of runs that can't tell it themselves: no node, no image, no memory, no time."""

    enabled: bool = Field(True, description="Whether it runs.")
    wait_seconds: int = Field(
        1800, ge=1, description="A run that waits longer for a node is recorded as failed; it may still start later."
    )
    image: ImageOverride = Field(ImageOverride(), description="Another image.")
    resources: Resources = Field(
        Resources(
            requests={"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "64Mi"},
            limits={"memory": "256Mi", "ephemeral-storage": "256Mi"},
        ),
        description="What it asks for and may use.",
    )
    env: Strings = Field({}, description="Further variables.")
