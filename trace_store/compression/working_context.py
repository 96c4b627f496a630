"""A compiled context with planned changes, and the tokens of each message."""

from __future__ import annotations

from trace_store.context.activity import Action, Outcome, action_of, outcome_of
from trace_store.frozen import value
from trace_store.objects import operations as ops
from trace_store.objects.message import Message
from trace_store.objects.parts import Text, ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trace_store.context.compiled import CompiledContext, CompiledMessage
    from trace_store.context.fold import Fold
    from trace_store.history.draft import Draft
    from trace_store.objects.address import Address
    from trace_store.objects.parts import Part

SUMMARY = "summary"
"""The kind of messages that replace others."""
REASON = "trim"
"""The reason of the replacements."""
_INSTRUCTION_ROLES = frozenset({"system", "developer"})


@value
class Output:
    """A tool result in a context.

    Attributes:
        at: the position of its message.
        call_id: the id of its call.
        action: what its call does.
        outcome: how it ended.
        text: its text, as it is in the history.
    """

    at: int
    call_id: str
    action: Action
    outcome: Outcome
    text: str


class WorkingContext:
    """A context in which changes can be tried out, to measure what they save.

    Attributes:
        messages: the messages of the compiled context.
        tokens: the tokens of each, with the changes so far; 0 for a message that is replaced.
        total: the tokens of the whole context, with the changes so far.
        parts: the new parts of shortened messages, by position.
        notes: for each replaced run, its positions and the note in its place.
        outputs: the tool results, oldest first.
        kept: positions that are never changed: instructions, pinned and important messages, and the last to-do list.
    """

    def __init__(self, context: CompiledContext, fold: Fold) -> None:
        self._context = context
        self._fold = fold
        self.messages: list[CompiledMessage] = list(context.messages)
        self.tokens = [total for total, _ in context.message_tokens()]
        self.total = context.token_count
        self.parts: dict[int, tuple[Part, ...]] = {}
        self.notes: list[tuple[list[int], Message]] = []
        self.outputs: list[Output] = []
        self._position = {message.address: at for at, message in enumerate(self.messages)}
        plans: list[int] = []
        self._read_calls(plans)
        self.kept = {at for at, each in enumerate(self.messages) if _is_protected(each)}
        self.kept.update(*(self.unit(at) for at in plans[-1:]))

    def _read_calls(self, plans: list[int]) -> None:
        """Find the tool results with their actions, and the calls that set the to-do list."""
        calls: dict[str, Action] = {}
        for at, message in enumerate(self.messages):
            if message.ghost:
                continue
            for part in message.parts:
                if isinstance(part, ToolCall):
                    calls[part.id] = action = action_of(part)
                    plans += [at] if action.kind == "plan" else []
                elif isinstance(part, ToolResult) and part.call_id in calls:
                    text = "\n".join(each.text for each in part.content if isinstance(each, Text))
                    self.outputs.append(
                        Output(at, part.call_id, calls[part.call_id], outcome_of(part), text)
                    )

    def unit(self, at: int) -> list[int]:
        """Return the positions of the messages of a unit that the context shows, in order."""
        members = self._fold.unit(self.messages[at].address)
        return sorted(self._position[each] for each in members if each in self._position)

    def whole_units(self, positions: Iterable[int]) -> list[int]:
        """Return those of some positions whose units are among them completely."""
        inside = set(positions)
        return [at for at in sorted(inside) if inside.issuperset(self.unit(at))]

    def user_turns(self) -> list[int]:
        """Return the positions of the messages with text from the user."""
        return [at for at in range(len(self.messages)) if self.is_user_turn(at)]

    def is_user_turn(self, at: int) -> bool:
        """Return True if a message contains text from the user."""
        message = self.messages[at]
        return (
            message.role == "user"
            and message.kind != SUMMARY
            and any(isinstance(part, Text) and part.text.strip() for part in message.parts)
            and not any(isinstance(part, ToolResult) for part in message.parts)
        )

    def current_parts(self, at: int) -> tuple[Part, ...]:
        """Return the parts of a message, with the changes so far."""
        return self.parts.get(at) or self.messages[at].parts

    def shorten(self, at: int, parts: Sequence[Part]) -> int:
        """Shorten a message if that saves tokens; return the tokens saved."""
        message = self.messages[at]
        saved = self.tokens[at] - self.count(
            Message(message.role, parts, kind=message.kind, name=message.name, model=message.model)
        )
        if saved <= 0:
            return 0
        self.parts[at] = tuple(parts)
        self.tokens[at] -= saved
        self.total -= saved
        return saved

    def shorten_output(self, output: Output, text: str) -> int:
        """Shorten a tool result to a text; return the tokens saved."""
        parts = [
            ToolResult(part.call_id, text, part.is_error, call=part.call)
            if isinstance(part, ToolResult) and part.call_id == output.call_id
            else part
            for part in self.current_parts(output.at)
        ]
        return self.shorten(output.at, parts)

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
        self.total -= saved
        return saved

    def draft_into(self, draft: Draft) -> None:
        """Add the operations of the changes to a draft."""
        for at in sorted(self.parts):
            draft.edit(self.messages[at].address, self.parts[at])
        for positions, note in self.notes:
            targets = [self.messages[at].address for at in positions]
            draft.replace(targets, [note], reason=REASON, sources=targets)

    def count(self, message: Message) -> int:
        """Return the tokens of a message."""
        return self._context.plain([message]).message_tokens()[0][0]

    def short(self, at: int) -> str:
        """Return the short address of a message."""
        address: Address = self.messages[at].address
        return address.short(8)


def _is_protected(message: CompiledMessage) -> bool:
    return (
        message.role in _INSTRUCTION_ROLES
        or message.kind == "instruction"
        or message.priority in (ops.PINNED, ops.IMPORTANT)
        or message.ghost
    )
