"""Branches, tags and HEAD: the verbs that move refs, and those that take a move back."""

from __future__ import annotations

from trace_store import history
from trace_store.errors import DetachedHeadError, RefNotFoundError
from trace_store.repo.handle import Handle, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.history.branches import Branch, DeletedRef
    from trace_store.history.reset import Reset, StagedCommit
    from trace_store.history.switch import SwitchResult
    from trace_store.history.tags import TagEntry
    from trace_store.history.undo import UndoResult
    from trace_store.refs.reflog import ReflogEntry
    from trace_store.repo.handle import Revision


class Moving(Handle):
    """Where branches, tags and HEAD stand. What a ref is moved away from stays in the trash.

    While a merge, a pick, a revert or a rebase waits, what moves HEAD or its branch raises StateError.
    """

    def branch(self, name: str, start: Revision = "HEAD", *, force: bool = False) -> Branch:
        """Make a branch that stands for a commit, stay where HEAD is, and return the branch.

        With `force` a branch of this name is moved, and what it stood for goes to the trash.

        Raises:
            AlreadyExistsError: there is a branch of this name, and `force` is not given.
            StateError: HEAD is on the branch that would be moved.
            InvalidRefNameError: the name breaks the rules for names.
            RevisionNotFoundError, UnbornBranchError: there is no such commit.
        """
        ref, _, _ = history.branches.create_branch(
            self.store, name, name_of(start), author=self.author, force=force
        )
        return history.branches.read_branch(self.store, ref)

    def branches(self, *patterns: str) -> list[Branch]:
        """Return the branches, sorted by name; with patterns such as `feature/*` those that are like one."""
        return history.branches.list_branches(self.store, patterns)

    def rename_branch(self, old: str, new: str, *, force: bool = False) -> Branch:
        """Give a branch another name, with its upstream and HEAD along with it, and return it.

        Raises:
            RefNotFoundError: there is no branch `old`.
            AlreadyExistsError: there is a branch `new`, and `force` is not given; else that goes to the trash.
            InvalidRefNameError: the new name breaks the rules for names.
            StateError: a merge, a pick, a revert or a rebase of it waits.
        """
        self._check_nothing_waits(*history.branches.names_before_and_after(self.store, old, new))
        _, ref = history.branches.rename_branch(
            self.store, old, new, author=self.author, force=force
        )
        return history.branches.read_branch(self.store, ref)

    def delete_branch(self, *names: str) -> list[DeletedRef]:
        """Delete branches into the trash, all or none, and return what each stood for.

        Raises:
            RefNotFoundError: there is no such branch.
            StateError: HEAD is on one of them.
        """
        return history.branches.delete_branches(self.store, names, author=self.author)

    def track(self, name: str, upstream: str | None) -> Branch:
        """Compare a branch with another from now on, or with None, and return it with how the two stand.

        Raises:
            RefNotFoundError: there is no such branch.
        """
        ref = history.branches.find_branch(self.store, name)
        if upstream is None:
            history.branches.unset_upstream(self.store, ref)
        else:
            other = history.branches.find_branch(self.store, upstream)
            history.branches.set_upstream(self.store, ref, other)
        return history.branches.read_branch(self.store, ref)

    def switch(
        self, name: str, *, create: bool = False, start: Revision = "HEAD", force: bool = False
    ) -> SwitchResult:
        """Go to a branch; `-` is the one before. Return where HEAD was and is.

        Args:
            name: the branch.
            create: make it first.
            start: where a new branch begins.
            force: take a name that there is; what it stood for goes to the trash.

        Raises:
            RefNotFoundError: there is no such branch.
            AlreadyExistsError: it is to be made, there is one, and `force` is not given.
            StateError: a merge, a pick, a revert or a rebase waits.
        """
        self._check_nothing_waits()
        if not create:
            return history.switch.switch(self.store, name_of(name), author=self.author)
        begin = None if start == "HEAD" else name_of(start)
        return history.switch.begin_branch(self.store, name, begin, author=self.author, force=force)

    def checkout(self, revision: Revision) -> SwitchResult:
        """Go to a branch, or look at any commit without one: HEAD is detached then, and branches stay where they are.

        Raises:
            RevisionNotFoundError: there is no such branch or commit.
            StateError: a merge, a pick, a revert or a rebase waits.
        """
        self._check_nothing_waits()
        try:
            if isinstance(revision, str):
                return history.switch.switch(self.store, revision, author=self.author)
        except (RefNotFoundError, DetachedHeadError):
            pass  # no branch, so a commit
        return history.switch.detach(self.store, name_of(revision), author=self.author)

    def reset(self, revision: Revision = "HEAD", *, hard: bool = False) -> Reset:
        """Move HEAD's branch to a commit, and return where it stood and what keeps that.

        What was after the commit is staged, for `commit_staged`; with `hard` it goes to the trash.

        Raises:
            RevisionNotFoundError: there is no such commit.
            StateError: a merge, a pick, a revert or a rebase waits.
        """
        self._check_nothing_waits()
        step = history.reset.reset_hard if hard else history.reset.reset_soft
        return step(self.store, name_of(revision), author=self.author)

    def commit_staged(self, message: str = "") -> StagedCommit:
        """Commit what `reset` staged, as one commit; without a message with what the staged commits say.

        Raises:
            StateError: nothing is staged, the branch has moved since, or a merge, a pick, a revert or a rebase waits.
            SecretFoundError: the message holds a secret, and `secrets` is "block".
        """
        self._check_nothing_waits()
        return history.reset.commit_staged(
            self.store, author=self.author, message=self._said(message)
        )

    def tag(
        self, name: str, revision: Revision = "HEAD", *, message: str = "", force: bool = False
    ) -> TagEntry:
        """Name a commit, and return the tag; with a message it is an annotated one, which says who and when.

        With `force` a tag of this name is moved, and what it named goes to the trash.

        Raises:
            AlreadyExistsError: there is a tag of this name, and `force` is not given.
            InvalidRefNameError: the name breaks the rules for names.
            RevisionNotFoundError: there is no such commit.
            SecretFoundError: the message holds a secret, and `secrets` is "block".
        """
        return history.tags.create_tag(
            self.store,
            name,
            name_of(revision),
            author=self.author,
            message=self._said(message),
            force=force,
        )

    def tags(self, *patterns: str) -> list[TagEntry]:
        """Return the tags, sorted by name; with patterns such as `v1.*` those that are like one."""
        return history.tags.list_tags(self.store, patterns)

    def delete_tag(self, *names: str) -> list[DeletedRef]:
        """Delete tags into the trash, all or none, and return what each stood for.

        Raises:
            RefNotFoundError: there is no such tag.
        """
        return history.tags.delete_tags(self.store, names, author=self.author)

    def undo(self, *, dry_run: bool = False) -> UndoResult:
        """Take back the last command that moved a ref or HEAD; another call takes back the one before it.

        It is the last command of anybody who works in this working copy; with `dry_run` it is told, and nothing is
        changed. What moved no ref (a purge, a prune, settings) cannot be taken back.

        Raises:
            StateError: there is none, a ref is not where it was left, or a merge, a pick, a revert or a rebase waits.
        """
        self._check_nothing_waits()
        return history.undo.undo(self.store, author=self.author, dry_run=dry_run)

    def redo(self, *, dry_run: bool = False) -> UndoResult:
        """Do again what was taken back last, unless another command has moved a ref since; raises as `undo`."""
        self._check_nothing_waits()
        return history.undo.redo(self.store, author=self.author, dry_run=dry_run)

    def reflog(self, name: str = "HEAD") -> list[ReflogEntry]:
        """Return where HEAD or a ref stood, as far as this working copy knows; the latest move first.

        A ref need not be there any more.

        Raises:
            RefNotFoundError: no ref of that name has a log here.
        """
        self.store.check_open()
        return list(
            history.reflog.newest_first(self.store, history.reflog.find_log(self.store, name))
        )
