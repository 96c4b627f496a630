"""Claude Code: compactions that keep a tail, rows of other sessions, names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.support.inputs import case
from tests.importers.support.checks import import_by_lines
from tests.importers.support.states import branches, context
from tests.importers.support.transcripts import (
    SESSION,
    Transcript,
    call,
    each_real_transcript,
    text,
)
from tests.support.command_line import Trace
from tests.support.subjects import transcripts
from trace_store import Repo
from trace_store.importers.import_paths import import_paths
from trace_store.store.store import Store
from trace_store.writer import Writer


def in_short(store: Store, tip: Any) -> list[str]:
    """A context without the roles, and with SUMMARY for a summary."""
    lines = [line.partition(": ")[2] for line in context(store, tip)]
    return ["SUMMARY" if "This session is being continued" in line else line for line in lines]


def contexts(paths: list[Path]) -> dict[str, list[str]]:
    store = Store.memory()
    import_paths(Writer(store), [str(path) for path in paths])
    return {name: in_short(store, tip) for name, tip in branches(store).items()}


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        pytest.param("01", ["SUMMARY", "A2 kept", "Q3 new", "A3 new"], id="stop-hook"),
        pytest.param("02", ["SUMMARY", "A2 kept", "Q3 new", "A3 new"], id="no-hook"),
        pytest.param("04", ["SUMMARY", "A2 kept2", "Q3 new", "A3 new"], id="twice"),
        pytest.param(
            "06",
            ["SUMMARY", "A2 kept", "Q3 mid", "A3 mid", "Q4 new", "A4 new"],
            id="rows-appended-again",
        ),
        pytest.param(
            "07",
            ["SUMMARY", "Q2 kept", "toolu_k", "toolu_k=R2 kept", "A3 new", "Q4 new", "A4 new"],
            id="segment",
        ),
    ],
)
def test_case_01_02_04_06_07_a_compaction_keeps_its_tail(
    number: str, expected: list[str], tmp_path: Path
) -> None:
    (path,) = case(number).glob("*.jsonl")
    found = contexts([path])
    assert list(found.values()) == [expected], "and nothing is left on another branch"
    grows_into(path.read_bytes(), found, tmp_path)


def grows_into(data: bytes, expected: dict[str, list[str]], folder: Path) -> None:
    """Importing after each row equals one import, and exports unchanged."""
    session = next(name for name in expected if "/" not in name)
    path = folder / f"{session}.jsonl"
    with Store.init(str(folder / "growing"), durability="fast") as store:
        import_by_lines(store, path, data)
        assert {name: in_short(store, tip) for name, tip in branches(store).items()} == expected
        assert transcripts(store).export_original(session).to_bytes() == data


class Compacted(Transcript):
    """A session of questions and answers that was compacted."""

    def turn(self, number: int, *, tool: bool = False, **more: Any) -> list[str]:
        """Add a prompt and its answer and return their rows; with a call and its result between them when asked."""
        rows = [self.user(f"Q{number}", **more)]
        if tool:
            rows.append(self.assistant(f"msg_{number}a", call(f"toolu_{number}")))
            rows.append(self.result(f"toolu_{number}", f"R{number}"))
        return [*rows, self.assistant(f"msg_{number}", text(f"A{number}"))]

    def compact(self, kept: list[str] | None = None, **metadata: Any) -> str:
        """Add a boundary and a summary; the next row hangs on the last before it, as when a tail is preserved."""
        leaf = self.last
        if kept is not None:
            metadata["preservedMessages"] = {"uuids": kept, "allUuids": kept}
        metadata.setdefault("trigger", "auto")
        self.system("compact_boundary", parent=None, compactMetadata=metadata)
        summary = self.user(
            "This session is being continued.",
            isCompactSummary=True,
            isVisibleInTranscriptOnly=True,
        )
        if len(metadata) > 1:
            self.last = leaf
        return summary


def segment(head: str, tail: str) -> dict[str, Any]:
    return {"preservedSegment": {"headUuid": head, "tailUuid": tail}}


def unknown_uuids(t: Compacted) -> None:
    t.turn(1)
    kept = t.turn(2)
    t.compact(["not-here", kept[1], "nor-here"])


def none_known(t: Compacted) -> None:
    t.turn(1)
    t.turn(2)
    t.compact(["not-here"])


def other_order(t: Compacted) -> None:
    first, second = t.turn(1), t.turn(2)
    t.compact([second[0], first[1]])


def from_the_beginning(t: Compacted) -> None:
    first, second = t.turn(1), t.turn(2)
    t.compact([first[0], second[1]])


def everything(t: Compacted) -> None:
    t.compact([*t.turn(1), *t.turn(2)])


def with_a_subagent(t: Compacted) -> None:
    t.user("Q1")
    t.assistant("msg_1", call("toolu_1", "Task"))
    calling = t.last
    side = t.user("look", parent=None, isSidechain=True, agentId="ab12")
    t.assistant("msg_s", text("found"), isSidechain=True, agentId="ab12")
    result = t.result("toolu_1", "R1", parent=calling)
    t.compact([side, result])


def result_without_its_call(t: Compacted) -> None:
    t.turn(1)
    rows = t.turn(2, tool=True)
    t.compact(rows[2:])


def call_without_its_result(t: Compacted) -> None:
    t.turn(1)
    rows = t.turn(2, tool=True)
    t.compact([rows[1], rows[3]])


def head_is_missing(t: Compacted) -> None:
    t.turn(1)
    t.compact(**segment("not-here", t.turn(2)[-1]))


def whole_segment(t: Compacted) -> None:
    t.turn(1)
    rows = t.turn(2, tool=True)
    t.compact(**segment(rows[0], rows[-1]))


def within_a_round(t: Compacted) -> None:
    t.turn(1)
    t.user("Q2")
    calling = t.assistant("msg_2a", call("toolu_2"))
    t.compact([calling])
    t.result("toolu_2", "R2", parent=calling)
    t.assistant("msg_2", text("A2"))


def three_times(t: Compacted) -> None:
    t.compact(t.turn(1)[1:])
    t.compact(t.turn(2)[1:], trigger="manual")
    t.compact(t.turn(3)[1:])


def kept_twice(t: Compacted) -> None:
    first = t.turn(1)[1:]
    t.compact(first)
    t.compact([*first, *t.turn(2)[1:]])


def manual(t: Compacted) -> None:
    t.turn(1)
    t.compact(t.turn(2)[1:], trigger="manual")


def no_tail(t: Compacted) -> None:
    t.turn(1)
    t.compact()


def cleared(t: Compacted) -> None:
    t.compact(t.turn(1)[1:])
    t.user("fresh", parent=None)


def microcompacted_tail(t: Compacted) -> None:
    rows = t.turn(1, tool=True)
    t.system("microcompact_boundary", microcompactMetadata={"compactedToolIds": ["toolu_1"]})
    t.compact(rows[1:])


def appended_again(t: Compacted) -> None:
    rows = t.turn(1)
    again = t.lines[:2]
    t.compact(rows[1:])
    t.turn(2)
    t.lines += again
    t.last = rows[1]


def appended_again_uncompacted(t: Compacted) -> None:
    rows = t.turn(1)
    again = t.lines[:1]
    t.turn(2)
    t.lines += again
    t.last = rows[0]


CLEARED = "toolu_1=[Old tool result content cleared]"


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (unknown_uuids, ["SUMMARY", "A2"]),
        (none_known, ["SUMMARY"]),
        (other_order, ["SUMMARY", "Q2", "A1"]),
        (from_the_beginning, ["SUMMARY", "Q1", "A2"]),
        (everything, ["SUMMARY", "Q1", "A1", "Q2", "A2"]),
        (with_a_subagent, ["SUMMARY", "toolu_1", "toolu_1=R1"]),
        (result_without_its_call, ["SUMMARY", "toolu_2", "toolu_2=R2", "A2"]),
        (call_without_its_result, ["SUMMARY", "toolu_2", "toolu_2=R2", "A2"]),
        (head_is_missing, ["SUMMARY"]),
        (whole_segment, ["SUMMARY", "Q2", "toolu_2", "toolu_2=R2", "A2"]),
        (within_a_round, ["SUMMARY", "toolu_2", "toolu_2=R2", "A2"]),
        (three_times, ["SUMMARY", "A3"]),
        (kept_twice, ["SUMMARY", "A1", "A2"]),
        (manual, ["SUMMARY", "A2"]),
        (no_tail, ["SUMMARY"]),
        (cleared, ["fresh"]),
        (microcompacted_tail, ["SUMMARY", "toolu_1", CLEARED, "A1"]),
        (appended_again, ["SUMMARY", "A1", "Q2", "A2"]),
        (appended_again_uncompacted, ["Q1", "A1", "Q2", "A2"]),
    ],
)
def test_case_01_variants_of_what_is_preserved(
    build: Callable[[Compacted], None], expected: list[str], tmp_path: Path
) -> None:
    t = Compacted()
    build(t)
    t.turn(8)
    t.turn(9)
    found = contexts([Path(t.write(tmp_path))])
    assert found[SESSION] == [*expected, "Q8", "A8", "Q9", "A9"]
    assert not [name for name in found if "/rewinds/" in name]
    grows_into(t.data, found, tmp_path)


def test_case_01_a_rewind_behind_the_boundary_brings_the_old_history_back(tmp_path: Path) -> None:
    t = Compacted()
    first = t.turn(1)
    t.compact(t.turn(2)[1:])
    t.turn(3)
    t.turn(4, parent=first[-1])
    found = contexts([Path(t.write(tmp_path))])
    assert found.pop(SESSION) == ["Q1", "A1", "Q4", "A4"]
    assert list(found.values()) == [["SUMMARY", "A2", "Q3", "A3"]]


def test_case_01_a_rewind_to_what_was_preserved_stays_behind_the_summary(tmp_path: Path) -> None:
    t = Compacted()
    t.turn(1)
    kept = t.turn(2)
    t.compact(kept[1:])
    t.turn(3)
    t.turn(4, parent=kept[-1])
    found = contexts([Path(t.write(tmp_path))])
    assert found.pop(SESSION) == ["SUMMARY", "A2", "Q4", "A4"]
    assert list(found.values()) == [["SUMMARY", "A2", "Q3", "A3"]]


def test_case_01_a_fork_of_a_compacted_session_has_its_context(tmp_path: Path) -> None:
    t = Compacted()
    t.turn(1)
    t.compact(t.turn(2)[1:])
    t.turn(3)
    other = "6a0c2a54-1111-4222-8333-944455556666"
    fork = Compacted(other)
    fork.lines, fork._count, fork.last = list(t.lines), t._count, t.last
    fork.lines = [line.replace(SESSION, other) for line in fork.lines]
    fork.turn(4)
    found = contexts([Path(t.write(tmp_path)), Path(fork.write(tmp_path))])
    assert found == {
        SESSION: ["SUMMARY", "A2", "Q3", "A3"],
        other: ["SUMMARY", "A2", "Q3", "A3", "Q4", "A4"],
    }


@pytest.mark.parametrize("path", each_real_transcript())
def test_nothing_stands_before_the_summary_of_a_real_compaction(path: Path) -> None:
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    for name, tip in branches(store).items():
        lines = in_short(store, tip)
        assert lines.count("SUMMARY") <= 1, name
        assert "SUMMARY" not in lines[1:], name


A, B = "9be1fdf3-", "39d29157-"


@pytest.mark.parametrize("order", [["A", "B"], ["B", "A"], ["AB"], ["A", "B", "A", "B"]])
def test_case_44_rows_of_another_session_join_it(order: list[str], tmp_path: Path) -> None:
    files = {name: str(case("44") / f"st-wrongfile-{name}.jsonl") for name in "AB"}
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        for names in order:
            import_paths(Writer(store), [files[name] for name in names])
        found = {name[:9]: in_short(store, tip) for name, tip in branches(store).items()}
        assert found == {
            A: ["Q1 of A", "A1 of A", "Q2 of A", "A2 of A"],
            B: ["Q1 of B", "A1 of B", "Q2 of B", "A2 of B"],
        }
        assert len(branches(store)) == 2
        for name, path in files.items():
            kept = transcripts(store).export_original({"A": A, "B": B}[name])
            assert kept.to_bytes() == Path(path).read_bytes()


def test_case_44_a_session_goes_on_behind_rows_that_joined_it(tmp_path: Path) -> None:
    path = tmp_path / "B.jsonl"
    data = (case("44") / "st-wrongfile-B.jsonl").read_bytes()
    path.write_bytes(data)
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        import_paths(Writer(store), [str(path), str(case("44") / "st-wrongfile-A.jsonl")])
        session = next(name for name in branches(store) if name.startswith(B))
        more = Transcript(session)
        more._count = 900
        more.user("Q3 of B", parent="bebfa157-ab2b-5d5d-9e3b-303527102718")
        path.write_bytes(data + more.data)
        import_paths(Writer(store), [str(path)])
        expected = ["Q1 of B", "A1 of B", "Q2 of B", "A2 of B", "Q3 of B"]
        assert in_short(store, branches(store)[session]) == expected
        assert len(branches(store)) == 2


def test_case_44_a_session_that_goes_on_under_another_id_stays_one(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Q1")
    t.assistant("msg_1", text("A1"))
    t.session = "6a0c2a54-1111-4222-8333-944455556666"
    t.user("Q2")
    t.assistant("msg_2", text("A2"))
    t.session = SESSION
    found = contexts([Path(t.write(tmp_path))])
    assert found == {SESSION: ["Q1", "A1", "Q2", "A2"]}


def rewound() -> Transcript:
    """A session with a subagent in its file and a rewind, which can go on."""
    t = Transcript()
    t.user("Q1")
    first = t.assistant("msg_1", text("A1"))
    t.user("Q2")
    t.assistant("msg_2", call("toolu_2", "Task"))
    calling = t.last
    t.user("look", parent=None, isSidechain=True, agentId="ab12")
    t.assistant("msg_s", text("found"), isSidechain=True, agentId="ab12")
    t.result("toolu_2", "R2", parent=calling, toolUseResult={"agentId": "cd34"})
    t.assistant("msg_3", text("A2"))
    t.user("Q3", parent=first)
    t.assistant("msg_4", text("A3"))
    return t


@pytest.mark.parametrize(("own_commit", "remembers"), [(False, False), (False, True), (True, True)])
def test_a_renamed_session_is_still_that_session(
    own_commit: bool, remembers: bool, tmp_path: Path
) -> None:
    t = rewound()
    with Repo.init(str(tmp_path / "project"), durability="fast") as repo:
        store = repo.store
        path = t.write(tmp_path)
        import_paths(Writer(store), [path])
        before = set(branches(store))
        repo.branches.rename(f"sessions/claude-code/{SESSION}", "parser")
        if own_commit:
            repo.branches.switch("parser")
            repo.append("user", "mine")
        if not remembers:
            shutil.rmtree(Path(store.layout.local_dir) / "imports")
        (again,) = import_paths(Writer(store), [path]).files
        assert (again.commits, again.branches[0].ref) == (0, "refs/heads/parser")
        t.user("Q4")
        t.assistant("msg_5", text("A4"))
        t.write(tmp_path)
        import_paths(Writer(store), [path])
        assert set(branches(store)) == before - {SESSION}
        mine = ["mine"] if own_commit else []
        tip = store.refs.read("refs/heads/parser")
        assert in_short(store, tip) == ["Q1", "A1", "Q3", "A3", *mine, "Q4", "A4"]
        for name in ("parser", SESSION):
            assert transcripts(store).export_original(name).to_bytes() == t.data


def test_a_subagent_of_a_renamed_session_begins_at_its_call(tmp_path: Path) -> None:
    t = rewound()
    agent = Transcript()
    agent._count = 500
    agent.user("dig", parent=None, isSidechain=True, agentId="cd34")
    agent.assistant("msg_a", text("dug"), isSidechain=True, agentId="cd34")
    with Repo.init(str(tmp_path / "project"), durability="fast") as repo:
        store = repo.store
        import_paths(Writer(store), [t.write(tmp_path)])
        repo.branches.rename(f"sessions/claude-code/{SESSION}", "parser")
        import_paths(Writer(store), [agent.write(tmp_path, "agent-cd34")])
        side = branches(store)[f"{SESSION}/agents/cd34"]
        assert in_short(store, side) == ["dig", "dug"]
        assert SESSION not in branches(store)


@pytest.mark.parametrize("copied", [False, True])
def test_a_deleted_session_comes_back_unless_a_copy_of_it_is_there(
    copied: bool, tmp_path: Path
) -> None:
    t = rewound()
    with Repo.init(str(tmp_path / "project"), durability="fast") as repo:
        store = repo.store
        path = t.write(tmp_path)
        import_paths(Writer(store), [path])
        tip = store.refs.read(f"refs/heads/sessions/claude-code/{SESSION}")
        if copied:
            repo.branches.create("copy")
        store.refs.set_head("refs/heads/elsewhere", message="test")
        repo.branches.delete(f"sessions/claude-code/{SESSION}")
        import_paths(Writer(store), [path])
        assert (SESSION in branches(store)) is not copied
        name = "copy" if copied else f"sessions/claude-code/{SESSION}"
        assert store.refs.read(f"refs/heads/{name}") == tip


def test_an_import_of_many_files_is_told_in_a_sum(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for number in range(25):
        t = Transcript(f"{number:08x}-1111-4222-8333-944455556666")
        t._count = number * 10
        t.user(f"Q{number}")
        t.write(tmp_path / "files")
    (tmp_path / "files" / "empty.jsonl").write_bytes(b"")
    trace("init", "-q")
    first = trace("import", "files")
    assert first.lines[0] == "26 files (25 imported, 1 empty): 25 commits, 25 messages"
    again = trace("import", "-v", "files")
    assert again.lines[-1] == "26 files (25 unchanged, 1 empty): 0 commits, 0 messages"
    assert sum(": unchanged" in line for line in again.lines) == 25
    assert trace("status").lines[0].startswith("on branch sessions/claude-code/00000018-")


def test_a_record_without_a_time_has_no_date(trace: Trace, tmp_path: Path) -> None:
    row: dict[str, Any] = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s1"}
    row |= {"isSidechain": False, "message": {"role": "user", "content": "hello"}}
    (tmp_path / "s1.jsonl").write_text(json.dumps(row) + "\n")
    trace("init", "-q")
    trace("import", "s1.jsonl")
    for words in (["log"], ["show"], ["status"], ["branch", "-v"], ["blame"]):
        out = trace(*words).text
        assert "no time" in out, words
        assert "1970" not in out, words
    assert json.loads(trace("log", "--json").lines[0])["time"] is None
    assert json.loads(trace("blame", "--json").lines[0]).get("time") is None
