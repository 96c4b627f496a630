"""A context in which changes can be tried out, to measure what they save before anything is written."""

from __future__ import annotations

from trace_store.base.frozen import value
from trace_store.context.activity import (
    AGENT,
    ASK,
    OTHER,
    PLAN,
    Action,
    Outcome,
    action_of,
    outcome_of,
    texts_in,
)
from trace_store.context.compiled import as_counted, count_of, sizes_of, sums_of, tokens_of
from trace_store.context.wording import excerpt, is_report
from trace_store.objects import operations as ops
from trace_store.objects.message import Message
from trace_store.objects.parts import Text, ToolCall, ToolResult
from trace_store.providers.media import is_compaction
from trace_store.store.revision import resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trace_store.base.oid import ObjectId
    from trace_store.context.compile_index import Sums
    from trace_store.context.compiled import CompiledContext, LoadedMessage
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.fold import Fold
    from trace_store.history.draft import Draft
    from trace_store.objects.address import Address
    from trace_store.objects.parts import Part

SUMMARY = "summary"
"""The kind of messages that replace others."""
REASON = "trim"
"""The reason of replace operations."""
TOOL_IO = "tool_io"
"""The kind of messages of the user that are the output of a tool, as some formats file it."""
UNKNOWN = Action(OTHER, (), "")
REPORT = Action(AGENT, (), "")
"""What other agents write to this one, in formats that file it as a message of the user."""
_SUBJECT_CHARACTERS = 60
INSTRUCTION_ROLES = frozenset({"system", "developer"})


def working_context(
    contexts: ContextCompiler, compiled: CompiledContext | None = None
) -> WorkingContext:
    """Return a working copy of a context, by default that of HEAD's tip.

    Raises:
        UnbornBranchError: the branch has no commit.
    """
    context = contexts.compile() if compiled is None else compiled
    tip = context.commit or resolve_commit(contexts.store, "HEAD")
    return WorkingContext(tip, context, contexts.fold(tip))


@value
class Output:
    """The output of a tool in a context.

    Attributes:
        at: the position of its message.
        call_id: the id of its call, or "" for one that a format files as a message of the user.
        action: what its call does.
        outcome: how it ended.
        text: its text, as it is in the history.
        media: the number of its images and other parts that are no text.
        place: the position of its result among the parts of the message; ids of calls may occur twice.
    """

    at: int
    call_id: str
    action: Action
    outcome: Outcome
    text: str
    media: int = 0
    place: int = 0


