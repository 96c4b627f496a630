"""Claude Agent SDK: a session store; extra `claude-agent`.

    ClaudeAgentOptions(session_store=TraceSessionStore(repo))

A session is a record, and each of its subagents another one. An entry comes back as it was given; entries with a `uuid`
are stored once. The messages among them are the context of the record, after a compaction only those that remain. The
SDK is needed only for summaries.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.history.records import WARN, RecordDraft, RecordState
from trace_store.importers.formats.claude_code.messages import is_boundary, messages_of
from trace_store.integrations.framework_store import FrameworkStore
from trace_store.integrations.item_lists import (
    ItemLists,
    encode_json,
    finished,
    retried,
    write_lock,
)
from trace_store.repo.repository import Repo

PROGRAM = META = "claude-agent"
"""The folder of the records; and the field of a commit's metadata with the key of its session."""
SESSION = "claude-agent.session"
_MAIN, _SUBAGENTS = "main", "sub"
_ENTRIES, _SUMMARY = "entries", "summary"
_KNOWN_SESSIONS = 64


class _Known:
    """The uuids of the entries at a commit."""

    __slots__ = ("commit", "uuids")

    def __init__(self, commit: ObjectId | None, uuids: set[str]) -> None:
        self.commit = commit
        self.uuids = uuids


