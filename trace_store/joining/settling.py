"""Settle conflicts of what is in progress, go on with it, or give it up.

Rule: a settlement is checked against the conflicts that there are by now, and written down; nothing else is touched.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.joining import merging, reverting, stops
from trace_store.joining.conflicts import Settlement
from trace_store.joining.rewriting import rebasing
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.joining.advising.judging import Judge
    from trace_store.joining.conflicts import Conflict
    from trace_store.joining.merging import Resolver
    from trace_store.joining.outcome import Merge
    from trace_store.joining.reverting import Revert
    from trace_store.joining.rewriting.steps import Rewrite
    from trace_store.joining.stops import Stop
    from trace_store.secrets import Guard
    from trace_store.store import Store


def open_conflicts(store: Store) -> tuple[Conflict, ...]:
    """Return the conflicts of what is in progress that nobody settled yet.

    Raises:
        StateError: nothing is in progress.
    """
    stop = stops.required_stop(store)
    if stop.kind == stops.MERGE:
        return merging.look_at_merge(store).conflicts
    if stop.kind == stops.REVERT:
        return reverting.look_at_revert(store).conflicts
    return rebasing.look_at_rewriting(store).conflicts


def resolve(store: Store, which: str, settlement: Settlement) -> tuple[Conflict, ...]:
    """Settle a conflict, and return those that are left.

    Args:
        store: the repository.
        which: its number among the open ones, counted from 1; the address of a message that it is about; "all" for
            every one that can be settled so; or "" for the only one.
        settlement: how.

    Raises:
        StateError: nothing is in progress.
        InvalidInputError: there is no such conflict, there are several, or it cannot be settled so.
    """
    stop = stops.required_stop(store)
    found = open_conflicts(store)
    chosen = _chosen(found, which, settlement)
    for conflict in chosen:
        if settlement.choice not in conflict.choices:
            raise errors.InvalidInputError(
                f"{conflict.kind} is settled by {', '.join(conflict.choices)}, "
                f"not by {settlement.choice}"
            )
        stop.settlements[conflict.key] = settlement
    stops.write_stop(store, stop)
    try:
        return open_conflicts(store)
    except errors.StateError:
        return ()  # it is settled; what else is in the way, such as nothing to take back, going on says


def resume(
    store: Store,
    *,
    author: str,
    kind: str = "",
    message: str = "",
    guard: Guard | None = None,
    resolver: Resolver | None = None,
    judge: Judge | None = None,
    skip: bool = False,
    drop_pinned: bool = False,
) -> Merge | Revert | Rewrite:
    """Go on with what is in progress, whatever it is; with `skip` without the step that it stopped at.

    Raises:
        StateError: nothing, or nothing of this kind, is in progress.
        As `continue_merge`, `continue_revert` and `continue_rewriting`.
    """
    kind = stops.required_stop(store, kind).kind
    if kind == stops.MERGE:
        return merging.continue_merge(
            store, author=author, message=message, guard=guard, resolver=resolver, skip=skip
        )
    if kind == stops.REVERT:
        return reverting.continue_revert(
            store, author=author, skip=skip, guard=guard, resolver=resolver
        )
    return rebasing.continue_rewriting(
        store,
        kind,
        author=author,
        skip=skip,
        guard=guard,
        resolver=resolver,
        judge=judge,
        drop_pinned=drop_pinned,
    )


def abort(store: Store, kind: str = "") -> Stop:
    """Give up what is in progress, and return what it was; refs and journal are as they were before.

    Raises:
        StateError: nothing, or nothing of this kind, is in progress.
    """
    try:
        stop = stops.required_stop(store, kind)
    except errors.FormatError:
        stop = stops.Stop(kind or stops.MERGE, "", None, {}, {}, [])  # what is damaged goes, too
    stops.clear_stop(store)
    return stop


def _chosen(found: Sequence[Conflict], which: str, settlement: Settlement) -> Sequence[Conflict]:
    if which == "all":
        return [each for each in found if settlement.choice in each.choices]
    if not which:
        if len(found) == 1:
            return found
        raise errors.InvalidInputError(f"{len(found)} conflicts are open: say which, or all")
    if which.isascii() and which.isdigit():
        number = int(which)
        if 1 <= number <= len(found):
            return [found[number - 1]]
        raise errors.InvalidInputError(f"no conflict has the number {number}")
    chosen = [each for each in found if any(_is_called(a, which) for a in each.addresses)]
    if len(chosen) != 1:
        what = "no conflict is" if not chosen else f"{len(chosen)} conflicts are"
        raise errors.InvalidInputError(f"{what} about {which[:80]}")
    return chosen


def _is_called(address: tuple[bytes, int], text: str) -> bool:
    prefix, dot, digits = text.rpartition(".")
    commit, number = address
    return (
        bool(dot and prefix) and str(number) == digits and str(ObjectId(commit)).startswith(prefix)
    )
