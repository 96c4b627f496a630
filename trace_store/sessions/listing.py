"""Sessions of a repository, with what people recognise them by.

All fields are derived from the branch and cached in `cache/sessions` by its tip, so a listing reads only sessions that
changed, and of these what is new. The file can be deleted at any time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trace_store.base.frozen import fields, replace, value
from trace_store.base.oid import ObjectId
from trace_store.context.compiled import CompiledContext
from trace_store.context.compiler import ContextCompiler
from trace_store.context.fold import REPLACED
from trace_store.context.session_lists import ListEntry, SessionLists
from trace_store.context.summary import LIMIT, ContextSummary, SummaryView, context_from_summary
from trace_store.context.wording import excerpt, is_inserted, own_words
from trace_store.contracts.ref_names import BRANCHES, RECORDS, TITLES
from trace_store.errors import (
    ObjectNotFoundError,
    StorageError,
    TraceError,
)
from trace_store.exporters.contract import ExportSession, SessionTurn
from trace_store.exporters.overview import is_prompt
from trace_store.exporters.session import (
    Window,
    count_hidden,
    newest_title,
    read_session,
    session_name,
)
from trace_store.history.facts import newest_facts
from trace_store.importers.convert import branch_of, session_of
from trace_store.objects.commit import Tag
from trace_store.objects.message import load_parts
from trace_store.objects.operations import META, facts_of, stored_messages
from trace_store.objects.parts import Text
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
_ENDS = 20
"""Number of messages at the beginning and at the end of a session that are read."""
LAST_TIME = 253_402_300_800_000
"""The first millisecond of the year 10000."""
SAVE_SECONDS = 2
"""How often a listing saves what it has read, so that an interrupted one was of use."""


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
        began, ended: milliseconds since the epoch, UTC; 0 if unknown.
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
    """The saved fields of a session at a commit; `recorded` are its facts."""

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
    recorded: dict[str, Any]

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
        row = cls(*data)
        for name in fields(row):
            wanted, given = _TYPES.get(name, int), getattr(row, name)
            most = LAST_TIME if name in ("began", "ended") else LIMIT
            if type(given) is not wanted or (wanted is int and not 0 <= given < most):
                raise TypeError(f"{name} is not {wanted.__name__}")
        if any(type(each) is not str for pair in row.recorded.items() for each in pair):
            raise TypeError("recorded is not text")
        return row

    def to_data(self) -> list[Any]:
        """Return the fields as JSON values."""
        return [getattr(self, name) for name in fields(self)]


_SHARED = frozenset(fields(SessionRow)) & frozenset(fields(SessionInfo))
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
    known = SessionLists(store)
    contexts = ContextCompiler(store, keeps_files=False)
    found: dict[str, SessionRow | TraceError] = {}
    listed: dict[str, ListEntry] = {}
    if are_all:
        known.forget_others(tips)
    due = time.monotonic() + SAVE_SECONDS
    for count, (ref, tip) in enumerate(tips.items(), 1):
        try:
            listed[ref], found[ref] = _read(store, contexts, ref, tip, known.of(ref))
        except StorageError:
            raise
        except TraceError as error:
            found[ref] = error
        if time.monotonic() > due:
            known.save(listed)
            due = time.monotonic() + SAVE_SECONDS
        if progress is not None:
            progress(count, len(tips))
    known.save(listed)
    return found


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
        later = _continue_row(store, context, rows[context.view.base.tip][1])
        if later is not None:
            return ListEntry(context.view.summary, later.to_data(), True), later
    context, row = read_row(store, contexts, ref)
    return ListEntry(ContextSummary.of(contexts, context), row.to_data(), True), row


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


def _continue_row(store: Store, context: CompiledContext, before: SessionRow) -> SessionRow | None:
    """Return the row after commits that only append; None if the history must be read."""
    assert isinstance(context.view, SummaryView)
    if not before.prompt or is_inserted(before.prompt):
        return None  # the user may have said something since
    commits = [commit for _, commit in context.view.since]
    if any(len(commit.parents) > 1 for commit in commits):
        return None  # facts of a merged branch may count
    recorded = dict(before.recorded)
    for commit in commits:
        recorded.update(facts_of(commit, META))
    times = [commit.time for commit in commits if stored_messages(commit)]
    known_times = [time for time in (before.began, before.ended, *times) if time > 0]
    return replace(
        before,
        title=newest_title(store, reversed(commits)) or before.title,
        began=min(known_times, default=0),
        ended=max(known_times, default=0),
        recorded=_of_sessions(recorded),
        **_sizes(context),
    )


def _sizes(context: CompiledContext) -> dict[str, Any]:
    return {
        "message_count": len(context),
        "token_count": context.token_count,
        "token_source": context.token_source,
        "estimated_token_count": context.estimated_token_count,
    }


def _of_sessions(recorded: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in recorded.items() if name.startswith(PREFIX)}


def read_row(
    store: Store, contexts: ContextCompiler, ref: str
) -> tuple[CompiledContext, SessionRow]:
    """Return the context of a session, and its row, from the history."""
    session = read_session(store, ref, contexts=contexts, part=Window(_ENDS))
    turns = session.turns
    if session.start:  # the rest says nothing more
        begin = read_session(store, ref, contexts=contexts, part=Window(_ENDS, 0))
        if not any(map(is_prompt, begin.turns)):
            begin = read_session(store, ref, contexts=contexts)
        turns = begin.turns + turns
    agent, name, title, folder = _named(store, session)
    hidden_count = count_hidden(contexts, session.context)
    if hidden_count:
        prompt = excerpt(_first_prompt(contexts, session.commit, turns), PROMPT_CHARACTERS)
    else:
        prompt = excerpt(_prompt_in(turns), PROMPT_CHARACTERS)
    times = [turn.time for turn in turns if turn.time > 0]
    if not turns:
        times = [contexts.read_commit(session.commit).time]
    row = SessionRow(
        agent=agent,
        session=name or ref.removeprefix(BRANCHES),
        title=title,
        prompt=prompt,
        folder=folder,
        began=min(times, default=0),
        ended=max(times, default=0),
        hidden_count=hidden_count,
        recorded=_of_sessions(newest_facts(contexts, ref, session.commit)),
        **_sizes(session.context),
    )
    return session.context, row


def _named(store: Store, session: ExportSession) -> tuple[str, str, str, str]:
    """Return the program, the id, the agent's title and the folder of a session."""
    facts, ref = session.facts(), session.ref
    found = session_of(store, ref) if facts.session else None
    agent, name, _ = found or (session.format, session.id, "")
    if found and session_name(ref) is None and branch_of(store, f"{agent}/{name}") != ref:
        name = ""  # the id belongs to another branch
    return agent, name, facts.title, facts.cwd


