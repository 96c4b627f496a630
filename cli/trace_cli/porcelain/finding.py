"""What a command may have to say: that something waits, or that a rebase has moved a message."""

from __future__ import annotations

from trace_cli.render.escape import safe
from trace_cli.render.records import short_address
from trace_store import errors, joining
from trace_store.joining.stops import read_stop
from trace_store.revision import resolve_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from trace_cli.runtime import Invocation
    from trace_store.history.draft import CommitResult, Draft
    from trace_store.joining.stops import Stop
    from trace_store.oid import ObjectId
    from trace_store.store import Store


def found_again(
    invocation: Invocation,
    store: Store,
    error: errors.MessageNotFoundError,
    revision: str | ObjectId = "HEAD",
) -> tuple[ObjectId, int]:
    """Return where a rebase has put a message that was not found in the context of a revision, and say so.

    Raises:
        MessageNotFoundError: no rebase is known to have put it anywhere.
    """
    old = error.data.get("address")
    new = moved_to(invocation, store, old, revision) if isinstance(old, tuple) else None
    if new is None:
        raise error
    return new


def moved_to(
    invocation: Invocation,
    store: Store,
    old: tuple[bytes, int],
    revision: str | ObjectId = "HEAD",
    *,
    limit: int | None = None,
    passed: set[ObjectId] | None = None,
) -> tuple[ObjectId, int] | None:
    """Return where a rebase has put a message, and say so; None where none is known to have put it anywhere."""
    new = joining.rewritten_address(store, old, revision, limit=limit, passed=passed)
    if new is not None:
        tell_moved(invocation, old, new)
    return new


def looked_for(
    invocation: Invocation, store: Store, text: str, revision: str | ObjectId = "HEAD"
) -> tuple[tuple[ObjectId, int], tuple[ObjectId, int] | None]:
    """Return the address that a text names, and where a rebase has put that when its commit is gone, saying so.

    Raises:
        As `resolve_address`.
    """
    try:
        return resolve_address(store, text), None
    except errors.RevisionNotFoundError:
        if store.refs.head().oid is None:
            raise
        found = joining.rewritten_name(store, text, revision)
        if found is None:
            raise
    old, new = found
    tell_moved(invocation, old, new)
    return old, new


def address_in(
    invocation: Invocation, store: Store, text: str, tips: Sequence[ObjectId]
) -> tuple[ObjectId, int]:
    """Return the address of a message as the history of the first commit that knows it has it, also since a rebase.

    Raises:
        As `resolve_address`.
    """
    passed: set[ObjectId] = set()
    try:
        asked = resolve_address(store, text)
    except errors.RevisionNotFoundError:
        for tip in tips:
            found = joining.rewritten_name(store, text, tip, passed=passed)
            if found is not None:
                tell_moved(invocation, *found)
                return found[1]
        raise
    now = joining.address_in(store, asked, tips, passed)
    if now != asked:
        tell_moved(invocation, asked, now)
    return now


def tell_moved(invocation: Invocation, old: tuple[bytes, int], new: tuple[ObjectId, int]) -> None:
    """Say which address a message has since a rebase."""
    invocation.note(f"note: {short_address(old)} is {short_address(new)} since a rebase")


def written_readdressed(
    invocation: Invocation, store: Store, draft: Draft, write: Callable[[], CommitResult]
) -> CommitResult:
    """Write a draft in which messages are named as they were before a rebase, and say so; raises as `write`."""
    return joining.written_readdressed(
        store, draft, write, lambda old, new: tell_moved(invocation, old, new)
    )


def what_waits(store: Store) -> Stop | None:
    """Return what stopped half-way and waits for somebody to settle it; None also where that is not readable."""
    try:
        return read_stop(store)
    except errors.FormatError:
        return None  # whoever goes on with it is told


def tell_stopped(invocation: Invocation, store: Store, refs: Collection[str | None]) -> None:
    """Say that a merge, a pick or a rebase of a branch waits, to somebody who wrote to one of some refs meanwhile."""
    found = what_waits(store)
    if found is not None and found.ref in refs:
        kind = safe(found.kind)
        invocation.note(
            f"note: {waiting_line(found)}; what was written is on the branch, and "
            f"`trace {kind} --continue` goes on from there"
        )


def waiting_line(found: Stop) -> str:
    """Return what is said of something that waits."""
    return f"{safe(found.said)} is in progress"


def waiting_record(found: Stop | None) -> dict[str, str] | None:
    """Return what waits as JSON."""
    return None if found is None else {"kind": found.kind, "ref": found.ref}
