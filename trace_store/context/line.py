"""One-line summaries of commits, tool calls and results."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LINE_WIDTH = 300
"""Maximum number of quoted characters in a line."""


class SummaryLine:
    """A line whose quoted text may be shortened, but not what comes before and after."""

    __slots__ = ("after", "before", "said")

    def __init__(self, before: str, said: str = "", after: str = "") -> None:
        self.before = before
        self.said = said
        self.after = after

    def cut(self, width: int) -> str:
        """Return the line with at most `width` (and LINE_WIDTH) characters of quoted text, with an ellipsis if cut."""
        said, width = self.said, min(width, LINE_WIDTH)
        if len(said) > width:
            said = said[: width - 1] + "…"
        return self.before + said + self.after


_MAIN = (
    *("command", "cmd", "script", "code", "file_path", "filePath", "path", "pattern", "query"),
    *("url", "prompt", "description", "input", "name"),
)
"""Arguments that describe a call best, in order of preference."""


def call_line(name: str, arguments: str) -> str:
    """Return a call such as `[Bash] pytest -q`: its tool, and its main argument or the start of all arguments.

    Args:
        name: the tool.
        arguments: JSON or other text, which may be cut off anywhere.
    """
    said = " ".join(_main_argument(arguments).split())
    return f"[{name}] {said}" if said else f"[{name}]"


def result_line(text: str) -> str:
    """Return a result as `-> ` and its first line that is not blank."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"-> {first}" if first else "-> (nothing)"


def argument_of(arguments: str, names: Sequence[str]) -> str:
    """Return the first of some arguments that a call has, as text; "" without one.

    Args:
        arguments: JSON or other text, which may be cut off anywhere.
        names: the arguments, in order of preference.
    """
    if not arguments.lstrip().startswith("{"):
        return ""
    import json  # as slow as a whole command to import; only needed where calls are shown

    decoder = json.JSONDecoder()
    for key in names:
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
    return ""


def _main_argument(arguments: str) -> str:
    return argument_of(arguments, _MAIN) or ("" if arguments.strip() == "{}" else arguments)
