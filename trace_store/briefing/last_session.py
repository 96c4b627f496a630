"""What the last session left: from its newest soft checkpoint, or from its last messages by the same rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from trace_store import errors
from trace_store.base.ident import format_time
from trace_store.briefing.brief import plain
from trace_store.checkpoints.checkpoints import Checkpoints
from trace_store.checkpoints.hard import SOFT
from trace_store.checkpoints.work_state import Check, WorkState, work_state
from trace_store.context.compiled import CompiledMessage
from trace_store.context.wording import is_prompt, own_words
from trace_store.contracts.ref_names import BRANCHES
from trace_store.search.query import Hit, SearchFilter, search
from trace_store.sessions.listing import SessionInfo
from trace_store.store.store import Store
from trace_store.writer import Writer

MAXIMUM_MESSAGES = 2_000
"""How many of a session's last messages are read, if it has no soft checkpoint."""
MAXIMUM_HITS = 200
"""How many of the last messages with a word or a file are read."""
_TASKS, _CONSTRAINTS, _DECISIONS, _CHECKS, _OPEN = 6, 4, 4, 4, 4
_START = 60
"""Number of characters by which a quoted text is found again."""
_FAILED = "Failed: "
"""Begins the open end of a call that failed; if the work ended with an answer, that says how."""


def last_session_notes(
    writer: Writer, checkpoints: Checkpoints, session: SessionInfo
) -> Iterator[tuple[str, str]]:
    """Yield (address, text) of a session's results, the most important first.

    Raises:
        ObjectNotFoundError, CorruptObjectError: content is missing or damaged.
    """
    saved = _soft_state(checkpoints, session)
    messages = () if saved else _messages(writer, session)
    if not (saved or messages):
        return
    state, address = saved or (work_state(messages, 0), session.tip.short())
    yield address, session_line(session)
    for text, quoted in _notes(state):
        yield _place_of(quoted, messages) or address, text
    for decision in state.decisions[-_DECISIONS:][::-1]:
        where = str(decision.address) if decision.address else address
        yield where, f"Decided: {plain(decision.text, 300)}"


def session_line(session: SessionInfo) -> str:
    """Return the name of a session with its agent and day."""
    name = plain(session.title or session.prompt or session.ref.removeprefix(BRANCHES), 100)
    day = format_time(session.ended)[:10] if session.ended else ""
    facts = ", ".join(filter(None, (session.agent, day)))
    return f"{name} ({facts})" if facts else name


def sessions_with_file(store: Store, file: str) -> set[str]:
    """Return the branches whose last calls name a file."""
    return {hit.ref for hit in _hits(store, "", SearchFilter(path=file))}


def sessions_about(
    writer: Writer, words: Iterable[str], is_about: Callable[[str], bool]
) -> set[str]:
    """Return the branches with a prompt about the subject, of the last prompts with any of some words."""
    found = _hits(writer.store, " OR ".join(sorted(words)), SearchFilter(role="user"))
    messages = writer.contexts.messages([hit.address for hit in found])
    return {
        hit.ref
        for hit, message in zip(found, messages, strict=True)
        if is_prompt(message) and is_about(own_words(message.text))
    }


def _hits(store: Store, query: str, wanted: SearchFilter) -> list[Hit]:
    try:
        return search(store, query, wanted, limit=MAXIMUM_HITS, hidden=False, echoes=False)
    except (errors.StateError, errors.InvalidInputError):
        return []  # no full-text search, or no word to search for


def _soft_state(checkpoints: Checkpoints, session: SessionInfo) -> tuple[WorkState, str] | None:
    """Return the content of the newest soft checkpoint at a session's last commit and its name, or None."""
    found = [
        each for each in checkpoints.list() if each.form == SOFT and each.branch == session.ref
    ]
    for each in sorted(found, key=lambda each: each.time, reverse=True):
        if checkpoints.source(each) != session.tip:
            continue  # the session went further
        try:
            return WorkState.from_map(checkpoints.data(each.name)), f"checkpoints/{each.name}"
        except (KeyError, TypeError, errors.CorruptObjectError):
            continue
    return None


def _messages(writer: Writer, session: SessionInfo) -> Sequence[CompiledMessage]:
    return list(writer.contexts.compile(session.tip).messages[-MAXIMUM_MESSAGES:])


def _place_of(quoted: str, messages: Sequence[CompiledMessage]) -> str:
    """Return the address of the newest message that says a text, or begins it as it does, else ""."""
    start = " ".join(quoted.split())[:_START]
    found = (each for each in reversed(messages) if start in " ".join(each.text.split()))
    place = next(found, None) if start else None
    return "" if place is None else place.address.short()


def _notes(state: WorkState) -> Iterator[tuple[str, str]]:
    """Yield each note, and the text of a message that it quotes, or ""."""
    if state.summary:
        yield plain(state.summary, 600), ""
    request = state.latest_request or state.request
    if request and not state.summary:
        yield f"Last request: {plain(request, 300)}", request
    if state.outcome:
        yield f"Outcome: {plain(state.outcome, 400)}", state.outcome
    elif state.last_said:
        yield f"Not finished; last said: {plain(state.last_said, 300)}", state.last_said
    for text in state.in_progress[:_TASKS]:
        yield f"In progress: {plain(text, 160)}", ""
    for check in state.checks[-_CHECKS:]:
        if not check.passed:
            yield f"Failing: {_check(check)}", ""
    for text in state.pending[:_TASKS]:
        yield f"Not started: {plain(text, 160)}", ""
    is_done = bool(state.outcome)
    open_ends = [each for each in state.open_ends if not (is_done and each.startswith(_FAILED))]
    for text in open_ends[:_OPEN]:
        yield f"Open: {plain(text, 240)}", ""
    for text in state.constraints[-_CONSTRAINTS:][::-1]:
        yield f"The user said: {plain(text, 240)}", text


def _check(check: Check) -> str:
    since = f", {check.writes_since} writes since" if check.writes_since else ""
    return f"{plain(check.program, 60)}: {plain(check.said, 160)}{since}".removesuffix(": ")
