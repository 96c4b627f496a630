"""Ghosts: informative, short in every encoding, with a constant text per message."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.importers.support.transcripts import REASON, each_real_transcript, real_files
from tests.support.valid_requests import assert_valid_requests
from trace_store import importers
from trace_store.context.compiled import CompiledContext
from trace_store.context.content import seen_of_ghost
from trace_store.context.ghost import GHOST_TOKENS, ghost_text
from trace_store.context.tokens.tokenizer import get_tokenizer
from trace_store.maintenance.purge import plan_purge, purge
from trace_store.objects.message import Message
from trace_store.objects.parts import Text, ToolCall, ToolResult
from trace_store.repo.repository import Repo
from trace_store.store.store import Store
from trace_store.writer import Writer


def call(id_: str, name: str, arguments: str) -> Message:
    return Message("assistant", (ToolCall(id_, name, arguments),))


def result(id_: str, text: str) -> Message:
    return Message("tool", (ToolResult(id_, text),))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path, author="Ada <ada@example.org>")


def ghosts(context: CompiledContext) -> list[str]:
    return [message.text for message in context if message.ghost]


ADDRESS = bytes.fromhex("31415926"), 1
"""Real addresses are random; this one has few tokens, which leaves room for the subject."""


def placeholders(repo: Repo, *messages: Message) -> list[str]:
    tip = repo.commit(messages).oid
    entries = repo.contexts.fold(tip).entries
    return [ghost_text(ADDRESS, entry.message, repo.store.objects.read) for entry in entries]


@pytest.mark.parametrize(
    ("name", "arguments", "subject"),
    [
        ("Read", '{"file_path": "/home/ada/src/config.py"}', "config.py"),
        ("Read", '{"path": "C:\\\\src\\\\main.go"}', "main.go"),
        ("Bash", '{"command": "git status --short"}', "git status"),
        ("Bash", '{"command": "cd /src && go test ./..."}', "go test"),
        ("shell", '{"command": ["rg", "-n", "main"]}', "rg"),
        ("Task", '{"prompt": "Look into it."}', "Task"),
        ("exec", "not JSON", "exec"),
        ("Read", '{"file_path": "\\u001b[31m]\\n"}', "31m"),
    ],
)
def test_a_call_says_its_file_or_command(
    repo: Repo, name: str, arguments: str, subject: str
) -> None:
    first, second = placeholders(repo, call("c1", name, arguments), result("c1", "done well " * 36))
    assert first.startswith(f"[removed: {subject}, ")
    assert first.endswith(" tokens, 31415926.1]")
    assert second == "[removed: done well, 100 tokens, 31415926.1]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Fix the parser, please.\nIt is slow.", "Fix the parser"),
        ("\n\n     1\tdef parse():\n     2\t    pass", "def parse"),
        ("悬空引用 verify 的问题", "verify"),
        ("悬空引用", ""),
        ("12 34", ""),
    ],
)
def test_prose_says_its_first_words(repo: Repo, text: str, words: str) -> None:
    [ghost] = placeholders(repo, Message("user", (Text(text),)))
    subject = ghost.removeprefix("[removed: ").rpartition(" token")[0].rpartition(", ")[0]
    assert subject == words


def test_it_stays_as_it_is(repo: Repo) -> None:
    """Edits of the hidden message, gc and a merge change neither the text nor the prefix hash."""
    [made] = repo.append("user", "A long question about the release.").addresses
    repo.remove(made, ghost=True)
    before = repo.compile()
    text, prefix = ghosts(before), before.prefix_hash
    repo.edit(made, "short")
    repo.maintenance.gc(grace_days=0)
    repo.maintenance.prune(grace_days=0)
    after = repo.compile()
    assert (ghosts(after), after.prefix_hash) == (text, prefix)
    assert repo.contexts.verify().matches


def test_what_was_purged_has_the_short_form(repo: Repo) -> None:
    [made] = repo.append("user", "the secret word").addresses
    repo.remove(made, ghost=True)
    purge(repo.store, plan_purge(repo.store, texts=["the secret word"]))
    assert ghosts(repo.compile()) == [f"[removed {made.short(8)}]"]


def test_restore_puts_it_back_at_its_place(repo: Repo) -> None:
    made = [repo.append("user", text).addresses[0] for text in ("one", "two", "three")]
    before = repo.compile().prefix_hash
    repo.remove(made[1], ghost=True)
    assert [message.ghost for message in repo.compile()] == [False, True, False]
    repo.restore(made[1])
    assert [message.text for message in repo.compile()] == ["one", "two", "three"]
    assert repo.compile().prefix_hash == before


@pytest.mark.skipif(not real_files(), reason=REASON)
def test_real_messages_have_at_most_twenty_tokens(tmp_path: Path) -> None:
    tokenizers = [get_tokenizer(name) for name in ("cl100k_base", "o200k_base")]
    with Store.init(str(tmp_path / ".trace")) as store:
        importers.import_paths.import_paths(Writer(store), [str(path) for path in real_files()])
        repo = Repo(store, author="Ada <ada@example.org>")
        seen: dict[bytes, str] = {}
        with_subject = 0
        for branch in repo.branches.list():
            for entry in repo.contexts.fold(branch.oid).entries:
                text = ghost_text(entry.address, entry.message, store.objects.read)
                assert max(each.count(text) for each in tokenizers) <= GHOST_TOKENS, text
                assert seen.setdefault(seen_of_ghost(entry.message, entry.address), text) == text
                with_subject += text.count(", ") == 2
        assert len(seen) > 1000
        assert with_subject > len(seen) / 3


@pytest.mark.parametrize("path", each_real_transcript())
def test_every_provider_takes_ghosts_of_real_calls(path: Path, tmp_path: Path) -> None:
    """Every third unit leaves a ghost; restoring gives the same context as before."""
    with Store.init(str(tmp_path / ".trace")) as store:
        importers.import_paths.import_paths(Writer(store), [str(path)])
        repo = Repo(store, author="Ada <ada@example.org>")
        branch = max(repo.branches.list(), key=lambda each: len(repo.compile(each.name)))
        repo.branches.switch(branch.name)
        before = repo.compile()
        units = [message.address for message in before if message.role != "system"][::3]
        if not units:
            return
        repo.remove(units, ghost=True)
        after = repo.compile()
        assert len(after) == len(before)
        assert_valid_requests(list(after))
        if before.estimated_token_count > 1000:  # a ghost may be longer than a short message
            assert after.estimated_token_count < before.estimated_token_count
        assert repo.contexts.verify().matches
        repo.restore(units)
        assert repo.compile().prefix_hash == before.prefix_hash
