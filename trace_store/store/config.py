"""Repository configuration: the TOML file `.trace/config`.

    store_id = "5f0c…"
    format = 2
    requires = []
    default_branch = "main"
    tokenizer = "o200k_base"

Rule: the file may come from a stranger, so nothing in it is executed, names a file, or changes trust. Unknown settings
are kept when the file is rewritten. Unknown features in `requires` are refused by name.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.base import ident
from trace_store.disk.files import read_file, replace_file
from trace_store.disk.layout import FORMAT_VERSION, KNOWN_REQUIREMENTS, Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from trace_store.disk.files import Disk

    Value: TypeAlias = str | int | bool | list[str]

MAXIMUM_BYTES = 1 << 16
MAXIMUM_NESTING = 100
"""Dots allowed in a key: tomllib's parse time grows with the square of their number."""
DEFAULT_BRANCH = "main"
DEFAULT_TOKENIZER = "o200k_base"
AUTOMATIC_SETTING = "automatic_checkpoints"
CAPTURE_SETTING = "trajectory_capture"
TRIGGERS = ("merge", "rebase", "compress", "todos", "files", "tests", "topic", "tokens")
"""Triggers of automatic checkpoints."""
_FIXED = ("store_id", "format", "requires")
_BLANKS = " \t"
"""TOML's white space; Python's `strip()` removes more."""
_MAXIMUM_DIGITS = 18
"""A longer number is left to the full parser."""
_STORE_ID, _ID_LENGTH = frozenset("0123456789abcdef"), 32
TRASH_RETENTION, TRASH_COUNT = "trash_retention", "trash_count"
TRASH_SIZE, TRASH_KEEP = "trash_size", "trash_keep"
BY_HAND = "by hand"
KEPT = ("pinned", "checkpoints", "tags", "summaries")
"""Kinds of entries that can be exempt from the trash's retention rules."""
KEEP_NOTHING = "nothing"
_SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_MULTIPLIERS = {"k": 1_000, "m": 1_000_000}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class Config:
    """The settings of one repository."""

    def __init__(self, disk: Disk, path: str, text: str) -> None:
        """Parse and check a configuration.

        Raises:
            FormatError: the text is malformed.
            UnsupportedFormatError: another version wrote it; `required` lists the missing features.
        """
        self._disk = disk
        self._path = path
        self._text = text
        self._values = parse(text, path)
        self._check()

    @classmethod
    def load(cls, disk: Disk, path: str) -> Config:
        """Return the configuration in a file.

        Raises:
            RepositoryNotFoundError: the file does not exist.
        """
        data = read_file(disk, path, limit=MAXIMUM_BYTES)
        if data is None:
            raise errors.RepositoryNotFoundError("not a Trace repository", path=path)
        if b"<<<<<<< " in data and b">>>>>>> " in data:
            what = "the configuration has unresolved git merge conflicts"
            raise errors.FormatError(what, path=path, code=errors.ErrorCode.CONFIG_CONFLICT)
        try:
            # git may have converted line ends, which changes no value.
            return cls(disk, path, data.decode().replace("\r\n", "\n"))
        except UnicodeDecodeError as error:
            raise errors.FormatError(
                "the configuration is not UTF-8", path=path, code=errors.ErrorCode.CORRUPT_CONFIG
            ) from error
        except errors.UnsupportedFormatError:
            raise
        except errors.FormatError as error:
            error.code = errors.ErrorCode.CORRUPT_CONFIG
            raise

    @property
    def store_id(self) -> str:
        """The random id that the repository got at `init`."""
        return str(self._values.get("store_id", ""))

    @property
    def default_branch(self) -> str:
        """The branch that an absent HEAD points to (short name)."""
        return str(self._values.get("default_branch", DEFAULT_BRANCH))

    @property
    def tokenizer(self) -> str:
        """The encoding used to count tokens."""
        return str(self._values.get("tokenizer", DEFAULT_TOKENIZER))

    @property
    def budget(self) -> int | None:
        """The token budget of a context, or None."""
        value = self._values.get("budget")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def get(self, key: str) -> Value | None:
        """Return a setting, known or not; None if it is absent and has no default."""
        if key in self._values:
            return self._values[key]
        return {"default_branch": DEFAULT_BRANCH, "tokenizer": DEFAULT_TOKENIZER}.get(key)

    def items(self) -> list[tuple[str, Value]]:
        """Return the settings in the file, sorted by key."""
        return sorted(self._values.items())

    def set(self, key: str, value: object) -> bool:
        """Change one setting and write the file; None removes it. Return False if it has that value already.

        Raises:
            InvalidInputError: the key is unknown or fixed, or the value is invalid.
        """
        check = KNOWN_KEYS.get(key)
        if key in _FIXED or check is None:
            known = ", ".join(sorted(KNOWN_KEYS))
            raise errors.InvalidInputError(
                f"unknown or read-only setting {key!r} (known: {known})", key=key
            )
        checked = None if value is None else check(value)
        if self._values.get(key) == checked:
            return False
        text = _with_line(
            self._text, key, None if checked is None else f"{key} = {format_value(checked)}"
        )
        values = parse(text, self._path)
        if values.get(key) != checked:
            raise errors.FormatError(
                f"cannot change {key!r} in this configuration", path=self._path
            )
        scratch = Layout(os.path.dirname(self._path)).tmp_dir
        replace_file(self._disk, self._path, text.encode(), scratch=scratch)
        self._text, self._values = text, values
        return True

    def _check(self) -> None:
        version = self._values.get("format")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise errors.FormatError("the configuration has no format version", path=self._path)
        if version != FORMAT_VERSION:
            age = "newer" if version > FORMAT_VERSION else "older"
            raise errors.UnsupportedFormatError(
                f"the repository has format {version}, {age} than format {FORMAT_VERSION}, "
                "the only one this version of Trace reads",
                path=self._path,
                required=(f"format {version}",),
            )
        requires = self._values.get("requires", [])
        if not isinstance(requires, list):
            raise errors.FormatError(
                "`requires` in the configuration is not a list", path=self._path
            )
        unknown = tuple(name for name in requires if name not in KNOWN_REQUIREMENTS)
        if unknown:
            raise errors.UnsupportedFormatError(
                f"the repository requires unknown features: {', '.join(unknown)}",
                path=self._path,
                required=unknown,
            )


