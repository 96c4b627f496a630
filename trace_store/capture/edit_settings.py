"""Our hooks in the text of settings: added, updated and removed, one entry at a time.

An entry is ours if it runs our hook, wherever it is and whatever is beside it. New entries go last, because Codex
trusts hooks by their position. Each result is parsed and compared: only our entries may
differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from trace_store.capture import plugin
from trace_store.capture.agents import GROUPS, AgentProgram
from trace_store.capture.jsonc import JsonNode, JsonSyntaxError, SettingsText

HOOKS = "hooks"


class SettingsError(ValueError):
    """Settings that cannot be changed; the text says why."""


def with_hooks(agent: AgentProgram, text: str, command: str) -> str:
    """Return settings with our hooks, given the text of the file, which may be empty.

    Raises:
        SettingsError: they are not valid, or do not have the shape that the agent reads.
    """
    wanted = agent.handlers(command)
    before = text if text.strip() else f"{json.dumps(agent.empty, indent=2)}\n"
    after = before
    for event in _events_with_ours(agent, _document(agent, before)):
        if event not in wanted:
            after = _without(agent, after, event)
    for event, handler in wanted.items():
        after = _put(agent, after, event, handler)
    return _checked(agent, before, after)


def without_hooks(agent: AgentProgram, text: str) -> str:
    """Return settings without our hooks, and without lists that become empty; raises as `with_hooks`."""
    after = text
    for event in _events_with_ours(agent, _document(agent, text)):
        after = _without(agent, after, event)
    return _checked(agent, text, after)


def our_handlers(agent: AgentProgram, text: str) -> dict[str, list[tuple[tuple[int, int], Any]]]:
    """Return our handlers by event, each with its position: the group, and its place in it; raises as `with_hooks`."""
    if not text.strip():
        return {}
    document = _document(agent, text)
    return {
        event: [(place, node.plain()) for place, node in _ours(agent, document, event)]
        for event in _events_with_ours(agent, document)
    }


def plain_settings(agent: AgentProgram, text: str) -> dict[str, Any]:
    """Return settings as `json.loads` would; empty for an empty file; raises as `with_hooks`."""
    if not text.strip():
        return {}
    plain: dict[str, Any] = _document(agent, text).root.plain()
    return plain


def _document(agent: AgentProgram, text: str) -> SettingsText:
    """Parse settings, and check that hooks have the shape that we edit."""
    try:
        document = SettingsText(text, comments=agent.comments)
    except JsonSyntaxError as error:
        raise SettingsError(f"line {error.line}, column {error.column}: {error}") from error
    if document.root.kind != "object":
        raise SettingsError("it is not a JSON object")
    hooks = document.root.get(HOOKS)
    if hooks is not None and hooks.kind != "object":
        raise SettingsError('"hooks" is not an object')
    for each in hooks.members if hooks is not None else ():
        if each.node.kind != "list" and each.key in agent.events:
            raise SettingsError(f'"hooks.{each.key}" is not a list')
    return document


def _lists(document: SettingsText) -> Iterator[tuple[str, JsonNode]]:
    hooks = document.root.get(HOOKS)
    for each in hooks.members if hooks is not None else ():
        if each.node.kind == "list":
            yield each.key, each.node


def _events_with_ours(agent: AgentProgram, document: SettingsText) -> list[str]:
    return [event for event, _ in _lists(document) if any(_ours(agent, document, event))]


def _ours(
    agent: AgentProgram, document: SettingsText, event: str
) -> Iterator[tuple[tuple[int, int], JsonNode]]:
    """Yield our handlers of an event, each after its group and its place in the group."""
    listed = dict(_lists(document)).get(event)
    for number, each in enumerate(listed.members if listed is not None else ()):
        group = each.node.get(HOOKS) if agent.form == GROUPS else None
        if agent.form != GROUPS:
            handlers = [each.node]
        elif group is not None and group.kind == "list":
            handlers = [member.node for member in group.members]
        else:
            handlers = []
        for place, handler in enumerate(handlers):
            if agent.is_our_handler(handler.plain()):
                yield (number, place), handler


def _put(agent: AgentProgram, text: str, event: str, handler: Mapping[str, Any]) -> str:
    """Return the text with one handler of ours for an event: the first is updated, others are removed."""
    document = _document(agent, text)
    ours = [*_ours(agent, document, event)]
    if len(ours) > 1:
        text = _without(agent, text, event, keeps=1)
        document = _document(agent, text)
        ours = [*_ours(agent, document, event)]
    if ours:
        _, node = ours[0]
        return text if node.plain() == handler else document.replace(node, handler)
    entry = {HOOKS: [handler]} if agent.form == GROUPS else handler
    hooks = document.root.get(HOOKS)
    if hooks is None:
        return document.append(document.root, {event: [entry]}, HOOKS)
    listed = hooks.get(event)
    if listed is None:
        return document.append(hooks, [entry], event)
    return document.append(listed, entry)


def _without(agent: AgentProgram, text: str, event: str, *, keeps: int = 0) -> str:
    """Return the text without our handlers of an event, except for the first ones."""
    while True:
        document = _document(agent, text)
        ours = [*_ours(agent, document, event)]
        if len(ours) <= keeps:
            return text
        (group, place), _ = ours[-1]
        hooks = document.root.get(HOOKS)
        listed = hooks.get(event) if hooks is not None else None
        if hooks is None or listed is None:
            return text
        handlers = listed.members[group].node.get(HOOKS) if agent.form == GROUPS else None
        if handlers is not None and len(handlers.members) > 1:
            text = document.remove(handlers, place)
        elif len(listed.members) > 1:
            text = document.remove(listed, group)
        elif len(hooks.members) > 1:
            number = [each.key for each in hooks.members].index(event)
            text = document.remove(hooks, number)
        else:
            number = [each.key for each in document.root.members].index(HOOKS)
            text = document.remove(document.root, number)


def _checked(agent: AgentProgram, before: str, after: str) -> str:
    """Return the new text if only our entries changed."""
    if _foreign(agent, before) != _foreign(agent, after):
        raise SettingsError("it could not be edited without changing something else")
    return after


def _foreign(agent: AgentProgram, text: str) -> dict[str, Any]:
    """Return settings without our handlers and without empty lists of hooks."""
    plain: dict[str, Any] = _document(agent, text).root.plain()
    events = plain.get(HOOKS, {})
    for event, listed in [*events.items()]:
        if not isinstance(listed, list):
            continue
        kept = []
        for each in listed:
            if agent.form != GROUPS:
                kept += [] if agent.is_our_handler(each) else [each]
                continue
            inner = each.get(HOOKS) if isinstance(each, dict) else None
            others = [one for one in inner or () if not agent.is_our_handler(one)]
            if not isinstance(inner, list) or len(others) == len(inner):
                kept.append(each)
            elif others:
                kept.append({**each, HOOKS: others})
        events[event] = kept
        if not kept:
            del events[event]
    if HOOKS in plain and not events:
        del plain[HOOKS]
    return plain


def with_plugin(text: str, command: list[str]) -> str:
    """Return the plugin, given the text of its file, which may be empty; raises as `with_hooks`."""
    _check_plugin(text)
    return plugin.plugin_text(command)


def _check_plugin(text: str) -> None:
    if text and not plugin.is_plugin(text):
        raise SettingsError("it is another plugin")
    if text and plugin.is_edited(text):
        raise SettingsError("our plugin was edited by hand")


def without_plugin(text: str) -> str:
    """Return "" for a plugin of ours, and another one as it is; raises as `with_hooks`."""
    if not plugin.is_plugin(text):
        return text
    _check_plugin(text)
    return ""
