"""One line about a commit, a tool call or its result."""

from __future__ import annotations

LINE_WIDTH = 300
"""Characters of what a message says that its line has at most."""


class Line:
    """A line: only what a message says may be cut, not what stands before and after it."""

    __slots__ = ("after", "before", "said")

    def __init__(self, before: str, said: str = "", after: str = "") -> None:
        self.before = before
        self.said = said
        self.after = after

    def cut(self, width: int) -> str:
        """Return the line with the first `width` characters of what is said, at most LINE_WIDTH.

        The last of them is an ellipsis where there are more.
        """
        said, width = self.said, min(width, LINE_WIDTH)
        if len(said) > width:
            said = said[: width - 1] + "…"
        return self.before + said + self.after


_MAIN = (
    *("command", "cmd", "script", "code", "file_path", "filePath", "path", "pattern", "query"),
    *("url", "prompt", "description", "input", "name"),
)
"""Arguments that say best what a call does, the most telling first."""


def call_line(name: str, arguments: str) -> str:
    """Return a call as `[Bash] pytest -q`: its tool and its main argument, or the beginning of all arguments.

    Args:
        name: of the tool.
        arguments: JSON or other text; it may be cut off anywhere.
    """
    said = " ".join(_main_argument(arguments).split())
    return f"[{name}] {said}" if said else f"[{name}]"


def result_line(text: str) -> str:
    """Return a result as `-> ` and its first line that is not blank."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"-> {first}" if first else "-> (nothing)"


def _main_argument(arguments: str) -> str:
    if not arguments.lstrip().startswith("{"):
        return arguments
    import json  # as dear as a command; only where calls are shown

    decoder = json.JSONDecoder()
    for key in _MAIN:
        _, mark, rest = arguments.partition(f'"{key}":')
        if not mark:
            continue
        value = rest.lstrip()
        try:
            found, _ = decoder.raw_decode(value)
        except (ValueError, RecursionError):
            # The text is cut off within this value.
            found = value.lstrip('"').replace("\\n", " ").replace('\\"', '"')
        if isinstance(found, list):
            found = " ".join(str(each) for each in found)
        if isinstance(found, str) and found.strip():
            return found
    return "" if arguments.strip() == "{}" else arguments
