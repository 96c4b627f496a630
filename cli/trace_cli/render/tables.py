"""Tables, numbers and colors.

Rule: cells are escaped text. Widths are terminal columns, so that wide characters keep columns aligned. Colors are
added last, and only if the invocation allows them.
"""

from __future__ import annotations

import os
import sys

from trace_cli.render.escape import safe
from trace_store.base.ident import known_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_cli.runtime import Invocation
    from trace_store.context.compiled import CompiledContext
    from trace_store.context.snippet import Snippet
    from trace_store.history.status import Status

LEFT, RIGHT = "<", ">"
DEFAULT_WIDTH = 100
NEARLY_FULL = 85
"""From this percentage on, a gauge is yellow."""
NO_TIME = "no time"
"""Shown for a commit made from records without a time."""
_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}
ROLE_STYLES = {
    "system": "blue",
    "developer": "blue",
    "user": "green",
    "assistant": "cyan",
    "tool": "yellow",
}


def paint(invocation: Invocation, text: str, style: str) -> str:
    """Return text in a style, or unchanged without colors."""
    if not invocation.color or not text or style not in _STYLES:
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def highlight_hit(invocation: Invocation, snippet: Snippet) -> str:
    """Return a snippet with the search hit in bold."""
    text, start, end = snippet.text, snippet.start, snippet.end
    return safe(text[:start]) + paint(invocation, safe(text[start:end]), "bold") + safe(text[end:])


def columns_of(text: str) -> int:
    """Return the number of terminal columns of a line of escaped text."""
    if text.isascii():
        return len(text)
    import unicodedata

    columns = len(text)
    for c in set(text):  # most are one column wide
        if c > "\x7f":
            if unicodedata.combining(c):
                columns -= text.count(c)
            elif unicodedata.east_asian_width(c) in "WF":
                columns += text.count(c)
    return columns


