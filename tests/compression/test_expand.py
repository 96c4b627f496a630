"""Expansion of summaries, and reports of what they leave out."""

from __future__ import annotations

import pytest

from tests.compression.test_compress import (
    WORDS,
    Script,
    compiled,
    range_of,
    refused,
    seen,
    store,
    talk,
    written,
)
from trace_store import errors
from trace_store.compression.compress import compress
from trace_store.compression.expand import expand, expanded_messages
from trace_store.compression.summaries import report
from trace_store.history.commit import commit, new_draft, write
from trace_store.history.undo import undo
from trace_store.objects.message import Message
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.store.handle import Store

__all__ = ["store"]


def test_a_summary_becomes_what_it_stands_for(store: Store) -> None:
    talk(store)
    before = compiled(store)
    done = compress(store, to=900, author="A")
    compressed = compiled(store).prefix_hash
    found = expand(store, written(done).hex, author="A")
    assert found.what == "compressed"
    assert compiled(store).prefix_hash == before.prefix_hash
    undo(store, author="A")
    assert compiled(store).prefix_hash == compressed


def test_summaries_are_expanded_level_by_level(store: Store) -> None:
    addresses = talk(store)
    draft = new_draft(store)
    draft.remove([addresses[2]], ghost=True)
    write(store, draft, author="A")
    states = [compiled(store).prefix_hash]
    summaries = []
    for target in (1200, 700):
        done = compress(store, to=target, author="A", force=True)
        summaries.append(written(done))
        states.append(compiled(store).prefix_hash)
    for each, state in zip(reversed(summaries), reversed(states[:-1]), strict=True):
        expand(store, each.hex, author="A")
        assert compiled(store).prefix_hash == state


def test_one_source_is_shown_beside_its_summary(store: Store) -> None:
    addresses = talk(store)
    done = compress(store, to=900, author="A")
    expand(store, addresses[3].hex, author="A")
    assert [each.address for each in compiled(store).messages][:2] == [written(done), addresses[3]]


def test_removed_ghosted_and_edited_messages(store: Store) -> None:
    addresses = talk(store, 2)
    before = compiled(store).prefix_hash
    draft = new_draft(store)
    draft.remove([addresses[0]])
    draft.remove([addresses[1]], ghost=True)
    draft.edit(addresses[2], "Short.")
    write(store, draft, author="A")
    found = [expand(store, each.hex, author="A").what for each in addresses[:3]]
    assert found == ["removed", "removed", "edited"]
    assert compiled(store).prefix_hash == before
    refused(
        *(store, errors.InvalidInputError, "already shown in full"),
        lambda: expand(store, addresses[2].hex, author="A"),
    )


def test_for_one_compile_nothing_is_written(store: Store) -> None:
    talk(store)
    before = [each.text for each in compiled(store).messages]
    done = compress(store, to=900, author="A")
    now = compiled(store)
    messages = expanded_messages(store, now, [written(done).hex])
    assert [each.text for each in messages] == before
    assert compiled(store).prefix_hash == now.prefix_hash


def test_what_a_summary_no_longer_mentions(store: Store) -> None:
    call = ToolCall("1", "Bash", {"command": "make deploy"})
    made = commit(
        store,
        [
            Message("user", "You must never touch src/legacy/schema.sql by hand. " + WORDS * 8),
            Message("assistant", "We decided on port 8443 because the proxy needs it. " + WORDS),
            Message("assistant", [call]),
            Message("tool", [ToolResult("1", "deployed 17 pods in 4242 ms")]),
        ],
        author="A",
    ).addresses
    model = Script("Port 8443 was decided on, because the proxy needs it.")
    done = compress(
        *(store, range_of(made[0], made[3])), to=180, author="A", model=model, force=True
    )
    (found,) = report(store, written(done).hex)
    assert [(each.kind, each.text, each.source) for each in found.lost] == [
        ("constraint", "You must never touch src/legacy/schema.sql by hand.", made[0]),
        ("path", "src/legacy/schema.sql", made[0]),
    ]
    assert found.checked == {"constraint": 1, "path": 1, "decision": 1, "number": 1, "command": 1}
    assert report(store) == [found]
    talked = talk(store, 1)[0]
    with pytest.raises(errors.InvalidInputError, match="not a summary"):
        report(store, talked.hex)
    assert seen(store)[written(done)]
