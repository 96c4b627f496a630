"""`trace config`: settings of a repository."""

from __future__ import annotations

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, opened_store
from trace_cli.render.escape import one_line
from trace_cli.render.records import write_record
from trace_store import errors, llm
from trace_store.config import KNOWN_KEYS
from trace_store.context import tokens
from trace_store.files import Disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation

MODEL = "model"


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

    Without arguments all settings are listed, with KEY one is printed, with VALUE it is changed. `trace undo` does not
    take that back. They stand in
    `.trace/config` and are shared with whoever shares the repository:

        budget           tokens a context may have: 200000, 200k or 1m
        tokenizer        the encoding tokens are counted with
        default_branch   the branch that HEAD stands for before it is set

    `trace config model` lists what you keep about the model that is asked. That stands in a file of your own,
    `trace/model.toml` in the folder for settings, and in no repository:

        model.name       what it is called
        model.api        chat (the default), responses or anthropic
        model.url        its address, when it is not the vendor's own
        model.key        what opens it; the value is -, and the key comes from standard input
        model.timeout    seconds in which nothing may come
        model.deadline   seconds that an answer may take, with all attempts
        model.attempts   how often it is asked at most
        model.allow_http true: a key may go over a network unencrypted
    """
    if unset and (key is None or value is not None):
        raise usage_error("--unset takes the name of one setting")
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
                tokens.tokenizer.get_tokenizer(
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


def _model(invocation: Invocation, key: str, value: str | None, unset: bool, as_json: bool) -> None:
    """Show or change what the user keeps about their model, of which the key is never shown."""
    disk, environment = Disk(), invocation.environment
    if not key and (unset or value is not None):
        raise usage_error("a setting of the model has a name of its own", _model_keys())
    if unset or value is not None:
        if key == "key" and value not in (None, "-"):
            raise usage_error(
                "a key does not stand in a command, where others can read it",
                "`trace config model.key -` reads it from standard input",
            )
        if key == "key" and value is not None:
            value = invocation.read("-").decode("utf-8", "replace")
        llm.settings_file.set_setting(disk, environment, key, value)
        return
    kept = llm.settings_file.read_settings_file(disk, environment)
    if key and key not in llm.settings_file.KEYS:
        raise errors.NotFoundError(f"there is no setting 'model.{key}'", hint=_model_keys())
    shown: dict[str, object] = {
        f"{MODEL}.{name}": (as_json or "set") if isinstance(each, llm.keys.Secret) else each
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
    return f"settings: {', '.join(f'{MODEL}.{name}' for name in llm.settings_file.KEYS)}"


def _known() -> str:
    return f"settings: {', '.join(sorted(KNOWN_KEYS))}"
