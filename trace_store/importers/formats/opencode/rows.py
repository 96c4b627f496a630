"""Conversion of opencode database rows to the form of its `export`.

Invariant: pure, and never fails. Rows have the same columns in a database and in a dump.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trace_store.importers.json_records import checked, scan
from trace_store.importers.parts import time_of

Row = Mapping[str, Any]
Map = dict[str, Any]

_TIMES = ("created", "updated", "compacting", "archived")
_PLAIN = (
    *(("slug", "slug"), ("projectID", "project_id"), ("workspaceID", "workspace_id")),
    *(("directory", "directory"), ("path", "path"), ("parentID", "parent_id")),
    *(("title", "title"), ("version", "version"), ("agent", "agent")),
)
_IN_JSON = ("model", "revert", "permission")
_CHANGES = ("additions", "deletions", "files", "diffs")


def session_info(row: Row) -> Map:
    """Return a `session` row as an export's `info`, without nulls."""
    info: Map = {"id": row.get("id")}
    info.update((name, row[column]) for name, column in _PLAIN if row.get(column) is not None)
    info.update((name, value) for name in _IN_JSON if (value := decoded(row.get(name))) is not None)
    changes = {name: row.get(f"summary_{name}") for name in _CHANGES}
    if isinstance(changes["diffs"], str):
        changes["diffs"] = decoded(changes["diffs"])
    if any(value is not None for value in changes.values()):
        counts = {name: changes[name] or 0 for name in _CHANGES[:3]}
        diffs = {} if changes["diffs"] is None else {"diffs": changes["diffs"]}
        info["summary"] = {**counts, **diffs}
    if row.get("share_url") is not None:
        info["share"] = {"url": row["share_url"]}
    times = {name: row.get(f"time_{name}") for name in _TIMES}
    info["time"] = {name: value for name, value in times.items() if value is not None}
    return info


def message_info(row: Row) -> Map:
    """Return a `message` row as its `info`."""
    data = _object(row)
    if "time" not in data and row.get("time_created") is not None:
        data["time"] = {"created": row["time_created"]}
    return {**data, "id": row.get("id"), "sessionID": row.get("session_id")}


def part_of(row: Row, session: Any) -> Map:
    """Return a `part` row as in an export.

    Args:
        row: the row.
        session: id of its session, which not every version has in the row.
    """
    own_session = row.get("session_id")
    ids = {"id": row.get("id"), "sessionID": session if own_session is None else own_session}
    return {**_object(row), **ids, "messageID": row.get("message_id")}


def message_of_v2(row: Row) -> Map:
    """Return a `session_message` row of version 2 as an export's message."""
    data = _object(row)
    blocks = data.pop("content", None)
    text = data.pop("text", None)
    if not isinstance(blocks, list):
        blocks = []
    if isinstance(text, str):
        blocks = [{"type": "text", "text": text}, *blocks]
    model = data.get("model")
    if isinstance(model, dict):
        data.update(modelID=model.get("id"), providerID=model.get("providerID"))
    ids = {"id": row.get("id"), "sessionID": row.get("session_id"), "role": row.get("type")}
    if "time" not in data and row.get("time_created") is not None:
        data["time"] = {"created": row["time_created"]}
    parts = [_part_of_v2(block, f"{row.get('id')}_{n}", ids) for n, block in enumerate(blocks)]
    return {"info": {**data, **ids}, "parts": parts}


def _part_of_v2(block: Any, id_: str, ids: Map) -> Map:
    part = dict(block) if isinstance(block, dict) else {"type": "unknown", "data": block}
    if part.get("type") == "tool":
        part["callID"], part["tool"] = part.pop("id", None), part.pop("name", None)
    return {**part, "id": id_, "sessionID": ids["sessionID"], "messageID": ids["id"]}


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return rows in order of creation time, then id."""
    return sorted(
        rows, key=lambda row: (time_of(row.get("time_created")) or 0, str(row.get("id") or ""))
    )


def decoded(value: Any) -> Any:
    """Return the value of a JSON column, or None."""
    if not isinstance(value, str):
        return None
    try:
        result, end = scan(value, len(value) - len(value.lstrip()))
        return checked(result) if not value[end:].strip() else None
    except (ValueError, RecursionError):
        return None


def _object(row: Row) -> Map:
    data = decoded(row.get("data"))
    if isinstance(data, dict):
        return dict(data)
    return {} if row.get("data") is None else {"data": row["data"]}
