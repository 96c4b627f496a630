"""The user's settings about secrets: a mode, and rules of their own.

    mode = "block"

    [[rule]]
    name = "acme-token"
    pattern = "acme_[a-z0-9]{32}"
    words = ["acme_"]

Rule: pure; text in, values out. A rule of the user's has a name and a pattern of RE2; the first group of the pattern is
the secret. Words without which nothing matches make it quick, and capital and small letters count.
"""

from __future__ import annotations

import tomllib

import re2

from trace_store import errors
from trace_store.frozen import value
from trace_store.secrets.engine import compiled
from trace_store.secrets.modes import MODES
from trace_store.secrets.rules import RULES
from trace_store.secrets.rules.rule import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAXIMUM_RULES = 1000
MAXIMUM_NAME = 40
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


@value
class Settings:
    """What the user settled.

    Attributes:
        mode: one of MODES; empty when nothing is said.
        rules: of the user's own.
    """

    mode: str = ""
    rules: tuple[Rule, ...] = ()


def read_settings(data: bytes, path: str) -> Settings:
    """Return the settings that a file holds.

    Raises:
        InvalidInputError: it is no TOML, or says something that cannot be; the message tells what.
    """
    try:
        told = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _wrong(path, f"is not TOML: {error}") from error
    unknown = sorted(set(told) - {"mode", "rule"})
    if unknown:
        raise _wrong(path, f"has an unknown key: {unknown[0]}")
    mode = told.get("mode", "")
    if mode and mode not in MODES:
        raise _wrong(path, f"knows no mode {mode!r}; there are {', '.join(MODES)}")
    rules = told.get("rule", [])
    if not isinstance(rules, list) or len(rules) > MAXIMUM_RULES:
        raise _wrong(path, f"`rule` is a list of at most {MAXIMUM_RULES} tables")
    found: list[Rule] = []
    for each in rules:
        found.append(_rule(each, path, {rule.name for rule in (*RULES, *found)}))
    return Settings(mode, tuple(found))


def _rule(told: Any, path: str, taken: set[str]) -> Rule:
    fields = told if isinstance(told, dict) else {}
    name, pattern, words = fields.get("name"), fields.get("pattern"), fields.get("words", [])
    if not isinstance(name, str) or not name or len(name) > MAXIMUM_NAME or set(name) - _LETTERS:
        raise _wrong(path, "a rule needs a name of small letters, digits and hyphens")
    if name in taken:
        raise _wrong(path, f"there is a rule {name} already")
    if not isinstance(pattern, str) or not pattern:
        raise _wrong(path, f"rule {name} needs a pattern")
    if not isinstance(words, list) or not all(isinstance(each, str) and each for each in words):
        raise _wrong(path, f"the words of rule {name} are a list of texts")
    try:
        if compiled(pattern).search(b"") is not None:
            raise _wrong(path, f"the pattern of rule {name} matches what is empty")
    except re2.error as error:
        raise _wrong(path, f"the pattern of rule {name} is none of RE2: {error}") from error
    trigger = "" if words else pattern
    return Rule(name, pattern, tuple(words), trigger=trigger)


def _wrong(path: str, what: str) -> errors.InvalidInputError:
    return errors.InvalidInputError(f"{path}: {what}", path=path)
