"""Sessions read from a store for export.

Invariant: read-only except for the compile index. Commits are read along first parents, without their contents.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from trace_store import history
from trace_store.base.frozen import replace, value
from trace_store.base.oid import ObjectId
from trace_store.context.compile_index import GHOST, MessageRecord, flags_at
from trace_store.context.compiled import CompiledContext, CompiledMessage, CompiledMessages
from trace_store.context.compiler import ContextCompiler, compile
from trace_store.context.fold import Entry
from trace_store.context.index_update import record_of
from trace_store.context.usage import Usage, normalise_usage
from trace_store.contracts.record_names import record_title
from trace_store.contracts.ref_names import BRANCHES, LINES, RECORDS, SESSIONS
from trace_store.errors import (
    InvalidInputError,
    MessageNotFoundError,
    NotFoundError,
    RevisionNotFoundError,
)
from trace_store.exporters.contract import SKIPPED, ExportSession, Facts, SessionTurn, SubBranch
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit
from trace_store.store import revision as revisions
from trace_store.store.store import Store
from trace_store.transcripts.sources import SOURCE_KEY, records_unless_purged

_Shown: TypeAlias = tuple[CompiledMessage, str]
"""A message, and why it is hidden, as in `SessionTurn.hidden`."""
FACT_COMMITS = 64
"""Number of commits to search for a session's facts."""

_PATHS: dict[str, tuple[tuple[str, ...], ...]] = {
    "session": (("sessionId",), ("payload", "session_id"), ("payload", "id"), ("info", "id")),
    "cwd": (("cwd",), ("payload", "cwd"), ("info", "directory"), ("info", "path", "cwd")),
    "version": (("version",), ("payload", "cli_version"), ("info", "version")),
    "branch": (("gitBranch",), ("payload", "git", "branch"), ("git", "branch")),
}
_TITLE = (("customTitle",), ("aiTitle",), ("info", "title"))
"""Paths of these facts in the records of agents."""
_TITLE_WORDS = (b"itle", b"\\u")
"""A record with a title has one of these, since JSON may escape the letters of its name."""


def read_session(
    store: Store,
    revision: str = "HEAD",
    *,
    at: str = "",
    model: str = "",
    hidden: bool = False,
    contexts: ContextCompiler | None = None,
    part: Window | None = None,
) -> ExportSession:
    """Return what a branch, commit or session compiles to, with its commits' facts.

    Args:
        store: the repository.
        revision: a revision, a session id or an unambiguous prefix of one, optionally after `<format>/`.
        at: another revision or a time, as in `compiler.compile`.
        model: the model to count tokens for.
        hidden: include removed, replaced and skipped messages.
        contexts: the store's compiler, if one is open.
        part: the messages to read; None reads all.

    Raises:
        RevisionNotFoundError: no such commit or session.
        AmbiguousRevisionError: the prefix is ambiguous; `.candidates` holds the matches.
        UnbornBranchError: the branch has no commit yet.
        ObjectNotFoundError, CorruptObjectError: the history is damaged.
    """
    contexts = ContextCompiler(store) if contexts is None else contexts
    ref = find_branch(store, revision)
    if ref and not revision.startswith(
        ("HEAD", "@")
    ):  # a session, even if its id is also an object's
        revision = ref + revision[base_length(revision) :]
    revisions.resolve_commit(store, revision)
    context = compile(contexts, revision, at=at, model=model)
    if context.commit is None:
        raise RevisionNotFoundError(f"{revision} has no context", revision=revision)
    hidden_count = count_hidden(contexts, context) if part is None or hidden else 0
    messages = _messages(contexts, context, hidden=hidden and (part is None or hidden_count > 0))
    chosen = range(len(messages)) if part is None else part.choose(context, messages)
    whole = context.commit if part is None else None
    turns = tuple(read_turns(contexts, messages[chosen.start : chosen.stop], whole))
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
        hidden_count=hidden_count,
        reader=_Reader(contexts, context.commit, ref),
        project=os.path.dirname(store.layout.root) if store.local else "",
        start=chosen.start,
        count=len(messages),
    )


