"""Where a repository lies, when that is a place to be careful with."""

from __future__ import annotations

from trace_cli.render.escape import safe
from trace_store.file_systems import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation


def tell_where(invocation: Invocation, directory: str) -> None:
    """Say so when locks do not keep out other machines where a repository was made."""
    where = kind_of(directory)
    if not where.locks:
        told = f"{safe(directory)} lies on {safe(where.name)}: {where.note}"
        invocation.note(f"note: {told}; let one machine write at a time")
