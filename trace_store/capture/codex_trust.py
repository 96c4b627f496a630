"""Trust in hooks of Codex, which runs a hook only if its settings hold the hash of the hook.

    [hooks.state."/home/ada/.codex/hooks.json:session_start:0:0"]
    trusted_hash = "sha256:93e1a79e…"

Codex writes this when a person trusts the hook in `/hooks`. Rule: we write it only if the user asks for it by name, and
only for handlers of ours.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from functools import partial
from typing import Any

from trace_store.base.oid import sha256_hex
from trace_store.capture import edit_settings
from trace_store.capture.agents import AgentProgram
from trace_store.capture.settings_change import SettingsEntry
from trace_store.capture.settings_file import TRUST

CONFIG = "config.toml"
_HASH = "trusted_hash"
_DEFAULT_SECONDS = 600


def codex_hash(event: str, handler: Mapping[str, Any]) -> str:
    """Return the hash by which Codex trusts a handler: of its canonical JSON, with defaults filled in."""
    seconds = handler.get("timeout")
    identity: dict[str, Any] = {
        "type": "command",
        "command": handler.get("command", ""),
        "timeout": max(1, seconds if isinstance(seconds, int) else _DEFAULT_SECONDS),
        "async": bool(handler.get("async", False)),
    }
    if isinstance(handler.get("statusMessage"), str):
        identity["statusMessage"] = handler["statusMessage"]
    whole = {"event_name": _snake(event), "hooks": [identity]}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256_hex(text.encode())}"


def state_names(path: str, event: str, place: tuple[int, int]) -> list[str]:
    """Return the names by which Codex may keep the state of a handler: by its file, and by the target of a link."""
    at = f"{_snake(event)}:{place[0]}:{place[1]}"
    return [f"{each}:{at}" for each in dict.fromkeys((path, os.path.realpath(path)))]


def _snake(event: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).strip("_")


def wanted_trust(agent: AgentProgram, path: str, text: str) -> dict[str, str]:
    """Return the hash of each of our handlers in a settings file, by its names in the settings of Codex.

    Raises:
        SettingsError: the text is not valid.
    """
    return {
        name: codex_hash(event, handler)
        for event, listed in edit_settings.our_handlers(agent, text).items()
        for place, handler in listed
        for name in state_names(path, event, place)
    }


def trust_entry(wanted: Mapping[str, str], *, removes: bool) -> SettingsEntry:
    """Return the entry for the settings of Codex that holds some hashes, or removes them."""
    without = partial(_without, wanted)
    return SettingsEntry(
        TRUST,
        edit=without if removes else partial(_with, wanted),
        without=without,
        has_ours=lambda text: any(_hash_of(text, name) == each for name, each in wanted.items()),
        is_empty=lambda text: not text.strip(),
    )


def _with(wanted: Mapping[str, str], text: str) -> str:
    """Return settings with the hashes.

    Raises:
        ValueError: they are not TOML, or cannot be edited without changing something else.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    after = text
    for name, trusted in wanted.items():
        line = f'{_HASH} = "{trusted}"'
        if _state(after, name) is None:
            start = after if not after or after.endswith("\n") else after + newline
            header = f"[hooks.state.{json.dumps(name, ensure_ascii=False)}]"
            after = f"{start}{newline if start else ''}{header}{newline}{line}{newline}"
        elif _hash_of(after, name) != trusted:
            block = _block(after, name)
            whole = f"{block['head']}{line}{newline}{_without_hash(block['body'])}"
            after = after[: block.start()] + whole + after[block.end() :]
    return _checked(wanted, text, after)


def _without(wanted: Mapping[str, str], text: str) -> str:
    """Return settings without the hashes, and without tables that become empty; raises as `_with`."""
    after = text
    for name, trusted in wanted.items():
        if _hash_of(after, name) == trusted:
            block = _block(after, name)
            rest = _without_hash(block["body"])
            start = block.start("head") if rest.strip() else block.start()
            whole = f"{block['head']}{rest}" if rest.strip() else ""
            after = after[:start] + whole + after[block.end() :]
    return _checked(wanted, text, after)


def _block(text: str, name: str) -> re.Match[str]:
    """Return the table of a handler's state: an empty line before it, its head, and its body."""
    quoted = json.dumps(name, ensure_ascii=False), f"'{name}'"
    names = "|".join(map(re.escape, quoted))
    head = rf"(?P<head>^\[hooks\.state\.(?:{names})\][^\S\n]*\r?\n)"
    found = re.search(rf"(?:^\r?\n)?{head}(?P<body>(?:(?!\[).*(?:\n|\Z))*)", text, re.M)
    if found is None:
        raise ValueError(f"the state of {name} has another form than Codex writes")
    return found


def _without_hash(body: str) -> str:
    return re.sub(rf"^{_HASH}\s*=.*(?:\n|\Z)", "", body, flags=re.M)


def _hash_of(text: str, name: str) -> object:
    return (_state(text, name) or {}).get(_HASH)


def _state(text: str, name: str) -> dict[str, Any] | None:
    found = _states(tomllib.loads(text)).get(name)
    return found if isinstance(found, dict) else None


def _states(settings: Mapping[str, Any]) -> dict[str, Any]:
    found: Any = settings
    for key in ("hooks", "state"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _checked(wanted: Mapping[str, str], before: str, after: str) -> str:
    """Return the new text if only the hashes changed."""
    if _rest(wanted, before) != _rest(wanted, after):
        raise ValueError("it could not be edited without changing something else")
    return after


def _rest(wanted: Mapping[str, str], text: str) -> dict[str, Any]:
    """Return settings without the hashes and without tables that hold nothing else."""
    settings = tomllib.loads(text)
    states = _states(settings)
    for name in wanted:
        state = states.get(name)
        if isinstance(state, dict):
            state.pop(_HASH, None)
            if not state:
                del states[name]
    hooks = settings.get("hooks")
    if isinstance(hooks, dict):
        if hooks.get("state") == {}:
            del hooks["state"]
        if not hooks:
            del settings["hooks"]
    return settings
