"""devbench: which device runs my TensorFlow program faster, and why.

from bench import run
(result,) = run(["cifar"], backend="cpu", max_time="1m")
print(result.summary.step_seconds)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bench.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from bench.config.settings import RunSettings
    from bench.model.result import Result
    from bench.model.run_state import Listener
    from bench.publish.prometheus.serving import Serving

__all__ = ["__version__", "run"]


def run(
    workloads: Sequence[str | Path],
    settings: RunSettings | None = None,
    *,
    listener: Listener | None = None,
    served: Serving | None = None,
    warn: Callable[[str], None] | None = None,
    **options: Any,
) -> list[Result]:
    """Measures workloads; this is what `devbench run` calls.

    Args:
        workloads: names of built-ins, or paths of Python files that follow `bench.workloads`' protocol.
        settings: all settings at once; without them `options`, the environment and `devbench.toml` decide.
        listener: told of progress, only while nothing is timed.
        served: what serves the run's metrics already; without it they are served here, as the settings say.
        warn: told what is to be known of the hub, such as that it is away.
        options: settings by name, such as `backend="cpu,cuda"`, `param={"batch": 64}` or `max_time="1m"`.

    Returns:
        One result for each spec, in the order asked for; each is also a file in the output folder.

    Raises:
        UsageError: something asked for can't be; nothing was measured.
        DeviceAbsent: a backend's device is not there; nothing was measured.
        Interrupted: by SIGINT or SIGTERM in the main thread; its `results` hold what was measured.
    """
    from contextlib import ExitStack
    from pathlib import Path

    from bench.config.settings import load
    from bench.errors import DeviceAbsent, Interrupted
    from bench.model.plan import Group
    from bench.model.result import Failure
    from bench.publish.hub.reporter import attached
    from bench.publish.prometheus.serving import serving
    from bench.session.session import Session
    from bench.signals import interruptible
    from bench.store import files
    from bench.study.plan import plan

    chosen = settings if settings is not None else load(**options)
    results: list[Result] = []
    new_id = files.namer(chosen.run_id)
    title = ", ".join(Path(each).name if str(each).endswith(".py") else str(each) for each in workloads)
    with ExitStack() as stack:
        served = served or stack.enter_context(serving(chosen))
        stack.enter_context(interruptible())
        files.prepare(chosen.output)
        if chosen.profile is not None:
            files.prepare(chosen.profile, "--profile")
        try:
            with attached(chosen, title, listener or (lambda _: None), new_id, warn or (lambda _: None)) as link:
                save, listen = served.saving(link.save), served.listening(link.listener)

                def absent(group: Group, error: DeviceAbsent) -> None:
                    seen_elsewhere = (chosen.hub, chosen.metrics_port, chosen.pushgateway)
                    if any(each is not None for each in seen_elsewhere):  # nobody looks at this command's words there
                        failure = Failure(kind="device", message=error.message, hint=error.hint)
                        Session(group, chosen, save, listen, new_id).refuse(failure)

                for group in plan(workloads, chosen, absent):
                    session = Session(group, chosen, save, listen, new_id)
                    results.extend(session.results)
                    session.run()
                link.judge(results)
        except Interrupted as error:
            raise Interrupted(error.signum, results) from None
    return results
