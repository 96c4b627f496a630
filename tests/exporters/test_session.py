"""Sessions read for export: branch, messages, and facts from their commits."""

from __future__ import annotations

from pathlib import Path

import pytest

import trace_store
from tests.exporters.support.sessions import MODEL, rich_repository, rich_session
from tests.importers.support.transcripts import Transcript, call
from trace_store.context.compiler import ContextCompiler
from trace_store.contracts import RefEdit, Transaction
from trace_store.errors import (
    AmbiguousRevisionError,
    MessageNotFoundError,
    RevisionNotFoundError,
    UnbornBranchError,
)
from trace_store.exporters.contract import models_of
from trace_store.exporters.overview import number_turns, result_turns, tool_calls
from trace_store.exporters.session import find_branch, read_session
from trace_store.history import commit
from trace_store.history.draft import Draft
from trace_store.importers.import_paths import import_paths
from trace_store.objects import operations
from trace_store.objects.address import Address
from trace_store.objects.message import Message
from trace_store.objects.parts import ToolResult
from trace_store.repo.repository import Repo
from trace_store.store.store import Store
from trace_store.writer import Writer

SAMPLE = Path(trace_store.__file__).parent / "samples" / "claude-code.jsonl"
SESSION = "89c670d1-13e6-5e56-a540-26baed822c05"
BRANCH = f"refs/heads/sessions/claude-code/{SESSION}"


@pytest.fixture
def store() -> Store:
    store = Store.memory()
    import_paths(Writer(store), [str(SAMPLE)])
    return store


def move(store: Store, ref: str, to: str) -> None:
    """Let a branch end where another does."""
    oid = store.refs.read(to)
    store.transact(lambda _: Transaction([], [RefEdit(ref, oid, None)], "test"))


@pytest.mark.parametrize(
    "name",
    [
        "HEAD",
        BRANCH,
        f"sessions/claude-code/{SESSION}",
        SESSION,
        SESSION[:8],
        "89c",
        f"claude-code/{SESSION[:4]}",
        f"sessions/claude-code/{SESSION[:4]}",
    ],
)
def test_a_session_is_found_by_branch_and_by_id(store: Store, name: str) -> None:
    session = read_session(store, name)
    assert (session.id, session.format, session.thread) == (SESSION, "claude-code", "")
    assert session.ref == BRANCH
    assert session.commit == store.refs.read(BRANCH)


def test_an_earlier_commit_of_a_session_is_still_of_that_session(store: Store) -> None:
    session = read_session(store, f"{SESSION[:8]}~2")
    assert session.ref == BRANCH
    assert session.commit != store.refs.read(BRANCH)
    assert len(session.turns) < len(read_session(store).turns)
    by_id = read_session(store, session.commit.hex())
    assert (by_id.ref, by_id.format, by_id.id) == ("", "", session.commit.short())
    assert [t.message.address for t in by_id.turns] == [t.message.address for t in session.turns]


def test_several_sessions_that_begin_alike_are_named(store: Store) -> None:
    other = BRANCH[:-1] + "6"
    move(store, other, BRANCH)
    with pytest.raises(AmbiguousRevisionError) as error:
        read_session(store, SESSION[:8])
    names = [name.removeprefix("refs/heads/") for name in (BRANCH, other)]
    assert error.value.candidates == names
    assert read_session(store, SESSION).ref == BRANCH


def test_a_session_wins_over_the_id_of_a_commit_where_a_session_is_meant(store: Store) -> None:
    tip = store.refs.read(BRANCH)
    assert tip is not None
    branch = f"refs/heads/sessions/claude-code/{tip.hex()[:12]}-session"
    move(store, branch, BRANCH)
    assert find_branch(store, tip.hex()[:12]) == find_branch(store, f"{tip.hex()[:12]}~1") == branch
    assert read_session(store, tip.hex()[:12]).ref == branch
    assert read_session(store, tip.hex()[:16]).ref == ""


