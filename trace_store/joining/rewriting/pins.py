"""Pinned messages that a rebase would drop.

Rule: reads and changes nothing. What another line hid before, or what somebody settled, is not the rebase's doing.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects import operations as ops
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set

    from trace_store.context.folding import Fold
    from trace_store.joining.rewriting.replaying import Replay

    Address = tuple[bytes, int]


def refuse_to_drop_pins(before: Fold, start: Fold, replay: Replay, decided: Set[Address]) -> None:
    """Raise when a pinned message that a branch showed is shown on its new line no more.

    Args:
        before: the context of the branch.
        start: the context that the new line begins with.
        replay: the new line.
        decided: messages that settlements were about.

    Raises:
        ConflictError: so it is.
    """
    began = {entry.address: entry for entry in start.entries}
    there = {entry.address: entry for entry in replay.state().entries}

    def is_lost(address: Address) -> bool:
        new = replay.address(address)
        now, was = there.get(new), began.get(new)
        if address in replay.dropped or now is None:
            return True
        by_others = was is not None and not was.visible
        return not now.visible and not by_others and decided.isdisjoint((address, new))

    pinned = [e.address for e in before.entries if e.priority == ops.PINNED and e.visible]
    lost = [address for address in pinned if is_lost(address)]
    if lost:
        names = ", ".join(f"{ObjectId(made).short()}.{number}" for made, number in lost[:3])
        raise errors.ConflictError(
            f"a pinned message would be dropped: {names}",
            code=errors.ErrorCode.DROPS_PINNED,
            addresses=tuple(lost),
        )
