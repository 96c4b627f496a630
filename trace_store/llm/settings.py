"""Settings of the model: its name, address and key, and the user's file with them, `trace/model.toml`.

    api = "anthropic"
    name = "claude-sonnet-4-5"
    key = "…"

The environment overrides the user's file; a repository has no say. A key belongs to the address beside it: one in the
file to the address in the file, a vendor's variable to that vendor. It is sent only encrypted, unless the user allows
otherwise. A Secret shows its text only through `reveal`.

The file lies in the user's settings folder. Others must not be able to write to it; if it has a key, they must not be
able to read it. Changing a setting replaces its line only, so comments stay.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.frozen import field, value
from trace_store.disk.files import Disk, read_file, replace_file

Kept = dict[str, "str | int | bool | Secret"]

FILE_NAME = "model.toml"
MAXIMUM_BYTES = 1 << 16
MAXIMUM_TEXT = 2000
CHAT, RESPONSES, ANTHROPIC = "chat", "responses", "anthropic"
APIS = (CHAT, RESPONSES, ANTHROPIC)
_WRITABLE_BY_OTHERS, _READABLE_BY_OTHERS = 0o022, 0o044

MASK = "[key]"
_TELLING = 4
"""This many characters at either end identify a key, because servers quote parts of keys."""
_ENDS = " \t\r\n\"'`,;:()[]{}<>"

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"
VENDORS = {CHAT: OPENAI_URL, RESPONSES: OPENAI_URL, ANTHROPIC: ANTHROPIC_URL}
VENDOR_KEYS = {OPENAI_URL: "OPENAI_API_KEY", ANTHROPIC_URL: "ANTHROPIC_API_KEY"}
NAME, API, URL, KEY = "TRACE_MODEL", "TRACE_MODEL_API", "TRACE_MODEL_URL", "TRACE_MODEL_KEY"
TIMEOUT_SECONDS, DEADLINE_SECONDS, ATTEMPTS = 120, 900, 4
_OWN_HOSTS = ("localhost", "127.0.0.1", "::1")


class Secret:
    """A text that is never printed."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return f"Secret({'…' if self._text else ''})"

    def reveal(self) -> str:
        """Return the text."""
        return self._text


def masked(text: str, secret: Secret) -> str:
    """Return a text with every word masked that contains a secret or an end of it."""
    known = secret.reveal()
    if not known:
        return text
    text = text.replace(known, MASK)
    ends = (known[: _TELLING + 2], known[-_TELLING:])
    words = {word for word in _words(text) if any(end in word for end in ends)}
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, MASK)
    return text


