"""Expansion of summaries, and reports of what they leave out."""

from __future__ import annotations

import pytest

from tests.compression.test_compress import (
    WORDS,
    Script,
    annotate,
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


def test_what_an_expansion_tells(store: Store) -> None:
    """What the message was, what is shown now, the summary beside it, and how many wordings it has."""
    addresses = talk(store, 3)
    draft = Draft(Writer(store, author="A"))
    draft.edit(addresses[4], "Short.")
    draft.remove([addresses[4]])
    draft.edit(addresses[5], "Second.")
    write(draft)
    draft = Draft(Writer(store, author="A"))
    draft.edit(addresses[5], "Third.")
    write(draft)
    done = verbs(store).compress(range=range_of(addresses[0], addresses[2]), text="Summary.")
    told = [
        (each.what, each.messages, each.summary, each.wordings)
        for each in (verbs(store).expand(addresses[at].hex) for at in (1, 4, 5, 3))
    ]
    assert told == [
        ("compressed", (addresses[1],), written(done), 1),
        ("removed", (addresses[4],), None, 2),
        ("edited", (addresses[5],), None, 3),
        ("full", (addresses[3],), None, 1),
    ]
    whole = verbs(store).expand(written(done).hex)
    assert (whole.what, whole.messages, whole.summary, whole.wordings) == (
        *("compressed", (addresses[0], addresses[2])),
        *(None, 1),
    )
    assert [each.address for each in compiled(store).messages] == addresses
    assert [each.text for each in compiled(store).messages] == [
        f"{role} {turn}. {WORDS * 4}" for turn in range(3) for role in ("user", "assistant")
    ]


def test_a_skipped_message_is_not_expanded(store: Store) -> None:
    address = talk(store, 1)[0]
    annotate(store, address, priority="skip")
    with pytest.raises(errors.InvalidInputError, match="is skipped"):
        verbs(store).expand(address.hex)


def test_for_one_compile_a_removed_message_beside_it_stays_a_placeholder(store: Store) -> None:
    addresses = talk(store, 2)
    draft = Draft(Writer(store, author="A"))
    draft.remove([addresses[0]], ghost=True)
    draft.edit(addresses[1], "Short.")
    draft.edit(addresses[2], "Also short.")
    write(draft)
    now = compiled(store)
    messages = verbs(store).in_full(addresses[1])(now)
    assert [each.text for each in messages] == [
        now.messages[0].text,
        f"assistant 0. {WORDS * 4}",
        "Also short.",
        now.messages[3].text,
    ]
    assert now.messages[0].text != f"user 0. {WORDS * 4}"


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
