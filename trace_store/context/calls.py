"""Links from tool results to their calls, set once when a result is written and stored with it.

A result belongs to the last message of the context with an unanswered call of its id, a visible one if there is any; if
all are answered, to the last with such a call; and if there is none, to a later message of the same commit. From then
on only the stored address counts, because providers reuse ids.
"""

from __future__ import annotations

from trace_store.objects import operations as ops
from trace_store.objects.address import HERE, RESULT, Address, resolve_calls
from trace_store.objects.commit import Operation
from trace_store.objects.message import Message
from trace_store.objects.parts import ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from trace_store.context.fold import Fold, Parts, ReadCommit
    from trace_store.objects.commit import Commit
    from trace_store.objects.parts import Part

    class Earlier(Protocol):
        """The calls of earlier messages."""

        def take(self, name: str) -> Address | None:
            """Return the last message with an unanswered call of an id, and count the call as answered."""
            ...

        def newest(self, name: str) -> Address | None:
            """Return the last message with a call of an id, after `take` has found none."""
            ...


CALL = "tool_call"


class Calls:
    """The calls of consecutively written messages, and which of them are unanswered."""

    __slots__ = ("_earlier", "_here", "_known", "_open", "_pending")

    def __init__(self, earlier: Earlier, pending: Mapping[str, Address] | None = None) -> None:
        """Start after earlier messages; `pending` has those of their unanswered calls that `earlier` leaves out."""
        self._earlier = earlier
        self._pending = dict(pending or ())
        self._open: dict[str, list[Address]] = {}
        self._known: dict[str, Address] = {}
        self._here: set[str] = set()

    def link(self, messages: Sequence[Message]) -> list[Message]:
        """Return all messages that the next commit adds, with their results linked.

        Afterwards call `written` with the id of the commit.
        """
        given: list[Sequence[Part]] = []
        for message in messages:
            given.append(message.parts)
        made: list[Message] = []
        for message, parts in zip(messages, self.link_parts(given), strict=True):
            if parts is not message.parts:
                message = Message(
                    message.role,
                    parts,
                    kind=message.kind,
                    name=message.name,
                    model=message.model,
                    id=message.id,
                )
            made.append(message)
        return made

    def link_parts(self, messages: Sequence[Sequence[Part]]) -> list[Sequence[Part]]:
        """Return the parts of these messages as `link` does; the very parts of a message without linked results."""
        later = _first_calls(messages)
        return [self._link(parts, n, later) for n, parts in enumerate(messages)]

    def written(self, oid: bytes) -> None:
        """Set the id of the commit that contains the messages linked last."""
        for name in self._here:
            waiting = self._open.get(name, [])
            waiting[:] = [each if each.birth else Address.of(oid, each.number) for each in waiting]
            known = self._known[name]
            if not known.birth:
                self._known[name] = Address.of(oid, known.number)
        self._here.clear()

    def call(self, name: str, address: Address) -> None:
        """Add a call of a message."""
        self._open.setdefault(name, []).append(address)
        self._known[name] = address
        if not address.birth:
            self._here.add(name)

    def answer(self, name: str) -> Address | None:
        """Return the message with the call that a result of this id answers, and mark it as answered."""
        waiting = self._open.get(name)
        if waiting:
            return waiting.pop()
        return (
            self._pending.pop(name, None)
            or self._earlier.take(name)
            or self._known.get(name)
            or self._earlier.newest(name)
        )

    def _link(self, parts: Sequence[Part], number: int, later: dict[str, int]) -> Sequence[Part]:
        linked: list[Part] | None = None
        for at, part in enumerate(parts):
            if isinstance(part, ToolResult) and part.call is None:
                call = self.answer(part.call_id)
                if call is None and later.get(part.call_id, -1) > number:
                    call = Address(HERE, later[part.call_id])
                if call is not None:
                    linked = linked or list(parts)
                    linked[at] = ToolResult(part.call_id, part.content, part.is_error, call=call)
            elif isinstance(part, ToolCall):
                self.call(part.id, Address(HERE, number))
        return parts if linked is None else tuple(linked)


def link_operations(operations: Sequence[Operation], calls: Calls) -> list[Operation]:
    """Return the operations of a new commit with the results of its new messages linked.

    Edits are left unchanged: see `link_version`.
    """
    number, made = 0, []
    later = _first_new_calls(operations)
    for operation in operations:
        if operation.name in ops.ADDS_MESSAGES:
            messages = [
                stored if ops.BORN in stored else _link_stored(calls, stored, number + n, later)
                for n, stored in enumerate(operation.fields["messages"])
            ]
            number += len(messages)
            operation = Operation(operation.name, {**operation.fields, "messages": messages})
        made.append(operation)
    return made


def link_version(
    parts: Parts, before: Sequence[Parts], find: Callable[[str], Address | None]
) -> list[dict[str, Any]]:
    """Return the parts of an edit with results linked as in earlier versions, or else by `find`."""
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


