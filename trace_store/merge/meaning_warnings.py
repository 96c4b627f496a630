"""Warnings about messages whose meaning may change in a new context.

The rules are deterministic. They change nothing, and each warning names its messages.
"""

from __future__ import annotations

from itertools import takewhile

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.history.diff import longest_increasing
from trace_store.merge.inputs import DECISION
from trace_store.objects.address import Address
from trace_store.objects.content import read_content, text_of
from trace_store.objects.operations import PINNED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from trace_store.context.fold import Entry, Fold

REFERENCE_LATER = "reference-later"
RESULT_BEFORE_CALL = "result-before-call"
INSTRUCTION_MOVED = "instruction-moved"
DECISION_LATER = "decision-later"
CALL_WITHOUT_RESULT = "call-without-result"
RESULT_WITHOUT_CALL = "result-without-call"
PIN_LOST = "pin-lost"
QUESTION_REWORDED = "question-reworded"
INSTRUCTION_ADDED = "instruction-added"
JUDGED = "judged"

MEANINGS: Mapping[str, str] = {
    REFERENCE_LATER: "it refers to a message that would now come later",
    RESULT_BEFORE_CALL: "the result would come before its call",
    INSTRUCTION_MOVED: "the instruction would come after messages that it applied to",
    DECISION_LATER: "the decision would come after messages that followed it",
    CALL_WITHOUT_RESULT: "the call has no result here",
    RESULT_WITHOUT_CALL: "the result has no call here",
    PIN_LOST: "it is no longer pinned",
    QUESTION_REWORDED: "the message that it answers was edited",
    INSTRUCTION_ADDED: "an instruction or a user message was added before it",
    JUDGED: "a model says that its meaning may have changed",
}
_SHORTEST = 8
_HEX = frozenset("0123456789abcdef")


@value
class MeaningWarning:
    """A warning that a message may have changed its meaning.

    Attributes:
        kind: one of MEANINGS.
        address: the message.
        others: the first few messages that cause it.
        said: the model's explanation, for JUDGED.
    """

    JSON = "meaning -said"

    kind: str
    address: Address
    others: tuple[Address, ...] = ()
    said: str = ""

    @property
    def meaning(self) -> str:
        """A short description."""
        return self.said or MEANINGS[self.kind]


def texts_of(entry: Entry, read: Callable[[bytes], bytes]) -> str:
    """Return the texts of a message; "" if they are missing."""
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
    """Return warnings about a new order of the visible messages.

    Args:
        before: the messages in the old order.
        after: the new order; messages not in `before` are ignored.
        said_by: returns the text of a message; called only for messages that moved past others.
    """
    places = {address: at for at, address in enumerate(after)}
    entries = [entry for entry in before if entry.address in places]
    ranks = [places[entry.address] for entry in entries]
    if ranks == sorted(ranks):
        return []
    found: list[MeaningWarning] = []
    for at, others in sorted(passed(ranks).items()):
        entry = entries[at]
        moved_before = [entries[each] for each in sorted(others) if each > at]
        moved_after = [entries[each] for each in sorted(others) if each < at]
        found += _warnings_about(entry, moved_before, moved_after, said_by)
    return found


def passed(ranks: Sequence[int]) -> dict[int, list[int]]:
    """Return, for each old position, the positions whose order relative to it changes.

    `ranks` are the new positions by old position. Two messages that did not move keep their order, so nearly all pairs
    are skipped.
    """
    staying = longest_increasing(ranks)
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


def _warnings_about(
    entry: Entry,
    moved_before: Sequence[Entry],
    moved_after: Sequence[Entry],
    said_by: Callable[[Entry], str],
) -> list[MeaningWarning]:
    found: list[MeaningWarning] = []
    calls = [each for each in moved_after if each.address in entry.answers]
    if calls:
        found.append(_warning(RESULT_BEFORE_CALL, entry, calls))
    if moved_before and is_instruction(entry):
        found.append(_warning(INSTRUCTION_MOVED, entry, moved_before))
    if moved_before and DECISION in entry.labels:
        found.append(_warning(DECISION_LATER, entry, moved_before))
    if moved_after:
        said = set(mentions(said_by(entry)))
        named = [e for e in moved_after if any(_is_called(e.address, each) for each in said)]
        if named:
            found.append(_warning(REFERENCE_LATER, entry, named))
    return found


