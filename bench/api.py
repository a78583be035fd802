"""The Python API: a function for each command that measures, explains or compares.

The commands call these functions too. Most of them return a document, which the terminal, JSON and the report only
render. The code that measures is imported when it is needed, so `devbench compare` does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair
from bench.config.settings import RunSettings, load
from bench.errors import NotComparable, UsageError
from bench.model.comparison import THRESHOLD
from bench.store import files
from bench.store.sources import Argument, Source

if TYPE_CHECKING:
    from bench.analyse.analysis import Analysis
    from bench.model.bisection import Bisection
    from bench.model.explanation import Explanation
    from bench.model.run_state import Listener
    from bench.model.scaling import ScalingStudy
    from bench.model.spec import Scaling, Strategy
    from bench.model.sweep import Sweep
    from bench.publish.recorder import Recorder
    from bench.store.selection import Selection
    from bench.study.checkout import Sides
    from bench.study.scale_hosts import Hosts


def run(
    workloads: Sequence[str | Path],
    settings: RunSettings | None = None,
    *,
    listener: Listener | None = None,
    recorder: Recorder | None = None,
    warn: Callable[[str], None] | None = None,
    **options: Any,
) -> Outcome:
    """Measure workloads, as `devbench run` does.

    Args:
        workloads: Names of built-ins, or paths of Python files that follow the protocol of `bench.workloads`.
        settings: All settings. Default: `options`, the environment and `devbench.toml`.
        listener: Receives progress, while nothing is timed.
        recorder: Saves and publishes results. Default: one made from the settings.
        warn: Shows the user a message about the hub, such as that it is unavailable. Default: none is shown. Not used
            with `recorder`.
        options: Settings by name, such as `backend="cpu,cuda"`, `param={"batch": 64}` or `max_time="1m"`.

    Returns:
        One result for each spec, in the order of the request, with comparisons and matrices. Each result is also a
        file in the output folder.

    Raises:
        UsageError: The request cannot be met. Nothing was measured.
        DeviceAbsent: A backend's device is absent. Nothing was measured.
        Interrupted: SIGINT or SIGTERM in the main thread. Its `document` is the outcome so far, or None.
    """
    from bench.study import run as study

    run_settings = settings if settings is not None else load(**options)
    return study.run(workloads, run_settings, recorder, listener, warn)


def explain(
    workload: str, settings: RunSettings, recorder: Recorder | None = None, *, what_ifs: bool = True
) -> Explanation:
    """Explain where the time of a workload's step goes, as `devbench explain` does.

    Args:
        workload: Name or file.
        settings: All settings. `max_time` limits the whole explanation.
        recorder: Saves and publishes results. Default: one made from the settings.
        what_ifs: Whether what-ifs are tried. If not, only the ladder is measured.

    Raises:
        UsageError: The request cannot be met. Nothing was measured.
        RunFailed: The program as written could not be measured.
        Interrupted: A signal. Its `document` is the explanation so far, which is saved, or None.
    """
    from bench.study import explain as study

    return study.explain(workload, settings, recorder, what_ifs=what_ifs)


def sweep(workload: str, settings: RunSettings, point_time: float, recorder: Recorder | None = None) -> Sweep:
    """Measure a workload over a range of a parameter, as `devbench sweep` does.

    Args:
        workload: Name or file.
        settings: All settings. `param` holds the range; `max_time` limits the whole sweep.
        point_time: Time limit of a point, in seconds.
        recorder: Saves and publishes results. Default: one made from the settings.

    Raises:
        UsageError: No point can be measured.
        Interrupted: A signal. Its `document` is the sweep so far, or None.
    """
    from bench.study import sweep as study

    return study.sweep(workload, settings, point_time, recorder)


def scale(
    program: str,
    settings: RunSettings,
    sizes: Sequence[int],
    scaling: Scaling = "strong",
    strategy: Strategy = "multi-worker",
    cluster: Hosts | None = None,
    recorder: Recorder | None = None,
) -> ScalingStudy:
    """Measure a program with one worker and with several, as `devbench scale` does.

    Args:
        program: Name or file.
        settings: All settings. `max_time` limits the whole study.
        sizes: Numbers of workers.
        scaling: strong: workers share each batch. weak: each worker has batches of its own.
        strategy: multi-worker: a process for each worker. mirrored: a replica for each GPU of one process.
        cluster: The hosts of the workers. Default: all run on this machine.
        recorder: Saves and publishes results. Default: one made from the settings.

    Raises:
        UsageError: The request cannot be met. Nothing was measured.
        RunFailed: One worker alone could not be measured.
        Interrupted: A signal. Its `document` is the study so far, or None.
    """
    from bench.study import scale as study

    return study.scale(program, settings, sizes, scaling, strategy, cluster, recorder)


def join_scaling(program: str, settings: RunSettings, cluster: Hosts, tell: Callable[[str], None]) -> None:
    """Run workers for a study that another host measures, until it ends.

    Args:
        program: Name or file, as the first host names it.
        settings: The settings.
        cluster: The hosts, and which of them this is.
        tell: Shows the user a message.

    Raises:
        RunFailed: The first host does not answer, or a worker failed.
    """
    from bench.study import scale_member as study

    study.join(program, settings, cluster, tell)


def gate(
    program: Path,
    base: str,
    settings: RunSettings,
    recorder: Recorder | None = None,
    *,
    explain_slower: bool = False,
    sides: Sides | None = None,
) -> Outcome:
    """Race a program at the current commit against another commit, as `devbench gate` does.

    Args:
        program: File in a git repository. The working folder is in the same repository.
        base: The other commit.
        settings: The settings of the race.
        recorder: Saves and publishes results. Default: one made from the settings.
        explain_slower: Whether to explain the program at the current commit if it is slower.
        sides: The two commits. Default: those of `base` and of the current checkout.

    Returns:
        The results of both commits, with a comparison of each pair. `checkout.name_of` tells the two apart.

    Raises:
        UsageError: There is no such commit, a file has a syntax error, or there are uncommitted changes.
        Interrupted: A signal arrived. Its `document` is the outcome so far, or None.
    """
    from bench.study import gate as study

    return study.gate(program, base, settings, recorder, explain_slower=explain_slower, sides=sides)


def bisect(
    program: str,
    good: str,
    bad: str,
    settings: RunSettings,
    packages: str = "",
    recorder: Recorder | None = None,
    state: Path | None = None,
) -> Bisection:
    """Find the version of a package, or the commit, that made a program slower, as `devbench bisect` does.

    Args:
        program: Name or file.
        good: The fast end: a pinned requirement, such as tensorflow==2.19.0, or a commit.
        bad: The slow end, of the same kind.
        settings: The settings of each race.
        packages: Other requirements of the environments, separated by spaces.
        recorder: Saves and publishes results. Default: one made from the settings.
        state: File that holds the races so far. If it exists, the search uses those of its versions or commits.

    Raises:
        UsageError: The ends cannot be searched.
        SettingsError: pip cannot list the versions.
        NotSlower: The bad end is not slower than the good end.
        Interrupted: A signal. Its `document` is the bisection so far.
    """
    from bench.study import bisect as study

    return study.bisect(program, good, bad, settings, packages, recorder, state)


def compare(results: Sequence[Argument], settings: RunSettings | None = None, **options: Any) -> Outcome:
    """Compare results, as `devbench compare` does.

    Args:
        results: Files, folders or ids of results, or results themselves. The first is the baseline.
        settings: `threshold`, and `output`, the folder in which ids are looked up. Default: `options`, the environment
            and `devbench.toml`.
        options: Settings by name, such as `threshold="5%"`.

    Returns:
        The comparisons, fair or not (see `Comparison.unfair`), their matrices, and the results that were not paired.
        Results from files have no samples.

    Raises:
        UsageError: There is only one result.
        DataError: There is no such result, or a file is not a result.
        NotComparable: No two results can be compared.
    """
    run_settings = settings if settings is not None else load(**options)
    sources = [Source.of(argument, run_settings.output) for argument in results]
    if sum(source.count for source in sources) < 2:
        raise UsageError("there is only one result", "Name two results, or a folder that contains several.")
    paths = {id(result): path for source in sources for result, path in source.paths}
    read_file = lru_cache(maxsize=5)(files.read)  # a baseline is followed by all results that are compared with it
    outcome = Outcome.of(
        pair([source.results for source in sources]),
        run_settings.threshold,
        lambda result: read_file(paths[id(result)]) if id(result) in paths else result,
    )
    if not outcome.comparisons:
        hint = "Results can be compared if they differ in one thing only: backend, loop, a parameter, or your own file."
        reasons = [f"{r.spec.label} failed: {failure.message}" for r in outcome.results if (failure := r.failure)]
        raise NotComparable("no two of these results can be compared", "\n".join([*dict.fromkeys(reasons), hint]))
    if not sources[-1].several:  # a single result need not have counterparts for a whole folder
        named = {result.id for result in sources[-1].results}
        unchecked = [result for result in outcome.unchecked if result.id in named]
        return replace(outcome, unchecked=unchecked)
    return outcome


def report(folder: Path, threshold: float = THRESHOLD) -> tuple[Selection, Iterator[Analysis]]:
    """Select and analyse the results of a folder, as `devbench report` does.

    Args:
        folder: Where `devbench run` wrote results.
        threshold: Smallest relative difference that matters, as a share.

    Returns:
        The selection, and what the results of each of its chapters say, in the same order. Each is read when it is
        asked for: a folder may hold more than fits in memory.

    Raises:
        DataError: The folder is missing or has no results, or a file in it is not a result.
    """
    from bench.analyse.analysis import analyse
    from bench.store.selection import select

    selection = select(folder)
    chapters = selection.chapters
    return selection, (analyse(c.read(), threshold, c.explanation, is_sweep=c.sweep) for c in chapters)
