"""Expansion of summaries, and reports of what they leave out."""

from __future__ import annotations

import pytest

from tests.compression.test_compress import (
    WORDS,
    Script,
    compiled,
    range_of,
    seen,
    store,
    talk,
    verbs,
    written,
)
from trace_store import errors
from trace_store.history.commit import commit, write
from trace_store.history.draft import Draft
from trace_store.history.undo import undo
from trace_store.objects.message import Message
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.writer import Writer

__all__ = ["store"]


def test_a_summary_becomes_what_it_stands_for(store: Store) -> None:
    talk(store)
    before = compiled(store)
    done = verbs(store).compress(to=900)
    compressed = compiled(store).prefix_hash
    found = verbs(store).expand(written(done).hex)
    assert found.what == "compressed"
    assert compiled(store).prefix_hash == before.prefix_hash
    undo(Writer(store, author="A"))
    assert compiled(store).prefix_hash == compressed


def test_summaries_are_expanded_level_by_level(store: Store) -> None:
    addresses = talk(store)
    draft = Draft(Writer(store, author="A"))
    draft.remove([addresses[2]], ghost=True)
    write(draft)
    states = [compiled(store).prefix_hash]
    summaries = []
    for target in (1200, 700):
        done = verbs(store).compress(to=target, force=True)
        summaries.append(written(done))
        states.append(compiled(store).prefix_hash)
    for each, state in zip(reversed(summaries), reversed(states[:-1]), strict=True):
        verbs(store).expand(each.hex)
        assert compiled(store).prefix_hash == state


def test_one_source_is_shown_beside_its_summary(store: Store) -> None:
    addresses = talk(store)
    done = verbs(store).compress(to=900)
    verbs(store).expand(addresses[3].hex)
    assert [each.address for each in compiled(store).messages][:2] == [written(done), addresses[3]]


def test_removed_ghosted_and_edited_messages(store: Store) -> None:
    addresses = talk(store, 2)
    before = compiled(store).prefix_hash
    draft = Draft(Writer(store, author="A"))
    draft.remove([addresses[0]])
    draft.remove([addresses[1]], ghost=True)
    draft.edit(addresses[2], "Short.")
    write(draft)
    found = [verbs(store).expand(each.hex).what for each in addresses[:3]]
    assert found == ["removed", "removed", "edited"]
    assert compiled(store).prefix_hash == before
    tip = store.refs.head().oid
    again = verbs(store).expand(addresses[2].hex)
    assert (again.what, again.result.changed, again.result.oid) == ("full", False, tip)


def test_for_one_compile_nothing_is_written(store: Store) -> None:
    talk(store)
    before = [each.text for each in compiled(store).messages]
    done = verbs(store).compress(to=900)
    now = compiled(store)
    messages = verbs(store).in_full(written(done))(now)
    assert [each.text for each in messages] == before
    assert compiled(store).prefix_hash == now.prefix_hash


def test_what_a_summary_no_longer_mentions(store: Store) -> None:
    call = ToolCall("1", "Bash", {"command": "make deploy"})
    made = commit(
        Writer(store, author="A"),
        [
            Message("user", "You must never touch src/legacy/schema.sql by hand. " + WORDS * 8),
            Message("assistant", "We decided on port 8443 because the proxy needs it. " + WORDS),
            Message("assistant", [call]),
            Message("tool", [ToolResult("1", "deployed 17 pods in 4242 ms")]),
            Message("assistant", "It is deployed."),
        ],
    ).addresses
    model = Script("Port 8443 was decided on, because the proxy needs it.")
    done = verbs(store).compress(range=range_of(made[0], made[3]), to=180, model=model, force=True)
    (found,) = verbs(store).report(written(done).hex)
    assert [(each.kind, each.text, each.source) for each in found.lost] == [
        ("constraint", "You must never touch src/legacy/schema.sql by hand.", made[0]),
        ("path", "src/legacy/schema.sql", made[0]),
    ]
    assert found.checked == {"constraint": 1, "path": 1, "decision": 1, "number": 1, "command": 1}
    assert verbs(store).report() == [found]
    talked = talk(store, 1)[0]
    with pytest.raises(errors.InvalidInputError, match="not a summary"):
        verbs(store).report(talked.hex)
    assert seen(store)[written(done)]
