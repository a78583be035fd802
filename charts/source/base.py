"""The base of every section of the values: camelCase keys, no unknown keys, and common Kubernetes types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from bench.config.notation import WORDS, notation_of


class Part(BaseModel):
    """A section of the values. An unknown key is an error, so that misspelt keys are noticed."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


NAME = "^[a-z]([-a-z0-9]{0,18}[a-z0-9])?$"
"""A DNS label that starts with a letter (RFC 1035). At most 20 characters, because a Job's name has two more parts."""

QUANTITY = "^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"
"""A Kubernetes resource quantity in one of the common forms."""

BYTES = "^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)$"
"""An amount of memory or storage. It needs a unit: 16 would be 16 bytes."""

LABEL = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""A DNS label that starts with a letter (RFC 1035)."""

RESERVED = "^(devbench/.*|app\\.kubernetes\\.io/(name|instance|component))$"
"""Labels that select pods. The watcher, Services and network policies depend on them."""

Quantity = Annotated[
    str, WithJsonSchema({"anyOf": [{"type": "string", "pattern": QUANTITY}, {"type": "number", "minimum": 0}]})
]
Bytes = Annotated[str, WithJsonSchema({"type": "string", "pattern": BYTES})]
BytesOrNone = Annotated[str, WithJsonSchema({"type": "string", "pattern": f"{BYTES}|^$"})]
Strings = dict[str, str]
Labels = Annotated[
    dict[str, str],
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "propertyNames": {"not": {"pattern": RESERVED}},
        }
    ),
]
IDENTITY = "^(JOB_COMPLETION_INDEX|DEVBENCH_(JOB_NAME|JOB_UID|RUN_ID|FAILURES|ATTEMPT))$"
"""Variables that identify a run. The chart's templates and the watcher depend on them."""

Variables = Annotated[
    dict[str, str | dict[str, Any]],
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {"type": ["string", "object"]},
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "not": {"pattern": IDENTITY}},
        }
    ),
]
"""Environment variables by name. A value is a string, or the content of `valueFrom`."""

ContainerResources = Annotated[
    dict[str, str],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {name: {"type": "string", "pattern": BYTES} for name in ("memory", "ephemeral-storage")},
            "additionalProperties": {
                "anyOf": [{"type": "string", "pattern": QUANTITY}, {"type": "number", "minimum": 0}]
            },
        }
    ),
]
Auto = Annotated[Literal["auto"] | bool, WithJsonSchema({"enum": ["auto", True, False]})]
Object = dict[str, Any]
Objects = list[dict[str, Any]]


def settings_schema(settings: type[BaseModel], without: frozenset[str]) -> dict[str, Any]:
    """Return the schema of settings as chart values, with their names in the settings file. All are optional.

    Args:
        settings: The declaration of the settings.
        without: Names that are not allowed.
    """
    properties = {}
    for name, schema in settings.model_json_schema()["properties"].items():
        if name in without:
            continue
        value = {key: part for key, part in schema.items() if key not in ("default", "title")}
        notation = notation_of(settings.model_fields[name])
        if notation == WORDS:
            value = {"description": value["description"], "type": "string"}  # templates do not quote for a shell
        elif value.get("type") == "array":
            value = _list(value, list(notation.names()) if notation and notation.names else None)
        elif value.get("type") == "object":
            value["additionalProperties"] = {"type": ["string", "number", "boolean"]}
        elif {"on", "off"} <= set(value.get("enum", [])):  # in YAML, on and off are true and false
            value = {"description": value["description"], "enum": [*value["enum"], True, False]}
        properties[name] = value
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _list(schema: dict[str, Any], names: list[str] | None) -> dict[str, Any]:
    """Return the schema of a list, which may also be text with commas, as on the command line."""
    items = {"type": "string", "enum": names} if names else schema["items"]
    rest = {key: value for key, value in schema.items() if key != "description"}
    text: dict[str, Any] = {"type": "string"}
    if "enum" in items:
        text["pattern"] = rf"^[\s,]*(({'|'.join(items['enum'])})\s*(,[\s,]*|$))*$"
    return {"description": schema["description"], "anyOf": [{**rest, "items": items}, text]}


class ImageOverride(Part):
    """Image of one component. It overrides `image`."""

    repository: str = Field(
        "",
        description="Repository without a tag. Default: from `image`. If it does not start with a registry, the "
        "registry of `image` is put before it.",
    )
    tag: str = Field("", description="Complete tag. Default: from `image`.")
    digest: str = Field("", pattern="^(sha256:[0-9a-f]{64})?$", description="Digest. It overrides the tag.")


class Resources(Part):
    """Resource requests and limits of a container."""

    requests: ContainerResources = Field({}, description="Resource requests.")
    limits: ContainerResources = Field({}, description="Resource limits.")


class PodOptions(Part):
    """What can be said about every pod. An entry of yours replaces the chart's own entry of the same name."""

    env: Variables = Field(
        {}, description="Extra environment variables. A value is text, or the content of `valueFrom`."
    )
    env_from: Objects = Field([], description="Sources of environment variables (`envFrom`).")
    extra_volumes: Objects = Field([], description="Extra volumes.")
    extra_volume_mounts: Objects = Field([], description="Extra mounts of the container.")
    init_containers: Objects = Field([], description="Init containers.")
    node_selector: Strings = Field({}, description="Node labels that the pod requires.")
    tolerations: Objects = Field([], description="Tolerations of the pod.")
    affinity: Object = Field({}, description="Affinity of the pod. It replaces the chart's own affinity.")
    topology_spread_constraints: Objects = Field([], description="Topology spread constraints of the pod.")
    priority_class_name: str = Field("", description="Priority class of the pod.")
    scheduler_name: str = Field("", description="Scheduler of the pod. Default: the cluster's default.")
    service_account_name: str = Field("", description="Service account of the pod. Default: the chart's choice.")
    dns_policy: str = Field("", description="DNS policy of the pod. Default: the cluster's default.")
    dns_config: Object = Field({}, description="DNS configuration of the pod.")
    pod_annotations: Strings = Field({}, description="Extra annotations of the pod.")
    pod_labels: Labels = Field({}, description="Extra labels of the pod.")
