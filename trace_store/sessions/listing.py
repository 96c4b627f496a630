"""Sessions of a repository, with what people recognise them by.

All fields are derived from the branch and cached in `cache/sessions` by its tip, so a listing reads only sessions that
changed, and of these what is new. The file can be deleted at any time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from trace_store.base.frozen import fields, replace, value
from trace_store.base.oid import ObjectId
from trace_store.context.compiled import CompiledContext
from trace_store.context.compiler import ContextCompiler
from trace_store.context.fold import REPLACED, Entry
from trace_store.context.session_lists import ListEntry, SessionLists
from trace_store.context.summary import (
    LIMIT,
    MOST_COMMITS,
    ContextSummary,
    SummaryView,
    context_from_summary,
)
from trace_store.context.wording import excerpt, is_inserted, own_words
from trace_store.contracts.record_names import record_title, thread_facts
from trace_store.contracts.ref_names import BRANCHES, RECORDS, TITLES
from trace_store.errors import (
    ObjectNotFoundError,
    StorageError,
    TraceError,
)
from trace_store.exporters.overview import is_prompt
from trace_store.exporters.session import (
    FACT_COMMITS,
    RecordCommits,
    first_parent_chain,
    is_shown,
    session_name,
    turn_of,
)
from trace_store.history.facts import Facts, Step, facts_after, steps_of
from trace_store.importers.convert import branch_of, session_of
from trace_store.objects.commit import Commit, Tag
from trace_store.objects.operations import added_by, only_appends, stored_messages
from trace_store.sessions.facts import PREFIX, SessionFacts
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.base.ident import Time

MAXIMUM_TITLE = 500


def read_title(store: Store, format_name: str, session: str) -> str:
    """Return the title that a user set for a session, or ""."""
    oid = store.refs.read(title_ref(format_name, session))
    if oid is None:
        return ""
    try:
        return Tag.decode(store.objects.read(oid)).message
    except ObjectNotFoundError:
        return ""


def title_ref(format_name: str, session: str) -> str:
    """Return the ref of a session's title."""
    return f"{TITLES}{format_name}/{session}"


PROMPT_CHARACTERS = 200
LAST_TIME = 253_402_300_800_000
"""The first millisecond of the year 10000."""
SAVE_SECONDS = 2
"""How often a listing saves what it has read."""
SAVE_SHARE = 20
"""At least so many times the duration of a save passes before the next one, since each writes the whole list."""


@value
class SessionInfo:
    """One session.

    Attributes:
        ref: the full name of its branch or record.
        tip: its last commit.
        agent: its program, such as `claude-code` or `langgraph`; "" for a branch that was not imported.
        session: its id; else the name of the branch, also for a branch created from a session, or of the record.
        title: the title that the user or else the agent gave it; of a record the id of its thread; or "".
        prompt: the start of the first prompt.
        folder: the agent's working directory, or "".
        began, ended: when the first and the last message were added, in milliseconds since the epoch, UTC; 0 if
            unknown.
        message_count: messages in its context.
        hidden_count: messages that the context hides, such as those before a compaction.
        token_count: tokens, as last reported by a provider if there is a report.
        token_source: how they were counted.
        estimated_token_count: tokens as Trace counts them.
        agents: number of subagents.
        rewinds: number of abandoned lines after a rewind.
        facts: the facts of a session started by Trace; None for imported ones.
        damage: why it could not be read, with only its names known; else "".
        activity: the current step of a run for it, such as `reviewer: thinking, step 4`, or "".
    """

    JSON = "agent? title? prompt? folder? damage? activity? type=facts.type? feature=facts.feature?"
    JSON += " task=facts.task? state=facts.state? limit=facts.limit closed=facts.closed? -facts"

    ref: str
    tip: ObjectId
    agent: str = ""
    session: str = ""
    title: str = ""
    prompt: str = ""
    folder: str = ""
    began: Time = 0
    ended: Time = 0
    message_count: int = 0
    hidden_count: int = 0
    token_count: int = 0
    token_source: str = ""
    estimated_token_count: int = 0
    agents: int = 0
    rewinds: int = 0
    facts: SessionFacts | None = None
    damage: str = ""
    activity: str = ""

    @property
    def is_thread(self) -> bool:
        """Whether it is more than a record of other state: a branch, or a record with a thread or messages."""
        is_record = self.ref.startswith(RECORDS)
        return bool(not is_record or self.title or self.message_count or self.hidden_count)

    @property
    def name(self) -> str:
        """Its title, or else its first prompt, or else its id."""
        return self.title or self.prompt or self.session


