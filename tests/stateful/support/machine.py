"""The base of all rules: the repository, invariants, and resolution of conflicts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from tests.stateful.support.ground import AUTHOR, Ground, Refused
from tests.stateful.support.work import KINDS, work
from trace_store import ObjectId, history, merge
from trace_store.context import snapshots
from trace_store.merge.conflicts import Conflict, Resolution
from trace_store.merge.in_progress import read_stop
from trace_store.merge.result import STOPPED
from trace_store.writer import Writer

BEGINNINGS = ("say", "call", "say", "edit", "mark", "label", "answer")
CALM = ["say", "say", "answer", "call", "edit", "mark", "label"]
ROUNDS = 5


class Lines(RuleBasedStateMachine):
    """A repository with a few lines of history; subclasses define the operations."""

    ground: Ground
    patch: pytest.MonkeyPatch

    @initialize(data=st.data(), worth=st.sampled_from([1, snapshots.WORTH]))
    def begin_history(self, data: st.DataObject, worth: int) -> None:
        """Create the common history; folds are stored as if it were long in some runs."""
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(snapshots, "WORTH", worth)
        self.ground = Ground()
        for kind in BEGINNINGS[: data.draw(st.integers(2, len(BEGINNINGS)))]:
            work(self.ground, data, kind)
        for name in ("side", "third"):
            self.ground.command(partial(self.branch_verbs().create, name))

    def branch_verbs(self) -> history.branches.Branches:
        """Return the verbs of branches."""
        return history.branches.Branches(Writer(self.ground.store, author=AUTHOR))

    def teardown(self) -> None:
        if hasattr(self, "ground"):
            try:
                self.ground.assert_sound()
            finally:
                self.ground.close()
                self.patch.undo()

    @invariant()
    def contexts_are_what_their_histories_say(self) -> None:
        if hasattr(self, "ground"):
            self.ground.assert_contexts()

    def do_work(self, data: st.DataObject, *, most: int = 3) -> None:
        """Make a few commits on HEAD's branch."""
        kinds = st.one_of(st.sampled_from(CALM), st.sampled_from(sorted(KINDS)))
        for kind in data.draw(st.lists(kinds, min_size=1, max_size=most)):
            work(self.ground, data, kind, second=data.draw(st.booleans()))

    def revision(self, data: st.DataObject, *, steps: int = 3) -> str:
        """Return a commit: a branch, or a few steps back from one."""
        names = self.ground.branches()
        name = data.draw(st.sampled_from(names)) if names else "HEAD"
        tip = self.ground.store.refs.read(f"refs/heads/{name}") if names else self.ground.tip()
        back = data.draw(st.integers(0, steps))
        return f"{name}~{min(back, max(len(self.ground.line(tip)) - 1, 0))}"

    def part(self, data: st.DataObject) -> str:
        """Let HEAD's branch and another each go on its own way, and return the name of the other."""
        store, head = self.ground.store, self.ground.store.refs.head_target()
        others = [name for name in self.ground.branches() if f"refs/heads/{name}" != head]
        if not others or isinstance(head, ObjectId):
            return self.revision(data, steps=1)
        name = data.draw(st.sampled_from(others), "the other branch")
        if data.draw(st.integers(0, 3), "parting"):
            mine = head.removeprefix("refs/heads/")
            unborn = store.refs.head().unborn
            branches = self.branch_verbs()
            if not unborn:
                self.ground.command(lambda: branches.switch(name))
                self.do_work(data)
                self.ground.command(lambda: branches.switch(mine))
            self.do_work(data)
        return name

    def there_and_back(self, data: st.DataObject) -> None:
        """Take the last command back and up again, which changes nothing in the end."""
        if self.ground.done and is_drawn(data, "undo and redo"):
            self.ground.undo()
            self.ground.redo()

    def resolution(self, data: st.DataObject, conflict: Conflict) -> Resolution:
        choice = data.draw(st.sampled_from(conflict.choices), conflict.kind)
        text = f"t{self.ground.number()}" if choice == "text" else ""
        return Resolution(choice, text)

    def resolver(self, data: st.DataObject) -> Callable[[Conflict], Resolution | None] | None:
        if data.draw(st.booleans(), "resolver"):
            return None
        return lambda each: self.resolution(data, each) if data.draw(st.booleans()) else None

    def stopping(self, run: Callable[[], Any], *refusals: Any) -> Any:
        """Run a command that may stop, and assert that it has written nothing then."""
        files = self.ground.files()
        found = self.ground.command(run, *refusals)
        if not isinstance(found, Refused) and found.outcome == STOPPED:
            assert found.conflicts
            assert self.ground.files() == files, "stopped, and has written"
        return found

    def to_the_end(
        self, data: st.DataObject, found: Any, go_on: Callable[..., Any], *refusals: Any
    ) -> Any:
        """Resolve conflicts at random until the operation is done; None if aborted."""
        ground = self.ground
        for _ in range(ROUNDS):
            if isinstance(found, Refused):
                break
            if found.outcome != STOPPED:
                return found
            deed = data.draw(st.sampled_from(["resolve", "resolve", "resolve", "skip", "abort"]))
            if deed == "abort":
                break
            if deed == "resolve":
                self._resolve(data)
            if data.draw(st.integers(0, 9)) == 0:
                ground.reopen(data.draw(st.integers(0, 1)))
            given = {"skip": deed == "skip", "resolver": self.resolver(data)}
            found = self.stopping(
                partial(go_on, Writer(ground.store, author=AUTHOR), **given), *refusals
            )
        if read_stop(ground.store) is not None:
            files = ground.files()
            merge.resolve.abort(ground.store)
            assert ground.files() == files
        return None if isinstance(found, Refused) or found.outcome == STOPPED else found

    def _resolve(self, data: st.DataObject) -> None:
        """Settle some of the conflicts that are open, or all."""
        store, files = self.ground.store, self.ground.files()
        open_ = merge.resolve.open_conflicts(Writer(store))
        while open_ and is_drawn(data, "another"):
            found = (
                open_
                if data.draw(st.integers(0, 4))
                else merge.resolve.met_conflicts(Writer(store))
            )
            conflict = found[data.draw(st.integers(0, len(found) - 1))]
            open_ = merge.resolve.resolve(
                Writer(store), str(conflict.number), self.resolution(data, conflict)
            )
            assert conflict.key not in {each.key for each in open_}, "settled, and still open"
        assert self.ground.files() == files


def is_drawn(data: st.DataObject, why: str) -> bool:
    """Return a boolean, said to be drawn for something."""
    return data.draw(st.booleans(), why)
