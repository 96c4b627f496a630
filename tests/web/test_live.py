"""Events: subscribe, then fetch, then apply; what was missed comes after a reconnection, or the page starts over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from trace_store.repo.repository import Repo
from trace_store.web.live import QUEUED, Hub, Watch


def parsed(raw: bytes) -> tuple[str, str, Any]:
    fields = dict(line.split(": ", 1) for line in raw.decode().strip().split("\n"))
    return fields["id"], fields["event"], json.loads(fields["data"])


async def next_of(stream: AsyncIterator[bytes]) -> tuple[str, str, Any]:
    return parsed(await asyncio.wait_for(anext(stream), 5))


async def begun(hub: Hub, last: str = "") -> tuple[AsyncIterator[bytes], str]:
    stream = hub.events(last)
    raw = await anext(stream)
    assert raw.startswith(b"retry: 2000\n\n")
    id_, kind, data = parsed(raw.removeprefix(b"retry: 2000\n\n"))
    assert (kind, data) == ("hello", {"position": id_})
    return stream, id_


def test_a_page_hears_hello_and_then_each_event_once_and_in_order() -> None:
    async def run() -> None:
        hub = Hub()
        hub.publish("moved", ref="early")
        stream, position = await begun(hub)
        for number in range(5):
            hub.publish("moved", ref=str(number))
        found = [await next_of(stream) for _ in range(5)]
        assert [data["ref"] for _, _, data in found] == list("01234")
        assert len({position, *(id_ for id_, _, _ in found)}) == 6
        hub.close()
        assert [each async for each in stream] == []

    asyncio.run(run())


def test_what_was_missed_comes_after_a_reconnection() -> None:
    async def run() -> None:
        hub = Hub()
        stream, _ = await begun(hub)
        for number in range(3):
            hub.publish("moved", ref=str(number))
        last, _, _ = await next_of(stream)
        again, position = await begun(hub, last)
        assert position.endswith("-3")
        assert [(await next_of(again))[2]["ref"] for _ in range(2)] == ["1", "2"]

    asyncio.run(run())


def test_a_page_that_missed_too_much_or_knew_another_server_starts_over() -> None:
    async def run() -> None:
        hub = Hub()
        _, position = await begun(hub)
        for number in range(QUEUED + 1):
            hub.publish("moved", ref=str(number))
        for last in (position, "feed-1", "nonsense", f"{position.partition('-')[0]}-999999"):
            stream, _ = await begun(hub, last)
            assert (await next_of(stream))[1] == "reset"

    asyncio.run(run())


def test_a_slow_page_starts_over_and_others_miss_nothing() -> None:
    async def run() -> None:
        hub = Hub()
        slow, _ = await begun(hub)
        quick, _ = await begun(hub)
        for number in range(QUEUED + 10):
            hub.publish("moved", ref=str(number))
            assert (await next_of(quick))[2]["ref"] == str(number)
        kinds = [(await next_of(slow))[1] for _ in range(10)]
        assert kinds[0] == "reset"
        assert "moved" in kinds

    asyncio.run(run())


def test_moves_of_refs_are_told() -> None:
    async def run() -> None:
        with Repo.memory() as repo:
            hub = Hub()
            watch = Watch(repo.store, hub, asyncio.get_running_loop())
            stream, _ = await begun(hub)
            made = await asyncio.to_thread(repo.append, "user", "hello")
            _, kind, data = await next_of(stream)
            assert kind == "moved"
            assert data == {"ref": "refs/heads/main", "commit": made.oid.hex()}
            watch.close()

    asyncio.run(run())
