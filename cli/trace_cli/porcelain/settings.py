"""`trace config` and `trace version`."""

from __future__ import annotations

from typing import Annotated

import typer

from trace_cli.failures import usage_error
from trace_cli.porcelain.opening import Json, opened
from trace_cli.render.escape import one_line
from trace_cli.render.records import write_record
from trace_cli.runtime import Invocation
from trace_store import __version__
from trace_store.config import KNOWN_KEYS
from trace_store.context.tokens import get_tokenizer
from trace_store.errors import NotFoundError


def config(
    ctx: typer.Context,
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="The setting.", show_default=False)
    ] = None,
    value: Annotated[
        str | None, typer.Argument(metavar="VALUE", help="Its new value.", show_default=False)
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Take the setting out.")] = False,
    as_json: Json = False,
) -> None:
    """Show and change settings.

    Without arguments all settings are listed, with KEY one is printed, with VALUE it is changed. They stand in
    `.trace/config` and are shared with whoever shares the repository:

        budget           tokens a context may have: 200000, 200k or 1m
        tokenizer        the encoding tokens are counted with
        default_branch   the branch that HEAD stands for before it is set
    """
    invocation: Invocation = ctx.obj
    if unset and (key is None or value is not None):
        raise usage_error("--unset takes the name of one setting")
    with opened(ctx) as repo:
        settings = repo.store.config
        if key is None:
            _list(invocation, dict(settings.items()), as_json)
        elif unset or value is not None:
            if key == "tokenizer" and value is not None:
                get_tokenizer(value)  # the configuration stands below tokens, and takes any word
            settings.set(key, None if unset else value)
        else:
            found = settings.get(key)
            if found is None and key not in KNOWN_KEYS:
                raise NotFoundError(f"there is no setting {key!r}", hint=_known())
            if as_json:
                write_record(invocation, {key: found})
            elif found is not None:
                invocation.line(one_line(str(found)))


def version(ctx: typer.Context) -> None:
    """Print the version."""
    invocation: Invocation = ctx.obj
    invocation.line(f"trace {__version__}")


def _list(invocation: Invocation, settings: dict[str, object], as_json: bool) -> None:
    if as_json:
        write_record(invocation, settings)
        return
    for key, value in settings.items():
        invocation.line(f"{one_line(key)} = {one_line(str(value))}")


def _known() -> str:
    return f"settings: {', '.join(sorted(KNOWN_KEYS))}"