def new_config(store_id: str) -> str:
    """Return the text of a new repository's configuration."""
    return (
        f'store_id = "{store_id}"\nformat = {FORMAT_VERSION}\nrequires = []\n'
        f'default_branch = "{DEFAULT_BRANCH}"\ntokenizer = "{DEFAULT_TOKENIZER}"\n'
    )


def recovered_config(data: bytes, store_id: str) -> tuple[str, list[str]]:
    """Rebuild a damaged configuration; return its text and the keys recovered.

    Each line is parsed by itself. Missing or invalid settings get their defaults; the first of two values wins.

    Args:
        data: the bytes of the damaged file; empty if it is missing.
        store_id: the store id to use if the old one is unreadable.
    """
    values: dict[str, Value] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        try:
            parsed = {} if "\ufffd" in line else parse(line.strip(_BLANKS), "")
        except errors.FormatError:
            continue
        for key, value in parsed.items():
            if _is_bare(key) and _is_possible(key, value):
                values.setdefault(key, value)
    fresh = parse(new_config(store_id), "")
    text = "".join(f"{key} = {format_value(value)}\n" for key, value in {**fresh, **values}.items())
    return text, sorted(values)


def _is_possible(key: str, value: Value) -> bool:
    """Return True if the value is valid for the key; a damaged line may hold anything."""
    if key == "store_id":
        return isinstance(value, str) and _STORE_ID.issuperset(value) and len(value) == _ID_LENGTH
    if key == "format":
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if key == "requires":
        return isinstance(value, list)
    if key in KNOWN_KEYS:
        try:
            return KNOWN_KEYS[key](value) == value
        except errors.InvalidInputError:
            return False
    return True


