"""Session overview shared by the HTML and Markdown exports: title, facts, prompts.

Invariant: all text is plain; the exports escape it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from trace_store.base.frozen import value
from trace_store.base.ident import format_time
from trace_store.context.compiled import tokens_before
from trace_store.context.wording import excerpt
from trace_store.exporters.contract import (
    AGENTS,
    COPIES,
    REWINDS,
    ExportSession,
    SessionTurn,
    models_of,
    plural,
)
from trace_store.objects.address import Address
from trace_store.objects.message import default_kind
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.providers.wire import refuse_constant

TITLE_CHARACTERS = 90
ENCRYPTED_REASONING = "reasoning that only the provider can read"

Call = tuple[Address | None, str]
"""A tool call: address of the message that holds it, and call id."""


@value
class MessageNumbers:
    """Numbers shown beside a message.

    Attributes:
        number: position, from 1.
        tokens: its tokens; None if hidden.
        total: tokens of the context up to and including it.
    """

    number: int
    tokens: int | None
    total: int


def number_turns(session: ExportSession) -> Iterator[tuple[SessionTurn, MessageNumbers]]:
    """Yield each turn with its number and tokens."""
    places = [turn.message.position for turn in session.turns if not turn.hidden]
    first, last = min(places, default=0), max(places, default=-1)
    counts = [tokens for tokens, _ in session.context.message_tokens(first, last + 1)]
    total = tokens_before(session.context, first)
    totals = list(accumulate(counts, initial=total))[1:]
    for number, turn in enumerate(session.turns, session.start + 1):
        tokens = None
        if not turn.hidden:
            at = turn.message.position - first
            tokens, total = counts[at], totals[at]
        yield turn, MessageNumbers(number, tokens, total)


def title_of(session: ExportSession) -> str:
    """Return the session's title, else the start of its first prompt, else its id."""
    title = session.facts().title
    if title:
        return excerpt(title, TITLE_CHARACTERS)
    first = next((turn for turn in session.turns if is_prompt(turn)), None)
    return excerpt(first.message.text, TITLE_CHARACTERS) if first else session.id


def is_prompt(turn: SessionTurn) -> bool:
    """Return True if a person wrote the message, not a program on their behalf."""
    message = turn.message
    return (
        message.role == "user"
        and message.kind == "dialogue"
        and not (turn.reason or message.ghost)
        and bool(message.text.strip())
    )


def message_marks(turn: SessionTurn) -> list[str]:
    """Return notes on a message besides role, time and tokens; labels start with `#`."""
    message = turn.message
    marks = [turn.hidden] if turn.hidden else []
    marks += ["ghost"] if message.ghost else []
    if turn.reason:
        marks.append(f"{turn.reason} of {count_noun(turn.replaced, 'message')}")
    marks += [message.priority] if message.priority != "normal" else []
    if not message.ghost and message.kind != default_kind(message.role, message.parts):
        marks.append(message.kind)
    return marks + [f"#{label}" for label in sorted(message.labels)]


def authors_of(session: ExportSession) -> list[str]:
    """Return the authors of a session.

    The authors that an import generates, such as `codex/user`, are left out: they only repeat role and model.
    """
    authors = dict.fromkeys(turn.author for turn in session.turns)
    importer = f"{session.format}/"
    return [each for each in authors if not session.format or not f"{each}/".startswith(importer)]


def credited_authors(session: ExportSession) -> frozenset[str]:
    """Return the authors to show beside messages: none if everything has one author."""
    if len({turn.author for turn in session.turns}) < 2:
        return frozenset()
    return frozenset(authors_of(session))


def usage_note(turn: SessionTurn) -> str:
    """Return the provider's usage report of a message, or ""."""
    usage = turn.usage
    if usage is None:
        return ""
    return f"reported: {_in_and_out(usage.input_total, usage.cache_read, usage.output_total)}"


def session_facts(session: ExportSession) -> list[tuple[str, str]]:
    """Return the facts about a session as (name, value)."""
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
        ("related", _related_branches(session)),
        ("branch", session.ref.removeprefix("refs/heads/")),
        ("commit", str(session.commit)),
    ]
    return [(name, value) for name, value in rows if value]


def tool_calls(session: ExportSession) -> dict[Call, tuple[str, SessionTurn]]:
    """Return tool name and turn of each call."""
    return {
        (turn.message.address, part.id): (part.name, turn)
        for turn in session.turns
        for part in turn.message.parts
        if isinstance(part, ToolCall)
    }


def result_turns(session: ExportSession) -> dict[Call, SessionTurn]:
    """Return the turn with the result of each tool call."""
    return {
        (part.call, part.call_id): turn
        for turn in session.turns
        for part in turn.message.parts
        if isinstance(part, ToolResult)
    }


def parse_exact_json(arguments: str) -> Any:
    """Parse JSON that survives a round trip.

    Raises:
        ValueError: it is not JSON, repeats a key, or has a number that would be rounded.
    """
    try:
        return json.loads(
            arguments, object_pairs_hook=_object, parse_float=_float, parse_constant=refuse_constant
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def pretty(value: Any) -> str:
    """Return JSON with one value a line."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def format_moment(milliseconds: int) -> str:
    """Return a commit time for people, in UTC: `2026-11-21 07:10:02`; "" for 0."""
    if not milliseconds:
        return ""
    return format_time(milliseconds).partition(".")[0].replace("T", " ")


def _span(session: ExportSession) -> str:
    times = [turn.time for turn in session.turns if turn.time]
    if not times:
        return ""
    first, last = format_moment(min(times)), format_moment(max(times))
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
    return f"{count_noun(len(reports), 'answer')}: {_in_and_out(read, cached, written)}"


def _in_and_out(read: int, cached: int, written: int) -> str:
    from_cache = f" ({cached:,} from a cache)" if cached else ""
    # 0 means that the transcript does not report output tokens.
    return f"{read:,} tokens in{from_cache}" + (f", {written:,} out" if written else "")


def _tools(session: ExportSession) -> str:
    names = [name for schema in session.tools if (name := tool_name(schema))]
    return ", ".join(names)


def count_noun(value: int, noun: str) -> str:
    """Return "1 message", "2,000 messages"."""
    return f"{value:,} {noun if value == 1 else plural(noun)}"


def line_count(content: str) -> int:
    """Return the number of lines; a final line feed does not start a new one."""
    return content.removesuffix("\n").count("\n") + 1 if content else 0


def tool_name(schema: Any) -> str:
    """Return the name of a tool from any provider's schema."""
    inner = schema.get("function", schema) if isinstance(schema, dict) else {}
    name = inner.get("name") if isinstance(inner, dict) else ""
    return name if isinstance(name, str) else ""


def _related_branches(session: ExportSession) -> str:
    kinds = Counter(each.kind for each in session.below)
    nouns = ((AGENTS, "subagent"), (REWINDS, "rewind"), (COPIES, "other version"))
    return ", ".join(count_noun(kinds[kind], noun) for kind, noun in nouns if kinds[kind])


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("duplicate key")
    return result


def _float(text: str) -> float:
    value = float(text)
    if repr(value) != text:
        raise ValueError("number does not survive a round trip")
    return value
