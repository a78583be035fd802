"""The settings of a hub.

Each field declares an option of `devbench hub`, a variable, and a key of the table [server] in the settings file.
Secrets are not options, because every user of a machine can see the options of a process. They are in files or
variables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from bench.config import base
from bench.config.notation import Days, Names, Share, UrlPath
from bench.model.comparison import THRESHOLD


class HubSettings(base.Settings):
    """The settings of a hub. `load` gathers them."""

    model_config = SettingsConfigDict(env_prefix=base.PREFIX + "HUB_")

    TABLE: ClassVar[str] = base.HUB_TABLE

    database: str = Field("hub.db", description="SQLite file, or postgresql://USER@HOST/NAME.")
    host: str = Field(
        "127.0.0.1", description="Address to listen on. `::` listens on all interfaces, 0.0.0.0 only with IPv4."
    )
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on. 0 picks a free port.")
    root_path: UrlPath = Field("", description="Path under which a proxy serves the hub, such as /devbench.")
    allowed_hosts: Names = Field(
        (),
        description="Names by which requests may address the hub, besides localhost and IP addresses, such as "
        "hub.example.org,*.example.net. Requests with another name get status 400, which prevents DNS rebinding. "
        "Default: all names.",
    )
    tokens_file: Path | None = Field(
        None,
        description="File with the tokens that may write, one per line. DEVBENCH_HUB_TOKENS can hold them instead. "
        "Required unless --host is a loopback address.",
    )
    readers_file: Path | None = Field(
        None,
        description="File with the users that may read, one USER:PASSWORD per line. DEVBENCH_HUB_READERS can "
        "hold them instead. Default: everyone may read.",
    )
    threshold: Share = Field(THRESHOLD, description="Smallest difference that matters in the verdicts on the pages.")
    keep_days: Days = Field(None, gt=0, description="Delete results older than this many days. Default: keep all.")
    keep_results: int | None = Field(
        None, ge=1, description="Keep this many of the newest results and delete the rest. Default: keep all."
    )


def load(config: str | Path | None = None, **options: Any) -> HubSettings:
    """Gather the settings of a hub, as `base.load` does.

    Raises:
        SettingsError: A name or a value is wrong, in any of the sources.
    """
    return base.load(HubSettings, config, options)
