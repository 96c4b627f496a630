"""A view of a store whose HEAD is one branch, not the checked-out one.

Rule: a view shares all state with its store (objects, journal, locks, caches) and adds none. Transactions use the real
HEAD, so they write its reflog only if the branch is checked out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.contracts import ANY, AnyValue, Transaction
from trace_store.contracts.protocols import RefReader
from trace_store.contracts.ref_names import line_ref
from trace_store.refs.database import RefDatabase
from trace_store.refs.head import NAME, Head
from trace_store.refs.reflog import ReflogEntry
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.transactions import Build, Make

Expected: TypeAlias = ObjectId | AnyValue | None


class BranchView(Store):
    """A store whose HEAD is one branch. The branch may be unborn.

    With an expected tip it writes only while the branch is there: a change of the branch by anybody else makes every
    later write through the view fail. Its own writes move the expected tip along.
    """

    # The view shares the store's `__dict__`; only the slots are its own.
    __slots__ = ("_branch", "_branch_refs", "_expected")

    def __init__(self, store: Store, ref: str, expected: Expected = ANY) -> None:
        self.__dict__ = store.__dict__
        self._branch = line_ref(ref)
        self._branch_refs = _BranchRefs(Store.refs.__get__(store), self._branch)
        self._expected = expected

    @property
    def refs(self) -> RefDatabase:
        """The refs, with a HEAD that names the branch."""
        return self._branch_refs

    def advance(
        self,
        ref: str,
        make: Make,
        author: str,
        message: str,
        head: str | ObjectId | None = None,
        durability: str | None = None,
    ) -> None:
        """Like `Store.advance`, but ignore `head`.

        Callers pass the view's HEAD, but the reflog needs the real one.
        """
        if self._expected is ANY or ref != self._branch:
            super().advance(ref, make, author, message, None, durability)
            return
        made: list[ObjectId] = []

        def checked(tip: ObjectId | None) -> tuple[ObjectId, Sequence[tuple[ObjectId, bytes]]]:
            self._check(tip)
            oid, objects = make(tip)
            made[:] = [oid]
            return oid, objects

        super().advance(ref, checked, author, message, None, durability)
        self._expected = made[-1]

    def transact(
        self, build: Build, *, author: str = "", durability: str | None = None
    ) -> Transaction | None:
        """Like `Store.transact`, but raise RefChangedError if the branch is not at the expected tip."""
        if self._expected is ANY:
            return super().transact(build, author=author, durability=durability)

        def checked(refs: RefReader) -> Transaction | None:
            self._check(refs.read(self._branch))
            return build(refs)

        done = super().transact(checked, author=author, durability=durability)
        for edit in () if done is None else done.edits:
            if edit.name == self._branch:
                self._expected = edit.new
        return done

    def _check(self, tip: ObjectId | None) -> None:
        expected = self._expected
        if tip != expected:
            at = "gone" if tip is None else f"at {tip.short()}"
            wanted = "new" if not isinstance(expected, ObjectId) else f"at {expected.short()}"
            raise errors.RefChangedError(
                f"{self._branch} is {at}, and was expected to be {wanted}",
                ref=self._branch,
                expected=expected,
                actual=tip,
            )


class _BranchRefs(RefDatabase):
    """Refs whose HEAD is always one branch."""

    __slots__ = ("_branch", "_real")

    def __init__(self, real: RefDatabase, branch: str) -> None:
        self.__dict__ = real.__dict__
        self._real = real
        self._branch = branch

    def head(self) -> Head:
        return Head(self._branch, self._real.read(self._branch))

    def head_target(self) -> str | ObjectId:
        return self._branch

    def set_head(
        self,
        target: str | ObjectId,
        *,
        message: str = "",
        author: str = "",
        time: int | None = None,
    ) -> None:
        raise errors.StateError(
            f"HEAD cannot be moved in a view of {self._branch}; move it in the repository itself",
            ref=self._branch,
        )

    def set_original(self, oid: ObjectId) -> None:
        if self._real.head_target() == self._branch:
            self._real.set_original(oid)

    def reflog(self, name: str) -> list[ReflogEntry]:
        return self._real.reflog(self._branch if name == NAME else name)
