"""The base of all documents and their parts."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A strict model. An unknown field is an error, so that a newer document is never misread."""

    model_config = ConfigDict(extra="forbid")
