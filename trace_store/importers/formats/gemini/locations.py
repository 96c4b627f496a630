"""Detection and location of Gemini CLI chats.

Invariant: reads only the head of a chat, folder names, and notes about the owner of a folder.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

from trace_store.environment import Environment
from trace_store.errors import StorageError
from trace_store.files import Disk, read_file
from trace_store.importers.files import files_in
from trace_store.importers.sniff import first_records, is_below
from trace_store.oid import sha256_hex

MAXIMUM_NOTE_BYTES = 1 << 20
RECORDS = 8
"""Records that detect a file without a header."""

_OWNER = ".project_root"
_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
_OPENS = re.compile(rb'\{\s*"sessionId"\s*:\s*"')
_LISTS = re.compile(rb'"messages"\s*:\s*\[')


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a chat."""
    if reads_document(head):
        return True
    records = first_records(head, RECORDS)
    return bool(records) and _begins_chat(records[0]) and any(map(_is_own, records))


def reads_document(head: bytes) -> bool:
    """Return True if a chat is one document, as in builds before line-by-line files."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    listed = _LISTS.search(start)
    if _OPENS.match(start) is None or listed is None:
        return False
    # Messages may contain these words as well.
    before = start[: listed.start()]
    if b'"projectHash"' not in before and b'"startTime"' not in before:
        return False
    # A complete first line with more after it means one record a line.
    return not first_records(start.partition(b"\n")[0], 1) or not start.partition(b"\n")[2].strip()


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return a project's chats and those of its subagents.

    Each project has a folder. Older builds name it by the hash of the project's path; later ones use a short name,
    and store the path in the folder and in a list of projects.
    """
    if not environment.gemini_dir:
        return []
    root = os.path.join(environment.gemini_dir, "tmp")
    paths = {os.path.abspath(project_dir), os.path.realpath(project_dir)}
    names = {sha256_hex(os.fsencode(path)) for path in paths}
    names |= _short_names(environment.gemini_dir, project_dir, disk)
    paths_found: list[str] = []
    for name in disk.scan(root)[0]:
        owner = _note(os.path.join(root, name, _OWNER), disk).strip()
        if is_below(owner, project_dir) if owner else name in names:
            paths_found += files_in(os.path.join(root, name, "chats"), disk, (".json", ".jsonl"))
    # A resumed chat continues in a new file with all of the old content.
    return [path for path in paths_found if path + "l" not in paths_found]


def _short_names(folder: str, project_dir: str, disk: Disk) -> set[str]:
    """Return the short folder names of a project."""
    try:
        known = json.loads(_note(os.path.join(folder, "projects.json"), disk) or "{}")
    except (ValueError, RecursionError):
        return set()
    projects = known.get("projects") if isinstance(known, dict) else None
    if not isinstance(projects, dict):
        return set()
    return {
        name
        for path, name in projects.items()
        if isinstance(name, str) and is_below(path, project_dir)
    }


def _note(path: str, disk: Disk) -> str:
    try:
        data = read_file(disk, path, limit=MAXIMUM_NOTE_BYTES)
    except StorageError:
        return ""
    return (data or b"").decode("utf-8", "replace")


def _begins_chat(record: dict[str, Any]) -> bool:
    if isinstance(record.get("$rewindTo"), str) or isinstance(record.get("$set"), dict):
        return True
    if isinstance(record.get("sessionId"), str):
        known = "projectHash" in record or {"startTime", "lastUpdated"} <= record.keys()
        return known and not {"type", "uuid"} & record.keys()
    return _is_message(record)


def _is_own(record: dict[str, Any]) -> bool:
    """Return True if only Gemini CLI writes such a record."""
    if _is_message(record):
        return bool(record["type"] == "gemini")
    return _begins_chat(record)


def _is_message(record: dict[str, Any]) -> bool:
    kind = record.get("type")
    return (
        {"id", "timestamp", "content"} <= record.keys()
        and isinstance(kind, str)
        and kind in _TYPES
        and not {"uuid", "sessionId", "message"} & record.keys()
    )
