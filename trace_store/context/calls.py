"""Which call a tool result belongs to: decided once, when the result is written, and stored with it.

A result belongs to the newest message before it that has a call of its id without a result; to the newest that has one
at all where each is answered; and to a message behind it in the same commit where none stands before.

Rule: from then on the stored address counts, whatever happens to the messages. Providers use ids again.
"""

from __future__ import annotations

from itertools import islice

from trace_store.objects import operations as ops
from trace_store.objects.address import HERE, RESULT, Address, read_address
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.message import Message
from trace_store.objects.parts import ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeAlias

    from trace_store.context.entries import Parts
    from trace_store.context.fold import ReadCommit
    from trace_store.objects.parts import Part

    Find: TypeAlias = Callable[[str], Address | None]
    """Gives the message that holds the call which a result of this id answers, in the history before."""

CALL = "tool_call"


class Calls:
    """The calls of some messages that are being written one after the other, and which of them wait for results."""

    __slots__ = ("_find", "_here", "_known", "_open")

    def __init__(self, find: Find) -> None:
        """Begin; `find` is asked about the history before, for ids that no message here has called."""
        self._find = find
        self._open: dict[str, list[Address]] = {}
        self._known: dict[str, Address | None] = {}
        self._here: set[str] = set()

    def link(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages of the next commit with their results linked; those that the commit adds, from the first.

        Afterwards `written` has to be told the id of the commit.
        """
        later = _first_calls(messages)
        made = []
        for number, message in enumerate(messages):
            made.append(self._linked(message, number, later))
        return made

    def written(self, oid: bytes) -> None:
        """Note the id of the commit that holds the messages linked last."""
        for name in self._here:
            waiting = self._open.get(name, [])
            waiting[:] = [each if each.birth else Address.of(oid, each.number) for each in waiting]
            known = self._known[name]
            if known is not None and not known.birth:
                self._known[name] = Address.of(oid, known.number)
        self._here.clear()

    def call(self, name: str, address: Address) -> None:
        """Note that a message calls a tool under an id."""
        self._open.setdefault(name, []).append(address)
        self._known[name] = address
        if not address.birth:
            self._here.add(name)

    def answer(self, name: str) -> Address | None:
        """Return the message whose call a result of this id answers, and note that it is answered."""
        waiting = self._open.get(name)
        if waiting:
            return waiting.pop()
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _linked(self, message: Message, number: int, later: dict[str, int]) -> Message:
        parts: list[Part] | None = None
        for at, part in enumerate(message.parts):
            if isinstance(part, ToolResult) and part.call is None:
                call = self.answer(part.call_id)
                if call is None and later.get(part.call_id, -1) > number:
                    call = Address(HERE, later[part.call_id])
                if call is not None:
                    parts = parts or list(message.parts)
                    parts[at] = ToolResult(part.call_id, part.content, part.is_error, call=call)
            elif isinstance(part, ToolCall):
                self.call(part.id, Address(HERE, number))
        if parts is None:
            return message
        return Message(
            message.role,
            parts,
            kind=message.kind,
            name=message.name,
            model=message.model,
            id=message.id,
        )


def link_operations(operations: Sequence[Operation], find: Find) -> list[Operation]:
    """Return the operations of a commit that is being made, with the results of its new messages linked.

    What an edit says is left as it is: see `link_wording`.
    """
    calls, number, made = Calls(find), 0, []
    later = _calls_of(operations)
    for operation in operations:
        if operation.name in ops.ADDS_MESSAGES:
            messages = [
                stored if ops.BORN in stored else _linked_stored(calls, stored, number + n, later)
                for n, stored in enumerate(operation.fields["messages"])
            ]
            number += len(messages)
            operation = Operation(operation.name, {**operation.fields, "messages": messages})
        made.append(operation)
    return made


def link_wording(parts: Parts, before: Sequence[Parts], find: Find) -> list[dict[str, Any]]:
    """Return another wording of a message with its results linked: as in the wordings before, else as `find` says."""
    known = {
        part["id"]: part["call"]
        for said in before
        for part in said
        if part["type"] == RESULT and "call" in part
    }
    made = []
    for part in parts:
        if part["type"] == RESULT and "call" not in part:
            call = known.get(part["id"]) or find(part["id"])
            part = part if call is None else {**part, "call": list(call)}
        made.append(dict(part))
    return made


def find_in_history(tip: bytes | None, read_commit: ReadCommit) -> Find:
    """Return what looks for calls in the history of a commit, newest first, as far back as it has to."""
    walk = _halves_before(tip, read_commit)
    calls: list[tuple[str, Address]] = []
    answered: set[tuple[str, Address]] = set()

    def find(name: str) -> Address | None:
        answered_one = None
        for found, address in calls:
            if found == name and (name, address) not in answered:
                return address
            answered_one = answered_one or (address if found == name else None)
        for is_call, found, address in walk:
            if not is_call:
                answered.add((found, address))
                continue
            calls.append((found, address))
            if found == name:
                if (name, address) not in answered:
                    return address
                answered_one = answered_one or address
        return answered_one

    return find


def _halves_before(
    tip: bytes | None, read_commit: ReadCommit
) -> Iterator[tuple[bool, str, Address]]:
    """Yield (whether it is a call, id, message with the call) of calls and linked results, newest first."""
    while tip is not None:
        commit = read_commit(tip)
        for address, parts in reversed(list(_wordings(commit, tip))):
            for part in reversed(parts):
                if part["type"] == CALL:
                    yield True, part["id"], address
                elif part["type"] == RESULT and "call" in part:
                    yield False, part["id"], read_address(part["call"], tip)
        tip = commit.parents[0] if commit.parents else None


def _wordings(commit: Commit, oid: bytes) -> Iterator[tuple[Address, Parts]]:
    """Yield what a commit lets messages say, new ones and such as it edits."""
    added = ops.added_messages(commit, oid)
    for operation in commit.operations:
        if operation.name == ops.EDIT:
            yield ops.targets_of(operation, oid)[0], operation.fields["parts"]
        for address, stored in islice(added, ops.message_count(operation)):
            yield address, stored["parts"]


def _calls_of(operations: Sequence[Operation]) -> dict[str, int]:
    """Return the number of the first new message with a call of each id."""
    found: dict[str, int] = {}
    added = (each for operation in operations for each in operation.fields.get("messages", ()))
    for number, stored in enumerate(added):
        for part in stored["parts"]:
            if part["type"] == CALL and ops.BORN not in stored:
                found.setdefault(part["id"], number)
    return found


def _linked_stored(
    calls: Calls, stored: ops.Stored, number: int, later: dict[str, int]
) -> ops.Stored:
    parts = list(stored["parts"])
    for at, part in enumerate(parts):
        if part["type"] == RESULT and "call" not in part:
            call = calls.answer(part["id"])
            if call is None and later.get(part["id"], -1) > number:
                call = Address(HERE, later[part["id"]])
            if call is not None:
                parts[at] = {**part, "call": list(call)}
        elif part["type"] == CALL:
            calls.call(part["id"], Address(HERE, number))
    return {**stored, "parts": parts}


def _first_calls(messages: Sequence[Message]) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                found.setdefault(part.id, number)
    return found
