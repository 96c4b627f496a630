"""Subagents, rewinds, forks, cleared contexts: which line of work a record belongs to, and where each begins."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.states import branches, commits, context, entries, raw_records
from tests.importers.support.transcripts import SESSION, Transcript, call, lively, records_in, text
from trace_store import Repo
from trace_store.disk.files import files_below
from trace_store.importers.import_paths import import_paths
from trace_store.store.store import Store
from trace_store.writer import Writer


def imported(t: Transcript, folder: Path, store: Store | None = None) -> Store:
    store = store or Store.memory()
    import_paths(Writer(store), [t.write(folder)])
    kept = raw_records(store, f"refs/heads/sessions/claude-code/{t.session}")
    assert set(kept) >= {raw for raw, _ in records_in(t.data)}
    return store


def test_a_subagent_inside_the_file_branches_from_its_call(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Scan around.")
    t.assistant("msg_1", text("I ask an agent."))
    t.assistant("msg_1", call("toolu_task", "Task", prompt="Find the parser."))
    calling = t.last
    t.user("Find the parser.", parent=None, isSidechain=True)
    t.assistant("msg_s1", call("toolu_s", "Grep", pattern="def parse"), isSidechain=True)
    t.result("toolu_s", "parser.py:1", isSidechain=True)
    t.assistant("msg_s2", text("It is in parser.py."), isSidechain=True)
    t.result("toolu_task", "It is in parser.py.", parent=calling)
    t.assistant("msg_2", text("The parser is in parser.py."))
    store = imported(t, tmp_path)
    found = branches(store)
    (side,) = [name for name in found if "/agents/" in name]
    assert context(store, found[SESSION]) == [
        "user: Scan around.",
        "assistant: I ask an agent. | toolu_task",
        "tool: toolu_task=It is in parser.py.",
        "assistant: The parser is in parser.py.",
    ]
    assert context(store, found[side]) == [
        "user: Find the parser.",
        "assistant: toolu_s",
        "tool: toolu_s=parser.py:1",
        "assistant: It is in parser.py.",
    ]
    main, agent = commits(store, found[SESSION]), commits(store, found[side])
    assert agent[:2] == main[:2] or [c.encode() for c in agent[:2]] == [
        c.encode() for c in main[:2]
    ]
    assert len(entries(store, found[side])) == 6, "what it was called from lies hidden before it"


def agent_file(session: str = SESSION) -> Transcript:
    t = Transcript(session)
    t._count = 500
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a1b2c3"}
    t.user("Count the lines.", parent=None, **side)
    t.assistant("msg_a1", call("toolu_wc", "Bash", command="wc -l"), **side)
    t.result("toolu_wc", "42", **side)
    t.assistant("msg_a2", text("There are 42."), **side)
    return t


def calling_session() -> Transcript:
    t = Transcript()
    t.user("How many lines?")
    t.assistant("msg_1", call("toolu_task", "Task", prompt="Count the lines."))
    t.result(
        "toolu_task", "There are 42.", toolUseResult={"agentId": "a1b2c3", "status": "completed"}
    )
    t.assistant("msg_2", text("42 lines."))
    return t


def test_a_subagent_with_its_own_file_branches_from_its_call(tmp_path: Path) -> None:
    (tmp_path / SESSION / "subagents").mkdir(parents=True)
    agent = agent_file().write(tmp_path / SESSION / "subagents", "agent-a1b2c3")
    session = calling_session().write(tmp_path)
    store = Store.memory()
    import_paths(Writer(store), [agent, session])  # the session comes first, whatever the order
    found = branches(store)
    name = f"{SESSION}/agents/a1b2c3"
    assert set(found) == {SESSION, name}
    assert context(store, found[name])[0] == "user: Count the lines."
    assert len(context(store, found[name])) == 4
    main = [c.encode() for c in commits(store, found[SESSION])]
    assert [c.encode() for c in commits(store, found[name])][:2] == main[:2]
    assert import_paths(Writer(store), [str(tmp_path)]).commits == 0


def test_the_file_about_a_subagent_names_its_call(tmp_path: Path) -> None:
    """The call has no answer yet, so nothing in the session tells which agent it started."""
    folder = tmp_path / SESSION / "subagents"
    folder.mkdir(parents=True)
    agent_file().write(folder, "agent-a1b2c3")
    about = {"agentType": "Explore", "description": "Count lines", "toolUseId": "toolu_task"}
    (folder / "agent-a1b2c3.meta.json").write_text(json.dumps(about))
    t = Transcript()
    t.user("How many lines?")
    t.assistant("msg_1", call("toolu_task", "Task", prompt="Count the lines."))
    t.write(tmp_path)
    repo = Repo.memory()
    report = repo.transcripts.import_(tmp_path)
    assert [file.skipped for file in report.files] == ["", ""], "the file about it is no transcript"
    (agent,) = repo.agents.list()
    session = f"refs/heads/sessions/claude-code/{SESSION}"
    assert (agent.call, agent.purpose, agent.parent) == ("toolu_task", "Count lines", session)
    main = [each.oid for each in repo.log(session)]
    line = [each.oid for each in repo.log(agent.ref)]
    assert set(main) <= set(line), "it starts at the commit with its call"
    assert repo.transcripts.import_(tmp_path).commits == 0
    assert repo.transcripts.export_originals(tmp_path / "out")


@pytest.mark.parametrize("names", [("aa", "bb", "cc"), ("cc", "bb", "aa")])
def test_a_subagent_of_a_subagent_has_that_one_as_its_parent(
    tmp_path: Path, names: tuple[str, str, str]
) -> None:
    """Each agent was started by a call of the one before, as its file says, in any order of their names."""
    folder = tmp_path / SESSION / "subagents"
    folder.mkdir(parents=True)
    t = Transcript()
    t.user("How many lines?")
    t.assistant("msg_1", call("toolu_0", "Task", prompt="Count."))
    t.write(tmp_path)
    for number, name in enumerate(names):
        t = Transcript(SESSION)
        t._count = 500 + 100 * number
        side: dict[str, Any] = {"isSidechain": True, "agentId": name}
        t.user(f"Count {number}.", parent=None, **side)
        t.assistant(f"msg_{name}", call(f"toolu_{number + 1}", "Task", prompt="Count."), **side)
        t.write(folder, f"agent-{name}")
        about = {"description": f"Count {number}", "toolUseId": f"toolu_{number}"}
        (folder / f"agent-{name}.meta.json").write_text(json.dumps(about))
    repo = Repo.memory()
    repo.transcripts.import_(tmp_path)
    session = f"refs/heads/sessions/claude-code/{SESSION}"
    above = [session, *(f"{session}/agents/{name}" for name in names)]
    found = {each.ref: each for each in repo.agents.list()}
    assert [found[ref].parent for ref in above[1:]] == above[:-1]
    assert [found[ref].purpose for ref in above[1:]] == ["Count 0", "Count 1", "Count 2"]
    lines = [{each.oid for each in repo.log(ref)} for ref in above]
    assert all(one < other for one, other in pairwise(lines))
    assert [each.ref for each in repo.agents.list(parent=above[1])] == [above[2]]
    assert repo.transcripts.import_(tmp_path).commits == 0


@pytest.mark.parametrize("about", ["", "[]", "{", '{"toolUseId": 3, "description": null}'])
def test_a_file_about_a_subagent_that_says_nothing(tmp_path: Path, about: str) -> None:
    agent = agent_file().write(tmp_path, "agent-a1b2c3")
    (tmp_path / "agent-a1b2c3.meta.json").write_text(about)
    repo = Repo.memory()
    repo.transcripts.import_(agent)
    (found,) = repo.agents.list()
    assert (found.call, found.purpose) == ("", "")


def test_a_subagent_imported_before_its_session_moves_when_its_call_is_known(
    tmp_path: Path,
) -> None:
    agent = agent_file().write(tmp_path, "agent-a1b2c3")
    store = Store.memory()
    import_paths(Writer(store), [agent])
    name = f"{SESSION}/agents/a1b2c3"
    alone = branches(store)[name]
    assert len(commits(store, alone)) == 4
    assert store.refs.head().ref == f"refs/heads/sessions/claude-code/{name}"
    for path in [*files_below(store.disk, store.layout.local_dir)]:
        store.disk.remove(path)  # as in a clone, which does not know how far the file was read
    report = import_paths(Writer(store), [calling_session().write(tmp_path), agent])
    assert len(commits(store, branches(store)[name])) == 6
    assert context(store, branches(store)[name]) == context(store, alone)
    assert list(report.files[1].trashed) == [
        f"refs/trash/heads/sessions/claude-code/{name}/{alone.short()}"
    ]


def test_a_rewind_leaves_a_branch_and_goes_on_before_it(tmp_path: Path) -> None:
    t = Transcript()
    t.user("First.")
    t.assistant("msg_1", text("One."), stop="end_turn")
    end = t.last
    t.system("turn_duration")
    t.user("Second, to be taken back.")
    left = t.last
    t.assistant("msg_2", text("Two."), stop="end_turn")
    t.user("Second, again.", parent=end)
    t.assistant("msg_3", text("Three."), stop="end_turn")
    store = imported(t, tmp_path)
    found = branches(store)
    assert set(found) == {SESSION, f"{SESSION}/rewinds/{str(left)[:8]}"}
    assert context(store, found[SESSION]) == [
        "user: First.",
        "assistant: One.",
        "user: Second, again.",
        "assistant: Three.",
    ]
    assert context(store, found[f"{SESSION}/rewinds/{str(left)[:8]}"])[2:] == [
        "user: Second, to be taken back.",
        "assistant: Two.",
    ]


def test_a_rewind_to_the_very_start(tmp_path: Path) -> None:
    t = Transcript()
    start = t.add({"type": "progress", "data": {"type": "hook_progress"}}, parent=None)
    t.user("Wrong.", parent=start)
    t.assistant("msg_1", text("Yes?"), stop="end_turn")
    t.user("Right.", parent=start)
    t.assistant("msg_2", text("Yes."), stop="end_turn")
    store = imported(t, tmp_path)
    assert context(store, branches(store)[SESSION]) == ["user: Right.", "assistant: Yes."]
    assert len(branches(store)) == 2


def test_two_terminals_in_one_file_stay_apart(tmp_path: Path) -> None:
    t = Transcript()
    t.user("First.")
    t.assistant("msg_1", text("One."), stop="end_turn")
    end = t.last
    a = t.user("From here.", parent=end)
    b = t.user("From there.", parent=end)
    t.assistant("msg_2", text("For here."), parent=a)
    t.assistant("msg_3", text("For there."), parent=b)
    store = imported(t, tmp_path)
    found = branches(store)
    (other,) = [name for name in found if "/rewinds/" in name]
    assert context(store, found[SESSION])[2:] == ["user: From there.", "assistant: For there."]
    assert context(store, found[other])[2:] == ["user: From here.", "assistant: For here."]


def test_links_that_lead_nowhere_and_combs_are_no_rewinds(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Go.")
    one = t.assistant("msg_1", call("toolu_1"))
    two = t.assistant("msg_1", call("toolu_2"))
    t.result("toolu_2", "two", parent=two)
    t.result("toolu_1", "one", parent=one)
    t.assistant("msg_2", text("Done."), parent=one)
    t.add({"type": "progress", "data": {"type": "hook_progress"}}, parent="not-in-this-file")
    t.user("And now?")
    t.assistant("msg_3", text("Nothing."))
    store = imported(t, tmp_path)
    assert list(branches(store)) == [SESSION]
    assert context(store, branches(store)[SESSION]) == [
        "user: Go.",
        "assistant: toolu_1 | toolu_2",
        "tool: toolu_2=two | toolu_1=one",
        "assistant: Done.",
        "user: And now?",
        "assistant: Nothing.",
    ]


def test_a_cleared_context_begins_anew(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Plan it.")
    t.assistant("msg_1", text("Here is the plan."))
    t.add(
        {"type": "progress", "data": {"type": "hook_progress", "hookName": "SessionStart:clear"}},
        parent=None,
    )
    t.user("Implement the plan.")
    t.assistant("msg_2", text("Done."))
    store = imported(t, tmp_path)
    assert context(store, branches(store)[SESSION]) == [
        "user: Implement the plan.",
        "assistant: Done.",
    ]
    assert len(entries(store, branches(store)[SESSION])) == 4


def test_a_file_without_links_is_one_line_in_file_order(tmp_path: Path) -> None:
    t = Transcript()
    for number in range(3):
        t.user(f"Question {number}", parent=None)
        t.assistant(f"msg_{number}", text(f"Answer {number}"), parent=None)
    store = imported(t, tmp_path)
    assert len(context(store, branches(store)[SESSION])) == 6


def copied(t: Transcript, session: str, *, keep: int) -> Transcript:
    """What forking a session writes: its records again, under another session's id."""
    other = Transcript(session)
    other.lines = [line.replace(t.session, session) for line in t.lines[:keep]]
    other.last, other._count = t.last, 900
    return other