@value
class SessionRow:
    """The saved fields of a session at a commit, from which the row at a later one continues.

    Attributes:
        records: how many commits have records of an agent.
        title_age: how many of them are newer than the one with the title.
        recorded: its facts, and the times of their commits.
    """

    agent: str
    session: str
    title: str
    prompt: str
    folder: str
    began: Time
    ended: Time
    message_count: int
    hidden_count: int
    token_count: int
    token_source: str
    estimated_token_count: int
    records: int
    title_age: int
    recorded: Facts

    @property
    def facts(self) -> dict[str, str]:
        """The facts of a session started by Trace."""
        facts = self.recorded.items()
        return {name: text for name, (_, text) in facts if name.startswith(PREFIX)}

    def info(self, ref: str, tip: ObjectId, **more: Any) -> SessionInfo:
        """Return the session, with the fields that are not saved."""
        shared = {name: getattr(self, name) for name in fields(self) if name in _SHARED}
        return SessionInfo(ref, tip, **{**shared, **more})

    @classmethod
    def from_data(cls, data: Sequence[Any]) -> SessionRow:
        """Return the row with these fields, which may come from anybody.

        Raises:
            TypeError: they do not fit.
        """
        try:
            *rest, recorded = data
            facts = {name: (at, text) for name, (at, text) in recorded.items()}
        except (ValueError, AttributeError) as error:
            raise TypeError("recorded is not facts") from error
        row = cls(*[*rest, facts])
        for name in fields(row):
            wanted, given = _TYPES.get(name, int), getattr(row, name)
            most = LAST_TIME if name in ("began", "ended") else LIMIT
            if type(given) is not wanted or (wanted is int and not 0 <= given < most):
                raise TypeError(f"{name} is not {wanted.__name__}")
        for name, (at, text) in facts.items():
            if (type(name), type(at), type(text)) != (str, int, str) or not 0 <= at < LIMIT:
                raise TypeError("recorded is not facts")
        return row

    def to_data(self) -> list[Any]:
        """Return the fields as JSON values."""
        recorded = {name: list(each) for name, each in self.recorded.items()}
        return [*(getattr(self, name) for name in fields(self)[:-1]), recorded]


_SHARED = frozenset(fields(SessionRow)) & frozenset(fields(SessionInfo))
_EMPTY = SessionRow("", "", "", "", "", 0, 0, 0, 0, 0, "", 0, 0, 0, {})
"""The row before the first commit."""
_TYPES = {
    **dict.fromkeys(("agent", "session", "title", "prompt", "folder", "token_source"), str),
    "recorded": dict,
}


def current_rows(
    store: Store,
    tips: Mapping[str, ObjectId],
    progress: Callable[[int, int], None] | None = None,
    *,
    are_all: bool = True,
) -> dict[str, SessionRow | TraceError]:
    """Return a row for each branch, or the error that prevents reading it.

    Changed rows are saved, also during the work. No compile index is written.

    Args:
        store: the store.
        tips: the branches.
        progress: called with the numbers of read and of all branches.
        are_all: whether these are all branches, so that nothing else stays saved.

    Raises:
        StorageError: a file cannot be read.
    """
    lister = SessionLister(store)
    found: dict[str, SessionRow | TraceError] = {}
    if are_all:
        lister.known.forget_others(tips)
    for count, (ref, tip) in enumerate(tips.items(), 1):
        try:
            found[ref] = lister.row(ref, tip)
        except StorageError:
            raise
        except TraceError as error:
            found[ref] = error
        if progress is not None:
            progress(count, len(tips))
    lister.save()
    return found


