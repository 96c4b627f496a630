"""Each imported result names the message with its call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.states import branches, context, entries, reachable
from tests.importers.support.transcripts import (
    SESSION,
    Transcript,
    call,
    each_real_file,
    lively,
    text,
)
from trace_store.base.oid import ObjectId
from trace_store.context.fold import Entry
from trace_store.history import commit as writing
from trace_store.importers.import_paths import import_paths
from trace_store.objects import operations as ops
from trace_store.objects.address import Address, read_address
from trace_store.objects.message import Message
from trace_store.store.store import Store
from trace_store.writer import Writer


def imported(t: Transcript, folder: Path) -> Store:
    store = Store.memory()
    import_paths(Writer(store), [t.write(folder)])
    return store


def ids(entry: Entry, kind: str) -> list[str]:
    return [part["id"] for part in entry.parts if part["type"] == kind]


def links(store: Store, tip: ObjectId) -> list[tuple[list[str], list[int]]]:
    """The results of each message that has some, with the positions of the messages that they answer."""
    found = entries(store, tip)
    at = {entry.address: position for position, entry in enumerate(found)}
    return [
        (ids(entry, "tool_result"), [at[call] for call in entry.answers])
        for entry in found
        if ids(entry, "tool_result")
    ]


@pytest.mark.parametrize("path", each_real_file())
def test_every_result_of_a_real_transcript_names_its_call(path: Path) -> None:
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    called: dict[Address, set[str]] = {}
    results: list[tuple[Address, str]] = []
    for oid, commit in reachable(store).items():
        for address, stored in ops.added_messages(commit, oid):
            for part in stored["parts"]:
                if part["type"] == "tool_call":
                    called.setdefault(address, set()).add(part["id"])
                elif part["type"] == "tool_result":
                    results.append((read_address(part["call"], oid), part["id"]))
    assert all(id_ in called[address] for address, id_ in results)


def test_an_id_that_comes_again_is_told_apart(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Scan.")
    t.assistant("msg_1", call("call_0"))
    t.result("call_0", "first")
    t.assistant("msg_2", call("call_0"))
    t.result("call_0", "second")
    store = imported(t, tmp_path)
    assert links(store, branches(store)[SESSION]) == [(["call_0"], [1]), (["call_0"], [3])]


def test_a_record_that_names_its_call_is_believed(tmp_path: Path) -> None:
    """Of two calls with one id, both without a result, the newest would be taken."""
    t = Transcript()
    t.user("Scan.")
    first = t.assistant("msg_1", call("call_0"))
    second = t.assistant("msg_2", call("call_0"))
    t.result("call_0", "of the first", sourceToolAssistantUUID=first)
    t.assistant("msg_3", text("Hm."))
    t.result("call_0", "of the second", sourceToolAssistantUUID=second)
    store = imported(t, tmp_path)
    assert links(store, branches(store)[SESSION]) == [(["call_0"], [1]), (["call_0"], [2])]


def test_a_result_on_another_line_of_work_names_the_call_that_it_knows(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Scan.")
    calling = t.assistant("msg_1", call("toolu_1"))
    t.result("toolu_1", "seen")
    t.assistant("msg_2", text("It is there."))
    t.user("Scan once more.", parent=calling)
    t.result("toolu_1", "seen again")
    store = imported(t, tmp_path)
    found = branches(store)
    assert len(found) == 2
    for tip in found.values():
        assert links(store, tip) == [(["toolu_1"], [1])]


def test_a_file_that_grows_links_as_one_that_is_read_at_once(tmp_path: Path) -> None:
    t = lively()
    whole = imported(t, tmp_path)
    copy = tmp_path / "grown" / f"{SESSION}.jsonl"
    copy.parent.mkdir()
    with Store.init(str(tmp_path / "p"), durability="fast") as store:
        for line in t.data.splitlines(keepends=True):
            with copy.open("ab") as file:
                file.write(line)
            import_paths(Writer(store), [str(copy)], format="claude-code")
        assert branches(store) == branches(whole)


@pytest.mark.parametrize("remembers", [True, False])
def test_results_that_come_to_a_branch_of_others(tmp_path: Path, remembers: bool) -> None:
    """The call is in the history; calls added to a message later are found, too."""
    t = Transcript()
    t.user("Read both.")
    one = t.assistant("msg_1", call("toolu_a"))
    path = t.write(tmp_path)
    with Store.init(str(tmp_path / "p"), durability="fast") as store:
        import_paths(Writer(store), [path])
        writing.commit(Writer(store, author="ada"), [Message("user", "Mine.")])
        two = t.assistant("msg_1", call("toolu_b"), parent=one)
        t.write(tmp_path)
        import_paths(Writer(store), [path])
        t.result("toolu_a", "a", parent=two)
        t.result("toolu_b", "b", parent=two)
        t.assistant("msg_2", text("Both read."))
        t.write(tmp_path)
        if not remembers:
            for file in (Path(store.layout.local_dir) / "imports").iterdir():
                file.unlink()
        import_paths(Writer(store), [path])
        tip = branches(store)[SESSION]
        assert context(store, tip)[-1] == "assistant: Both read."
        assert links(store, tip) == [(["toolu_a", "toolu_b"], [1])]
        results = next(e for e in entries(store, tip) if ids(e, "tool_result"))
        assert ["call" in part for part in results.parts] == [True, True]


def test_results_that_are_cleared_keep_their_calls(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Scan.")
    t.assistant("msg_1", call("toolu_1"))
    t.result("toolu_1", "seen, and much of it")
    t.assistant("msg_2", text("It is there."), stop="end_turn")
    t.system("microcompact_boundary", microcompactMetadata={"compactedToolIds": ["toolu_1"]})
    t.user("And now?")
    store = imported(t, tmp_path)
    found = entries(store, branches(store)[SESSION])
    assert ids(found[2], "tool_result") == ["toolu_1"]
    assert [len(version.parts) for version in found[2].versions] == [1, 1]
    assert [v.parts[0]["call"] for v in found[2].versions] == [list(found[1].address)] * 2


def test_a_chat_with_one_id_for_several_calls(tmp_path: Path) -> None:
    """The older form of OpenAI pairs by the function's name."""
    chat: list[dict[str, Any]] = [{"role": "user", "content": "Scan twice."}]
    for said in ("one", "two"):
        named = {"name": "look", "arguments": "{}"}
        chat += [
            {"role": "assistant", "content": None, "function_call": named},
            {"role": "function", "name": "look", "content": said},
        ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": chat}))
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    ((_, tip),) = store.refs.iterate("refs/heads/sessions/")
    assert links(store, tip) == [(["look"], [1]), (["look"], [3])]
