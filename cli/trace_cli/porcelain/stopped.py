"""What a command may have to say of what stopped half-way and waits for somebody to settle it."""

from __future__ import annotations

from trace_cli.render.escape import safe
from trace_store import errors
from trace_store.joining.stops import read_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from trace_cli.runtime import Invocation
    from trace_store.joining.stops import Stop
    from trace_store.store import Store


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
