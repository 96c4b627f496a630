"""One message on both sides: what of their changes since the base comes together.

Rule: pure functions of states. A property counts as changed by a side when it differs from all bases there are; where
each side has it as another of the bases does, both chose, and neither counts for more.
"""

from __future__ import annotations

from trace_store.context.folding import REPLACED, Entry
from trace_store.joining import conflicts as kinds
from trace_store.joining.conflicts import BOTH, TEXT, THEIRS, stored_text
from trace_store.joining.desk import Desk
from trace_store.joining.plan import no_put
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from trace_store.objects.commit import Operation
    from trace_store.oid import ObjectId

    Address = tuple[bytes, int]
    Put = Callable[[bytes], ObjectId]

MAXIMUM_TARGETS = 10_000
"""Messages that one operation names."""


class Change:
    """What becomes of one message of ours; None leaves a property as it is.

    Attributes:
        parts: its new wording.
        shown: (how it is hidden, whether a ghost stays).
        priority, keep: as annotated.
        labels, unlabels: labels that come and go.
    """

    __slots__ = ("keep", "labels", "parts", "priority", "shown", "unlabels")

    def __init__(self) -> None:
        self.parts: Sequence[Any] | None = None
        self.shown: tuple[str, bool] | None = None
        self.priority: str | None = None
        self.keep: tuple[bytes, ...] | None = None
        self.labels: tuple[str, ...] = ()
        self.unlabels: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[Any, ...]:
        """What an `annotate` says of it; alike for messages that one operation can name together."""
        return (self.priority, self.keep, self.labels, self.unlabels)


def as_changed(entries: Iterable[Entry], changes: Mapping[Address, Change]) -> list[Entry]:
    """Return messages with the wordings that changes give them, without those that they hide."""
    made: list[Entry] = []
    for entry in entries:
        change = changes.get(entry.address, Change())
        if change.parts is not None:
            entry = entry.copy()
            entry.reword(change.parts, entry.place)
        if not (change.shown and change.shown[0]):
            made.append(entry)
    return made


def shown_of(entry: Entry) -> tuple[str, bool]:
    """Return whether a message is hidden, and how."""
    return entry.hidden, entry.ghost


def same_state(one: Entry, other: Entry) -> bool:
    """Tell whether a message is the same on two sides, its place apart."""
    return (
        one.priority == other.priority
        and one.hidden == other.hidden
        and one.ghost == other.ghost
        and one.labels == other.labels
        and one.keep == other.keep
        and one.parts == other.parts
    )


class _Entries:
    """A message in the bases, in ours and in theirs."""

    __slots__ = ("bases", "ours", "theirs")

    def __init__(self, bases: Sequence[Entry], ours: Entry, theirs: Entry) -> None:
        # What both sides have and no base does was brought in twice: it began as it was written.
        self.bases = bases or [Entry(ours.address, ours.message)]
        self.ours = ours
        self.theirs = theirs

    def changed(self, side: Entry, of: Callable[[Entry], object]) -> bool:
        value = of(side)
        return all(of(base) != value for base in self.bases)

    def is_theirs_alone(self, of: Callable[[Entry], object]) -> bool:
        """Tell whether theirs changed what ours left."""
        return self.changed(self.theirs, of) and not self.changed(self.ours, of)

    def is_contested(self, of: Callable[[Entry], object]) -> bool:
        """Tell whether both sides changed what differs, or neither did, since each has it from another base."""
        if of(self.ours) == of(self.theirs):
            return False
        return self.changed(self.ours, of) == self.changed(self.theirs, of)

    def bring(self, desk: Desk, kind: str) -> kinds.Settlement:
        ours, theirs = self.ours, self.theirs
        return desk.bring(kind, [ours.address], self.bases[0], [ours], [theirs])


def merge_entry(
    bases: Sequence[Entry], ours: Entry, theirs: Entry, desk: Desk, put: Put
) -> Change | None:
    """Return what theirs changes in a message of ours, or None when it is to stay as it is.

    Args:
        bases: the message in each merge base that has it.
        ours: the message on our side.
        theirs: the message on theirs.
        desk: where contradictions are brought.
        put: takes the content of a text that settles one.
    """
    if same_state(ours, theirs):
        return None
    all_ = _Entries(bases, ours, theirs)
    change = Change()
    decided = _hiding(all_, desk, put, change)
    if not decided:
        _wording(all_, desk, put, change)
        decided = _showing(all_, desk, put, change)
    if change.priority is None and decided != kinds.PINNED_AND_REMOVED:
        _priority(all_, desk, change, decided)
    _keep(all_, change)
    _labels(all_, change)
    return change


