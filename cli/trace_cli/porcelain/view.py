"""`trace view`: a session in the pager, or as it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.porcelain.common import opened
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import ROLE_STYLES, counted, moment, number, paint
from trace_cli.runtime import Invocation
from trace_store import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.base.ident import format_time
from trace_store.contracts.ref_names import BRANCHES
from trace_store.errors import NotFoundError
from trace_store.exporters.contract import ExportSession, SessionTurn
from trace_store.objects.parts import Part
from trace_store.repo.repository import Repo

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
    with opened(invocation) as here:
        head, _, number = revision.rpartition(".")
        is_address = bool(head) and number.isdecimal()
        if is_address:
            session = _found_by(here, revision, hidden=hidden)
        else:
            session = here.sessions.read(revision, hidden=hidden)
        if not follow:
            invocation.page()
        for line in _head(invocation, session, whole=not is_address):
            invocation.line(line)
        _show(invocation, session.turns[session.begin :], full=full)
        if follow:
            _follow(invocation, here, session, hidden=hidden, full=full)


def _found_by(here: Repo, address: str, *, hidden: bool) -> ExportSession:
    try:
        return here.sessions.find(address, hidden=hidden)
    except NotFoundError as error:
        if error.data.get("argument") == "message":
            error.data.setdefault("hint", "`trace show` shows it alone")
        raise


def _head(invocation: Invocation, session: ExportSession, *, whole: bool) -> Iterator[str]:
    yield paint(invocation, one_line(session.title, 200), "bold")
    if not whole:
        yield f"branch:   {one_line(session.ref.removeprefix(BRANCHES), 300)}"
        return
    for name, text in session.overview():
        if name == "messages" and session.hidden_count > sum(bool(t.hidden) for t in session.turns):
            text += " (--hidden shows them)"
        if name in _FACTS:
            yield f"{name + ':':<10}{one_line(text, 300)}"


def _show(invocation: Invocation, turns: Sequence[SessionTurn], *, full: bool) -> None:
    for turn in turns:
        for line in _lines(invocation, turn, full=full):
            invocation.line(line)


def _lines(invocation: Invocation, turn: SessionTurn, *, full: bool) -> Iterator[str]:
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
        lines = list(_indented(part.text, "    ")) if part.text else []
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
        yield f"  [{number(len(part.data))} bytes in the format of {one_line(part.provider, 40)}]"


def _brief(call: ToolCall, *, full: bool) -> str:
    return one_line(call.arguments, 2_000 if full else 160)


def _indented(text: str, indent: str = "  ") -> Iterator[str]:
    for line in safe(text.expandtabs(4)).rstrip("\n").split("\n"):
        yield f"{indent}{line}".rstrip()


def _follow(
    invocation: Invocation, here: Repo, session: ExportSession, *, hidden: bool, full: bool
) -> None:
    """Print new messages of a branch until Ctrl-C."""
    shown = {turn.message.address for turn in session.turns}
    tip = session.commit
    try:
        while session.ref:
            time.sleep(POLL_SECONDS)
            now = here.line(session.ref).head.oid
            if now is None or now == tip:
                continue
            tip = now
            turns = here.sessions.read(session.ref, hidden=hidden).turns
            fresh = [turn for turn in turns if turn.message.address not in shown]
            shown.update(turn.message.address for turn in fresh)
            _show(invocation, fresh, full=full)
            invocation.flush()
    except KeyboardInterrupt:
        invocation.note("")
