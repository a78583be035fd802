"""The base of every section of the values: camelCase keys, no unknown keys, and common Kubernetes types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel


class Part(BaseModel):
    """A section of the values. An unknown key is an error, so that misspelt keys are noticed."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


NAME = "^[a-z]([-a-z0-9]{0,18}[a-z0-9])?$"
"""A DNS label that starts with a letter (RFC 1035). At most 20 characters, because a Job's name has two more parts."""

QUANTITY = "^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"
"""A Kubernetes resource quantity in one of the common forms."""

Quantity = Annotated[
    str, WithJsonSchema({"anyOf": [{"type": "string", "pattern": QUANTITY}, {"type": "number", "minimum": 0}]})
]
QuantityOrNone = Annotated[
    str, WithJsonSchema({"anyOf": [{"type": "string", "pattern": f"{QUANTITY}|^$"}, {"type": "number", "minimum": 0}]})
]
Strings = dict[str, str]
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
        if value.get("type") == "array":  # a list may also be text with commas, as on the command line
            value = {"description": value.pop("description"), "anyOf": [value, {"type": "string"}]}
        elif value.get("type") == "object":
            value["additionalProperties"] = {"type": ["string", "number", "boolean"]}
        properties[name] = value
    return {"type": "object", "properties": properties, "additionalProperties": False}


class ImageOverride(Part):
    """Image of one component. It overrides `image`."""

    repository: str = Field("", description="Repository without a tag. Default: from `image`.")
    tag: str = Field("", description="Tag. Default: from `image`.")
    digest: str = Field("", pattern="^(sha256:[0-9a-f]{64})?$", description="Digest. It overrides the tag.")


class Resources(Part):
    """Resource requests and limits of a container."""

    requests: dict[str, Quantity] = Field({}, description="Resource requests.")
    limits: dict[str, Quantity] = Field({}, description="Resource limits.")


class Placing(Part):
    """Where a pod that does not measure may run."""

    node_selector: Strings = Field({}, description="Node labels that the pod requires.")
    tolerations: Objects = Field([], description="Tolerations of the pod.")
    affinity: Object = Field({}, description="Affinity of the pod.")
    pod_annotations: Strings = Field({}, description="Extra annotations of the pod.")
    pod_labels: Strings = Field({}, description="Extra labels of the pod.")
