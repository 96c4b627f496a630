"""Two results of one call: a commit that is made anew brings one, and the line that it goes on has another.

Rule: a context has one result for a call. Which one is a decision, so it is brought to the desk; until then it is ours.
"""

from __future__ import annotations

from trace_store.context.folding import Entry
from trace_store.joining.conflicts import BOTH, TEXT, THEIRS, TWO_ANSWERS, Desk
from trace_store.joining.groups import results_of
from trace_store.joining.properties import both_parts, reworded_parts
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from trace_store.joining.properties import Put
    from trace_store.objects.commit import Commit, Operation
    from trace_store.oid import ObjectId

    Rival = tuple[str, Entry, Entry]
    """The id of a call, the message that answers it already, and the one that would, too."""


def appended(oid: ObjectId, commit: Commit) -> list[Entry]:
    """Return the messages that a commit appends, as they are without what came after."""
    messages = [m for each in commit.operations for m in each.fields.get("messages", ())]
    return [Entry((oid, number), message) for number, message in enumerate(messages)]


def rival_answers(
    entries: Sequence[Entry], brought: Sequence[Entry], waited: Collection[str]
) -> list[Rival]:
    """Return the calls, among those that waited where the lines parted, that both answer."""
    has = {name: entry for entry in entries if entry.visible for name in results_of(entry)}
    return [
        (name, has[name], entry)
        for entry in brought
        for name in results_of(entry)
        if name in waited and name in has
    ]


def settle_answers(
    rivals: Sequence[Rival], calls: Mapping[str, Entry], desk: Desk, put: Put
) -> list[Operation]:
    """Return the operations after which each call has one result, as was settled."""
    made: list[Operation] = []
    for name, mine, yours in rivals:
        call = calls[name]
        settled = desk.bring(TWO_ANSWERS, [call.address], call, [mine], [yours])
        if settled.choice in (BOTH, TEXT):
            parts = both_parts(mine.parts, yours.parts)
            if settled.choice == TEXT:
                parts = reworded_parts(mine.parts, settled.text, put)
            made.append(ops.edit(mine.address, parts))
        left_out = mine.address if settled.choice == THEIRS else (ops.HERE, yours.address[1])
        made.append(ops.remove([left_out]))
    return made
