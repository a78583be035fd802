"""`devbench gate`: race a program at the current commit against its base, and fail if it became slower."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli import next_steps
from bench.cli.command import announce, as_json, build, conclude
from bench.cli.compare import gate_error
from bench.cli.measure import measure
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.errors import DevbenchError, Interrupted, OutputError, SlowerThanAllowed, UsageError
from bench.store.ids import new_id

if TYPE_CHECKING:
    from bench.analyse.outcome import Outcome
    from bench.model.spec import Spec
    from bench.publish.recorder import Recorder


def gate(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM", help="Script or workload file in a git repository.")],
    settings: RunSettings,
    base: Annotated[
        str,
        typer.Option(
            "--base",
            metavar="COMMIT",
            help="Branch or commit to compare with, such as origin/main. The base is the commit at which the current "
            "branch branched off it.",
        ),
    ],
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="If the program is slower, explain why and add the explanation to the summary. It takes up to "
            "--max-time again.",
        ),
    ] = False,
    summary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append a summary as Markdown to this file. Default: the step summary of GitHub Actions.",
        ),
    ] = None,
) -> None:
    """Fail if the current commit makes a program slower.

    The base and the current commit (the head) run interleaved, each in a git worktree. Exit code 0: not slower, or
    undecided. 1: too little data. 2: one of them does not run, or the command is invalid. 3: the device is missing. 4:
    they cannot be compared. 5: slower.
    """
    from bench import api
    from bench.study import checkout

    path = summary or (Path(text) if (text := os.environ.get("GITHUB_STEP_SUMMARY")) else None)
    if path is not None:
        _require_writable(path)
    with _failure_in(path):
        sides = checkout.sides(program, base)
    raced = settings.model_copy(update={"output": settings.output / "gates" / new_id()})

    def after_slow_down(spec: Spec) -> list[tuple[str, str]]:
        return next_steps.after_slow_down(spec, str(program), sides.history, raced, explained=explain)

    def work(recorder: Recorder) -> Outcome:
        with _failure_in(path):
            return api.gate(program, base, raced, recorder, explain_slower=explain, sides=sides)

    measure(
        raced,
        work,
        lambda outcome, interruption: _show(outcome, interruption, raced, base, path, after_slow_down),
    )


def _require_writable(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}", "Choose another --summary.") from None


def _show(
    outcome: Outcome,
    interruption: Interrupted | None,
    settings: RunSettings,
    base: str,
    path: Path | None,
    after_slow_down: Callable[[Spec], list[tuple[str, str]]],
) -> int:
    """Show the verdict and write the summary. Return the exit code."""
    from bench.render.terminal import comparison as terminal

    allowed = [comparison for comparison in outcome.comparisons if not comparison.unfair]
    refused = [comparison for comparison in outcome.comparisons if comparison.unfair]
    error = interruption or _failure(outcome, base)
    if error is None:
        error = gate_error(allowed, refused, outcome.unchecked, settings.threshold)
        if not settings.json:
            typer.echo(terminal.text(allowed, outcome.matrices), nl=False)
    if path is not None:
        _summarize(path, outcome, error, settings)
    announce(f"results: {settings.output}")
    document = {"comparisons": [as_json(comparison) for comparison in outcome.comparisons]} if settings.json else None
    code = conclude(document, error)
    if allowed and interruption is None and not settings.json:
        steps = [next_steps.report(settings.output)]
        slower = next((comparison.other.id for comparison in allowed if comparison.verdict == "slower"), None)
        head = next((result.spec for result in outcome.results if result.id == slower), None)
        if isinstance(error, SlowerThanAllowed) and head is not None:
            steps = [*after_slow_down(head), *steps]
        next_steps.show(steps)
    return code


def _failure(outcome: Outcome, base: str) -> DevbenchError | None:
    """Return the error of a side that does not run. None if both run."""
    from bench.study.checkout import name_of

    for result in outcome.results:
        if result.failure is not None:
            side = f"the base ({base})" if name_of(Path(result.spec.file or "")) == "base" else "the head"
            return UsageError(f"{side} does not run: {result.failure.message}", result.failure.hint)
    return None


@contextmanager
def _failure_in(path: Path | None) -> Iterator[None]:
    """Append an error to the summary if it ends the gate before there is an outcome."""
    try:
        yield
    except DevbenchError as error:
        has_outcome = isinstance(error, Interrupted) and (error.document is not None or error.results)
        if path is not None and not has_outcome:
            _append(path, "no verdict", [error.message, error.hint])
        raise


def _append(path: Path, verdict: str, paragraphs: Sequence[str], report: str = "") -> None:
    """Append a section to the summary."""
    with path.open("a", encoding="utf-8") as file:
        file.write("\n\n".join([f"## devbench gate: {verdict}", *filter(None, paragraphs), report]))


def _summarize(path: Path, outcome: Outcome, error: DevbenchError | None, settings: RunSettings) -> None:
    """Append the verdict and a report to the summary."""
    from bench import api
    from bench.render.report import markdown
    from bench.render.report.compose import compose
    from bench.render.sentences.comparison import over_epochs, verdict, whole_epochs
    from bench.render.sentences.gate import false_alarms
    from bench.version import __version__

    comparisons = [comparison for comparison in outcome.comparisons if not comparison.unfair]
    slower = [c for c in comparisons if c.verdict == "slower"]
    slower += [c for c in comparisons if c.differs_over_epochs and c.epoch_verdict == "slower"]
    worst = next(iter([*slower, *comparisons]), None)
    failed = error is not None and not isinstance(error, SlowerThanAllowed)
    told = [verdict(worst), whole_epochs(worst), false_alarms()] if worst else []
    lines = [error.message] if error is not None and failed else told
    head = "no verdict" if failed or worst is None else worst.verdict + over_epochs(worst)
    report = ""
    if outcome.results:
        report = markdown.render(compose(*api.report(settings.output, settings.threshold)), __version__)
    _append(path, head, lines, report)


command = build(with_settings(gate), "gate")
