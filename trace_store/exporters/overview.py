"""What every form for reading says of a session: its title, its facts, what people asked.

Rule: plain text that is not yet safe in any form.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from trace_store.exporters.contract import AGENTS, COPIES, REWINDS, ExportSession, Turn, models_of
from trace_store.frozen import value
from trace_store.ident import format_time
from trace_store.objects.address import Address
from trace_store.objects.message import default_kind
from trace_store.objects.parts import ToolCall, ToolResult

TITLE_CHARACTERS = 90
SEALED = "reasoning that only the provider can read"
_WINDOW = 2000

Call = tuple[Address | None, str]
"""A call: the message that holds it, as results name it, and its id."""


@value
class Place:
    """A message among the others.

    Attributes:
        number: counted from 1.
        tokens: its tokens; None of a message that is hidden.
        total: tokens of the context up to and including it.
    """

    number: int
    tokens: int | None
    total: int


def places(session: ExportSession) -> Iterator[tuple[Turn, Place]]:
    """Yield each turn with its number and tokens."""
    counts = [tokens for tokens, _ in session.context.message_tokens()]
    totals = list(accumulate(counts))
    total = 0
    for number, turn in enumerate(session.turns, 1):
        tokens = None
        if not turn.hidden:
            at = turn.message.position
            tokens, total = counts[at], totals[at]
        yield turn, Place(number, tokens, total)


def title_of(session: ExportSession) -> str:
    """Return what a session is called: its title, else the beginning of its first prompt, else its id."""
    title = session.facts().title
    if title:
        return beginning(title, TITLE_CHARACTERS)
    first = next((turn for turn in session.turns if is_prompt(turn)), None)
    return beginning(first.message.text, TITLE_CHARACTERS) if first else session.id


def is_prompt(turn: Turn) -> bool:
    """Tell whether a message is what a person asked, rather than what a program put in their mouth."""
    message = turn.message
    return (
        message.role == "user"
        and message.kind == "dialogue"
        and not (turn.reason or message.ghost)
        and bool(message.text.strip())
    )


def beginning(text: str, width: int) -> str:
    """Return the beginning of a text on one line, at most `width` characters."""
    window = text[:_WINDOW]
    line = " ".join(window.split())
    if len(line) > width or len(window) < len(text):
        return line[: width - 1].rstrip() + "…"
    return line


def marks_of(turn: Turn) -> list[str]:
    """Return what is to be said of a message besides role, time and tokens; labels come with a `#`."""
    message = turn.message
    marks = [turn.hidden] if turn.hidden else []
    marks += ["ghost"] if message.ghost else []
    if turn.reason:
        marks.append(f"{turn.reason} of {counted(turn.replaced, 'message')}")
    marks += [message.priority] if message.priority != "normal" else []
    if not message.ghost and message.kind != default_kind(message.role, message.parts):
        marks.append(message.kind)
    return marks + [f"#{label}" for label in sorted(message.labels)]


def authors_of(session: ExportSession) -> list[str]:
    """Return who made the messages; of an import nobody, where it says no more than role and model do."""
    found = dict.fromkeys(turn.author for turn in session.turns)
    known = f"{session.format}/"
    return [each for each in found if not session.format or not f"{each}/".startswith(known)]


def credited(session: ExportSession) -> frozenset[str]:
    """Return the authors who are named beside their messages: all, unless everything is by one."""
    if len({turn.author for turn in session.turns}) < 2:
        return frozenset()
    return frozenset(authors_of(session))


def reported(turn: Turn) -> str:
    """Return what the provider reported for a message, or ""."""
    usage = turn.usage
    if usage is None:
        return ""
    return f"reported: {_in_and_out(usage.input_total, usage.cache_read, usage.output_total)}"


def facts_of(session: ExportSession) -> list[tuple[str, str]]:
    """Return what there is to say of a session, as (name, value)."""
    facts = session.facts()
    rows = [
        ("session", facts.session or session.id),
        ("thread", session.thread),
        ("agent", f"{session.format} {facts.version}".strip() if session.format else ""),
        ("model", ", ".join(models_of(session.turns))),
        ("folder", facts.cwd),
        ("git branch", facts.branch),
        ("time", _span(session)),
        ("author", ", ".join(authors_of(session))),
        ("messages", _messages(session)),
        ("tokens", _tokens(session)),
        ("reported", _reported(session)),
        ("tools", _tools(session)),
        ("beside it", _below(session)),
        ("branch", session.ref.removeprefix("refs/heads/")),
        ("commit", str(session.commit)),
    ]
    return [(name, value) for name, value in rows if value]


def callers(session: ExportSession) -> dict[Call, tuple[str, Turn]]:
    """Return the tool's name and the turn of each call."""
    return {
        (turn.message.address, part.id): (part.name, turn)
        for turn in session.turns
        for part in turn.message.parts
        if isinstance(part, ToolCall)
    }


