"""Detection and location of Codex rollouts.

Invariant: reads only the first lines of a file.
"""

from __future__ import annotations

import os
import re
from typing import Any

from trace_store.environment import Environment
from trace_store.files import Disk
from trace_store.importers.files import files_in
from trace_store.importers.formats.codex.rollouts import CALLS, OUTPUTS
from trace_store.importers.sniff import first_records, is_below, read_head

FOLDERS = ("sessions", "archived_sessions")
SUFFIXES = (".jsonl", ".jsonl.zst")
"""Codex compresses rollouts after some days."""
RECORDS = 5
"""Records to read; enough to detect the format and the folder of a session of early 2025."""

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
    """Return True if the first bytes are a rollout."""
    if reads_document(head) or _LONG_LINE.match(head):
        return True
    records = first_records(head, RECORDS)
    return bool(records) and (_is_envelope(records[0]) or _is_bare(records))


def reads_document(head: bytes) -> bool:
    """Return True if a file is a rollout of the first builds, one JSON document."""
    start = head[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    return start[:1] == b"{" and b'"items"' in start and start[1:].lstrip().startswith(b'"session"')


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the rollouts whose session started in a project's folder or below."""
    if not environment.codex_dir:
        return []
    paths: list[str] = []
    for folder in FOLDERS:
        for path in files_in(os.path.join(environment.codex_dir, folder), disk, SUFFIXES):
            if os.path.basename(path).startswith("rollout-"):
                records = first_records(read_head(disk, path), RECORDS)
                if is_below(_worked_in(records), project_dir):
                    paths.append(path)
    return paths


def _worked_in(records: list[dict[str, Any]]) -> str:
    """Return the folder where a session started, from its first records."""
    for record in records:
        payload = record.get("payload")
        if isinstance(payload, dict) and isinstance(payload.get("cwd"), str):
            return str(payload["cwd"])
        content = record.get("content")
        for block in content if isinstance(content, list) else ():
            text = block.get("text") if isinstance(block, dict) else None
            match = _WORKED_IN.search(text) if isinstance(text, str) else None
            if match is not None:
                return match[1] or match[2]
    return ""


def _is_envelope(record: dict[str, Any]) -> bool:
    kind = record.get("type")
    return isinstance(kind, str) and kind in _ENVELOPES and isinstance(record.get("payload"), dict)


def _is_bare(records: list[dict[str, Any]]) -> bool:
    """Return True for records of builds that write bare items after a header."""
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
