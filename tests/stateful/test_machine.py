"""Random operations, branch switches, seals, a second writer and reopening.

After each step the cached context, the cold one and a simple model say the same.
"""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.store.support.histories import move
from trace_store import FixedClock, Message, Store, ToolCall, ToolResult
from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.history import commit
from trace_store.history.draft import Draft
from trace_store.maintenance.seal import seal
from trace_store.objects.address import Address
from trace_store.writer import Writer

TEXT = st.sampled_from(["", "a", "plan", "naïve ☃", "line\nline", "x" * 300, "<|endoftext|>"])
BRANCHES = ["refs/heads/main", "refs/heads/side", "refs/heads/a/b"]
PRIORITIES = ["pinned", "important", "normal", "skip"]


@dataclass
class Entry:
    address: Address
    versions: list[str]
    current: int = 0
    hidden: bool = False
    ghost: bool = False
    priority: str = "normal"
    labels: set[str] = field(default_factory=set)
    call: Address | None = None  # of a result
    name: str = ""  # of the tool call that it holds

    @property
    def visible(self) -> bool:
        return self.ghost if self.hidden else self.priority != "skip"


Model = list[Entry]


def place(model: Model, address: Address) -> int:
    return next(i for i, entry in enumerate(model) if entry.address == address)


def seen(entry: Entry) -> tuple[object, ...]:
    """Return what a verb would have to change to change an entry."""
    said = entry.versions[entry.current]
    return entry.address, said, entry.hidden, entry.ghost, entry.priority, entry.labels


def step_back(entry: Entry) -> None:
    """Take a message back by one wording."""
    said = entry.versions[entry.current]
    earlier = [n for n in range(entry.current) if entry.versions[n] != said]
    entry.current = earlier[-1] if earlier else entry.current


def units(model: Model, targets: list[Address]) -> list[Entry]:
    """Return the units of messages in the order of these; within each the order of the context."""
    names = dict.fromkeys(model[place(model, each)].call or each for each in targets)
    return [e for name in names for e in model if name in (e.address, e.call)]