def count_hidden(contexts: ContextCompiler, context: CompiledContext) -> int:
    """Return the number of messages that a context hides, including those that have a placeholder."""
    assert context.commit is not None
    if context.view.only_appends:
        return 0
    blocks = context.view.blocks()
    ghosts = sum(1 for block, places in blocks for at in places if flags_at(block, at) & GHOST)
    return len(contexts.fold(context.commit)) - len(context) + ghosts


@value
class Window:
    """A part of a session's messages.

    Attributes:
        count: how many messages, at most.
        start: number of the first one, from 0; None is the last `count`.
        around: the message in the middle; overrides `start`.
    """

    count: int
    start: int | None = None
    around: Address | None = None

    def choose(self, context: CompiledContext, messages: Sequence[_Shown]) -> range:
        """Return the places of these messages.

        Raises:
            MessageNotFoundError: the message `around` is not among them.
        """
        start = len(messages) - self.count if self.start is None else self.start
        if self.around is not None:
            start = self._place(context, messages, self.around) - self.count // 2
        start = max(0, min(start, len(messages)))
        return range(start, min(start + self.count, len(messages)))

    def _place(self, context: CompiledContext, messages: Sequence[_Shown], address: Address) -> int:
        if isinstance(messages, _Visible):
            record = context.view.find(address)
            place = None if record is None else record.ordinal - 1
        else:
            found = (at for at, (each, _) in enumerate(messages) if each.address == address)
            place = next(found, None)
        if place is None:
            raise MessageNotFoundError(
                f"the context does not contain {address}", address=str(address)
            )
        return place


def session_with(store: Store, address: Address, *, hidden: bool = False) -> ExportSession:
    """Return the session that holds a message, and where it stands.

    HEAD's branch comes first, then imported sessions, and last the branches that only hold a copy. If the message is
    hidden, hidden messages are included.

    Raises:
        NotFoundError: no branch holds the message.
    """
    commits, head = revisions.commits_of(store), store.refs.head()
    tips = {ref: tip for ref, tip in store.refs.values().items() if ref.startswith(LINES)}
    born = store.objects.resolve_prefix(address.birth.hex())

    def order(ref: str) -> tuple[bool, bool, bool, str]:
        is_copy = not any(commits.is_ancestor(oid, tips[ref]) for oid in born)
        return is_copy, ref != head.ref, not ref.startswith(SESSIONS), ref

    for ref in sorted(tips, key=order):
        for shows in dict.fromkeys((hidden, True)):
            session = read_session(store, ref, hidden=shows)
            for at, turn in enumerate(session.turns):
                if turn.message.address == address:
                    return replace(session, begin=at)
    raise NotFoundError(f"no branch contains {address}", argument="message")


def find_branch(store: Store, text: str) -> str:
    """Return the branch or record that a revision or session id starts from; "" if none.

    Raises:
        AmbiguousRevisionError: several sessions match.
    """
    base = text[: base_length(text)]
    if base in ("HEAD", "@"):
        return store.refs.head().ref or ""
    if not base:
        return ""
    ref = revisions.branch_of(store, base)
    return ref if ref is not None and ref.startswith(LINES) else ""


def base_length(text: str) -> int:
    """Return where the suffixes of a revision (`~2`, `^`, `@{1}`) start."""
    ends = (text.find(mark) for mark in ("~", "^", "@{"))
    return min((end for end in ends if end >= 0), default=len(text))


def session_name(ref: str) -> tuple[str, str, str] | None:
    """Return (format, id, thread) of a session branch or a record; None for any other ref."""
    if ref.startswith(RECORDS):
        program, _, name = ref.removeprefix(RECORDS).partition("/")
        return program, name, ""
    if not ref.startswith(SESSIONS):
        return None
    format_, _, rest = ref.removeprefix(SESSIONS).partition("/")
    id_, _, thread = rest.partition("/")
    return (format_, id_, thread) if id_ else None