class TraceSessionStore:
    """Keeps sessions of the Claude Agent SDK in a repository.

    A key is `{"project_key": …, "session_id": …, "subpath": …}`, where only a subagent has a subpath. Threads and
    processes may append to one session: no entry is lost, and those of one call stay together.
    """

    def __init__(self, repo: Repo, *, secrets: str = WARN) -> None:
        """Open the store.

        Args:
            repo: the repository, which the caller closes.
            secrets: "warn" stores entries with secrets unchanged and says so once, "refuse" raises SecretFoundError,
                "off" does not look.
        """
        self._store = FrameworkStore(repo, PROGRAM, secrets=secrets)
        self._records = self._store.records
        self._lists = ItemLists(self._records, _ENTRIES)
        self._mutex = write_lock(repo)
        self._known: dict[str, _Known] = {}

    async def append(self, key: Mapping[str, str], entries: Sequence[Mapping[str, Any]]) -> None:
        """Append entries, except for those whose uuid is stored already."""
        if entries:
            await finished(self._append, key, entries)

    async def load(self, key: Mapping[str, str]) -> list[dict[str, Any]] | None:
        """Return all entries in order; None if nothing was ever appended."""
        return await asyncio.to_thread(self._load, key)

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """Return the sessions of a project, each with `session_id` and `mtime` in milliseconds."""
        return await asyncio.to_thread(self._sessions, project_key)

    async def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        """Return the SDK's summaries of the sessions of a project."""
        return await asyncio.to_thread(self._summaries, project_key)

    async def delete(self, key: Mapping[str, str]) -> None:
        """Delete a session with its subagents, or one subagent, and erase what only they hold."""
        await finished(self._delete, key)

    async def list_subkeys(self, key: Mapping[str, str]) -> list[str]:
        """Return the subpaths of a session."""
        return await asyncio.to_thread(self._subkeys, key)

    def ref(self, key: Mapping[str, str]) -> str:
        """Return the record of a session or subagent, for `repo.log`, `repo.compile` and `ref=`.

        Raises:
            InvalidInputError: the key is not valid.
        """
        project, session = _text(key, "project_key"), _text(key, "session_id")
        if "subpath" in key:
            subpath = _text(key, "subpath")
            return self._store.name(project, session, _SUBAGENTS, subpath)
        return self._store.name(project, session, _MAIN)

    def _append(self, key: Mapping[str, str], entries: Sequence[Mapping[str, Any]]) -> None:
        name, pieces = self.ref(key), [encode_json(entry) for entry in entries]
        with self._mutex:
            retried(lambda: self._append_to(name, key, entries, pieces))

    def _append_to(
        self,
        name: str,
        key: Mapping[str, str],
        entries: Sequence[Mapping[str, Any]],
        pieces: Sequence[bytes],
    ) -> None:
        state = self._store.state(name)
        uuids = self._uuids(name, state)
        seen: set[str] = set()
        fresh: list[tuple[Mapping[str, Any], bytes]] = []
        for entry, piece in zip(entries, pieces, strict=True):
            uuid = entry.get("uuid")
            if isinstance(uuid, str) and uuid:
                if uuid in uuids or uuid in seen:
                    continue
                seen.add(uuid)
            fresh.append((entry, piece))
        if not fresh:
            return
        tip, values = (None, {}) if state is None else (state.commit, state.values)
        draft = self._records.draft(name, expect=tip, values=values)
        meta = self._lists.fill(draft, state, [piece for _, piece in fresh])
        self._show(draft, tip, [entry for entry, _ in fresh], is_main="subpath" not in key)
        if "subpath" not in key:
            self._summarize(draft, state, key, [entry for entry, _ in fresh])
        said = {name: key[name] for name in ("project_key", "session_id", "subpath") if name in key}
        made = draft.write({SESSION: key["session_id"]}, meta={META: {**said, **meta}})
        uuids |= seen
        self._remember(name, _Known(made.commit, uuids))

    def _uuids(self, name: str, state: RecordState | None) -> set[str]:
        known, tip = self._known.get(name), None if state is None else state.commit
        if known is None or known.commit != tip:
            entries = map(json.loads, self._lists.pieces(state))
            found = {each for entry in entries if isinstance(each := entry.get("uuid"), str)}
            known = _Known(tip, found)
        return known.uuids

    def _remember(self, name: str, known: _Known) -> None:
        self._known.pop(name, None)
        self._known[name] = known
        if len(self._known) > _KNOWN_SESSIONS:
            del self._known[next(iter(self._known))]

    def _show(
        self,
        draft: RecordDraft,
        tip: ObjectId | None,
        entries: Iterable[Mapping[str, Any]],
        *,
        is_main: bool,
    ) -> None:
        """Make the context show the messages of new entries; a compaction hides those before it."""
        said: list[Mapping[str, Any]] = []
        for entry in entries:
            if is_boundary(entry):
                said.clear()
                if tip is not None:
                    context = self._store.repo.compile(tip)
                    if shown := [each.address for each in context.messages]:
                        draft.messages.remove(shown)
                    tip = None
            elif not (is_main and entry.get("isSidechain") is True):
                said.append(entry)
        if messages := messages_of(said):
            draft.messages.extend(messages)

    def _summarize(
        self,
        draft: RecordDraft,
        state: RecordState | None,
        key: Mapping[str, str],
        entries: Sequence[Mapping[str, Any]],
    ) -> None:
        """Set the summary of a session, which the SDK derives from the one before; none if the SDK is missing."""
        before = None if state is None else state.values.get(_SUMMARY)
        previous = None if before is None else json.loads(self._records.read(before))
        if previous is None and state is not None:
            entries = [*map(json.loads, self._lists.pieces(state)), *entries]
        made = _fold(previous, key, entries)
        if made is None:
            draft.values.pop(_SUMMARY, None)
        else:
            draft.set(_SUMMARY, "json", encode_json(made))

    def _load(self, key: Mapping[str, str]) -> list[dict[str, Any]] | None:
        state = self._store.state(self.ref(key))
        return None if state is None else [*map(json.loads, self._lists.pieces(state))]

    def _mains(self, project: str) -> list[tuple[RecordState, Mapping[str, Any], int]]:
        """Return the state, the key and the time of each session of a project."""
        found = []
        for name, tips in self._records.tips(
            self._store.name(_checked(project, "project_key")) + "/"
        ).items():
            if name.endswith(f"/{_MAIN}") and (said := self._said(tips[0])):
                time = self._records.commit(tips[0]).time
                found.append((self._records.state(tips[0]), said, time))
        return found

    def _said(self, tip: ObjectId) -> Mapping[str, Any]:
        """Return the key of a session, from its newest commit that is not a user's."""
        for _, commit in self._records.lines([tip]):
            if found := commit.meta.get(META):
                return dict(found)
        return {}

    def _sessions(self, project: str) -> list[dict[str, Any]]:
        return [
            {"session_id": said["session_id"], "mtime": time}
            for _, said, time in self._mains(project)
        ]

    def _summaries(self, project: str) -> list[dict[str, Any]]:
        found = []
        for state, said, time in self._mains(project):
            if (value := state.values.get(_SUMMARY)) is not None:
                made = json.loads(self._records.read(value))
            else:
                made = _fold(None, said, [*map(json.loads, self._lists.pieces(state))])
            if made is not None:
                found.append({**made, "mtime": time})
        return found

    def _delete(self, key: Mapping[str, str]) -> None:
        name = self.ref(key)
        with self._mutex:
            names = [name] if "subpath" in key else self._records.tips(name.removesuffix(_MAIN))
            self._records.delete(*names)
            for each in names:
                self._known.pop(each, None)
            self._lists.forget()

    def _subkeys(self, key: Mapping[str, str]) -> list[str]:
        main = self.ref({name: key[name] for name in ("project_key", "session_id") if name in key})
        prefix = main.removesuffix(_MAIN) + _SUBAGENTS + "/"
        said = [self._said(tips[0]) for tips in self._records.tips(prefix).values()]
        return [each["subpath"] for each in said if "subpath" in each]


def _text(key: Mapping[str, str], name: str) -> str:
    return _checked(key.get(name), name)


def _checked(text: object, name: str) -> str:
    if not isinstance(text, str) or not text:
        raise errors.InvalidInputError(
            f"{name} is a text that is not empty, not {text!r:.40}", argument=name
        )
    return text


def _fold(
    previous: Mapping[str, Any] | None, key: Mapping[str, str], entries: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return the SDK's summary of a session, or None without the SDK."""
    try:
        from claude_agent_sdk import fold_session_summary
    except ImportError:
        return None
    return dict(fold_session_summary(previous, key, entries))
