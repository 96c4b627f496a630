"""Trace's lossless JSON: a rendered and reimported context has the same hashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.importers.support.checks import assert_grows, damaged, lines_of
from tests.importers.support.sound import HEADS, branches_of, import_damaged, imported, messages
from tests.support.message_strategies import contexts, tools
from trace_store.context.compiler import ContextCompiler
from trace_store.importers.import_paths import import_paths
from trace_store.objects.content import read_content
from trace_store.objects.message import Message, part_blobs
from trace_store.objects.parts import Text, ToolCall, ToolResult
from trace_store.providers.rendering import render
from trace_store.providers.wire import to_bytes
from trace_store.repo.repository import Repo
from trace_store.store.store import Store
from trace_store.writer import Writer


def rendered(repo: Repo, revision: str = "HEAD") -> bytes:
    """What `trace compile --as json` writes."""
    return to_bytes(repo.compile(revision).render("json").request)


def blobs(store: Store, tip: str) -> list[bytes]:
    """The ids of all content of a context, in order."""
    found: list[bytes] = []
    for message in ContextCompiler(store).compile(tip).messages:
        found += part_blobs(message.stored["parts"])
    return found


def again(data: bytes, folder: Path) -> Store:
    path = folder / "context.json"
    path.write_bytes(data)
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    return store


PLACE = HEADS + "trace-json/context"


@given(contexts.filter(bool), tools)
def test_it_comes_back(
    tmp_path_factory: pytest.TempPathFactory, given_: list[Message], schemas: list[dict[str, Any]]
) -> None:
    with Repo.memory() as repo:
        with repo.batch() as batch:
            batch.extend(given_)
            if schemas:
                batch.set_tools(schemas)
        context = repo.compile()
        store = again(rendered(repo), tmp_path_factory.mktemp("context"))
        found = ContextCompiler(store).compile(PLACE)
        said = [message.message() for message in context.messages]
        assert [message.message() for message in found.messages] == said
        assert found.prefix_hashes() == context.prefix_hashes()
        assert blobs(store, PLACE) == blobs(repo.store, "HEAD")
        assert found.tools == context.tools
        for message in found.messages:
            for oid in part_blobs(message.stored["parts"]):
                assert read_content(oid, store.objects.read) == read_content(
                    oid, repo.store.objects.read
                )


def test_priorities_labels_and_ghosts(tmp_path: Path) -> None:
    with Repo.memory() as repo:
        repo.append("user", "Plan the release.")
        repo.append("assistant", "Which one?")
        repo.append("user", "Never mind.")
        repo.annotate("HEAD~2.0", priority="pinned", labels=["plan", "é"])
        repo.remove("HEAD~1.0", ghost=True)
        before = repo.compile()
        store = again(rendered(repo), tmp_path)
        found = ContextCompiler(store).compile(PLACE)
        assert [m.text for m in found.messages] == [m.text for m in before.messages]
    assert found.messages[0].priority == "pinned"
    assert found.messages[0].labels == {"plan", "é"}
    ghost = found.messages[2]
    assert not ghost.ghost
    assert ghost.labels == {"ghost"}, "the message that it stands for is not in the form"


def test_a_session_goes_on_from_its_export(tmp_path: Path) -> None:
    """The form has each message's address, so that new messages are appended."""
    path = tmp_path / "context.json"
    with Repo.memory() as repo, Store.init(str(tmp_path / "p"), durability="fast") as store:
        for text in ("One.", "Two.", "Three."):
            repo.append("user", text)
            path.write_bytes(rendered(repo))
            import_paths(Writer(store), [str(path)])
        assert branches_of(store) == {"trace-json/context"}
        assert [m.text for m in messages(store, "trace-json/context")] == ["One.", "Two.", "Three."]


FORMS = [
    Message("system", "Be brief."),
    Message("user", [Text("Scan."), Text("\ud83d")], name="ada"),
    Message("assistant", [ToolCall("c1", "look", "{}")], model="m", id="msg_1"),
    Message("tool", [ToolResult("c1", [Text("Seen."), Text("")], True)]),
]
DOCUMENT: dict[str, Any] = render("json", FORMS, [{"name": "look"}]).request


def test_messages_of_it_a_line(tmp_path: Path) -> None:
    store, report = imported(tmp_path, "x.jsonl", lines_of(DOCUMENT["messages"]))
    assert report.format == "trace-json"
    assert messages(store, "trace-json/x") == FORMS


def test_contexts_of_it_a_line(tmp_path: Path) -> None:
    store, _ = imported(tmp_path, "x.jsonl", lines_of([DOCUMENT, DOCUMENT]))
    assert branches_of(store) == {"trace-json/x", "trace-json/x/conversations/2"}
    compiler = ContextCompiler(store)
    for name in branches_of(store):
        assert messages(store, name) == FORMS
        assert compiler.compile(HEADS + name).tools == ({"name": "look"},)


def test_lines_are_added(tmp_path: Path) -> None:
    assert_grows(tmp_path, lines_of(DOCUMENT["messages"] * 2), "x.jsonl")


@given(damaged([DOCUMENT, *DOCUMENT["messages"]]))
def test_whatever_a_document_holds(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any]
) -> None:
    import_damaged(tmp_path_factory.mktemp("lossless"), records[0], "trace-json")
