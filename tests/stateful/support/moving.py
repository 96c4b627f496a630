"""Rules that work on a branch, move about, and take steps back."""

from __future__ import annotations

import shutil

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule

from tests.stateful.support.ground import AUTHOR, Refused
from tests.stateful.support.machine import Lines
from tests.stateful.support.pictures import faults
from trace_store import branching, errors, joining
from trace_store.errors import ErrorCode
from trace_store.joining.moving import AFTER, BEFORE, FIRST, LAST, move
from trace_store.maintenance.sealing import seal

NAMES = ("main", "side", "third", "other", "a/b")
TAGS = ("v1", "v2")


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
            self.ground.command(lambda: branching.switch(self.ground.store, name, author=AUTHOR))
            self.do_work(data)

    @rule(data=st.data(), where=st.sampled_from([AFTER, BEFORE, FIRST, LAST]))
    def move(self, data: st.DataObject, where: str) -> None:
        before = self.ground.now()
        seen = [
            f"{address[0].hex()}.{address[1]}" for address in (e.address for e in before.visible)
        ]
        if not seen:
            return
        targets = data.draw(st.lists(st.sampled_from(seen), min_size=1, max_size=2, unique=True))
        beside = data.draw(st.sampled_from(seen)) if where in (AFTER, BEFORE) else ""
        found = self.ground.command(
            lambda: move(self.ground.store, targets, where, beside, author=AUTHOR),
            errors.InvalidOperationError,
        )
        if isinstance(found, Refused):
            assert "beside itself" in str(found.error)
            return
        after = self.ground.now()
        assert sorted(e.state[0] for e in after.visible) == sorted(
            e.state[0] for e in before.visible
        )
        assert faults(after) <= faults(before)
        self.there_and_back(data)

    @rule(data=st.data())
    def switch(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([*self.ground.branches(), "-"]))
        found = self.ground.command(
            lambda: branching.switch(self.ground.store, name, author=AUTHOR), errors.NotFoundError
        )
        assert not isinstance(found, Refused) or name == "-"
        self.there_and_back(data)

    @rule(data=st.data(), name=st.sampled_from(NAMES), kind=st.integers(0, 3))
    def begin(self, data: st.DataObject, name: str, kind: int) -> None:
        store, start = self.ground.store, self.revision(data)
        force = data.draw(st.booleans())
        commands = [
            lambda: branching.begin_branch(store, name, start, author=AUTHOR, force=force),
            lambda: branching.create_branch(store, name, start, author=AUTHOR, force=force),
            lambda: branching.begin_empty(store, name, author=AUTHOR),
            lambda: branching.detach(store, start, author=AUTHOR),
        ]
        self.ground.command(
            commands[kind], errors.AlreadyExistsError, errors.StateError, errors.InvalidRefNameError
        )
        self.there_and_back(data)

    @rule(data=st.data(), new=st.sampled_from(NAMES), force=st.booleans(), delete=st.booleans())
    def rename_or_delete(self, data: st.DataObject, new: str, force: bool, delete: bool) -> None:
        names = self.ground.branches()
        if not names:
            return
        store, name = self.ground.store, data.draw(st.sampled_from(names))
        if delete:
            found = self.ground.command(
                lambda: branching.delete_branches(store, [name], author=AUTHOR), errors.StateError
            )
        else:
            found = self.ground.command(
                lambda: branching.rename_branch(store, name, new, author=AUTHOR, force=force),
                *(errors.AlreadyExistsError, errors.InvalidRefNameError),
            )
        del found
        self.there_and_back(data)

    @rule(data=st.data(), name=st.sampled_from(TAGS), kind=st.integers(0, 2), force=st.booleans())
    def tag(self, data: st.DataObject, name: str, kind: int, force: bool) -> None:
        store, revision = self.ground.store, self.revision(data)
        message = "said of it" if kind == 1 else ""
        if kind == 2:
            self.ground.command(
                lambda: branching.delete_tags(store, [name], author=AUTHOR), errors.NotFoundError
            )
        else:
            self.ground.command(
                lambda: branching.create_tag(
                    store, name, revision, author=AUTHOR, message=message, force=force
                ),
                errors.AlreadyExistsError,
                errors.NotFoundError,
            )
        self.there_and_back(data)

    @rule(data=st.data())
    def reset_hard(self, data: st.DataObject) -> None:
        revision = self.revision(data)
        self.ground.command(
            lambda: branching.reset_hard(self.ground.store, revision, author=AUTHOR),
            errors.NotFoundError,
        )
        self.there_and_back(data)

    @rule(data=st.data(), steps=st.integers(0, 4), again=st.booleans())
    def reset_soft(self, data: st.DataObject, steps: int, again: bool) -> None:
        """Step back, and commit again what was after: the context is the same."""
        store, before = self.ground.store, self.ground.now()
        steps = min(steps, len(self.ground.line(self.ground.tip())) - 1)
        if steps < 0:
            return
        self.ground.command(lambda: branching.reset_soft(store, f"HEAD~{steps}", author=AUTHOR))
        self.there_and_back(data)
        if again:
            found = self.ground.command(
                lambda: branching.commit_staged(store, author=AUTHOR), errors.StateError
            )
            if not isinstance(found, Refused) and len(found.staged.commits) == steps:
                assert self.ground.now().shown == before.shown
            self.there_and_back(data)

    @rule(count=st.integers(1, 6), again=st.integers(0, 6))
    def undo_and_redo(self, count: int, again: int) -> None:
        for _ in range(min(count, len(self.ground.done))):
            self.ground.undo()
        for _ in range(min(again, len(self.ground.undone))):
            self.ground.redo()

    @rule(second=st.booleans())
    def seal(self, second: bool) -> None:
        seal(self.ground.stores[second])

    @rule(second=st.booleans())
    def reopen(self, second: bool) -> None:
        self.ground.reopen(second)

    @rule(index=st.sampled_from(["index", "cache"]))
    def lose_derived_files(self, index: str) -> None:
        shutil.rmtree(f"{self.ground.folder}/.trace/{index}", ignore_errors=True)


__all__ = ["ErrorCode", "Moving", "joining", "precondition"]