def parse(text: str, path: str) -> dict[str, Value]:
    """Return the settings of a configuration; tables become dotted keys.

    Raises:
        FormatError: the text is not TOML.
    """
    values: dict[str, Value] = {}
    for line in text.split("\n"):
        stripped = line.strip(_BLANKS)
        if not stripped or (stripped.startswith("#") and stripped.isprintable()):
            continue
        key, separator, rest = stripped.partition("=")
        key = key.strip(_BLANKS)
        simple = (
            _simple(rest.strip(_BLANKS))
            if separator and _is_bare(key) and key not in values
            else None
        )
        if simple is None:
            return _parse_toml(text, path)
        values[key] = simple
    return values


def _is_bare(key: str) -> bool:
    return bool(key) and key.isascii() and key.replace("_", "").replace("-", "").isalnum()


def _simple(text: str) -> Value | None:
    """Parse a value as this module writes it; None if it needs a full parser."""
    if text in ("true", "false"):
        return text == "true"
    if text.isascii() and text.isdecimal() and (text == "0" or text[0] != "0"):
        return int(text) if len(text) <= _MAXIMUM_DIGITS else None
    if len(text) >= 2 and text[0] == text[-1] == '"':
        inner = text[1:-1]
        return inner if inner.isprintable() and "\\" not in inner and '"' not in inner else None
    if text == "[]":
        return []
    return None


def _parse_toml(text: str, path: str) -> dict[str, Value]:
    # tomllib takes longer to import than a plumbing command runs; only unusual files need it.
    import tomllib

    if any(line.partition("=")[0].count(".") > MAXIMUM_NESTING for line in text.split("\n")):
        raise errors.FormatError("the configuration is nested too deeply", path=path)
    values: dict[str, Value] = {}
    try:
        _flatten(tomllib.loads(text), "", values)
    except ValueError as error:  # also raised for integers with too many digits
        raise errors.FormatError(f"the configuration is not TOML: {error}", path=path) from error
    except RecursionError as error:
        raise errors.FormatError("the configuration is nested too deeply", path=path) from error
    return values


def _flatten(table: dict[str, Any], prefix: str, values: dict[str, Value]) -> None:
    for key, value in table.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{key}.", values)
        elif isinstance(value, str | int) or (
            isinstance(value, list) and all(isinstance(item, str) for item in value)
        ):
            values[prefix + key] = value
        else:
            values[prefix + key] = str(value)


def _with_line(text: str, key: str, line: str | None) -> str:
    """Replace, remove, or add one top-level line.

    A new line goes before the first table.
    """
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    end = next((i for i, known in enumerate(lines) if known.lstrip().startswith("[")), len(lines))
    place = next((i for i in range(end) if lines[i].partition("=")[0].strip() == key), None)
    if place is not None:
        lines[place : place + 1] = [] if line is None else [line]
    elif line is not None:
        lines.insert(end, line)
    return "\n".join(lines) + "\n"


def format_value(value: Value) -> str:
    """Return a value as the configuration writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(format_value(item) for item in value) + "]"
    return '"' + "".join(_ESCAPES.get(c, c) for c in value) + '"'


def _check_branch(value: object) -> Value:
    text = _check_text(value)
    if not _is_branch(text):
        raise errors.InvalidInputError(f"not a branch name: {text[:100]!r}", value=text)
    return text


def _is_branch(text: str) -> bool:
    # A cheap check: the refs floor, which decides, checks the name again when the store is opened.
    return (
        text.isascii() and all(p and p[0] not in "-." for p in text.split("/")) and " " not in text
    )


def _check_text(value: object) -> str:
    if not isinstance(value, str) or not value or len(value) > 200 or not value.isprintable():
        raise errors.InvalidInputError("a setting must be one line of text", value=value)
    return value


def parse_token_count(value: object) -> int:
    """Parse a token count such as 200000, 200_000, 200k or 1.5m.

    Raises:
        InvalidInputError: it is not one.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str):
        text = value.strip().lower().replace("_", "").replace(",", "")
        factor = _MULTIPLIERS.get(text[-1:], 1)
        number, dot, fraction = (text[:-1] if factor > 1 else text).partition(".")
        digits = number + fraction
        if digits.isascii() and digits.isdecimal() and (factor > 1 or not dot):
            scale: int = 10 ** len(fraction)
            tokens, rest = divmod(int(digits) * factor, scale)
            if tokens > 0 and not rest:
                return tokens
    raise errors.InvalidInputError(f"not a token count: {value!r}", value=value)


