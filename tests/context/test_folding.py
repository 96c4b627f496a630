"""Folds of histories that merge: each is what its operations make one by one, and none changes what another holds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.joining.support.histories import Lines, histories
from tests.joining.support.lines import branch, on
from trace_store import Repo
from trace_store.context.folding import Fold
from trace_store.context.folding_history import fold
from trace_store.graph import ancestors
from trace_store.objects.commit import Commit, read_commit

State = tuple[Any, ...]


def state_of(found: Fold) -> State:
    """Return all that a fold says."""
    entries = [
        (e.address, e.hidden, e.ghost, e.priority, e.labels, e.keep, e.current)
        for e in found.entries
    ]
    wordings = [[(v.parts, v.place) for v in e.versions] for e in found.entries]
    return entries, wordings, found.tools, found.tools_commit


class Plainly:
    """Makes each fold from nothing, and copies none."""

    def __init__(self, repo: Repo) -> None:
        self._read = repo.store.objects.read
        self._made: dict[bytes, Fold] = {}

    def commit(self, oid: bytes) -> Commit:
        return read_commit(oid, self._read)

    def fold(self, tip: bytes) -> Fold:
        if tip not in self._made:
            line: list[tuple[bytes, Commit]] = []
            parents = [tip]
            while parents:
                line.append((parents[0], self.commit(parents[0])))
                parents = list(line[-1][1].parents)
            self._made[tip] = state = Fold()
            for oid, commit in reversed(line):
                others = [None, *map(self.fold, commit.parents[1:])] if commit.parents else []
                state.apply(oid, commit, others)
        return self._made[tip]


@given(histories, st.randoms(use_true_random=False))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_folds_of_one_history_are_each_made_as_from_nothing(
    history: list[tuple[Any, ...]], random: Any
) -> None:
    """In whatever order they are asked for, and by whatever folds are there already."""
    with Repo.memory() as repo:
        lines = Lines(repo)
        for step in history:
            lines.do(step)
        plainly = Plainly(repo)
        tips = [oid for name in ("main", "side", "third") if (oid := repo.resolve(name))]
        every = list(ancestors(tips, lambda oid: plainly.commit(oid).parents))
        random.shuffle(every)
        known: dict[bytes, Fold] = {}
        for oid in every:
            assert state_of(fold(oid, plainly.commit)) == state_of(plainly.fold(oid))
            fold(oid, plainly.commit, known)
        for oid in every:  # none was changed while others were made of it
            assert state_of(known[oid]) == state_of(plainly.fold(oid))


def test_each_commit_is_read_once_however_many_lines_came_in() -> None:
    """Twenty short lines and one that was brought together with ours ten times."""
    with Repo.memory() as repo:
        repo.append("user", "first")
        branch(repo, "side", "main")
        for number in range(20):
            branch(repo, "short", "main")
            for name in ("short", "main", *(["side"] if number % 2 else [])):
                on(repo, name)
                repo.append("user", f"{name} {number}")
            on(repo, "main")
            repo.merge("short")
            repo.delete_branch("short")
            if number % 2:
                repo.merge("side")
                on(repo, "side")
                repo.append("user", f"{name} {number} again")
                repo.merge("main")
                on(repo, "main")
        reads: Counter[bytes] = Counter()

        def read(oid: bytes) -> Commit:
            reads[oid] += 1
            return read_commit(oid, repo.store.objects.read)

        found = fold(repo.resolve("main"), read)
        assert len(list(found.visible())) == len(repo.compile().messages)
        assert {*reads.values()} == {1}


def test_a_copy_changes_independently() -> None:
    with Repo.memory() as repo:
        addresses = [repo.append("user", f"message {n}").addresses[0] for n in range(12)]
        made = fold(repo.resolve("HEAD"), lambda oid: read_commit(oid, repo.store.objects.read))
        before = state_of(made)
        copy, later = made.copy(), made.copy()
        for change in (
            lambda: repo.remove(addresses[:6]),
            lambda: repo.annotate(addresses[3:5], priority="pinned"),
            lambda: repo.edit(addresses[0], "other words"),
            lambda: repo.move(addresses[7:9], after=None),
        ):
            change()
            oid = repo.resolve("HEAD")
            copy.apply(oid, read_commit(oid, repo.store.objects.read))
            assert state_of(made) == state_of(later) == before
        assert state_of(copy) != before
