"""Loss report of a summary: facts of its sources that it does not mention.

The facts are decisions, constraints, commands, paths and numbers. The rules compare words, not meaning, so a rephrased
decision counts as lost.
"""

from __future__ import annotations

import re

from trace_store import errors
from trace_store import revision as revisions
from trace_store.compression.selection import SUMMARISES, origin_of, originals
from trace_store.compression.summaries import CONSTRAINT, DECISION, one_command, sentences
from trace_store.context.activity import activity_of
from trace_store.context.snapshots import fold_of
from trace_store.frozen import value
from trace_store.merge.llm_assist.request import said_by
from trace_store.objects.message import Message, load_message
from trace_store.objects.parts import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.context.fold import Fold
    from trace_store.objects.address import Address
    from trace_store.store.handle import Store

DECISIONS, CONSTRAINTS, COMMANDS = "decision", "constraint", "command"
PATHS, NUMBERS = "path", "number"
MENTIONED_SHARE = 0.6
"""A sentence counts as mentioned if this share of its longer words is in the summary."""
_WORD = re.compile(r"\w{4,}")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,._:/-]*\d(?:\s?(?:%|[kMG]?B|ms|s|tokens))?(?![\w])")
_PATH = re.compile(r"(?<![\w/.:])(?:[\w.~-]*/)+[\w.-]+\.\w{1,6}\b")
_ENDS = ".,;:!?"


@value
class Lost:
    """A fact from a source that the summary does not mention.

    Attributes:
        kind: `decision`, `constraint`, `command`, `path` or `number`.
        text: the fact itself.
        source: the first message with it.
    """

    kind: str
    text: str
    source: Address


@value
class SummaryReport:
    """The losses of one summary.

    Attributes:
        summary: the address of the summary.
        sources: the number of messages that it replaced.
        checked: the number of facts in its sources, by kind.
        lost: facts that the summary does not mention, in the order of the sources.
    """

    summary: Address
    sources: int
    checked: dict[str, int]
    lost: tuple[Lost, ...]


def report(store: Store, target: str = "") -> list[SummaryReport]:
    """Return the losses of the summaries in a context.

    Args:
        store: the store.
        target: the address of one summary; "" is every summary that the context shows.

    Raises:
        MessageNotFoundError, RevisionNotFoundError: the context does not hold the message.
        InvalidInputError: the message is not a summary whose sources are hidden.
    """
    tip = revisions.resolve_commit(store, "HEAD")
    state = fold_of(store, tip)
    if target:
        address = revisions.resolve_address(store, target)
        if not _is_summary(store, state, address):
            raise errors.InvalidInputError(f"message {address} is not a summary of hidden messages")
        return [_report_on(store, state, address)]
    found = [each.address for each in state.visible() if _is_summary(store, state, each.address)]
    return [_report_on(store, state, each) for each in found]


def _is_summary(store: Store, state: Fold, address: Address) -> bool:
    origin = origin_of(store, state, address)
    return origin is not None and origin.operation.fields.get("reason") in SUMMARISES


def _report_on(store: Store, state: Fold, address: Address) -> SummaryReport:
    read = store.objects.read
    sources = state.in_order(originals(store, state, address))
    entries = [state.entry(each) for each in sources]
    messages = [load_message({**each.message, "parts": each.parts}, read) for each in entries]
    summary = said_by(state.entry(address), read).casefold()
    words = set(_WORD.findall(summary))
    checked: dict[str, int] = {}
    lost: list[Lost] = []
    seen: set[tuple[str, str]] = set()
    for source, message in zip(sources, messages, strict=True):
        for kind, text in _said(message):
            key = kind, text.casefold()
            if key in seen:
                continue
            seen.add(key)
            checked[kind] = checked.get(kind, 0) + 1
            if not _is_mentioned(kind, key[1], summary, words):
                lost.append(Lost(kind, text, source))
    return SummaryReport(address, len(sources), checked, tuple(lost))


def _said(message: Message) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) of a message's facts; tool output has none."""
    done = activity_of([message])
    for step in done.commands:
        yield COMMANDS, one_command(step)
    for each in done.files:
        yield PATHS, each.path
    if message.role not in ("user", "assistant"):
        return
    text = "\n".join(part.text for part in message.parts if isinstance(part, Text))
    for sentence in sentences(text):
        if CONSTRAINT.search(sentence) and message.role == "user":
            yield CONSTRAINTS, sentence
        elif DECISION.search(sentence):
            yield DECISIONS, sentence
    for path in _PATH.findall(text):
        yield PATHS, path.rstrip(_ENDS)
    for number in _NUMBER.findall(text):
        yield NUMBERS, number.rstrip(_ENDS)


def _is_mentioned(kind: str, text: str, summary: str, words: set[str]) -> bool:
    if kind in (DECISIONS, CONSTRAINTS):
        wanted = set(_WORD.findall(text))
        return text in summary or len(wanted & words) >= MENTIONED_SHARE * max(1, len(wanted))
    if kind == PATHS:
        return (
            text in summary
            or re.search(rf"\b{re.escape(text.rsplit('/', 1)[-1])}\b", summary) is not None
        )
    if kind == NUMBERS:
        return re.search(rf"(?<![\w.]){re.escape(text)}(?!\w)", summary) is not None
    return text.rstrip("…") in summary
