"""How a worker starts: its environment variables, and whether it may be forked."""

from __future__ import annotations

import contextlib
import os

from bench import backends
from bench.backends import capabilities
from bench.model.result import Result
from bench.model.spec import Spec
from bench.session.memory_fit import fits
from bench.session.worker_servers import SERVER_BYTES, WorkerServers


def variables_of(spec: Spec) -> dict[str, str]:
    """Return the environment variables that a worker gets in addition to those of this process."""
    script = {}
    if spec.script is not None:
        hash_seed = os.environ.get("PYTHONHASHSEED") or str(spec.seed % 2**32)  # decides the order of sets of strings
        script = {"DEVBENCH": "1", "MPLBACKEND": "Agg", "PYTHONHASHSEED": hash_seed}
    return {"TF_ENABLE_ONEDNN_OPTS": str(int(spec.onednn)), **backends.load(spec.backend).environment(spec), **script}


def prepare_server(servers: WorkerServers, spec: Spec) -> None:
    """Start the import of TensorFlow for the workers of a spec in the background, if they can be forked."""
    if can_fork(spec) and fits(SERVER_BYTES):
        with contextlib.suppress(OSError):  # the first worker meets the same limit, and says so
            servers.prepare(variables_of(spec))


def can_fork(spec: Spec) -> bool:
    """Return whether workers of a spec can be forked, as far as its backend and its environment are concerned."""
    return capabilities(spec.backend).forks and spec.env is None


def may_fork(result: Result) -> bool:
    """Return whether workers of a result can be forked.

    Those of a script can if it is known that it sets no variable that the import of TensorFlow reads.
    """
    knows = result.spec.script is None or (result.recognition is not None and not result.recognition.variables)
    return can_fork(result.spec) and knows