def _below(store: Store, ref: str) -> Iterator[SubBranch]:
    if session_name(ref) is None:
        return
    for name, oid in store.refs.iterate(ref + "/"):
        kind, _, rest = name.removeprefix(ref + "/").partition("/")
        if rest and "/" not in rest:
            yield SubBranch(kind, rest, name, oid)


class _Reader:
    """Reader of a session's records, on demand."""

    __slots__ = ("_contexts", "_facts", "_ref", "_store", "_tip")

    def __init__(self, contexts: ContextCompiler, tip: ObjectId, ref: str) -> None:
        self._store = contexts.store
        self._contexts = contexts
        self._tip = tip
        self._ref = ref
        self._facts: Facts | None = None

    def records(self, commit: ObjectId) -> list[bytes]:
        return records_unless_purged(self._contexts.read_commit(commit), self._store.objects.read)

    def is_branch(self, session: str) -> bool:
        """Return True if a session with this id has its own branch."""
        names = (session_name(ref) for ref, _ in self._store.refs.iterate(SESSIONS))
        return any(named is not None and named[1] == session for named in names)

    def facts(self) -> Facts:
        # A writer asks several times, and each time some hundred records would be read.
        if self._facts is None:
            self._facts = self._read_facts()
        return self._facts

    def _read_facts(self) -> Facts:
        if self._ref.startswith(RECORDS):
            known = history.facts.newest_facts(self._contexts, self._ref, self._tip)
            empty = dict.fromkeys(_PATHS, "")
            return Facts(title=record_title(self._ref, known), **empty)
        kept = RecordCommits()
        for oid in first_parent_chain(self._contexts, self._tip):
            kept.add(self._contexts.read_commit(oid))
        return Facts(title=kept.title(self._store)[0], **kept.facts(self._store, _PATHS))


class RecordCommits:
    """The newest and the oldest commits of a history that have records of an agent.

    Attributes:
        count: how many commits have records.
    """

    def __init__(self) -> None:
        self.count = 0
        self._newest: list[Commit] = []
        self._oldest = deque[Commit](maxlen=FACT_COMMITS)

    def add(self, commit: Commit) -> None:
        """Add the commit before the last one."""
        if SOURCE_KEY in commit.meta:
            self.count += 1
            self._oldest.append(commit)
            if len(self._newest) < FACT_COMMITS:
                self._newest.append(commit)

    def title(self, store: Store) -> tuple[str, int]:
        """Return the title that the agent gave the session, or "", and how many of these commits are newer.

        Agents rewrite it often, so it is the newest of the latest commits with records.
        """
        for age, commit in enumerate(self._newest):
            for record in _objects(store, [commit], _TITLE_WORDS):
                if title := _first(record, _TITLE):
                    return title, age
        return "", 0

    def facts(self, store: Store, names: Collection[str], older: int = 0) -> dict[str, str]:
        """Return the first value of some facts in `_PATHS`, or ""; `older` commits with records have none of them."""
        facts = dict.fromkeys(names, "")
        commits = islice(reversed(self._oldest), max(0, FACT_COMMITS - older))
        for record in _objects(store, commits):
            for name in names:
                facts[name] = facts[name] or _first(record, _PATHS[name])
            if all(facts.values()):
                break
        return facts


def _objects(
    store: Store, commits: Iterable[Commit], words: Sequence[bytes] = ()
) -> Iterator[Mapping[str, Any]]:
    """Yield the records of some commits that are JSON objects, and have one of some words if there are any."""
    for commit in commits:
        for raw in records_unless_purged(commit, store.objects.read, words):
            try:
                value = json.loads(raw)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value


