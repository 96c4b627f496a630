"""`trace tools`: the tool schemas offered to a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trace_cli.arguments import OPTIONAL, Argument, takes
from trace_cli.porcelain.common import JSON, MESSAGE, QUIET, opened, recorded
from trace_cli.porcelain.input import parsed_json
from trace_cli.render.escape import one_line
from trace_cli.render.tables import LEFT, table
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group
from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

HELP = """Without a subcommand, list the current tools."""


@takes(JSON)
def tools(invocation: Invocation) -> Results:
    """Show the current tools when no subcommand is given."""
    return show(invocation, revision="HEAD")


@takes(
    Argument("FILE", "file", "A JSON list of schemas; - reads standard input"),
    MESSAGE,
    JSON,
    QUIET,
)
def set_(invocation: Invocation, *, file: str, message: str) -> Results:
    """Set the tools from a JSON list of schemas.

    A schema is `{"name", "description", "parameters"}` or any provider's form. An empty list offers no tools.
    """
    name = "standard input" if file == "-" else repr(file)
    schemas = parsed_json(invocation.read(file), name)
    if isinstance(schemas, dict) and isinstance(schemas.get("tools"), list):
        schemas = schemas["tools"]
    if not isinstance(schemas, list) or not all(isinstance(each, dict) for each in schemas):
        raise errors.UnreadableInputError(f"{name} is not a JSON list of tool schemas", path=file)
    return recorded(
        invocation,
        lambda repo: repo.set_tools(schemas, message=message),
    )


@takes(
    Argument("REVISION", "revision", "The commit whose tools to list", OPTIONAL, default="HEAD"),
    JSON,
)
def show(invocation: Invocation, *, revision: str) -> Results:
    """List the current tools; with --json, the full schemas."""
    with opened(invocation) as repo:
        schemas = repo.compile(revision).tools
    yield {"tools": schemas}, _lines(invocation, schemas)


def _lines(invocation: Invocation, schemas: Sequence[object]) -> Iterator[str]:
    rows = [_row(schema) for schema in schemas]
    if not rows:
        invocation.note("no tools are set")
    yield from table(invocation, ("tool", "description"), rows, LEFT * 2) if rows else ()


def _row(schema: object) -> tuple[str, str]:
    """Name and description from any provider's form of a schema."""
    fields = schema if isinstance(schema, dict) else {}
    inner = fields.get("function")
    if isinstance(inner, dict):
        fields = inner
    name, description = fields.get("name"), fields.get("description")
    return one_line(str(name or "(no name)"), 60), one_line(str(description or ""), 300)


GROUP = Group(HELP, {"set": set_, "show": show}, bare=tools)
