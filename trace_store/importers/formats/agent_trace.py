"""Agent Trace: records of the lines that a model wrote.

A record becomes a commit without messages, linked to the files and code commits that it names. A record that trail
wrote for a trajectory names that session. The lines themselves stay in the raw record.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.history.summary import EVENT_KEY
from trace_store.importers.contract import Skip
from trace_store.importers.convert import storable_name, time_of
from trace_store.importers.input_files import InputLine, files_in
from trace_store.importers.json_records import ROOT, read_document, records_of
from trace_store.importers.sniff import file_shape
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Event, Turn, TurnReader
from trace_store.transcripts.sources import Record

NAME = "agent-trace"
SUFFIXES = (".trace.json", ".jsonl")
FOLDER = ".agent-trace"
TRAIL_FOLDERS = (".trajectories", os.path.join(".agentworkforce", "trajectories"))
"""Where the program trail writes a record beside each trajectory."""
MAXIMUM_LINKS = 10_000
LONGEST_MENTION_BYTES = 4096
ATTRIBUTION = "attribution"


class AgentTraceReader(TurnReader):
    """Reader of Agent Trace records."""

    AGENT = NAME

    def records(self, line: InputLine) -> Iterator[Record | Skip]:
        if line.whole and (line.data or b"").lstrip()[:1] == b"[":
            document = read_document(line, ROOT)
            yield from document.lists.get(ROOT, [])
            if document.damage is not None:
                yield document.damage
            return
        for record in records_of(line):
            if line.whole and isinstance(record, Record):
                ids = (record.data.get("trajectory"), record.data.get("id"))
                names = (name for each in ids if (name := storable_name(each)))
                self.state["session"] = next(names, "")
            yield record

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        files = _dicts(data.get("files"))
        if not files:
            return
        tool = data.get("tool")
        tool = tool if isinstance(tool, dict) else {}
        yield Turn(
            (),
            time=time_of(data.get("timestamp")),
            author=storable_name(tool.get("name")),
            meta={EVENT_KEY: ATTRIBUTION, **_totals(files)},
            links=_storable(_links_of(data, files)),
        )

    def label(self, record: Record) -> str:
        return ATTRIBUTION if _dicts(record.data.get("files")) else "untyped"


def _links_of(data: Mapping[str, Any], files: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    yield "trajectory", data.get("trajectory")
    vcs = data.get("vcs")
    yield "code-commit", vcs.get("revision") if isinstance(vcs, dict) else None
    for file in files:
        for conversation in _dicts(file.get("conversations")):
            yield "conversation", conversation.get("url")
            for part in _dicts(conversation.get("ranges")):
                yield "code-commit", part.get("revision")
    for file in files:
        yield "file", file.get("path")


def _storable(links: Iterable[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Return storable links without duplicates, up to the limit of a commit."""
    kept = ((relation, each) for relation, each in links if _is_mention(each))
    return tuple(dict.fromkeys(kept))[:MAXIMUM_LINKS]


def _is_mention(value: Any) -> bool:
    if not isinstance(value, str) or not value:
        return False
    try:
        return len(value.encode()) <= LONGEST_MENTION_BYTES
    except UnicodeEncodeError:
        return False


def _totals(files: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the number of files and lines in a record, and their authors."""
    lines = 0
    kinds: dict[str, None] = {}
    models: dict[str, None] = {}
    for conversation in (c for file in files for c in _dicts(file.get("conversations"))):
        ranges = _dicts(conversation.get("ranges"))
        lines += sum(map(_length, ranges))
        for held in (conversation, *ranges):
            contributor = held.get("contributor")
            if isinstance(contributor, dict):
                kinds[storable_name(contributor.get("type"))] = None
                model = contributor.get("model_id") or contributor.get("model")
                models[storable_name(model)] = None
    authors = {"contributors": [k for k in kinds if k], "models": [m for m in models if m]}
    return {"files": len(files), "lines": lines, **{k: v for k, v in authors.items() if v}}


def _length(part: Mapping[str, Any]) -> int:
    start, end = part.get("start_line"), part.get("end_line")
    if type(start) is not int or type(end) is not int or not 0 < start <= end < 1 << 40:
        return 0
    return end - start + 1


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are an Agent Trace record."""
    for form in file_shape(head).values[:1]:
        files = _dicts(form.get("files"))
        return bool(files) and "path" in files[0] and "conversations" in files[0]
    return False


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the records in a project's own folder and in trail's."""
    paths = files_in(os.path.join(project_dir, FOLDER), disk, SUFFIXES)
    for name in TRAIL_FOLDERS:
        paths += files_in(os.path.join(project_dir, name), disk, SUFFIXES[:1])
    return paths


FORMAT = TurnFormat(
    NAME, SUFFIXES, recognises, AgentTraceReader, lambda head: file_shape(head).is_document, finds
)