def test_a_copied_session_goes_on_from_the_same_commits(tmp_path: Path) -> None:
    t = Transcript()
    t.user("First.")
    t.assistant("msg_1", text("One."), stop="end_turn")
    t.user("Second.")
    t.assistant("msg_2", text("Two."), stop="end_turn")
    fork = copied(t, "aaaaaaaa-1111-4222-8333-944455556666", keep=4)
    fork.user("Another way.")
    fork.assistant("msg_3", text("This way."), stop="end_turn")
    store = Store.memory()
    report = import_paths(Writer(store), [t.write(tmp_path), fork.write(tmp_path)])
    assert [file.commits for file in report.files] == [4, 2]
    assert report.files[1].commits_shared == 4
    found = branches(store)
    first, second = (commits(store, found[s]) for s in (t.session, fork.session))
    assert [c.encode() for c in second[:4]] == [c.encode() for c in first]
    assert import_paths(Writer(store), [str(tmp_path)]).commits == 0, "and again adds nothing"


def test_a_copy_keeps_what_it_has_beside_the_messages(tmp_path: Path) -> None:
    t = Transcript()
    t.user("First.")
    t.assistant("msg_1", text("One."), stop="end_turn")
    fork = copied(t, "aaaaaaaa-1111-4222-8333-944455556666", keep=1)
    fork.bare({"type": "mode", "mode": "plan"})
    fork.lines.append(t.lines[1].replace(t.session, fork.session))
    fork.user("On.")
    store = Store.memory()
    import_paths(Writer(store), [t.write(tmp_path), fork.write(tmp_path)])
    assert b'{"type":"mode","mode":"plan"}' in raw_records(store)


