"""What reflogs say of commands, where Trace reads it again: going elsewhere, renaming, taking back, joining tips.

Rule: only the beginning of a message says so. Behind `commit: ` and the like stand a person's own words, which may be
any.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

UNDO, REDO = "undo: ", "redo: "
DIVERGED_TIPS = "diverged tips"
"""What was merged, where it was the other tips of the branch itself; the beginnings of their ids follow."""
_SWITCHED = "switch: moving from "
_RENAMED = "branch: renamed "
_JOINS = "joins "
_TO = " to "


def switch_message(left: str, went: str) -> str:
    """Return what is said of HEAD that went from a branch or a commit to another, given their short names."""
    return f"{_SWITCHED}{left}{_TO}{went}"


def read_switch(message: str) -> tuple[str, str] | None:
    """Return from where and to where HEAD went; None when a message says nothing of the kind."""
    word, said = without_word(read_join(message)[1])
    if not said.startswith(_SWITCHED):
        return None
    left, _, went = said.removeprefix(_SWITCHED).partition(_TO)
    return (went, left) if word == UNDO else (left, went)


def rename_message(before: str, after: str) -> str:
    """Return what is said of a branch that is given another name, given the full names."""
    return f"{_RENAMED}{before}{_TO}{after}"


def read_rename(message: str) -> tuple[str, str] | None:
    """Return which name a branch had and which it was given; None when a message says nothing of the kind."""
    word, said = without_word(read_join(message)[1])
    if not said.startswith(_RENAMED):
        return None
    before, _, after = said.removeprefix(_RENAMED).partition(_TO)
    return (after, before) if word == UNDO else (before, after)


def without_word(message: str) -> tuple[str, str]:
    """Return UNDO, REDO or "", and what is said behind it of the command that was taken back or taken up again."""
    for word in (UNDO, REDO):
        if message.startswith(word):
            return word, message.removeprefix(word)
    return "", message


def join_message(tips: Sequence[str], message: str) -> str:
    """Return what is said of a branch that takes up other tips of its own, given the beginnings of their ids."""
    return f"{_JOINS}{' '.join(tips)}: {message}" if tips else message


def read_join(message: str) -> tuple[Sequence[str], str]:
    """Return which tips a branch took up, by the beginnings of their ids, and what is said besides."""
    if not message.startswith(_JOINS):
        return (), message
    tips, _, said = message.removeprefix(_JOINS).partition(": ")
    return tips.split(), said
