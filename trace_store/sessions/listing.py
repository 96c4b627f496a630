"""Sessions of a repository, with what people recognise them by.

All fields are derived from the branch and cached in `cache/sessions` by its tip, so a listing reads only sessions that
changed. The file can be deleted at any time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.context.fold import REPLACED
from trace_store.context.wording import excerpt, is_inserted, own_words
from trace_store.contracts.ref_names import BRANCHES, TITLES
from trace_store.disk.files import read_file, replace_file
from trace_store.errors import (
    ObjectNotFoundError,
    StorageError,
)
from trace_store.exporters.contract import SessionTurn
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
_ENDS = 50
"""Number of messages at the beginning and at the end of a session that are read."""


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
    def name(self) -> str:
        """Its title, or else its first prompt, or else its id."""
        return self.title or self.prompt or self.session


def read_fields(store: Store, contexts: ContextCompiler, ref: str) -> list[Any]:
    """Return the cached fields of a session, in the order of `SessionInfo`."""
    session = read_session(store, ref, contexts=contexts, part=Window(_ENDS))
    turns = session.turns
    if session.start:  # the rest says nothing more
        begin = read_session(store, ref, contexts=contexts, part=Window(_ENDS, 0))
        if not any(map(is_prompt, begin.turns)):
            begin = read_session(store, ref, contexts=contexts)
        turns = begin.turns + turns
    hidden_count = count_hidden(contexts, session.context)
    facts = session.facts()
    found = session_of(store, ref) if facts.session else None
    known = found or (session.format, session.id, "")
    if found and session_name(ref) is None and branch_of(store, f"{found[0]}/{found[1]}") != ref:
        known = found[0], "", ""  # the id belongs to another branch
    prompt = _first_prompt(contexts, session.commit, turns) if hidden_count else _prompt_in(turns)
    times = [turn.time for turn in turns if turn.time > 0]
    context = session.context
    return [
        *(known[0], known[1] or ref.removeprefix(BRANCHES)),
        *(facts.title, excerpt(prompt, PROMPT_CHARACTERS), facts.cwd),
        *(min(times, default=0), max(times, default=0)),
        *(session.count, hidden_count, context.token_count, context.token_source),
        context.estimated_token_count,
        {
            name: value
            for name, value in newest_facts(contexts, ref, session.commit).items()
            if name.startswith(PREFIX)
        },
    ]


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


def load_cache(store: Store) -> dict[str, list[Any]]:
    """Return the fields of sessions by branch, each after the tip that it holds for, as the last listing saved them."""
    try:
        data = read_file(store.disk, os.path.join(store.layout.cache_dir, _FILE))
        saved = json.loads(data or b"{}")
    except (StorageError, ValueError):
        return {}
    if not isinstance(saved, dict) or saved.get("version") != VERSION:
        return {}
    found: dict[str, list[Any]] = saved["sessions"]
    return found


def save_cache(store: Store, found: dict[str, list[Any]]) -> None:
    """Save what `load_cache` returns; a failed write is ignored."""
    data = json.dumps({"version": VERSION, "sessions": found}).encode()
    try:
        store.disk.make_directory(store.layout.cache_dir)
        path = os.path.join(store.layout.cache_dir, _FILE)
        replace_file(store.disk, path, data, durable=False, scratch=store.layout.tmp_dir)
    except StorageError:
        return  # a read-only repository