def _first(record: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> str:
    """Return the first string at one of the paths, or ""."""
    for path in paths:
        value: Any = record
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and value:
            return value
    return ""


ANSWERER = "assistant"


def turn_of(contexts: ContextCompiler, tip: ObjectId, entry: Entry) -> SessionTurn:
    """Return the turn of a message at a commit, visible or hidden."""
    message = _message_of(contexts, tip, entry)
    return next(read_turns(contexts, [(message, entry.hidden)]))


def read_turns(
    contexts: ContextCompiler, messages: Iterable[_Shown], whole: ObjectId | None = None
) -> Iterator[SessionTurn]:
    """Yield the turns of some messages of a context.

    Usage reports in later commits, and stale ones, are found only for the whole context, given its commit.
    """
    messages = list(messages)
    reports = _reports_beside(contexts, messages) if whole is None else _reports(contexts, whole)
    # A usage report belongs to the last answer of its commit.
    reporting = {
        message.record.home_commit: message.address
        for message, _ in messages
        if message.role == ANSWERER
    }
    is_stale = _stale_reports(contexts, whole)
    for message, why in messages:
        home, address = message.record.home_commit, message.address
        report = reports.get(home) if reporting.get(home) == address else None
        stale = report is not None and is_stale(message)
        oid, number = _birth_of(contexts, message.record)
        commit = contexts.read_commit(oid)
        reason, replaced = _origin(commit, number)
        yield SessionTurn(
            message,
            oid,
            commit.time,
            commit.author,
            None if stale else report,
            reason,
            replaced,
            why,
            has_stale_usage=stale,
        )


class _Visible(Sequence[_Shown]):
    """The messages of a context, read on access, as `_with_hidden` returns them."""

    def __init__(self, messages: CompiledMessages) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> _Shown: ...
        @overload
        def __getitem__(self, index: slice) -> list[_Shown]: ...

    def __getitem__(self, index: int | slice) -> _Shown | list[_Shown]:
        if isinstance(index, slice):
            return [(message, "") for message in self._messages[index]]
        return self._messages[index], ""


def _messages(
    contexts: ContextCompiler, context: CompiledContext, *, hidden: bool
) -> Sequence[_Shown]:
    """Return the messages of a context; with `hidden`, all messages in order of creation."""
    if hidden and context.commit is not None:
        return _with_hidden(contexts, context.commit, list(context.messages))
    return _Visible(context.messages)


def _reports_beside(contexts: ContextCompiler, messages: Iterable[_Shown]) -> dict[bytes, Usage]:
    """Return the usage reports in the commits of some answers, by commit."""
    reports: dict[bytes, Usage] = {}
    for home in {m.record.home_commit for m, _ in messages if m.role == ANSWERER}:
        commit = contexts.read_commit(home)
        report = next((_usage(o.fields) for o in commit.operations if o.name == ops.USAGE), None)
        if report is not None:
            reports[home] = report
    return reports


def _birth_of(contexts: ContextCompiler, record: MessageRecord) -> tuple[ObjectId, int]:
    """Return birth commit and number of a message.

    Its current place if the birth commit is missing.
    """
    home = ObjectId(record.home_commit)
    if home.startswith(record.birth):
        return home, record.home_number
    matches = contexts.store.objects.resolve_prefix(record.birth.hex())
    return (matches[0], record.number) if matches else (home, record.home_number)


def _with_hidden(
    contexts: ContextCompiler, tip: ObjectId, shown: Sequence[CompiledMessage]
) -> list[_Shown]:
    """Return visible and hidden messages in order of creation, with hidden state."""
    visible = iter(shown)
    distances: dict[bytes, int] = {
        oid: n for n, oid in enumerate(first_parent_chain(contexts, tip))
    }
    keyed: list[tuple[tuple[int, int], CompiledMessage, str]] = []
    # The tip has number 0. A carried message stays next to its neighbour.
    key = (-len(distances), 0)
    for position, entry in enumerate(contexts.fold(tip).entries):
        home, number = entry.home
        if home.startswith(entry.address.birth):
            key = (-distances[home], number)
        # The context has a placeholder for a ghost; here the message itself is exported.
        shown_message = next(visible) if entry.visible else None
        if shown_message is not None and is_shown(entry):
            keyed.append((key, shown_message, ""))
            continue
        message = _message_of(contexts, tip, entry, position)
        keyed.append((key, message, entry.hidden or SKIPPED))
    keyed.sort(key=lambda each: each[0])
    return [(message, why) for _, message, why in keyed]


def _message_of(
    contexts: ContextCompiler, tip: ObjectId, entry: Entry, position: int = 0
) -> CompiledMessage:
    """Return a message of a fold, not its placeholder."""
    record = record_of(entry)
    record = replace(record, flags=record.flags & ~GHOST, ordinal=position + 1)
    return CompiledMessage.of(_HiddenSource(contexts), tip, record)


def first_parent_chain(contexts: ContextCompiler, tip: ObjectId | None) -> Iterator[ObjectId]:
    """Yield a commit and its first-parent ancestors, newest first."""
    while tip is not None:
        yield tip
        parents = contexts.read_commit(tip).parents
        tip = parents[0] if parents else None


def is_shown(entry: Entry) -> bool:
    """Return True if a message is visible with its own content."""
    return entry.visible and not entry.is_ghost


def _origin(commit: Commit, number: int) -> tuple[str, int]:
    """Return why a message replaces others, and how many."""
    for operation in commit.operations:
        count = ops.message_count(operation)
        if number < count:
            if operation.name != ops.REPLACE:
                break
            reason = operation.fields.get("reason", "")
            return reason or ops.REPLACE, len(operation.fields["targets"])
        number -= count
    return "", 0


def _reports(contexts: ContextCompiler, tip: ObjectId | None) -> dict[bytes, Usage]:
    """Return the usage reports by answering commit.

    A report is in the answering commit or in a later one of its own.
    """
    reports: dict[bytes, Usage] = {}
    later: Usage | None = None
    for oid in first_parent_chain(contexts, tip):
        commit = contexts.read_commit(oid)
        own = next((_usage(o.fields) for o in commit.operations if o.name == ops.USAGE), None)
        if SOURCE_KEY not in commit.meta and any(o.name == ops.REPLACE for o in commit.operations):
            own = None  # the request for a summary
        if any(message["role"] == ANSWERER for _, message in ops.added_messages(commit, oid)):
            report = own or later
            if report is not None:
                reports[oid] = report
            later = None
        else:
            later = own or later
    return reports


def _stale_reports(
    contexts: ContextCompiler, tip: ObjectId | None
) -> Callable[[CompiledMessage], bool]:
    """Return a test whether a message's usage report is about a context that was changed since.

    Such a report would tell an agent that resumes a trimmed session that its context is still full. Changes in the
    transcript itself, such as a compaction, are the agent's own and stay as it recorded them.
    """
    changed: dict[Address, int] = {}
    depths: dict[bytes, int] = {}
    for depth, oid in enumerate(first_parent_chain(contexts, tip)):
        commit = contexts.read_commit(oid)
        depths[oid] = depth
        if ops.only_appends(commit) or SOURCE_KEY in commit.meta:
            continue
        for operation in commit.operations:
            if operation.name != ops.ANNOTATE or operation.fields.get("priority") == ops.SKIP:
                for address in ops.targets_of(operation, oid):
                    changed.setdefault(address, depth)
        for address, _ in ops.added_messages(commit, oid):
            changed.setdefault(address, depth)
    if not changed or tip is None:
        return lambda message: False
    latest, newest = len(depths), {}
    for entry in contexts.fold(tip).entries:
        latest = min(latest, changed.get(entry.address, latest))
        newest[entry.address] = latest  # the last change of this message or one before it
    return lambda message: (
        newest.get(message.address, latest) < depths.get(message.record.home_commit, len(depths))
    )


def _usage(fields: Mapping[str, Any]) -> Usage | None:
    try:
        return normalise_usage(fields)
    except InvalidInputError:
        return None  # written by hand or by another version


class _HiddenSource:
    """Content source for messages that no context holds."""

    __slots__ = ("_contexts",)

    def __init__(self, contexts: ContextCompiler) -> None:
        self._contexts = contexts

    def read(self, oid: bytes) -> bytes:
        return self._contexts.store.objects.read(oid)

    def read_data(self, oids: Iterable[bytes]) -> Iterator[bytes]:
        return self._contexts.store.objects.read_data(oids)

    def read_commit(self, oid: bytes) -> Commit:
        return self._contexts.read_commit(oid)

    def labels(self, tip: bytes, address: Address) -> frozenset[str]:
        return self._contexts.fold(tip).entry(address).labels
