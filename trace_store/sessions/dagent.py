"""Companion files of dagent's chats: type, task, state, description, context and summary of a session.

    session_ID.json               the session and the names of its files
    context_ID.json               the project
    agent-description_ID.json     the role
    checkpoint_ID.json            the summary of deleted messages (memory_ID.json in later builds)

They are committed to the branch of the imported chat, or to a new branch if there is no chat. Unchanged files are
skipped. Damaged files are reported, and the others are used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store import errors, history
from trace_store.base.frozen import replace
from trace_store.base.oid import digest
from trace_store.contracts.ref_names import SESSIONS
from trace_store.disk.files import Disk, read_file
from trace_store.history.draft import Draft
from trace_store.importers.contract import Skip
from trace_store.importers.convert import ref_component
from trace_store.importers.formats.dagent import CHAT, NAME
from trace_store.importers.report import BranchReport, FileReport
from trace_store.objects.message import Message
from trace_store.sessions import facts as names
from trace_store.sessions.requests import CONTEXT, DESCRIPTION, INSTRUCTION, SUMMARY
from trace_store.writer import Writer

SESSION = "session_"
"""File name prefix of a session, before its id."""
COMPANIONS = (SESSION, "context_", "agent-description_", "checkpoint_", "memory_")
"""File name prefixes of companion files."""
SOURCE = f"{names.PREFIX}dagent"
"""Fact: the hash of the files at the last import."""
IMPORT = "import"
_ARCHIVED = "archived"
_SECTIONS = (
    ("Completed", "completed"),
    ("In progress", "inProgress"),
    ("Pending", "pending"),
    ("Blockers", "blockers"),
    ("Decisions", "decisions"),
    ("Critical", "critical"),
    ("Important", "important"),
    ("Minor", "minor"),
)
_PROJECT = (
    ("Feature", "featureName"),
    ("Goal", "featureGoal"),
    ("Task", "taskTitle"),
    ("Overview", "dagSummary"),
    ("Depends on", "dependencies"),
    ("Needed by", "dependents"),
    ("Structure", "projectStructure"),
    ("Rules of the project", "claudeMd"),
    ("About the project", "projectMd"),
    ("Recent commits", "recentCommits"),
    ("Attachments", "attachments"),
)
"""(title, key) of the parts of a context that become a message; `projectRoot` is a local path, so it is left out."""


def session_files(disk: Disk, paths: Iterable[str]) -> Iterator[str]:
    """Yield the session file of each chat or companion file once, if it exists."""
    seen: set[str] = set()
    for path in paths:
        folder, name = os.path.split(path)
        stem = name.removesuffix(".json").partition("_")[2]
        if not stem or not name.startswith((CHAT, *COMPANIONS)):
            continue
        found = os.path.join(folder, f"{SESSION}{stem}.json")
        if found not in seen and disk.exists(found):
            seen.add(found)
            yield found


def migrate(writer: Writer, files: Iterable[str]) -> list[FileReport]:
    """Commit companion files to the branches of their sessions; return a report for each session file.

    Args:
        writer: the repository.
        files: session files, from `session_files`.
    """
    return [_migrated(writer, Disk(), path) for path in files]


def without_companions(reports: Sequence[FileReport]) -> list[FileReport]:
    """Return the reports without those of companion files."""
    return [
        each
        for each in reports
        if each.format or not os.path.basename(each.path).startswith(COMPANIONS)
    ]


class _Companions:
    """The files of one session."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._folder, name = os.path.split(path)
        self._id = name.removeprefix(SESSION).removesuffix(".json")
        self.data: list[bytes] = []
        self.skips: list[Skip] = []
        self.session = self._read(name)
        given = self.session.get("files")
        self._named: Mapping[str, Any] = given if isinstance(given, dict) else {}
        self.id = self.session.get("id") if isinstance(self.session.get("id"), str) else self._id

    def read(self, key: str, prefix: str) -> dict[str, Any]:
        """Return a companion file; empty if it is missing."""
        named = self._named.get(key)
        name = os.path.basename(named) if isinstance(named, str) and named else ""
        for each in dict.fromkeys((name, f"{prefix}{self._id}.json")):
            if each and self._disk.exists(os.path.join(self._folder, each)):
                return self._read(each)
        return {}

    def _read(self, name: str) -> dict[str, Any]:
        data = read_file(self._disk, os.path.join(self._folder, name)) or b""
        self.data.append(data)
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            self.skips.append(Skip(1, "not-json", f"{name}: not a whole JSON document"))
            return {}
        return value if isinstance(value, dict) else {}