def test_what_is_no_session_is_refused(store: Store) -> None:
    for name in ("zzz", "claude-code/zzz", "89c670d1~99"):
        with pytest.raises(RevisionNotFoundError):
            read_session(store, name)
    with pytest.raises(UnbornBranchError):
        read_session(Store.memory())


def test_turns_are_the_context_with_what_commits_know(store: Store) -> None:
    repo = Repo(store)
    session = read_session(store, contexts=repo.contexts)
    context = repo.compile()
    assert [t.message.message() for t in session.turns] == [m.message() for m in context]
    assert [t.time for t in session.turns] == sorted(t.time for t in session.turns)
    assert {t.commit for t in session.turns} <= {entry.oid for entry in repo.log()}
    assert session.model == models_of(session.turns)[-1]
    assert all(t.message.role == "assistant" for t in session.turns if t.usage)
    reports = sum(1 for e in repo.log() for o in e.commit.operations if o.name == "usage")
    assert sum(1 for t in session.turns if t.usage) == reports > 0


def test_facts_come_from_the_records(store: Store) -> None:
    session = read_session(store)
    facts = session.facts()
    assert facts.session == SESSION
    assert (facts.cwd, facts.version, facts.branch) == ("/home/user/wordcount", "2.1.29", "main")
    raw = SAMPLE.read_bytes()
    assert all(record in raw for turn in session.turns for record in session.records(turn))
    without = Store.memory()
    import_paths(Writer(without), [str(SAMPLE)], source=False)
    bare = read_session(without)
    assert not any((bare.facts().cwd, bare.facts().session, bare.records(bare.turns[0])))


def test_the_latest_title_counts(tmp_path: Path) -> None:
    lines = SAMPLE.read_bytes().splitlines()
    titles = [f'{{"type":"ai-title","aiTitle":"{title}"}}'.encode() for title in ("Old", "New")]
    path = tmp_path / "titled.jsonl"
    path.write_bytes(b"\n".join([titles[0], *lines, titles[1]]) + b"\n")
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    assert read_session(store).facts().title == "New"


def test_branches_below_can_be_read(store: Store) -> None:
    for name in ("agents/a1", "rewinds/r1", "copies/c1", "agents/a1/rewinds/r2"):
        move(store, f"{BRANCH}/{name}", BRANCH)
    session = read_session(store)
    assert [(b.kind, b.name) for b in session.below] == [
        ("agents", "a1"),
        ("copies", "c1"),
        ("rewinds", "r1"),
    ]
    (agent,) = session.subagents
    inner = read_session(store, agent.ref)
    assert (inner.id, inner.thread, inner.ref) == (SESSION, "agents/a1", agent.ref)


def test_hidden_messages_come_along_when_they_are_asked_for() -> None:
    shown, whole = rich_session(), rich_session(hidden=True)
    assert {t.hidden for t in shown.turns} == {""}
    said = [(t.hidden, t.message.text.split("\n")[0]) for t in whole.turns if t.message.text]
    assert ("removed", "A message that was removed.") in said
    assert ("skipped", "A message that was skipped.") in said
    parts = [("replaced", f"Long talk, part {n}.") for n in range(3)]
    assert [each for each in said if each[0] == "replaced"] == parts
    summary = said.index(("", "A summary of the talk."))
    assert said[summary - 3 : summary] == parts, "what was replaced stands before its summary"
    (turn,) = [t for t in whole.turns if t.reason]
    assert (turn.reason, turn.replaced) == ("compaction", 3)
    kept = [t.message.address for t in whole.turns if not t.hidden]
    assert kept == [t.message.address for t in shown.turns if not t.message.ghost]
    assert whole.hidden_count == shown.hidden_count == len(whole.turns) - len(kept)


def test_a_report_goes_with_one_message() -> None:
    session = rich_session()
    (turn,) = [t for t in session.turns if t.usage]
    assert turn.message.id == "msg_1"
    assert turn.usage is not None
    assert (turn.usage.input_total, turn.usage.output_total) == (1020, 30)


