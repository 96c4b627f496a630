"""Sessions of a repository, with what people recognise them by.

All fields are derived from the branch and cached in `cache/sessions` by its tip, so a listing reads only sessions that
changed. The file can be deleted at any time.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from trace_store.context.compiler import ContextCompiler
from trace_store.contracts import RefEdit, Transaction
from trace_store.errors import (
    AmbiguousRevisionError,
    ErrorCode,
    InvalidInputError,
    ObjectNotFoundError,
    RevisionNotFoundError,
    StorageError,
    TraceError,
)
from trace_store.exporters.contract import AGENTS, REWINDS
from trace_store.exporters.overview import excerpt, is_prompt
from trace_store.exporters.session import read_session, session_name
from trace_store.files import read_file, replace_file
from trace_store.frozen import value
from trace_store.ident import check_author
from trace_store.importers.convert import branch_of, session_of
from trace_store.objects.commit import Tag
from trace_store.oid import ObjectId, hash_object
from trace_store.ref_names import BRANCHES
from trace_store.revision import resolve_commit
from trace_store.store.handle import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts import RefReader


TITLES = "refs/titles/"
MAXIMUM_TITLE = 500


def read_title(store: Store, format_name: str, session: str) -> str:
    """Return the title that a user set for a session, or ""."""
    oid = store.refs.read(_ref(format_name, session))
    if oid is None:
        return ""
    try:
        return Tag.decode(store.objects.read(oid)).message
    except ObjectNotFoundError:
        return ""


def rename_session(
    store: Store, format_name: str, session: str, target: ObjectId, title: str, *, author: str
) -> None:
    """Set the title of a session; an empty one removes it.

    Args:
        store: the repository's store.
        format_name: the agent, such as `claude-code`.
        session: its id.
        target: a commit of it.
        title: one line.
        author: for the tag and the reflog.

    Raises:
        InvalidInputError: the title has several lines, or more than 500 characters.
    """
    title = title.strip()
    if "\n" in title or len(title) > MAXIMUM_TITLE:
        raise InvalidInputError(
            "a title must be one line of at most 500 characters", value=title[:80]
        )
    ref = _ref(format_name, session)
    tag = Tag(target, session, check_author(author), store.clock.now(), title)
    data = tag.encode()
    oid = hash_object(data)

    def build(refs: RefReader) -> Transaction | None:
        before = refs.read(ref)
        if title:
            return Transaction([(oid, data)], [RefEdit(ref, oid, before)], f"title: {session}")
        return None if before is None else Transaction([], [RefEdit(ref, None, before)], "title")

    store.transact(build, author=author)


def _ref(format_name: str, session: str) -> str:
    return f"{TITLES}{format_name}/{session}"


VERSION = 3
PROMPT_CHARACTERS = 200
_FILE = "sessions"

Progress = Callable[[int, int], None]


@value
class SessionInfo:
    """One session.

    Attributes:
        ref: the full name of its branch.
        tip: its last commit.
        agent: its program, such as `claude-code`; "" for a branch that was not imported.
        session: its id; else the name of the branch, also for a branch created from a session.
        title: the title that the user or else the agent gave it, or "".
        prompt: the start of the first prompt.
        folder: the agent's working directory, or "".
        began, ended: milliseconds since the epoch, UTC; 0 if unknown.
        message_count: messages in its context.
        hidden_count: messages that the context hides, such as those before a compaction.
        token_count: tokens, as last reported by a provider if there is a report.
        token_source: how they were counted.
        estimated_token_count: tokens as Trace counts them.
        agents: number of subagents.
        rewinds: number of abandoned lines after a rewind.
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
        """Its title, or else its first prompt, or else its id."""
        return self.title or self.prompt or self.session

    def as_map(self) -> dict[str, Any]:
        """Return it as a dictionary for JSON; unknown values are null."""
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
    """Return all sessions and other branches, latest end first, without damaged ones.

    Args:
        store: the repository's store.
        progress: called with the numbers of read and of all sessions.

    Raises:
        StorageError: a file cannot be read.
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
    known = _load_cache(store)
    contexts = ContextCompiler(store)
    found: list[SessionInfo] = []
    fresh: dict[str, list[Any]] = {}
    for count, ref in enumerate(own):
        kept = known.get(ref)
        if kept is None or kept[0] != str(tips[ref]):
            try:
                kept = [str(tips[ref]), *_read_fields(store, contexts, ref)]
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
        _save_cache(store, fresh)
    return sorted(found, key=lambda each: (-each.ended, each.ref))


def titles(store: Store, refs: Iterable[str]) -> dict[str, str]:
    """Return the titles of branches, as of the last listing, as `Transcripts.titles` describes them."""
    kept = _load_cache(store)
    found: dict[str, str] = {}
    for ref in refs:
        named = session_name(ref)
        title = read_title(store, named[0], named[1]) if named else ""
        known = kept.get(ref)
        found[ref] = title or (known and (known[3] or known[4])) or ref.removeprefix(BRANCHES)
    return found


def session_named(sessions: Iterable[SessionInfo], text: str) -> SessionInfo:
    """Return the session with an id, branch name or title, or the only one whose id, title or prompt starts with it.

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
                f"{len(found)} sessions match {text!r}",
                revision=text,
                candidates=tuple(each.ref for each in found),
            )
    raise RevisionNotFoundError(
        f"no session {text!r}", revision=text, code=ErrorCode.SESSION_NOT_FOUND
    )