def loose_ends(state: Fold, touched: Iterable[Address]) -> list[MeaningWarning]:
    """Return warnings about calls and results whose other half is not visible."""
    found: list[MeaningWarning] = []
    for address in touched:
        entry = state.entry(address) if address in state else None
        if entry is None or not entry.visible:
            continue
        others = [state.entry(each) for each in state.unit(address)[1:]]
        answered = {call for each in others if each.visible for call in _answered_calls(each)}
        if any((address, name) not in answered for name in _calls(entry)):
            found.append(MeaningWarning(CALL_WITHOUT_RESULT, address))
        shown = {each.address for each in others if each.visible}
        if any(call not in shown for call in entry.answers):
            found.append(MeaningWarning(RESULT_WITHOUT_CALL, address))
    return found


def newly_loose(before: Fold, after: Fold) -> list[MeaningWarning]:
    """Return warnings about messages whose other half was visible before and is not now."""
    changed = [
        entry.address
        for entry in before.entries
        if entry.address not in after or after.entry(entry.address) is not entry
    ]
    units = {
        each for side in (before, after) for a in changed if a in side for each in side.unit(a)
    }
    old = [a for a in before.in_order(units) if before.entry(a).visible]
    was = {(each.kind, each.address) for each in loose_ends(before, old)}
    now = loose_ends(after, old)
    return [each for each in now if (each.kind, each.address) not in was]


def lost_pins(before: Iterable[Entry], after: Fold) -> list[MeaningWarning]:
    """Return warnings about pinned messages that are visible but no longer pinned."""
    pinned = [entry.address for entry in before if entry.priority == PINNED]
    shown = [after.entry(address) for address in pinned if address in after]
    return [
        MeaningWarning(PIN_LOST, entry.address)
        for entry in shown
        if entry.visible and entry.priority != PINNED
    ]


def changed_premises(was: Fold, now: Fold, new: Collection[Address]) -> list[MeaningWarning]:
    """Return warnings about a new answer whose question was edited, or that follows what it was written without.

    That is an instruction or a message of the user, which may correct what the answer still relies on.

    Args:
        was: the context that they were written for.
        now: the context that they are in now.
        new: the new messages.
    """
    found: list[MeaningWarning] = []
    question = next((e for e in reversed(was.entries) if e.visible), None)
    answer = next((e for e in now.entries if e.address in new and e.visible), None)
    if answer is None or answer.message["role"] != "assistant":
        return []
    if question is not None and question.address in now:
        asked = now.entry(question.address)
        if asked.visible and asked.parts != question.parts:
            found.append(_warning(QUESTION_REWORDED, answer, [asked]))
    added = [
        entry
        for entry in takewhile(lambda entry: entry is not answer, now.entries)
        # Most messages are in both, and to look at the role of one is dear.
        if entry.address not in was
        and entry.address not in new
        and entry.visible
        and (is_instruction(entry) or _is_from_user(entry))
    ]
    if added:
        found.append(_warning(INSTRUCTION_ADDED, answer, added))
    return found


def _calls(entry: Entry) -> list[str]:
    return [part["id"] for part in entry.parts if part["type"] == "tool_call"]


def _answered_calls(entry: Entry) -> list[tuple[Address, str]]:
    return [
        (Address(*part["call"]), part["id"])
        for part in entry.parts
        if part["type"] == "tool_result" and "call" in part
    ]


def _is_from_user(entry: Entry) -> bool:
    return entry.message.get("role") == "user" and not entry.answers


def is_instruction(entry: Entry) -> bool:
    """Return True if a message instructs the model."""
    message = entry.message
    return message.get("role") in ("system", "developer") or message.get("kind") == "instruction"


def mentions(text: str) -> list[str]:
    """Return possible addresses in a text: at least 8 hex digits, a dot and a number."""
    found: list[str] = []
    for word in text.replace("`", " ").replace("(", " ").replace(")", " ").split():
        prefix, dot, number = word.strip(".,;:!?[]\"'").rpartition(".")
        named = dot and number.isascii() and number.isdigit()
        if named and len(prefix) >= _SHORTEST and _HEX.issuperset(prefix):
            found.append(f"{prefix}.{number}")
    return found


def _is_called(address: Address, text: str) -> bool:
    prefix, _, number = text.rpartition(".")
    return str(address.number) == number and address.birth.hex().startswith(prefix)


def _warning(kind: str, entry: Entry, others: Sequence[Entry]) -> MeaningWarning:
    return MeaningWarning(kind, entry.address, tuple(other.address for other in others[:3]))