def _prompt_in(turns: Sequence[SessionTurn]) -> str:
    turn = _first_turn(turns)
    return "" if turn is None else own_words(turn.message.text) or turn.message.text


def _first_turn(turns: Sequence[SessionTurn]) -> SessionTurn | None:
    """Return the first prompt in the words of the user; else one that a program wrote; None if there is none."""
    prompts = [turn for turn in turns if is_prompt(turn)]
    words = ((turn, own_words(turn.message.text)) for turn in prompts)
    own = (turn for turn, text in words if text.strip() and not is_inserted(text))
    return next(own, next(iter(prompts), None))


def _first_prompt(contexts: ContextCompiler, commit: ObjectId, turns: Sequence[SessionTurn]) -> str:
    """Return the first thing that a person wrote, also if a summary has replaced it."""
    turn = _first_turn(turns)
    first = None if turn is None else turn.message
    for entry in contexts.fold(commit).entries:
        if first is not None and entry.address == first.address:
            break
        is_user = entry.message["role"] == "user"
        is_user = is_user and entry.message.get("kind", "dialogue") == "dialogue"
        if is_user and entry.hidden == REPLACED:
            parts = load_parts(entry.parts, contexts.store.objects.read)
            text = "\n".join(part.text for part in parts if isinstance(part, Text))
            text = own_words(text)
            if text.strip() and not is_inserted(text):
                return text
    return "" if first is None else own_words(first.text) or first.text


def after_import(store: Store, tips: Mapping[str, ObjectId]) -> None:
    """Save the rows of imported sessions, so that no later command reads them for that."""
    own = {ref: tip for ref, tip in tips.items() if not (session_name(ref) or ("", "", ""))[2]}
    current_rows(store, own, are_all=False)


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
