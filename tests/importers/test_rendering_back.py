"""Sessions of every format, real and invented: rendered requests can be reread."""

from __future__ import annotations

from pathlib import Path

import pytest

import trace_store
from tests.importers.support.transcripts import each_real_file, lively
from tests.support.message_strategies import MODELS
from tests.support.request_losses import changed
from tests.support.valid_requests import assert_valid_requests
from trace_store.context.compiled import CompiledContext
from trace_store.context.compiler import ContextCompiler
from trace_store.importers.import_paths import import_paths
from trace_store.objects.content import ObjectCollector
from trace_store.objects.message import Message, part_blobs, store_message
from trace_store.providers.documents import parse_messages
from trace_store.providers.rendering import Renderable, render
from trace_store.providers.validity import last_model
from trace_store.providers.wire import to_bytes
from trace_store.repo.repository import Repo
from trace_store.store.store import Store
from trace_store.writer import Writer

# Whose signatures each form takes back.
MAKERS = {name: name.partition("-")[0] for name in MODELS}


def check(path: Path, tmp_path: Path) -> None:
    with Store.init(str(tmp_path), durability="fast") as store:
        import_paths(Writer(store), [str(path)])
        contexts = ContextCompiler(store)
        for name, _ in store.refs.iterate("refs/heads/"):
            context = contexts.compile(name)
            assert_lossless(context)
            for form in MODELS:
                assert_settled(form, list(context.messages))


def assert_lossless(context: CompiledContext) -> None:
    """Lossless JSON gives equal messages, the same content and the same prefix hashes."""
    messages = [message.message() for message in context.messages]
    text = to_bytes(render("json", context.messages).request).decode()
    again = parse_messages(text) if messages else []
    assert again == messages
    put = ObjectCollector().put
    assert [part_blobs(store_message(message, put)["parts"]) for message in again] == [
        part_blobs(store_message(message, put)["parts"]) for message in messages
    ]
    if messages and not any(message.ghost for message in context.messages):
        with Repo.memory() as repo:
            with repo.batch() as batch:
                batch.extend(again)
            assert repo.compile().prefix_hashes() == context.prefix_hashes()


def assert_settled(form: str, messages: list[Renderable]) -> None:
    """What a provider's form gives back is sound, and goes through that form again unchanged."""
    model = last_model(messages, MAKERS[form]) or MODELS[form]
    request = render(form, messages, model=model).request
    if not any(request.get(key) for key in ("messages", "input", "contents")):
        return

    def read(text: str) -> list[Message]:
        return [
            changed(message, model=model) if message.role == "assistant" else message
            for message in parse_messages(text)
        ]

    once = read(to_bytes(request).decode())
    rendered = assert_valid_requests(once, model=model)[form]
    assert {repair.code for repair in rendered.repairs} <= {"call-unsigned"}
    assert read(to_bytes(rendered.request).decode()) == once


def test_the_invented_transcript(tmp_path: Path) -> None:
    check(Path(lively().write(tmp_path)), tmp_path / "project")


def test_the_packaged_samples(tmp_path: Path) -> None:
    samples = Path(trace_store.__file__).parent / "samples"
    for number, sample in enumerate(sorted(samples.glob("*.jsonl"))):
        check(sample, tmp_path / str(number))


@pytest.mark.parametrize("path", each_real_file())
def test_real_transcripts(path: Path, tmp_path: Path) -> None:
    check(path, tmp_path)
