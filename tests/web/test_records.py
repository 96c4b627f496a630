"""Threads that frameworks store, on the pages."""

from __future__ import annotations

from tests.web.support.client import Client
from trace_store.base.ident import FixedClock
from trace_store.history.records import Records, record_name
from trace_store.repo.repository import Repo


def test_a_thread_of_a_framework_is_listed_read_and_changed_like_a_session() -> None:
    repo = Repo.memory(clock=FixedClock())
    name = record_name("langgraph", "Trip for Ada", "root", "main")
    draft = Records(repo.writer).draft(name)
    draft.set("state", "json", b"{}")
    draft.messages.append("user", "Plan the trip")
    draft.write({"langgraph.thread": "Trip for Ada"})
    client = Client(repo)
    assert "Trip for Ada" in client.page("/", agent="langgraph")
    assert "No session matches" in client.page("/", agent="langgraph", q="lexer")
    page = client.page("/session", name=name)
    assert "Plan the trip" in page
    assert "Trip for Ada" in page
    assert "Plan the trip" in client.page("/context", name=name)
    assert client.part("/marks", name=name) == {"marks": []}
    assert "tokens" in client.part("/outline", name=name)["html"]
    address = str(repo.compile(name).messages[0].address)
    client.act("pin", session=name, message=address)
    client.act("remove", session=name, message=address)
    assert not repo.compile(name).messages
    client.act("undo", session=name)
    assert [each.text for each in repo.compile(name).messages] == ["Plan the trip"]
