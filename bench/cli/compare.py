"""`devbench compare`: which result is faster, from which step on, and whether the comparison is fair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from bench.cli import next_steps
from bench.cli.command import as_json, build, conclude, end
from bench.cli.options import with_settings
from bench.config.settings import RunSettings
from bench.config.syntax import write_share
from bench.errors import DevbenchError, NotComparable, RunFailed, SlowerThanAllowed
from bench.model.comparison import Comparison, Matrix
from bench.model.result import Result


def compare(
    results: Annotated[
        list[str], typer.Argument(metavar="RESULT", help="Result files, ids of results, or folders of results.")
    ],
    settings: RunSettings,
    fail_on: Annotated[
        Literal["slower"] | None,
        typer.Option(
            "--fail-on",
            metavar="slower",
            help="Exit with code 5 if a result is slower than its baseline, 4 if one cannot be compared, 1 if one "
            "failed or there is too little data.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare results even if the comparison is unfair. The output says so.")
    ] = False,
) -> None:
    """Compare results: which is faster, and by how much.

    The first result is the baseline. A ratio is the other's time divided by the baseline's time.

    If you name one folder, devbench compares all comparable results in it. If you name two folders, devbench compares
    each result of the second with the matching result of the first. With --fail-on, a result of the first folder that
    has no match is an error.
    """
    from bench import api

    outcome = api.compare(results, settings)
    refused = [] if force else [comparison for comparison in outcome.comparisons if comparison.unfair]
    allowed = [comparison for comparison in outcome.comparisons if comparison not in refused]
    if refused and (outcome.explicit or not allowed):
        raise _refusal(refused[0])
    error = gate_error(allowed, refused, outcome.unchecked, settings.threshold) if fail_on else None
    document = None
    if settings.json:
        document = {
            "comparisons": [as_json(comparison) for comparison in allowed],
            "not_comparable": [as_json(comparison) for comparison in refused],
            "alone": [result.id for result in outcome.alone],
            "matrices": [as_json(matrix) for matrix in outcome.matrices],
        }
    else:
        _show(allowed, refused, outcome.matrices, outcome.alone)
    code = conclude(document, error)
    if not settings.json and Path(results[0]).is_dir():
        next_steps.show([next_steps.report(Path(results[0]))])
    end(code)


def _show(
    allowed: Sequence[Comparison], refused: Sequence[Comparison], matrices: Sequence[Matrix], alone: Sequence[Result]
) -> None:
    from bench.render.terminal import comparison as terminal

    typer.echo(terminal.text(allowed, matrices), nl=False)
    for comparison in refused:
        sides = f"{comparison.other.label} and {comparison.base.label}"
        typer.echo(f"not comparable: {sides}. Compare only these two to see why.")
    for result in alone:
        typer.echo(f"no result to compare with: {result.spec.label} ({result.id})")


def gate_error(
    allowed: Sequence[Comparison], refused: Sequence[Comparison], unchecked: Sequence[Result], threshold: float
) -> DevbenchError | None:
    """Return the error of `--fail-on slower`. None if every result was compared and none is slower.

    An undecided verdict is not an error. The verdict on a result that failed is one, whatever its processes measured
    before.

    Args:
        allowed: Comparisons that are fair, or that `--force` allows.
        refused: Comparisons that are unfair. Their verdicts do not count.
        unchecked: Results that have no counterpart to be compared with.
        threshold: The smallest relative difference that matters, as a share.
    """
    failed = {side.label: side.failure for comparison in allowed for side in comparison.failed}
    whole = [comparison for comparison in allowed if not comparison.failed]
    if slower := [comparison for comparison in whole if comparison.verdict == "slower"]:
        return SlowerThanAllowed(f"slower than the baseline by more than {write_share(threshold)}: {_others(slower)}")
    if refused:
        return NotComparable(
            f"cannot be compared, so they may be slower: {_others(refused)}", "Compare only two of them to see why."
        )
    if failed:
        reasons = "; ".join(f"{label}: {reason}" for label, reason in failed.items())
        return RunFailed(f"failed, so there is no verdict: {reasons}", "Mend the failure, and measure again.")
    if unchecked:
        names = ", ".join(f"{result.spec.label} ({result.id})" for result in unchecked)
        return NotComparable(
            f"no counterpart, so they may be slower: {names}",
            "Measure the same specs for both, or compare only two results to see why they cannot be compared.",
        )
    if undecided := [comparison for comparison in whole if comparison.verdict == "not enough data"]:
        return RunFailed(f"no verdict, so they may be slower: {_others(undecided)}", "Check whether their runs failed.")
    return None


def _others(comparisons: Sequence[Comparison]) -> str:
    return ", ".join(comparison.other.label for comparison in comparisons)


def _refusal(unfair: Comparison) -> NotComparable:
    """Return the error that says why two results cannot be compared."""
    from bench.render.sentences.comparison import difference

    return NotComparable(
        f"{unfair.other.label} cannot be compared with {unfair.base.label}",
        "\n".join([*map(difference, unfair.unfair), "Use --force to compare them anyway."]),
    )


TEXTS = {
    "threshold": "Smallest difference that matters. Default: 2%.",
    "output": "Folder in which ids of results are looked up. Default: results.",
}
"""Help that differs from that of `run`."""

command = build(with_settings(compare, ("threshold", "output", "json"), TEXTS), "compare")
