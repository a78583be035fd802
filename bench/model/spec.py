"""A spec: everything that defines a run, explicit and hashable.

Nothing is left to a framework's default that differs by device or version; two runs with equal specs
are repetitions of each other, and `Spec.key` is their name.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Loop = Literal["as-written", "fit", "step", "host-batches", "resident", "fused"]
LOOPS: tuple[Loop, ...] = ("as-written", "fit", "step", "host-batches", "resident", "fused")
Dtype = Literal["float32", "float64", "mixed_float16", "mixed_bfloat16"]
DataKind = Literal["full", "sample", "synthetic", "own"]


class Frozen(BaseModel):
    """A strict, immutable model: an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Threads(Frozen):
    """TensorFlow's thread pools."""

    intra: int = Field(ge=1, description="threads within one operation")
    inter: int = Field(ge=1, description="operations at a time")


class Data(Frozen):
    """Which data a run reads."""

    kind: DataKind = Field(description="full set, shipped sample repeated, synthetic, or the program's own")
    name: str | None = Field(None, description="data set, such as cifar10; none where the program makes its own")
    source: str | None = Field(None, description="file or folder the full set was found in")
    sha256: str | None = Field(None, description="checksum of the shipped sample or of the file found")


class Spec(Frozen):
    """Everything that defines a run.

    `xla` None means that the program itself decides, which only the loop `as-written` allows; what it
    became is recorded in the sample.
    """

    workload: str = Field(description="a built-in's name, or the stem of a user's file")
    file: str | None = Field(None, description="absolute path of a user's file; none for a built-in")
    file_sha256: str | None = Field(None, description="checksum of the workload's source")
    case: str | None = Field(None, description="name of the preset of params, where the workload has several")
    params: dict[str, Any] = Field(default_factory=dict, description="every parameter with its value")
    backend: str
    loop: Loop = "as-written"
    what_ifs: tuple[str, ...] = Field((), description="what-ifs that change the program from outside")
    dtype: Dtype = "float32"
    xla: bool | None = None
    tf32: bool = True
    onednn: bool = True
    deterministic: bool = False
    threads: Threads
    seed: int = 1
    data: Data

    @property
    def key(self) -> str:
        """16 hex digits that name this spec; equal keys are repetitions. A file's text counts, its path does not."""
        document = self.model_dump(mode="json", exclude={"file": True, "data": {"source"}})
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """How a person names it: `cifar`, or `tabular/small` where there are cases."""
        return f"{self.workload}/{self.case}" if self.case else self.workload

    @property
    def label(self) -> str:
        """What it is called in a sentence: `tabular/small on cpu, fit`, or `… with cache` where that was changed."""
        what_ifs = f" with {' and '.join(self.what_ifs)}" if self.what_ifs else ""
        return f"{self.title} on {self.backend}, {self.loop}{what_ifs}"
