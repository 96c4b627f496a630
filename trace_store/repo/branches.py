"""Branches: list, create, rename, delete, track, switch, and their reflogs."""

from __future__ import annotations

from itertools import islice

import trace_store
from trace_store import check, errors, history, repo, revision, store
from trace_store.objects.codec import COMMIT, kind_of
from trace_store.oid import ObjectId
from trace_store.ref_names import BRANCHES, FORKS, TRASH
from trace_store.repo.handle import Handle, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # the method `list` hides it  # noqa: N812
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from trace_store.checkpoints.handle import Forks
    from trace_store.context.compiled import CompiledContext
    from trace_store.history.branches import Branch, DeletedRef
    from trace_store.history.switch import SwitchResult
    from trace_store.history.whohas import VersionHolders
    from trace_store.merge.todo import Todo
    from trace_store.objects.address import Address
    from trace_store.refs.reflog import ReflogEntry
    from trace_store.repo.handle import Revision
    from trace_store.repo.in_progress import OngoingBisection, Stopped


class Branches:
    """The branches of a repository, as `repo.branches`, and HEAD.

    If a branch is deleted or force-moved, its old commit goes to the trash.

    While a merge, pick, revert or rebase is in progress, moving HEAD raises StateError.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._store = handle.store

    def list(
        self,
        *patterns: str,
        contains: Revision | None = None,
        merged: Revision | None = None,
        unmerged: Revision | None = None,
    ) -> List[Branch]:
        """Return the branches, sorted by name.

        Args:
            patterns: only branches whose short name matches one of these, such as `feature/*`.
            contains: only branches that contain this commit.
            merged: only branches merged into this commit.
            unmerged: only branches not merged into this commit.

        Raises:
            RevisionNotFoundError: there is no such commit.
        """
        check.texts(patterns=patterns)
        given = {"contains": contains, "merged": merged, "unmerged": unmerged}
        commits = {
            name: revision.resolve_commit(self._store, name_of(each, name))
            for name, each in given.items()
            if each is not None
        }
        return history.branches.list_branches(self._store, patterns, **commits)

    def create(self, name: str, start: Revision = "HEAD", *, force: bool = False) -> Branch:
        """Create a branch at a commit, without switching to it, and return it.

        With `force` an existing branch is moved, and its former commit goes to the trash.

        Raises:
            AlreadyExistsError: the branch exists, and `force` is not given.
            StateError: HEAD is on the branch that would be moved.
            InvalidRefNameError: the name is not valid.
            RevisionNotFoundError, UnbornBranchError: there is no such commit.
        """
        check.flag(force=force)
        ref, _, kept = history.branches.create_branch(
            self._store, name, name_of(start, "start"), author=self._handle.author, force=force
        )
        return history.branches.read_branch(self._store, ref, kept=kept)

    def rename(self, old: str, new: str, *, force: bool = False) -> Branch:
        """Rename a branch, with its upstream and HEAD, and return it.

        Raises:
            RefNotFoundError: there is no branch `old`.
            AlreadyExistsError: there is a branch `new`; with `force` that one goes to the trash.
            InvalidRefNameError: the new name is not valid.
            StateError: a merge, pick, revert or rebase is in progress on the branch, or HEAD is on `new`, which would
                be replaced.
        """
        check.flag(force=force)
        names = history.branches.names_before_and_after(self._store, old, new)
        self._handle.check_not_stopped(*names)
        before, ref = history.branches.rename_branch(
            self._store, old, new, author=self._handle.author, force=force
        )
        return history.branches.read_branch(self._store, ref, renamed_from=before)

    def delete(self, *names: str) -> List[DeletedRef]:
        """Move branches to the trash, all or none, and return the commit of each.

        Raises:
            RefNotFoundError: there is no such branch.
            StateError: HEAD is on one of them.
        """
        return history.branches.delete_branches(self._store, names, author=self._handle.author)

    def track(self, name: str, upstream: str | None) -> Branch:
        """Set the upstream of a branch, or with None unset it.

        Return the branch, with its ahead and behind counts.

        Raises:
            RefNotFoundError: there is no such branch.
            InvalidInputError: it is its own upstream.
        """
        ref = history.branches.find_branch(self._store, name)
        if upstream is None:
            history.branches.unset_upstream(self._store, ref)
        else:
            other = history.branches.find_branch(self._store, upstream)
            if other == ref:
                raise errors.InvalidInputError("a branch cannot be its own upstream")
            history.branches.set_upstream(self._store, ref, other)
        return history.branches.read_branch(self._store, ref)

    def containing(self, what: Revision) -> List[str]:
        """Return the full names of the refs whose history contains a commit, sorted.

        Raises:
            RevisionNotFoundError: there is no such commit.
        """
        oid = revision.resolve_commit(self._store, name_of(what))
        return history.whohas.whohas_commit(self._store, oid)

    def names(self, commits: Iterable[ObjectId], *, trash: bool = False) -> dict[bytes, List[str]]:
        """Return the full names of the refs at each commit that has any; HEAD and its branch come first.

        The names include where HEAD's branch was forked. With `trash`, they include refs in the trash.
        """
        check.items(commits=commits)
        refs = self._store.refs
        head, found = refs.head(), refs.names_of(commits)
        names: dict[bytes, list[str]] = {
            oid: [name for name in named if trash or not name.startswith(TRASH)]
            for oid, named in found.items()
        }
        if head.oid is not None and head.oid in names:
            others = [name for name in names[head.oid] if name != head.ref]
            names[head.oid] = ["HEAD", *([] if head.ref is None else [head.ref]), *others]
        if head.ref is not None and refs.read(FORKS + head.ref.removeprefix(BRANCHES)):
            fork = trace_store.checkpoints.forks.fork_of(self._store, head.ref)
            if fork is not None:
                names.setdefault(fork.point, []).append(fork.checkpoint)
        return names

    def whohas(
        self, what: str | Address | ObjectId, *, is_text: bool = False
    ) -> List[VersionHolders]:
        """Return message versions that match a text, an address or a blob.

        The newest version comes first. Each comes with the refs that have it.

        Args:
            what: an address, as a value or as text; the id of a blob; or any other text, found ignoring case.
            is_text: search for a text even if it reads as an address.

        Raises:
            InvalidInputError: `what` is an empty text, a commit (use `containing`), or of another type.
        """
        found: object = what
        if isinstance(what, str):
            try:
                found = None if is_text else revision.resolve_address(self._store, what)
            except (errors.NotFoundError, errors.InvalidInputError):
                found = None
            if found is None:
                return history.whohas.whohas_text(self._handle.contexts, what)
        if isinstance(found, tuple):
            return history.whohas.whohas_message(self._handle.contexts, revision.as_address(found))
        if not isinstance(found, bytes):
            raise errors.InvalidInputError(
                f"what must be text, an address or an id, not {type(what).__name__}",
                argument="what",
            )
        objects = self._store.objects
        if objects.contains(found) and kind_of(objects.read(found)) == COMMIT:
            raise errors.InvalidInputError(
                "this is a commit: use `branches.containing`",
                argument="what",
            )
        return history.whohas.whohas_content(self._handle.contexts, found)

    def bisect(
        self,
        test: Callable[[CompiledContext], bool | None],
        bad: Revision = "HEAD",
        good: Revision | Sequence[Revision] = (),
    ) -> tuple[ObjectId, ...]:
        """Return the first commit for which a test fails.

        Return several candidates if the test cannot decide between them.

        Args:
            test: returns whether a context is good: True, False, or None if it cannot tell.
            bad: a commit for which the test fails.
            good: one or several earlier commits for which it succeeds; without one, the
                search starts at the root commit.

        Raises:
            StateError: the test finds the bad commit good, or a good one bad.
            RevisionNotFoundError: there is no such commit.
        """
        check.function(test=test)
        several: Sequence[Any] = good if isinstance(good, list | tuple) else [good]
        contexts, goods = self._handle.contexts, [name_of(each, "good") for each in several]
        search = history.bisect.begin(contexts, name_of(bad, "bad"), goods)
        _, step = history.bisect.run(contexts, search, test)
        return tuple(ObjectId.parse(point) for point in step.found)

    def start_bisection(
        self, bad: Revision = "HEAD", *good: Revision, messages: bool = False
    ) -> OngoingBisection:
        """Start a bisection that can be continued later, also by another process; an earlier one is replaced.

        Args:
            bad: a bad commit.
            good: good ancestors of it; without any, the search covers the whole history.
            messages: search the messages of the bad commit's context instead.

        Raises:
            RevisionNotFoundError: there is no such commit.
            InvalidInputError: a good commit is not an ancestor of the bad one, or is given for messages.
            StateError: the context has no messages.
        """
        check.flag(messages=messages)
        goods = [name_of(each, "good") for each in good]
        search = history.bisect.begin(
            self._handle.contexts, name_of(bad, "bad"), goods, messages=messages
        )
        history.bisect.save(self._store, search)
        return repo.in_progress.OngoingBisection(self._handle, search)

    @property
    def bisection(self) -> OngoingBisection | None:
        """The bisection in progress; None if there is none.

        Raises:
            StateError: its file is damaged; `end_bisection` removes it.
        """
        search = history.bisect.load(self._store)
        return None if search is None else repo.in_progress.OngoingBisection(self._handle, search)

    def end_bisection(self) -> bool:
        """End the bisection in progress; return False if there is none."""
        return history.bisect.forget(self._store)

    def stopped(self, kind: str = "") -> Stopped:
        """Return the merge, pick, revert or rebase in progress, as `repo.in_progress`.

        Args:
            kind: "merge", "cherry-pick", "revert" or "rebase"; "" is any of them.

        Raises:
            StateError: none is in progress, or one of another kind.
        """
        check.text(kind=kind)
        self._store.check_open()
        return repo.in_progress.required(self._handle, kind)

    def todo(self, upstream: Revision | None = "", *, onto: Revision = "", ref: str = "") -> Todo:
        """Return the steps of a rebase, oldest first, without doing them: what the `plan` of `rebase` is given.

        They are also a text for an editor: `text` and `read` of the result.

        Args:
            upstream: as in `rebase`.
            onto: as in `rebase`.
            ref: the branch to rebase; "" is HEAD's.

        Raises:
            RevisionNotFoundError: there is no such commit, or the branch has no upstream.
        """
        store = self._store.on(ref) if ref else self._store
        base = None if upstream is None else name_of(upstream, "upstream")
        return trace_store.merge.rebase.RebaseRange(store, base, name_of(onto, "onto")).steps

    @property
    def fork(self) -> Forks:
        """Forks: `repo.branches.fork("idea")` creates one; `of`, `compare` and `merge` work on them."""
        handle = self._handle
        return trace_store.checkpoints.handle.Forks(
            handle.contexts, author=handle.author, guard=handle.guard
        )

    def switch(
        self,
        name: str,
        *,
        create: bool = False,
        start: Revision | None = None,
        force: bool = False,
        orphan: bool = False,
    ) -> SwitchResult:
        """Switch HEAD to a branch, and return where HEAD was and is.

        Args:
            name: the branch; `-` is the previous one.
            create: create it first.
            start: where a new branch starts; None is HEAD, which may have no commit.
            force: with `create`, replace an existing branch; its old commit goes to the trash.
            orphan: switch to a new branch without a commit.

        Raises:
            RefNotFoundError: there is no such branch.
            AlreadyExistsError: with `create`, the branch exists and `force` is not given.
            StateError: a merge, pick, revert or rebase is in progress.
        """
        check.flag(create=create, force=force, orphan=orphan)
        author = self._handle.author
        self._handle.check_not_stopped()
        if orphan:
            return history.switch.begin_empty(self._store, name, author=author)
        if not create:
            return history.switch.switch(self._store, name_of(name, "name"), author=author)
        begin = None if start is None else name_of(start, "start")
        return history.switch.begin_branch(self._store, name, begin, author=author, force=force)

    def checkout(self, revision: Revision, *, detach: bool = False) -> SwitchResult:
        """Switch HEAD to a branch, or detach it at a commit.

        With `detach`, detach it even if a branch is named.

        Raises:
            RevisionNotFoundError: there is no such branch or commit.
            StateError: a merge, pick, revert or rebase is in progress.
        """
        check.flag(detach=detach)
        self._handle.check_not_stopped()
        author = self._handle.author
        try:
            if isinstance(revision, str) and not detach:
                return history.switch.switch(self._store, revision, author=author)
        except (errors.RefNotFoundError, errors.DetachedHeadError):
            pass  # not a branch, so a commit
        return history.switch.detach(self._store, name_of(revision), author=author)

    def reflog(self, name: str = "HEAD", *, limit: int | None = None) -> List[ReflogEntry]:
        """Return the newest `limit` reflog entries of HEAD or a ref, newest first.

        The ref may be deleted.

        Raises:
            RefNotFoundError: there is no reflog of that name.
        """
        check.count(limit=limit)
        ref = self.find_reflog(name)
        return [*islice(store.reflogs.newest_first(self._store, ref), limit)]

    def find_reflog(self, name: str) -> str:
        """Return the full name of the ref whose reflog a name means; errors as in `reflog`."""
        self._store.check_open()
        return store.reflogs.find_log(self._store, name)

    def move_line(self, message: str, before: ObjectId | None, after: ObjectId | None) -> str:
        """Return a line about a move from a reflog or an undo: its message, and what an unnamed commit did.

        Args:
            message: the message of the reflog's entry, or of the undo.
            before: the commit that the ref moved from.
            after: the commit that it moved to.
        """
        check.text(message=message)
        return history.undo.move_line(self._store, message, before, after)
