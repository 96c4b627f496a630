"""A line about a commit, of which a part may be cut."""

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
