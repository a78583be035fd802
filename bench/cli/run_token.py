"""`devbench run-token`: make a token that may only write the results of one run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from bench.cli.command import build
from bench.cli.options import TOKEN_FILE, with_settings
from bench.config.settings import RunSettings
from bench.errors import OutputError, UsageError


def run_token(
    settings: RunSettings,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="File to write. Default: write to stdout.")
    ] = None,
) -> None:
    """Make a token that may only write the results of one run.

    A measured program can read the token of its run. With this token, the program cannot write to other runs, and
    cannot read anything that needs a password. Use it with the same --run-id.
    """
    from bench.publish.hub import run_token as run_tokens
    from bench.publish.hub.token import token

    if settings.run_id is None:
        raise UsageError("no run is named", "Use --run-id ID, and the same id for the run.")
    full = token(settings.hub_token_file)
    if full is None:
        raise UsageError("no token of the hub is set", f"Use --hub-token-file FILE or {TOKEN_FILE}.")
    text = run_tokens.make(full, settings.run_id) + "\n"
    if file is None:
        typer.echo(text, nl=False)
        return
    try:
        with open(file, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as opened:
            opened.write(text)
    except OSError as error:
        raise OutputError(f"cannot write {file}: {error.strerror}") from None


command = build(with_settings(run_token, ("run_id", "hub_token_file")), "run-token")
