"""Rules that work on a branch, move about, and take steps back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import rule

from tests.stateful.support.ground import AUTHOR, Refused, shown
from tests.stateful.support.machine import Lines
from trace_store import errors, history
from trace_store.maintenance.seal import seal
from trace_store.merge.move import AFTER, BEFORE, FIRST, LAST, move
from trace_store.writer import Writer

NAMES = ("main", "side", "third", "other", "a/b")
NAMED = (
    *(errors.AlreadyExistsError, errors.StateError, errors.InvalidRefNameError),
    *(errors.NotFoundError, errors.UnbornBranchError),
)
"""What a command may say of a name."""


class Moving(Lines):
    """What is done between joins."""

    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        self.do_work(data)
        self.there_and_back(data)

    @rule(data=st.data())
    def go_on_elsewhere(self, data: st.DataObject) -> None:
        """Work on another branch, and stay there."""
        others = self.ground.branches()
        if others:
            name = data.draw(st.sampled_from(others))
            self.ground.command(lambda: self.branch_verbs().switch(name))
            self.do_work(data)

    @rule(data=st.data(), where=st.sampled_from([AFTER, BEFORE, FIRST, LAST]))
    def move(self, data: st.DataObject, where: str) -> None:
        before = self.ground.now()
        seen = [each.address.hex for each in before.visible()]
        if not seen:
            return
        targets = data.draw(st.lists(st.sampled_from(seen), min_size=1, max_size=2, unique=True))
        beside = data.draw(st.sampled_from(seen)) if where in (AFTER, BEFORE) else ""
        found = self.ground.command(
            lambda: move(Writer(self.ground.store, author=AUTHOR), targets, where, beside),
            errors.InvalidOperationError,
        )
        if isinstance(found, Refused):
            assert "next to itself" in str(found.error)
            return
        after = self.ground.now()
        assert after.addresses() == before.addresses()
        assert all(after.entry(each.address).same_state(each) for each in before.entries)
        self.there_and_back(data)

    @rule(data=st.data())
    def switch(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([*self.ground.branches(), "-"]))
        found = self.ground.command(
            lambda: self.branch_verbs().switch(name),
            errors.NotFoundError,
        )
        assert not isinstance(found, Refused) or name == "-"
        self.there_and_back(data)

    @rule(data=st.data(), name=st.sampled_from(NAMES), kind=st.integers(0, 3), force=st.booleans())
    def begin(self, data: st.DataObject, name: str, kind: int, force: bool) -> None:
        """Make a branch and go to it or not, begin an empty one, or look at a commit without one."""
        branches, start = self.branch_verbs(), self.revision(data)
        commands: list[Callable[[], Any]] = [
            lambda: branches.switch(name, create=True, start=start, force=force),
            lambda: branches.create(name, start, force=force),
            lambda: branches.switch(name, orphan=True),
            lambda: branches.checkout(start, detach=True),
        ]
        self.ground.command(commands[kind], *NAMED)
        self.there_and_back(data)

    @rule(data=st.data(), new=st.sampled_from(NAMES), kind=st.integers(0, 4), force=st.booleans())
    def names(self, data: st.DataObject, new: str, kind: int, force: bool) -> None:
        """Rename and delete branches, make and delete tags."""
        store, revision = self.ground.store, self.revision(data)
        name, tag = revision.partition("~")[0], f"v{len(new)}"
        branches, tags = self.branch_verbs(), history.tags.Tags(Writer(store, author=AUTHOR))
        commands: list[Callable[[], Any]] = [
            lambda: branches.rename(name, new, force=force),
            lambda: branches.delete(name),
            lambda: tags.create(tag, revision, force=force),
            lambda: tags.create(tag, revision, message="of it", force=force),
            lambda: tags.delete(tag),
        ]
        self.ground.command(commands[kind], *NAMED)
        self.there_and_back(data)

    @rule(data=st.data())
    def reset_hard(self, data: st.DataObject) -> None:
        revision = self.revision(data)
        self.ground.command(
            lambda: history.reset.reset_hard(Writer(self.ground.store, author=AUTHOR), revision),
            *(errors.NotFoundError, errors.UnbornBranchError),
        )
        self.there_and_back(data)

    @rule(data=st.data(), steps=st.integers(0, 4), again=st.booleans())
    def reset_soft(self, data: st.DataObject, steps: int, again: bool) -> None:
        """Reset and recommit the staged commits: the context is the same."""
        store, before = self.ground.store, self.ground.now()
        steps = min(steps, len(self.ground.line(self.ground.tip())) - 1)
        if steps < 0:
            return
        self.ground.command(
            lambda: history.reset.reset_soft(Writer(store, author=AUTHOR), f"HEAD~{steps}")
        )
        self.there_and_back(data)
        if again:
            found = self.ground.command(
                lambda: history.reset.commit_staged(Writer(store, author=AUTHOR)), errors.StateError
            )
            if not isinstance(found, Refused) and len(found.staged.commits) == steps:
                assert shown(self.ground.now()) == shown(before)
            self.there_and_back(data)

    @rule(count=st.integers(1, 6), again=st.integers(0, 6))
    def undo_and_redo(self, count: int, again: int) -> None:
        for _ in range(min(count, len(self.ground.done))):
            self.ground.undo()
        for _ in range(min(again, len(self.ground.undone))):
            self.ground.redo()

    @rule(second=st.booleans(), kind=st.sampled_from(["seal", "reopen", "index", "cache"]))
    def upkeep(self, second: bool, kind: str) -> None:
        """Seal, reopen a store, or delete derived files."""
        if kind == "seal":
            seal(self.ground.stores[second])
        elif kind == "reopen":
            self.ground.reopen(second)
        else:
            shutil.rmtree(f"{self.ground.folder}/.trace/{kind}", ignore_errors=True)
