"""Two results of one call: a commit that is made anew brings one, and the line that it goes on has another.

Rule: a context has one result for a call. Which one is a decision, so it is brought to the desk; until then it is ours.
"""

from __future__ import annotations

from trace_store.context.folding import Entry, is_append_only
from trace_store.context.pairs import callers
from trace_store.joining.conflicts import BOTH, TEXT, THEIRS, TWO_ANSWERS
from trace_store.joining.desk import Desk
from trace_store.joining.groups import is_half, results_of
from trace_store.joining.three_way.exchanges import is_result_of, without_results
from trace_store.joining.three_way.properties import both_parts, reworded_parts
from trace_store.objects import operations as ops
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from trace_store.context.folding import Fold
    from trace_store.joining.three_way.properties import Put
    from trace_store.objects.commit import Commit, Operation
    from trace_store.oid import ObjectId

    Address = tuple[bytes, int]


@value
class Rival:
    """Calls of one message that both lines answer.

    Attributes:
        call: the message.
        ids: the ids of these calls.
        mine: the messages of the new line that answer them.
        yours: those that come in and would, too; either may answer others besides.
    """

    call: Entry
    ids: set[str]
    mine: Sequence[Entry]
    yours: Sequence[Entry]


def brought(
    oid: ObjectId, made: Commit, before: Callable[[], Fold], others: Sequence[Fold | None]
) -> list[Entry]:
    """Return the messages that a commit brings and shows; only those that it appends, where it does nothing else.

    Args:
        oid: the commit's id.
        made: the commit.
        before: gives the context that it goes on from.
        others: the contexts of its parents, as far as it includes messages of them.
    """
    messages = [m for each in made.operations for m in each.fields.get("messages", ())]
    if is_append_only(made):
        return [Entry((oid, number), message) for number, message in enumerate(messages)]
    if not any(others) and not any(is_half(part) for m in messages for part in m["parts"]):
        return []  # nothing of an exchange
    had = before()
    after = had.copy()
    after.apply(oid, made, others)
    return [each for each in after.visible() if each.address not in had]


def answers_of_others(brought: Sequence[Entry], there: Sequence[Entry]) -> set[str]:
    """Return the ids of the calls that messages answer but do not make, and of those that the new line has already.

    Args:
        brought: the messages.
        there: those of them that the new line has.
    """
    own = callers(brought)
    return {
        name
        for at, entry in enumerate(brought)
        for name in results_of(entry)
        if own.get((at, name), at) >= at or brought[own[at, name]] in there
    }


def called_by(
    entries: Sequence[Entry], brought: Sequence[Entry], names: Collection[str]
) -> dict[tuple[Address, str], Address]:
    """Return which call each result that comes in answers on its own line: an id may be used again.

    Args:
        entries: the messages of their own line, with these.
        brought: those that come in.
        names: the ids of calls that they answer.
    """
    seen = [entry for entry in entries if entry.visible and not entry.is_ghost]
    new = {entry.address for entry in brought}
    return {
        (seen[result].address, name): seen[call].address
        for (result, name), call in callers(seen).items()
        if name in names and seen[result].address in new and seen[call].address not in new
    }


def rival_answers(
    entries: Sequence[Entry],
    brought: Sequence[Entry],
    called: Mapping[tuple[Address, str], Address],
) -> list[Rival]:
    """Return what both lines answer, by the messages that call.

    Args:
        entries: the messages of the new line.
        brought: those that come in.
        called: for each result among these, and the id, the message of the new line whose call it answers.
    """
    seen = [entry for entry in entries if entry.visible and not entry.is_ghost]
    answers: dict[tuple[Address, str], list[int]] = {}
    for (result, name), call in callers(seen).items():
        answers.setdefault((seen[call].address, name), []).append(result)
    answered: dict[Address, set[str]] = {}
    for (_, name), address in called.items():
        if (address, name) in answers:
            answered.setdefault(address, set()).add(name)
    found: list[Rival] = []
    for entry in seen:
        ids = answered.get(entry.address)
        if not ids:
            continue
        mine = sorted({result for name in ids for result in answers[entry.address, name]})
        yours = [
            e for e in brought if any(called.get((e.address, n)) == entry.address for n in ids)
        ]
        found.append(Rival(entry, ids, [seen[each] for each in mine], yours))
    return found


def settle_answers(
    rivals: Sequence[Rival], desk: Desk, put: Put, place: Callable[[Address], Address]
) -> list[Operation]:
    """Return the operations after which each call has one result, as was settled.

    Args:
        rivals: what both lines answer.
        desk: where it is settled.
        put: stores texts.
        place: says where a message that comes in is on the new line.
    """
    made: list[Operation] = []
    for rival in rivals:
        call, ids, mine, yours = rival.call, rival.ids, rival.mine, rival.yours
        settled = desk.bring(TWO_ANSWERS, [call.address], call, mine, yours)
        if settled.choice == THEIRS:
            made += [_without(each, each.address, ids) for each in mine]
            continue
        said = [part for each in yours for part in each.parts if is_result_of(part, ids)]
        for each in mine if settled.choice in (BOTH, TEXT) else ():
            own = ids & set(results_of(each))
            parts = both_parts(each.parts, [part for part in said if part["id"] in own])
            if settled.choice == TEXT:
                parts = reworded_parts(each.parts, settled.text, put)
            made.append(ops.edit(each.address, parts))
        made += [_without(each, place(each.address), ids) for each in yours]
    return made


def _without(entry: Entry, address: tuple[bytes, int], ids: Collection[str]) -> Operation:
    """Return what takes results out of a message, which goes when it says nothing else."""
    left = without_results(entry, entry.parts, ids)
    return ops.edit(address, left) if left else ops.remove([address])