def _check_triggers(value: object) -> Value:
    text = str(value).replace(" ", "")
    if text in ("on", "off") or (text and all(each in TRIGGERS for each in text.split(","))):
        return text
    raise errors.InvalidInputError(
        f"automatic checkpoints are on, off, or some of {', '.join(TRIGGERS)}", value=value
    )


def _check_switch(value: object) -> Value:
    if value in ("on", "off"):
        return str(value)
    raise errors.InvalidInputError(f"neither on nor off: {str(value)[:40]!r}", value=value)


def _check_retention(value: object) -> Value:
    """Check a trash retention: `by hand`, a duration, or a number of sessions."""
    text = " ".join(str(value).lower().split())
    number, _, unit = text.partition(" ")
    if text == BY_HAND or (ident.is_count(number) and unit in ("session", "sessions")):
        return text
    if isinstance(value, str) and ident.parse_duration(text) is not None:
        return text
    raise errors.InvalidInputError(
        f"not a retention: {str(value)[:80]!r}; it is `by hand`, or like `72 hours`, `30 days` or `5 sessions`",
        value=value,
    )


def _check_count(value: object) -> Value:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and ident.is_count(value.strip()):
        return ident.count_of(value.strip())
    raise errors.InvalidInputError(f"not a number: {str(value)[:80]!r}", value=value)


def _check_size(value: object) -> Value:
    """Parse a size such as 500000, 512k, 100M or 2G, in bytes."""
    text = str(value).strip().lower().removesuffix("b").removesuffix("i")
    factor = _SIZES.get(text[-1:], 1)
    digits = text[:-1].strip() if factor > 1 else text
    if isinstance(value, int | str) and not isinstance(value, bool) and ident.is_count(digits):
        return ident.count_of(digits) * factor
    raise errors.InvalidInputError(f"not a size in bytes: {str(value)[:80]!r}", value=value)


def _check_keep(value: object) -> Value:
    """Check a list such as `pinned, tags`; `nothing` is the empty list."""
    names = str(value).lower().replace(",", " ").split()
    names = [] if names == [KEEP_NOTHING] else names
    unknown = [name for name in names if name not in KEPT]
    if not isinstance(value, str) or unknown or not value.strip():
        wrong = unknown[0] if unknown else str(value)
        raise errors.InvalidInputError(
            f"not something to keep: {wrong[:80]!r}; there are {', '.join(KEPT)} and {KEEP_NOTHING}",
            value=value,
        )
    return ", ".join(name for name in KEPT if name in names) or KEEP_NOTHING


KNOWN_KEYS: Mapping[str, Callable[[object], Value]] = {
    "automatic_checkpoint_days": _check_count,
    "automatic_checkpoint_limit": _check_count,
    "automatic_checkpoint_tokens": parse_token_count,
    AUTOMATIC_SETTING: _check_triggers,
    "budget": parse_token_count,
    "default_branch": _check_branch,
    "tokenizer": _check_text,
    CAPTURE_SETTING: _check_switch,
    TRASH_COUNT: _check_count,
    TRASH_KEEP: _check_keep,
    TRASH_RETENTION: _check_retention,
    TRASH_SIZE: _check_size,
}
"""The settings that can be changed, each with the function that checks its value."""
