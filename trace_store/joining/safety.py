"""What another order of messages may do to their meaning, by rules that always say the same.

Rule: pure functions of contexts. They warn and change nothing; each warning names its messages.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.comparing.aligning import longest_rise
from trace_store.context.pairs import callers
from trace_store.joining.groups import calls_of, results_of
from trace_store.joining.plan import DECISION
from trace_store.objects.content import read_content, text_of
from trace_store.objects.operations import PINNED
from trace_store.oid import ObjectId
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from trace_store.context.folding import Entry

    Address = tuple[bytes, int]

REFERENCE_LATER = "reference-later"
RESULT_BEFORE_CALL = "result-before-call"
INSTRUCTION_MOVED = "instruction-moved"
DECISION_LATER = "decision-later"
CALL_WITHOUT_RESULT = "call-without-result"
RESULT_WITHOUT_CALL = "result-without-call"
EDIT_BEFORE_TARGET = "edit-before-target"
PIN_LOST = "pin-lost"
JUDGED = "judged"

MEANINGS: Mapping[str, str] = {
    REFERENCE_LATER: "it refers to a message that would now come later",
    RESULT_BEFORE_CALL: "the result would come before its call",
    INSTRUCTION_MOVED: "the instruction would no longer stand before what it is about",
    DECISION_LATER: "the decision would come after what it decided",
    CALL_WITHOUT_RESULT: "the call has no result here",
    RESULT_WITHOUT_CALL: "the result has no call here",
    EDIT_BEFORE_TARGET: "it is changed by a commit that would come before it",
    PIN_LOST: "it is not pinned any more",
    JUDGED: "a model says that it may not mean what it meant",
}
_SHORTEST = 8
_HEX = frozenset("0123456789abcdef")


@value
class MeaningWarning:
    """Something that may not mean what it meant before.

    Attributes:
        kind: one of MEANINGS.
        address: the message.
        others: the messages that it is about; the first few.
        said: what a model says of it, for JUDGED.
    """

    kind: str
    address: Address
    others: tuple[Address, ...] = ()
    said: str = ""

    @property
    def meaning(self) -> str:
        """What it is, in a few words."""
        return self.said or MEANINGS[self.kind]


def texts_of(entry: Entry, read: Callable[[bytes], bytes]) -> str:
    """Return what a message says in its texts; nothing where they are not here."""
    said = [part["blob"] for part in entry.parts if part.get("type") == "text"]
    try:
        return "\n".join(text_of(read_content(oid, read)) for oid in said)
    except errors.NotFoundError:
        return ""


def check_order(
    before: Sequence[Entry],
    after: Sequence[Address],
    said_by: Callable[[Entry], str],
) -> list[MeaningWarning]:
    """Return warnings about an order of the visible messages of a context, against the one that they had.

    Args:
        before: the messages as they stood.
        after: where they stand; messages that are not among `before` are passed over.
        said_by: what a message says, asked only of those that others passed.
    """
    places = {address: at for at, address in enumerate(after)}
    entries = [entry for entry in before if entry.address in places]
    ranks = [places[entry.address] for entry in entries]
    if ranks == sorted(ranks):
        return []
    calls = callers(entries)
    found: list[MeaningWarning] = []
    for at, others in sorted(passed(ranks).items()):
        entry = entries[at]
        overtook = [entries[each] for each in sorted(others) if each > at]
        fell = [entries[each] for each in sorted(others) if each < at]
        called = [entries[calls[at, n]] for n in results_of(entry) if (at, n) in calls]
        found += _judged(entry, called, overtook, fell, said_by)
    return found


def passed(ranks: Sequence[int]) -> dict[int, list[int]]:
    """Return for each old place those whose order against it changes; `ranks` are the new places of what stands there.

    Two messages that did not move keep their order, so such pairs, which are nearly all, are not tried.
    """
    staying = longest_rise(ranks)
    found: dict[int, list[int]] = {}
    for at in range(len(ranks)):
        if at in staying:
            continue
        for other, rank in enumerate(ranks):
            is_tried = other in staying or other > at
            if is_tried and (at < other) != (ranks[at] < rank):
                found.setdefault(at, []).append(other)
                found.setdefault(other, []).append(at)
    return found


def _judged(
    entry: Entry,
    called: Sequence[Entry],
    overtook: Sequence[Entry],
    fell: Sequence[Entry],
    said_by: Callable[[Entry], str],
) -> list[MeaningWarning]:
    found: list[MeaningWarning] = []
    calls = [e for e in fell if any(e is each for each in called)]
    if calls:
        found.append(_warning(RESULT_BEFORE_CALL, entry, calls))
    if overtook and is_instruction(entry):
        found.append(_warning(INSTRUCTION_MOVED, entry, overtook))
    if overtook and DECISION in entry.labels:
        found.append(_warning(DECISION_LATER, entry, overtook))
    if fell:
        said = set(mentions(said_by(entry)))
        named = [e for e in fell if any(_is_called(e.address, each) for each in said)]
        if named:
            found.append(_warning(REFERENCE_LATER, entry, named))
    return found


def loose_ends(entries: Sequence[Entry], touched: Iterable[Address]) -> list[MeaningWarning]:
    """Return warnings about calls and results among some messages whose other half a context does not show."""
    names = set(touched)
    called = callers(entries)
    answered = {(call, name) for (_, name), call in called.items()}
    found: list[MeaningWarning] = []
    for at, entry in enumerate(entries):
        if entry.address in names:
            if any((at, name) not in answered for name in calls_of(entry)):
                found.append(MeaningWarning(CALL_WITHOUT_RESULT, entry.address))
            if any((at, name) not in called for name in results_of(entry)):
                found.append(MeaningWarning(RESULT_WITHOUT_CALL, entry.address))
    return found


def newly_loose(
    before: Sequence[Entry], after: Sequence[Entry], old: Mapping[Address, Address]
) -> list[MeaningWarning]:
    """Return warnings about messages whose other half a context does not show, and did.

    Args:
        before: the visible messages as they stood.
        after: those that are visible now.
        old: the addresses that messages of `after` had in `before`.
    """
    was = {(each.kind, each.address) for each in loose_ends(before, [e.address for e in before])}
    now = loose_ends(after, [entry.address for entry in after if entry.address in old])
    return [each for each in now if (each.kind, old[each.address]) not in was]


def lost_pins(
    before: Sequence[Entry], after: Sequence[Entry], old: Mapping[Address, Address]
) -> list[MeaningWarning]:
    """Return warnings about messages that were pinned and are shown without that; as `newly_loose` otherwise."""
    pinned = {entry.address for entry in before if entry.priority == PINNED}
    return [
        MeaningWarning(PIN_LOST, entry.address)
        for entry in after
        if entry.priority != PINNED and old.get(entry.address) in pinned
    ]


def is_instruction(entry: Entry) -> bool:
    """Tell whether a message instructs the model."""
    message = entry.message
    return message.get("role") in ("system", "developer") or message.get("kind") == "instruction"


def mentions(text: str) -> list[str]:
    """Return what may be addresses in a text: at least 8 hex digits, a point and a number."""
    found: list[str] = []
    for word in text.replace("`", " ").replace("(", " ").replace(")", " ").split():
        prefix, dot, number = word.strip(".,;:!?[]\"'").rpartition(".")
        named = dot and number.isascii() and number.isdigit()
        if named and len(prefix) >= _SHORTEST and _HEX.issuperset(prefix):
            found.append(f"{prefix}.{number}")
    return found


def _is_called(address: Address, text: str) -> bool:
    prefix, _, number = text.rpartition(".")
    return str(address[1]) == number and str(ObjectId(address[0])).startswith(prefix)


def _warning(kind: str, entry: Entry, others: Sequence[Entry]) -> MeaningWarning:
    return MeaningWarning(kind, entry.address, tuple(other.address for other in others[:3]))
