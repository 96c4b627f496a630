"""`trace config`: settings of a repository."""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, opened_store
from trace_cli.render.escape import one_line
from trace_cli.render.records import write_record
from trace_store import context, errors, llm
from trace_store.config import KNOWN_KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation

MODEL = "model"


@takes(
    Argument("KEY", "key", "The setting", OPTIONAL),
    Argument("VALUE", "value", "Its new value", OPTIONAL),
    Option("--unset", "unset", "Remove the setting"),
    JSON,
)
def config(
    invocation: Invocation, *, key: str | None, value: str | None, unset: bool, as_json: bool
) -> None:
    """Show and change settings.

    Without arguments, list all settings; with KEY, print one; with VALUE, change it. `trace undo` does not revert that.
    Settings are in `.trace/config` and shared with everyone who shares the repository:

        budget           maximum tokens of a context: 200000, 200k or 1m
        tokenizer        the encoding for token counts
        default_branch   the branch that HEAD is on before it is set
        automatic_checkpoints          on, off, or some triggers (see `trace checkpoint --help`)
        automatic_checkpoint_limit     how many of each trigger are kept
        automatic_checkpoint_days      for how many days
        automatic_checkpoint_tokens    a checkpoint each time the context passes a multiple of this
        trajectory_capture             on or off: record blocks in new messages (see `trace tr capture --help`)
        trash_retention  how long the trash keeps things: by hand, or such as "30 days"
        trash_count      how many refs the trash keeps
        trash_size       maximum size of data held only by the trash: 500k, 100M or 2G
        trash_keep       what it keeps regardless: pinned, checkpoints, tags, summaries

    `trace config model` lists your own settings for the model that Trace asks. They are in `trace/model.toml` in your
    settings folder, never in a repository:

        model.name       its name
        model.api        chat (the default), responses or anthropic
        model.url        its address, if it is not the vendor's
        model.key        its key; the value is -, and the key is read from standard input
        model.timeout    seconds without any data before giving up
        model.deadline   seconds for one answer, including retries
        model.attempts   maximum number of attempts
        model.allow_http true: the key may be sent unencrypted
    """
    if unset and (key is None or value is not None):
        raise usage_error("--unset takes one KEY and no value")
    if key is not None and key.partition(".")[0] == MODEL:
        _model(invocation, key.partition(".")[2], value, unset, as_json)
        return
    if key in ("user.name", "user.email"):
        raise usage_error(
            f"{key} is not a setting",
            "the author is TRACE_AUTHOR, such as `export TRACE_AUTHOR='Ada Lovelace'`",
        )
    with opened_store(invocation) as store:
        settings = store.config
        if key is None:
            _list(invocation, dict(settings.items()), as_json)
        elif unset or value is not None:
            if key == "tokenizer" and value is not None:
                # checked here, since the configuration cannot import the tokenizers
                context.get_tokenizer(value)
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


def _model(invocation: Invocation, key: str, value: str | None, unset: bool, as_json: bool) -> None:
    """Show or change the user's model settings; the key is never shown."""
    environment = invocation.environment
    if not key and (unset or value is not None):
        raise usage_error("give one of the model settings", _model_keys())
    if unset or value is not None:
        if key == "key" and value not in (None, "-"):
            raise usage_error(
                "other users could read a key on the command line",
                "`trace config model.key -` reads it from standard input",
            )
        if key == "key" and value is not None:
            value = invocation.read("-").decode("utf-8", "replace")
        llm.set_setting(environment, key, value)
        return
    kept = llm.read_settings_file(environment)
    if key and key not in llm.KEYS:
        raise errors.NotFoundError(f"there is no setting 'model.{key}'", hint=_model_keys())
    shown: dict[str, object] = {
        f"{MODEL}.{name}": (as_json or "set") if isinstance(each, llm.Secret) else each
        for name, each in kept.items()
        if key in ("", name)
    }
    if as_json or not key:
        _list(invocation, shown, as_json)
        if not (shown or as_json):
            invocation.note(f"note: nothing is set; {_model_keys()}")
    else:
        for each in shown.values():
            invocation.line(one_line(str(each)))


def _model_keys() -> str:
    return f"settings: {', '.join(f'{MODEL}.{name}' for name in llm.KEYS)}"


def _known() -> str:
    return f"settings: {', '.join(sorted(KNOWN_KEYS))}"
