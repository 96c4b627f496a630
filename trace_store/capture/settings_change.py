"""Changes of settings files of agents: an entry is added or taken out, and the difference is returned.

Rule: parse or refuse. A file that cannot be parsed stays as it is, and the error says why. A change that was made
already does nothing. Removal restores the original bytes if nothing else changed since; otherwise it removes only our
entry.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.base.oid import sha256_hex
from trace_store.capture.jsonc import JsonSyntaxError
from trace_store.capture.settings_file import Original, SettingsFile, forget_original, refused
from trace_store.importers.discovery import project_folder

CREATED, UPDATED, UNCHANGED = "created", "updated", "unchanged"
REMOVED, REFUSED = "removed", "refused"
_ATTEMPTS = 5


@value
class SettingsChange:
    """The change of one file.

    Attributes:
        agent: the agent.
        path: the file.
        kind: what our entry in it is for: `hooks`, `mcp` or `trust`.
        action: `created`, `updated`, `unchanged`, `removed` (our entry), or `refused`.
        deleted: whether the file was deleted, because it held nothing else.
        difference: the difference in the format of `diff -u`, or "".
        link: where the file is, if it is a link; else "".
        error: why it was refused, or None.
    """

    JSON = "link? difference? error?"

    agent: str
    path: str
    kind: str
    action: str
    deleted: bool = False
    difference: str = ""
    link: str = ""
    error: errors.TraceError | None = None


@value
class SettingsEntry:
    """Our entry in a settings file. Each function takes the text of the file, and raises ValueError if it is not valid.

    Attributes:
        kind: what it is for; the original of the file is kept for each kind.
        edit: returns the text with the entry, or without it.
        without: returns the text without the entry.
        has_ours: returns whether the text has the entry.
        is_empty: returns whether a text without the entry holds nothing else, so that its file can go.
    """

    kind: str
    edit: Callable[[str], str]
    without: Callable[[str], str]
    has_ours: Callable[[str], bool]
    is_empty: Callable[[str], bool]


class SettingsOwner(Protocol):
    """An agent that has settings."""

    @property
    def name(self) -> str: ...

    def file(self, environment: Environment, scope: str, top: str) -> str:
        """Return the path of its settings."""
        ...


Owner = TypeVar("Owner", bound=SettingsOwner)


def change_all(
    environment: Environment,
    agents: Sequence[Owner],
    entry: Callable[[Owner], SettingsEntry],
    *,
    folder: str,
    scope: str,
    dry_run: bool,
) -> list[SettingsChange]:
    """Change the settings of several agents, and return what was done to each file.

    Args:
        environment: locates the settings.
        agents: the agents.
        entry: returns the entry to add to the settings of an agent, or to remove.
        folder: a folder of the project.
        scope: whose settings.
        dry_run: only return what would be done.
    """
    top = project_folder(folder)
    places = [(each, each.file(environment, scope, top)) for each in agents]
    return [
        change_settings(environment, each.name, path, entry(each), dry_run=dry_run)
        for each, path in places
    ]


def change_settings(
    environment: Environment, agent: str, path: str, entry: SettingsEntry, *, dry_run: bool = False
) -> SettingsChange:
    """Change a settings file, and retry if another program wins the race.

    A StateError or StorageError becomes a refusal, so that the files of other agents are still changed.

    Args:
        environment: locates the kept originals.
        agent: the name of the agent.
        path: the file.
        entry: the entry to add or remove.
        dry_run: only return what would be done.
    """
    try:
        for _ in range(_ATTEMPTS):
            done = _changed(environment, agent, path, entry, dry_run=dry_run)
            if done is not None:
                return done
        raise refused(path, "another program keeps changing it")
    except (errors.StateError, errors.StorageError) as error:
        return SettingsChange(agent, path, entry.kind, REFUSED, error=error)


def _changed(
    environment: Environment, agent: str, path: str, entry: SettingsEntry, *, dry_run: bool
) -> SettingsChange | None:
    """Edit a file; return None if another program changed it meanwhile."""
    file = SettingsFile.read(path)
    before, text = file.data, file.text()
    try:
        new = entry.edit(text)
        is_removal = not entry.has_ours(new)
        cleaned = entry.without(text) if entry.has_ours(text) else None
        is_empty = is_removal and entry.is_empty(new)
    except JsonSyntaxError as error:
        raise refused(path, f"line {error.line}, column {error.column}: {error}") from error
    except ValueError as error:
        raise refused(path, str(error)) from error
    link = file.real if file.is_link else ""
    if new == text:
        if is_removal and not dry_run:
            forget_original(environment, entry.kind, path)  # our entry was removed by hand
        return SettingsChange(agent, path, entry.kind, UNCHANGED, link=link)
    original = Original.load(environment, entry.kind, path)
    is_ours = original is not None and original.is_unchanged(before)
    after: bytes | None = None if is_empty else file.encode(new)
    if is_removal and original is not None and is_ours:
        after = original.before
    action = REMOVED if is_removal else UPDATED if before is not None else CREATED
    shown = difference(path, before, after)
    change = SettingsChange(agent, path, entry.kind, action, after is None, shown, link)
    file.check_writable()
    if dry_run:
        return change
    if not is_removal and after is not None:
        # It is saved before the change: without it, the file could not be restored.
        clean = before
        if original is not None and is_ours:
            clean = original.before
        elif cleaned is not None:
            clean = None if entry.is_empty(cleaned) else file.encode(cleaned)
        Original(clean, sha256_hex(after)).save(environment, entry.kind, path)
    if not file.write(after):
        return None
    if is_removal:
        forget_original(environment, entry.kind, path)
    return change


def difference(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return the difference of two versions of a file, as `diff -u` shows it; None is no file."""
    old, new = ((data or b"").decode("utf-8", "replace").splitlines() for data in (before, after))
    names = (path if before is not None else os.devnull, path if after is not None else os.devnull)
    return "\n".join(difflib.unified_diff(old, new, *names, lineterm=""))
