"""Suggestions to replace, shorten or pin messages, with the savings and reasons; no model is asked.

superseded   a file that was read again, or written as a whole, later
stale        a file that has changed on disk since it was read
duplicate    an output whose lines a later one has
similar      an output that a later one almost repeats
failed       the output of a failed call
cold         a long output, or a topic, that no later message uses any more
pin          a user message that many later messages use

The heat of a message is how much later messages use it. Each message has marks: the paths of its tool calls, and the
identifiers, numbers and file names in its texts. A later message that has one of them mentions it. Common marks and old
mentions count less. The weight of a mention is

    log(messages / messages with the mark) / (marks of the message) ** 0.5  *  2 ** -(age of the mention / half-life)

with ages in messages from the end. The heat is that sum plus 2 ** -(own age / half-life), as a share of the hottest
message, from 0 to 1. Pinned messages and instructions have heat 1.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from itertools import chain, islice
from zlib import crc32

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.compression.cuts import note_text, shortened
from trace_store.compression.repeats import DUPLICATE, lines_of, repeats
from trace_store.compression.trim import FAILED, FAILED_TOKENS, KEPT_TURNS
from trace_store.compression.working import REASON, SUMMARY, Output, WorkingContext, working_context
from trace_store.context.activity import (
    READ,
    WRITE,
    action_of,
    may_say_failure,
    output_lines,
    texts_in,
)
from trace_store.context.wording import is_inserted
from trace_store.objects import operations as ops
from trace_store.objects.message import Message
from trace_store.objects.parts import Text, ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trace_store.context.compiled import CompiledMessage, LoadedMessage
    from trace_store.context.compiler import ContextCompiler
    from trace_store.history.draft import Draft
    from trace_store.objects.address import Address
    from trace_store.objects.parts import Part

_HASHES = 64
_BANDS = 16
_PRIME = (1 << 61) - 1
_COMPARED = 20
"""Number of newest texts of a band that each older one is compared with."""
_SEQUENCE_WORDS = 4
_FACTORS = [(2 * n + 1) * 0x9E3779B97F4A7C15 % _PRIME for n in range(1, _HASHES + 1)]
_NEAR_DUPLICATE = 0.8
"""Minimum share of common word sequences of two near duplicates."""
_SAME_TOPIC = 0.2
_OPEN_TOPICS = 30
"""A set may join one of this many topics that were used last."""
STALE = "stale"
SIMILAR = "similar"
COLD = "cold"
PIN = "pin"

SHORTEN = "shorten"
REPLACE = "replace"

_COLD_HEAT = 0.1
_COLD_TOKENS = 300
_KEPT_TOKENS = 80
_SMALLEST_OUTPUT = 400
_SMALLEST_SAVING = 50
_PIN_MENTIONS = 8
_PINS = 3
_TOPIC_NAMES = 4
_CHANGED_SHARE = 0.05

HALF_LIFE = 40
"""Half-life: the number of messages after which a mention counts half."""
_MARK = re.compile(r"[A-Za-z_][\w./-]{5,60}|\b\d{3,}\b|\b[0-9a-f]{7,40}\b")
_TELLING = re.compile(r"[a-z][A-Z]|[\d_/]|\w\.\w")
_MOST_MARKS = 400
_COMMON = 0.2
_MOST_MENTIONS = 100
"""Number of later mentions of one mark that `mentions` counts."""
_ID = re.compile(r"\d+|[0-9a-f]{7,}")
_STRIP = "./-"
_KEYS = re.compile(r"\\?\"[\w-]{1,60}\\?\"\s?:")
"""The names of fields in an output that is JSON; they are no topics."""


def near_duplicates(texts: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Yield (index, index of its last near duplicate, similarity).

    Texts without a near duplicate are omitted. The similarity of two texts is the Jaccard index of their sequences of
    four words. It is estimated by MinHash (A. Broder, 1997) over 64 hashes; only texts that agree in one of 16 bands
    are compared.
    """
    signatures = [_signature(text) for text in texts]
    bands: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    size = _HASHES // _BANDS
    for number, signature in enumerate(signatures):
        for band in range(_BANDS if signature else 0):
            key = band, tuple(signature[band * size : (band + 1) * size])
            bands.setdefault(key, []).append(number)
    candidates: dict[int, set[int]] = {}
    for numbers in bands.values():
        for place, number in enumerate(numbers):
            newest = numbers[max(place + 1, len(numbers) - _COMPARED) :]
            candidates.setdefault(number, set()).update(newest)
    for number in sorted(candidates):
        for later in sorted(candidates[number], reverse=True):
            same = sum(map(int.__eq__, signatures[number], signatures[later])) / _HASHES
            if same >= _NEAR_DUPLICATE:
                yield number, later, same
                break


