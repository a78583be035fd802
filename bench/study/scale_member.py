"""A host that is not the first of a scaling study: it runs workers of the same program as the first host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.config.settings import RunSettings
from bench.errors import DataError
from bench.model.spec import Spec
from bench.session import cluster_agent, stopping
from bench.session.script_folder import ScriptFolder
from bench.signals import interruptible
from bench.study.plan import plan
from bench.study.scale import SECONDS, check_settings
from bench.study.scale_hosts import Hosts, check_hosts
from bench.worker.protocol import Start


def join(program: str, settings: RunSettings, cluster: Hosts, tell: Callable[[str], None]) -> None:
    """Run workers until the first host ends the study.

    Args:
        program: Name or file.
        settings: The settings.
        cluster: The hosts, and which of them this is.
        tell: Shows the user a message.

    Raises:
        RunFailed: The first host does not answer, or a worker failed.
    """
    with interruptible():
        check_settings(settings)
        check_hosts([len(cluster.hosts)], cluster)
        settings = stopping.with_time_limit(settings, SECONDS)
        (group,) = plan([program], settings)
        own = group.planned[0].spec
        tell(f"worker {cluster.index} waits for {cluster.hosts[0]}, port {cluster.port}")
        cluster_agent.serve(
            cluster.index,
            cluster.hosts[0],
            cluster.port,
            cluster.wait_seconds,
            settings.max_time,
            lambda start, scratch: _localized(start, own, settings, scratch),
            tell,
        )


def _localized(start: Start, own: Spec, settings: RunSettings, scratch: Path) -> Start:
    """Return an order with the paths of this host. A script runs in a copy of its folder.

    Raises:
        DataError: The program or its data differ from those of the first host.
    """
    if (own.file_sha256, own.data.sha256) != (start.spec.file_sha256, start.spec.data.sha256):
        raise DataError(f"{own.title} or its data differ from those on worker 0", "Copy the same files to every host.")
    spec = start.spec.model_copy(update={"file": own.file, "data": own.data})
    if start.script is None:
        return start.model_copy(update={"spec": spec})
    folder = ScriptFolder.of(own, settings.workdir, settings.output)
    script = start.script.model_copy(update=folder.place(scratch))
    return start.model_copy(update={"spec": spec, "script": script})
