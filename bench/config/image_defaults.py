"""Defaults of settings in devbench's container images."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from bench import backends
from bench.machine import system

MOUNT = Path("/results")
"""Folder for results in devbench's containers, if something is mounted there."""


class ImageDefaults(PydanticBaseSettingsSource):
    """A source of settings: the folder for results and the backend, in a container image of devbench.

    The folder is `/results` if something is mounted there. Otherwise, it is a temporary folder if the working folder is
    not writable. The backend is the one that the tag of the image names.
    """

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the value of a field, its name, and whether it is complex, which it never is."""
        return self().get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the defaults by the names of the settings. Empty outside an image."""
        image = system.image()
        if image is None:
            return {}
        output = {"output": MOUNT} if os.path.ismount(MOUNT) else {}
        if not output and not os.access(os.curdir, os.W_OK):  # such as a folder of scripts that is mounted read-only
            output = {"output": Path(tempfile.gettempdir()) / "results"}
        backend = image.rpartition(":")[2]
        return {"backend": backend, **output} if backend in backends.names() else output
