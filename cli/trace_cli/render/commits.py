"""Commits as log lines, as descriptions and as JSON.

Rule: text of commits is escaped here.
"""

from __future__ import annotations

from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import NO_TIME, fit, moment, number, paint
from trace_store.base.ident import format_time, known_time
from trace_store.objects.operations import META, SETTINGS, facts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_cli.runtime import Invocation
    from trace_store.history.log import LogEntry

SUMMARY_WIDTH = 300
MINUTE_MS = 60_000
NAME_WIDTH = 36
"""Columns of a ref's name in a one-line log on a terminal, to leave room."""
ID_WIDTH = 8
"""Characters of a session id in such a name."""


def _decoration(names: list[str], width: int = 0) -> str:
    """Return refs as ` (HEAD -> main, tags/v1)`, or ""; `width` columns each (0: any)."""
    if not names:
        return ""
    short = [safe(name.removeprefix("refs/").removeprefix("heads/")) for name in names]
    short = [fit(_short_name(name), width) for name in short] if width else short
    if names[0] == "HEAD" and len(names) > 1 and names[1].startswith("refs/heads/"):
        short[:2] = [f"HEAD -> {short[1]}"]
    return f" ({', '.join(short)})"


def _short_name(name: str) -> str:
    """Return a session's branch as `…/89c670d1…`, with the start of its id."""
    if not name.startswith("sessions/"):
        return name
    last = name.rpartition("/")[2]
    return f"…/{last}" if len(last) <= ID_WIDTH + 4 else f"…/{last[:ID_WIDTH]}…"


def log_row(
    entry: LogEntry,
    minutes: Minutes,
    names: list[str] | None,
    cut: bool,
) -> tuple[str, ...]:
    """Return the cells of a commit's line; `cut` shortens ref names for a terminal."""
    text = one_line(entry.summary(SUMMARY_WIDTH), SUMMARY_WIDTH)
    if names:
        text = f"{_decoration(names, NAME_WIDTH if cut else 0).lstrip()} {text}"
    growth = entry.growth
    counts = () if growth is None else (f"{growth.added:+,}", number(growth.total))
    time = minutes[entry.time // MINUTE_MS] if entry.time else NO_TIME
    time = time or format_time(entry.time)[:16]
    return entry.oid.short(), time, f"+{entry.message_count}", *counts, text


class Minutes(dict[int, str]):
    """A cache of formatted minutes since the epoch; "" if out of range."""

    __slots__ = ()

    def __missing__(self, minute: int) -> str:
        text = moment(format_time(minute * MINUTE_MS))[:16]
        text = self[minute] = "" if text.startswith("@") else text
        return text


def commit_lines(
    invocation: Invocation, entry: LogEntry, names: dict[bytes, list[str]]
) -> list[str]:
    """Return the lines that describe a commit without its messages."""
    commit, growth = entry.commit, entry.growth
    decoration = _decoration(names.get(entry.oid, []))
    lines = [paint(invocation, f"commit {entry.oid}", "yellow") + decoration]
    if len(commit.parents) > 1:
        lines.append("Merge:    " + " ".join(parent.short() for parent in commit.parents))
    lines.append(f"Author:   {one_line(commit.author, 200)}")
    lines.append(f"Date:     {known_time(commit.time) or NO_TIME}")
    if growth is not None:
        lines.append(f"Tokens:   {growth.added:+,}, in all {growth.total:,} ({growth.source})")
    for key, title in ((META, "Meta:"), (SETTINGS, "Set:")):
        facts = facts_of(commit, key)
        if facts:
            text = ", ".join(f"{name}={value}" for name, value in facts.items())
            lines.append(f"{title:<10}{one_line(text, SUMMARY_WIDTH)}")
    lines.append("")
    if commit.message:
        lines += [f"    {line}" for line in safe(commit.message).split("\n")] + [""]
    if commit.operations:
        operations = ", ".join(_operation(each.name, each.fields) for each in commit.operations)
        lines.append(f"    [{operations}]")
    if not commit.message:
        lines.append(f"    {one_line(entry.summary(), SUMMARY_WIDTH)}")
    lines.append("")
    return lines


def _operation(name: str, fields: dict[str, Any]) -> str:
    """Return an operation's name and its number of messages."""
    counts = [len(fields[key]) for key in ("targets", "messages", "schemas") if key in fields]
    return f"{one_line(name, 40)} {' -> '.join(map(str, counts))}".strip()
