"""What a summary no longer says: the facts of its sources, compared one by one.

A fact counts as kept if one sentence of the summary has its subject, its polarity, its numbers and its names. "Never
delete" is not "delete", "alpha" is not "beta", `app.py` is not `app.pyc`. Rules compare words, not meaning, so a
decision in other words counts as lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from trace_store.base.frozen import value
from trace_store.compression.extract import quotable
from trace_store.compression.selection import Origins
from trace_store.context import wording
from trace_store.context.activity import RUN, action_of, activity_of, output_lines, says_failure
from trace_store.merge.llm_assist.request import said_by
from trace_store.objects.address import Address
from trace_store.objects.message import Message, load_message
from trace_store.objects.parts import Text, ToolCall, ToolResult
from trace_store.store.store import Store

DECISIONS, CONSTRAINTS, COMMANDS, OUTPUTS = "decision", "constraint", "command", "output"
PATHS, NUMBERS = "path", "number"
SENTENCES = (DECISIONS, CONSTRAINTS, OUTPUTS)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,._:/-]*\d(?:\s?(?:%|[kMG]?B|ms|s|tokens))?(?![\w])")
_PATH = re.compile(r"(?<![\w/.:])(?:[\w.~-]*/)+[\w.-]+\.\w{1,6}\b")
_RESULT = re.compile(
    r"\b\d[\d,.]*\s+(?:passed|failed|errors?|tests?|warnings?)\b|\b(?:total|version|port|listening)\b\W*\d",
    re.I,
)
_OUTPUT_LINES = 3
"""The number of telling lines of an output that are facts."""
_OUTPUT_CHARACTERS = 200
_ENDS = ".,;:!?"
_WORD = re.compile(r"\w[\w./'-]*\w|\w")
_NAME = re.compile(r"\d|[_./]|[a-z][A-Z]")
_GENERIC_WORDS = """
a an and are as at be been but by can did do does for from had has have i if in into is it its just may of on or our out
please shall should so than that the their them then there these they this to up us was we were what when which will
with would you your must always only decision decided because since also now all any each
"""
_GENERIC = frozenset(_GENERIC_WORDS.split())
_NEGATING_WORDS = """
not no never without cannot don't doesn't didn't won't can't mustn't shouldn't isn't aren't avoid forbidden neither nor
"""
_NEGATIONS = frozenset(_NEGATING_WORDS.split())
_AGAINST = re.compile(r"\b(?:instead of|rather than|over)\s+([\w./-]*\w)", re.IGNORECASE)


@value
class Lost:
    """A fact from a source that the summary does not mention.

    Attributes:
        kind: `decision`, `constraint`, `output`, `command`, `path` or `number`.
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


def report_on(store: Store, origins: Origins, address: Address) -> SummaryReport:
    """Return the losses of a summary in a context, given the origins of its messages."""
    read, state = store.objects.read, origins.state
    sources = state.in_order(origins.originals(address))
    entries = [state.entry(each) for each in sources]
    messages = [load_message({**each.message, "parts": each.parts}, read) for each in entries]
    told = Told(said_by(state.entry(address), read))
    checked: dict[str, int] = {}
    lost: list[Lost] = []
    seen: set[tuple[str, str]] = set()
    outputs = _outputs(messages)
    for at, (source, message) in enumerate(zip(sources, messages, strict=True)):
        told_by_tools = [(OUTPUTS, line) for line in outputs.get(at, ())]
        for kind, text in (*facts_in(message), *told_by_tools):
            key = kind, text.casefold()
            if key in seen:
                continue
            seen.add(key)
            checked[kind] = checked.get(kind, 0) + 1
            if not told.keeps(kind, text):
                lost.append(Lost(kind, text, source))
    return SummaryReport(address, len(sources), checked, tuple(lost))


