"""An index that goes on through merges has what a fold has, and looks at no more than what came in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.context.test_index_building import shown
from tests.joining.support.histories import Lines, histories
from tests.joining.support.lines import ADA, branch, on
from trace_store import Repo
from trace_store.context.compile_index import IndexView, cold_view, prefix_of
from trace_store.context.folding_history import fold
from trace_store.context.index_building import records_of_fold
from trace_store.joining import MergeOptions, merge
from trace_store.objects.commit import read_commit


@given(histories, st.integers(1, 4))
@settings(
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("TRACE_TEST_EXAMPLES", "30")),
)
def test_an_index_that_follows_merges_is_one_made_from_a_fold(
    history: list[tuple[Any, ...]], stride: int
) -> None:
    """The index of each line catches up after every few steps."""
    with Repo.memory() as repo:
        lines = Lines(repo)
        for count, step in enumerate(history):
            if not lines.do(step) or count % stride:
                continue
            context = repo.compile()
            tip, read = repo.resolve("HEAD"), repo.store.objects.read
            state = fold(tip, lambda oid, read=read: read_commit(oid, read))  # type: ignore[misc]
            view = repo.contexts.index_view(f"refs/heads/{step[1]}")
            assert view is not None
            assert shown(list(view.messages())) == shown(records_of_fold(tip, state))
            assert (view.tip, view.tools_commit()) == (tip, state.tools_commit)
            assert [m.position for m in context.messages] == list(range(len(context)))
            check_earlier(repo, view)


def check_earlier(repo: Repo, view: IndexView) -> None:
    """What records tell of earlier commits is what these have."""
    read = repo.store.objects.read
    oid = view.tip
    while oid is not None:
        found = prefix_of(view, oid)
        if found is not None:
            cold = cold_view(oid, read)
            assert list(found.shown()) == list(cold.shown())
            assert found.tools_commit() == cold.tools_commit()
        parents = read_commit(oid, read).parents
        oid = parents[0] if parents else None


def test_merges_fold_nothing_when_they_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Repo.init(tmp_path, environment=ADA) as repo:
        repo.append("user", "a")
        for name in ("side", "third"):
            branch(repo, name)
        repo.compile()
        monkeypatch.setattr(
            "trace_store.context.index_growth.fold", lambda *_: pytest.fail("folded")
        )
        for turn in range(3):
            on(repo, "third")
            hidden = repo.append("user", f"third {turn}, taken back").addresses[0]
            repo.remove(hidden)
            repo.edit(repo.append("user", "third").addresses[0], f"third {turn}")
            on(repo, "side")
            repo.append("user", f"side {turn}")
            merge(repo.store, "third", MergeOptions(), author="ada")
            on(repo, "main")
            repo.append("user", f"main {turn}")
            merge(repo.store, "side", MergeOptions(), author="ada")
            assert [m.text for m in repo.compile().messages][-3:] == [
                f"main {turn}",
                f"side {turn}",
                f"third {turn}",
            ]
        monkeypatch.undo()
        assert repo.contexts.verify().matches
