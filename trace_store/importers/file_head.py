"""The beginning of a file, by which formats know their own, and programs' folders are searched for a project's files.

Rule: never fails; what is no record, or does not end within the bytes at hand, is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from trace_store.errors import TraceError
from trace_store.files import Disk
from trace_store.importers.files import InputFile
from trace_store.importers.json_records import values_in

HEAD_BYTES = 256 * 1024
"""What is looked at to tell the format."""
_MOST_ASKED = 8


def first_records(head: bytes, count: int) -> list[dict[str, Any]]:
    """Return the first JSON objects that stand on lines of their own, at most so many.

    Args:
        head: the first bytes of a file.
        count: how many are enough.
    """
    if count > _MOST_ASKED:
        return list(islice(_records(head), count))
    return list(_few_records(head)[:count])


@lru_cache(maxsize=2)
def _few_records(head: bytes) -> tuple[dict[str, Any], ...]:
    """Return as many of the first records as formats ask for, who all look at the same head."""
    return tuple(islice(_records(head), _MOST_ASKED))


def _records(head: bytes) -> Iterator[dict[str, Any]]:
    for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if line.lstrip(b" \t\r\0").startswith(b"{"):
            yield from (value for value in values_in(line) if isinstance(value, dict))


def read_head(disk: Disk, path: str) -> bytes:
    """Return the beginning of a file, as much of it as tells what it is; nothing when it cannot be read."""
    try:
        with InputFile(disk, path) as file:
            return file.read_at(0, HEAD_BYTES)
    except TraceError:
        return b""


def is_below(folder: str, project_dir: str) -> bool:
    """Tell whether a folder is a project's or lies in it; links of the project's own path are followed too."""
    if not folder or not os.path.isabs(folder):
        return False
    told = os.path.normpath(folder)
    for project in {os.path.abspath(project_dir), os.path.realpath(project_dir)}:
        if told == project or told.startswith(project.rstrip(os.sep) + os.sep):
            return True
    return False