def _migrated(writer: Writer, disk: Disk, path: str) -> FileReport:
    try:
        files = _Companions(disk, path)
    except errors.StorageError as error:
        return FileReport(path, NAME, error=error)
    session, project = files.session, files.read("context", "context_")
    role = files.read("agentDescription", "agent-description_")
    summary = files.read("checkpoint", "checkpoint_") or files.read("memory", "memory_")
    ref = f"{SESSIONS}{NAME}/{ref_component(str(files.id))}"
    report = FileReport(
        path, NAME, session=str(files.id), size=len(files.data[0]), skips=tuple(files.skips)
    )
    mark = digest(b"\0".join(files.data)).hex()
    there = writer.on(ref)
    tip = there.store.refs.head().oid
    if history.facts.branch_facts(there).get(SOURCE) == mark and tip is not None:
        return replace(report, skipped="unchanged", branches=(BranchReport(ref, tip),))
    draft = Draft(there, author=IMPORT)
    draft.configure(meta={SOURCE: mark, **_facts(session, project)})
    added = _draft_messages(draft, there, tip is not None, role, project, summary)
    made = history.commit.write(
        draft, message="dagent: description, context and summary", reason=IMPORT
    )
    return replace(report, commits=1, messages=added, branches=(BranchReport(ref, made.oid),))


def _facts(session: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, str]:
    closed = session.get("status") == _ARCHIVED
    given = {
        names.TYPE: session.get("agentType"),
        names.FEATURE: project.get("featureName") or session.get("featureId"),
        names.TASK: session.get("taskId") or project.get("taskId"),
        names.STATE: session.get("taskState") or project.get("taskState"),
    }
    found = {name: text for name, text in given.items() if isinstance(text, str) and text}
    return {**found, names.CLOSED: _ARCHIVED if closed else ""}


def _draft_messages(
    draft: Draft,
    writer: Writer,
    exists: bool,
    role: Mapping[str, Any],
    project: Mapping[str, Any],
    summary: Mapping[str, Any],
) -> int:
    """Insert or update the description, context and summary messages; return the number of new ones."""
    texts = {
        DESCRIPTION: "\n\n".join(_lines(role, ("roleInstructions", "toolInstructions"))),
        CONTEXT: _sections(project, _PROJECT),
        SUMMARY: _summary(summary),
    }
    shown = list(writer.contexts.compile().messages) if exists else []
    there = {each.name: each for each in shown if each.name in texts}
    new = []
    for name, text in texts.items():
        if name in there:
            if text and there[name].text != text:
                draft.edit(there[name].address, text)
        elif text:
            kind = SUMMARY if name == SUMMARY else INSTRUCTION
            role_ = "user" if name == SUMMARY else "system"
            new.append(draft.append(Message(role_, text, kind=kind, name=name)))
    if new and shown:
        draft.move(new, after=None)
    return len(new)


def _lines(data: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    return [data[key] for key in keys if isinstance(data.get(key), str) and data[key]]


def _summary(data: Mapping[str, Any]) -> str:
    given = data.get("summary")
    text = _sections(given if isinstance(given, dict) else {}, _SECTIONS)
    info = data.get("compactionInfo")
    count = info.get("messagesCompacted") if isinstance(info, dict) else None
    head = f"Summary of {count:,} earlier messages:" if type(count) is int else "Summary:"
    return f"{head}\n\n{text}" if text else ""


def _sections(data: Mapping[str, Any], wanted: Sequence[tuple[str, str]]) -> str:
    """Return the texts and lists of some keys as Markdown."""
    found: list[str] = []
    for title, key in wanted:
        given = data.get(key)
        if isinstance(given, str) and given.strip():
            found.append(f"{title}: {given.strip()}")
        elif isinstance(given, list) and given:
            items = [each if isinstance(each, str) else json.dumps(each) for each in given]
            found.append("\n".join([f"{title}:", *(f"- {each}" for each in items)]))
        elif isinstance(given, dict) and given:
            found.append(f"{title}: {json.dumps(given, ensure_ascii=False)}")
    return "\n\n".join(found)
