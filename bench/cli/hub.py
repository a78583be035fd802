"""`devbench hub`: the results server; `export` and `import` move everything that one holds."""

from __future__ import annotations

import functools
import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bench.cli.command import build, print_json
from bench.cli.options import parameter
from bench.config.settings import FILE, FILE_VARIABLE
from bench.errors import UsageError

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


def hub(
    settings: Any,
    action: Literal["serve", "export", "import"],
    file: Path | None,
    json: bool,
) -> None:
    """Serve results: take what runs send, and show it.

    `devbench hub export FILE` writes everything that the database holds, also while a hub serves from it;
    `devbench hub import FILE` takes it in.
    """
    from bench.hub.db import exchange
    from bench.hub.db.database import Database
    from bench.hub.web.serve import serve

    if action == "serve":
        if file is not None or json:
            raise UsageError("serving takes neither a file nor --json", "`devbench hub export FILE` writes one.")
        serve(settings)
        return
    if file is None:
        raise UsageError(f"there is no file to {action}", f"Name one: devbench hub {action} hub.jsonl.gz")
    database = Database(settings.database)
    try:
        database.upgrade()
        count = (exchange.export_to if action == "export" else exchange.import_from)(database, file)
    finally:
        database.close()
    if json:
        print_json({action: {"file": str(file), "documents": count}})
    else:
        typer.echo(f"{action}: {count} documents {'in' if action == 'export' else 'from'} {file}", err=True)


def _with_settings(function: Callable[..., None]) -> Callable[..., None]:
    """Gives a function the options of the hub's settings, gathered as one argument."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    fields: dict[str, Any] = {}
    if not missing:
        from bench.config.hub_settings import HubSettings, load, variable

        fields = dict(HubSettings.model_fields)

    @functools.wraps(function)
    def call(**given: Any) -> None:
        if missing:
            raise UsageError(
                f"the hub needs {' and '.join(missing)}, which devbench without its extra has not",
                "Install it: pip install devbench[hub].",
            )
        asked = {name: given.pop(name) for name in fields}
        function(settings=load(given.pop("config"), **asked), **given)

    options = [parameter(name, field, variable(name)) for name, field in fields.items()]
    call.__signature__ = inspect.Signature([*_own(), *options])  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in [*_own(), *options]}
    return call


def _own() -> list[inspect.Parameter]:
    """What is no setting."""
    text = f"Settings file. [default: {FILE}, if there; {FILE_VARIABLE}]"
    actions = Annotated[
        Literal["serve", "export", "import"],
        typer.Argument(metavar="[export|import]", help="What to do; without it, serve.", show_default=False),
    ]
    file = Annotated[Path | None, typer.Argument(metavar="[FILE]", help="To write or to read.", show_default=False)]
    config = Annotated[str | None, typer.Option("--config", metavar="FILE", help=text, show_default=False)]
    json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, and nothing else there.")]
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter("action", kind, default="serve", annotation=actions),
        inspect.Parameter("file", kind, default=None, annotation=file),
        inspect.Parameter("config", kind, default=None, annotation=config),
        inspect.Parameter("json", kind, default=False, annotation=json),
    ]


command = build(_with_settings(hub), "hub")