def _signature(text: str) -> list[int]:
    words = text.split()
    if len(words) < 2 * _SEQUENCE_WORDS:
        return []
    hashes = {
        crc32(" ".join(words[at : at + _SEQUENCE_WORDS]).encode("utf-8", "surrogatepass")) + 1
        for at in range(len(words) - _SEQUENCE_WORDS + 1)
    }
    return [min(value * factor % _PRIME for value in hashes) for factor in _FACTORS]


def topics(names: Iterable[set[str]]) -> list[list[int]]:
    """Group sets of names, such as the paths in each turn, into topics.

    Each set, in order, joins the topic with the largest overlap (the common names, divided by the size of the smaller
    set), or starts a topic if the overlap is too small.

    Returns:
        The indexes of the sets of each topic.
    """
    found: list[list[int]] = []
    open_topics: list[tuple[set[str], list[int]]] = []  # the topic used last is last
    for index, own in enumerate(names):
        best, largest = None, 0.0
        for at, (topic, _) in enumerate(open_topics):
            overlap = len(own & topic) / (min(len(own), len(topic)) or 1)
            if overlap > largest:
                best, largest = at, overlap
        if best is None or largest < _SAME_TOPIC:
            found.append([index])
            open_topics.append((set(own), found[-1]))
            del open_topics[:-_OPEN_TOPICS]
        else:
            used = open_topics.pop(best)
            used[0].update(own)
            used[1].append(index)
            open_topics.append(used)
    return found


@value
class Suggestion:
    """One proposal.

    Attributes:
        action: SHORTEN, REPLACE (by a note) or PIN.
        reason: why, as in the list above.
        addresses: the messages that it is about.
        tokens: the tokens that it saves; 0 for a pin.
        explanation: the reason in words.
        heat: the mean heat of the messages.
        text: the new text of the output, or of the note.
        call_id: of the output that is shortened, or "".
    """

    JSON = "-text -call_id"

    action: str
    reason: str
    addresses: tuple[Address, ...]
    tokens: int
    explanation: str
    heat: float
    text: str = ""
    call_id: str = ""


@value
class Topic:
    """Turns of the user that have names in common.

    Attributes:
        names: the paths and identifiers that most of its messages name, most frequent first.
        turns: the messages of the user that begin its turns.
        tokens: the tokens of its turns.
        heat: their mean heat.
    """

    names: tuple[str, ...]
    turns: tuple[Address, ...]
    tokens: int
    heat: float


@value
class Suggestions:
    """The proposals for a context, largest savings first.

    Attributes:
        tokens: the tokens of the context.
        proposals: the proposals.
        topics: what the turns are about, in the order in which they begin.
        heat: the heat of each message, by position.
        sizes: the tokens of each message, by position.
    """

    JSON = "token_count=tokens -sizes"

    tokens: int
    proposals: tuple[Suggestion, ...]
    topics: tuple[Topic, ...]
    heat: tuple[float, ...]
    sizes: tuple[int, ...]


