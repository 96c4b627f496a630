r"""Paths of files in one spelling, whatever system wrote them.

    C:\Users\ada\a.py    c:/Users/ada/a.py    /c/Users/ada/a.py    all are C:/Users/ada/a.py
    src\a.py              is src/a.py

Only for comparison and display: the spelling of the result need not exist on any machine.
"""

from __future__ import annotations

import re

_SEPARATOR = re.compile(r"\\\\|\\(?![ \\\"])")
"""A backslash, or two as JSON writes it; before a space it belongs to a shell's name."""
_DRIVE = re.compile(r"(?<![^\s\"'`(=,\[])(?:([A-Za-z]):/+|/([cCdD])/)")
"""A drive at the start of a word: `c:/`, or one of the usual ones as shells on Windows write it, `/c/`."""


def normal_path(path: str) -> str:
    """Return a path with slashes and a drive as `C:/`."""
    if "\\" in path:
        path = _SEPARATOR.sub("/", path)
    return _DRIVE.sub(_drive, path, count=1) if _may_have_drive(path) else path


def normal_paths(text: str) -> str:
    """Return a text, such as a call's arguments, with its paths as `normal_path` returns them."""
    if "\\" in text:
        text = _SEPARATOR.sub("/", text)
    return _DRIVE.sub(_drive, text)


def _may_have_drive(path: str) -> bool:
    return path[1:2] == ":" or (path[:1] == "/" and path[2:3] == "/")


def _drive(match: re.Match[str]) -> str:
    return f"{(match[1] or match[2]).upper()}:/"
