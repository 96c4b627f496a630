"""What reflogs tell about the past: where a ref stood, and which branches HEAD has left.

Rule: reads the logs of refs, and changes nothing.
"""

from __future__ import annotations

from trace_store import errors, ident
from trace_store.oid import ObjectId
from trace_store.refs.log_messages import read_switch
from trace_store.refs.reflog import through_renames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.refs.database import RefDatabase
    from trace_store.refs.memory import MemoryRefs
    from trace_store.refs.reflog import ReflogEntry


def stood_at(
    refs: RefDatabase | MemoryRefs, name: str, when: str, now: int, revision: str
) -> ObjectId:
    """Return where a ref stood, so many moves ago or at a time.

    Args:
        refs: holds the ref and its log.
        name: its full name, or HEAD.
        when: a number of moves, or a time as people write it.
        now: the milliseconds that such a time is counted from.
        revision: what asks for it, for messages.

    Raises:
        RevisionNotFoundError: the log does not go back so far, or the ref did not exist then.
        InvalidInputError: `when` is neither a number nor a time.
    """
    entries = list(through_renames(name, refs.reflog))
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


def branch_left(refs: RefDatabase | MemoryRefs, number: int = 1, revision: str = "-") -> str:
    """Return the short name of the branch, or the id of the commit, that HEAD left so many moves ago.

    Raises:
        RevisionNotFoundError: it did not move so often.
    """
    left = 0
    for entry in refs.reflog("HEAD"):
        switched = read_switch(entry.message)
        if switched is not None:
            left += 1
            if left == number:
                return switched[0]
    raise errors.RevisionNotFoundError("no branch was left before", revision=revision)


def _moves_ago(
    number: int, values: Sequence[ObjectId | None], name: str, revision: str
) -> ObjectId:
    if number >= len(values):
        count = max(len(values) - 1, 0)
        raise errors.RevisionNotFoundError(
            f"the log of {name} has only {count} entr{'y' if count == 1 else 'ies'}",
            code=errors.ErrorCode.REFLOG_TOO_SHORT,
            name=name.removeprefix("refs/heads/"),
            revision=revision,
        )
    found = values[number]
    if found is None:
        raise errors.RevisionNotFoundError(f"{name} did not exist at {revision}", revision=revision)
    return ObjectId(found)


def _at(moment: int, entries: Sequence[ReflogEntry], name: str, revision: str) -> ObjectId:
    for entry in entries:
        if entry.time <= moment and entry.new is not None:
            return ObjectId(entry.new)
    oldest = ident.format_time(entries[-1].time) if entries else None
    since = "is empty" if oldest is None else f"goes back to {oldest}"
    raise errors.RevisionNotFoundError(f"the log of {name} {since}", revision=revision)
