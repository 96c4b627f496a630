"""Branches: list, create, rename, delete, track, switch, and their reflogs.

Deleting or force-moving a branch keeps its old tip in the trash, in the same transaction.
"""

from __future__ import annotations

from itertools import islice

from trace_store import errors, history, refs
from trace_store import store as stores
from trace_store.base import check
from trace_store.base.ident import count_of, is_count
from trace_store.base.oid import ObjectId, is_full_id, is_prefix
from trace_store.contracts import RefEdit
from trace_store.contracts.ref_names import (
    BRANCHES,
    FORKS,
    RECORDS,
    TRASH,
    branch_ref,
    check_text,
    is_ref_name,
    short_name,
)
from trace_store.objects.codec import COMMIT, kind_of
from trace_store.objects.commit import read_commit
from trace_store.store.revision import (
    as_address,
    branch_of,
    commits_of,
    name_of,
    parse_moment,
    resolve_address,
    resolve_commit,
    upstreams,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # the method `list` hides it  # noqa: N812
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from trace_store.context.compiled import CompiledContext
    from trace_store.contracts.protocols import RefReader
    from trace_store.history.bisect import OngoingBisection
    from trace_store.history.branch_state import Branch
    from trace_store.history.switch import SwitchResult
    from trace_store.history.trash_refs import DeletedRef
    from trace_store.history.whohas import VersionHolders
    from trace_store.objects.address import Address
    from trace_store.refs.reflog import ReflogEntry
    from trace_store.store.revision import Revision
    from trace_store.store.store import Store
    from trace_store.writer import Writer

SHORT = 12
"""The length of an id in a line about a move."""


class Branches:
    """The branches of a repository, as `repo.branches`, and HEAD.

    If a branch is deleted or force-moved, its old commit goes to the trash.

    While a merge, pick, revert or rebase is in progress on a branch, moving that branch raises StateError.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = writer.store

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
        named = {
            name: resolve_commit(self._store, name_of(each, name))
            for name, each in given.items()
            if each is not None
        }
        inside, above, outside = (named.get(name) for name in given)
        commits = commits_of(self._store)
        is_ancestor = commits.is_ancestor
        current, known = self._store.refs.head_target(), upstreams(self._store)
        branch_at = history.branch_state.branch_at
        return [
            branch_at(self._store, ref, tips, current, known.get(ref), commits)
            for ref, tips in self._store.refs.iterate_tips(BRANCHES)
            if (not patterns or matches_any(ref.removeprefix(BRANCHES), patterns))
            and (inside is None or any(is_ancestor(inside, tip) for tip in tips))
            and (above is None or all(is_ancestor(tip, above) for tip in tips))
            and (outside is None or not all(is_ancestor(tip, outside) for tip in tips))
        ]

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
        store, ref, given = self._store, branch_ref(name), name_of(start, "start")
        oid, message = resolve_commit(store, given), f"branch: created from {given}"
        _, kept, moved = self._set(ref, oid, message, force=force)
        return history.branch_state.read_branch(store, ref, kept=kept, changed=moved)

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
        store = self._store
        head = store.refs.head()
        ref = head.ref if head.unborn and head.ref == BRANCHES + old else find_branch(store, old)
        assert ref is not None
        target = branch_ref(new)
        change = self._writer.begin("branch", ref, target)
        if ref == target:
            return history.branch_state.read_branch(store, ref, renamed_from=ref)
        message = refs.reflog.rename_message(ref, target)

        def create_target(refs: RefReader) -> List[RefEdit] | None:
            oid = refs.read(ref)
            if oid is None and refs.read(target) is not None:
                raise name_taken(target)  # a branch without a commit replaces none
            moves = _set_edits(store, refs, target, oid, force=force)
            return None if oid is None else moves

        def remove_source(refs: RefReader) -> List[RefEdit] | None:
            oid = refs.read(ref)
            return (
                None
                if oid is None
                else [RefEdit(ref, None, oid), *history.trash_refs.keep_other_tips(refs, ref)]
            )

        def move_head(_: RefReader) -> None:
            if store.refs.head_target() == ref:
                store.refs.set_head(target, message=message, author=change.author)

        # In this order HEAD names an existing branch even after a crash in between.
        change.write(create_target, message)
        store.transact(move_head)
        change.write(remove_source, message)
        history.branch_state.rename_upstreams(store, ref, target)
        return history.branch_state.read_branch(store, target, renamed_from=ref, changed=True)

    def delete(self, *names: str, force: bool = False) -> List[DeletedRef]:
        """Move branches to the trash, all or none, and return the commit of each.

        Raises:
            RefNotFoundError: there is no such branch.
            StateError: HEAD is on one of them, or without `force` a merge, pick, revert or rebase is in progress there.
        """
        check.flag(force=force)
        wanted = list(dict.fromkeys(find_branch(self._store, name) for name in names))
        if not force:
            self._writer.begin("branch", *wanted)
        deleted = history.trash_refs.delete_refs(self._writer, wanted, what="branch")
        for each in deleted:  # so that an undo restores it
            history.branch_state.move_upstream(self._store, each.ref, each.kept[0])
        return deleted

    def track(self, name: str, upstream: str | None) -> Branch:
        """Set the upstream of a branch, or with None unset it.

        Return the branch, with its ahead and behind counts.

        Raises:
            RefNotFoundError: there is no such branch.
            InvalidInputError: it is its own upstream.
        """
        ref = find_branch(self._store, name)
        other = None if upstream is None else find_branch(self._store, upstream)
        if other == ref:
            raise errors.InvalidInputError("a branch cannot be its own upstream")
        changed = history.branch_state.upstream_of(self._store, ref) != other
        history.branch_state.set_upstream(self._store, ref, other)
        if changed:
            said = "removed" if other is None else f"set to {short_name(other)}"
            message = f"branch: upstream of {short_name(ref)} {said}"
            stores.reflogs.log_command(self._store, message, self._writer.author)
        return history.branch_state.read_branch(self._store, ref, changed=changed)

    def facts(self, name: str = "") -> dict[str, str]:
        """Return the newest value of each fact that commits of a branch recorded as `meta`; "" is HEAD's.

        A record, given by its full name, has facts, too. The cost does not depend on the length of the branch, except
        the first time.

        Raises:
            RefNotFoundError: there is no such branch.
        """
        check.text(name=name)
        if not name:
            return history.facts.branch_facts(self._writer)
        ref = find_line(self._store, name)
        return history.facts.branch_facts(self._writer.on(ref))

    def containing(self, what: Revision) -> List[str]:
        """Return the full names of the refs whose history contains a commit, sorted.

        Raises:
            RevisionNotFoundError: there is no such commit.
        """
        oid = resolve_commit(self._store, name_of(what))
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
        record = "" if head.ref is None else FORKS + head.ref.removeprefix(BRANCHES)
        if record and refs.read(record) is not None:
            names.setdefault(resolve_commit(self._store, record), []).append(record)
        return names

    def whohas(
        self, what: str | Address | ObjectId, *, is_text: bool = False, at: Revision = ""
    ) -> List[VersionHolders]:
        """Return message versions that match a text, an address or a blob.

        The newest version comes first. Each comes with the refs that have it.

        Args:
            what: an address, as a value or as text; the id of a blob; or any other text, found ignoring case.
            is_text: search for a text even if it reads as an address.
            at: a time, or a commit for its time: only versions that were visible then.

        Raises:
            InvalidInputError: `what` is an empty text, a commit (use `containing`), or of another type; or `at` is
                neither a time nor a commit.
        """
        name = name_of(at, "at")
        if name:
            found_at = moment_of(self._store, name)
            return history.whohas.held_at(
                self._writer.contexts, self.whohas(what, is_text=is_text), found_at
            )
        found: object = what
        if isinstance(what, str):
            try:
                found = None if is_text else resolve_address(self._store, what)
            except (errors.NotFoundError, errors.InvalidInputError):
                found = None
            if found is None:
                return history.whohas.whohas_text(self._writer.contexts, what)
        if isinstance(found, tuple):
            return history.whohas.whohas_message(self._writer.contexts, as_address(found))
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
        return history.whohas.whohas_content(self._writer.contexts, found)

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
        contexts, goods = self._writer.contexts, [name_of(each, "good") for each in several]
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
            self._writer.contexts, name_of(bad, "bad"), goods, messages=messages
        )
        history.bisect.save(self._store, search)
        return history.bisect.OngoingBisection(self._writer, search)

    @property
    def bisection(self) -> OngoingBisection | None:
        """The bisection in progress; None if there is none.

        Raises:
            StateError: its file is damaged; `end_bisection` removes it.
        """
        search = history.bisect.load(self._store)
        return None if search is None else history.bisect.OngoingBisection(self._writer, search)

    def end_bisection(self) -> bool:
        """End the bisection in progress; return False if there is none.

        Raises:
            StorageError: its file cannot be removed.
        """
        return self._store.disk.remove(self._store.layout.bisect_file)

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
            InvalidInputError: `start` or `force` is given without `create`.
            StateError: a revert is in progress on the detached HEAD.
        """
        check.flag(create=create, force=force, orphan=orphan)
        if (start is not None or force) and not create:
            argument = "force" if start is None else "start"
            raise errors.InvalidInputError(f"{argument} requires create", argument=argument)
        store, writer = self._store, self._writer
        if orphan or (create and start is None and store.refs.head().unborn):
            ref = branch_ref(name)
            if store.refs.read(ref) is not None:
                raise name_taken(ref)
            return history.switch.move_head(writer, ref, created=True)
        if create:
            given = name_of("HEAD" if start is None else start, "start")
            return self._switch_to_new(branch_ref(name), given, force=force)
        named = name_of(name, "name")
        if named == "-":
            named = refs.reflog.previous_branch(store.refs)
            if is_full_id(named):  # HEAD was detached
                return history.switch.move_head(writer, resolve_commit(store, named))
        return history.switch.move_head(writer, find_branch(store, named))

    def _switch_to_new(self, ref: str, start: str, *, force: bool) -> SwitchResult:
        store, head = self._store, self._store.refs.head()
        oid = resolve_commit(store, start)
        if head.ref == ref:  # HEAD stays on the branch
            message = f"branch: reset to {start}"
        else:
            message = history.switch.reflog_message(head, short_name(ref))
        existed, kept, moved = self._set(ref, oid, message, force=force, even_current=True)
        return history.switch.move_head(
            self._writer, ref, created=not existed, reset=existed and moved, replaced=kept
        )

    def _set(
        self, ref: str, oid: ObjectId, message: str, *, force: bool, even_current: bool = False
    ) -> tuple[bool, str | None, bool]:
        """Create or move a branch.

        Return whether it existed, the ref in the trash with its old tip, and whether it moved.
        """
        moves: List[RefEdit] = []

        def edits(refs: RefReader) -> List[RefEdit]:
            moves[:] = _set_edits(
                self._store, refs, ref, oid, force=force, even_current=even_current
            )
            return moves

        self._writer.begin("branch", ref).write(edits, message)
        before, kept = moves[0].expected, moves[1].name if moves[1:] else None
        return before is not None, kept, before != oid

    def checkout(self, revision: Revision, *, detach: bool = False) -> SwitchResult:
        """Switch HEAD to a branch, or detach it at a commit.

        With `detach`, detach it even if a branch is named.

        Raises:
            RevisionNotFoundError: there is no such branch or commit.
            StateError: a revert is in progress on the detached HEAD.
        """
        check.flag(detach=detach)
        if isinstance(revision, str) and is_prefix(revision):
            resolve_commit(
                self._store, revision
            )  # it may start the ids of a session and of a commit
        try:
            if isinstance(revision, str) and not detach:
                return self.switch(revision)
        except (errors.RefNotFoundError, errors.DetachedHeadError):
            pass  # not a branch, so a commit
        oid = resolve_commit(self._store, name_of(revision))
        return history.switch.move_head(self._writer, oid)

    def reflog(self, name: str = "HEAD", *, limit: int | None = None) -> List[ReflogEntry]:
        """Return the newest `limit` reflog entries of HEAD or a ref, newest first.

        The ref may be deleted.

        Raises:
            RefNotFoundError: there is no reflog of that name.
        """
        check.count(limit=limit)
        ref = self.find_reflog(name)
        return [*islice(stores.reflogs.newest_first(self._store, ref), limit)]

    def find_reflog(self, name: str) -> str:
        """Return the full name of the ref whose reflog a name means; errors as in `reflog`."""
        self._store.check_open()
        return stores.reflogs.find_log(self._store, name)

    def move_line(self, message: str, before: ObjectId | None, after: ObjectId | None) -> str:
        """Return a line about a move from a reflog or an undo: its message, and what an unnamed commit did.

        Args:
            message: the message of the reflog's entry, or of the undo.
            before: the commit that the ref moved from.
            after: the commit that it moved to.
        """
        check.text(message=message)
        words = (word[:SHORT] if is_full_id(word) else word for word in message.split(" "))
        shortened = " ".join(words)
        word, said = refs.reflog.split_undo(refs.reflog.read_join(message)[1])
        oid = before if word == refs.reflog.UNDO else after
        if said != "commit" or oid is None:
            return shortened
        try:
            commit = read_commit(oid, self._store.objects.read)
            return f"{shortened}: {history.summary.summary(self._store, commit)}"
        except errors.TraceError:
            return shortened  # missing or corrupt, which other commands report


def branch_of_head(store: Store) -> str:
    """Return the full name of HEAD's branch, which may have no commit yet.

    Raises:
        DetachedHeadError: HEAD is detached.
    """
    ref = store.refs.head_target()
    if isinstance(ref, ObjectId):
        raise errors.DetachedHeadError("HEAD is detached, and this command moves a branch")
    return ref


def moment_of(store: Store, text: str) -> int:
    """Return a time, or the time of a commit, in milliseconds since the epoch.

    Raises:
        InvalidInputError: it is neither.
    """
    try:
        return read_commit(resolve_commit(store, text), store.objects.read).time
    except (errors.NotFoundError, errors.InvalidInputError):
        moment = parse_moment(text, store)
    if moment is None:
        raise errors.InvalidInputError(f"neither a time nor a commit: {text[:80]!r}", argument="at")
    return moment


def find_branch(store: Store, name: str) -> str:
    """Resolve a name, a session's id or `HEAD` to the full name of a branch.

    Raises:
        RefNotFoundError: there is no such branch.
        DetachedHeadError: the name is `HEAD`, which is detached.
        AmbiguousRevisionError: the prefix matches several sessions.
    """
    check_text(name)
    if name in ("HEAD", "@"):
        ref = store.refs.head().ref
        if ref is None:
            raise errors.DetachedHeadError("HEAD is detached: it is on no branch")
        return ref
    if name == "-":
        name = refs.reflog.previous_branch(store.refs)
    elif name.startswith("@{-") and name.endswith("}") and is_count(name[3:-1]):
        name = refs.reflog.previous_branch(store.refs, count_of(name[3:-1]), name)
    for full in (BRANCHES + name, "refs/" + name, name):
        if full.startswith(BRANCHES) and is_ref_name(full) and store.refs.read(full) is not None:
            return full
    # Sessions are branches, so their names are valid; those of other revisions, such as `main~1`, need not be.
    can_be_session = is_ref_name(BRANCHES + name)
    found = branch_of(store, name) if can_be_session else None
    if found is None or not found.startswith(BRANCHES):
        raise errors.RefNotFoundError(f"no branch {name[:120]!r}", ref=name)
    return found


def find_line(store: Store, name: str) -> str:
    """Return the full name of a branch, a record, or the latest record of a thread; errors as in `find_branch`."""
    check_text(name)
    if name.startswith(RECORDS):
        if not is_ref_name(name) or store.refs.read(name) is None:
            raise errors.RefNotFoundError(f"no record {name[:120]!r}", ref=name)
        return name
    try:
        return find_branch(store, name)
    except errors.RefNotFoundError:
        found = branch_of(store, name) if is_ref_name(BRANCHES + name) else None
        if found is None or not found.startswith(RECORDS):
            raise
        return found


def name_taken(ref: str) -> errors.AlreadyExistsError:
    """Return the error for a branch that already exists."""
    return errors.AlreadyExistsError(
        f"branch {short_name(ref)} already exists",
        code=errors.ErrorCode.BRANCH_EXISTS,
        ref=ref,
    )


def _set_edits(
    store: Store,
    refs: RefReader,
    ref: str,
    oid: ObjectId | None,
    *,
    force: bool,
    even_current: bool = False,
) -> list[RefEdit]:
    """Return the edits that create a branch, or move it and keep its tips in the trash.

    Raises:
        AlreadyExistsError: the branch exists, and `force` is not given.
        StateError: HEAD is on it, and `even_current` is not given.
    """
    before = refs.read(ref)
    if before is None:
        return [RefEdit(ref, oid, None)]
    if not force:
        raise name_taken(ref)
    if store.refs.head_target() == ref and not even_current:
        raise errors.StateError(f"HEAD is on {short_name(ref)}; use reset to move that branch")
    moves = [RefEdit(ref, oid, before)]
    if before != oid:
        trash = history.trash_refs
        moves += [trash.keep_in_trash(ref, before), *trash.keep_other_tips(refs, ref)]
    return moves


def matches_any(name: str, patterns: Sequence[str]) -> bool:
    """Return True if a name matches one of some shell patterns, such as `feature/*`."""
    from fnmatch import fnmatchcase  # rarely needed, and slow to import

    return any(fnmatchcase(name, pattern) for pattern in patterns)
