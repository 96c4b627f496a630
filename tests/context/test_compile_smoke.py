"""Compile, the short way: append, edit, hide, look back."""

from __future__ import annotations

from pathlib import Path

import pytest

from trace_store import Message, Store
from trace_store.context.compiling import ContextCompiler
from trace_store.history import writing


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store.memory() if request.param == "memory" else Store.init(str(tmp_path))


def texts(contexts: ContextCompiler, revision: str = "HEAD", *, cold: bool = False) -> list[str]:
    return [message.text for message in contexts.compile(revision, cold=cold).messages]


def test_appends_are_compiled_in_order(store: Store) -> None:
    contexts = ContextCompiler(store)
    for i in range(5):
        writing.commit(store, [Message("user", f"m{i}")], author="ada")
        assert texts(contexts) == texts(contexts, cold=True) == [f"m{j}" for j in range(i + 1)]
    assert contexts.verify().matches
    assert texts(contexts, "HEAD~2") == ["m0", "m1", "m2"]


def test_an_edit_changes_what_is_compiled_and_keeps_the_address(store: Store) -> None:
    contexts = ContextCompiler(store)
    first = writing.commit(store, [Message("user", "old"), Message("user", "x")], author="ada")
    before = contexts.compile()
    draft = writing.new_draft(store)
    draft.edit(first.addresses[0], "new")
    writing.write(store, draft, author="ada")
    after = contexts.compile()
    assert [m.text for m in after.messages] == ["new", "x"]
    assert [m.text for m in before.messages] == ["old", "x"], "a context is a value"
    assert after.messages[0].address == before.messages[0].address
    assert before.prefix_hash != after.prefix_hash
    assert before.token_count == contexts.compile("HEAD~1").token_count
    assert contexts.verify().matches
