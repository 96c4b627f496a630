"""A view of a store whose HEAD is one branch, not the checked-out one.

Rule: a view shares all state with its store (objects, journal, locks, caches) and adds none. Transactions use the real
HEAD, so they write its reflog only if the branch is checked out.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import branch_ref
from trace_store.refs.database import RefDatabase
from trace_store.refs.head import NAME, Head
from trace_store.refs.reflog import ReflogEntry
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.transactions import Make


class BranchView(Store):
    """A store whose HEAD is one branch. The branch may be unborn."""

    # The view shares the store's `__dict__`; only the slots are its own.
    __slots__ = ("_branch_refs",)

    def __init__(self, store: Store, ref: str) -> None:
        self.__dict__ = store.__dict__
        self._branch_refs = _BranchRefs(Store.refs.__get__(store), branch_ref(ref))

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
        super().advance(ref, make, author, message, None, durability)


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
