"""`trace config`: settings of a repository."""

from __future__ import annotations

import os

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, NOTHING, opened, opened_store
from trace_cli.render.escape import one_line
from trace_store import context, errors, llm
from trace_store.store.config import KNOWN_KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation, Results

MODEL, PRICE, USER = "model", "price", "user"
USER_NAME = "user.name"


@takes(
    Argument("KEY", "key", "The setting", OPTIONAL),
    Argument("VALUE", "value", "Its new value", OPTIONAL),
    Option("--unset", "unset", "Remove the setting"),
    JSON,
)
def config(invocation: Invocation, *, key: str | None, value: str | None, unset: bool) -> Results:
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

    `trace config user.name NAME` sets the author of your commits, in all repositories. The first of these counts: the
    variable TRACE_AUTHOR, this setting, git's `user.name`, the name of your account.

    `trace config price.MODEL "input=3 output=15"` sets what a million tokens of a model cost, for `trace usage --cost`.
    cache_read= and cache_write= cost as input unless given. MODEL may be the beginning of a model's name. `trace config
    price` lists the prices. They are your own settings, too.

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
        yield from _model(invocation, key.partition(".")[2], value, unset)
        return
    if key is not None and key.partition(".")[0] == PRICE:
        yield from _price(invocation, key.partition(".")[2], value, unset)
        return
    if key is not None and key.partition(".")[0] == USER:
        yield from _user(invocation, key, value, unset)
        return
    if key is not None and (unset or value is not None):
        yield from _set(invocation, key, value)
        return
    with opened_store(invocation) as store:
        settings = store.config
        if key is None:
            yield from _list(dict(settings.items()))
        else:
            found = settings.get(key)
            if found is None and key not in KNOWN_KEYS:
                raise errors.NotFoundError(f"there is no setting {key!r}", hint=_known())
            yield {key: found}, [] if found is None else one_line(str(found))


def _set(invocation: Invocation, key: str, value: str | None) -> Results:
    """Change a setting, or remove it."""
    if key == "tokenizer" and value is not None:
        # checked here, since the configuration cannot import the tokenizers
        context.get_tokenizer(value)
    with opened(invocation) as repo:
        changed = repo.configure(key, value)
        now = repo.store.config.get(key)
    yield {"key": key, "value": now, "changed": changed}, [] if changed else NOTHING


def _list(settings: dict[str, object]) -> Results:
    lines = (f"{one_line(key)} = {one_line(str(value))}" for key, value in settings.items())
    yield settings, lines


def _price(invocation: Invocation, model: str, value: str | None, unset: bool) -> Results:
    """Show or change the user's prices of models."""
    environment = invocation.environment
    if not model and (unset or value is not None):
        raise usage_error("name a model, as in price.gpt-5")
    prices = trace_store.store.read_prices(environment)
    if value is not None or (unset and model in prices):
        trace_store.store.set_price(environment, model, value)
        return
    if model and model not in prices:
        raise errors.NotFoundError(
            f"there is no price for {one_line(model, 80)!r}",
            hint=f"`trace config {PRICE}.MODEL 'input=3 output=15'` sets one, per million tokens",
        )
    shown: dict[str, object] = {
        f"{PRICE}.{name}": str(price) for name, price in prices.items() if model in ("", name)
    }
    if model:
        yield shown, (one_line(str(each)) for each in shown.values())
        return
    yield from _list(shown)


def _user(invocation: Invocation, key: str, value: str | None, unset: bool) -> Results:
    """Show or change the user's own name; without a value, print the author that commits get."""
    if key not in (USER, USER_NAME):
        hint = f"`trace config {USER_NAME} NAME` sets the author of your commits"
        raise errors.NotFoundError(f"there is no setting {one_line(key, 80)!r}", hint=hint)
    if key == USER and value is not None:
        raise usage_error(f"{USER} is not a setting", f"`trace config {USER_NAME} NAME`")
    if unset or value is not None:
        trace_store.store.set_user_name(invocation.environment, value)
        if value is not None and invocation.environment.given_author is not None:
            invocation.note("note: TRACE_AUTHOR is set and comes first")
        return
    name = trace_store.store.user_name(invocation.environment) or None
    yield {USER_NAME: name}, [] if name is None else one_line(name)
    if name is None and not invocation.as_json:
        root = os.path.join(invocation.folder, ".trace")
        author = trace_store.store.author_of(invocation.environment, root)
        invocation.note(
            f"note: {USER_NAME} is not set; without it the author is {one_line(author, 80)}"
        )


def _model(invocation: Invocation, key: str, value: str | None, unset: bool) -> Results:
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
        changed = llm.set_setting(environment, key, value)
        yield {"key": f"{MODEL}.{key}", "changed": changed}, [] if changed else NOTHING
        return
    kept = llm.read_settings_file(environment)
    if key and key not in llm.KEYS:
        raise errors.NotFoundError(f"there is no setting 'model.{key}'", hint=_model_keys())
    shown: dict[str, object] = {
        f"{MODEL}.{name}": (invocation.as_json or "set") if isinstance(each, llm.Secret) else each
        for name, each in kept.items()
        if key in ("", name)
    }
    if key:
        yield shown, (one_line(str(each)) for each in shown.values())
        return
    yield from _list(shown)
    if not (shown or invocation.as_json):
        invocation.note(f"note: nothing is set; {_model_keys()}")


def _model_keys() -> str:
    return f"settings: {', '.join(f'{MODEL}.{name}' for name in llm.KEYS)}"


def _known() -> str:
    return f"settings: {', '.join(sorted(KNOWN_KEYS))}"
