"""How often `gate`, `bisect` and runs in several Python environments are right about planted slow-downs.

`python -m benchmarks.changes KIND [--count N] [--slower SHARE] [--max-time TIME] [--append FILE]` runs a command N
times on repositories, packages or environments that it makes, and prints each outcome. The kinds:

- `environments`: a program in an environment and in a copy of it. The right verdict is Same.
- `gate`: a pull request that changes nothing, or that makes each step slower by `--slower`. Without a change, an
  undecided verdict is right too, because it raises no alarm.
- `commits`: a chain of 16 commits, one of which makes each step slower by `--slower`.
- `versions`: a chain of 16 versions of a package, as wheels, one of which makes each step slower by `--slower`.

With `--append`, the outcomes are added to a file, and the summary is of all outcomes of the kind in it. So a long
measurement can be divided. `benchmarks.changes summary --append FILE` prints only the summary.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel

from bench.machine import environment, system
from benchmarks import outcomes

LENGTH = 16
"""Versions or commits of a chain."""

PACKAGE = "devbench-planted"
"""Name of the package whose versions are bisected."""

WORK = 400
"""Multiplications of a step, so that a step takes some milliseconds."""

SCRIPT = """\
import tensorflow as tf
from planted import WORK

x = tf.random.normal((96, 96))
layer = tf.Variable(tf.random.normal((96, 96)) * 0.01)
optimizer = tf.keras.optimizers.SGD(0.001)


@tf.function
def train(x):
    y = x
    for _ in tf.range(WORK):
        y = tf.matmul(y, x) * 0.01
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(tf.stop_gradient(y), layer) ** 2)
    optimizer.apply_gradients([(tape.gradient(loss, layer), layer)])
    return loss


while True:
    train(x)
