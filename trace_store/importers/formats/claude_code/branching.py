"""Which thread a record belongs to, and where threads begin.

Rule: looks at links only to find what file order cannot tell: a subagent's lines among the session's, a prompt that
goes back behind what was said since, and a root at which the context began anew.
"""

from __future__ import annotations

from typing import NamedTuple

from trace_store.importers.contract import PlannedThread, Record
from trace_store.importers.formats.claude_code.finding import Spoken
from trace_store.importers.formats.claude_code.groups import TURN
from trace_store.importers.formats.claude_code.kinds import is_prompt
from trace_store.importers.formats.claude_code.threads import Session, Thread
from trace_store.importers.naming import ref_component, short_id

BEGINNING = -1


class Belonging(NamedTuple):
    """Where a record goes; a tuple, since there are as many as records.

    Attributes:
        thread: which thread.
        rewind: the commit that a prompt goes back to; BEGINNING for the very start; None when it does not.
        restart: whether the context begins anew.
        begun: the name of a thread that begins with it.
    """

    thread: Thread
    rewind: int | None = None
    restart: bool = False
    begun: PlannedThread | None = None


def belonging(
    session: Session, record: Record, origin: Spoken | str | None, *, own_agent: bool
) -> Belonging:
    """Return where a record that says something goes.

    Args:
        session: what is known of the session; a new subagent is added to it.
        record: the record.
        origin: what it hangs on, from the Finder.
        own_agent: whether the file is a subagent's own, so that being on the side means nothing.
    """
    if record.data.get("isSidechain") is True and not own_agent:
        return _on_the_side(session, record, origin)
    live = session.threads[session.live]
    if isinstance(origin, str):
        return _at_a_root(session, live, record, origin)
    if origin is None:
        return Belonging(live)
    thread = session.threads[origin[0]]
    if thread.side:
        return Belonging(live)
    if thread is not live and session.table.is_ancestor(origin[1], live.tip):
        thread = live
    thread.linked = True
    if thread is live and is_prompt(record) and _was_answered(session, live, origin[1]):
        target = session.table.compaction_of(origin[1], live.tip)
        if target == origin[1] or _was_answered(session, live, target):
            return Belonging(live, rewind=target)
    return Belonging(thread)


def side_thread(session: Session, record: Record, origin: Spoken | str | None) -> Thread | None:
    """Return the subagent that a record of the side belongs to, when it is known."""
    agent = record.data.get("agentId")
    if isinstance(agent, str) and agent:
        index = session.sides.get(agent)
    elif isinstance(origin, str):
        index = session.sides.get(origin)
    elif origin is not None and session.threads[origin[0]].side:
        index = origin[0]
    else:
        index = None
        if origin is None:
            index = next((t.index for t in reversed(session.threads) if t.side), None)
    return None if index is None else session.threads[index]


def _on_the_side(session: Session, record: Record, origin: Spoken | str | None) -> Belonging:
    known = side_thread(session, record, origin)
    if known is not None:
        return Belonging(known)
    live = session.threads[session.live]
    thread = session.new_thread(side=True)
    # It is called by the API message whose round is open, which may not have left it yet.
    thread.tip = live.api.number if live.api is not None else live.tip
    thread.fresh = thread.tip is not None
    agent = record.data.get("agentId")
    if isinstance(agent, str) and agent:
        session.sides[agent] = thread.index
        name = session.unique_name("agents", ref_component(agent))
    else:
        uuid = str(record.data.get("uuid") or f"line-{record.line}")
        session.sides[origin if isinstance(origin, str) else uuid] = thread.index
        name = session.unique_name("agents", short_id(uuid), ref_component(uuid))
    return Belonging(thread, begun=PlannedThread(thread.index, name))


def _at_a_root(session: Session, live: Thread, record: Record, root: str) -> Belonging:
    if live.empty and not live.root:
        live.root = root
        return Belonging(live)
    if root == live.root or root in session.restarts:
        back_to_start = root == live.root and live.linked and is_prompt(record)
        if back_to_start and not live.empty and root != record.data.get("uuid"):
            return Belonging(live, rewind=BEGINNING)
        return Belonging(live)
    if not live.linked:
        return Belonging(live)
    session.restarts.add(root)
    return Belonging(live, restart=True)


def _was_answered(session: Session, thread: Thread, number: int) -> bool:
    """Tell whether something was said after a commit that a new prompt there would leave behind."""
    for index, turn in enumerate(thread.turns):
        if turn.number == number:
            return any(later.prompt and later.kind == TURN for later in thread.turns[index + 1 :])
    here = [group.number for group in (thread.api, thread.results) if group is not None]
    if number in here:
        return any(turn.prompt and turn.kind == TURN for turn in thread.turns)
    if thread.api is not None or thread.results is not None:
        return True
    # The round holds turns alone, so what left it before them is what they answer.
    return number != thread.tip or any(turn.prompt for turn in thread.turns)
