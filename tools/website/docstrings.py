"""Conversion of our docstrings for Sphinx.

Rule: pure functions of lines; conf.py hands them what Sphinx has.
"""

from __future__ import annotations

import re

_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields):$")
_QUOTED = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_UNWRITABLE = re.compile(r"<[^<>]*>")
_AS = re.compile(r"As `[\w.]+`")


def prepared(lines: list[str]) -> list[str]:
    """Return the lines of a docstring in Google style."""
    return with_code([with_names(line) for line in with_as(lines)])


def written(signature: str) -> str:
    """Return a signature with an ellipsis for defaults that are not Python literals."""
    return _UNWRITABLE.sub("...", signature)


def with_names(line: str) -> str:
    """Return a line in which only Python names are references; other code is literal."""
    return _QUOTED.sub(
        lambda found: found[0] if _NAME.fullmatch(found[1]) else f"`{found[0]}`", line
    )


def with_as(lines: list[str]) -> list[str]:
    """Return the lines with "Raises: As `append`." as a sentence instead of a list."""
    done: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        if line.strip() == "Raises:" and _AS.match(following):
            indent = line[: len(line) - len(line.lstrip())]
            done += [
                f"{indent}Raises what `{following.split('`')[1]}` raises{following.split('`', 2)[2]}",
                "",
            ]
            index += 2
            if index < len(lines) and lines[index].strip():
                done.append(line)
            continue
        done.append(line)
        index += 1
    return done


def with_code(lines: list[str]) -> list[str]:
    """Return the lines with an indented paragraph outside the sections as a block of Python."""
    done: list[str] = []
    section = inside = False
    for index, line in enumerate(lines):
        if line and not line.startswith(" "):
            section, inside = bool(_SECTION.match(line)), False
        elif line and not section and not inside and (index == 0 or not lines[index - 1]):
            done += [".. code-block:: python", ""]
            inside = True
        done.append(line)
    return done
