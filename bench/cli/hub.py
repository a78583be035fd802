"""`devbench hub`: the results server. `export` and `import` copy everything that it holds."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bench.cli import next_steps
from bench.cli.command import Json, announce, build, print_json
from bench.cli.options import config_parameter, own_parameters, parameter, with_parameters
from bench.errors import UsageError
from bench.render import numbers
from bench.version import install_command

NEEDED = (
    "alembic",
    "fastapi",
    "jinja2",
    "prometheus_client",
    "psycopg",
    "ruptures",
    "sqlalchemy",
    "sse_starlette",
    "uvicorn",
    "vl_convert",
)
"""Modules that the hub imports from the packages of the extra `hub`."""


def hub(
    settings: Any,
    action: Annotated[
        Literal["serve", "export", "import"],
        typer.Argument(metavar="serve|export|import", help="What to do. Default: serve."),
    ] = "serve",
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="File to export to or import from, such as hub.jsonl.gz.")
    ] = None,
    json: Json = False,
) -> None:
    """Run a results server, or export or import its results.

    A hub receives results from runs, stores them, and shows them on web pages. Export works while a hub is running.
    """
    from bench.hub.db import exchange
    from bench.hub.db.database import Database
    from bench.hub.web.serve import serve

    if action == "serve":
        if file is not None or json:
            raise UsageError("serve takes no file and no --json", "To write a file: devbench hub export FILE")
        serve(settings)
        return
    if file is None:
        raise UsageError(f"no file to {action}", f"Add one: devbench hub {action} hub.jsonl.gz")
    database = Database(settings.database)
    try:
        if action == "export":
            database.require_tables()  # an empty file would replace a good one
        database.upgrade()
        count = (exchange.export_to if action == "export" else exchange.import_from)(database, file)
    finally:
        database.close()
    if json:
        print_json({action: {"file": str(file), "documents": count}})
    else:
        announce(f"{action}: {numbers.count(count, 'document')} {'in' if action == 'export' else 'from'} {file}")
        load_it = shlex.join(["devbench", "hub", "import", str(file)])
        steps = {"export": (load_it, "load them into another hub"), "import": ("devbench hub", "serve them")}
        next_steps.show([steps[action]])


def _with_settings(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the hub's settings to a command. The function gets them as one argument, `settings`.

    If a package of the extra `hub` is missing, the command has no such options, and fails with the fix.
    """
    own = own_parameters(function)
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    options: list[inspect.Parameter] = []
    if not missing:
        from bench.config.hub_settings import HubSettings, load

        options = [parameter(HubSettings, name) for name in HubSettings.model_fields]

    @functools.wraps(function)
    def call(**values: Any) -> None:
        if missing:
            fix = f"In a checkout of devbench, run `{install_command('hub')}`."
            raise UsageError(f"the hub needs {' and '.join(missing)}", fix)
        settings = {parameter.name: values.pop(parameter.name) for parameter in options}
        function(settings=load(values.pop("config"), **settings), **values)

    return with_parameters(call, [*own, *options, config_parameter()])


command = build(
    _with_settings(hub),
    "hub",
    "interrupted: an import keeps what it has stored, an export keeps the old file. Run the command again",
)