def test_two_people_get_the_same_commits(tmp_path: Path) -> None:
    stores = []
    for person in ("ada", "ben"):
        home = tmp_path / person / "deep"
        home.mkdir(parents=True)
        stores.append(imported(lively(), home))
    assert branches(stores[0]) == branches(stores[1])


def test_a_late_result_does_not_follow_one_that_was_taken_back(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Read both.")
    calling = t.assistant("msg_1", call("toolu_1"), call("toolu_2"))
    t.result("toolu_2", "two")
    t.assistant("msg_2", text("Half of it."))
    t.user("Wait for the other one.", parent=calling)
    t.result("toolu_1", "one, at last")
    store = imported(t, tmp_path)
    assert context(store, branches(store)[SESSION]) == [
        "user: Read both.",
        "assistant: toolu_1 | toolu_2",
        "tool: toolu_1=one, at last",
        "user: Wait for the other one.",
    ]


def test_a_late_result_is_cleared_with_its_call(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Read it.")
    t.assistant("msg_1", call("toolu_1"))
    t.assistant("msg_2", text("Meanwhile."))
    start = t.add({"type": "progress", "data": {"type": "hook_progress"}}, parent=None)
    t.user("Something else.", parent=start)
    t.result("toolu_1", "one, at last")
    store = imported(t, tmp_path)
    assert context(store, branches(store)[SESSION]) == ["user: Something else."]