def revision_of(store: Store, text: str) -> str:
    """Return a revision unchanged, or else the branch of the session that `session_named` finds.

    Raises:
        RevisionNotFoundError: it is neither.
        AmbiguousRevisionError: several sessions match.
    """
    try:
        resolve_commit(store, text)
    except RevisionNotFoundError as error:
        try:
            return session_named(list_sessions(store), text).ref
        except RevisionNotFoundError:
            raise error from None
    return text


def _read_fields(store: Store, contexts: ContextCompiler, ref: str) -> list[Any]:
    """Return the cached fields of a session, in the order of `SessionInfo`."""
    session = read_session(store, ref, contexts=contexts)
    facts = session.facts()
    found = session_of(store, ref) if facts.session else None
    known = found or (session.format, session.id, "")
    if found and session_name(ref) is None and branch_of(store, f"{found[0]}/{found[1]}") != ref:
        known = found[0], "", ""  # the id belongs to another branch
    prompt = next((turn.message.text for turn in session.turns if is_prompt(turn)), "")
    times = [turn.time for turn in session.turns if turn.time > 0]
    context = session.context
    return [
        *(known[0], known[1] or ref.removeprefix(BRANCHES)),
        *(facts.title, excerpt(prompt, PROMPT_CHARACTERS), facts.cwd),
        *(min(times, default=0), max(times, default=0)),
        *(len(session.turns), session.hidden_count, context.token_count, context.token_source),
        context.estimated_token_count,
    ]


def _load_cache(store: Store) -> dict[str, list[Any]]:
    try:
        data = read_file(store.disk, os.path.join(store.layout.cache_dir, _FILE))
        saved = json.loads(data or b"{}")
    except (StorageError, ValueError):
        return {}
    if not isinstance(saved, dict) or saved.get("version") != VERSION:
        return {}
    found: dict[str, list[Any]] = saved["sessions"]
    return found


def _save_cache(store: Store, found: dict[str, list[Any]]) -> None:
    data = json.dumps({"version": VERSION, "sessions": found}).encode()
    try:
        store.disk.make_directory(store.layout.cache_dir)
        path = os.path.join(store.layout.cache_dir, _FILE)
        replace_file(store.disk, path, data, durable=False, scratch=store.layout.tmp_dir)
    except StorageError:
        return  # a read-only repository