class SessionLister:
    """Makes rows of branches and saves them, also during the work, so that an interrupted listing was of use.

    Attributes:
        known: what is known of branches.
    """

    def __init__(self, store: Store) -> None:
        self.known = SessionLists(store)
        self._store = store
        self._contexts = ContextCompiler(store, keeps_files=False)
        self._due = time.monotonic() + SAVE_SECONDS

    def row(self, ref: str, tip: ObjectId) -> SessionRow:
        """Return the row of a branch at a commit.

        Raises:
            TraceError: it cannot be read.
        """
        known = [*self.known.of(ref)]
        if not known and session_name(ref) is None:
            chain = islice(first_parent_chain(self._contexts, tip), MOST_COMMITS)
            forked = self.known.at_first_of(chain)
            known = [_of_branch(self._store, ref, each) for each in islice(forked, 1)]
        entry, row = _read(self._store, self._contexts, ref, tip, known)
        self.known.learn(ref, entry)
        if time.monotonic() > self._due:
            self.save()
        return row

    def list_imported(self, tips: Iterable[tuple[str, ObjectId]]) -> None:
        """Make the rows of imported sessions, but not of branches below them; one that cannot be read gets none.

        Raises:
            StorageError: a file cannot be read.
        """
        # What the compiler caches is of this file only: it would grow with the import.
        self._contexts = ContextCompiler(self._store, keeps_files=False, reads_counts=False)
        for ref, tip in tips:
            if not (session_name(ref) or ("", "", ""))[2]:
                try:
                    self.row(ref, tip)
                except StorageError:
                    raise
                except TraceError:
                    continue

    def save(self) -> None:
        """Save the rows; a failed write is ignored."""
        began = time.monotonic()
        self.known.save()
        ended = time.monotonic()
        self._due = ended + max(SAVE_SECONDS, SAVE_SHARE * (ended - began))


def _read(
    store: Store, contexts: ContextCompiler, ref: str, tip: ObjectId, before: Iterable[ListEntry]
) -> tuple[ListEntry, SessionRow]:
    """Return the row of a session at a commit: a known one, one that grew, or one from its history."""
    encoding = contexts.tokenizer().encoding
    rows = {}
    for each in before:
        row = _row_of(each, ref)
        if row is None or each.summary.counted.partition(" ")[0] != encoding:
            continue
        if each.summary.tip == tip:
            return each, row
        rows[each.summary.tip] = each, row
    context = context_from_summary(contexts, ref, tip, [each.summary for each, _ in rows.values()])
    if context is not None and isinstance(context.view, SummaryView):
        view = context.view
        since = _Since(contexts, reversed(view.since), only_adds=view.only_adds)
        return _entry(view.summary, since.row(ref, context, rows[view.base.tip][1]))
    context = contexts.compile(ref)
    assert context.commit is not None
    chain = first_parent_chain(contexts, context.commit)
    commits = ((oid, contexts.read_commit(oid)) for oid in chain)
    since = _Since(contexts, commits)
    return _entry(ContextSummary.of(contexts, context), since.row(ref, context, _EMPTY))


def _entry(summary: ContextSummary, row: SessionRow) -> tuple[ListEntry, SessionRow]:
    return ListEntry(summary, row.to_data(), True), row


def _of_branch(store: Store, ref: str, entry: ListEntry) -> ListEntry:
    """Return the entry of another branch as that of a branch which parted from it."""
    row = SessionRow.from_data(entry.row)
    agent, session = _named(store, ref, is_agents=row.records > 0)
    return replace(entry, row=replace(row, agent=agent, session=session).to_data(), is_own=True)


def _row_of(entry: ListEntry, ref: str) -> SessionRow | None:
    """Return the row of an entry; None if it cannot belong to this branch.

    Names find sessions, so another working copy may only say those that the branch has.
    """
    try:
        row = SessionRow.from_data(entry.row)
    except TypeError:
        return None
    if row.message_count != entry.summary.message_count:
        return None
    named = session_name(ref)
    own = named[:2] if named else ("", ref.removeprefix(BRANCHES))
    return row if entry.is_own or (row.agent, row.session) == own else None


