"""The sessions of a repository, each with what people know it by.

Rule: every field is derived from the branch and cached in `cache/sessions` under the branch's tip. A listing reads only
the sessions that changed. The file can be deleted at any time.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from trace_store.context.compiler import ContextCompiler
from trace_store.errors import (
    AmbiguousRevisionError,
    ErrorCode,
    RevisionNotFoundError,
    StorageError,
    TraceError,
)
from trace_store.exporters.contract import AGENTS, REWINDS
from trace_store.exporters.overview import beginning, is_prompt
from trace_store.exporters.session import read_session, session_name
from trace_store.files import read_file, replace_file
from trace_store.frozen import value
from trace_store.importers.names import branch_of, session_of
from trace_store.oid import ObjectId
from trace_store.refs.names import BRANCHES
from trace_store.revision import resolve_commit
from trace_store.sessions.titles import read_title
from trace_store.store.handle import Store

VERSION = 3
PROMPT_CHARACTERS = 200
_FILE = "sessions"

Progress = Callable[[int, int], None]


@value
class SessionInfo:
    """One session.

    Attributes:
        ref: the full name of its branch.
        tip: where it ends.
        agent: the program that it is of, such as `claude-code`; "" for a branch that was not imported.
        session: its id; the branch's name where there is none, and for a branch that was made from a session.
        title: what the user called it, else the agent; "" when nobody did.
        prompt: the beginning of the first prompt.
        folder: where the agent worked; "" when that is not known.
        began, ended: milliseconds since the epoch, UTC; 0 when that is not known.
        message_count: messages of its context.
        hidden_count: messages that the context does not show, as before a compaction.
        token_count: their tokens, as a provider reported them last where one did.
        token_source: how far to trust that.
        estimated_token_count: their tokens as they are counted here.
        agents: how many subagents it has.
        rewinds: how many lines were left by going back.
    """

    ref: str
    tip: ObjectId
    agent: str = ""
    session: str = ""
    title: str = ""
    prompt: str = ""
    folder: str = ""
    began: int = 0
    ended: int = 0
    message_count: int = 0
    hidden_count: int = 0
    token_count: int = 0
    token_source: str = ""
    estimated_token_count: int = 0
    agents: int = 0
    rewinds: int = 0

    @property
    def name(self) -> str:
        """What it is called: its title, else its first prompt, else its id."""
        return self.title or self.prompt or self.session

    def as_map(self) -> dict[str, Any]:
        """Return it as values that JSON knows; times are null when they are not known."""
        return {
            "ref": self.ref,
            "tip": str(self.tip),
            "agent": self.agent or None,
            "session": self.session,
            "title": self.title or None,
            "prompt": self.prompt or None,
            "folder": self.folder or None,
            "began": self.began or None,
            "ended": self.ended or None,
            "message_count": self.message_count,
            "hidden_count": self.hidden_count,
            "token_count": self.token_count,
            "token_source": self.token_source,
            "estimated_token_count": self.estimated_token_count,
            "agents": self.agents,
            "rewinds": self.rewinds,
        }


def list_sessions(store: Store, *, progress: Progress | None = None) -> list[SessionInfo]:
    """Return the sessions of agents and the other branches, those that ended last first; what is damaged is left out.

    Args:
        store: where.
        progress: told how many were looked at, and of how many.

    Raises:
        StorageError: the disk refuses to be read.
    """
    tips = dict(store.refs.iterate(BRANCHES))
    below: Counter[tuple[str, str]] = Counter()
    own: list[str] = []
    for ref in tips:
        named = session_name(ref)
        if named is not None and named[2]:
            kind = named[2].partition("/")[0]
            below[ref.removesuffix(f"/{named[2]}"), kind] += 1
        else:
            own.append(ref)
    known = _remembered(store)
    contexts = ContextCompiler(store)
    found: list[SessionInfo] = []
    fresh: dict[str, list[Any]] = {}
    for count, ref in enumerate(own):
        kept = known.get(ref)
        if kept is None or kept[0] != str(tips[ref]):
            try:
                kept = [str(tips[ref]), *_told(store, contexts, ref)]
            except StorageError:
                raise
            except TraceError:
                continue
        fresh[ref] = kept
        _, agent, session, title, *rest = kept
        title = (read_title(store, agent, session) if agent else "") or title
        counts = below[ref, AGENTS], below[ref, REWINDS]
        info = (agent, session, title, *rest, *counts)
        found.append(SessionInfo(ref, tips[ref], *info))
        if progress is not None:
            progress(count + 1, len(own))
    if fresh != known:
        _remember(store, fresh)
    return sorted(found, key=lambda each: (-each.ended, each.ref))


def known_names(store: Store) -> dict[str, str]:
    """Return by branch what sessions were called when they were last listed: the agent's title, or the first prompt."""
    found = ((ref, kept[3] or kept[4]) for ref, kept in _remembered(store).items())
    return {ref: name for ref, name in found if name}


