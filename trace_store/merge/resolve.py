"""Resolving, continuing and aborting the operation in progress.

A resolution is checked against the current conflicts and saved; nothing else changes.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import replace
from trace_store.base.ident import count_of, is_count
from trace_store.merge import in_progress, merge, replay, revert
from trace_store.merge.conflicts import Resolution, check_resolution
from trace_store.objects.address import BIRTH_BYTES, Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.llm.contract import Model
    from trace_store.merge.conflicts import Answer, Conflict
    from trace_store.merge.in_progress import Stop
    from trace_store.merge.result import Merge, Rewrite
    from trace_store.merge.revert import Revert
    from trace_store.store.store import Store
    from trace_store.writer import Writer


MAXIMUM_ATTEMPTS = 100


def open_conflicts(writer: Writer) -> tuple[Conflict, ...]:
    """Return the open conflicts of the operation in progress, with their numbers.

    Raises:
        StateError: nothing is in progress.
    """
    found = _current_result(writer)
    return () if found is None else found.conflicts


def met_conflicts(writer: Writer) -> tuple[Conflict, ...]:
    """Return all conflicts of the operation in progress, open or resolved by hand, by number.

    Raises:
        StateError: nothing is in progress.
    """
    found = _current_result(writer)
    if found is None:
        return ()
    settled = (each for each in found.settled if each.number)
    return tuple(sorted([*found.conflicts, *settled], key=lambda each: each.number))


def resolve(writer: Writer, which: str, resolution: Resolution) -> tuple[Conflict, ...]:
    """Resolve a conflict, or change its resolution; return the open conflicts.

    Args:
        writer: the branch.
        which: its number; the address of one of its messages; "all" for every open conflict that allows the choice; or
            "" for the only open one.
        resolution: the resolution.

    Raises:
        StateError: nothing is in progress.
        InvalidInputError: there is no such conflict, there are several, or the choice is not allowed.
        RefChangedError: the branch was moved away meanwhile.
        ConcurrencyError: other processes kept changing the operation in progress.
    """
    for _ in range(MAXIMUM_ATTEMPTS):
        try:
            return _resolve_once(writer, which, resolution)
        except errors.RefChangedError:
            raise  # the operation cannot continue on the branch's current tip
        except errors.ConcurrencyError:
            continue  # lost the race: retry with the other resolutions
    raise errors.ConcurrencyError("the operation in progress keeps changing")


def _resolve_once(writer: Writer, which: str, resolution: Resolution) -> tuple[Conflict, ...]:
    stop = in_progress.required_stop(writer.store)
    found = met_conflicts(writer)
    chosen = _choose(found, which, resolution)
    for conflict in chosen:
        check_resolution(conflict, resolution)
        text = writer.begin().text(resolution.text)
        stop.resolutions[conflict.key] = replace(resolution, text=text, about=conflict.stakes)
    stop.numbered(found)
    in_progress.write_stop(writer.store, stop, stop.file)
    return open_conflicts(writer)


def _current_result(writer: Writer) -> Merge | Rewrite | None:
    """Return the current result of the operation in progress; None if only continuing can tell."""
    stop = in_progress.required_stop(writer.store)
    try:
        if stop.kind == in_progress.MERGE:
            return merge.look_at_merge(writer)
        return replay.look_at_replay(writer)
    except errors.StateError:  # all is resolved, but something else prevents it
        return None


def resume(
    writer: Writer,
    *,
    kind: str = "",
    message: str = "",
    resolver: Answer | None = None,
    judge: Model | None = None,
    skip: bool = False,
    drop_pinned: bool = False,
) -> Merge | Revert | Rewrite:
    """Continue the operation in progress; `skip` leaves out the step that it stopped at.

    Raises:
        StateError: no operation, or none of this kind, is in progress.
        As `continue_merge` and `continue_replay`.
    """
    kind = in_progress.required_stop(writer.store, kind).kind
    if kind == in_progress.MERGE:
        return merge.continue_merge(writer, message=message, resolver=resolver, skip=skip)
    if kind == in_progress.REVERT:
        return revert.continue_revert(writer, skip=skip, resolver=resolver)
    return replay.continue_replay(
        writer, kind, skip=skip, resolver=resolver, judge=judge, drop_pinned=drop_pinned
    )


def abort(store: Store, kind: str = "") -> Stop:
    """Abort the operation in progress and return it; refs and journal are unchanged.

    Raises:
        StateError: no operation, or none of this kind, is in progress.
    """
    try:
        stop = in_progress.required_stop(store, kind)
    except errors.FormatError:
        # A damaged file is removed, too.
        stop = in_progress.Stop(kind or in_progress.MERGE, "", None, {}, {}, [])
    in_progress.clear_stop(store)
    return stop


def _choose(found: Sequence[Conflict], which: str, resolution: Resolution) -> Sequence[Conflict]:
    open_ = [each for each in found if each.resolution is None]
    if which == "all":
        if not open_ and any(
            each.resolution.choice != resolution.choice for each in found if each.resolution
        ):
            raise errors.InvalidInputError(
                "all conflicts are resolved; change a resolution by the conflict's number"
            )
        return [each for each in open_ if resolution.choice in each.choices]
    if not which:
        if len(open_) == 1:
            return open_
        raise errors.InvalidInputError(f"{len(open_)} conflicts are open; name one, or use `all`")
    return [find_conflict(found, which)]


def find_conflict(found: Sequence[Conflict], which: str) -> Conflict:
    """Return the conflict with a number, or about a message whose address starts with a text.

    Raises:
        InvalidInputError: there is none, or there are several.
    """
    open_ = [each for each in found if each.resolution is None]
    if is_count(which):
        chosen = [each for each in found if each.number == count_of(which)]
        if chosen:
            return chosen[0]
        raise errors.InvalidInputError(f"no conflict {which[:20]}")
    for among in (open_, found):
        chosen = [each for each in among if any(_is_address_of(a, which) for a in each.addresses)]
        if len(chosen) == 1:
            return chosen[0]
        if chosen:
            raise errors.InvalidInputError(f"{len(chosen)} conflicts are about {which[:80]}")
    raise errors.InvalidInputError(f"no conflict is about {which[:80]}")


def _is_address_of(address: Address, text: str) -> bool:
    prefix, dot, digits = text.rpartition(".")
    return bool(dot and prefix) and str(address.number) == digits and _has_birth(address, prefix)


def _has_birth(address: Address, prefix: str) -> bool:
    """Return True if an address starts with a prefix, which may be a whole commit id."""
    return address.birth.hex().startswith(prefix[: 2 * BIRTH_BYTES])
