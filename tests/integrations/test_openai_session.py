"""The session of the OpenAI Agents SDK: beside SQLiteSession, call by call."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from trace_store import Repo, errors

agents = pytest.importorskip("agents", reason="openai-agents is not installed")
from trace_store.integrations.openai_session import TraceSession  # noqa: E402

BATCHES: list[list[Any]] = [
    [{"role": "user", "content": "Weather? 😀 \ud800"}],
    [
        {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "Two cities."}],
            "encrypted_content": "gAAAA",
        },
        *(
            {
                "type": "function_call",
                "id": f"fc_{n}",
                "call_id": f"call_{n}",
                "name": "look",
                "arguments": "{}",
            }
            for n in (1, 2)
        ),
    ],
    [{"type": "function_call_output", "call_id": f"call_{n}", "output": "rain"} for n in (1, 2)],
    [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "Rain.", "annotations": [], "logprobs": []}
            ],
        }
    ],
    [{"kind": "of no known form", "n": [1.5, None, 2**70]}],
]
TURN = [item for batch in BATCHES[:4] for item in batch]
APPEND = """
import asyncio, sys
from trace_store import Repo
from trace_store.integrations.openai_session import TraceSession
with Repo.open(sys.argv[1], durability="fast") as repo:
    session = TraceSession("s", repo)
    for number in range(10):
        texts = [f"{sys.argv[2]}{number}.{at}" for at in range(3)]
        asyncio.run(session.add_items([{"role": "user", "content": text} for text in texts]))
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with Repo.init(tmp_path, author="ada", durability="fast") as made:
        yield made


def shown(repo: Repo, session: TraceSession) -> list[str]:
    return [message.role for message in repo.compile(session.ref)]


@pytest.mark.parametrize("seed", range(4))
def test_each_call_returns_what_sqlite_session_returns(repo: Repo, seed: int) -> None:
    chance = random.Random(seed)

    async def compare() -> None:
        theirs, ours = agents.SQLiteSession("s"), TraceSession("s", repo)
        for _ in range(40):
            call = chance.choices(["add", "pop", "clear", "reopen"], [9, 9, 1, 1])[0]
            if call == "add":
                batch = chance.choice(BATCHES)
                await theirs.add_items(batch)
                await ours.add_items(batch)
            elif call == "pop":
                assert await ours.pop_item() == await theirs.pop_item()
            elif call == "clear":
                await theirs.clear_session()
                await ours.clear_session()
            else:
                ours = TraceSession("s", repo)
            limit = chance.choice([None, 0, 1, 3, -1])
            assert await ours.get_items(limit) == await theirs.get_items(limit)
        theirs.close()

    asyncio.run(compare())


def test_a_session_reads_like_a_branch_and_pop_takes_exactly_the_last_item(repo: Repo) -> None:
    session = TraceSession("s", repo)
    for batch in BATCHES[:4]:
        asyncio.run(session.add_items(batch))
    assert shown(repo, session) == ["user", "assistant", "tool", "tool", "assistant"]
    request = repo.compile(session.ref).render("openai-responses").request
    assert [item["call_id"] for item in request["input"][-5:-1]] == ["call_1", "call_2"] * 2

    popped = [asyncio.run(session.pop_item()) for _ in range(3)]
    assert popped == TURN[:3:-1]
    assert shown(repo, session) == ["user", "assistant"]
    asyncio.run(session.add_items(BATCHES[2]))
    assert asyncio.run(session.get_items()) == TURN[:-1]
    assert shown(repo, session) == ["user", "assistant", "tool", "tool"]


def test_a_fork_shares_the_items_before_it_and_a_clear_keeps_them(repo: Repo) -> None:
    session = TraceSession("customer 7/é", repo)
    asyncio.run(session.add_items(TURN))
    fork = asyncio.run(session.fork("second try", keep=2))
    asyncio.run(fork.add_items(BATCHES[3]))

    assert asyncio.run(fork.get_items()) == [*TURN[:2], *BATCHES[3]]
    assert asyncio.run(session.get_items()) == TURN
    with pytest.raises(errors.AlreadyExistsError):
        asyncio.run(session.fork("second try"))
    with pytest.raises(errors.InvalidInputError, match=r"keep is 0 to 7"):
        asyncio.run(session.fork("third", keep=8))

    asyncio.run(session.clear_session())
    cleared, main, other = asyncio.run(session.branches())
    assert main == "main"
    assert cleared.startswith("cleared-")
    assert other == "second try"
    again = TraceSession("customer 7/é", repo, branch=cleared)
    assert asyncio.run(again.get_items()) == TURN


