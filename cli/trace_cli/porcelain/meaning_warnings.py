"""Warnings that messages may have changed their meaning, for people and as JSON."""

from __future__ import annotations

from trace_cli.render.escape import one_line
from trace_cli.render.records import short_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from trace_cli.runtime import Invocation
    from trace_store.merge.meaning_warnings import MeaningWarning


def warn(invocation: Invocation, warnings: Iterable[MeaningWarning]) -> None:
    """Print warnings on standard error."""
    for warning in warnings:
        said = one_line(warning.meaning, 600)
        others = ", ".join(short_address(address) for address in warning.others)
        about = f" ({others})" if others else ""
        invocation.note(f"warning: {short_address(warning.address)}: {said}{about}")