def test_a_report_of_its_own_goes_with_the_answer_before_it() -> None:
    repo = rich_repository()
    repo.append("user", "And?")
    repo.commit([Message("assistant", "First.", model=MODEL), Message("assistant", "Second.")])
    repo.append("user", "Thanks.")
    repo.record_usage({"input_tokens": 7, "output_tokens": 3})
    session = read_session(repo.store)
    told = [t.message.text for t in session.turns if t.usage and t.usage.input_total == 7]
    assert told == ["Second."]


def test_a_carried_message_is_told_of_as_it_was_made() -> None:
    """Author and time are those of the first commit, if present, else of the carrier."""
    store = Store.memory()
    commit.commit(Writer(store, author="ada").on("side"), [Message("user", "First.")])
    there = store.refs.read("refs/heads/side")
    assert there is not None
    (entry,) = ContextCompiler(store).fold(there).entries
    gone = {**entry.to_carried(), "born": [bytes(16), 0]}
    draft = Draft(Writer(store, author="ben").on("main"))
    draft.operations += [operations.add([entry.to_carried(), gone])]
    written = commit.write(draft)
    one, other = read_session(store, "main").turns
    assert (one.commit, one.author, one.message.address) == (there, "ada", entry.address)
    assert (other.commit, other.author) == (written.oid, "ben")
    assert other.message.address == Address(bytes(16), 0)


def test_a_result_leads_to_its_own_call(tmp_path: Path) -> None:
    t = Transcript()
    t.user("Look.")
    t.assistant("msg_1", call("call_0", "Read"))
    t.result("call_0", "first")
    t.assistant("msg_2", call("call_0", "Bash"))
    t.result("call_0", "second")
    store = Store.memory()
    import_paths(Writer(store), [t.write(tmp_path)])
    session = read_session(store)
    results = [p for turn in session.turns for p in turn.message.parts if isinstance(p, ToolResult)]
    told = tool_calls(session)
    assert [told[r.call, r.call_id][0] for r in results] == ["Read", "Bash"]
    assert len(result_turns(session)) == 2


def test_a_hidden_message_has_its_last_wording() -> None:
    repo = Repo.memory()
    address = repo.append("user", "First words.").addresses[0]
    repo.edit(address, "Other words.")
    repo.remove(address, ghost=True)
    (turn,) = repo.sessions.read(hidden=True).turns
    assert (turn.hidden, turn.message.text) == ("removed", "Other words.")


@pytest.mark.parametrize("hidden", [False, True])
def test_a_part_of_a_session_has_the_turns_and_numbers_of_the_whole(hidden: bool) -> None:
    repo = rich_repository()
    whole = repo.sessions.read(hidden=hidden)
    numbers = list(number_turns(whole))
    for start in range(len(whole.turns)):
        part = repo.sessions.part(start=start, count=3, hidden=hidden)
        addresses = [turn.message.address for turn in part.turns]
        assert addresses == [t.message.address for t in whole.turns[start : start + 3]]
        for (_, own), (_, same) in zip(number_turns(part), numbers[start : start + 3], strict=True):
            assert (own.number, own.tokens) == (same.number, same.tokens)
            # What comes before a part is scaled as one sum, and not message by message.
            assert own.tokens is None or abs(own.total - same.total) <= start
        assert (part.start, part.count) == (start, len(whole.turns))
    last = repo.sessions.part(count=2, hidden=hidden)
    assert [t.message.address for t in last.turns] == [t.message.address for t in whole.turns[-2:]]


def test_a_part_is_found_by_a_message_in_its_middle() -> None:
    repo = rich_repository()
    whole = repo.sessions.read(hidden=True)
    middle = whole.turns[5].message.address
    part = repo.sessions.part(around=middle, count=5, hidden=True)
    assert part.turns[2].message.address == middle
    gone = next(turn for turn in whole.turns if turn.hidden == "replaced").message.address
    with pytest.raises(MessageNotFoundError):
        repo.sessions.part(around=gone)
