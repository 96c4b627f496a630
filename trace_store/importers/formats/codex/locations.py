"""Which files are rollouts, and which rollouts are a project's.

Rule: looks at the first lines of a file and no further.
"""

from __future__ import annotations

import os
import re
from typing import Any

from trace_store.environment import Environment
from trace_store.files import Disk
from trace_store.importers.file_head import first_records, is_below, read_head
from trace_store.importers.files import files_in
from trace_store.importers.formats.codex.items import CALLS, OUTPUTS

FOLDERS = ("sessions", "archived_sessions")
SUFFIXES = (".jsonl", ".jsonl.zst")
"""Codex compresses rollouts that are some days old."""
RECORDS = 5
"""So many records at the beginning tell what a file is, and where a session of early 2025 worked."""

_ENVELOPES = frozenset(
    {
        *("compacted", "event_msg", "inter_agent_communication_metadata", "response_item"),
        *("session_meta", "turn_context", "world_state"),
    }
)
_ITEMS = CALLS | OUTPUTS | {"message", "reasoning"}
_LONG_LINE = re.compile(rb'\{"timestamp":"[^"]*","type":"session_meta","payload":\{')
_WORKED_IN = re.compile(r"<cwd>([^<]+)</cwd>|Current working directory: (\S+)")


def recognises(head: bytes) -> bool:
    """Tell from the first bytes of a file whether it is a rollout."""
    if reads_document(head) or _LONG_LINE.match(head):
        return True
    records = first_records(head, RECORDS)
    return bool(records) and (_is_envelope(records[0]) or _is_bare(records))


def reads_document(head: bytes) -> bool:
    """Tell whether a file is a rollout of the first builds, which wrote one document."""
    start = head[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    return start[:1] == b"{" and b'"items"' in start and start[1:].lstrip().startswith(b'"session"')


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the rollouts of a project: those whose session began in its folder or below it."""
    if not environment.codex_dir:
        return []
    found: list[str] = []
    for folder in FOLDERS:
        for path in files_in(os.path.join(environment.codex_dir, folder), disk, SUFFIXES):
            if os.path.basename(path).startswith("rollout-"):
                records = first_records(read_head(disk, path), RECORDS)
                if is_below(_worked_in(records), project_dir):
                    found.append(path)
    return found


def _worked_in(records: list[dict[str, Any]]) -> str:
    """Return the folder that a session began in, as its first records tell it."""
    for record in records:
        payload = record.get("payload")
        if isinstance(payload, dict) and isinstance(payload.get("cwd"), str):
            return str(payload["cwd"])
        content = record.get("content")
        for block in content if isinstance(content, list) else ():
            text = block.get("text") if isinstance(block, dict) else None
            told = _WORKED_IN.search(text) if isinstance(text, str) else None
            if told is not None:
                return told[1] or told[2]
    return ""


def _is_envelope(record: dict[str, Any]) -> bool:
    kind = record.get("type")
    return isinstance(kind, str) and kind in _ENVELOPES and isinstance(record.get("payload"), dict)


def _is_bare(records: list[dict[str, Any]]) -> bool:
    """Tell whether records are those of builds that put items on lines of their own, behind a header."""
    first, *rest = records
    header = {"id", "timestamp"} <= first.keys() and not {"type", "role"} & first.keys()
    if not header:
        return "record_type" in first and not {"type", "role"} & first.keys()
    return (
        "instructions" in first
        or "git" in first
        or any("record_type" in record or _is_item(record.get("type")) for record in rest)
    )


def _is_item(kind: Any) -> bool:
    return isinstance(kind, str) and kind in _ITEMS
