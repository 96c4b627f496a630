"""Changes between two contexts, as lines for people and as JSON.

Rule: text of messages is escaped here, line by line, before colors are added.
"""

from __future__ import annotations

from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import address_text, short_address
from trace_cli.render.tables import (
    DEFAULT_WIDTH,
    LEFT,
    RIGHT,
    ROLE_STYLES,
    columns_of,
    counted,
    fit,
    number,
    paint,
    table,
    terminal_width,
)
from trace_store import history
from trace_store.history.diff import (
    ADDED,
    COPIED,
    EDITED,
    GHOSTED,
    LABELS,
    MOVED,
    PRIORITY,
    REMOVED,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_cli.runtime import Invocation
    from trace_store.context.compiled import CompiledMessage
    from trace_store.history.diff import ContextDiff, MessageChange

LETTERS = {
    ADDED: "A",
    REMOVED: "D",
    EDITED: "M",
    MOVED: "R",
    PRIORITY: "P",
    LABELS: "L",
    GHOSTED: "G",
    COPIED: "C",
}
MOST_LINES = 12
"""How many lines of an added or removed message a terminal shows; pipes get all."""
_STYLES = {"+": "green", "-": "red"}
_BAR = 24


def diff_lines(
    invocation: Invocation,
    found: ContextDiff,
    *,
    stat: bool = False,
    side: bool = False,
    around: int = 3,
) -> Iterator[str]:
    """Yield the lines of a diff; nothing if the contexts are equal.

    Args:
        invocation: the output.
        found: the diff.
        stat: whether to show token counts instead of text.
        side: whether to show both sides in two columns.
        around: lines of context.
    """
    if found.is_empty:
        return
    if stat:
        yield from stat_lines(invocation, found)
    else:
        yield from head_lines(invocation, found)
        for change in found.changes:
            yield from (side_lines if side else change_lines)(invocation, change, around)
            yield ""
    yield from tail_lines(found)


def head_lines(invocation: Invocation, found: ContextDiff) -> Iterator[str]:
    """Yield the lines above the changes."""
    before, after = found.before, found.after
    ends = [each.commit.short() if each.commit else "nothing" for each in (before, after)]
    yield paint(invocation, f"diff {ends[0]}..{ends[1]}", "bold")
    gained = f"{found.tokens_after - found.tokens_before:+,}"
    yield (
        f"context: {number(len(before))} messages, then {number(len(after))}; "
        f"{number(found.tokens_before)} tokens, then {number(found.tokens_after)} ({gained})"
    )
    for sign, names in (("-", found.tools_before), ("+", found.tools_after)):
        for name in names:
            yield paint(invocation, f"{sign} tool {one_line(name, 80)}", _STYLES[sign])
    yield ""


def tail_lines(found: ContextDiff) -> Iterator[str]:
    """Yield the line about the common prefix."""
    if found.tools_differ:
        where = "the tools differ, and providers put them first"
    elif found.common_count == len(found.before) == len(found.after):
        where = "the contexts are the same"
    elif not len(found.before):
        where = "the first context is empty"
    elif found.common_count == len(found.before):
        where = f"all {counted(found.common_count, 'message')} unchanged"
    else:
        first = found.before.messages[found.common_count]
        where = f"different from message {number(found.common_count)} on, {short_address(first.address)}"
    kept = found.tokens_before - found.tokens_lost
    yield (
        f"prefix: {where}; a cache keeps {counted(kept, 'token')}, "
        f"loses {number(found.tokens_lost)} and adds {number(found.tokens_new)}"
    )


def name_line(change: MessageChange) -> str:
    """Return the letters of a change and the message's address in full."""
    return f"{letters(change)}\t{address_text(change.address)}"


def letters(change: MessageChange) -> str:
    """Return one letter for each kind of a change."""
    return "".join(LETTERS[kind] for kind in change.kinds)


def stat_lines(invocation: Invocation, found: ContextDiff) -> Iterator[str]:
    """Yield a line per changed message with its token change, then totals."""
    rows, styles = [], []
    most = max([1, *(abs(c.tokens_after - c.tokens_before) for c in found.changes)])
    for change in found.changes:
        gained = change.tokens_after - change.tokens_before
        length = -(-abs(gained) * _BAR // most) if gained else 0
        sign = "+" if gained > 0 else "-"
        rows.append(
            (
                letters(change),
                short_address(change.address),
                change.message.role,
                f"{gained:+,}" if gained else "0",
                sign * length,
            )
        )
        styles.append(("", "yellow", ROLE_STYLES.get(change.message.role, ""), "", _STYLES[sign]))
    yield from table(invocation, (), rows, LEFT * 3 + RIGHT + LEFT, styles)
    counts = {kind: sum(kind in c.kinds for c in found.changes) for kind in LETTERS}
    said = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    gained = sum(max(c.tokens_after - c.tokens_before, 0) for c in found.changes)
    lost = sum(max(c.tokens_before - c.tokens_after, 0) for c in found.changes)
    what = f" ({', '.join(said)})" if said else ""
    differ = "message differs" if len(found.changes) == 1 else "messages differ"
    tokens = "token" if gained == 1 else "tokens"
    yield f"{len(found.changes):,} {differ}{what}; {gained:,} {tokens} gained, {lost:,} lost"


def change_lines(invocation: Invocation, change: MessageChange, around: int) -> Iterator[str]:
    """Yield the lines about a change."""
    yield _title(invocation, change)
    if EDITED in change.kinds:
        yield from _edited(invocation, change, around)
    for sign, kind, message in (("-", REMOVED, change.before), ("+", ADDED, change.after)):
        if kind in change.kinds and message is not None:
            yield from _whole(invocation, message, sign)


def side_lines(invocation: Invocation, change: MessageChange, around: int) -> Iterator[str]:
    """Yield the lines about a change, before on the left and after on the right."""
    yield _title(invocation, change)
    if not {ADDED, REMOVED, EDITED}.intersection(change.kinds):
        return
    half = max(((terminal_width(invocation) or DEFAULT_WIDTH) - 3) // 2, 1)
    before = _lines_of(change.before, invocation) if change.before else []
    after = _lines_of(change.after, invocation) if change.after else []
    for left, right in history.text_diff.paired_lines(before, after, around):
        if left is None and right is None:
            yield paint(invocation, "…", "dim")
            continue
        sign = " " if left == right else "<" if right is None else ">" if left is None else "|"
        shown = [fit(safe((text or "").expandtabs(4)), half) for text in (left, right)]
        gap = " " * (half - columns_of(shown[0]))
        if sign != " ":
            shown = [paint(invocation, shown[0], "red"), paint(invocation, shown[1], "green")]
        yield f"{shown[0]}{gap} {sign} {shown[1]}".rstrip()


def _title(invocation: Invocation, change: MessageChange) -> str:
    message = change.message
    sign = "+" if ADDED in change.kinds else "-" if REMOVED in change.kinds else "~"
    said = [
        paint(invocation, f"{sign} {short_address(message.address)}", "yellow"),
        paint(invocation, message.role, ROLE_STYLES.get(message.role, "")),
        ", ".join(_what(change)),
    ]
    by = change.after_by or change.before_by
    if by is not None:
        said.append(paint(invocation, f"({one_line(by.operation, 20)} {by.commit.short()})", "dim"))
    return "  ".join(said)


def _what(change: MessageChange) -> Iterator[str]:
    before, after = change.before, change.after
    for kind in change.kinds:
        if kind == PRIORITY and before and after:
            yield f"{before.priority} -> {after.priority}"
        elif kind == LABELS:
            yield " ".join(
                [
                    f"+#{one_line(label, 40)}"
                    for label in sorted(change.labels_after - change.labels_before)
                ]
                + [
                    f"-#{one_line(label, 40)}"
                    for label in sorted(change.labels_before - change.labels_after)
                ]
            )
        elif kind == MOVED and before and after:
            yield f"moved from {number(before.position)} to {number(after.position)}"
        elif kind == GHOSTED and after:
            yield "removed, leaving a placeholder" if after.ghost else "shown again"
        elif kind == COPIED and before:
            yield f"the same as {short_address(before.address)}"
        else:
            yield kind
    gained = change.tokens_after - change.tokens_before
    if gained:
        yield f"{gained:+,} {'token' if abs(gained) == 1 else 'tokens'}"


def _lines_of(message: CompiledMessage, invocation: Invocation) -> list[str]:
    return list(history.diff.lines_of_parts(message.parts))


def _whole(invocation: Invocation, message: CompiledMessage, sign: str) -> Iterator[str]:
    lines = _lines_of(message, invocation)
    most = MOST_LINES if invocation.terminal else len(lines)
    for line in lines[:most]:
        yield paint(invocation, f"    {sign} {safe(line)}", _STYLES[sign])
    if len(lines) > most:
        yield paint(invocation, f"    {sign} … {counted(len(lines) - most, 'more line')}", "dim")


def _edited(invocation: Invocation, change: MessageChange, around: int) -> Iterator[str]:
    """Yield the lines with changed words and their context lines."""
    assert change.before is not None
    assert change.after is not None
    texts = ["\n".join(_lines_of(each, invocation)) for each in (change.before, change.after)]
    lines = _marked(invocation, history.text_diff.word_diff(*texts))
    shown = {
        near
        for at, (_, differs) in enumerate(lines)
        if differs
        for near in range(max(at - around, 0), min(at + around + 1, len(lines)))
    }
    last = -1
    for at in sorted(shown):
        if at > last + 1:
            yield paint(invocation, "    …", "dim")
        yield f"    {lines[at][0]}"
        last = at
    if 0 <= last < len(lines) - 1:
        yield paint(invocation, "    …", "dim")


def _marked(
    invocation: Invocation, pieces: Sequence[history.text_diff.Piece]
) -> list[tuple[str, bool]]:
    """Return (line, whether it changed) pairs, with [-removed-] and {+added+} words."""
    lines = [("", False)]
    for piece in pieces:
        for index, text in enumerate(piece.text.split("\n")):
            if index:
                if piece.sign != "=":
                    lines[-1] = (lines[-1][0], True)
                lines.append(("", False))
            if not text:
                continue
            shown = safe(text)
            if piece.sign == "-":
                shown = paint(invocation, f"[-{shown}-]", "red")
            elif piece.sign == "+":
                shown = paint(invocation, f"{{+{shown}+}}", "green")
            lines[-1] = (lines[-1][0] + shown, lines[-1][1] or piece.sign != "=")
    return lines if lines[-1] != ("", False) else lines[:-1]
