"""Measure workloads, explain one, sweep one over a parameter, or compare results. This is what the commands call.

Each function returns a document. Terminal, JSON and report only render it. What measures is imported when it is needed:
`devbench compare` does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.analyse.outcome import Outcome
from bench.analyse.pairing import pair, pair_groups
from bench.config.settings import RunSettings, load
from bench.errors import DevbenchError, DeviceAbsent, Interrupted, NotApplicable, NotComparable, UsageError
from bench.model.comparison import THRESHOLD
from bench.model.failure import Failure
from bench.model.result import Result
from bench.store import files
from bench.store.sources import Argument, Source

if TYPE_CHECKING:
    from bench.analyse.analysis import Analysis
    from bench.model.bisection import Bisection
    from bench.model.explanation import Explanation
    from bench.model.plan import Group
    from bench.model.run_state import Listener
    from bench.model.scaling import ScalingStudy
    from bench.model.spec import Scaling, Strategy
    from bench.model.sweep import Sweep
    from bench.publish.recorder import Recorder
    from bench.session.design import Design
    from bench.store.selection import Selection
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
    from bench.session.session import Session
    from bench.study import plan as planning

    run_settings = settings if settings is not None else load(**options)
    title = ", ".join(Path(name).name if str(name).endswith((".py", ".ipynb")) else str(name) for name in workloads)
    title += "".join(f", {name}={values}" for name, values in run_settings.vary.items())
    results: list[Result] = []
    with _recorded(run_settings, title, recorder, listener, warn) as record:
        try:
            groups = planning.groups(workloads, run_settings)
            _require_devices(groups, run_settings, record)
            for group in groups:
                session = Session(group, run_settings, run_design(group), record)
                results.extend(session.results)
                session.run()
            record.judge(results)
        except Interrupted as error:
            raise Interrupted(error.signum, results, Outcome.of(pair_groups(results), run_settings.threshold)) from None
    return Outcome.of(pair_groups(results), run_settings.threshold)


def run_design(group: Group) -> Design:
    """Return the design of a run's group. The starts of three trials are measured. A comparison has more time."""
    from bench.session import stopping
    from bench.session.design import Design

    compares = len(group.planned) > 1
    return Design(
        separate_starts=3,
        fit_pilot=True,
        default_max_time=stopping.COMPARING_SECONDS if compares else None,
        follow_projection=True,
    )


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
    from bench import registry
    from bench.session.worker_servers import WorkerServers
    from bench.study.explain import ExplainStudy

    with _recorded(settings, f"explain {workload}", recorder) as record, WorkerServers() as servers:
        study = ExplainStudy(workload, settings, record, None if registry.is_script(workload) else servers)
        try:
            explanation = study.run(what_ifs)
        except Interrupted as error:
            if study.explanation is not None:
                record.save_explanation(study.explanation)
            raise Interrupted(error.signum, study.results, study.explanation) from None
        record.save_explanation(explanation)
    return explanation


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
    from bench.analyse.sweep import ran_out_of_memory
    from bench.study.sweep import SweepStudy

    with _recorded(settings, f"sweep {workload}", recorder) as record:
        study = SweepStudy(workload, settings, record, point_time)
        try:
            curves = study.run()
        except Interrupted as error:
            study.cut_short("it was interrupted")
            raise Interrupted(error.signum, study.results, study.read() if study.results else None) from None
        record.judge([result for result in study.results if not ran_out_of_memory(result)])
    return curves


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
    from bench.analyse.samples import has_measurements
    from bench.study import scale as scaling_studies
    from bench.study import scale_hosts

    with _recorded(settings, f"scale {program}", recorder) as record:
        study = scaling_studies.ScaleStudy(
            program, settings, record, sizes, scaling, strategy, cluster or scale_hosts.Hosts()
        )
        try:
            return study.run()
        except Interrupted as error:
            document = study.read() if any(map(has_measurements, study.results)) else None
            raise Interrupted(error.signum, study.results, document) from None


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
    from bench.signals import interruptible
    from bench.study.scale_member import join

    with interruptible():
        join(program, settings, cluster, tell)


