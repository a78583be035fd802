"""The GPUs of several workers, and how they exchange gradients, with a stand-in for TensorFlow."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from bench.errors import DeviceAbsent, NotApplicable
from bench.model.spec import Data, Spec, Strategy, Threads, Workers
from bench.study.scale_hosts import Hosts, cluster_run
from bench.worker.cluster import strategy
from bench.worker.cluster.member import Member
from bench.worker.protocol import ClusterRun


def spec(backend: str, count: int, strategy: Strategy = "multi-worker") -> Spec:
    workers = Workers(count=count, strategy=strategy)
    return Spec(
        workload="mnist", backend=backend, loop="step", threads=Threads(intra=1, inter=1), data=Data(kind="own"),
        workers=workers,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def no_visible_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_each_worker_of_one_machine_has_a_gpu_of_its_own() -> None:
    assert cluster_run(Hosts(), spec("cuda", 3)).devices == ["0", "1", "2"]
    assert cluster_run(Hosts(), spec("cpu", 3)).devices == []


def test_workers_use_the_gpus_that_the_user_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5, GPU-abc,2")
    assert cluster_run(Hosts(), spec("cuda", 2)).devices == ["5", "GPU-abc"]
    with pytest.raises(NotApplicable, match=r"4 workers needs as many GPUs, and CUDA_VISIBLE_DEVICES=.* names 3"):
        cluster_run(Hosts(), spec("cuda", 4))


@pytest.mark.parametrize(("strategy", "seen"), [("multi-worker", "7"), ("mirrored", "5,7")])
def test_a_process_sees_only_the_gpus_of_its_workers(
    strategy: Strategy, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    Member(spec("cuda", 2, strategy), ClusterRun(index=1, devices=["5", "7"])).confine()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == seen


class StandIn:
    """A TensorFlow that records what devbench asks for.

    Args:
        gpus: number of GPUs that it sees.
    """

    def __init__(self, gpus: int) -> None:
        self.made: dict[str, Any] = {}
        self.growing: list[str] = []
        self.visible: list[str] = []
        names = [f"gpu {index}" for index in range(gpus)]
        self.config = SimpleNamespace(
            list_physical_devices=lambda kind: names,
            set_visible_devices=lambda devices, kind: self.visible.extend(devices),
            experimental=SimpleNamespace(set_memory_growth=lambda gpu, on: self.growing.append(gpu)),
        )
        self.distribute = SimpleNamespace(
            MirroredStrategy=lambda devices: self.made.update(devices=devices),
            MultiWorkerMirroredStrategy=lambda communication_options: self.made.update(communication_options),
            experimental=SimpleNamespace(
                CommunicationImplementation=SimpleNamespace(NCCL="NCCL", RING="RING"), CommunicationOptions=dict
            ),
        )


@pytest.mark.parametrize(("backend", "implementation"), [("cuda", "NCCL"), ("cpu", "RING")])
def test_gpus_exchange_gradients_by_nccl_and_cpus_in_a_ring(backend: str, implementation: str) -> None:
    tf = StandIn(gpus=1)
    strategy.make(tf, spec(backend, 1), ClusterRun())
    assert tf.made == {"implementation": implementation}


def test_each_replica_of_one_process_has_a_gpu_whose_memory_grows() -> None:
    tf = StandIn(gpus=3)
    strategy.make(tf, spec("cuda", 2, "mirrored"), ClusterRun())
    assert tf.made == {"devices": ["GPU:0", "GPU:1"]}
    assert tf.visible == tf.growing == ["gpu 0", "gpu 1"]


def test_more_replicas_than_gpus_are_refused() -> None:
    with pytest.raises(DeviceAbsent, match="2 replicas need as many GPUs, and TensorFlow sees 1"):
        strategy.make(StandIn(gpus=1), spec("cuda", 2, "mirrored"), ClusterRun())
