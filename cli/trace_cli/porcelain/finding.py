"""Messages that a rebase has given another address: found again, and said so."""

from __future__ import annotations

from trace_cli.render.records import short_address
from trace_store import errors, joining

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation
    from trace_store.history.draft import Draft
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
