"""Summaries without a model: the sentences of some messages that matter most, quoted word for word.

The requests of the user come first, whole if they fit in a quarter of the room, else their head and tail with the
address. Then decisions and constraints, which are the facts that a report of losses looks for; then what was found
out, and progress. Announcements ("Let me check:") and what programs insert as messages of the user are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from trace_store.base.frozen import value
from trace_store.context import wording

REQUESTS_SHARE = 0.25
"""Maximum share of a summary for the user's requests."""
LONGEST = 400
"""A longer sentence is cut, so that one cannot fill a summary."""
_SMALLEST_LINE = 3
"""Minimum tokens of a line with its role."""
FACTS = 1
"""Highest rank of a sentence that states a decision or a constraint."""
_SMALLEST_REQUEST = 24
"""A request that has to be cut to fewer tokens is left to the choice of sentences."""
_NAMED = re.compile(r"`[^`\n]{1,80}`|\b\w+\.\w{1,5}\b|/\w+|\b\d[\d.,:]*\b|\b[a-z]+_[a-z_]+\b")
_LEAST_WORDS = re.compile(r"[^\W\d_]{2,}\W+[^\W\d_]{2,}")
_VARYING = re.compile(r"\d+")
_TOOLS = ("[calls ", "[result", "<", "{", "```")


@value
class SourceMessage:
    """One message to summarise.

    Attributes:
        role: its role.
        text: its text, calls and results.
        keep: texts of it that the summary must contain.
        address: where the whole message is, or "".
        is_request: whether the user wrote it.
    """

    role: str
    text: str
    keep: tuple[str, ...] = ()
    address: str = ""
    is_request: bool = False


@value
class Passage:
    """A run of messages, and the requirements for its summary.

    Attributes:
        messages: the messages.
        budget: the maximum tokens of the text.
        count: returns the tokens of a text.
        faults: returns the faults of a text, as sentences; empty if it can be used.
        focus: what the user wants the summary to dwell on, or "".
    """

    messages: Sequence[SourceMessage]
    budget: int
    count: Callable[[str], int]
    faults: Callable[[str], list[str]]
    focus: str = ""


def extract(passage: Passage) -> str:
    """Return a passage's most important sentences, in order, within its budget; must-keep texts come first."""
    return _Extraction(passage).run()


class _Extraction:
    """The lines of a summary that is being chosen: (place of the message, place in it, line)."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._left = passage.budget
        self._chosen: list[tuple[int, int, str]] = []
        self._seen: set[str] = set()
        self._focus = focus_words(passage.focus)

    def run(self) -> str:
        self._keep()
        quoted = self._quote_requests(int(self._left * REQUESTS_SHARE))
        ranked = []
        for at, message in enumerate(self._passage.messages):
            if message.role == "tool" or at in quoted or wording.is_inserted(message.text):
                continue
            for place, sentence in enumerate(quotable(message.text)):
                if not wording.is_narration(sentence) or message.role == "user":
                    rank = self._rank(message, sentence, is_first=not place)
                    ranked.append((rank, at, place, sentence))
        for (tier, _), at, place, sentence in sorted(ranked):
            if self._left < _SMALLEST_LINE:
                break
            self._add(at, place, sentence, is_progress=tier > FACTS)
        lines = [(at, line) for at, _, line in sorted(self._chosen)]
        bare = {line for each in self._passage.messages for line in self._kept_lines(each)}
        said = [line for _, line in lines if line not in bare]
        return "\n".join(
            line
            for _, line in lines
            if line not in bare or not any(line.partition(": ")[2] in each for each in said)
        )

    def _kept_lines(self, message: SourceMessage) -> list[str]:
        return [f"{message.role}: {text}" for text in message.keep]

    def _keep(self) -> None:
        for at, message in enumerate(self._passage.messages):
            for place, line in enumerate(self._kept_lines(message)):
                if line not in self._seen:
                    self._seen.add(line)
                    self._chosen.append(
                        (at, place - len(message.keep), line)
                    )  # before its sentences
                    self._left -= self._passage.count(line) + 1

    def _quote_requests(self, room: int) -> set[int]:
        """Quote the user's requests, the last and the first before all others; return the places of those quoted."""
        messages = self._passage.messages
        places = [at for at, each in enumerate(messages) if each.is_request and each.text.strip()]
        quoted: set[int] = set()
        for at in dict.fromkeys((*places[-1:], *places[:1], *reversed(places))):
            message = messages[at]
            text = " ".join(message.text.split())
            line = f"{message.role}: {text}"
            size = self._passage.count(line) + 1
            if size > room and message.address:
                line, size = self._cut(message, room)
            if line and size <= room and line not in self._seen:
                self._seen.add(line)
                self._chosen.append((at, 0, line))
                room -= size
                self._left -= size
                quoted.add(at)
        return quoted

    def _cut(self, message: SourceMessage, room: int) -> tuple[str, int]:
        """Return the head and tail of a request, with its address, and their tokens; "" if there is no room."""
        count, text = self._passage.count, " ".join(message.text.split())
        characters = len(text)
        while room >= _SMALLEST_REQUEST and characters > _SMALLEST_REQUEST:
            characters = characters * 2 // 3
            head, tail = wording.head_and_tail(text, characters)
            line = f"{message.role}: {head} [trace expand {message.address}] {tail}"
            if (size := count(line) + 1) <= room:
                return line, size
        return "", 0

    def _add(self, at: int, place: int, sentence: str, *, is_progress: bool) -> None:
        message = self._passage.messages[at]
        form = sentence.casefold()
        if is_progress and message.role != "user":
            form = _VARYING.sub(
                "#", form
            )  # keep one of "12 of 40 tests pass", "40 of 40 tests pass"
        line = f"{message.role}: {sentence}"
        if form in self._seen:
            return
        size = self._passage.count(line) + 1
        if size <= self._left:
            self._seen.add(form)
            self._chosen.append((at, place, line))
            self._left -= size

    def _rank(self, message: SourceMessage, sentence: str, *, is_first: bool) -> tuple[int, float]:
        """Return a key that sorts the most important sentence first."""
        is_user = message.role == "user"
        if self._focus & focus_words(sentence):
            tier = 0
        elif wording.is_choice(sentence) or (is_user and wording.CONSTRAINT.search(sentence)):
            tier = 1
        elif wording.FINDING.search(sentence):
            tier = 2
        else:
            tier = 3
        score = 3.0 if is_user else 1.0
        score += 0.8 * bool(wording.PROGRESS.search(sentence))
        score += 0.3 * min(3, len(_NAMED.findall(sentence))) + 1.0 * is_first
        return tier, 0.004 * len(sentence) - score


def focus_words(text: str) -> set[str]:
    """Return the words of instructions, or of a sentence, that are compared: those of four letters or more."""
    return set(re.findall(r"\w{4,}", text.casefold()))


def quotable(text: str) -> Iterator[str]:
    """Yield the sentences of a text of two words or more, without calls and results."""
    for part in wording.SENTENCE_END.split(text):
        sentence = " ".join(part.split()).lstrip("#*-> ").strip()
        if _LEAST_WORDS.search(sentence) and not sentence.startswith(_TOOLS):
            yield sentence if len(sentence) <= LONGEST else sentence[: LONGEST - 1] + "…"