class WorkingContext:
    """A context in which changes can be tried out, to measure what they save.

    Attributes:
        tip: the commit of the context.
        fold: the fold there.
        messages: the messages of the compiled context.
        tokens: the tokens of each, with the changes so far; 0 for a message that is replaced.
        parts: the new parts of shortened messages, by position.
        notes: for each replaced run, its positions and the note in its place.
        messages_before: how much of the context's tokens the messages are, without the changes.
        outputs: the tool results, oldest first; also those that a format files as messages of the user.
        written: the texts of the files that calls wrote as a whole, oldest first, each at the position of its call.
        kept: positions that are never changed: instructions, pinned and important messages, placeholders of removed
            ones, and the unit with the last to-do list.
        asked: positions of questions to the user and of the answers, of which only reasoning and prose may change.
    """

    def __init__(self, tip: ObjectId, context: CompiledContext, fold: Fold) -> None:
        self._context = context
        self.tip = tip
        self.fold = fold
        self.messages: list[LoadedMessage] = context.load()
        self.tokens = [as_counted(context, total) for total, _ in context.message_tokens()]
        self._sizes = sizes_of(context)
        self._sums = sums_of(context)
        self.messages_before = context.message_part
        self.parts: dict[int, tuple[Part, ...]] = {}
        self.notes: list[tuple[list[int], Message]] = []
        self.outputs: list[Output] = []
        self.written: list[Output] = []
        self._position = {message.address: at for at, message in enumerate(self.messages)}
        todo_calls = self._read_calls()
        self.kept = {at for at, each in enumerate(self.messages) if _is_protected(each)}
        self.kept.update(*(self.unit(at) for at in todo_calls[-1:]))
        answers = (each.at for each in self.outputs if each.action.kind == ASK)
        self.asked = {at for answer in answers for at in self.unit(answer)}

    @property
    def total(self) -> int:
        """The tokens of the whole context, with the changes so far."""
        return count_of(self._context, self._sums)

    def _read_calls(self) -> list[int]:
        """Set `outputs` and `written`, and return the positions of the calls that set the to-do list."""
        todo_calls: list[int] = []
        calls: dict[str, tuple[int, Action]] = {}
        for at, message in enumerate(self.messages):
            if message.ghost:
                continue
            if message.role == "user" and message.kind == TOOL_IO:
                texts = [part.text for part in message.parts if isinstance(part, Text)]
                self._add_output(at, "", UNKNOWN, ToolResult("", "\n".join(texts)))
            elif is_report(message):
                self._add_output(at, "", REPORT, ToolResult("", message.text))
            for place, part in enumerate(message.parts):
                if isinstance(part, ToolCall):
                    action = action_of(part)
                    calls[part.id] = at, action
                    todo_calls += [at] if action.kind == PLAN else []
                elif isinstance(part, ToolResult) and part.call_id in calls:
                    called_at, action = calls[part.call_id]
                    outcome = self._add_output(at, part.call_id, action, part, place)
                    if action.content and not outcome.failed:
                        self.written.append(
                            Output(called_at, part.call_id, action, outcome, action.content)
                        )
        return todo_calls

    def _add_output(
        self, at: int, call_id: str, action: Action, result: ToolResult, place: int = 0
    ) -> Outcome:
        text = result.text
        outcome = outcome_of(result, action)
        media = sum(not isinstance(each, Text) for each in result.content)
        self.outputs.append(Output(at, call_id, action, outcome, text, media, place))
        return outcome

    def other_texts(self) -> Iterator[str]:
        """Yield the texts of the context that are no outputs: of all messages, and in the arguments of calls."""
        for message in self.messages:
            for part in message.parts:
                if isinstance(part, Text):
                    yield part.text
                elif isinstance(part, ToolCall):
                    yield from texts_in(part.arguments)

    def unit(self, at: int) -> list[int]:
        """Return the positions of the visible messages in the unit of the message at `at`, sorted."""
        members = self.fold.unit(self.messages[at].address)
        return sorted(self._position[each] for each in members if each in self._position)

    def whole_units(self, positions: Iterable[int]) -> list[int]:
        """Return the positions whose whole unit is among the given positions, sorted."""
        inside = set(positions)
        return [at for at in sorted(inside) if inside.issuperset(self.unit(at))]

    def user_turns(self) -> list[int]:
        """Return the positions of the messages that the user wrote."""
        return [at for at in range(len(self.messages)) if self.is_user_turn(at)]

    def is_user_turn(self, at: int) -> bool:
        """Return True if the user wrote a message that has text."""
        parts = self.messages[at].parts
        return self.is_users(at) and any(isinstance(p, Text) and p.text.strip() for p in parts)

    def is_users(self, at: int) -> bool:
        """Return True if the user wrote a message, or sent pictures: it is no summary, output of a tool, or report."""
        message = self.messages[at]
        return (
            message.role == "user"
            and message.kind not in (SUMMARY, TOOL_IO)
            and not any(isinstance(part, ToolResult) for part in message.parts)
            and not is_report(message)
        )

    def among_results(self, output: Output) -> str:
        """Return which result of its message an output is, as " (result 2 of 3)"; "" for the only one."""
        parts = self.messages[output.at].parts
        places = [place for place, part in enumerate(parts) if isinstance(part, ToolResult)]
        if len(places) < 2 or output.place not in places:
            return ""
        subject = excerpt(output.action.subject, _SUBJECT_CHARACTERS)
        return f" (result {places.index(output.place) + 1} of {len(places)}, {subject})"

    def current_parts(self, at: int) -> tuple[Part, ...]:
        """Return the parts of a message, with the changes so far."""
        return self.parts.get(at) or self.messages[at].parts

    def shorten(self, at: int, parts: Sequence[Part], *, anyway: bool = False) -> int:
        """Shorten a message if that saves tokens, or `anyway`; return the tokens saved."""
        message = self.messages[at]
        other = Message(
            message.role, parts, kind=message.kind, name=message.name, model=message.model
        )
        saved = self.tokens[at] - self.count(other)
        if saved <= 0 and not anyway:
            return 0
        self.parts[at] = tuple(parts)
        self.tokens[at] -= saved
        self._exchange([at], self._size(other))
        return saved

    def _exchange(self, positions: Sequence[int], size: Sums) -> None:
        """Count messages at these positions as one of this size."""
        for at in positions:
            self._sums = _added(self._sums, self._sizes[at], -1)
            self._sizes[at] = 0, 0, 0
        self._sizes[positions[0]] = size
        self._sums = _added(self._sums, size)

    def shorten_output(self, output: Output, text: str, *, anyway: bool = False) -> int:
        """Shorten a tool result to a text, without its images; otherwise as `shorten`."""
        if output.media:
            images = f"{output.media} image{'' if output.media == 1 else 's'}"
            text += f"\n[{images} removed: trace expand {self.short_address(output.at)}]"
        parts = self.current_parts(output.at)
        if not output.call_id:
            others = [part for part in parts if not isinstance(part, Text)]
            return self.shorten(output.at, [Text(text), *others], anyway=anyway)
        made = [
            ToolResult(part.call_id, text, part.is_error, call=part.call)
            if isinstance(part, ToolResult) and place == output.place
            else part
            for place, part in enumerate(parts)
        ]
        return self.shorten(output.at, made, anyway=anyway)

    def replace(self, positions: Sequence[int], text: str) -> int:
        """Replace adjacent messages by a note if that saves tokens; return the savings."""
        note = Message("user", text, kind=SUMMARY)
        saved = sum(self.tokens[at] for at in positions) - self.count(note)
        if saved <= 0:
            return 0
        self.notes.append((list(positions), note))
        for at in positions:
            self.tokens[at] = 0
            self.parts.pop(at, None)
        self._exchange(positions, self._size(note))
        return saved

    def draft_into(self, draft: Draft) -> None:
        """Add the operations of the changes to a draft."""
        for at in sorted(self.parts):
            draft.edit(self.messages[at].address, self.parts[at])
        for positions, note in self.notes:
            targets = [self.messages[at].address for at in positions]
            draft.replace(targets, [note], reason=REASON, sources=targets)

    def changed_messages(self) -> list[Message]:
        """Return the messages with the changes applied."""
        found: list[Message] = list(self.messages)
        for at, parts in self.parts.items():
            one = self.messages[at]
            found[at] = Message(one.role, parts, kind=one.kind, name=one.name, model=one.model)
        gone: set[int] = set()
        for positions, note in self.notes:
            found[positions[0]] = note
            gone.update(positions[1:])
        return [each for at, each in enumerate(found) if at not in gone]

    def count(self, message: Message) -> int:
        """Return the tokens of a message."""
        return tokens_of(self._context, message)

    def _size(self, message: Message) -> Sums:
        return sizes_of(self._context.plain([message]))[0]

    def short_address(self, at: int) -> str:
        """Return the short address of a message."""
        address: Address = self.messages[at].address
        return address.short(8)


def _added(one: Sums, other: Sums, times: int = 1) -> Sums:
    total, text, media = (a + times * b for a, b in zip(one, other, strict=True))
    return total, text, media


def _is_protected(message: LoadedMessage) -> bool:
    return (
        message.role in INSTRUCTION_ROLES
        or message.kind == "instruction"
        or message.priority in (ops.PINNED, ops.IMPORTANT)
        or message.ghost
        or any(map(is_compaction, message.parts))
    )