def session_named(sessions: Iterable[SessionInfo], text: str) -> SessionInfo:
    """Return the session with an id, a branch's name or a title, or the only one whose id, title or prompt begins so.

    Raises:
        RevisionNotFoundError: there is none.
        AmbiguousRevisionError: there are several.
    """
    sessions = list(sessions)
    tests: tuple[Callable[[SessionInfo], bool], ...] = (
        lambda each: text in (each.session, each.ref, each.ref.removeprefix(BRANCHES), each.title),
        lambda each: (
            each.session.startswith(text) or f"{each.agent}/{each.session}".startswith(text)
        ),
        lambda each: each.name.casefold().startswith(text.casefold()),
    )
    for test in tests:
        found = [each for each in sessions if test(each)]
        if len(found) == 1:
            return found[0]
        if found:
            raise AmbiguousRevisionError(
                f"{len(found)} sessions are called {text!r}",
                revision=text,
                candidates=tuple(each.ref for each in found),
            )
    raise RevisionNotFoundError(
        f"there is no session {text!r}", revision=text, code=ErrorCode.SESSION_NOT_FOUND
    )


def revision_of(store: Store, text: str) -> str:
    """Return a revision as it is, or the branch of the session that `session_named` finds.

    Raises:
        RevisionNotFoundError: it is neither.
        AmbiguousRevisionError: several begin so.
    """
    try:
        resolve_commit(store, text)
    except RevisionNotFoundError as error:
        try:
            return session_named(list_sessions(store), text).ref
        except RevisionNotFoundError:
            raise error from None
    return text


def _told(store: Store, contexts: ContextCompiler, ref: str) -> list[Any]:
    """Return agent, id, title, prompt, folder, times, messages, tokens and their source of a session."""
    session = read_session(store, ref, contexts=contexts)
    facts = session.facts()
    found = session_of(store, ref) if facts.session else None
    known = found or (session.format, session.id, "")
    if found and session_name(ref) is None and branch_of(store, f"{found[0]}/{found[1]}") != ref:
        known = found[0], "", ""  # the session's id belongs to another branch
    prompt = next((turn.message.text for turn in session.turns if is_prompt(turn)), "")
    times = [turn.time for turn in session.turns if turn.time > 0]
    context = session.context
    return [
        *(known[0], known[1] or ref.removeprefix(BRANCHES)),
        *(facts.title, beginning(prompt, PROMPT_CHARACTERS), facts.cwd),
        *(min(times, default=0), max(times, default=0)),
        *(len(session.turns), session.hidden_count, context.token_count, context.token_source),
        context.estimated_token_count,
    ]


def _remembered(store: Store) -> dict[str, list[Any]]:
    if not store.local:
        return {}
    try:
        data = read_file(store.disk, os.path.join(store.layout.cache_dir, _FILE))
        saved = json.loads(data or b"{}")
    except (StorageError, ValueError):
        return {}
    if not isinstance(saved, dict) or saved.get("version") != VERSION:
        return {}
    found: dict[str, list[Any]] = saved["sessions"]
    return found


def _remember(store: Store, found: dict[str, list[Any]]) -> None:
    if not store.local:
        return
    data = json.dumps({"version": VERSION, "sessions": found}).encode()
    try:
        store.disk.make_directory(store.layout.cache_dir)
        path = os.path.join(store.layout.cache_dir, _FILE)
        replace_file(store.disk, path, data, durable=False, scratch=store.layout.tmp_dir)
    except StorageError:
        return  # a repository that can only be read