def joined_base(elder: Entry, one: Entry, other: Entry) -> Entry | None:
    """Return a message as a merge of the two merge bases would leave it; None where that would be a conflict.

    Held against this, what a side took over from one base is not mistaken for a change of its own, nor a change of its
    own for what one base had.

    Args:
        elder: the message in the common ancestor of both bases.
        one: the message in one of the bases.
        other: the message in the other.
    """
    desk = Desk({})
    change = merge_entry([elder], one, other, desk, no_put)
    if desk.open:
        return None
    made = one.copy()
    if change is None:
        return made
    if change.parts is not None:
        made.reword(change.parts, other.place)
    if change.shown is not None:
        made.hidden, made.ghost = change.shown
    if change.priority is not None:
        made.priority = change.priority
    if change.keep is not None:
        made.keep = change.keep
    made.labels = (made.labels | {*change.labels}) - {*change.unlabels}
    return made


def _hiding(all_: _Entries, desk: Desk, put: Put, change: Change) -> str:
    """Settle that one side hides what the other reworded or pinned; return the kind of conflict, or ""."""
    for hider, other in ((all_.theirs, all_.ours), (all_.ours, all_.theirs)):
        hides = all_.changed(hider, shown_of) or all_.is_contested(shown_of)
        if other.hidden or not hider.hidden or not hides:
            continue
        if all_.changed(other, _parts) or all_.is_contested(_parts):
            replaced = hider.hidden == REPLACED
            kind = kinds.COMPRESSED_AND_EDITED if replaced else kinds.EDITED_AND_REMOVED
        elif other.priority == ops.PINNED and (
            all_.changed(other, _priority_of) or all_.is_contested(_priority_of)
        ):
            kind = kinds.PINNED_AND_REMOVED
        else:
            continue
        settled = all_.bring(desk, kind)
        if settled.choice == THEIRS:
            _as_theirs(all_, change)
            if all_.theirs.parts != all_.ours.parts and other is all_.theirs:
                change.parts = all_.theirs.parts
            if kind == kinds.PINNED_AND_REMOVED and other is all_.theirs:
                change.priority = all_.theirs.priority
        elif settled.choice == TEXT:
            _say(all_, change, settled.text, put)
        return kind
    return ""


def _as_theirs(all_: _Entries, change: Change) -> None:
    """Let a message be shown, skipped or hidden as theirs has it."""
    ours, theirs = all_.ours, all_.theirs
    change.shown = shown_of(theirs)
    either_skips = ops.SKIP in (ours.priority, theirs.priority)
    if not theirs.hidden and either_skips and ours.priority != theirs.priority:
        change.priority = theirs.priority


def _say(all_: _Entries, change: Change, text: str, put: Put) -> None:
    """Let a text settle whether a message is hidden: it is shown, and says that text."""
    ours, theirs = all_.ours, all_.theirs
    change.parts = reworded_parts((theirs if ours.hidden else ours).parts, text, put)
    change.shown = ("", False)
    if ours.priority == ops.SKIP:
        change.priority = ops.NORMAL if theirs.priority == ops.SKIP else theirs.priority


def _wording(all_: _Entries, desk: Desk, put: Put, change: Change) -> None:
    ours, theirs = all_.ours, all_.theirs
    if all_.is_theirs_alone(_parts):
        change.parts = theirs.parts
        return
    if not all_.is_contested(_parts) or (ours.hidden and theirs.hidden):
        return
    settled = all_.bring(desk, kinds.BOTH_EDITED)
    if settled.choice == THEIRS:
        change.parts = theirs.parts
    elif settled.choice == BOTH:
        change.parts = both_parts(ours.parts, theirs.parts)
    elif settled.choice == TEXT:
        change.parts = reworded_parts(ours.parts, settled.text, put)


def _showing(all_: _Entries, desk: Desk, put: Put, change: Change) -> str:
    """Bring whether theirs hides or shows it; return the kind of conflict that was settled, or ""."""
    ours, theirs = all_.ours, all_.theirs
    if all_.is_theirs_alone(shown_of):
        change.shown = shown_of(theirs)
    elif all_.is_contested(shown_of) and not (ours.hidden and theirs.hidden):
        settled = all_.bring(desk, kinds.EDITED_AND_REMOVED)
        if settled.choice == THEIRS:
            _as_theirs(all_, change)
        elif settled.choice == TEXT:
            _say(all_, change, settled.text, put)
        return kinds.EDITED_AND_REMOVED
    return ""


def _priority(all_: _Entries, desk: Desk, change: Change, decided: str) -> None:
    ours, theirs = all_.ours, all_.theirs
    if decided and theirs.priority == ops.SKIP and not (change.shown or shown_of(ours))[0]:
        return  # it was settled that it is shown
    if all_.is_theirs_alone(_priority_of) or (
        all_.is_contested(_priority_of)
        and all_.bring(desk, kinds.CONTRADICTING_PRIORITIES).choice == THEIRS
    ):
        change.priority = theirs.priority