def answered(session: ExportSession) -> dict[Call, Turn]:
    """Return the turn with the result of each call that has one."""
    return {
        (part.call, part.call_id): turn
        for turn in session.turns
        for part in turn.message.parts
        if isinstance(part, ToolResult)
    }


def parsed(arguments: str) -> Any:
    """Return the JSON that a text is, if writing it out again says the same.

    Raises:
        ValueError: it is no JSON, names a key twice, or has a number that would be rounded.
    """
    try:
        return json.loads(
            arguments, object_pairs_hook=_object, parse_float=_float, parse_constant=_constant
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def pretty(value: Any) -> str:
    """Return JSON with a line for each value."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def moment(milliseconds: int) -> str:
    """Return the time of a commit for people, in UTC: `2026-11-21 07:10:02`; nothing when it has none."""
    if not milliseconds:
        return ""
    return format_time(milliseconds).partition(".")[0].replace("T", " ")


def _span(session: ExportSession) -> str:
    times = [turn.time for turn in session.turns if turn.time]
    if not times:
        return ""
    first, last = moment(min(times)), moment(max(times))
    if first == last:
        return f"{first} UTC"
    return f"{first} – {last[11:] if last[:10] == first[:10] else last} UTC"


def _messages(session: ExportSession) -> str:
    shown = Counter(turn.message.role for turn in session.turns if not turn.hidden)
    roles = ", ".join(f"{count:,} {role}" for role, count in sorted(shown.items()))
    hidden = sum(1 for turn in session.turns if turn.hidden) or session.hidden_count
    more = f"; {hidden:,} more that the model is not shown" if hidden else ""
    return f"{shown.total():,}{f' ({roles})' if roles else ''}{more}"


def _tokens(session: ExportSession) -> str:
    context = session.context
    return f"{context.token_count:,} ({context.token_source})" if len(context) else ""


def _reported(session: ExportSession) -> str:
    reports = [turn.usage for turn in session.turns if turn.usage]
    if not reports:
        return ""
    read, cached = sum(r.input_total for r in reports), sum(r.cache_read for r in reports)
    written = sum(r.output_total for r in reports)
    return f"{counted(len(reports), 'answer')}: {_in_and_out(read, cached, written)}"


def _in_and_out(read: int, cached: int, written: int) -> str:
    from_cache = f" ({cached:,} from a cache)" if cached else ""
    # A transcript may not tell what was written; nothing was reported then.
    return f"{read:,} tokens in{from_cache}" + (f", {written:,} out" if written else "")


def _tools(session: ExportSession) -> str:
    names = [name for schema in session.tools if (name := tool_name(schema))]
    return ", ".join(names)


def counted(value: int, noun: str) -> str:
    """Return "1 message", "2,000 messages"."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def line_count(content: str) -> int:
    """Return how many lines a text has; a line feed at its end begins no further one."""
    return content.removesuffix("\n").count("\n") + 1 if content else 0


def tool_name(schema: Any) -> str:
    """Return the name of a tool, whichever provider's shape its schema has."""
    inner = schema.get("function", schema) if isinstance(schema, dict) else {}
    name = inner.get("name") if isinstance(inner, dict) else ""
    return name if isinstance(name, str) else ""


def _below(session: ExportSession) -> str:
    kinds = Counter(each.kind for each in session.below)
    nouns = ((AGENTS, "subagent"), (REWINDS, "rewind"), (COPIES, "other version"))
    return ", ".join(counted(kinds[kind], noun) for kind, noun in nouns if kinds[kind])


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _float(text: str) -> float:
    value = float(text)
    if repr(value) != text:
        raise ValueError("a number that would be written otherwise")
    return value


def _constant(text: str) -> float:
    raise ValueError(f"not JSON: {text}")