"""
"""A training whose steps grow with `planted.WORK`. It has no end, so a race stops when its verdict is settled."""


class Found(BaseModel):
    """The outcome of one command.

    Attributes:
        kind: of the command.
        slower: share by which the planted change makes a step slower. 0 if nothing is planted.
        right: whether the verdict, or the version or commit that was found, is right.
        verdict: in words.
        ratio: the measured ratio of the step times. None if there is none.
        races: number of races.
        seconds: how long the command took.
        load: the load average of the last minute, before the command.
    """

    kind: str
    slower: float
    right: bool
    verdict: str
    ratio: float | None
    races: int
    seconds: float
    load: float | None


def module(slower: float) -> str:
    """Return the text of the module that decides how long a step takes."""
    return f"WORK = {round(WORK * (1 + slower))}\n"


def devbench(folder: Path, *arguments: str, **variables: str) -> tuple[int, dict[str, object], str]:
    """Run a command with `--json`. Return its exit code, its document and its messages."""
    done = subprocess.run(
        [*system.python("bench"), *arguments, "--json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else {}, done.stderr


def git(folder: Path, *arguments: str) -> str:
    """Run git as a fixed author. Return what it prints."""
    who = ("-c", "user.name=devbench", "-c", "user.email=devbench@localhost", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def repository(folder: Path, slower_from: int | None, slower: float, length: int) -> list[str]:
    """Make a repository. Return its commits.

    Args:
        folder: An empty folder.
        slower_from: Place of the commit that makes a step slower. None for none.
        slower: By which share.
        length: Number of commits.
    """
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / ".gitignore").write_text("results/\n")
    (folder / "train.py").write_text(SCRIPT)
    commits = []
    for number in range(length):
        (folder / "planted.py").write_text(module(slower if slower_from is not None and number >= slower_from else 0))
        (folder / "note.txt").write_text(f"{number}\n")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", f"Commit {number}")
        commits.append(git(folder, "rev-parse", "HEAD"))
    return commits


def environments(folder: Path, slower: float, max_time: str) -> Found:
    """Run a program in this environment and in a copy of it."""
    (folder / "planted.py").write_text(module(0))
    (folder / "train.py").write_text(SCRIPT)
    copy = folder / "copy"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(copy)], check=True)
    own = subprocess.run(
        [sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    (site,) = copy.glob("lib/python*/site-packages")
    (site / "own.pth").write_text(own + "\n")
    started, load = time.monotonic(), environment.load_average()
    names = ("--env", f"a={sys.prefix}", "--env", f"b={copy}")
    _, document, messages = devbench(folder, "run", "train.py", *names, "--max-time", max_time)
    return _compared("environments", slower, document, messages, started, load)


def gate(folder: Path, slower: float, max_time: str) -> Found:
    """Race a pull request against its base."""
    base, _ = repository(folder, 1 if slower else None, slower, 2)
    started, load = time.monotonic(), environment.load_average()
    _, document, messages = devbench(folder, "gate", "train.py", "--base", base, "--max-time", max_time)
    return _compared("gate", slower, document, messages, started, load)


def _compared(
    kind: str, slower: float, document: Mapping[str, object], messages: str, started: float, load: float | None
) -> Found:
    comparisons = document.get("comparisons")
    verdict, ratio = f"failed: {messages[-300:]}", None
    if isinstance(comparisons, list) and comparisons:
        verdict, ratio = comparisons[0]["verdict"], comparisons[0]["ratio"]["value"]
    return Found(
        kind=kind,
        slower=slower,
        right=verdict == "slower" if slower else verdict == "same" or (kind == "gate" and verdict == "undecided"),
        verdict=verdict,
        ratio=ratio,
        races=1,
        seconds=time.monotonic() - started,
        load=load,
    )


def commits(folder: Path, slower: float, max_time: str) -> Found:
    """Find the slow commit of a chain."""
    place = random.randrange(1, LENGTH)
    names = repository(folder, place, slower, LENGTH)
    started, load = time.monotonic(), environment.load_average()
    ends = ("--good", names[0], "--bad", names[-1])
    _, document, messages = devbench(folder, "bisect", "train.py", *ends, "--max-time", max_time)
    return _bisected("commits", slower, names[place], document, messages, started, load)


def versions(folder: Path, slower: float, max_time: str) -> Found:
    """Find the slow version of a package."""
    place = random.randrange(1, LENGTH)
    (folder / "train.py").write_text(SCRIPT)
    wheels = folder / "wheels"
    wheels.mkdir()
    for number in range(LENGTH):
        wheel(wheels, f"1.{number}", module(slower if number >= place else 0))
    started, load = time.monotonic(), environment.load_average()
    ends = ("--good", f"{PACKAGE}==1.0", "--bad", f"{PACKAGE}==1.{LENGTH - 1}", "--with", "tensorflow==2.21.0")
    _, document, messages = devbench(
        folder, "bisect", "train.py", *ends, "--max-time", max_time, PIP_FIND_LINKS=str(wheels)
    )
    return _bisected("versions", slower, f"{PACKAGE}==1.{place}", document, messages, started, load)


def wheel(folder: Path, version: str, text: str) -> Path:
    """Write a wheel of the package with a module `planted`."""
    import zipfile

    name = PACKAGE.replace("-", "_")
    info = f"{name}-{version}.dist-info"
    files = {
        "planted.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: devbench\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in files.items():
            archive.writestr(entry, content)
    return path


def _bisected(
    kind: str,
    slower: float,
    first_bad: str,
    document: Mapping[str, object],
    messages: str,
    started: float,
    load: float | None,
) -> Found:
    bisection = document.get("bisection")
    found: list[dict[str, object]] = []
    races = 0
    if isinstance(bisection, dict):
        found, races = bisection["slow_downs"], len(bisection["races"])
    names = [str(slow_down["first_bad"]) for slow_down in found]
    ratio = found[0]["ratio"] if found else None
    return Found(
        kind=kind,
        slower=slower,
        right=names == [first_bad],
        verdict=f"{', '.join(names) or 'none'}; planted {first_bad}" if names else f"none: {messages[-200:]}",
        ratio=float(str(ratio["value"])) if isinstance(ratio, dict) else None,
        races=races,
        seconds=time.monotonic() - started,
        load=load,
    )


KINDS: Mapping[str, Callable[[Path, float, str], Found]] = {
    "environments": environments,
    "gate": gate,
    "commits": commits,
    "versions": versions,
}


def line(found: Found) -> str:
    """Return the line of an outcome."""
    ratio = "" if found.ratio is None else f", ratio {found.ratio:.3f}"
    word = "right" if found.right else "WRONG"
    return (
        f"{found.kind}, planted {found.slower:.0%}: {word}, {found.verdict}{ratio}, "
        f"{found.races} race{'s' * (found.races != 1)} in {found.seconds:.0f} s"
    )


def print_summary(all_found: Sequence[Found]) -> None:
    """Print how many outcomes of each kind are right, and how long they took."""
    for kind, slower in sorted({(found.kind, found.slower) for found in all_found}):
        group = [found for found in all_found if (found.kind, found.slower) == (kind, slower)]
        false = sum(found.verdict in ("slower", "faster") for found in group) if not slower else 0
        print(
            f"{kind}, planted {slower:.0%}: {sum(found.right for found in group)} of {len(group)} right"
            + (f", {false} false alarms" if not slower else "")
            + f"; median {statistics.median(found.races for found in group):g} races, "
            f"{statistics.median(found.seconds for found in group):.0f} s, longest "
            f"{max(found.seconds for found in group):.0f} s"
        )


def main() -> None:
    """Run a command several times, print each outcome, and summarize."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=[*KINDS, "summary"])
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--slower", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--max-time", default="5m", metavar="TIME")
    parser.add_argument("--append", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    found = outcomes.read(arguments.append, Found)
    if arguments.kind != "summary":
        for _ in range(arguments.count):
            with tempfile.TemporaryDirectory(prefix="devbench-") as folder:
                found.append(KINDS[arguments.kind](Path(folder), arguments.slower, arguments.max_time))
            print(line(found[-1]), flush=True)
            outcomes.append(arguments.append, found[-1])
    print_summary(found)


if __name__ == "__main__":
    main()
