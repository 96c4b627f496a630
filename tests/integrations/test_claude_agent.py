"""The session store of the Claude Agent SDK: entries come back exactly, and their messages read like a branch."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trace_store import Repo, errors
from trace_store.integrations.claude_agent import TraceSessionStore

KEY = {"project_key": "-home-ada-demo", "session_id": "5f0c1a52-6f0e-4f0e-9d7e-0c2f6b1f9a10"}
AGENT = {**KEY, "subpath": "subagents/agent-1"}
APPEND = """
import asyncio, sys
from trace_store import Repo
from trace_store.integrations.claude_agent import TraceSessionStore
with Repo.open(sys.argv[1], durability="fast") as repo:
    store = TraceSessionStore(repo)
    for number in range(20):
        entries = [{"type": "x", "uuid": f"{sys.argv[2]}{number}.{at}"} for at in range(3)]
        asyncio.run(store.append({"project_key": "p", "session_id": "s"}, entries))
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with Repo.init(tmp_path, author="ada", durability="fast") as made:
        yield made


def user(uuid: str, text: str, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {
        "type": "user",
        "uuid": uuid,
        "timestamp": "2026-11-28T08:00:00Z",
        "message": message,
        **fields,
    }


def answer(uuid: str, *blocks: dict[str, Any], id: str = "msg_1") -> dict[str, Any]:
    message = {"id": id, "role": "assistant", "model": "claude-test", "content": [*blocks]}
    return {"type": "assistant", "uuid": uuid, "message": message}


TEXT = {"type": "text", "text": "I look."}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.py"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "the text of a.py"}
SESSION = [
    {"type": "queue-operation", "operation": "dequeue", "sessionId": "5f0c"},
    user("u1", "What does a.py say? 😀 \ud800"),
    answer("a1", TEXT),
    answer("a2", CALL),
    {
        **user("u2", ""),
        "message": {"role": "user", "content": [RESULT]},
        "toolUseResult": {"n": 1.5},
    },
    {"type": "custom-title", "customTitle": "Reading", "leaf": None},
]


def test_the_official_contracts_hold(tmp_path: Path) -> None:
    kit = pytest.importorskip(
        "claude_agent_sdk.testing",
        reason="claude-agent-sdk has 176 MB: `nox -s claude_agent` installs it",
    )
    made: list[Repo] = []

    def make() -> TraceSessionStore:
        made.append(Repo.init(tmp_path / str(len(made)), durability="fast"))
        return TraceSessionStore(made[-1])

    asyncio.run(kit.run_session_store_conformance(make))
    for each in made:
        each.close()
    assert len(made) >= 14


def test_entries_come_back_exactly_and_read_like_a_branch(repo: Repo) -> None:
    store = TraceSessionStore(repo)
    asyncio.run(store.append(KEY, SESSION[:3]))
    asyncio.run(store.append(KEY, SESSION[3:]))
    asyncio.run(store.append(AGENT, [user("s1", "Search for it.", isSidechain=True)]))

    assert asyncio.run(TraceSessionStore(repo).load(KEY)) == SESSION
    context = repo.compile(store.ref(KEY))
    assert [message.role for message in context] == ["user", "assistant", "assistant", "tool"]
    assert context.render("anthropic").request["messages"][1]["content"] == [TEXT, CALL]
    assert [message.text for message in repo.compile(store.ref(AGENT))] == ["Search for it."]
    assert [hit.ref for hit in repo.search("look")] == [store.ref(KEY)]


def test_entries_with_a_stored_uuid_are_not_stored_again(repo: Repo) -> None:
    store, other = TraceSessionStore(repo), TraceSessionStore(repo)
    asyncio.run(store.append(KEY, SESSION[:3]))
    asyncio.run(other.append(KEY, SESSION[1:4]))
    asyncio.run(store.append(KEY, [SESSION[2], SESSION[0], SESSION[4], SESSION[4]]))

    assert asyncio.run(store.load(KEY)) == [*SESSION[:4], SESSION[0], SESSION[4]]


def test_a_compaction_hides_what_came_before_it_in_the_context_only(repo: Repo) -> None:
    store = TraceSessionStore(repo)
    summary = user("u9", "In short: read a.py.", isCompactSummary=True)
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b1"}
    asyncio.run(store.append(KEY, SESSION))
    asyncio.run(store.append(KEY, [boundary, summary]))

    assert [message.text for message in repo.compile(store.ref(KEY))] == ["In short: read a.py."]
    assert asyncio.run(store.load(KEY)) == [*SESSION, boundary, summary]


def test_sessions_subagents_and_their_times_are_listed(repo: Repo) -> None:
    store = TraceSessionStore(repo)
    asyncio.run(store.append(AGENT, SESSION[:1]))
    assert asyncio.run(store.list_sessions(KEY["project_key"])) == []
    asyncio.run(store.append(KEY, SESSION))
    asyncio.run(store.append({**KEY, "project_key": "-home-ada"}, SESSION))

    (listed,) = asyncio.run(store.list_sessions(KEY["project_key"]))
    newest = next(repo.log(ref=store.ref(KEY)))
    assert listed == {"session_id": KEY["session_id"], "mtime": newest.time}
    assert asyncio.run(store.list_subkeys(KEY)) == ["subagents/agent-1"]


def test_deleting_a_session_erases_it_with_its_subagents(repo: Repo) -> None:
    store = TraceSessionStore(repo)
    other = {**KEY, "session_id": "other"}
    for key in (KEY, AGENT, other):
        asyncio.run(store.append(key, SESSION))
    gone = [repo.resolve(store.ref(key)) for key in (KEY, AGENT)]
    asyncio.run(store.delete(KEY))

    assert [asyncio.run(store.load(key)) for key in (KEY, AGENT)] == [None, None]
    assert not any(repo.store.objects.contains(oid) for oid in gone)
    assert asyncio.run(store.load(other)) == SESSION


def test_two_processes_append_to_one_session(repo: Repo, tmp_path: Path) -> None:
    command = [sys.executable, "-c", APPEND, str(tmp_path)]
    running = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [each.wait() for each in running] == [0, 0]

    loaded = (
        asyncio.run(TraceSessionStore(repo).load({"project_key": "p", "session_id": "s"})) or []
    )
    batches = [tuple(entry["uuid"] for entry in loaded[at : at + 3]) for at in range(0, 120, 3)]
    for name in "ab":
        mine = [batch for batch in batches if batch[0].startswith(name)]
        assert mine == [tuple(f"{name}{n}.{at}" for at in range(3)) for n in range(20)]


@pytest.mark.parametrize(
    "key", [{}, {**KEY, "session_id": ""}, {**KEY, "project_key": 3}, {**KEY, "subpath": ""}]
)
def test_a_key_that_is_not_valid_is_refused(repo: Repo, key: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidInputError, match="not empty"):
        asyncio.run(TraceSessionStore(repo).append(key, SESSION))


def test_an_entry_that_is_not_json_stores_nothing(repo: Repo) -> None:
    store = TraceSessionStore(repo)
    with pytest.raises(errors.InvalidInputError, match="not a JSON value"):
        asyncio.run(store.append(KEY, [SESSION[0], {"type": "x", "at": object()}]))
    assert asyncio.run(store.load(KEY)) is None
