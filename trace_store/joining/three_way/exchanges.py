"""Tool calls and their results that a merge would part: one shown, the other hidden or left out.

Rule: no context shows half of what either side has whole. Which side holds is a decision, so it is brought to the desk.
"""

from __future__ import annotations

from trace_store.context.folding import REMOVED
from trace_store.context.pairs import callers
from trace_store.joining.conflicts import PARTED_CALL, THEIRS, Desk
from trace_store.joining.three_way.properties import Change, shown_of
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, Sequence

    from trace_store.context.folding import Entry

    Address = tuple[bytes, int]
    Changes = MutableMapping[Address, Change]


def settle_parted(
    ours: Sequence[Entry],
    theirs: Sequence[Entry],
    made: Mapping[Address, Entry],
    changes: Changes,
    desk: Desk,
) -> None:
    """Bring each exchange that changes would part to the desk, and change it as was settled.

    Args:
        ours: the messages of our side.
        theirs: those of the other.
        made: the messages that there will be, before they are changed.
        changes: what is to be changed in them; it is added to.
        desk: where contradictions are brought.
    """
    exchanges = _exchanges(ours, theirs)
    mine = {entry.address: entry for entry in ours}
    yours = {entry.address: entry for entry in theirs}
    merged = _Merged(made, changes)
    for first, results in exchanges.items():
        together = [first, *sorted(results)]
        if len(set(map(merged.shows, together))) == 1:
            continue
        if any(len({_is_shown(side.get(a)) for a in together}) > 1 for side in (mine, yours)):
            continue  # a merge repairs nothing
        sides = [[side[a] for a in together if a in side] for side in (mine, yours)]
        settled = desk.bring(PARTED_CALL, [first], None, *sides)
        for address in together:
            merged.make_as(address, (yours if settled.choice == THEIRS else mine).get(address))


def settle_left_out(
    ours: Mapping[Address, Entry], theirs: Sequence[Entry], new: set[Address], desk: Desk
) -> None:
    """Bring each exchange to the desk of which only a part comes in, since ours left the rest out before.

    Args:
        ours: the messages of our side.
        theirs: those of the other.
        new: the messages of theirs that come in; whole exchanges are added or taken out, as was settled.
        desk: where contradictions are brought.
    """
    yours = {entry.address: entry for entry in theirs}
    left = any(each not in ours and each not in new for each in yours)
    if not left or desk.open:  # what is decided there may well part nothing
        return
    for first, results in _exchanges(theirs).items():
        together = [first, *sorted(results)]
        coming = new.intersection(together)
        if not coming or len(coming) == len(together) or any(each in ours for each in together):
            continue
        settled = desk.bring(PARTED_CALL, [first], None, [], [yours[a] for a in together])
        if settled.choice == THEIRS:
            new.update(together)
        else:
            new.difference_update(together)


def _exchanges(*sides: Sequence[Entry]) -> dict[Address, set[Address]]:
    """Return the results of each call that a side shows whole, by the address of the call."""
    found: dict[Address, set[Address]] = {}
    for side in sides:
        seen = [entry for entry in side if _is_shown(entry)]
        for (result, _), call in callers(seen).items():
            found.setdefault(seen[call].address, set()).add(seen[result].address)
    return found


def _is_shown(entry: Entry | None) -> bool:
    return entry is not None and entry.visible and not entry.is_ghost


class _Merged:
    """The messages of the context that a merge is about to make, and what it changes in them."""

    def __init__(self, entries: Mapping[Address, Entry], changes: Changes) -> None:
        self._entries = entries
        self._changes = changes

    def shows(self, address: Address) -> bool:
        """Tell whether a message will be shown."""
        entry = self._entries.get(address)
        if entry is None:
            return False
        change = self._changes.get(address) or Change()
        hidden, _ = shown_of(entry) if change.shown is None else change.shown
        return not hidden and (change.priority or entry.priority) != ops.SKIP

    def make_as(self, address: Address, wanted: Entry | None) -> None:
        """Let a message be shown as it is on a side, with its wording, or be hidden when that side has none."""
        entry = self._entries.get(address)
        if entry is None:
            return
        change = self._changes.setdefault(address, Change())
        shown = (REMOVED, False) if wanted is None else shown_of(wanted)
        change.shown = shown if shown != shown_of(entry) else None
        if wanted is not None and entry.hidden and not wanted.hidden and change.parts is None:
            change.parts = wanted.parts if wanted.parts != entry.parts else None
        if wanted is not None and ops.SKIP in (change.priority or entry.priority, wanted.priority):
            change.priority = wanted.priority if wanted.priority != entry.priority else None
