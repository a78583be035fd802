"""This worker as one of several: the CPUs that it may use, its strategy, and its part of the data."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from bench.model.spec import Spec, Workers
from bench.worker.cluster import strategy
from bench.worker.cluster.share import DataShare
from bench.worker.protocol import ClusterRun


@dataclass
class Member:
    """A worker that trains with others, or is measured together with them.

    Args:
        spec: the spec. It has workers.
        run: how the worker meets the others. Its `addresses` must be filled in before `start`.

    Attributes:
        strategy: the worker's strategy of `tf.distribute`. None before `start`, and if the spec asks for none.
    """

    spec: Spec
    run: ClusterRun
    strategy: Any = None

    @property
    def workers(self) -> Workers:
        """The workers of the spec."""
        assert self.spec.workers is not None
        return self.spec.workers

    @property
    def share(self) -> DataShare | None:
        """The worker's part of the data. None if the worker computes on all of it."""
        workers = self.workers
        if workers.count == 1 or workers.strategy == "mirrored":
            return None
        return DataShare(self.run.index, workers.count, workers.scaling)

    def confine(self) -> None:
        """Restrict this process to the CPUs and the device of the worker, before TensorFlow is imported."""
        if sys.platform == "linux" and self.run.cpus:
            replicas = self.workers.strategy == "mirrored"  # all of them run in this process
            own = [cpu for cpus in self.run.cpus for cpu in cpus] if replicas else self.run.cpus[self.run.index]
            os.sched_setaffinity(0, own)
        if self.run.devices:
            devices = self.run.devices if self.workers.strategy == "mirrored" else [self.run.devices[self.run.index]]
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(devices)

    def start(self, tf: Any) -> None:
        """Make the strategy, before TensorFlow runs an operation."""
        self.strategy = strategy.make(tf, self.spec, self.run)
