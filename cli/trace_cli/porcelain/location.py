"""Warnings about repositories on file systems without reliable locks."""

from __future__ import annotations

from trace_cli.render.escape import safe
from trace_store.file_systems import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation


def tell_where(invocation: Invocation, directory: str) -> None:
    """Warn if file locks do not exclude other machines."""
    where = kind_of(directory)
    if not where.locks:
        told = f"{safe(directory)} is on {safe(where.name)}: {where.note}"
        invocation.note(f"note: {told}; let one machine write at a time")
