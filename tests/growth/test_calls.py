"""A turn of an agent takes few calls, and checks or parses nothing twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.growth.support.counting import calls_of
from tests.growth.support.stores import QuickDisk
from trace_cli.main import main
from trace_cli.runtime import Invocation
from trace_store import Environment, Repo, Store, ToolCall, ToolResult

CALLS_OF_AN_APPEND = 95
CALLS_OF_A_RESULT = 126
CALLS_OF_A_COMPILE = 280
CALLS_OF_A_COMMAND = 700
ONCE = (
    "JournalView.refresh",
    "RefDatabase.head_target",
    "is_ref_name",
    "Journal.lock",
    "encode_commit",
)


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Return a repository that this process has written to and compiled."""
    store = Store.init(str(tmp_path), disk=QuickDisk())
    with Repo(store, author="ada", environment=Environment()) as repo:
        for number in range(20):
            repo.append("user", f"turn {number}")
        assert repo.compile().token_count
        yield repo


def middle(run: Callable[[], object], times: int = 9) -> Counter[str]:
    """Return the calls of the run with the median call count."""
    return sorted((calls_of(run) for _ in range(times)), key=Counter.total)[times // 2]


@pytest.mark.parametrize("durability", ["fast", "batch", "durable"])
def test_an_append_asks_everything_once(repo: Repo, durability: str) -> None:
    repo.store.durability = durability
    calls = middle(lambda: repo.append("user", "one more turn"))
    assert calls.total() <= CALLS_OF_AN_APPEND, calls.most_common(10)
    assert {name: calls[name] for name in ONCE if calls[name] > 1} == {}
    assert not calls["Commit.decode"]


def test_a_result_whose_call_was_appended_here_parses_nothing(repo: Repo) -> None:
    def turn(number: int) -> Counter[str]:
        call = f"call_{number}"
        repo.append("assistant", [ToolCall(call, "look", "{}")])
        return calls_of(lambda: repo.append("tool", [ToolResult(call, "seen")]))

    calls = sorted(map(turn, range(9)), key=Counter.total)[4]
    assert calls.total() <= CALLS_OF_A_RESULT, calls.most_common(10)
    assert {name: calls[name] for name in ONCE if calls[name] > 1} == {}
    assert not calls["Commit.decode"]


def test_a_compile_parses_the_one_new_commit_once(repo: Repo) -> None:
    def turn() -> Counter[str]:
        repo.append("user", "one more turn")
        return calls_of(lambda: repo.compile().messages[-1].text)

    calls = sorted((turn() for _ in range(9)), key=Counter.total)[4]
    assert calls["Commit.decode"] == calls["decode"] == calls["_unpack_small"] == 1
    assert calls.total() <= CALLS_OF_A_COMPILE, calls.most_common(10)


def test_a_quiet_commit_reads_the_branch_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit() -> None:
        words = ["commit", "-q", "--no-seal", "--user", "one more turn"]
        assert main(words, Invocation(environment=Environment(author="ada"))) == 0

    monkeypatch.chdir(tmp_path)
    assert main(["init", "-q"]) == 0
    commit()
    commit()
    calls = calls_of(commit)
    assert calls["RefDatabase.tips"] == 1
    assert calls["JournalView.refresh"] <= 3
    assert calls.total() <= CALLS_OF_A_COMMAND, calls.most_common(10)