class HistoryCalls:
    """The calls in the context of a commit.

    As long as commits only append, the context is read from its end, commit by commit. The rest comes from a fold.
    """

    __slots__ = (
        *("_answered", "_calls", "_fold_of", "_pending", "_read_commit", "_taken", "_tip"),
        "_walk",
    )

    def __init__(
        self,
        tip: bytes | None,
        read_commit: ReadCommit,
        fold_of: Callable[[bytes], Fold] | None = None,
        pending: Mapping[str, Address] | None = None,
    ) -> None:
        """Search from a commit on, and leave out unanswered calls that are known as `pending`.

        Without `fold_of` only commits are read, in their order. An import does so, since what it writes may depend on
        the file alone, and not on what was done to the session meanwhile.
        """
        self._tip, self._read_commit, self._fold_of = tip, read_commit, fold_of
        self._walk: Iterator[tuple[Address, str, bool]] | None = None
        self._calls: dict[str, list[tuple[Address, bool]]] = {}
        self._answered: set[tuple[str, Address]] = set()
        self._pending = pending or {}
        self._taken: dict[str, list[Address | None]] = {}

    def take(self, name: str) -> Address | None:
        """Return the last message with an unanswered call of an id, and count the call as answered.

        A visible one takes precedence: a result of a hidden call is hidden with it.
        """
        chosen = None
        for address, is_visible in self._unanswered(name):
            chosen = address if is_visible else chosen or address
            if is_visible:
                break
        if chosen is not None:
            self._taken[name].append(chosen)
        return chosen

    def newest(self, name: str) -> Address | None:
        """Return the last message with a call of an id, after `take` has found none."""
        return next((address for address, _ in self._calls.get(name, ())), None)

    def _unanswered(self, name: str) -> Iterator[tuple[Address, bool]]:
        taken = self._taken.setdefault(name, [self._pending.get(name)])
        for address, is_visible in self._calls.get(name, ()):
            if address not in taken and (name, address) not in self._answered:
                yield address, is_visible
        if self._walk is None:
            self._walk = self._calls_from_end()
        for address, called, is_visible in self._walk:
            self._calls.setdefault(called, []).append((address, is_visible))
            if called == name and address not in taken and (name, address) not in self._answered:
                yield address, is_visible

    def _calls_from_end(self) -> Iterator[tuple[Address, str, bool]]:
        """Yield (message, id, whether it is visible) of calls, the last first, and note results as answers."""
        oid = self._tip
        edited: dict[Address, list[str]] = {}
        while oid is not None:
            commit = self._read_commit(oid)
            if self._fold_of is not None and not ops.only_appends(commit):
                for entry in reversed(self._fold_of(oid).entries):
                    for version in entry.versions:
                        self._note_results(version.parts)
                    is_visible = entry.visible and not entry.is_ghost
                    yield from ((entry.address, id, is_visible) for id in _call_ids(entry.parts))
                return
            for target, parts in _edited_parts(commit, oid):
                self._note_results(parts)
                edited.setdefault(target, []).extend(_call_ids(parts))
            for address, stored in reversed(list(ops.added_messages(commit, oid))):
                self._note_results(resolve_calls(stored["parts"], oid))
                ids = dict.fromkeys([*edited.pop(address, ()), *_call_ids(stored["parts"])])
                yield from ((address, id, True) for id in ids)
            oid = commit.parents[0] if commit.parents else None

    def _note_results(self, parts: Parts) -> None:
        for part in parts:
            if part["type"] == RESULT and "call" in part:
                self._answered.add((part["id"], Address(*part["call"])))


def _edited_parts(commit: Commit, oid: bytes) -> Iterator[tuple[Address, Parts]]:
    """Yield (message, parts) of the edits in a commit, the last first."""
    for operation in reversed(commit.operations):
        if operation.name == ops.EDIT:
            (target,) = ops.targets_of(operation, oid)
            yield target, resolve_calls(operation.fields["parts"], oid)


def _call_ids(parts: Parts) -> list[str]:
    return [part["id"] for part in reversed(parts) if part["type"] == CALL]


def _first_new_calls(operations: Sequence[Operation]) -> dict[str, int]:
    """Return the number of the first new message with a call of each id."""
    found: dict[str, int] = {}
    added = (each for operation in operations for each in operation.fields.get("messages", ()))
    for number, stored in enumerate(added):
        for part in stored["parts"]:
            if part["type"] == CALL and ops.BORN not in stored:
                found.setdefault(part["id"], number)
    return found


def _link_stored(
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


def _first_calls(messages: Sequence[Sequence[Part]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, parts in enumerate(messages):
        for part in parts:
            if isinstance(part, ToolCall):
                found.setdefault(part.id, number)
    return found
