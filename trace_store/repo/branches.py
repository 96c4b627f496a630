"""Branches: list, create, rename, delete, track, switch, and their reflogs."""

from __future__ import annotations

from trace_store import history
from trace_store.errors import DetachedHeadError, RefNotFoundError
from trace_store.repo.handle import Handle, check_flag, name_of
from trace_store.revision import resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # the method `list` hides it  # noqa: N812

    from trace_store.history.branches import Branch, DeletedRef
    from trace_store.history.switch import SwitchResult
    from trace_store.refs.reflog import ReflogEntry
    from trace_store.repo.handle import Revision


class Branches:
    """The branches of a repository, as `repo.branches`, and HEAD. What a ref is moved away from stays in the trash.

    While a merge, pick, revert or rebase is in progress, moving HEAD raises StateError.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._store = handle.store

    def list(self, *patterns: str) -> List[Branch]:
        """Return the branches, sorted by name; with patterns such as `feature/*` the matching ones."""
        return history.branches.list_branches(self._store, patterns)

    def create(self, name: str, start: Revision = "HEAD", *, force: bool = False) -> Branch:
        """Create a branch at a commit, without switching to it, and return it.

        With `force` an existing branch is moved, and its former commit goes to the trash.

        Raises:
            AlreadyExistsError: the branch exists, and `force` is not given.
            StateError: HEAD is on the branch that would be moved.
            InvalidRefNameError: the name is not valid.
            RevisionNotFoundError, UnbornBranchError: there is no such commit.
        """
        check_flag(force=force)
        ref, _, _ = history.branches.create_branch(
            self._store, name, name_of(start, "start"), author=self._handle.author, force=force
        )
        return history.branches.read_branch(self._store, ref)

    def rename(self, old: str, new: str, *, force: bool = False) -> Branch:
        """Rename a branch, with its upstream and HEAD, and return it.

        Raises:
            RefNotFoundError: there is no branch `old`.
            AlreadyExistsError: there is a branch `new`; with `force` that one goes to the trash.
            InvalidRefNameError: the new name is not valid.
            StateError: a merge, pick, revert or rebase of it is in progress.
        """
        check_flag(force=force)
        names = history.branches.names_before_and_after(self._store, old, new)
        self._handle.check_not_stopped(*names)
        _, ref = history.branches.rename_branch(
            self._store, old, new, author=self._handle.author, force=force
        )
        return history.branches.read_branch(self._store, ref)

    def delete(self, *names: str) -> List[DeletedRef]:
        """Move branches to the trash, all or none, and return the commit of each.

        Raises:
            RefNotFoundError: there is no such branch.
            StateError: HEAD is on one of them.
        """
        return history.branches.delete_branches(self._store, names, author=self._handle.author)

    def track(self, name: str, upstream: str | None) -> Branch:
        """Set the upstream of a branch, or with None unset it; return the branch with how far the two are apart.

        Raises:
            RefNotFoundError: there is no such branch.
        """
        ref = history.branches.find_branch(self._store, name)
        if upstream is None:
            history.branches.unset_upstream(self._store, ref)
        else:
            other = history.branches.find_branch(self._store, upstream)
            history.branches.set_upstream(self._store, ref, other)
        return history.branches.read_branch(self._store, ref)

    def containing(self, revision: Revision) -> List[str]:
        """Return the full names of the refs that have a commit, sorted.

        Raises:
            RevisionNotFoundError: there is no such commit.
        """
        oid = resolve_commit(self._store, name_of(revision))
        return history.whohas.whohas_commit(self._store, oid)

    def switch(
        self, name: str, *, create: bool = False, start: Revision = "HEAD", force: bool = False
    ) -> SwitchResult:
        """Switch HEAD to a branch; `-` is the one before. Return where HEAD was and is.

        Args:
            name: the branch.
            create: create it first.
            start: where a new branch starts.
            force: take the name of an existing branch, whose commit goes to the trash.

        Raises:
            RefNotFoundError: there is no such branch.
            AlreadyExistsError: it is to be created, exists, and `force` is not given.
            StateError: a merge, pick, revert or rebase is in progress.
        """
        check_flag(create=create, force=force)
        author = self._handle.author
        self._handle.check_not_stopped()
        if not create:
            return history.switch.switch(self._store, name_of(name, "name"), author=author)
        begin = None if start == "HEAD" else name_of(start, "start")
        return history.switch.begin_branch(self._store, name, begin, author=author, force=force)

    def checkout(self, revision: Revision) -> SwitchResult:
        """Switch HEAD to a branch, or detach it at a commit.

        Raises:
            RevisionNotFoundError: there is no such branch or commit.
            StateError: a merge, pick, revert or rebase is in progress.
        """
        self._handle.check_not_stopped()
        author = self._handle.author
        try:
            if isinstance(revision, str):
                return history.switch.switch(self._store, revision, author=author)
        except (RefNotFoundError, DetachedHeadError):
            pass  # not a branch, so a commit
        return history.switch.detach(self._store, name_of(revision), author=author)

    def reflog(self, name: str = "HEAD") -> List[ReflogEntry]:
        """Return where HEAD or a ref has been, newest first, also of a ref that was deleted.

        Raises:
            RefNotFoundError: there is no reflog of that name.
        """
        self._store.check_open()
        ref = history.reflog.find_log(self._store, name)
        return [*history.reflog.newest_first(self._store, ref)]