def fit(text: str, width: int) -> str:
    """Return text cut to `width` columns, with an ellipsis if it was cut."""
    if columns_of(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += columns_of(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…" if width > 0 else ""


def terminal_width(invocation: Invocation) -> int:
    """Return the columns of the terminal; 0 (unlimited) if output is not a terminal."""
    if not invocation.terminal:
        return 0
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or DEFAULT_WIDTH
    except (OSError, ValueError):
        return DEFAULT_WIDTH


def table(
    invocation: Invocation,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    align: str,
    styles: Sequence[Sequence[str]] | None = None,
) -> list[str]:
    """Return the lines of a table, none wider than the terminal.

    Args:
        invocation: knows the terminal's width and whether to use colors.
        header: names of the columns; empty for none.
        rows: cells, each one line of escaped text.
        align: LEFT or RIGHT for each column.
        styles: a style or "" for each cell.
    """
    everything = [header, *rows] if header else list(rows)
    if not everything:
        return []
    count = len(align)
    total = terminal_width(invocation)
    # Without a width limit the last column needs no padding, so its width is not computed.
    open_end = not total and align[-1] == LEFT
    widths = [max(_cell_widths([row[i] for row in everything])) for i in range(count - open_end)]
    widths += [0] * open_end
    if total:
        widths = _fitting_widths(widths, total)
        count = len(widths)
    columns: list[list[str]] = []
    for i, width in enumerate(widths):
        cells = [row[i] for row in everything]
        if total:
            cells = [fit(cell, width) for cell in cells]
        is_last = i == count - 1 and align[i] == LEFT
        spaces = None if is_last else [" " * (width - size) for size in _cell_widths(cells)]
        if invocation.color:
            shades = [row[i] for row in styles] if styles else [""] * len(rows)
            shades = ["dim", *shades] if header else shades
            cells = [paint(invocation, *pair) for pair in zip(cells, shades, strict=True)]
        if spaces is not None:
            before, after = (spaces, cells) if align[i] == RIGHT else (cells, spaces)
            cells = list(map(str.__add__, before, after))
        columns.append(cells)
    return [line.rstrip() for line in map("  ".join, zip(*columns, strict=True))]


def _cell_widths(cells: Sequence[str]) -> list[int]:
    """Return the width of each cell in terminal columns."""
    return list(map(len if "".join(cells).isascii() else columns_of, cells))


def _fitting_widths(widths: Sequence[int], total: int) -> list[int]:
    """Return the widths of the columns that fit in `total`; the last is cut."""
    found: list[int] = []
    for width in widths:
        left = total - sum(found) - 2 * len(found)
        if left <= 0:
            break
        found.append(min(width, left))
    return found


def number(value: int) -> str:
    """Return an integer with thousands separators."""
    return f"{value:,}"


def counted(value: int, noun: str) -> str:
    """Return "1 message", "2,000 messages", "3 trajectories"."""
    if value == 1:
        return f"1 {noun}"
    return f"{value:,} {noun[:-1]}ies" if noun.endswith("ory") else f"{value:,} {noun}s"


def size(size_bytes: int) -> str:
    """Return a size in bytes, KiB, MiB or GiB."""
    value = float(size_bytes)
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1024:
            return counted(size_bytes, "byte") if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def share(part: int, whole: int) -> str:
    """Return a percentage with one decimal; "" if the whole is 0."""
    return f"{100 * part / whole:.1f}%" if whole else ""


def gauge(invocation: Invocation, text: str, used: int, limit: int) -> str:
    """Return a text about how full something is, in yellow if it is nearly full."""
    return paint(invocation, text, "yellow") if 100 * used >= NEARLY_FULL * limit else text


def moment(time: str) -> str:
    """Return an ISO time in UTC without its fraction, for people: `2026-11-21 07:10:02`."""
    return time.partition(".")[0].replace("T", " ")


def date(milliseconds: int) -> str:
    """Return the time of a commit in UTC for people, `2026-11-21 07:10:02`, or `no time`."""
    known = known_time(milliseconds)
    return NO_TIME if known is None else moment(known)


BESIDE = "the agent's instructions, tools and unrecorded text"
"""What of a reported request is not in the messages. Transcripts leave out reminders, attachments and reasoning."""


def token_summary(context: CompiledContext | Status) -> str:
    """Describe a context's token counts: of the messages, and of the last request."""
    total, text = context.token_count or 0, context.text_token_count or 0
    estimated, tokens = context.estimated_token_count or 0, counted(total, "token")
    if not estimated:
        return tokens
    reported, doubted = context.reported_token_count, context.doubted_token_count
    if reported is None:
        said = f"{tokens}, {number(text)} of them text ({safe(context.text_token_source)})"
        if doubted is not None:
            said += f"; the reported {number(doubted)} are too few for them and not believed"
        return said
    said = f"about {counted(rounded(estimated), 'token')}; the last request was {number(reported)} (reported)"
    if beside := rounded(total - (context.message_token_count or 0)):
        said += f", so about {number(beside)} are {BESIDE}"
    if context.token_source.endswith("+estimate"):
        said += f"; now about {number(rounded(total))} in all"
    return said


def rounded(tokens: int) -> int:
    """Return an estimate without digits that mean nothing: to tens, from 1,000 on to hundreds."""
    return round(tokens, -2 if tokens >= 1_000 else -1)


def savings(before: int, after: int, messages: int) -> str:
    """Return the percentage of tokens saved: of the messages, and of the whole request."""
    saved, beside = before - after, before - messages
    said = f"{share(saved, messages)} of the messages saved"
    if 100 * beside <= before:
        return said
    what = f"about {number(rounded(beside))} tokens are {BESIDE}"
    return f"{said}; {share(saved, before)} of the request, of which {what}"


def heat_bar(value: float, width: int = 5) -> str:
    """Return a heat as a bar of block characters, such as `███▌ `."""
    eighths = round(max(0.0, min(1.0, value)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + " ▏▎▍▌▋▊▉"[rest].strip()).ljust(width)
