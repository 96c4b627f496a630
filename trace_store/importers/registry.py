"""The formats that can be imported: one row each.

Rule: a table. To add a format, write a module with the functions of `contract.Format` and name it here.
"""

from __future__ import annotations

from typing import cast

from trace_store.importers import claude_code
from trace_store.importers.contract import Format

FORMATS: dict[str, Format] = {module.NAME: cast(Format, module) for module in (claude_code,)}


def format_of(head: bytes) -> Format | None:
    """Return the format of a file, told from its first bytes, or None."""
    return next((found for found in FORMATS.values() if found.sniff(head)), None)