class _Search:
    """Finds proposals in one context; each output once, for the first matching reason."""

    def __init__(self, working: WorkingContext, root: str) -> None:
        self.working = working
        self.root = root
        self.heat = Heat(working.messages)
        self.sizes = tuple(working.tokens)
        self.turns = turns = working.user_turns()
        self._kept = self.working.kept | self.working.asked
        self.tail = turns[-KEPT_TURNS] if len(turns) >= KEPT_TURNS else len(working.messages)
        self._taken: set[tuple[int, str]] = set()
        self._replaced: set[int] = set()
        self._named: set[int] = set()
        """Positions that a proposal points to; they stay, or the pointer would lead to nothing."""

    def run(self) -> Iterator[Suggestion]:
        working = self.working
        outputs = [each for each in working.outputs if each.at not in self._kept]
        for each in repeats(working, self._may_leave):
            note = each.note(working)
            said = note.strip("[]")
            if each.reason == DUPLICATE:
                said = f"{each.output.action.subject[:60]}: {said}"
            for found in self._shorten(each.output, each.reason, note, said):
                self._named.add(each.holder.at)
                yield found
        long = [each for each in outputs if len(each.text) >= _SMALLEST_OUTPUT]
        for one, other, share in near_duplicates([each.text for each in long]):
            if long[one].at != long[other].at:
                yield from self._similar(long[one], long[other], share)
        for output in outputs:
            yield from self._stale(output)
        old = [each for each in outputs if each.at < self.tail]
        for output in old:
            if output.outcome.failed:
                said = f"failed: {output.outcome.error or 'no output'}"
                yield from self._shorter(output, FAILED, FAILED_TOKENS, said)
        yield from self._cold_topics()
        for output in old:
            is_cold = output.at not in self._named and self._is_cold([output.at])
            if is_cold and working.tokens[output.at] > _COLD_TOKENS:
                said = (
                    f"its output is hardly used any more (heat {self.heat.values[output.at]:.0%})"
                )
                yield from self._shorter(output, COLD, _KEPT_TOKENS, said)
        yield from self._pins()

    def _may_leave(self, output: Output, later: Output) -> bool:
        is_recent = later.action.kind == WRITE and output.at >= self.tail
        return later.at != output.at and output.at not in self._kept and not is_recent

    def _is_cold(self, positions: Sequence[int]) -> bool:
        return all(self.heat.values[at] < _COLD_HEAT for at in positions)

    def _similar(self, output: Output, later: Output, share: float) -> Iterator[Suggestion]:
        own = set(lines_of(output.text))
        other = len(own - set(lines_of(later.text)))
        address = self.working.short_address(later.at)
        said = f"{output.action.subject[:60]} is {min(share, 0.99):.0%} the same as {address}"
        said += f"; {other:,} of its {len(own):,} lines are not there"
        for found in self._shorten(output, SIMILAR, f"[{said}]", said):
            self._named.add(later.at)
            yield found

    def _shorter(self, output: Output, reason: str, tokens: int, said: str) -> Iterator[Suggestion]:
        failures = may_say_failure(output.action, output.outcome)
        address = self.working.short_address(output.at)
        text = shortened(output.text, tokens, address, failures=failures)
        if text:
            yield from self._shorten(output, reason, text, f"{output.action.subject[:60]}: {said}")

    def _shorten(self, output: Output, reason: str, text: str, said: str) -> Iterator[Suggestion]:
        key = output.at, output.call_id
        if key in self._taken or output.at in self._replaced:
            return
        saved = self.working.shorten_output(output, text)
        if saved < _SMALLEST_SAVING:
            return
        self._taken.add(key)
        address = self.working.messages[output.at].address
        warm = self.heat.values[output.at]
        yield Suggestion(SHORTEN, reason, (address,), saved, said, warm, text, output.call_id)

    def _stale(self, output: Output) -> Iterator[Suggestion]:
        action = output.action
        if action.kind != READ or len(action.paths) != 1 or output.outcome.failed:
            return
        share = _changed_share(os.path.join(self.root, action.paths[0]), output.text)
        if share is None or share >= _CHANGED_SHARE:
            said = (
                "is gone"
                if share is None
                else f"{share:.0%} of its lines have changed on disk since"
            )
            text = f"[{action.subject}: {said}]"
            yield from self._shorten(output, STALE, text, f"{action.subject}: {said}")

    def _cold_topics(self) -> Iterator[Suggestion]:
        """Propose to replace the work of old, cold turns by a note, a topic at a time."""
        working = self.working
        spans = [
            [at for at in range(start + 1, end) if at not in self._kept]
            for start, end in zip(self.turns, self.turns[1:], strict=False)
            if end <= self.tail
        ]
        spans = [span for span in spans if len(span) > 1 and self._is_cold(span)]
        marks = [set().union(*(self.heat.marks[at] for at in span)) for span in spans]
        for numbers in topics(marks):
            for span in (spans[number] for number in numbers):
                if working.whole_units(span) == span:
                    yield from self._replace(span, len(numbers))

    def topics(self) -> Iterator[Topic]:
        """Yield what the turns are about; turns that name nothing have no topic."""
        messages, heat = self.working.messages, self.heat
        ends = (*self.turns[1:], len(messages))
        spans = [range(start, end) for start, end in zip(self.turns, ends, strict=True)]
        marks = [set().union(*(heat.marks[at] for at in span)) for span in spans]
        spans = [span for span, own in zip(spans, marks, strict=True) if own]
        for numbers in topics(list(filter(None, marks))):
            places = [at for number in numbers for at in spans[number]]
            names = Counter(mark for at in places for mark in sorted(heat.marks[at]))
            telling = (name for name, _ in names.most_common() if not _ID.fullmatch(name))
            yield Topic(
                tuple(islice(telling, _TOPIC_NAMES)),
                tuple(messages[spans[number][0]].address for number in numbers),
                sum(self.sizes[at] for at in places),
                round(sum(heat.values[at] for at in places) / len(places), 4),
            )

    def _replace(self, span: list[int], turns: int) -> Iterator[Suggestion]:
        working = self.working
        text = note_text(working, span)
        saved = working.replace(span, text)
        if saved < _SMALLEST_SAVING:
            return
        self._replaced.update(span)
        names = chain.from_iterable(sorted(self.heat.marks[at], key=len) for at in span)
        about = ", ".join(dict.fromkeys(name for name in names if not _ID.fullmatch(name)))[:60]
        said = f"nothing later uses this{f' (one of {turns} turns)' if turns > 1 else ''}: {about}"
        warm = round(sum(self.heat.values[at] for at in span) / len(span), 4)
        addresses = tuple(working.messages[at].address for at in span)
        yield Suggestion(REPLACE, COLD, addresses, saved, said, warm, text)

    def _pins(self) -> Iterator[Suggestion]:
        heat, working = self.heat, self.working
        used = [
            at
            for at in self.turns
            if at not in working.kept
            and heat.mentions[at] >= _PIN_MENTIONS
            and not is_inserted(working.messages[at].text)
        ]
        for at in sorted(used, key=lambda each: -heat.mentions[each])[:_PINS]:
            message = working.messages[at]
            said = (
                f"{heat.mentions[at]} later messages use it: {' '.join(message.text.split())[:60]}"
            )
            yield Suggestion(PIN, PIN, (message.address,), 0, said, heat.values[at])


