"""`trace config`: settings of a repository."""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.opening import JSON, opened_store
from trace_cli.render.escape import one_line
from trace_cli.render.records import write_record
from trace_store import context, errors
from trace_store.config import KNOWN_KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation


@takes(
    Argument("KEY", "key", "The setting", OPTIONAL),
    Argument("VALUE", "value", "Its new value", OPTIONAL),
    Option("--unset", "unset", "Take the setting out"),
    JSON,
)
def config(
    invocation: Invocation, *, key: str | None, value: str | None, unset: bool, as_json: bool
) -> None:
    """Show and change settings.

    Without arguments all settings are listed, with KEY one is printed, with VALUE it is changed. They stand in
    `.trace/config` and are shared with whoever shares the repository:

        budget           tokens a context may have: 200000, 200k or 1m
        tokenizer        the encoding tokens are counted with
        default_branch   the branch that HEAD stands for before it is set
    """
    if unset and (key is None or value is not None):
        raise usage_error("--unset takes the name of one setting")
    with opened_store(invocation) as store:
        settings = store.config
        if key is None:
            _list(invocation, dict(settings.items()), as_json)
        elif unset or value is not None:
            if key == "tokenizer" and value is not None:
                context.get_tokenizer(
                    value
                )  # the configuration stands below tokens, and takes any word
            settings.set(key, None if unset else value)
        else:
            found = settings.get(key)
            if found is None and key not in KNOWN_KEYS:
                raise errors.NotFoundError(f"there is no setting {key!r}", hint=_known())
            if as_json:
                write_record(invocation, {key: found})
            elif found is not None:
                invocation.line(one_line(str(found)))


def _list(invocation: Invocation, settings: dict[str, object], as_json: bool) -> None:
    if as_json:
        write_record(invocation, settings)
        return
    for key, value in settings.items():
        invocation.line(f"{one_line(key)} = {one_line(str(value))}")


def _known() -> str:
    return f"settings: {', '.join(sorted(KNOWN_KEYS))}"
