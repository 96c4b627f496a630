"""What commits that are made anew hold: copies of messages, other wordings, and links to what they were made of.

Rule: functions of commits and contexts. Nothing here is in progress.
"""

from __future__ import annotations

from trace_store.context.folding import Entry
from trace_store.joining import conflicts as kinds
from trace_store.joining.conflicts import TEXT
from trace_store.joining.groups import is_half, with_groups
from trace_store.joining.three_way.properties import reworded_parts
from trace_store.joining.three_way.squashing import copy_of, marks_of
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.origins import PICKED, REWRITES, later_link, later_name
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from trace_store.context.folding import Fold
    from trace_store.joining.desk import Desk
    from trace_store.joining.rewriting.todo import Step
    from trace_store.joining.three_way.properties import Put

    Address = tuple[bytes, int]


def copies(fold: Fold, address: Address, copied: set[Address]) -> list[Operation]:
    """Return what appends copies of a message, and of the calls or results that it stands with.

    Args:
        fold: the context in which it is taken.
        address: the message.
        copied: what was copied before, and is not copied again; what is copied is added.

    Raises:
        MessageNotFoundError: there is no such message there.
    """
    wanted = fold.entry(address)
    seen = [e for e in fold.entries if (e.visible and not e.is_ghost) or e is wanted]
    chosen = [e for e in with_groups(seen, [address]) if e.address not in copied]
    copied.update(entry.address for entry in chosen)
    if not chosen:
        return []  # it came with what was picked before
    made = [ops.append([copy_of(entry) for entry in chosen])]
    for number, entry in enumerate(chosen):
        made += marks_of(entry, (ops.HERE, number))
    return made


def reworded(
    oid: ObjectId,
    operations: Sequence[Operation],
    desk: Desk,
    put: Put,
    there: Collection[int] = (),
) -> list[Operation]:
    """Return operations with the wordings that were asked for in the messages that they create.

    Args:
        oid: the commit that they are of.
        operations: what it does.
        desk: where it is asked for them.
        put: stores them.
        there: the numbers of messages that are not shown, since they are there already.
    """
    made: list[Operation] = []
    number = 0
    for operation in operations:
        if not ops.message_count(operation):
            made.append(operation)
            continue
        messages = []
        for message in operation.fields["messages"]:
            entry = Entry((oid, number), message)
            if number not in there:
                settled = desk.bring(kinds.REWORDING, [entry.address], entry, [entry], ())
                if settled.choice == TEXT:
                    parts = reworded_parts(message["parts"], settled.text, put)
                    message = {**message, "parts": parts}
            messages.append(message)
            number += 1
        made.append(Operation(operation.name, {**operation.fields, "messages": messages}))
    return made


def links(
    step: Step, old: Commit, first: int = 0, *, rebases: bool
) -> list[tuple[str, ObjectId | str]]:
    """Return the links of a commit that is made anew: those it had, and where it comes from.

    What was rewritten before keeps all names that it had, so that old addresses are understood after any number of
    rebases; `first` is the number that its messages begin with now. A copy has its own origin, and no other.
    """
    name = str(step.oid) if step.number is None else f"{step.oid}.{step.number}"
    if not rebases:
        kept = [link for link in old.links if link[0] not in (REWRITES, PICKED)]
        return [*kept, (PICKED, name)]
    earlier = [later_link(*link, first) for link in old.links]
    return [*earlier, (REWRITES, later_name(name, first))]


def origins(
    commit: Commit, originals: Sequence[tuple[bytes, int]]
) -> list[tuple[str, ObjectId | str]]:
    """Return the links of a commit that another is squashed into; one that was kept so far names itself, too."""
    names = [(REWRITES, later_name(ObjectId(oid).hex(), first)) for oid, first in originals]
    return [*commit.links, *(link for link in names if link not in commit.links)]


def has_halves(commit: Commit) -> bool:
    """Tell whether a commit creates messages with calls or results."""
    return any(
        is_half(part)
        for operation in commit.operations
        if ops.message_count(operation)
        for message in operation.fields["messages"]
        for part in message["parts"]
    )
