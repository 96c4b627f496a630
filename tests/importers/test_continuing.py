"""Imports onto a branch with other commits, which stay; new messages go last."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.importers.support.checks import import_by_lines
from tests.importers.support.states import (
    branches,
    commits,
    context,
    raw_records,
    tip_of,
)
from tests.importers.support.transcripts import (
    SESSION,
    Transcript,
    call,
    lively,
    records_in,
    text,
)
from trace_store.history import commit
from trace_store.importers.import_paths import import_paths
from trace_store.objects.message import Message
from trace_store.store.store import Store
from trace_store.writer import Writer

BRANCH = f"sessions/claude-code/{SESSION}"


def forget(store: Store) -> None:
    folder = Path(store.layout.local_dir) / "imports"
    for file in folder.iterdir() if folder.exists() else ():
        file.unlink()


@pytest.mark.parametrize("remembers", [True, False])
def test_edits_on_a_session_survive_its_growing(tmp_path: Path, remembers: bool) -> None:
    t = Transcript()
    t.user("First.")
    t.assistant("msg_1", text("One."), stop="end_turn")
    t.system("turn_duration")
    path = t.write(tmp_path)
    with Store.init(str(tmp_path / "p"), durability="fast") as store:
        import_paths(Writer(store), [path])
        commit.commit(Writer(store, author="ada"), [Message("user", "A note of mine.")])
        mine = branches(store)[SESSION]
        t.user("Second.")
        t.assistant("msg_2", text("Two."), stop="end_turn")
        t.write(tmp_path)
        if not remembers:
            forget(store)
        import_paths(Writer(store), [path])
        tip = branches(store)[SESSION]
        assert mine in [c.parents[0] for c in commits(store, tip) if c.parents]
        assert context(store, tip) == [
            "user: First.",
            "assistant: One.",
            "user: A note of mine.",
            "user: Second.",
            "assistant: Two.",
        ]
        t.user("Third.")
        t.write(tmp_path)
        if not remembers:
            forget(store)
        assert import_paths(Writer(store), [path]).messages == 1
        assert import_paths(Writer(store), [path]).commits == 0
        forget(store)
        assert import_paths(Writer(store), [path]).commits == 0
        assert sorted(raw_records(store)) == sorted(raw for raw, _ in records_in(t.data))
        assert list(branches(store)) == [SESSION]


@pytest.mark.parametrize("remembers", [True, False])
def test_an_unfinished_message_is_completed_in_place(tmp_path: Path, remembers: bool) -> None:
    t = Transcript()
    t.user("Read both.")
    one = t.assistant("msg_1", call("toolu_a"))
    t.result("toolu_a", "a", parent=one)
    path = t.write(tmp_path)
    with Store.init(str(tmp_path / "p"), durability="fast") as store:
        import_paths(Writer(store), [path])
        commit.commit(Writer(store, author="ada"), [Message("user", "Mine.")])
        two = t.assistant("msg_1", call("toolu_b"))
        t.result("toolu_b", "b", parent=two)
        t.assistant("msg_2", text("Both read."))
        t.write(tmp_path)
        if not remembers:
            forget(store)
        import_paths(Writer(store), [path])
        expected = [
            "user: Read both.",
            "assistant: toolu_a | toolu_b",
            "tool: toolu_a=a | toolu_b=b",
            "user: Mine.",
            "assistant: Both read.",
        ]
        assert context(store, branches(store)[SESSION]) == expected
        forget(store)
        assert import_paths(Writer(store), [path]).commits == 0
        assert context(store, branches(store)[SESSION]) == expected
        assert sorted(raw_records(store)) == sorted(raw for raw, _ in records_in(t.data))


def test_onto_a_branch(tmp_path: Path) -> None:
    t = lively()
    path = t.write(tmp_path)
    alone = Store.memory()
    import_paths(Writer(alone), [path])
    expected = context(alone, branches(alone)[SESSION])
    with Store.init(str(tmp_path / "p"), durability="fast") as store:
        commit.commit(Writer(store, author="ada"), [Message("system", "Be brief.")])
        report = import_paths(Writer(store), [path], onto="main")
        tip = tip_of(store, "refs/heads/main")
        assert not branches(store)
        # The summary is at the position of the first message it replaces; the user's own stays before it.
        assert context(store, tip) == ["system: Be brief.", *expected]
        assert [str(b.ref) for b in report.files[0].branches] == ["refs/heads/main"]
        forget(store)
        assert import_paths(Writer(store), [path], onto="main").commits == 0
        assert store.refs.read("refs/heads/main") == tip
        t.user("More?")
        t.write(tmp_path)
        assert import_paths(Writer(store), [path], onto="refs/heads/main").messages == 1


def test_onto_a_branch_line_by_line(tmp_path: Path) -> None:
    data = lively().data
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(data)
    alone = Store.memory()
    import_paths(Writer(alone), [str(path)])
    with Store.init(str(tmp_path / "p"), durability="fast") as store:
        import_by_lines(store, path, data, onto="mine")
        tip = tip_of(store, "refs/heads/mine")
        assert context(store, tip) == context(alone, branches(alone)[SESSION])
        assert sorted(raw_records(store)) == sorted(raw for raw, _ in records_in(data))


def test_a_rewind_onto_a_branch_takes_messages_out(tmp_path: Path) -> None:
    t = Transcript()
    t.user("First.")
    t.assistant("msg_1", text("One."), stop="end_turn")
    end = t.last
    t.user("Second, to be taken back.")
    t.assistant("msg_2", text("Two."), stop="end_turn")
    t.user("Second, again.", parent=end)
    t.assistant("msg_3", text("Three."), stop="end_turn")
    store = Store.memory()
    import_paths(Writer(store), [t.write(tmp_path)], onto="mine")
    tip = tip_of(store, "refs/heads/mine")
    assert context(store, tip) == [
        "user: First.",
        "assistant: One.",
        "user: Second, again.",
        "assistant: Three.",
    ]


def test_no_source_leaves_it_out_and_adding_it_later_makes_no_second_copy(tmp_path: Path) -> None:
    path = lively().write(tmp_path)
    store = Store.memory()
    first = import_paths(Writer(store), [path], source=False).files[0]
    assert raw_records(store) == []
    assert first.records["summary", "not-kept"] == 1
    before = branches(store)
    again = import_paths(Writer(store), [path]).files[0]
    assert again.messages == 0
    assert again.commits <= 1, "only what stands at the end of the file"
    assert set(branches(store)) == set(before)


@pytest.mark.parametrize("remembers", ["all", "nothing", "from the second import on"])
def test_what_was_gone_back_behind_stays_out_of_a_branch_that_others_committed_to(
    tmp_path: Path, remembers: str
) -> None:
    t = Transcript()
    t.user("First.")
    t.assistant("msg_1", text("One."), stop="end_turn")
    end = t.last
    t.user("Second.")
    t.assistant("msg_2", text("Two."), stop="end_turn")
    t.user("No, another.", parent=end)
    t.assistant("msg_3", text("Three."), stop="end_turn")
    path = t.write(tmp_path)
    said = ["user: First.", "assistant: One.", "user: No, another.", "assistant: Three."]
    with Store.init(str(tmp_path / "p"), durability="fast") as store:
        import_paths(Writer(store), [path])
        assert context(store, branches(store)[SESSION]) == said
        commit.commit(Writer(store, author="ada"), [Message("user", "A note of mine.")])
        said.append("user: A note of mine.")
        for number in range(3):
            if remembers == "nothing" or (remembers != "all" and not number):
                forget(store)
            t.user(f"And {number}?")
            said.append(f"user: And {number}?")
            import_paths(Writer(store), [t.write(tmp_path)])
            assert context(store, branches(store)[SESSION]) == said
            if remembers == "nothing":
                forget(store)
            assert import_paths(Writer(store), [path]).commits == 0
            assert context(store, branches(store)[SESSION]) == said


@pytest.mark.parametrize("before", [2, 3, 4, 5])
def test_what_is_gone_back_behind_later_leaves_a_branch_that_others_committed_to(
    tmp_path: Path, before: int
) -> None:
    """The session rewinds to before the commit on which a user has built."""
    t = Transcript()
    t.user("First.")
    t.assistant("msg_1", text("One."), stop="end_turn")
    end = t.last
    t.user("Second.")
    t.assistant("msg_2", text("Two."), stop="end_turn")
    t.user("Not yet.")
    t.assistant("msg_3", text("Three."), stop="end_turn")
    lines, t.lines = t.lines, t.lines[:before]
    path = t.write(tmp_path)
    with Store.init(str(tmp_path / "p"), durability="fast") as store:
        import_paths(Writer(store), [path])
        commit.commit(Writer(store, author="ada"), [Message("user", "A note of mine.")])
        t.lines = lines
        import_paths(Writer(store), [t.write(tmp_path)])
        t.user("No, another.", parent=end)
        t.assistant("msg_4", text("Four."), stop="end_turn")
        import_paths(Writer(store), [t.write(tmp_path)])
        assert [
            line for line in context(store, branches(store)[SESSION]) if "mine" not in line
        ] == [
            "user: First.",
            "assistant: One.",
            "user: No, another.",
            "assistant: Four.",
        ]
        assert import_paths(Writer(store), [path]).commits == 0