class _Since:
    """What the commits of a branch after a row, or all of them, say about its session; they are read once."""

    def __init__(
        self,
        contexts: ContextCompiler,
        commits: Iterable[tuple[bytes, Commit]],
        *,
        only_adds: bool = True,
    ) -> None:
        """Read commits, newest first; `only_adds` as in `SummaryView`."""
        self._contexts = contexts
        self._store = contexts.store
        self._only_adds = only_adds
        self._line: list[bytes] = []
        self._steps: list[Step] = []
        self._times: list[Time] = []
        self._kept = RecordCommits()
        for oid, commit in commits:
            self._line.append(oid)
            self._steps += steps_of(contexts, commit)
            self._kept.add(commit)
            self._only_adds = self._only_adds and only_appends(commit)
            if added_by(commit):
                self._times.append(commit.time)

    def row(self, ref: str, context: CompiledContext, before: SessionRow) -> SessionRow:
        """Return the row of a context, given the row before these commits."""
        assert context.commit is not None
        records = before.records + self._kept.count
        names = before.agent, before.session
        if self._kept.count or before is _EMPTY:
            names = _named(self._store, ref, is_agents=records > 0)
        recorded = _listed(ref, facts_after(before.recorded, self._steps))
        title, title_age = self._title(ref, before, recorded)
        prompt, hidden_count = self._prompt_and_hidden(context.commit, before)
        began, ended = self._ends(context.commit, before)
        return SessionRow(
            *names,
            title=title,
            prompt=prompt,
            folder=before.folder or self._kept.facts(self._store, ("cwd",), before.records)["cwd"],
            began=began,
            ended=ended,
            message_count=len(context),
            hidden_count=hidden_count,
            token_count=context.token_count,
            token_source=context.token_source,
            estimated_token_count=context.estimated_token_count,
            records=records,
            title_age=title_age,
            recorded=recorded,
        )

    def _title(self, ref: str, before: SessionRow, facts: Facts) -> tuple[str, int]:
        """Return the agent's title, and how many commits with records are newer; of a record its thread."""
        if ref.startswith(RECORDS):
            return record_title(ref, {name: text for name, (_, text) in facts.items()}), 0
        title, age = self._kept.title(self._store)
        known_age = before.title_age + self._kept.count
        if title or not before.title or known_age >= FACT_COMMITS:
            return title, age
        return before.title, known_age

    def _ends(self, tip: ObjectId, before: SessionRow) -> tuple[Time, Time]:
        """Return the first and the last time at which a message was added; without one, the time of the tip."""
        had_messages = before.message_count + before.hidden_count > 0
        times = [*self._times, *((before.began, before.ended) if had_messages else ())]
        known = [time for time in times or [self._contexts.read_commit(tip).time] if time > 0]
        return min(known, default=0), max(known, default=0)

    def _prompt_and_hidden(self, tip: ObjectId, before: SessionRow) -> tuple[str, int]:
        """Return the first prompt, also if a summary has replaced it, and the number of hidden messages."""
        if not self._only_adds:
            entries = self._contexts.fold(tip).entries
            hidden_count = sum(1 for entry in entries if not is_shown(entry))
            return _first_prompt(self._contexts, tip, entries), hidden_count
        prompt = before.prompt
        if not prompt or is_inserted(prompt):
            prompt = _first_prompt(self._contexts, tip, self._added(), prompt)
        return prompt, before.hidden_count

    def _added(self) -> Iterator[Entry]:
        """Yield the messages that the commits add."""
        for oid in reversed(self._line):
            for number, message in enumerate(stored_messages(self._contexts.read_commit(oid))):
                yield Entry.read(message, oid, number, number)


def _listed(ref: str, facts: Facts) -> Facts:
    """Return the facts that a row keeps: those of a session started by Trace, and the thread of a record."""
    names = thread_facts(ref) if ref.startswith(RECORDS) else ()
    return {name: facts[name] for name in sorted(facts) if name.startswith(PREFIX) or name in names}


def _named(store: Store, ref: str, *, is_agents: bool) -> tuple[str, str]:
    """Return the program of a branch's session, and its id; `is_agents` says whether an agent's records are in it."""
    found = session_of(store, ref) if is_agents else None
    agent, name, _ = found or session_name(ref) or ("", "", "")
    if found and session_name(ref) is None and branch_of(store, f"{agent}/{name}") != ref:
        name = ""  # the id belongs to another branch
    return agent, name or ref.removeprefix(BRANCHES)


def _first_prompt(
    contexts: ContextCompiler, tip: ObjectId, entries: Iterable[Entry], otherwise: str = ""
) -> str:
    """Return the start of the first prompt in the words of the user, also if a summary has replaced it.

    If there is none, return `otherwise`, or else the first prompt that a program wrote.
    """
    for entry in entries:
        is_visible = is_shown(entry)
        if entry.message["role"] != "user" or not (is_visible or entry.hidden == REPLACED):
            continue
        turn = turn_of(contexts, tip, entry)
        if is_prompt(turn):
            text = turn.message.text
            prompt = excerpt(own_words(text) or text, PROMPT_CHARACTERS)
            if not is_inserted(prompt):
                return prompt
            otherwise = otherwise or (prompt if is_visible else "")
    return otherwise


def known_rows(store: Store) -> Callable[[str], SessionRow | None]:
    """Return a function that returns the row of a branch as the last listing saved it, or None."""
    known = SessionLists(store)

    def row(ref: str) -> SessionRow | None:
        for each in known.of(ref):
            if not store.objects.contains(ObjectId(each.summary.tip)):
                continue  # history was rewritten, perhaps to take these words away
            found = _row_of(each, ref)
            if found is not None:
                return found
        return None

    return row