class Contexts(RuleBasedStateMachine):
    """Each commit's state is kept, so that any of them can be checked out."""

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="trace-machine-")
        self.clock = FixedClock()
        self.first = Store.init(self.folder, clock=self.clock, durability="fast")
        self.second = self._open()
        self.contexts = {id(s): ContextCompiler(s) for s in (self.first, self.second)}
        self.states: dict[bytes, Model] = {}
        self.tools: dict[bytes, list[dict[str, Any]]] = {}
        self.calls = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.first.close()
            self.second.close()
            shutil.rmtree(self.folder)

    def _open(self) -> Store:
        return Store.open(os.path.join(self.folder, ".trace"), durability="fast", clock=self.clock)

    def _tip(self) -> ObjectId | None:
        return self.first.refs.head().oid

    def _model(self) -> Model:
        tip = self._tip()
        return [] if tip is None else self.states[tip]

    def _write(self, draft: Any, change: Any, store: Store | None = None, **more: Any) -> bytes:
        tip = self._tip()
        result = commit.write(draft, **more)
        model = copy.deepcopy([] if tip is None else self.states[tip])
        change(model, result.oid)
        if not result.changed:
            assert tip == result.oid
            assert list(map(seen, model)) == list(map(seen, self.states[tip]))
            return result.oid
        self.states[result.oid] = model
        self.tools[result.oid] = [] if tip is None else self.tools[tip]
        return result.oid

    def _targets(self, data: st.DataObject, least: int = 1) -> list[Address]:
        addresses = [entry.address for entry in self._model()]
        return data.draw(
            st.lists(st.sampled_from(addresses), min_size=least, max_size=4, unique=True)
        )

    @rule(said=st.lists(TEXT, min_size=1, max_size=3), second=st.booleans())
    def append(self, said: list[str], second: bool) -> None:
        store = self.second if second else self.first
        draft = Draft(Writer(store, author="ada"))
        draft.extend([Message("user", text) for text in said])

        def change(model: Model, oid: bytes) -> None:
            model += [Entry(Address.of(oid, i), [text]) for i, text in enumerate(said)]

        self._write(draft, change, store)

    @rule(result=TEXT)
    def append_tool_call(self, result: str) -> None:
        self.calls += 1
        name = f"c{self.calls}"
        draft = Draft(Writer(self.first, author="ada"))
        draft.append("assistant", [ToolCall(name, "look", "{}")], model="m")
        draft.append("tool", [ToolResult(name, result)])

        def change(model: Model, oid: bytes) -> None:
            call = Address.of(oid, 0)
            model += [Entry(call, [""], name=name), Entry(Address.of(oid, 1), [""], call=call)]

        self._write(draft, change)

    @precondition(lambda self: any(entry.name for entry in self._model()))
    @rule(data=st.data(), result=TEXT)
    def append_another_result(self, data: st.DataObject, result: str) -> None:
        """What comes to a unit later is shown as the unit is."""
        call = data.draw(st.sampled_from([each for each in self._model() if each.name]))
        draft = Draft(Writer(self.first, author="ada"))
        draft.append("tool", [ToolResult(call.name, result)])

        def change(model: Model, oid: bytes) -> None:
            of = model[place(model, call.address)]
            added = Entry(Address.of(oid, 0), [""], call=of.address)
            added.hidden, added.ghost, added.priority = of.hidden, of.ghost, of.priority
            model.append(added)

        self._write(draft, change)

    @precondition(lambda self: self._model())
    @rule(data=st.data(), text=TEXT)
    def edit(self, data: st.DataObject, text: str) -> None:
        target = self._targets(data)[0]
        draft = Draft(Writer(self.first, author="ada"))
        draft.edit(target, text, force=True)

        def change(model: Model, oid: bytes) -> None:
            entry = model[place(model, target)]
            entry.versions.append(text)
            entry.current = len(entry.versions) - 1

        self._write(draft, change)

    @precondition(lambda self: self._model())
    @rule(data=st.data(), priority=st.sampled_from(PRIORITIES), label=st.sampled_from("xy"))
    def annotate(self, data: st.DataObject, priority: str, label: str) -> None:
        targets = self._targets(data)
        draft = Draft(Writer(self.first, author="ada"))
        draft.annotate(targets, priority=priority, labels=[label], unlabels=["x"])

        def change(model: Model, oid: bytes) -> None:
            for entry in units(model, targets):
                entry.priority = priority
            for target in targets:
                entry = model[place(model, target)]
                entry.labels = (entry.labels | {label}) - {"x"}

        self._write(draft, change)

    @precondition(lambda self: self._model())
    @rule(data=st.data(), ghost=st.booleans())
    def remove(self, data: st.DataObject, ghost: bool) -> None:
        targets = self._targets(data)
        draft = Draft(Writer(self.first, author="ada"))
        draft.remove(targets, ghost=ghost)

        def change(model: Model, oid: bytes) -> None:
            for entry in units(model, targets):
                entry.hidden, entry.ghost = True, ghost

        self._write(draft, change)

    @precondition(lambda self: self._model())
    @rule(data=st.data(), first=st.booleans())
    def restore(self, data: st.DataObject, first: bool) -> None:
        targets = self._targets(data)
        draft = Draft(Writer(self.first, author="ada"))
        draft.restore(targets, version=0 if first else None)

        def change(model: Model, oid: bytes) -> None:
            named = [model[place(model, target)] for target in targets]
            for entry in named:
                if first:
                    entry.current = 0
                elif not entry.hidden:
                    step_back(entry)
            for entry in units(model, targets):
                entry.hidden, entry.ghost = False, False

        self._write(draft, change)

    @precondition(lambda self: self._model())
    @rule(data=st.data(), said=st.lists(TEXT, max_size=2))
    def replace(self, data: st.DataObject, said: list[str]) -> None:
        targets = self._targets(data)
        draft = Draft(Writer(self.first, author="ada"))
        draft.replace(targets, [Message("user", text) for text in said], reason="compression")

        def change(model: Model, oid: bytes) -> None:
            hidden = units(model, targets)
            at = min(map(model.index, hidden))
            for entry in hidden:
                entry.hidden, entry.ghost = True, False
            model[at:at] = [Entry(Address.of(oid, i), [text]) for i, text in enumerate(said)]

        self._write(draft, change)

    @precondition(lambda self: len(self._model()) > 1)
    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        targets = self._targets(data)
        rest = [e.address for e in self._model() if e.address not in targets]
        after = data.draw(st.sampled_from([None, *rest]))
        draft = Draft(Writer(self.first, author="ada"))
        draft.move(targets, after=after)

        def change(model: Model, oid: bytes) -> None:
            moved = units(model, targets)
            if after in [entry.address for entry in moved]:  # it stays within its unit
                moved = [model[place(model, target)] for target in targets]
            for entry in moved:
                model.remove(entry)
            at = 0 if after is None else place(model, after) + 1
            model[at:at] = moved

        self._write(draft, change)

    @rule(names=st.lists(st.sampled_from(["read", "grep"]), unique=True))
    def set_tools(self, names: list[str]) -> None:
        schemas = [{"name": name, "parameters": {}} for name in names]
        draft = Draft(Writer(self.first, author="ada"))
        draft.set_tools(schemas)
        oid = self._write(draft, lambda m, o: None)
        self.tools[oid] = schemas

    @rule()
    def record_usage(self) -> None:
        draft = Draft(Writer(self.first, author="ada"))
        draft.record_usage({"input_tokens": 3, "output_tokens": 4})
        self._write(draft, lambda m, o: None)

    @rule(data=st.data(), text=TEXT)
    def several_at_once(self, data: st.DataObject, text: str) -> None:
        draft = Draft(Writer(self.first, author="ada"))
        here = draft.append("user", text)
        draft.annotate([here], labels=["new"])
        draft.edit(here, text + "!")

        def change(model: Model, oid: bytes) -> None:
            address = Address.of(oid, 0)
            model.append(Entry(address, [text, text + "!"], current=1, labels={"new"}))

        self._write(draft, change)

    @rule(branch=st.sampled_from(BRANCHES))
    def switch(self, branch: str) -> None:
        tip = self._tip()
        if tip is not None and self.first.refs.read(branch) is None:
            move(self.first, branch, tip)
        if self.first.refs.read(branch) is not None:
            self.first.refs.set_head(branch, author="ada")

    @precondition(lambda self: self.states)
    @rule(data=st.data(), detach=st.booleans())
    def jump(self, data: st.DataObject, detach: bool) -> None:
        oid = ObjectId(data.draw(st.sampled_from(sorted(self.states))))
        ref = self.first.refs.head().ref
        if detach or ref is None:
            self.first.refs.set_head(oid, author="ada")
        else:
            move(self.first, ref, oid)

    @rule(second=st.booleans())
    def seal(self, second: bool) -> None:
        seal(self.second if second else self.first)

    @rule(second=st.booleans())
    def reopen(self, second: bool) -> None:
        old = self.second if second else self.first
        del self.contexts[id(old)]
        old.close()
        new = self._open()
        self.contexts[id(new)] = ContextCompiler(new)
        if second:
            self.second = new
        else:
            self.first = new

    @rule(index=st.sampled_from(["index", "cache", "logs"]))
    def lose_derived_files(self, index: str) -> None:
        shutil.rmtree(os.path.join(self.folder, ".trace", index), ignore_errors=True)

    @invariant()
    def cached_is_cold_is_model(self) -> None:
        if not hasattr(self, "folder"):
            return
        tip = self._tip()
        expected = [] if tip is None else [e for e in self.states[tip] if e.visible]
        for store in (self.first, self.second):
            contexts = self.contexts[id(store)]
            cached = contexts.compile()
            cold = contexts.compile(cold=True)
            assert [m.address for m in cached.messages] == [e.address for e in expected]
            for ours, theirs, entry in zip(cached.messages, cold.messages, expected, strict=True):
                assert ours.address == theirs.address
                assert ours.parts == theirs.parts
                assert ours.priority == theirs.priority
                assert ours.labels == theirs.labels == frozenset(entry.labels)
                assert ours.ghost == theirs.ghost == (entry.hidden and entry.ghost)
                if not ours.ghost and ours.role == "user":
                    assert ours.text == entry.versions[entry.current]
            assert cached.prefix_hash == cold.prefix_hash
            assert cached.prefix_hashes() == cold.prefix_hashes()
            assert cached.token_count == cold.token_count
            assert cached.message_tokens() == cold.message_tokens()
            assert list(cached.tools) == ([] if tip is None else self.tools[tip])

    @precondition(lambda self: self.states)
    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        oid = ObjectId(data.draw(st.sampled_from(sorted(self.states))))
        contexts = self.contexts[id(self.first)]
        expected = [entry.address for entry in self.states[oid] if entry.visible]
        for cold in (False, True):
            context = contexts.compile(oid, cold=cold)
            assert [m.address for m in context.messages] == expected


TestContexts = Contexts.TestCase
TestContexts.settings = settings(
    max_examples=int(os.environ.get("TRACE_TEST_EXAMPLES", "20")),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
