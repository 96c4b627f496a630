"""The tokens column beside a compile index."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.context.test_index_seeds import Counting
from tests.store.support.histories import move
from tests.support.files import flip
from trace_store import FixedClock, Repo
from trace_store.context.compiler import ContextCompiler


def test_counts_of_messages_that_a_branch_left_are_not_taken_for_those_that_came(
    tmp_path: Path,
) -> None:
    """The branch goes back to where its index was first written, and on by another way."""
    with Repo.init(tmp_path, clock=FixedClock()) as repo:
        first = repo.append("user", "Plan the release.")
        assert repo.compile().token_count > 0
        repo.append("user", "One word.")
        assert repo.compile().token_count > 0
        move(repo.store, "refs/heads/main", first.oid)
        assert len(repo.compile()) == 1
        repo.append("user", "Many more words than there were before, in another message.")
        warm = repo.compile().token_count
    with Repo.memory() as cold:
        cold.append("user", "Plan the release.")
        cold.append("user", "Many more words than there were before, in another message.")
        assert warm == cold.compile().token_count


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Return a repository whose messages were counted, each with as many words as its number."""
    with Repo.init(tmp_path, clock=FixedClock(), durability="fast") as repo:
        for number in range(30):
            repo.append("user", "word " * (number + 1))
        assert ContextCompiler(repo.store, tokenizer=Counting()).compile().token_count
        # Token counts are also cached by content id, which would hide the effect of the column.
        shutil.rmtree(Path(repo.store.layout.root, "cache", "tokens"))
        yield repo


def counted(repo: Repo) -> list[str]:
    """Return the texts counted for a context; compare its tokens with a cold count."""
    counting = Counting()
    warm = ContextCompiler(repo.store, tokenizer=counting).compile()
    total, each = warm.token_count, warm.message_tokens()
    cold = ContextCompiler(repo.store, tokenizer=Counting()).compile(cold=True)
    assert (total, each) == (cold.token_count, cold.message_tokens())
    return counting.asked


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda repo: repo.edit("HEAD~20.0", "said otherwise"), ["said otherwise"]),
        (lambda repo: repo.edit("HEAD~29.0", "said otherwise"), ["said otherwise"]),
        (lambda repo: repo.remove("HEAD~20.0"), []),
        (lambda repo: repo.annotate("HEAD~20.0", priority="pinned"), []),
        (lambda repo: repo.move("HEAD~3.0", after="HEAD~20.0"), []),
        (lambda repo: repo.append("user", "more"), ["more"]),
    ],
    ids=["edit", "first", "remove", "pin", "move", "append"],
)
def test_only_what_is_seen_otherwise_is_counted(
    repo: Repo, change: Callable[[Repo], object], words: list[str]
) -> None:
    change(repo)
    assert counted(repo) == words


def test_a_placeholder_is_counted(repo: Repo) -> None:
    repo.remove("HEAD~20.0", ghost=True)
    assert [text.partition(" ")[0] for text in counted(repo)] == ["[removed:"]
    repo.restore(repo.compile().messages[9].address)
    assert [text.partition(" ")[0] for text in counted(repo)] == ["word"]


def test_counts_of_another_branch_serve_one_that_begins_otherwise(repo: Repo) -> None:
    repo.branches.create("side")
    repo.branches.switch("side")
    repo.edit("HEAD~29.0", "said otherwise")
    assert counted(repo) == ["said otherwise"]


@pytest.mark.parametrize("record", [12, 20, 29])
def test_a_damaged_count_is_not_taken_over(repo: Repo, record: int) -> None:
    (path,) = Path(repo.store.layout.index_dir).glob("*.tokens")
    flip(path, 64 + 40 * record)
    repo.edit("HEAD~20.0", "said otherwise")
    assert len(counted(repo)) >= 21


def test_what_was_counted_at_a_report_is_known_after_an_edit(repo: Repo) -> None:
    repo.record_usage({"input_tokens": 900, "output_tokens": 100})
    assert counted(repo) == []
    changes: list[Callable[[], object]] = [
        lambda: repo.edit("HEAD~21.0", "said otherwise"),
        lambda: repo.edit("HEAD~2.0", "and again"),
        lambda: repo.append("user", "more"),
        lambda: repo.edit("HEAD.0", "less"),
    ]
    for change in changes:
        change()
        counting = Counting()
        context = ContextCompiler(repo.store, tokenizer=counting).compile()
        assert context.token_source == "provider:anthropic+estimate"
        assert context.reported_token_count == 1000
        assert len(counting.asked) == 1
        assert counted(repo) == []