def test_delete_erases_what_was_ever_in_the_session(repo: Repo) -> None:
    session, other = TraceSession("s", repo), TraceSession("t", repo)
    gone = []
    for add in ("first", "second"):
        asyncio.run(session.add_items([{"role": "user", "content": add}]))
        asyncio.run(other.add_items([{"role": "user", "content": f"{add} of t"}]))
        gone.append(repo.resolve(session.ref))
    asyncio.run(session.pop_item())
    asyncio.run(session.clear_session())
    asyncio.run(session.delete())

    assert asyncio.run(session.get_items()) == []
    assert not any(repo.store.objects.contains(oid) for oid in gone)
    assert len(asyncio.run(other.get_items())) == 2


def test_an_agent_runs_on_it(repo: Repo) -> None:
    from agents.testing import ScriptedModel
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    def said(text: str) -> Any:
        content: list[Any] = [
            ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
        ]
        fields: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant"}
        return ResponseOutputMessage(**fields, content=content, status="completed")

    agents.set_tracing_disabled(True)
    model = ScriptedModel([[said("Hello Ada.")], [said("You are Ada.")]])
    session = TraceSession("s", repo)

    async def talk() -> None:
        agent = agents.Agent(name="guide", model=model)
        await agents.Runner.run(agent, "I am Ada.", session=session)
        await agents.Runner.run(agent, "Who am I?", session=session)

    asyncio.run(talk())
    texts = [message.text for message in repo.compile(session.ref)]
    assert texts == ["I am Ada.", "Hello Ada.", "Who am I?", "You are Ada."]


def test_twenty_threads_and_two_processes_lose_no_item(repo: Repo, tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", APPEND, str(tmp_path), "a"])

    def add(name: str) -> None:
        session = TraceSession("s", repo)
        texts = [f"{name}0.{at}" for at in range(3)]
        asyncio.run(session.add_items([{"role": "user", "content": text} for text in texts]))

    names = [chr(ord("b") + n) for n in range(20)]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(add, names))
    assert other.wait() == 0

    items: list[Any] = asyncio.run(TraceSession("s", repo).get_items())
    texts = [item["content"] for item in items]
    assert len(texts) == 3 * (10 + 20)
    batches = [texts[at : at + 3] for at in range(0, len(texts), 3)]
    for name, count in [("a", 10)] + [(name, 1) for name in names]:
        mine = [batch for batch in batches if batch[0][0] == name]
        assert mine == [[f"{name}{n}.{at}" for at in range(3)] for n in range(count)]
    assert [message.text for message in repo.compile(TraceSession("s", repo).ref)] == texts


def test_a_cancelled_append_is_stored_or_not_before_the_caller_goes_on(repo: Repo) -> None:
    session = TraceSession("s", repo)

    async def cancel() -> list[Any]:
        task = asyncio.create_task(session.add_items(BATCHES[0]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.get_items()

    found = asyncio.run(cancel())
    assert found in ([], BATCHES[0])
    assert asyncio.run(session.get_items()) == found


def test_bad_input_is_refused_and_nothing_stored(repo: Repo) -> None:
    with pytest.raises(errors.InvalidInputError, match="session_id must not be empty"):
        TraceSession("", repo)
    session = TraceSession("s", repo)
    with pytest.raises(errors.InvalidInputError, match="the item is not a JSON value"):
        asyncio.run(session.add_items([*BATCHES[0], {"content": object()}]))  # type: ignore[list-item]
    with pytest.raises(errors.NotFoundError, match="no items"):
        asyncio.run(session.fork("other"))
    assert asyncio.run(session.get_items()) == []
