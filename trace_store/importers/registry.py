"""The formats that can be imported: one row each.

Rule: a table. To add a format, write a module with a `contract.Format` and name it here; a package of somebody else's
names its own in the entry points of the group `trace_store.importers`, by the format's name.

The order is that in which files are looked at: formats with marks of their own come before those that are told by the
shape of messages alone.
"""

from __future__ import annotations

from functools import cache
from typing import cast

from trace_store.errors import InvalidInputError, UnreadableInputError
from trace_store.importers.contract import Format
from trace_store.importers.formats import (
    agent_trace,
    atif,
    chats,
    claude_code,
    codex,
    codex_exec,
    copilot,
    droid,
    entire,
    gemini,
    mini_swe_agent,
    opencode,
    swe_agent,
    trail,
)
from trace_store.importers.names import ref_component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "trace_store.importers"

OWN: tuple[Format, ...] = (
    cast(Format, claude_code),
    codex.FORMAT,
    codex_exec.FORMAT,
    copilot.FORMAT,
    droid.FORMAT,
    entire.FORMAT,
    gemini.FORMAT,
    opencode.FORMAT,
    mini_swe_agent.FORMAT,
    swe_agent.FORMAT,
    atif.FORMAT,
    trail.FORMAT,
    agent_trace.FORMAT,
    chats.rows.TRACE_JSON,
    chats.rows.LANGCHAIN,
    chats.rows.GEMINI_CONTENTS,
    chats.rows.OPENAI_RESPONSES,
    chats.rows.ANTHROPIC,
    chats.rows.OPENAI,
)
_BY_NAME = {format.NAME: format for format in OWN}
_FUNCTIONS = ("sniff", "is_document", "histories", "plan", "resume")


@cache
def formats() -> dict[str, Format]:
    """Return the formats by name: our own, then those that installed packages add.

    Raises:
        InvalidInputError: a package names a format that cannot be loaded, or is none, or has the name of another.
    """
    from importlib.metadata import (
        entry_points,  # dearer than all of ours, and only for what we have not
    )

    found = dict(_BY_NAME)
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        format = _load(point)
        if format.NAME in found or point.name != format.NAME:
            raise InvalidInputError(
                f"the import format {point.name!r} of another package has the name {format.NAME!r}, "
                "which is taken or not its own"
            )
        found[format.NAME] = format
    return found


def _load(point: EntryPoint) -> Format:
    """Return what an entry point names; whatever its module does meanwhile, the error says whose it is."""
    try:
        format = cast(Format, point.load())
        sound = (
            ref_component(format.NAME) == format.NAME
            and not isinstance(format.SUFFIXES, str)
            and all(suffix[0] == "." for suffix in format.SUFFIXES)
            and len(format.SUFFIXES) > 0
            and all(callable(getattr(format, name)) for name in _FUNCTIONS)
        )
    except Exception as error:
        what = f"{type(error).__name__}: {error}"[:200]
        raise InvalidInputError(
            f"the import format {point.name!r} of another package cannot be loaded: {what}"
        ) from error
    if not sound:
        raise InvalidInputError(
            f"the import format {point.name!r} of another package is not what a format must be"
        )
    return format


def format_named(name: str) -> Format:
    """Return a format; other packages are loaded only for a name that is not ours.

    Raises:
        InvalidInputError: there is none of this name; or as in `formats`.
    """
    found = _BY_NAME.get(name) or formats().get(name)
    if found is None:
        raise InvalidInputError(f"unknown format {name[:40]!r}: one of {', '.join(formats())}")
    return found


def format_of(head: bytes) -> Format | None:
    """Return the format of a file, told from its first bytes, or None; those of other packages are asked last.

    Raises:
        InvalidInputError: a format of another package failed; or as in `formats`.
    """
    head = head.removeprefix(b"\xef\xbb\xbf")
    own = next((found for found in OWN if found.sniff(head)), None)
    if own is not None:
        return own
    for found in formats().values():
        try:
            if found.NAME not in _BY_NAME and found.sniff(head):
                return found
        except Exception as error:
            raise failed(found.NAME, error) from error
    return None


def is_own(name: str) -> bool:
    """Tell whether a format is one of ours."""
    return name in _BY_NAME


def failed(name: str, error: Exception, where: str = "") -> InvalidInputError:
    """Return what is told of an error that a format of another package raised: whose it is.

    Args:
        name: of the format.
        error: what it raised.
        where: the file it was given, if any.
    """
    what = f"{type(error).__name__}: {error}"[:200]
    return UnreadableInputError(
        f"the import format {name!r} of another package failed{where and f' on {where}'}: {what}",
        path=where,
    )


def suffixes() -> tuple[str, ...]:
    """Return how the names of files end that a folder is searched for."""
    return tuple(sorted({suffix for found in formats().values() for suffix in found.SUFFIXES}))
