"""The user's model settings file: `trace/model.toml` in the settings folder.

    api = "anthropic"
    name = "claude-sonnet-4-5"
    key = "…"

It is outside of every repository. Nobody else may write to it, or read it if it has a key. Changes replace one line, so
comments stay.
"""

from __future__ import annotations

import tomllib

from trace_store import errors, user_files
from trace_store.files import Disk, read_file, replace_file
from trace_store.llm.keys import Secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.environment import Environment

    Kept = dict[str, str | int | bool | Secret]

NAME = "model.toml"
MAXIMUM_BYTES = 1 << 16
MAXIMUM_TEXT = 2000
CHAT, RESPONSES, ANTHROPIC = "chat", "responses", "anthropic"
APIS = (CHAT, RESPONSES, ANTHROPIC)
_WRITABLE_BY_OTHERS, _READABLE_BY_OTHERS = 0o022, 0o044


def read_settings_file(environment: Environment, *, disk: Disk | None = None) -> Kept:
    """Return the settings in the file; empty without one.

    Raises:
        InvalidInputError: it is not TOML, or has an invalid value.
        StateError: others can write to it, or read a key in it.
        StorageError: it cannot be read.
    """
    if not environment.config_dir:
        return {}
    disk = disk or Disk()
    path = user_files.settings_file(environment, NAME)
    found = disk.stat(path)
    if found is None:
        return {}
    own = environment.user_ids
    if own is not None and (found.st_uid not in own or found.st_mode & _WRITABLE_BY_OTHERS):
        raise errors.StateError(f"others can write to your model settings: {path}")
    kept = _check_values(_parse(_text(disk, path), path), path)
    if own is not None and kept.get("key") and found.st_mode & _READABLE_BY_OTHERS:
        raise errors.StateError(
            f"others can read the model key in {path}",
            code=errors.ErrorCode.READABLE_KEY,
            path=path,
        )
    return kept


def set_setting(
    environment: Environment, key: str, value: str | None, *, disk: Disk | None = None
) -> None:
    """Set one setting in the file, which is created if missing; None removes it.

    Raises:
        InvalidInputError: the setting is unknown, or the value, which is not quoted, is not valid.
        StateError: there is no settings folder, or others can write to the file.
        StorageError: the file cannot be read or written.
    """
    if key not in KEYS:
        raise errors.InvalidInputError(
            f"unknown model setting {key!r} (known: {', '.join(KEYS)})", key=key
        )
    disk = disk or Disk()
    path = user_files.settings_file(environment, NAME)
    read_settings_file(environment, disk=disk)
    text = _text(disk, path)
    lines = [line for line in text.splitlines() if line.partition("=")[0].strip() != key]
    if value is not None:
        lines.append(f"{key} = {_format(KEYS[key](value))}")
    changed = "".join(f"{line}\n" for line in lines)
    before, after = _parse(text, path), _parse(changed, path)
    before.pop(key, None)
    now = after.pop(key, None)
    if before != after or (now is None) != (value is None):
        raise errors.InvalidInputError(
            f"{path} spreads a setting over several lines; edit it by hand"
        )
    replace_file(disk, path, changed.encode(), private=True)


def _text(disk: Disk, path: str) -> str:
    data = read_file(disk, path, limit=MAXIMUM_BYTES) or b""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise errors.InvalidInputError(f"{path} is not UTF-8", path=path) from None


def _parse(text: str, path: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # The parser's message quotes the text, so only the position is kept.
        place = str(error).rpartition("(at ")[2].rstrip(")")
        failure = errors.InvalidInputError(f"{path} is not TOML: {place}", path=path)
    raise failure


def _check_values(told: dict[str, object], path: str) -> Kept:
    kept: Kept = {}
    for key, said in told.items():
        if key not in KEYS:
            raise errors.InvalidInputError(f"{path} has an unknown key: {key}", path=path)
        if not isinstance(said, str | int):
            raise errors.InvalidInputError(f"{path}: {key} has an invalid type", path=path)
        text = str(said).lower() if isinstance(said, bool) else str(said)
        kept[key] = KEYS[key](text)
    return kept


def _api(text: str) -> str:
    if text not in APIS:
        raise errors.InvalidInputError(f"unknown api {text!r} (known: {', '.join(APIS)})")
    return text


def checked_url(text: str, name: str = "the model's address") -> str:
    """Return an address without a slash at the end.

    Raises:
        InvalidInputError: it is not http or https, or has more than a host and a path.
    """
    from urllib.parse import urlsplit

    wrong = ""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port, wrong = urlsplit(""), None, "is not valid"
    if not wrong and (parts.scheme not in ("http", "https") or not parts.hostname):
        wrong = "does not start with https:// and a host"
    elif parts.username or parts.password or parts.query or parts.fragment or port == 0:
        wrong = "has more than a host and a path; a key has its own setting"
    elif not (text.isascii() and text.isprintable()) or " " in text or len(text) > MAXIMUM_TEXT:
        wrong = "has characters that an address cannot have"
    if wrong:
        raise errors.InvalidInputError(f"{name} {wrong}")
    return text.rstrip("/")


def checked_key(text: str, name: str = "the model key") -> Secret:
    """Return a key that fits into a header.

    Raises:
        InvalidInputError: it does not; the message does not quote it.
    """
    text = text.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise errors.InvalidInputError(f"{name} has characters that a key cannot have")
    if len(text) > MAXIMUM_TEXT:
        raise errors.InvalidInputError(f"{name} is too long")
    return Secret(text)


def checked_name(text: str) -> str:
    """Return the name of a model.

    Raises:
        InvalidInputError: it is empty, too long or has control characters.
    """
    if not text.strip() or not text.isprintable() or len(text) > MAXIMUM_TEXT:
        raise errors.InvalidInputError(f"not a model name: {text[:80]!r}")
    return text.strip()


def _number(most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= most:
            raise errors.InvalidInputError(f"not a number from 1 to {most}: {text[:20]!r}")
        return int(text)

    return read


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise errors.InvalidInputError(f"expected true or false, not {text[:20]!r}")
    return text == "true"


def _format(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    text = value.reveal() if isinstance(value, Secret) else str(value)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


KEYS: dict[str, Callable[[str], str | int | bool | Secret]] = {
    "api": _api,
    "url": checked_url,
    "name": checked_name,
    "key": checked_key,
    "timeout": _number(86_400),
    "deadline": _number(86_400),
    "attempts": _number(20),
    "allow_http": _boolean,
}
"""The settings, each with the function that parses it."""