def gate(
    program: Path, base: str, settings: RunSettings, recorder: Recorder | None = None, *, explain_slower: bool = False
) -> Outcome:
    """Race a program at the current commit against another commit, as `devbench gate` does.

    Args:
        program: File in a git repository. The working folder is in the same repository.
        base: The other commit.
        settings: The settings of the race.
        recorder: Saves and publishes results. Default: one made from the settings.
        explain_slower: Whether to explain the program at the current commit if it is slower.

    Returns:
        The results of both commits, with a comparison of each pair. `checkout.name_of` tells the two apart.

    Raises:
        UsageError: There is no such commit, a file has a syntax error, or there are uncommitted changes.
        Interrupted: A signal arrived. Its `document` is the outcome so far, or None.
    """
    from bench.signals import interruptible
    from bench.study import checkout

    root = checkout.root_of(program)
    commits = {"base": checkout.commit_of(root, base), "head": checkout.commit_of(root, "HEAD")}
    checkout.require_clean(root)
    raced = settings.model_copy(update={"compare": True})
    with interruptible(), ExitStack() as stack:
        files = [stack.enter_context(checkout.at(program, commits[name], name, settings.output)) for name in commits]
        checkout.require_syntax(files[0], f"the base ({base})")
        checkout.require_syntax(files[1], "the head")
        results = run(files, raced, recorder=recorder).results
        sides = [[result for result in results if result.spec.file == str(file)] for file in files]
        outcome = Outcome.of(pair(sides), settings.threshold)
        if explain_slower and any(comparison.verdict == "slower" for comparison in outcome.comparisons):
            try:
                explain(str(files[1]), settings, recorder)
            except Interrupted as error:
                raise Interrupted(error.signum, results, outcome) from None
            except DevbenchError as error:
                if recorder is not None:
                    recorder.tell(f"note: the head is not explained: {error.message}")
    return outcome


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
        state: File that holds the races so far. If it exists and has the same chain, the search continues from it.

    Raises:
        UsageError: The ends cannot be searched.
        SettingsError: pip cannot list the versions.
        NotSlower: The bad end is not slower than the good end.
        Interrupted: A signal. Its `document` is the bisection so far.
    """
    from bench.model.bisection import Bisection
    from bench.session.session import Session
    from bench.store import atomic
    from bench.study import bisect_chains
    from bench.study import plan as planning
    from bench.study.bisect import Search

    if max(len(settings.backend), len(settings.loop)) > 1 or settings.vary or settings.env:
        raise NotApplicable(
            "bisect takes one program on one backend",
            "Name one --backend and at most one --loop, without --vary or --env.",
        )
    results: list[Result] = []
    with _recorded(settings, f"bisect {program}", recorder) as record:

        def measure(programs: Sequence[str | Path], race: RunSettings) -> Sequence[Result]:
            (group,) = planning.plan(programs, race)
            if len(group.planned) > 2:
                raise NotApplicable(f"{program} has several cases", "Name one --case.")
            session = Session(group, race, run_design(group), record)
            results.extend(session.results)
            session.run()
            return session.results

        chain = bisect_chains.chain(program, good, bad, settings, measure, packages)
        bisection = Bisection(chain=chain.names)
        if state is not None and state.exists():
            known = Bisection.model_validate_json(state.read_text(encoding="utf-8"))
            if known.chain == chain.names:  # what was skipped or undecided may have another outcome now
                settled = [race for race in known.races if race.verdict in ("good", "bad")]
                bisection = known.model_copy(update={"races": settled})

        def save() -> None:
            if state is not None:
                state.parent.mkdir(parents=True, exist_ok=True)
                atomic.write_text(state, [bisection.model_dump_json(indent=1)])

        try:
            Search(bisection, chain.race, save).run()
        except Interrupted as error:
            raise Interrupted(error.signum, results, bisection) from None
        save()
    return bisection


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
        raise NotComparable(
            "no two of these results can be compared",
            "Results can be compared if they differ in one thing only: backend, loop, a parameter, or your own file.",
        )
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


@contextmanager
def _recorded(
    settings: RunSettings,
    title: str,
    recorder: Recorder | None,
    listener: Listener | None = None,
    warn: Callable[[str], None] | None = None,
) -> Iterator[Recorder]:
    """Prepare the folders. Handle signals and report to the hub within."""
    from bench.publish.recorder import recording, silent
    from bench.signals import interruptible

    if recorder is None:
        with (
            recording(settings, warn=warn or silent) as new_recorder,
            _recorded(settings, title, new_recorder, listener) as record,
        ):
            yield record
        return
    if listener is not None:
        recorder.listeners.append(listener)
    with interruptible():
        files.prepare(settings.output)
        if settings.profile is not None:
            files.prepare(settings.profile, "--profile")
        with recorder.reporting(title):
            yield recorder


def _require_devices(groups: Sequence[Group], settings: RunSettings, recorder: Recorder) -> None:
    """Raise if a device is absent. If the run is watched at a hub or by its metrics, save failed results for it."""
    from bench.session.session import Session
    from bench.study import plan as planning

    try:
        planning.require_devices(settings)
    except DeviceAbsent as error:
        if recorder.observed:
            failure = Failure(kind="device", message=error.message, hint=error.hint)
            for group in planning.without_device(groups, settings):
                Session(group, settings, run_design(group), recorder).refuse(failure)
        raise
