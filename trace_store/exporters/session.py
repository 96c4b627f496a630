"""Sessions, read from a store to be written.

Rule: reads, never writes, but for the indexes that compiling keeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from trace_store import revision as revisions
from trace_store.context.compiled import CompiledContext
from trace_store.context.compiler import ContextCompiler
from trace_store.context.compiling import compile
from trace_store.errors import (
    RevisionNotFoundError,
)
from trace_store.exporters.contract import Below, ExportSession, Facts
from trace_store.exporters.turns import chain_of, is_shown, read_turns
from trace_store.objects.commit import Commit
from trace_store.oid import ObjectId
from trace_store.refs import BRANCHES
from trace_store.revision import SESSIONS
from trace_store.store import Store
from trace_store.transcripts.sources import SOURCE_KEY, records_left

FACT_COMMITS = 64
"""Commits with records that are looked at for a session's facts."""

_PATHS: dict[str, tuple[tuple[str, ...], ...]] = {
    "session": (("sessionId",), ("payload", "session_id"), ("payload", "id"), ("info", "id")),
    "cwd": (("cwd",), ("payload", "cwd"), ("info", "directory"), ("info", "path", "cwd")),
    "version": (("version",), ("payload", "cli_version"), ("info", "version")),
    "branch": (("gitBranch",), ("payload", "git", "branch"), ("git", "branch")),
}
_TITLE = (("customTitle",), ("aiTitle",), ("info", "title"))
"""Where the records of agent programs say it."""


def read_session(
    store: Store,
    revision: str = "HEAD",
    *,
    at: str = "",
    model: str = "",
    hidden: bool = False,
    contexts: ContextCompiler | None = None,
) -> ExportSession:
    """Return what a branch, a commit or a session compiles to, with what its commits know.

    Args:
        store: where from.
        revision: what names the commit; or a session's id, or the beginning of one that no other has, by itself or
            behind `<format>/`.
        at: another revision, or a time, as `compiling.compile` takes it.
        model: the model to count tokens for.
        hidden: whether the turns hold what the context hides too: removed, replaced and skipped messages.
        contexts: the compiler of the store, where one is open.

    Raises:
        RevisionNotFoundError: there is no such commit or session.
        AmbiguousRevisionError: several sessions, or objects, begin like this; `.candidates` holds them.
        UnbornBranchError: the branch has no commit yet.
        ObjectNotFoundError, CorruptObjectError: the history is not whole.
    """
    contexts = ContextCompiler(store) if contexts is None else contexts
    ref = find_branch(store, revision)
    revisions.resolve_commit(store, revision)
    context = compile(contexts, revision, at=at, model=model)
    if not isinstance(context, CompiledContext) or context.commit is None:
        raise RevisionNotFoundError(f"{revision} has no context", revision=revision)
    turns = tuple(read_turns(contexts, context, hidden=hidden))
    format_, id_, thread = session_name(ref) or ("", ref.removeprefix(BRANCHES), "")
    return ExportSession(
        id=id_ or context.commit.short(),
        format=format_,
        thread=thread,
        ref=ref,
        commit=context.commit,
        turns=turns,
        context=context,
        model=next((t.message.model for t in reversed(turns) if t.message.model), ""),
        below=tuple(_below(store, ref)) if ref else (),
        hidden_count=sum(1 for e in contexts.fold(context.commit).entries if not is_shown(e)),
        reader=_Reader(store, contexts, context.commit, model, hidden),
    )


def find_branch(store: Store, text: str) -> str:
    """Return the full name of the branch that a revision starts from, or of the session with this id; else "".

    Raises:
        AmbiguousRevisionError: several sessions begin like this.
    """
    base = text[: _base_length(text)]
    if base in ("HEAD", "@"):
        return store.refs.head().ref or ""
    if not base:
        return ""
    ref = revisions.branch_of(store, base)
    return ref if ref is not None and ref.startswith(BRANCHES) else ""


def _base_length(text: str) -> int:
    """Return where the suffixes of a revision (`~2`, `^`, `@{1}`) begin."""
    ends = (text.find(mark) for mark in ("~", "^", "@{"))
    return min((end for end in ends if end >= 0), default=len(text))


def session_name(ref: str) -> tuple[str, str, str] | None:
    """Return (format, id, thread) of the branch of a session; None for any other."""
    if not ref.startswith(SESSIONS):
        return None
    format_, _, rest = ref.removeprefix(SESSIONS).partition("/")
    id_, _, thread = rest.partition("/")
    return (format_, id_, thread) if id_ else None


def _below(store: Store, ref: str) -> Iterator[Below]:
    if session_name(ref) is None:
        return
    for name, oid in store.refs.iterate(ref + "/"):
        kind, _, rest = name.removeprefix(ref + "/").partition("/")
        if rest and "/" not in rest:
            yield Below(kind, rest, name, oid)


class _Reader:
    """Reads the records of a session when they are asked for."""

    __slots__ = ("_contexts", "_hidden", "_model", "_store", "_tip")

    def __init__(
        self, store: Store, contexts: ContextCompiler, tip: ObjectId, model: str, hidden: bool
    ) -> None:
        self._store = store
        self._hidden = hidden
        self._contexts = contexts
        self._tip = tip
        self._model = model

    def records(self, commit: ObjectId) -> list[bytes]:
        return records_left(self._contexts.read_commit(commit), self._store.objects.read)

    def session(self, ref: str) -> ExportSession:
        return read_session(
            self._store,
            ref,
            model=self._model,
            hidden=self._hidden,
            contexts=self._contexts,
        )

    def is_branch(self, session: str) -> bool:
        """Return True if a session with this id has a branch of its own."""
        names = (session_name(ref) for ref, _ in self._store.refs.iterate(SESSIONS))
        return any(named is not None and named[1] == session for named in names)

    def facts(self) -> Facts:
        commits = map(self._contexts.read_commit, chain_of(self._contexts, self._tip))
        kept = [commit for commit in commits if SOURCE_KEY in commit.meta]  # newest first
        found = dict.fromkeys(_PATHS, "")
        for record in self._objects(islice(reversed(kept), FACT_COMMITS)):
            for name, paths in _PATHS.items():
                found[name] = found[name] or _first(record, paths)
            if all(found.values()):
                break
        # Titles are written again and again; the latest counts.
        latest = self._objects(islice(kept, FACT_COMMITS))
        title = next((title for record in latest if (title := _first(record, _TITLE))), "")
        return Facts(title=title, **found)

    def _objects(self, commits: Iterable[Commit]) -> Iterator[Mapping[str, Any]]:
        for commit in commits:
            for raw in records_left(commit, self._store.objects.read):
                try:
                    value = json.loads(raw)
                except (ValueError, RecursionError):
                    continue
                if isinstance(value, dict):
                    yield value


def _first(record: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> str:
    """Return the first text that stands at one of the paths, or ""."""
    for path in paths:
        value: Any = record
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and value:
            return value
    return ""
