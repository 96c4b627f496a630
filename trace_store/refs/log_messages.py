"""Reflog messages that Trace parses: switch, rename, undo, redo, joined tips.

Rule: only the start of a message counts. `commit: ` and the like are followed by a user's own text.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

UNDO, REDO = "undo: ", "redo: "
DIVERGED_TIPS = "diverged tips"
"""The source in the message of a merge of a branch's own tips; their short ids follow."""
_SWITCHED = "switch: moving from "
_RENAMED = "branch: renamed "
_JOINS = "joins "
_TO = " to "


def switch_message(left: str, went: str) -> str:
    """Return HEAD's message for a switch, given short names of branches or commits."""
    return f"{_SWITCHED}{left}{_TO}{went}"


def read_switch(message: str) -> tuple[str, str] | None:
    """Return (from, to) of a switch, or None for another message."""
    word, text = split_undo(read_join(message)[1])
    if not text.startswith(_SWITCHED):
        return None
    left, _, went = text.removeprefix(_SWITCHED).partition(_TO)
    return (went, left) if word == UNDO else (left, went)


def rename_message(before: str, after: str) -> str:
    """Return the message for a renamed branch, given the full names."""
    return f"{_RENAMED}{before}{_TO}{after}"


def read_rename(message: str) -> tuple[str, str] | None:
    """Return (old, new) full names of a rename, or None for another message."""
    word, text = split_undo(read_join(message)[1])
    if not text.startswith(_RENAMED):
        return None
    before, _, after = text.removeprefix(_RENAMED).partition(_TO)
    return (after, before) if word == UNDO else (before, after)


def split_undo(message: str) -> tuple[str, str]:
    """Split UNDO, REDO or "" from the message of the original command."""
    for word in (UNDO, REDO):
        if message.startswith(word):
            return word, message.removeprefix(word)
    return "", message


def join_message(tips: Sequence[str], message: str) -> str:
    """Return the message of a move that joins other tips, given their short ids."""
    return f"{_JOINS}{' '.join(tips)}: {message}" if tips else message


def read_join(message: str) -> tuple[Sequence[str], str]:
    """Return the short ids of the joined tips, and the rest of the message."""
    if not message.startswith(_JOINS):
        return (), message
    tips, _, text = message.removeprefix(_JOINS).partition(": ")
    return tips.split(), text
