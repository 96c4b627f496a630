"""Settle conflicts of what is in progress, go on with it, or give it up.

Rule: a settlement is checked against the conflicts that there are by now, and written down; nothing else is touched.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.frozen import replace
from trace_store.ident import count_of, is_count
from trace_store.merge import in_progress, merge, rebase, revert
from trace_store.merge.conflicts import Settlement, check_settlement
from trace_store.objects.address import BIRTH_BYTES, Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.merge.conflicts import Conflict, Resolver
    from trace_store.merge.in_progress import Stop
    from trace_store.merge.llm_assist.review import Judge
    from trace_store.merge.result import Merge, Rewrite
    from trace_store.merge.revert import Revert
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store


MAXIMUM_ATTEMPTS = 100


def open_conflicts(store: Store) -> tuple[Conflict, ...]:
    """Return the conflicts of what is in progress that nobody settled yet, with their numbers.

    Raises:
        StateError: nothing is in progress.
    """
    found = _look(store)
    return () if found is None else found.conflicts


def met_conflicts(store: Store) -> tuple[Conflict, ...]:
    """Return the conflicts of what is in progress by their numbers: open ones, and those that somebody settled.

    Raises:
        StateError: nothing is in progress.
    """
    found = _look(store)
    if found is None:
        return ()
    settled = (each for each in found.settled if each.number)
    return tuple(sorted([*found.conflicts, *settled], key=lambda each: each.number))


def resolve(store: Store, which: str, settlement: Settlement) -> tuple[Conflict, ...]:
    """Settle a conflict, one that is settled already anew, and return those that are left.

    Args:
        store: the repository.
        which: its number; the address of a message that it is about; "all" for every open one that can be settled so;
            or "" for the only open one.
        settlement: how.

    Raises:
        StateError: nothing is in progress.
        InvalidInputError: there is no such conflict, there are several, or it cannot be settled so.
        RefChangedError: the branch went elsewhere since.
        ConcurrencyError: others settle conflicts, or go on, again and again.
    """
    for _ in range(MAXIMUM_ATTEMPTS):
        try:
            return _settle(store, which, settlement)
        except errors.RefChangedError:
            raise  # what waits cannot go on where the branch is by now
        except errors.ConcurrencyError:
            continue  # it is worked out anew, with what the other has settled
    raise errors.ConcurrencyError("what waits changes again and again")


def _settle(store: Store, which: str, settlement: Settlement) -> tuple[Conflict, ...]:
    stop = in_progress.required_stop(store)
    found = met_conflicts(store)
    chosen = _chosen(found, which, settlement)
    for conflict in chosen:
        check_settlement(conflict, settlement)
        stop.settlements[conflict.key] = replace(settlement, about=conflict.stakes)
    stop.numbered(found)
    in_progress.write_stop(store, stop, stop.file)
    return open_conflicts(store)


def _look(store: Store) -> Merge | Revert | Rewrite | None:
    """Return what is in progress comes to by now, and write nothing; None when only going on can tell."""
    stop = in_progress.required_stop(store)
    try:
        if stop.kind == in_progress.MERGE:
            return merge.look_at_merge(store)
        if stop.kind == in_progress.REVERT:
            return revert.look_at_revert(store)
        return rebase.look_at_rewriting(store)
    except errors.StateError:  # all is settled, and something else is in the way
        return None


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
    kind = in_progress.required_stop(store, kind).kind
    if kind == in_progress.MERGE:
        return merge.continue_merge(
            store, author=author, message=message, guard=guard, resolver=resolver, skip=skip
        )
    if kind == in_progress.REVERT:
        return revert.continue_revert(
            store, author=author, skip=skip, guard=guard, resolver=resolver
        )
    return rebase.continue_rewriting(
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
        stop = in_progress.required_stop(store, kind)
    except errors.FormatError:
        stop = in_progress.Stop(
            kind or in_progress.MERGE, "", None, {}, {}, []
        )  # what is damaged goes, too
    in_progress.clear_stop(store)
    return stop


def _chosen(found: Sequence[Conflict], which: str, settlement: Settlement) -> Sequence[Conflict]:
    open_ = [each for each in found if each.settlement is None]
    if which == "all":
        if not open_ and any(
            each.settlement.choice != settlement.choice for each in found if each.settlement
        ):
            raise errors.InvalidInputError(
                "all is settled; what is settled is settled anew by its number"
            )
        return [each for each in open_ if settlement.choice in each.choices]
    if not which:
        if len(open_) == 1:
            return open_
        raise errors.InvalidInputError(f"{len(open_)} conflicts are open: say which, or all")
    return [find_conflict(found, which)]


def find_conflict(found: Sequence[Conflict], which: str) -> Conflict:
    """Return the conflict among some that has a number, or is about a message whose address begins so.

    Raises:
        InvalidInputError: there is none, or several are about the message.
    """
    open_ = [each for each in found if each.settlement is None]
    if is_count(which):
        chosen = [each for each in found if each.number == count_of(which)]
        if chosen:
            return chosen[0]
        raise errors.InvalidInputError(f"no conflict has the number {which[:20]}")
    for among in (open_, found):
        chosen = [each for each in among if any(_is_called(a, which) for a in each.addresses)]
        if len(chosen) == 1:
            return chosen[0]
        if chosen:
            raise errors.InvalidInputError(f"{len(chosen)} conflicts are about {which[:80]}")
    raise errors.InvalidInputError(f"no conflict is about {which[:80]}")


def _is_called(address: Address, text: str) -> bool:
    prefix, dot, digits = text.rpartition(".")
    return bool(dot and prefix) and str(address.number) == digits and _begins(address, prefix)


def _begins(address: Address, prefix: str) -> bool:
    """Tell whether an address begins so, or the whole id of the commit that it was born in was given."""
    return address.birth.hex().startswith(prefix[: 2 * BIRTH_BYTES])
