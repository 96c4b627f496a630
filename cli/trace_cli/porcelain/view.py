"""`trace view`: a session in the pager, or as it grows."""

from __future__ import annotations

import time

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.porcelain.common import opened_store
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import ROLE_STYLES, counted, moment, number, paint
from trace_store.errors import NotFoundError
from trace_store.exporters.overview import session_facts, title_of
from trace_store.exporters.session import read_session
from trace_store.ident import format_time
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.refs.names import BRANCHES
from trace_store.revision import SESSIONS, commits_of, resolve_address
from trace_store.sessions.listing import revision_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_cli.runtime import Invocation
    from trace_store.exporters.contract import ExportSession, Turn
    from trace_store.objects.address import Address
    from trace_store.objects.parts import Part
    from trace_store.store.handle import Store

FOLDED_LINES = 8
"""How many lines of tool output are shown without --full."""
POLL_SECONDS = 0.5
_FACTS = ("agent", "model", "folder", "time", "messages", "tokens")


@takes(
    Argument(
        "SESSION",
        "revision",
        "A session id (prefix), a branch, a revision, or a message to start at",
        OPTIONAL,
        default="HEAD",
        completes="COMMIT",
    ),
    Option("--full", "full", "Show full tool output and reasoning"),
    Option("--follow", "follow", "Keep printing new messages until Ctrl-C"),
    Option("--hidden", "hidden", "Include messages hidden from the model"),
)
def view(invocation: Invocation, *, revision: str, full: bool, follow: bool, hidden: bool) -> None:
    """Read a session.

    Messages are printed in order with their addresses. Tool output is cut to its first lines. On a terminal a pager
    opens.

        trace view 89c6
        trace view HEAD~3.0
        trace view --follow
    """
    with opened_store(invocation) as store:
        begin = _begin(store, revision)
        if begin:
            session, turns = _from_message(store, begin, hidden=hidden)
        else:
            session = read_session(store, revision_of(store, revision), hidden=hidden)
            turns = list(session.turns)
        if not follow:
            invocation.page()
        for line in _head(invocation, session, whole=not begin):
            invocation.line(line)
        _show(invocation, turns, full=full)
        if follow:
            _follow(invocation, store, session, hidden=hidden, full=full)


def _begin(store: Store, revision: str) -> Address | None:
    """Return the address that a name means; None for a revision."""
    if not revision.rpartition(".")[2].isdecimal() or "." not in revision:
        return None
    return resolve_address(store, revision)


def _from_message(
    store: Store, begin: Address, *, hidden: bool
) -> tuple[ExportSession, list[Turn]]:
    """Return a session that contains a message, and its turns from that message on.

    HEAD's branch is preferred.

    Raises:
        NotFoundError: no branch contains the message.
    """
    commits = commits_of(store)
    head = store.refs.head()
    tips = {ref: tip for ref, tip in store.refs.values().items() if ref.startswith(BRANCHES)}
    born = store.objects.resolve_prefix(begin.birth.hex())

    def carries(ref: str) -> bool:
        return not any(commits.is_ancestor(oid, tips[ref]) for oid in born)

    # HEAD's branch first, then imported sessions; last the branches that only contain a copy.
    order = {
        ref: (carries(ref), ref != head.ref, not ref.startswith(SESSIONS), ref) for ref in tips
    }
    for ref in sorted(tips, key=order.__getitem__):
        for shows in dict.fromkeys((hidden, True)):
            session = read_session(store, ref, hidden=shows)
            for at, turn in enumerate(session.turns):
                if turn.message.address == begin:
                    return session, list(session.turns[at:])
    raise NotFoundError(
        f"no branch contains {short_address(begin)}", hint="`trace show` shows it alone"
    )


def _head(invocation: Invocation, session: ExportSession, *, whole: bool) -> Iterator[str]:
    yield paint(invocation, one_line(title_of(session), 200), "bold")
    if not whole:
        yield f"branch:   {one_line(session.ref.removeprefix(BRANCHES), 300)}"
        return
    for name, text in session_facts(session):
        if name == "messages" and session.hidden_count > sum(bool(t.hidden) for t in session.turns):
            text += " (--hidden shows them)"
        if name in _FACTS:
            yield f"{name + ':':<10}{one_line(text, 300)}"


def _show(invocation: Invocation, turns: list[Turn], *, full: bool) -> None:
    for turn in turns:
        for line in _lines(invocation, turn, full=full):
            invocation.line(line)


def _lines(invocation: Invocation, turn: Turn, *, full: bool) -> Iterator[str]:
    message = turn.message
    said = [paint(invocation, short_address(message.address), "yellow")]
    said.append(paint(invocation, message.role, ROLE_STYLES.get(message.role, "")))
    said += [one_line(each, 60) for each in (message.model, turn.reason, turn.hidden) if each]
    said += [paint(invocation, "ghost", "cyan")] if message.ghost else []
    if turn.time:
        said.append(paint(invocation, moment(format_time(turn.time)), "dim"))
    yield ""
    yield "  ".join(said)
    for part in message.parts:
        yield from _part(invocation, part, short_address(message.address), full=full)


def _part(invocation: Invocation, part: Part, address: str, *, full: bool) -> Iterator[str]:
    if isinstance(part, Text):
        yield from _indented(part.text)
    elif isinstance(part, ToolCall):
        yield f"  → {paint(invocation, one_line(part.name, 80), 'bold')} {_brief(part, full=full)}"
    elif isinstance(part, ToolResult):
        yield f"  ← {'failed' if part.is_error else 'result'}"
        text = "\n".join(each.text for each in part.content if isinstance(each, Text))
        lines = list(_indented(text, "    ")) if text else []
        shown = lines if full else lines[:FOLDED_LINES]
        yield from shown
        if len(shown) < len(lines):
            rest = counted(len(lines) - len(shown), "line")
            yield paint(invocation, f"    … {rest} more; `trace show {address}`", "dim")
        for each in part.content:
            if not isinstance(each, Text):
                yield from _part(invocation, each, address, full=full)
    elif isinstance(part, Reasoning):
        if full and part.text:
            yield from _indented(part.text, "  | ")
        else:
            yield paint(invocation, f"  [reasoning, {counted(len(part.text), 'character')}]", "dim")
    elif isinstance(part, Image):
        yield f"  [image {one_line(part.media_type or part.url or '', 120)}]"
    elif isinstance(part, Opaque):
        yield f"  [{number(len(part.data))} bytes in the form of {one_line(part.provider, 40)}]"


def _brief(call: ToolCall, *, full: bool) -> str:
    return one_line(call.arguments, 2_000 if full else 160)


def _indented(text: str, indent: str = "  ") -> Iterator[str]:
    for line in safe(text.expandtabs(4)).rstrip("\n").split("\n"):
        yield f"{indent}{line}".rstrip()


def _follow(
    invocation: Invocation, store: Store, session: ExportSession, *, hidden: bool, full: bool
) -> None:
    """Print new messages of a branch until Ctrl-C."""
    shown = {turn.message.address for turn in session.turns}
    tip = session.commit
    try:
        while session.ref:
            time.sleep(POLL_SECONDS)
            now = store.refs.read(session.ref)
            if now is None or now == tip:
                continue
            tip = now
            turns = read_session(store, session.ref, hidden=hidden).turns
            fresh = [turn for turn in turns if turn.message.address not in shown]
            shown.update(turn.message.address for turn in fresh)
            _show(invocation, fresh, full=full)
            invocation.flush()
    except KeyboardInterrupt:
        invocation.note("")
