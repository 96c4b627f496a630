"""The user's settings for secrets: a mode, and additional rules.

    mode = "block"

    [[rule]]
    name = "acme-token"
    pattern = "acme_[a-z0-9]{32}"
    words = ["acme_"]

A rule has a name and an RE2 pattern, whose first group is the secret. Without one of its words a text is not searched,
which is faster; case matters.
"""

from __future__ import annotations

import tomllib
from typing import Any

import re2

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.secrets import MODES
from trace_store.secrets.engine import compiled
from trace_store.secrets.rules import RULES
from trace_store.secrets.rules.rule import Rule

MAXIMUM_RULES = 1000
MAXIMUM_NAME = 40
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


@value
class Settings:
    """The settings.

    Attributes:
        mode: one of MODES, or "".
        rules: the user's own rules.
    """

    mode: str = ""
    rules: tuple[Rule, ...] = ()


def read_settings(data: bytes, path: str) -> Settings:
    """Return the settings in a file.

    Raises:
        InvalidInputError: it is not TOML, or has an invalid value.
    """
    try:
        settings = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _invalid(path, f"is not TOML: {error}") from error
    unknown = sorted(set(settings) - {"mode", "rule"})
    if unknown:
        raise _invalid(path, f"has an unknown key: {unknown[0]}")
    mode = settings.get("mode", "")
    if mode and mode not in MODES:
        raise _invalid(path, f"has an unknown mode {mode!r}; expected one of {', '.join(MODES)}")
    rules = settings.get("rule", [])
    if not isinstance(rules, list) or len(rules) > MAXIMUM_RULES:
        raise _invalid(path, f"`rule` must be a list of at most {MAXIMUM_RULES} tables")
    found: list[Rule] = []
    for each in rules:
        found.append(_rule(each, path, {rule.name for rule in (*RULES, *found)}))
    return Settings(mode, tuple(found))


def _rule(table: Any, path: str, taken: set[str]) -> Rule:
    fields = table if isinstance(table, dict) else {}
    name, pattern, words = fields.get("name"), fields.get("pattern"), fields.get("words", [])
    if not isinstance(name, str) or not name or len(name) > MAXIMUM_NAME or set(name) - _LETTERS:
        raise _invalid(path, "a rule needs a name of lower-case letters, digits and hyphens")
    if name in taken:
        raise _invalid(path, f"rule {name} exists already")
    if not isinstance(pattern, str) or not pattern:
        raise _invalid(path, f"rule {name} needs a pattern")
    if not isinstance(words, list) or not all(isinstance(each, str) and each for each in words):
        raise _invalid(path, f"the words of rule {name} must be a list of strings")
    try:
        if compiled(pattern).search(b"") is not None:
            raise _invalid(path, f"the pattern of rule {name} matches the empty string")
    except re2.error as error:
        raise _invalid(
            path, f"the pattern of rule {name} is not a valid RE2 pattern: {error}"
        ) from error
    trigger = "" if words else pattern
    return Rule(name, pattern, tuple(words), trigger=trigger)


def _invalid(path: str, what: str) -> errors.InvalidInputError:
    return errors.InvalidInputError(f"{path}: {what}", path=path)
