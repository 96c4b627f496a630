"""Where messages come from, and who has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.history.test_diff import SLOW, branch
from tests.store.support.histories import put
from tests.support.changes import commits, write_changes
from trace_store import Message, Repo, ToolCall, ToolResult, context
from trace_store.base.oid import ObjectId
from trace_store.history.blame import blame
from trace_store.history.whohas import (
    VersionHolders,
    whohas_commit,
    whohas_content,
    whohas_message,
    whohas_text,
)
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.objects.message import part_blobs


def merged(repo: Repo, theirs: str, addresses: list[Any]) -> ObjectId:
    """Commit a merge that includes messages of another branch."""
    parents = [repo.resolve("HEAD"), repo.resolve(theirs)]
    state = context.snapshots.fold_of(repo.store, parents[1])
    made = Commit(
        parents, "merger", 99, [ops.add([state.entry(each).to_carried() for each in addresses])]
    )
    ref = repo.store.refs.head().ref
    assert ref is not None
    return put(repo.store, made.encode(), ref)


def test_blame() -> None:
    with Repo.memory(author="ada") as repo:
        first = repo.append("user", "first").addresses[0]
        start = str(repo.resolve("HEAD"))
        branch(repo, "side")
        repo = Repo(repo.store, author="bob")
        call = [ToolCall("c", "look", "{}")]
        asked = repo.commit(
            [Message("assistant", call, model="m"), Message("tool", [ToolResult("c", "seen")])]
        ).addresses
        edited = repo.edit(asked[1], "seen well").oid
        branch(repo, "mine", at=start)
        pinned = repo.annotate(first, priority="pinned").oid
        included = merged(repo, "side", list(asked))
        one, two, three = blame(repo.contexts)
        assert (one.made.author, one.made.commit, one.branch) == (
            "ada",
            repo.resolve(start),
            "refs/heads/main",
        )
        assert [(d.operation, d.commit) for d in one.changes] == [("annotate", pinned)]
        assert (two.branch, two.tools, two.model) == ("refs/heads/side", ("look",), "m")
        assert [(d.operation, d.commit) for d in two.changes] == [("add", included)]
        assert [d.operation for d in three.changes] == ["add", "edit"]
        assert three.changes[1].commit == edited
        assert three.tools == ("look",)


@given(commits)
@SLOW
def test_blame_knows_each_message_and_all_that_was_done_to_it(history: list[Any]) -> None:
    with Repo.memory(author="ada") as repo:
        known: list[Any] = []
        if not sum(write_changes(repo, changed, known) for changed in history):
            return
        context = repo.compile()
        found = list(blame(repo.contexts))
        assert [each.message.address for each in found] == [m.address for m in context]
        for each in found:
            assert each.made.commit[:16] == each.message.address.birth
            entry = repo.contexts.fold(repo.resolve("HEAD")).entry(each.message.address)
            edits = sum(deed.operation == "edit" for deed in each.changes)
            assert edits == len(entry.versions) - 1


def states(found: list[VersionHolders]) -> list[dict[str, str]]:
    return [{h.ref.rpartition("/")[2]: h.state for h in each.holders} for each in found]


def test_whohas() -> None:
    with Repo.memory(author="ada") as repo:
        made = repo.append("user", "deploy on Friday").addresses[0]
        start = str(repo.resolve("HEAD"))
        changes: dict[str, Callable[[], object]] = {
            "edited": lambda: repo.edit(made, "deploy on Monday"),
            "gone": lambda: repo.remove(made),
            "ghost": lambda: repo.remove(made, ghost=True),
            "skipped": lambda: repo.annotate(made, priority="skip"),
        }
        for name, change in changes.items():
            branch(repo, name, at=start)
            change()
        wanted = {
            "main": "shown",
            "edited": "reworded",
            "gone": "removed",
            "ghost": "removed",
            "skipped": "skip",
        }
        assert states(whohas_text(repo.contexts, "FRIDAY")) == [wanted]
        assert states(whohas_text(repo.contexts, "monday")) == [{"edited": "shown"}]
        assert states(whohas_message(repo.contexts, made)) == [{"edited": "shown"}, wanted]
        (blob,) = part_blobs(repo.compile("main").messages[0].stored["parts"])
        assert states(whohas_content(repo.contexts, blob)) == [wanted]
        assert whohas_text(repo.contexts, "Sunday") == []
        assert len(whohas_commit(repo.store, repo.resolve(start))) == 5
        assert whohas_commit(repo.store, repo.resolve("gone")) == ["refs/heads/gone"]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
@SLOW
def test_whohas_a_commit_is_who_reaches_it(steps: list[tuple[int, int]]) -> None:
    with Repo.memory(author="ada") as repo:
        oids: list[ObjectId] = [repo.append("user", "start").oid]
        for number, (one, other) in enumerate(steps):
            parents = list(dict.fromkeys([oids[one % len(oids)], oids[other % len(oids)]]))
            data = Commit(parents, "ada", number, []).encode()
            oids.append(put(repo.store, data, f"refs/heads/b{number}"))
        for oid in oids:
            refs = {
                f"refs/heads/b{n}"
                for n in range(len(steps))
                if oid in {each.oid for each in repo.log(f"b{n}")}
            }
            refs |= {"refs/heads/main"} if oid == oids[0] else set()
            assert set(whohas_commit(repo.store, oid)) == refs


def test_an_inclusion_that_did_nothing_is_no_deed(tmp_path: Path) -> None:
    repo = Repo.init(tmp_path)
    first = repo.append("user", "a").addresses[0]
    repo.branches.switch("side", create=True)
    brought = repo.append("user", "b").addresses[0]
    repo.branches.switch("main")
    merged = repo.merge("side", fast_forward="never")
    state = context.snapshots.fold_of(repo.store, repo.resolve("main"))
    again = Commit(
        [repo.resolve("main"), repo.resolve("side")],
        "ada",
        1,
        [ops.add([state.entry(each).to_carried() for each in (first, brought)])],
    ).encode()
    oid = put(repo.store, again)
    changes = {each.message.address: each.changes for each in repo.blame(oid)}
    assert changes[first] == ()
    assert [(deed.operation, deed.commit) for deed in changes[brought]] == [("add", merged.after)]
