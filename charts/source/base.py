"""What every part of the values is made of: camelCase keys, no unknown ones, and the plain Kubernetes shapes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel


class Part(BaseModel):
    """A part of the values: an unknown key is an error, so a misspelt one does not pass in silence."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


NAME = "^[a-z]([-a-z0-9]{0,18}[a-z0-9])?$"
"""A DNS label that begins with a letter (RFC 1035), of 20 characters at most: a Job's name has two more parts."""

QUANTITY = "^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"
"""A Kubernetes resource quantity, in the forms that people write."""

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
    """The schema of settings as values: by their names in the settings file, none of them needed.

    Args:
        settings: their declaration.
        without: names that may not be given.
    """
    known = {}
    for name, schema in settings.model_json_schema()["properties"].items():
        if name in without:
            continue
        kept = {key: value for key, value in schema.items() if key not in ("default", "title")}
        if kept.get("type") == "array":  # a list may be written as the command line has it
            kept = {"description": kept.pop("description"), "anyOf": [kept, {"type": "string"}]}
        elif kept.get("type") == "object":
            kept["additionalProperties"] = {"type": ["string", "number", "boolean"]}
        known[name] = kept
    return {"type": "object", "properties": known, "additionalProperties": False}


class ImageOverride(Part):
    """Another image for one part; what is empty comes from `image`."""

    repository: str = Field("", description="Where it is, without a tag.")
    tag: str = Field("", description="Its tag.")
    digest: str = Field("", pattern="^(sha256:[0-9a-f]{64})?$", description="Its digest, which wins over the tag.")


class Resources(Part):
    """What a container asks for and may use at most."""

    requests: dict[str, Quantity] = Field({}, description="What is kept for it.")
    limits: dict[str, Quantity] = Field({}, description="What it may use.")


class Placing(Part):
    """Where a pod that measures nothing may run."""

    node_selector: Strings = Field({}, description="Labels that its node must have.")
    tolerations: Objects = Field([], description="Taints that it may run beside.")
    affinity: Object = Field({}, description="Kubernetes affinity, as it stands.")
    pod_annotations: Strings = Field({}, description="Further annotations of its pod.")
    pod_labels: Strings = Field({}, description="Further labels of its pod.")
