"""A trajectory as a folder: a page, a file for each chapter, and the raw data of its events."""

from __future__ import annotations

import json

from trace_store.exporters.overview import pretty
from trace_store.trajectories.views.markdown import chapter_markdown, page_markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from trace_store.trajectories.reading import Trajectory
    from trace_store.trajectories.views.view import View

_NAME_CHARACTERS = 50


def folder_files(
    view: View, render: Callable[[Trajectory], Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of each file; the path is relative to the folder, with slashes.

    Args:
        view: the trajectory.
        render: returns the whole trajectory as JSON values, for `trajectory.json`.
    """
    yield "README.md", page_markdown(view)
    yield "trajectory.json", pretty(render(view.trajectory)) + "\n"
    for number, (chapter, messages) in enumerate(view.chapters, 1):
        name = f"{number:02}-{file_name(chapter.title or 'start')}.md"
        yield f"chapters/{name}", chapter_markdown(chapter, messages)
    for number, event in enumerate(view.events, 1):
        raw = event.data.get("raw")
        if isinstance(raw, str):
            yield f"artifacts/{number:04}-{file_name(event.type)}.txt", raw
        elif raw is not None:
            text = json.dumps(raw, ensure_ascii=True, indent=2) + "\n"
            yield f"artifacts/{number:04}-{file_name(event.type)}.json", text


def file_name(title: str) -> str:
    """Return a title as part of a file name that is valid on every file system."""
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in title.lower()).split()
    return "-".join(words)[:_NAME_CHARACTERS].strip("-") or "untitled"
