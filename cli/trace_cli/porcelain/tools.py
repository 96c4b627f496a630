"""`trace tools`: the tool schemas that a model is offered."""

from __future__ import annotations

from typing import Annotated

import typer

from trace_cli.failures import usage_error
from trace_cli.porcelain.opening import opened, recorded
from trace_cli.porcelain.options import Json, Message, Quiet
from trace_cli.porcelain.reading import parsed_json
from trace_cli.render.escape import one_line
from trace_cli.render.records import write_record
from trace_cli.render.tables import LEFT, table
from trace_cli.runtime import Invocation
from trace_store.errors import UnreadableInputError

HELP = """Set or show the tools a model is offered.

Without a subcommand the tools in force are listed."""

app = typer.Typer(
    help=HELP, invoke_without_command=True, rich_markup_mode=None, add_completion=False
)


@app.callback()
def tools(ctx: typer.Context, as_json: Json = False) -> None:
    """Show the tools in force when no subcommand is given."""
    if ctx.invoked_subcommand is None:
        _show(ctx, "HEAD", as_json=as_json)
    elif as_json:
        raise usage_error(f"--json stands behind {ctx.invoked_subcommand}")


@app.command("set")
def set_(
    ctx: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="JSON: a list of schemas; - reads standard input.")
    ],
    message: Message = "",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Set the tools from a file with a JSON list of schemas.

    A schema is `{"name", "description", "parameters"}` or a provider's own dictionary; an empty list offers no tool.
    """
    invocation: Invocation = ctx.obj
    name = "standard input" if file == "-" else repr(file)
    schemas = parsed_json(invocation.read(file), name)
    if isinstance(schemas, dict) and isinstance(schemas.get("tools"), list):
        schemas = schemas["tools"]
    if not isinstance(schemas, list) or not all(isinstance(each, dict) for each in schemas):
        raise UnreadableInputError(f"{name} holds no JSON list of tool schemas", path=file)
    recorded(
        ctx.obj,
        lambda _, draft: draft.set_tools(schemas),
        message=message,
        as_json=as_json,
        quiet=quiet,
    )


@app.command("show")
def show(
    ctx: typer.Context,
    revision: Annotated[
        str, typer.Argument(metavar="REVISION", help="As of this commit.")
    ] = "HEAD",
    as_json: Json = False,
) -> None:
    """List the tools in force; with --json, the schemas in full."""
    _show(ctx, revision, as_json=as_json)


def _show(ctx: typer.Context, revision: str, *, as_json: bool) -> None:
    invocation: Invocation = ctx.obj
    with opened(ctx.obj) as repo:
        schemas = repo.compile(revision).tools
    if as_json:
        write_record(invocation, {"tools": list(schemas)})
        return
    rows = [_row(schema) for schema in schemas]
    if not rows:
        invocation.note("no tools are set")
    for line in table(invocation, ("tool", "description"), rows, LEFT * 2) if rows else ():
        invocation.line(line)


def _row(schema: object) -> tuple[str, str]:
    """Name and description from any provider's form of a schema."""
    fields = schema if isinstance(schema, dict) else {}
    inner = fields.get("function")
    if isinstance(inner, dict):
        fields = inner
    name, description = fields.get("name"), fields.get("description")
    return one_line(str(name or "(no name)"), 60), one_line(str(description or ""), 300)
