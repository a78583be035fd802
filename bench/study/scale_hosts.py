"""Where the workers of a scaling study run: on several hosts, or each on CPUs and a GPU of this machine."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bench.backends import capabilities
from bench.errors import NotApplicable, SettingsError
from bench.machine.limits import cpus_by_core, thread_count
from bench.model.spec import Spec
from bench.render import numbers
from bench.worker.protocol import ClusterRun


@dataclass(frozen=True)
class Hosts:
    """Where the workers run.

    Args:
        hosts: one for each worker. Empty if all run on this machine.
        index: this machine among the hosts, from 0.
        port: port of the first host, to which the others connect.
        wait_seconds: how long the first host waits for the others.
    """

    hosts: tuple[str, ...] = ()
    index: int = 0
    port: int = 2222
    wait_seconds: float = 300.0


def check_hosts(sizes: Sequence[int], cluster: Hosts) -> None:
    """Check that the hosts fit the number of workers.

    Raises:
        SettingsError: They do not.
    """
    if not cluster.hosts:
        return
    if len(cluster.hosts) != max(sizes):
        raise SettingsError(
            f"--hosts names {len(cluster.hosts)} hosts for {max(sizes)} workers",
            "Name one host for each worker, the same on every host.",
        )
    if not 0 <= cluster.index < len(cluster.hosts):
        raise SettingsError(
            f"invalid value '{cluster.index}' for --index", f"Hosts are counted from 0 to {len(cluster.hosts) - 1}."
        )


def cpus_of_each(count: int) -> int:
    """Return the CPUs of each worker if all run on this machine.

    Raises:
        NotApplicable: There are too few CPUs, or processes cannot be pinned.
    """
    if sys.platform != "linux":
        raise NotApplicable("several workers on one machine need Linux, which pins them to CPUs", "Use --hosts.")
    cpus = thread_count()
    if cpus < count:
        raise NotApplicable(
            f"{count} workers need at least {count} CPUs, and {cpus} {'is' if cpus == 1 else 'are'} available",
            f"Measure up to {numbers.count(cpus, 'worker')} here: --workers {cpus}. "
            "Use several machines for more: --hosts.",
        )
    return cpus // count


def cluster_run(cluster: Hosts, spec: Spec) -> ClusterRun:
    """Return how the workers of a spec meet.

    Args:
        cluster: where the workers of the study run.
        spec: has workers.

    Raises:
        NotApplicable: `CUDA_VISIBLE_DEVICES` names too few GPUs.
    """
    assert spec.workers is not None
    count = spec.workers.count
    if cluster.hosts:
        hosts = list(cluster.hosts[:count])
        return ClusterRun(hosts=hosts, port=cluster.port, wait_seconds=cluster.wait_seconds)
    each, cpus = spec.workers.cpus, cpus_by_core()
    own = [cpus[index * each : (index + 1) * each] for index in range(count)] if each else []
    devices = devices_of_each(count) if capabilities(spec.backend).gpu else []
    return ClusterRun(cpus=own, devices=devices)


def devices_of_each(count: int) -> list[str]:
    """Return the GPU of each worker if all run on this machine, as CUDA names them.

    Raises:
        NotApplicable: `CUDA_VISIBLE_DEVICES` names too few.
    """
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    if variable is None:
        return [str(index) for index in range(count)]
    names = itertools.takewhile(lambda name: name != "-1", (name.strip() for name in variable.split(",")))
    visible = [*filter(None, names)]  # CUDA sees no GPU after "-1"
    if len(visible) < count:
        raise NotApplicable(
            f"a study of {numbers.count(count, 'worker')} needs as many GPUs, and CUDA_VISIBLE_DEVICES='{variable}' "
            f"names {len(visible)}",
            "Measure fewer workers, or change what sets the variable.",
        )
    return visible[:count]