def _words(text: str) -> list[str]:
    return text.translate(dict.fromkeys(map(ord, _ENDS), " ")).split(" ")


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
    path = environment.settings_file(FILE_NAME)
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
) -> bool:
    """Set one setting in the file, which is created if missing; None removes it.

    Return False if it has that value already.

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
    path = environment.settings_file(FILE_NAME)
    read_settings_file(environment, disk=disk)
    text = _text(disk, path)
    lines = [line for line in text.splitlines() if line.partition("=")[0].strip() != key]
    if value is not None:
        lines.append(f"{key} = {_format(KEYS[key](value))}")
    changed = "".join(f"{line}\n" for line in lines)
    before, after = _parse(text, path), _parse(changed, path)
    had, now = before.pop(key, None), after.pop(key, None)
    if before != after or (now is None) != (value is None):
        raise errors.InvalidInputError(
            f"{path} spreads a setting over several lines; edit it by hand"
        )
    if had == now:
        return False
    replace_file(disk, path, changed.encode(), private=True)
    return True


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


def _check_values(values: dict[str, object], path: str) -> Kept:
    kept: Kept = {}
    for key, said in values.items():
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


@value
class ModelSettings:
    """Where a model is and how to call it.

    Attributes:
        name: its name there.
        api: `chat` (OpenAI chat completions, which most servers support), `responses` (OpenAI) or `anthropic`.
        url: the base address, without a slash at the end.
        key: its key; empty if none is needed.
        key_from: where the key comes from, for display, or "".
        timeout: maximum seconds without data.
        deadline: maximum seconds in total, with waits and retries.
        attempts: maximum number of requests.
        proxy: the address of a proxy, or empty.
        certificates: the path of a file of certificates to trust, or "".
    """

    name: str
    api: str = CHAT
    url: str = OPENAI_URL
    key: Secret = field(default_factory=Secret)
    key_from: str = ""
    timeout: float = TIMEOUT_SECONDS
    deadline: float = DEADLINE_SECONDS
    attempts: int = ATTEMPTS
    proxy: Secret = field(default_factory=Secret)
    certificates: str = ""


def read_settings(
    environment: Environment | None = None, *, disk: Disk | None = None
) -> ModelSettings:
    """Return the settings of the user's model; without an environment, that of the process counts.

    Raises:
        StateError: no model is configured (`no-model`), a key is missing, a key would be sent to an address that it
            does not belong to or without encryption, or others can access the user's file.
        InvalidInputError: a setting is not valid.
        StorageError: the user's file cannot be read.
    """
    environment = environment or Environment.read()
    kept: dict[str, Any] = read_settings_file(environment, disk=disk)
    variables = environment.variables(NAME, API, URL, KEY, *VENDOR_KEYS.values())
    name = checked_name(variables[NAME]) if NAME in variables else kept.get("name", "")
    if not name:
        raise errors.StateError(
            "no model is configured in TRACE_MODEL or your settings", code=errors.ErrorCode.NO_MODEL
        )
    api = str(KEYS["api"](variables[API])) if API in variables else kept.get("api", CHAT)
    kept_url = kept.get("url", VENDORS[kept.get("api", CHAT)])
    # An api from the environment implies its vendor's address.
    url = checked_url(variables[URL]) if URL in variables else kept.get("url", VENDORS[api])
    key, key_from = _key(kept, kept_url, variables, url)
    if url in VENDOR_KEYS and not key:
        raise errors.StateError(
            f"{url} needs a key",
            code=errors.ErrorCode.NO_KEY,
            variable=VENDOR_KEYS[url],
        )
    if key and not kept.get("allow_http") and not is_private(url):
        raise errors.StateError(
            f"a key would be sent to {url} without encryption",
            code=errors.ErrorCode.UNENCRYPTED,
        )
    return ModelSettings(
        name=name,
        api=api,
        url=url,
        key=key,
        key_from=key_from,
        timeout=kept.get("timeout", TIMEOUT_SECONDS),
        deadline=kept.get("deadline", DEADLINE_SECONDS),
        attempts=kept.get("attempts", ATTEMPTS),
        proxy=proxy_for(environment, url),
        certificates=environment.variables("SSL_CERT_FILE").get("SSL_CERT_FILE", ""),
    )


def _key(
    kept: dict[str, Any], kept_url: str, variables: dict[str, str], url: str
) -> tuple[Secret, str]:
    """Return the key for an address, and where it comes from."""
    if KEY in variables:
        return checked_key(variables[KEY]), KEY
    if kept.get("key"):
        if url == kept_url:
            return kept["key"], "your settings"
        if url not in VENDOR_KEYS:
            raise errors.StateError(
                f"the key in your settings is for {kept_url}; it is not sent to {url}",
                code=errors.ErrorCode.OTHER_KEY,
            )
    variable = VENDOR_KEYS.get(url, "")
    return (checked_key(variables[variable]), variable) if variable in variables else (Secret(), "")


def is_private(url: str) -> bool:
    """Return True if a key may be sent to an address: encrypted, or on this machine."""
    return url.startswith("https://") or _host(url) in _OWN_HOSTS


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def proxy_for(environment: Environment, url: str) -> Secret:
    """Return the proxy for an address from the environment; it may contain a password."""
    host = _host(url)
    names = ("HTTPS_PROXY", "https_proxy") if url.startswith("https") else ("http_proxy",)
    variables = environment.variables(*names, "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
    excepted = ",".join((variables.get("NO_PROXY", ""), variables.get("no_proxy", ""))).split(",")
    ends = [each.strip().lstrip("*.").lower() for each in excepted if each.strip()]
    if host in _OWN_HOSTS or any(
        not end or host == end or host.endswith(f".{end}") for end in ends
    ):
        return Secret()
    found = next(
        (variables[name] for name in (*names, "ALL_PROXY", "all_proxy") if name in variables), ""
    )
    return Secret(found)
