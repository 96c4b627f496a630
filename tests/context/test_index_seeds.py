"""An index starts from an older one or another branch's, without a full read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.files import flip
from trace_store import FixedClock, Message, Repo, merge
from trace_store.context.compiler import ContextCompiler
from trace_store.maintenance.repack import pack
from trace_store.writer import Writer

LENGTH = 700
"""More commits than a fold takes that is not kept."""
FEW = 40


class Counting:
    """A tokenizer that records the texts it counts."""

    encoding = "words"
    exact = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count(self, text: str) -> int:
        self.asked.append(text)
        return len(text.split())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a history with all messages counted and a stored fold."""
    folder = tmp_path_factory.mktemp("seeds")
    with Repo.init(folder, clock=FixedClock(), durability="fast") as repo:
        for number in range(LENGTH):
            repo.commit([Message("user", f"message {number}")])
        pack(repo.store)
        assert len(repo.contexts.fold(repo.resolve("HEAD"))) == LENGTH
        assert ContextCompiler(repo.store, tokenizer=Counting()).compile().token_count
    return folder


@pytest.fixture
def repo(built: Path, tmp_path: Path) -> Iterator[Repo]:
    """Return a copy of it."""
    shutil.copytree(built, tmp_path / "copy")
    with Repo.open(tmp_path / "copy", clock=FixedClock(), durability="fast") as repo:
        yield repo


def begun(repo: Repo, start: str) -> None:
    repo.branches.switch("idea", create=True, start=start)


def begun_and_gone_on(repo: Repo) -> None:
    begun(repo, "main~30")
    repo.append("user", "another way")


def edited(repo: Repo) -> None:
    begun(repo, "main")
    repo.edit("main~3.0", "said better")


def edited_after_appends(repo: Repo) -> None:
    begun(repo, "main~20")
    repo.append("user", "another way")
    repo.remove("HEAD~5.0")
    repo.append("user", "and on")


def rebased(repo: Repo) -> None:
    begun_and_gone_on(repo)
    merge.rebase.rebase(Writer(repo.store, author="ada"), "main")


def merged(repo: Repo) -> None:
    begun_and_gone_on(repo)
    repo.branches.switch("both", create=True, start="main")
    merge.merge.merge(Writer(repo.store, author="ada"), "idea")


@pytest.mark.parametrize(
    "make",
    [
        lambda repo: begun(repo, "main"),
        lambda repo: begun(repo, "main~300"),
        *(begun_and_gone_on, edited, edited_after_appends, rebased, merged),
    ],
    ids=["at", "before", "gone-on", "edited", "appends-and-removed", "rebased", "merged"],
)
def test_a_branch_that_is_near_another_is_compiled_from_its_records(
    repo: Repo, make: Callable[[Repo], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(repo)
    counting = Counting()
    contexts = ContextCompiler(repo.store, tokenizer=counting)
    read = repo.store.objects.read
    asked: list[bytes] = []

    def noted(oid: bytes) -> bytes:
        asked.append(oid)
        return read(oid)

    monkeypatch.setattr(type(repo.store.objects), "read", lambda _, oid: noted(oid))
    context = contexts.compile()
    total = context.token_count
    monkeypatch.undo()
    assert len(counting.asked) < FEW
    assert len(asked) < 4 * FEW
    cold = ContextCompiler(repo.store, tokenizer=Counting()).compile(cold=True)
    assert context.prefix_hashes() == cold.prefix_hashes()
    assert total == cold.token_count
    assert contexts.verify().matches


def test_a_damaged_record_is_not_taken_over(repo: Repo) -> None:
    begun(repo, "main")
    path = Path(repo.store.layout.index_file("refs/heads/main", "messages"))
    flip(path, 5000)
    repo.edit("main~3.0", "said better")
    assert ContextCompiler(repo.store, tokenizer=Counting()).verify().matches
    assert repo.compile().messages[-4].text == "said better"


def test_a_damaged_count_is_counted_again(repo: Repo) -> None:
    begun(repo, "main")
    layout = repo.store.layout
    path = Path(layout.index_file("refs/heads/main", "words.tokens"))
    flip(path, 5000)
    contexts = ContextCompiler(repo.store, tokenizer=Counting())
    cold = contexts.compile(cold=True)
    warm = contexts.compile()
    assert warm.message_tokens() == cold.message_tokens()
