"""Registry of import formats: one row each.

To add a format, write a module with a `contract.Format` and add it here. Another package names its format in an
entry point of the group `trace_store.importers`. The order is that of detection: formats with unique marks come
before those recognised by the shape of messages.
"""

from __future__ import annotations

from functools import cache
from typing import cast

from trace_store.errors import InvalidInputError, UnreadableInputError
from trace_store.importers.contract import Format
from trace_store.importers.convert import ref_component
from trace_store.importers.formats import (
    agent_trace,
    ai_sdk,
    aider,
    atif,
    chats,
    claude_code,
    cline,
    codex,
    codex_exec,
    continue_dev,
    copilot,
    crush,
    cursor,
    dagent,
    droid,
    entire,
    gemini,
    goose,
    mini_swe_agent,
    opencode,
    pi,
    pydantic_ai,
    qwen_code,
    swe_agent,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "trace_store.importers"

BUILT_IN: tuple[Format, ...] = (
    qwen_code.FORMAT,
    cast(Format, claude_code),
    aider.FORMAT,
    cline.FORMAT,
    cline.UI_FORMAT,
    codex.FORMAT,
    codex_exec.FORMAT,
    continue_dev.FORMAT,
    copilot.FORMAT,
    crush.FORMAT,
    cursor.FORMAT,
    dagent.FORMAT,
    droid.FORMAT,
    entire.FORMAT,
    gemini.FORMAT,
    goose.FORMAT,
    opencode.FORMAT,
    pi.FORMAT,
    mini_swe_agent.FORMAT,
    swe_agent.FORMAT,
    atif.FORMAT,
    agent_trace.FORMAT,
    pydantic_ai.FORMAT,
    ai_sdk.FORMAT,
    chats.TRACE_JSON,
    chats.LANGCHAIN,
    chats.GEMINI_CONTENTS,
    chats.OPENAI_RESPONSES,
    chats.ANTHROPIC,
    chats.OPENAI,
)
_BY_SHAPE = (
    *(chats.LANGCHAIN, chats.GEMINI_CONTENTS, chats.OPENAI_RESPONSES, chats.ANTHROPIC),
    chats.OPENAI,
)
_BY_NAME = {format.NAME: format for format in BUILT_IN}
_FUNCTIONS = ("sniff", "is_document", "histories", "plan", "resume")


@cache
def formats() -> dict[str, Format]:
    """Return the formats by name: built-in ones, then those of installed packages.

    Raises:
        InvalidInputError: a package's format cannot be loaded, is invalid, or its name is taken.
    """
    from importlib.metadata import (
        entry_points,  # slow to import, needed only for other packages
    )

    by_name = dict(_BY_NAME)
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        format = _load(point)
        if format.NAME in by_name or point.name != format.NAME:
            raise InvalidInputError(
                f"the import format {point.name!r} of another package has the name {format.NAME!r}, "
                "which is taken or not its own"
            )
        by_name[format.NAME] = format
    return by_name


def format_names() -> list[str]:
    """Return the names of all formats; those of other packages only if all of these can be loaded."""
    try:
        return list(formats())
    except InvalidInputError:
        return [each.NAME for each in BUILT_IN]


def _load(point: EntryPoint) -> Format:
    """Load the format of an entry point; any error names its package."""
    try:
        format = cast(Format, point.load())
        is_valid = (
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
    if not is_valid:
        raise InvalidInputError(f"the import format {point.name!r} of another package is invalid")
    return format


def format_named(name: str) -> Format:
    """Return a format; other packages are loaded only for unknown names.

    Raises:
        InvalidInputError: the format is unknown; or as in `formats`.
    """
    format = _BY_NAME.get(name) or formats().get(name)
    if format is None:
        raise InvalidInputError(f"unknown format {name[:40]!r}: one of {', '.join(formats())}")
    return format


def format_of(head: bytes) -> Format | None:
    """Return the format of a file from its first bytes, or None.

    Other packages are asked last.

    Raises:
        InvalidInputError: a format of another package failed; or as in `formats`.
    """
    head = head.removeprefix(b"\xef\xbb\xbf")
    own = next((format for format in BUILT_IN if format.sniff(head)), None)
    if own is not None:
        return own
    for format in formats().values():
        try:
            if format.NAME not in _BY_NAME and format.sniff(head):
                return format
        except Exception as error:
            raise format_failure(format.NAME, error) from error
    return None


def has_marks(format: Format) -> bool:
    """Return False if a format is recognised only by the shape of its messages, which others may share."""
    return format not in _BY_SHAPE


def is_built_in(name: str) -> bool:
    """Return True if a format is built in."""
    return name in _BY_NAME


def format_failure(name: str, error: Exception, where: str = "") -> InvalidInputError:
    """Return the error to report when a format of another package failed.

    Args:
        name: name of the format.
        error: the error that it raised.
        where: path of the file, if any.
    """
    what = f"{type(error).__name__}: {error}"[:200]
    return UnreadableInputError(
        f"the import format {name!r} of another package failed{where and f' on {where}'}: {what}",
        path=where,
    )


def suffixes() -> tuple[str, ...]:
    """Return the file suffixes to look for in folders."""
    return tuple(sorted({suffix for format in formats().values() for suffix in format.SUFFIXES}))
