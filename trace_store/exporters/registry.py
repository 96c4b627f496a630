"""The forms that a session can be written in: one row each, and those that other packages bring.

Rule: a table. To add a form, write a module with what `contract.Writer` has and name it here; a package of its own
names the module as an entry point of the group `trace_store.exporters`. What the table has cannot be replaced. A
module is imported when its form is asked for.
"""

from __future__ import annotations

from typing import cast

from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import Writer
from trace_store.lazy_import import submodules

GROUP = "trace_store.exporters"
FORMS: dict[str, tuple[str, str]] = {
    "anthropic": ("formats.anthropic", ".json"),
    "atif": ("formats.atif", ".json"),
    "claude-code": ("formats.claude_code", ".jsonl"),
    "codex": ("formats.codex", ".jsonl"),
    "gemini": ("formats.gemini", ".jsonl"),
    "gemini-contents": ("formats.gemini_contents", ".json"),
    "html": ("html", ".html"),
    "langchain": ("formats.langchain", ".json"),
    "markdown": ("markdown", ".md"),
    "openai": ("formats.openai", ".json"),
    "openai-responses": ("formats.openai_responses", ".json"),
    "trace-json": ("formats.trace_json", ".json"),
}
"""By name: the module of the writer, and how its files end."""
_module = submodules("trace_store.exporters")


def writer_named(name: str) -> Writer:
    """Return the writer of a form.

    Raises:
        InvalidInputError: there is none, or the package that brings it cannot be loaded.
    """
    if name in FORMS:
        return cast(Writer, _module(FORMS[name][0]))
    from importlib.metadata import entry_points  # only for what the table has not

    for point in entry_points(group=GROUP, name=name):
        try:
            return cast(Writer, point.load())
        except (ImportError, AttributeError, SyntaxError) as error:
            raise InvalidInputError(
                f"the format {name[:40]!r}, which {point.value} brings, cannot be loaded: {error}"
            ) from error
    known = ", ".join(writer_names())
    raise InvalidInputError(f"unknown format {name[:40]!r}: one of {known}")


def writer_names() -> list[str]:
    """Return the names of all forms, sorted; nothing of other packages is loaded."""
    from importlib.metadata import entry_points  # only for a list

    return sorted({*FORMS, *(point.name for point in entry_points(group=GROUP))})
