"""Folds made of random operations, without a repository: for tests of pure functions over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from trace_store.base.oid import ObjectId, digest
from trace_store.context.calls import Calls, link_operations
from trace_store.context.fold import Fold
from trace_store.merge.inputs import MergePlan
from trace_store.merge.merge3 import three_way
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.message import Message, store_message
from trace_store.objects.parts import Part, Text, ToolCall, ToolResult

number = st.integers(0, 12)
TEXTS = ("a", "b", "c")
appends = st.tuples(
    st.just("append"),
    st.lists(st.sampled_from(["user", "assistant", "call", "system"]), min_size=1, max_size=3),
)
marks = st.one_of(
    st.tuples(st.just("edit"), number, st.sampled_from(TEXTS)),
    st.tuples(st.just("mark"), number, st.sampled_from(["pinned", "important", "normal", "skip"])),
    st.tuples(st.just("label"), number, st.sampled_from(["decision", "x"])),
    st.tuples(st.just("unlabel"), number, st.sampled_from(["decision", "x"])),
    st.tuples(st.just("remove"), number, st.booleans()),
    st.tuples(st.just("restore"), number),
)
places = st.one_of(
    st.tuples(st.just("replace"), number, number),
    st.tuples(st.just("move"), number, st.one_of(st.none(), number)),
)
still = st.lists(st.one_of(appends, marks), max_size=6)
any_changes = st.lists(st.one_of(appends, marks, places), max_size=6)


def put(content: bytes) -> ObjectId:
    return ObjectId(digest(content))


def stored(role: str, *parts: Part) -> dict[str, Any]:
    return store_message(Message(role, list(parts)), put)


class Builder:
    """A growing line of commits, and the positions in its operations."""

    def __init__(self, name: str, fold: Fold | None = None) -> None:
        self.name = name
        self.fold = Fold() if fold is None else fold.copy()
        self._count = 0

    def commit(self, *operations: Operation) -> ObjectId:
        self._count += 1
        oid = put(f"{self.name} {self._count}".encode())
        made = link_operations(operations, Calls(self))
        self.fold.apply(oid, Commit((), "ada", 0, made))
        return oid

    def say(self, role: str, text: str) -> Address:
        return Address.of(self.commit(ops.add([stored(role, Text(text))])), 0)

    def call(self, name: str) -> Address:
        made = self.commit(ops.add([stored("assistant", ToolCall(name, "look", "{}"))]))
        return Address.of(made, 0)

    def result(self, name: str, text: str = "seen") -> Address:
        return Address.of(self.commit(ops.add([stored("tool", ToolResult(name, text))])), 0)

    def take(self, name: str) -> Address | None:
        """Return the newest message with an unanswered call of an id; see `Calls`."""
        answered = {call for entry in self.fold.entries for call in entry.answers}
        return next((each for each in self._called(name) if each not in answered), None)

    def newest(self, name: str) -> Address | None:
        """Return the newest message with a call of an id."""
        return next(self._called(name), None)

    def _called(self, name: str) -> Iterator[Address]:
        for entry in reversed(self.fold.entries):
            for part in entry.message["parts"]:
                if part["type"] == "tool_call" and part["id"] == name:
                    yield entry.address

    def make(self, change: tuple[Any, ...]) -> None:
        """Apply a random change; numbers name messages, also hidden ones."""
        entries = self.fold.entries
        if change[0] == "append":
            messages = []
            for at, role in enumerate(change[1]):
                name = f"{self.name}{self._count}.{at}"
                if role == "call":
                    messages.append(stored("assistant", ToolCall(name, "look", "{}")))
                    messages.append(stored("tool", ToolResult(name, "seen")))
                else:
                    messages.append(stored(role, Text(name)))
            self.commit(ops.add(messages))
            return
        if not entries:
            return
        entry = entries[change[1] % len(entries)]
        target = entry.address
        if change[0] == "edit":
            if all(part["type"] == "text" for part in entry.parts):
                self.commit(ops.edit(target, stored("user", Text(change[2]))["parts"]))
        elif change[0] == "mark":
            self.commit(ops.annotate([target], priority=change[2]))
        elif change[0] == "label":
            self.commit(ops.annotate([target], labels=[change[2]]))
        elif change[0] == "unlabel":
            self.commit(ops.annotate([target], unlabels=[change[2]]))
        elif change[0] == "remove":
            self.commit(ops.remove([target], ghost=change[2]))
        elif change[0] == "restore":
            self.commit(ops.restore([target]))
        elif change[0] == "replace":
            first, last = sorted(n % len(entries) for n in change[1:3])
            targets = [each.address for each in entries[first : last + 1]]
            self.commit(ops.replace(targets, [stored("user", Text("summary"))]))
        else:
            after = None if change[2] is None else self._end_of_unit(change[2] % len(entries))
            if after not in self.fold.unit(target):
                self.commit(ops.move([target], after=after))

    def _end_of_unit(self, at: int) -> Address:
        """Return where `trace move` places a message: after the whole unit of its neighbour."""
        unit = {*self.fold.unit(self.fold.entries[at].address)}
        return [each.address for each in self.fold.entries if each.address in unit][-1]


def state(fold: Fold) -> dict[Address, tuple[Any, ...]]:
    """Return the state of each message except its position."""
    return {
        e.address: (e.parts, e.hidden, e.ghost, e.priority, e.labels, e.keep) for e in fold.entries
    }


def seen(fold: Fold) -> list[tuple[Any, ...]]:
    """Return the visible context."""
    return [(e.address, e.parts, e.priority, e.is_ghost) for e in fold.visible()]


def planned(base: Fold | None, ours: Builder, theirs: Builder, **options: Any) -> MergePlan:
    """Return the operations that merge theirs into ours."""
    return three_way(base or Fold(), ours.fold, theirs.fold, **options)
