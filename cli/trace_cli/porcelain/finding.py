"""What a command that writes may have to say: that something waits, or that a rebase has moved a message."""

from __future__ import annotations

from trace_cli.render.escape import safe
from trace_cli.render.records import short_address
from trace_store import errors, joining
from trace_store.joining.stops import WORDS, read_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from trace_cli.runtime import Invocation
    from trace_store.history.draft import Draft
    from trace_store.joining.stops import Stop
    from trace_store.store import Store


def found_again(
    invocation: Invocation, store: Store, error: errors.MessageNotFoundError
) -> tuple[bytes, int]:
    """Return where a rebase has put a message that was not found, and say so.

    Raises:
        MessageNotFoundError: no rebase is known to have put it anywhere.
    """
    old = error.data.get("address")
    if not isinstance(old, tuple):
        raise error
    new = joining.rewritten_address(store, old)
    if new is None:
        raise error
    invocation.note(f"note: {short_address(old)} is {short_address(new)} since a rebase")
    return new


def readdress(
    invocation: Invocation, store: Store, draft: Draft, error: errors.MessageNotFoundError
) -> None:
    """Let a draft name a message that was not found by the address that it has since a rebase; raises as above."""
    new = found_again(invocation, store, error)
    old = error.data["address"]
    assert isinstance(old, tuple)
    draft.operations[:] = joining.with_address(draft.operations, old, new)


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
    return f"a {WORDS.get(found.kind, safe(found.kind))} of {safe(found.ref)} is in progress"


def waiting_record(found: Stop | None) -> dict[str, str] | None:
    """Return what waits as JSON."""
    return None if found is None else {"kind": found.kind, "ref": found.ref}