def suggest(contexts: ContextCompiler, *, root: str = ".") -> Suggestions:
    """Return proposals for the context of a branch.

    Args:
        contexts: compiles the contexts of the branch.
        root: the folder that relative paths of files start from.

    Raises:
        UnbornBranchError: the branch has no commit.
        ObjectNotFoundError, CorruptObjectError: content is missing or damaged.
    """
    working = working_context(contexts)
    tokens, sizes = working.total, tuple(working.tokens)
    search = _Search(working, root)
    proposals = sorted(search.run(), key=lambda each: -each.tokens)
    themes = tuple(search.topics())
    return Suggestions(tokens, tuple(proposals), themes, tuple(search.heat.values), sizes)


def draft_into(draft: Draft, chosen: Sequence[Suggestion], working: WorkingContext) -> None:
    """Add the operations of proposals to a draft.

    Raises:
        MessageNotFoundError: the context does not show a message any more.
    """
    outputs = {(working.messages[each.at].address, each.call_id): each for each in working.outputs}
    for each in chosen:
        if each.action == PIN:
            draft.annotate(each.addresses, priority=ops.PINNED)
        elif each.action == REPLACE:
            note = Message("user", each.text, kind=SUMMARY)
            draft.replace(each.addresses, [note], reason=REASON, sources=each.addresses)
        elif output := outputs.get((each.addresses[0], each.call_id)):
            working.shorten_output(output, each.text)
        else:
            short = each.addresses[0].short(8)
            raise errors.MessageNotFoundError(f"the context does not show message {short}")
    working.draft_into(draft)