def facts_in(message: Message) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) of the facts in a message, without those of outputs."""
    done = activity_of([message])
    for step in done.commands:
        yield COMMANDS, one_line_of(step.action.text)
    for each in done.files:
        yield PATHS, each.path
    if message.role not in ("user", "assistant"):
        return
    text = "\n".join(part.text for part in message.parts if isinstance(part, Text))
    for sentence in quotable(text):
        if wording.CONSTRAINT.search(sentence) and message.role == "user":
            yield CONSTRAINTS, sentence
        elif wording.is_choice(sentence):
            yield DECISIONS, sentence
    for path in _PATH.findall(text):
        yield PATHS, path.rstrip(_ENDS)
    for number in _NUMBER.findall(text):
        yield NUMBERS, number.rstrip(_ENDS)


def _outputs(messages: Sequence[Message]) -> dict[int, list[str]]:
    """Return the telling lines of the last output of each command, by the place of the message."""
    calls: dict[str, str] = {}
    last: dict[str, tuple[int, list[str]]] = {}
    for at, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall) and (action := action_of(part)).kind == RUN:
                calls[part.id] = action.text
            elif isinstance(part, ToolResult) and part.call_id in calls:
                last[calls[part.call_id]] = at, _telling_lines(output_lines(part.text))
    found: dict[int, list[str]] = {}
    for at, lines in last.values():
        found.setdefault(at, []).extend(lines)
    return found


def _telling_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines of an output that say how it ended or what failed."""
    short = (line for line in lines if len(line) <= _OUTPUT_CHARACTERS)
    found = [line for line in short if _RESULT.search(line) or says_failure(line)]
    return found[-_OUTPUT_LINES:]


def one_line_of(text: str) -> str:
    """Return the first line of a command, at most 160 characters of it."""
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= 160 else line[:159] + "…"


class Told:
    """What a summary says, to compare facts with."""

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        parts = [each for line in text.splitlines() for each in wording.SENTENCE_END.split(line)]
        # A fact may be told in two sentences.
        pairs = [f"{one} {other}" for one, other in pairwise(parts)]
        self._sentences = [_Sentence(each) for each in (*parts, *pairs) if each.strip()]

    def keeps(self, kind: str, text: str) -> bool:
        """Return True if the summary says a fact."""
        if kind in SENTENCES:
            fact = _Sentence(text)
            return any(fact.is_told_by(each) for each in self._sentences)
        text = text.casefold()
        if kind == NUMBERS:
            whole = rf"(?<![\w.])(?<!\d[,:]){re.escape(text)}(?!\w|[.,:]\d)"
            return re.search(whole, self._text) is not None
        if kind == PATHS:
            name = text.rstrip("/").rsplit("/", 1)[-1]
            return any(
                re.search(rf"(?<![\w.-]){re.escape(each)}(?![\w-]|\.\w)", self._text)
                for each in (text, name)
            )
        return text.rstrip("…") in self._text


class _Sentence:
    """The words of a sentence that carry its meaning, and which of them are denied."""

    def __init__(self, text: str) -> None:
        written = _WORD.findall(text)
        words = [each.casefold() for each in written]
        self.words = [_stem(each) for each in words if each not in _GENERIC | _NEGATIONS]
        self.known = set(self.words)
        self.names = {_stem(each.casefold()) for each in written if _NAME.search(each)}
        self.denied = {_stem(each.casefold()) for each in _AGAINST.findall(text)}
        for at, word in enumerate(words):
            if word in _NEGATIONS:
                behind = (each for each in words[at + 1 :] if each not in _GENERIC)
                self.denied.update(_stem(each) for each in islice(behind, 1))

    def is_told_by(self, other: _Sentence) -> bool:
        """Return True if another sentence has the subject, polarity, numbers and names of this one."""
        missing = [word for word in self.words if word not in other.known]
        if self.names - other.known or len(missing) * 4 > len(self.words):
            return False
        if self.denied & other.known - other.denied or other.denied & self.known - self.denied:
            return False
        return not (self.denied - other.known) and not any(
            self._is_exchanged(word, other) for word in missing
        )

    def _is_exchanged(self, word: str, other: _Sentence) -> bool:
        """Return True if another sentence has a different word in the place of a missing one."""
        at = self.words.index(word)
        before = self.words[at - 1] if at else ""
        after = self.words[at + 1] if at + 1 < len(self.words) else ""
        for place, each in enumerate(other.words):
            if each in self.known:
                continue
            left = other.words[place - 1] if place else ""
            right = other.words[place + 1] if place + 1 < len(other.words) else ""
            if (before and left == before) or (after and right == after):
                return True
        return False


def _stem(word: str) -> str:
    """Return a word without the usual English endings, so that "deletes" is "delete"."""
    if _NAME.search(word) or len(word) < 5:
        return word
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