def _keep(all_: _Entries, change: Change) -> None:
    """Bring patterns together: what either side wants kept is kept."""
    ours, theirs = all_.ours, all_.theirs
    if ours.keep == theirs.keep or not all_.changed(theirs, _keep_of):
        return
    if all_.changed(ours, _keep_of):
        kept = (*ours.keep, *(each for each in theirs.keep if each not in ours.keep))
        change.keep = kept if kept != ours.keep else None
    else:
        change.keep = theirs.keep


def _labels(all_: _Entries, change: Change) -> None:
    ours, theirs, bases = all_.ours.labels, all_.theirs.labels, all_.bases
    change.labels = tuple(
        sorted(label for label in theirs - ours if all(label not in base.labels for base in bases))
    )
    change.unlabels = tuple(
        sorted(label for label in ours - theirs if all(label in base.labels for base in bases))
    )


def difference(ours: Entry, theirs: Entry) -> Change | None:
    """Return what makes a message of ours the same as theirs, or None when it is."""
    if same_state(ours, theirs):
        return None
    change = Change()
    if ours.parts != theirs.parts:
        change.parts = theirs.parts
    if shown_of(ours) != shown_of(theirs):
        change.shown = shown_of(theirs)
    if ours.priority != theirs.priority:
        change.priority = theirs.priority
    if ours.keep != theirs.keep:
        change.keep = theirs.keep
    change.labels = tuple(sorted(theirs.labels - ours.labels))
    change.unlabels = tuple(sorted(ours.labels - theirs.labels))
    return change


def operations_of(changes: Sequence[tuple[Address, Change]]) -> list[Operation]:
    """Return the operations that make changes, as few as there can be."""
    made = [ops.edit(address, each.parts) for address, each in changes if each.parts is not None]
    shown: dict[tuple[str, bool], list[Address]] = {}
    marks: dict[tuple[Any, ...], list[Address]] = {}
    for address, change in changes:
        if change.shown is not None:
            shown.setdefault(change.shown, []).append(address)
        if change.marks != (None, None, (), ()):
            marks.setdefault(change.marks, []).append(address)
    for (hidden, ghost), addresses in shown.items():
        for some in chunks(addresses):
            if not hidden:
                made.append(ops.restore(some))
            elif hidden == REPLACED:
                made.append(ops.replace(some, []))
            else:
                made.append(ops.remove(some, ghost=ghost))
    for (priority, keep, labels, unlabels), addresses in marks.items():
        made += [
            ops.annotate(some, priority=priority, keep=keep, labels=labels, unlabels=unlabels)
            for some in chunks(addresses)
        ]
    return made


def chunks(addresses: Sequence[Address]) -> Iterable[Sequence[Address]]:
    """Yield addresses as many at a time as one operation names."""
    for start in range(0, len(addresses), MAXIMUM_TARGETS):
        yield addresses[start : start + MAXIMUM_TARGETS]


def both_parts(ours: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    """Return what both wordings of a message say, in stored form; a call has one result, which says both."""
    made = list(ours)
    held = {
        (part["type"], part.get("id")): at
        for at, part in enumerate(ours)
        if part.get("type") in ("tool_call", "tool_result")
    }
    for part in theirs:
        at = held.get((part.get("type"), part.get("id")))
        if at is None:
            made += [] if part in made else [part]
        elif part["type"] == "tool_result":
            said = made[at].get("parts", [])
            more = [each for each in part.get("parts", ()) if each not in said]
            made[at] = {**made[at], "parts": [*said, *more]}
    return made


def reworded_parts(parts: Sequence[Any], text: str, put: Put) -> list[Any]:
    """Return stored parts with another text in place of their texts, or of what their one tool result says."""
    new = stored_text(text, put)
    if not any(part.get("type") == "text" for part in parts):
        results = [part for part in parts if part.get("type") == "tool_result"]
        if len(results) == 1:
            said = {**results[0], "parts": [new]}
            return [said if part is results[0] else part for part in parts]
    kept = [part for part in parts if part.get("type") != "text"]
    place = next((at for at, part in enumerate(parts) if part.get("type") == "text"), None)
    at = sum(part.get("type") == "reasoning" for part in kept) if place is None else place
    return [*kept[:at], new, *kept[at:]]


def _parts(entry: Entry) -> object:
    return entry.parts


def _priority_of(entry: Entry) -> object:
    return entry.priority


def _keep_of(entry: Entry) -> object:
    return entry.keep