def _changed_share(path: str, text: str) -> float | None:
    """Return the share of an output's lines that a file does not have; 0 if unknown, None if there is no file."""
    lines = lines_of(text)
    if not lines or not os.path.isabs(path):
        return 0.0
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            now = {line.strip() for line in file}
    except FileNotFoundError:
        return None if os.path.isdir(os.path.dirname(path)) else 0.0
    except OSError:
        return 0.0
    return sum(line not in now for line in lines) / len(lines)


def marks_of(parts: Sequence[Part]) -> set[str]:
    """Return the paths, identifiers and numbers that some parts name."""
    found: set[str] = set()
    for text in _texts(parts):
        for match in _MARK.finditer(text):
            mark = match[0].strip(_STRIP)
            if _TELLING.search(mark):
                found.add(mark)
                found.add(mark.rsplit("/", 1)[-1])
            if len(found) >= _MOST_MARKS:
                return found
    return found


def _texts(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolCall):
            action = action_of(part)
            yield " ".join(action.paths)
            given = list(texts_in(part.arguments))
            yield from given if given != [part.arguments] else [action.text]
        elif isinstance(part, ToolResult):
            said = "\n".join(output_lines(part.text))
            yield _KEYS.sub(" ", said) if said[:1] in ("{", "[") else said


class Heat:
    """The heat of the messages of a context.

    Attributes:
        values: from 0 to 1, by position.
        mentions: how many later messages mention each, by position.
        marks: the marks of each message, without very common ones.
    """

    def __init__(self, messages: Sequence[CompiledMessage | LoadedMessage]) -> None:
        count = len(messages)
        marks = [marks_of(message.parts) for message in messages]
        places: dict[str, list[int]] = {}
        for at, found in enumerate(marks):
            for mark in found:
                places.setdefault(mark, []).append(at)
        most = max(2, int(count * _COMMON))
        weights = {
            mark: math.log(count / len(where))
            for mark, where in places.items()
            if 2 <= len(where) <= most
        }
        decay = [0.5 ** ((count - 1 - at) / HALF_LIFE) for at in range(count)]
        self.marks = [{mark for mark in found if len(places[mark]) <= most} for found in marks]
        self.mentions: list[int] = []
        raw = []
        passed = dict.fromkeys(weights, 0)
        ahead = {mark: sum(decay[each] for each in places[mark]) for mark in weights}
        for at, found in enumerate(marks):
            later: set[int] = set()
            used = 0.0
            for mark in found & weights.keys():
                passed[mark] += 1
                ahead[mark] -= decay[at]
                later.update(places[mark][passed[mark] : passed[mark] + _MOST_MENTIONS])
                used += weights[mark] * max(0.0, ahead[mark])
            self.mentions.append(len(later))
            raw.append(decay[at] + used / math.sqrt(len(found) or 1))
        hottest = max(raw, default=0.0) or 1.0
        self.values = [
            1.0 if _is_fixed(message) else round(value / hottest, 4)
            for message, value in zip(messages, raw, strict=True)
        ]


def _is_fixed(message: CompiledMessage | LoadedMessage) -> bool:
    return message.priority == ops.PINNED or message.role in ("system", "developer")
