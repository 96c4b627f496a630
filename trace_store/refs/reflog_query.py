"""Queries of reflogs: a ref's earlier values, and HEAD's previous branches.

Rule: read-only.
"""

from __future__ import annotations

from trace_store import errors, ident
from trace_store.oid import ObjectId
from trace_store.refs.log_messages import read_switch
from trace_store.refs.reflog import follow_renames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.refs.database import RefDatabase
    from trace_store.refs.reflog import ReflogEntry


def value_at(refs: RefDatabase, name: str, when: str, now: int, revision: str) -> ObjectId:
    """Return a ref's value n moves ago or at a time.

    Args:
        refs: has the ref and its reflog.
        name: its full name, or HEAD.
        when: a number of moves, or a time as users write it.
        now: the current time in milliseconds, for relative times.
        revision: the revision being resolved, for messages.

    Raises:
        RevisionNotFoundError: the reflog does not go back that far, or the ref did not exist then.
        InvalidInputError: `when` is neither a number nor a time.
    """
    entries = list(follow_renames(name, refs.reflog))
    if ident.is_count(when):
        values = [entry.new for entry in entries]
        if entries:
            values.append(entries[-1].old)
        elif name != "HEAD":
            values = [refs.read(name)]
        return _moves_ago(ident.count_of(when), values, name, revision)
    moment = ident.parse_moment(when, now)
    if moment is None:
        raise errors.InvalidInputError(f"not a number or a time: {when[:80]!r}", text=revision)
    return _at(moment, entries, name, revision)


def previous_branch(refs: RefDatabase, number: int = 1, revision: str = "-") -> str:
    """Return the branch (short name) or commit id that HEAD was on n switches ago.

    Raises:
        RevisionNotFoundError: there were fewer switches.
    """
    count = 0
    for entry in refs.reflog("HEAD"):
        switched = read_switch(entry.message)
        if switched is not None:
            count += 1
            if count == number:
                return switched[0]
    raise errors.RevisionNotFoundError("no previous branch", revision=revision)


def _moves_ago(
    number: int, values: Sequence[ObjectId | None], name: str, revision: str
) -> ObjectId:
    if number >= len(values):
        count = max(len(values) - 1, 0)
        raise errors.RevisionNotFoundError(
            f"the reflog of {name} has only {count} entr{'y' if count == 1 else 'ies'}",
            code=errors.ErrorCode.REFLOG_TOO_SHORT,
            name=name.removeprefix("refs/heads/"),
            revision=revision,
        )
    value = values[number]
    if value is None:
        raise errors.RevisionNotFoundError(f"{name} did not exist at {revision}", revision=revision)
    return ObjectId(value)


def _at(moment: int, entries: Sequence[ReflogEntry], name: str, revision: str) -> ObjectId:
    for entry in entries:
        if entry.time <= moment and entry.new is not None:
            return ObjectId(entry.new)
    oldest = ident.format_time(entries[-1].time) if entries else None
    since = "is empty" if oldest is None else f"goes back to {oldest}"
    raise errors.RevisionNotFoundError(f"the reflog of {name} {since}", revision=revision)
