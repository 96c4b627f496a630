"""Registry of export formats: one row each, plus those of other packages.

To add a format, write a module with the attributes of `contract.FormatWriter` and add it here. Another package names
its module in an entry point of the group `trace_store.exporters`. Built-in formats cannot be replaced. A module is
imported on first use.
"""

from __future__ import annotations

from typing import cast

from trace_store.base.lazy_import import submodules
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import FormatWriter

GROUP = "trace_store.exporters"
FORMS: dict[str, tuple[str, str]] = {
    "anthropic": ("formats.requests:ANTHROPIC", ".json"),
    "atif": ("formats.atif", ".json"),
    "claude-code": ("formats.claude_code", ".jsonl"),
    "codex": ("formats.codex", ".jsonl"),
    "dagent": ("formats.dagent", ".json"),
    "gemini": ("formats.gemini", ".jsonl"),
    "gemini-contents": ("formats.requests:GEMINI_CONTENTS", ".json"),
    "html": ("html", ".html"),
    "langchain": ("formats.langchain", ".json"),
    "markdown": ("markdown", ".md"),
    "openai": ("formats.requests:OPENAI", ".json"),
    "openai-responses": ("formats.requests:OPENAI_RESPONSES", ".json"),
    "trace-json": ("formats.trace_json", ".json"),
}
"""Writer and file suffix of each format: a module, or a name in one, as in entry points."""
_module = submodules("trace_store.exporters")


def writer_named(name: str) -> FormatWriter:
    """Return the writer of a format.

    Raises:
        InvalidInputError: the format is unknown, or its package cannot be loaded.
    """
    if name in FORMS:
        module, _, attribute = FORMS[name][0].partition(":")
        found = _module(module)
        return cast(FormatWriter, getattr(found, attribute) if attribute else found)
    from importlib.metadata import entry_points  # only for formats of other packages

    for point in entry_points(group=GROUP, name=name):
        try:
            return cast(FormatWriter, point.load())
        except (ImportError, AttributeError, SyntaxError) as error:
            raise InvalidInputError(
                f"cannot load format {name[:40]!r} from {point.value}: {error}"
            ) from error
    known = ", ".join(writer_names())
    raise InvalidInputError(f"unknown format {name[:40]!r}: one of {known}")


def writer_names() -> list[str]:
    """Return the sorted names of all formats without loading other packages."""
    from importlib.metadata import entry_points  # only for the list

    return sorted({*FORMS, *(point.name for point in entry_points(group=GROUP))})
