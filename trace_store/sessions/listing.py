"""Sessions of a repository, with what people recognise them by.

All fields are derived from the branch and cached in `cache/sessions` by its tip, so a listing reads only sessions that
changed, and of these what is new. The file can be deleted at any time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from trace_store.base.frozen import fields, value
from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.context.fold import REPLACED
from trace_store.context.index_update import step_of
from trace_store.context.wording import excerpt, is_inserted, own_words
from trace_store.contracts.ref_names import BRANCHES, RECORDS, TITLES
from trace_store.disk.files import read_file, replace_file
from trace_store.errors import (
    ObjectNotFoundError,
    StorageError,
    TraceError,
)
from trace_store.exporters.contract import ExportSession, SessionTurn
from trace_store.exporters.overview import is_prompt
from trace_store.exporters.session import Window, count_hidden, read_session, session_name
from trace_store.history.facts import newest_facts
from trace_store.importers.convert import branch_of, session_of
from trace_store.objects.commit import Tag
from trace_store.objects.message import load_parts
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


VERSION = 7
PROMPT_CHARACTERS = 200
_FILE = "sessions"
_ENDS = 20
"""Number of messages at the beginning and at the end of a session that are read."""
SAVE_SECONDS = 2
"""How often a listing saves what it has read, so that an interrupted one was of use."""
_FEW = 64
"""Over this many commits, a listing finds that a session only grew."""


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
    """What is saved of a session: the tip that it holds for, and fields of `SessionInfo`; `recorded` are its facts."""

    tip: str
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

    def info(self, ref: str, **more: Any) -> SessionInfo:
        """Return the session, with the fields that are not saved."""
        shared = {name: getattr(self, name) for name in fields(self) if name in _SHARED}
        return SessionInfo(ref, ObjectId.parse(self.tip), **{**shared, **more})


_SHARED = frozenset(fields(SessionRow)) & frozenset(fields(SessionInfo)) - {"tip"}


def current_rows(
    store: Store,
    tips: Mapping[str, ObjectId],
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, SessionRow | TraceError]:
    """Return a row for each branch, or why it cannot be read; changed ones are read and saved, also while this works.

    A branch that is read for the first time gets no files. One that changed after a listing will change again, so its
    compile index is kept.

    Args:
        store: the store.
        tips: the branches.
        progress: called with the numbers of read and of all branches.

    Raises:
        StorageError: a file cannot be read.
    """
    saved = load_rows(store)
    first, again = ContextCompiler(store, keeps_files=False), ContextCompiler(store)
    found: dict[str, SessionRow | TraceError] = {}
    rows: dict[str, SessionRow] = {}
    due = time.monotonic() + SAVE_SECONDS
    for count, (ref, tip) in enumerate(tips.items(), 1):
        before = saved.get(ref)
        try:
            if before is not None and before.tip == str(tip):
                rows[ref] = before
            else:
                rows[ref] = read_row(store, again if before else first, ref, before)
            found[ref] = rows[ref]
        except StorageError:
            raise
        except TraceError as error:
            found[ref] = error
        if time.monotonic() > due:
            save_rows(store, {**saved, **rows})
            due = time.monotonic() + SAVE_SECONDS
        if progress is not None:
            progress(count, len(tips))
    if rows != saved:
        save_rows(store, rows)
    return found


def read_row(
    store: Store, contexts: ContextCompiler, ref: str, before: SessionRow | None = None
) -> SessionRow:
    """Return the row of a session.

    Args:
        store: the store.
        contexts: its compiler.
        ref: the session's branch.
        before: an earlier row. If only appends followed, the prompt and the hidden messages are as before.
    """
    session = read_session(store, ref, contexts=contexts, part=Window(_ENDS))
    if before is not None and not _only_appends(contexts, session.commit, before.tip):
        before = None
    if before is not None and (not before.prompt or is_inserted(before.prompt)):
        before = None  # the user may have said something since
    turns = session.turns
    if session.start and before is None:  # the rest says nothing more
        begin = read_session(store, ref, contexts=contexts, part=Window(_ENDS, 0))
        if not any(map(is_prompt, begin.turns)):
            begin = read_session(store, ref, contexts=contexts)
        turns = begin.turns + turns
    agent, name, title, folder = _named(store, session, before)
    hidden_count = before.hidden_count if before else count_hidden(contexts, session.context)
    if before is not None:
        prompt = before.prompt
    elif hidden_count:
        prompt = excerpt(_first_prompt(contexts, session.commit, turns), PROMPT_CHARACTERS)
    else:
        prompt = excerpt(_prompt_in(turns), PROMPT_CHARACTERS)
    times = [turn.time for turn in turns if turn.time > 0]
    if not turns:
        times = [contexts.read_commit(session.commit).time]
    times += [time for time in (before.began, before.ended) if time] if before else []
    context = session.context
    recorded = newest_facts(contexts, ref, session.commit)
    return SessionRow(
        tip=str(session.commit),
        agent=agent,
        session=name or ref.removeprefix(BRANCHES),
        title=title,
        prompt=prompt,
        folder=folder,
        began=min(times, default=0),
        ended=max(times, default=0),
        message_count=session.count,
        hidden_count=hidden_count,
        token_count=context.token_count,
        token_source=context.token_source,
        estimated_token_count=context.estimated_token_count,
        recorded={name: value for name, value in recorded.items() if name.startswith(PREFIX)},
    )


def _named(
    store: Store, session: ExportSession, before: SessionRow | None
) -> tuple[str, str, str, str]:
    """Return the program, the id, the agent's title and the folder of a session."""
    if before is not None:
        title = session.reader.title_since(before.tip) or before.title
        return before.agent, before.session, title, before.folder
    facts, ref = session.facts(), session.ref
    found = session_of(store, ref) if facts.session else None
    agent, name, _ = found or (session.format, session.id, "")
    if found and session_name(ref) is None and branch_of(store, f"{agent}/{name}") != ref:
        name = ""  # the id belongs to another branch
    return agent, name, facts.title, facts.cwd


def _only_appends(contexts: ContextCompiler, tip: ObjectId, earlier: str) -> bool:
    """Return True if a few commits that only append lead from an earlier commit to the tip."""
    oid: bytes | None = tip
    for _ in range(_FEW):
        if oid is None or oid.hex() == earlier:
            return oid is not None
        step = step_of(oid, contexts.read_commit(oid))
        oid = None if step is None else step.parent
    return False


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


def load_rows(store: Store) -> dict[str, SessionRow]:
    """Return the rows of sessions by branch, as the last listing saved them."""
    try:
        data = read_file(store.disk, os.path.join(store.layout.cache_dir, _FILE))
        saved = json.loads(data or b"{}")
    except (StorageError, ValueError):
        return {}
    if not isinstance(saved, dict) or saved.get("version") != VERSION:
        return {}
    try:
        return {ref: SessionRow(*row) for ref, row in saved["sessions"].items()}
    except (LookupError, TypeError, AttributeError):
        return {}  # damaged, so all is read again


def save_rows(store: Store, rows: Mapping[str, SessionRow]) -> None:
    """Save what `load_rows` returns; a failed write is ignored."""
    names = fields(SessionRow)
    saved = {ref: [getattr(row, name) for name in names] for ref, row in rows.items()}
    data = json.dumps({"version": VERSION, "sessions": saved}).encode()
    try:
        store.disk.make_directory(store.layout.cache_dir)
        path = os.path.join(store.layout.cache_dir, _FILE)
        replace_file(store.disk, path, data, durable=False, scratch=store.layout.tmp_dir)
    except StorageError:
        return  # a read-only repository
