"""Texts edited in the user's editor.

Rule: only the environment names the editor; nothing that a repository names is run.
"""

from __future__ import annotations

import os

from trace_cli.failures import usage_error
from trace_cli.render.records import short_address
from trace_store import errors
from trace_store.base.ident import count_of, is_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_cli.runtime import Invocation
    from trace_store.merge.conflicts import Conflict

OPENING, MIDDLE, CLOSING = "<<<<<<< ours", "=======", ">>>>>>> theirs"


def edited(
    invocation: Invocation, text: str, name: str, otherwise: str, editor: str | None = None
) -> str:
    """Open a text in an editor and return the saved text.

    Args:
        invocation: the run.
        text: the text to edit.
        name: the name of the temporary file.
        otherwise: the hint about how to give the text without an editor.
        editor: the editor's command; None for the user's text editor.

    Raises:
        InvalidInputError: no editor is set, or it failed.
    """
    editor = invocation.environment.editor if editor is None else editor
    if not editor:
        raise usage_error("no editor is set", f"set VISUAL or EDITOR, or {otherwise}")
    import shlex  # here, since these imports take longer than most merges, and few need an editor
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="trace-") as folder:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        invocation.flush()
        try:
            done = subprocess.run([*shlex.split(editor), path], check=False)
        except (OSError, ValueError) as error:
            raise usage_error(f"the editor cannot be run: {error}") from error
        if done.returncode:
            raise usage_error(f"the editor exited with code {done.returncode}; nothing was changed")
        with open(path, encoding="utf-8", errors="surrogatepass") as file:
            return file.read()


def settle_in_editor(invocation: Invocation, found: Sequence[Conflict], which: str) -> str:
    """Edit both sides of a conflict between markers, and return the resolution.

    Raises:
        InvalidInputError: no such conflict, no editor, or the markers are still there.
    """
    if is_count(which):
        named = [each for each in found if each.number == count_of(which)]
    else:
        named = [each for each in found if each.resolution is None and not which]
    if len(named) != 1:
        raise usage_error("name a conflict by its number")
    (conflict,) = named
    sides = (
        "\n".join(entry.text for entry in entries) for entries in (conflict.ours, conflict.theirs)
    )
    ours, theirs = sides
    name = short_address(conflict.addresses[0]) if conflict.addresses else conflict.kind
    text = edited(invocation, marked(ours, theirs), f"{name}.md", "give the text with -F")
    if any(line.rstrip() in (OPENING, CLOSING) for line in text.splitlines()):
        raise errors.InvalidInputError("the conflict markers are still there")
    return text.removesuffix("\n")


def marked(ours: str, theirs: str) -> str:
    """Return both texts between conflict markers, common first and last lines outside."""
    mine, yours = ours.split("\n"), theirs.split("\n")
    start = 0
    while start < min(len(mine), len(yours)) and mine[start] == yours[start]:
        start += 1
    end = 0
    while end < min(len(mine), len(yours)) - start and mine[-1 - end] == yours[-1 - end]:
        end += 1
    stop_mine, stop_yours = len(mine) - end, len(yours) - end
    lines = [
        *mine[:start],
        OPENING,
        *mine[start:stop_mine],
        MIDDLE,
        *yours[start:stop_yours],
        CLOSING,
        *mine[stop_mine:],
    ]
    return "\n".join(lines) + "\n"
