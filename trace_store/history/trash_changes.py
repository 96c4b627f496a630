"""Restoring from the trash, and emptying it.

A removed message never lost its position, so restoring shows it there again. Emptying a message only takes it off
the list: its content is part of the history. Emptying a ref deletes the ref. Then `gc` and `prune` may
remove objects that nothing else reaches.
"""

from __future__ import annotations

from trace_store import errors
from trace_store import revision as revisions
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import value
from trace_store.history.branches import move_upstream
from trace_store.history.commit import new_draft, write
from trace_store.history.trash_entries import EMPTIED, TrashedRef
from trace_store.maintenance.du import Amount, own_amounts
from trace_store.refs.names import BRANCHES, TAGS, check_ref_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.fold import Fold
    from trace_store.contracts import RefReader
    from trace_store.history.draft import CommitResult
    from trace_store.objects.address import Address
    from trace_store.store.handle import Store

    RefEdits: TypeAlias = Callable[[RefReader], Sequence[RefEdit]]


@value
class RestoredMessage:
    """A message that is shown again.

    Attributes:
        address: its address.
        after: the nearest earlier message that is shown; None at the start.
        is_exact: whether that message originally preceded it; if not, messages between the two are hidden.
    """

    address: Address
    after: Address | None
    is_exact: bool


@value
class RestoredMessages:
    """The result of restoring messages: the commit, and the messages in the order of the context."""

    commit: CommitResult
    messages: tuple[RestoredMessage, ...]


@value
class RestoredRef:
    """A restored ref: its entry, and new full name; "" if it stays (the name is taken)."""

    entry: TrashedRef
    ref: str


@value
class TrashRestored:
    """What was restored: messages in one commit, or None, and refs; a ref whose name is taken stays in the trash."""

    messages: RestoredMessages | None
    refs: tuple[RestoredRef, ...]


@value
class EmptyReport:
    """The result of emptying the trash, or of its dry run.

    Attributes:
        messages: messages that left the list; their content stays in the history.
        refs: refs that were deleted.
        shared: deleted refs whose objects all stay, because other refs reach them.
        freed: objects and bytes that nothing reaches any more.
        commit: the commit that took the messages off the list, or None.
    """

    messages: int
    refs: int
    shared: int
    freed: Amount
    commit: CommitResult | None


def restore_messages(
    contexts: ContextCompiler,
    addresses: Sequence[Address],
    *,
    author: str,
    branch: str = "HEAD",
    along: RefEdits | None = None,
) -> RestoredMessages:
    """Show removed messages of a branch at their positions again, in one commit; units are restored whole.

    `along` is as in `history.commit.write`.

    Raises:
        StateError: one of them is not hidden.
        MessageNotFoundError: one of them is not in the branch's context.
        RefNotFoundError: there is no such branch.
        InvalidInputError: no message is named.
    """
    if not addresses:
        raise errors.InvalidInputError("no message to restore")
    store = contexts.store
    name = _branch(store, branch)
    state = check_hidden(contexts, addresses, branch=branch)
    units = state.units(addresses)
    draft = new_draft(store)
    draft.restore(list(dict.fromkeys(addresses)))
    unlisted = [each for each in units if EMPTIED in state.entry(each).labels]
    if unlisted:
        draft.annotate(unlisted, unlabels=EMPTIED)
    result = write(store, draft, author=author, branch=name, along=along)
    after, shown = contexts.fold(result.oid), set(units)
    places = [_place(after, at) for at, entry in enumerate(after.entries) if entry.address in shown]
    return RestoredMessages(result, tuple(places))


def check_hidden(
    contexts: ContextCompiler, addresses: Sequence[Address], *, branch: str = "HEAD"
) -> Fold:
    """Check that a branch hides some messages, and return its fold.

    Raises:
        StateError: one of them is not hidden.
        MessageNotFoundError: one of them is not in the branch's context.
    """
    state = contexts.fold(revisions.resolve_commit(contexts.store, branch))
    for address in addresses:
        if not state.entry(address).hidden:
            raise errors.StateError(f"message {address} is not in the trash", address=address)
    return state


def _place(state: Fold, at: int) -> RestoredMessage:
    entries = state.entries
    near = next((n for n in range(at - 1, -1, -1) if entries[n].visible), None)
    after = None if near is None else entries[near].address
    return RestoredMessage(entries[at].address, after, near == at - 1 or at == 0)


def _branch(store: Store, branch: str) -> str | None:
    """Return the short name of a branch to commit to; None for HEAD."""
    if branch in ("HEAD", "@"):
        return None
    full = revisions.branch_of(store, branch)
    if full is None or not full.startswith(BRANCHES):
        raise errors.RefNotFoundError(f"no branch {branch[:120]!r}", ref=branch)
    return full.removeprefix(BRANCHES)


def restore_refs(
    store: Store, entries: Sequence[TrashedRef], *, author: str, name: str = "", skip: bool = False
) -> list[RestoredRef]:
    """Restore refs from the trash under their names, in one transaction.

    Args:
        store: the repository's store.
        entries: what to restore.
        author: for the reflogs.
        name: another short name, for a single entry.
        skip: leave an entry in the trash if its name is taken or it never had one; else that is an error.

    Raises:
        AlreadyExistsError: a ref of that name exists.
        InvalidInputError: the entry never had a name, or a name is given for several.
        InvalidRefNameError: the name is not valid.
        RefNotFoundError: an entry is no longer in the trash.
    """
    if name and len(entries) != 1:
        raise errors.InvalidInputError("a new name is for a single branch or tag")
    found = _RefRestoration(entries, name, skip=skip)

    def build(refs: RefReader) -> Transaction | None:
        edits = found.edits(refs)
        names = " ".join(each.ref.removeprefix(BRANCHES) for each in found.restored if each.ref)
        return Transaction((), edits, f"trash: restored {names}") if edits else None

    store.transact(build, author=author)
    found.move_upstreams(store)
    return found.restored


def restore(
    contexts: ContextCompiler,
    addresses: Sequence[Address],
    entries: Sequence[TrashedRef],
    *,
    author: str,
    name: str = "",
    skip: bool = False,
    branch: str = "HEAD",
) -> TrashRestored:
    """Restore messages and refs in one transaction; raises as `restore_messages` and `restore_refs`."""
    store = contexts.store
    if not addresses:
        refs = restore_refs(store, entries, author=author, name=name, skip=skip)
        return TrashRestored(None, tuple(refs))
    found = _RefRestoration(entries, name, skip=skip)
    shown = restore_messages(contexts, addresses, author=author, branch=branch, along=found.edits)
    found.move_upstreams(store)
    return TrashRestored(shown, tuple(found.restored))


class _RefRestoration:
    """The restoration of some refs, as edits of a transaction."""

    def __init__(self, entries: Sequence[TrashedRef], name: str, *, skip: bool) -> None:
        self._entries = entries
        self._name = name
        self._skip = skip
        self.restored: list[RestoredRef] = []

    def edits(self, refs: RefReader) -> list[RefEdit]:
        """Return the edits; raises as `restore_refs`."""
        self.restored = []
        edits: list[RefEdit] = []
        taken: set[str] = set()
        for entry in self._entries:
            ref = _name_of(entry, self._name, skip=self._skip)
            is_taken = not ref or ref in taken or refs.read(ref) is not None
            if is_taken and not self._skip:
                raise errors.AlreadyExistsError(
                    f"{ref} already exists", code=errors.ErrorCode.NAME_TAKEN_HERE, ref=ref
                )
            if refs.read(entry.ref) is None:
                raise errors.RefNotFoundError(f"{entry.ref} is not in the trash", ref=entry.ref)
            self.restored.append(RestoredRef(entry, "" if is_taken else ref))
            if not is_taken:
                taken.add(ref)
                edits += [RefEdit(ref, entry.oid, None), RefEdit(entry.ref, None, entry.oid)]
        return edits

    def move_upstreams(self, store: Store) -> None:
        """Give restored branches their upstreams back."""
        for each in self.restored:
            if each.ref.startswith(BRANCHES):
                move_upstream(store, each.entry.ref, each.ref)


def _name_of(entry: TrashedRef, name: str, *, skip: bool) -> str:
    """Return the full name to restore an entry under; "" without one if it may be skipped."""
    if not name:
        if not entry.original and not skip:
            raise errors.InvalidInputError(
                f"{entry.name} had no name of its own", code=errors.ErrorCode.NAMELESS
            )
        return entry.original
    space = BRANCHES if not entry.original else "/".join(entry.original.split("/")[:2]) + "/"
    full = name if name.startswith((BRANCHES, TAGS)) else space + name
    return check_ref_name(full)


def empty(
    contexts: ContextCompiler,
    messages: Sequence[Address],
    refs: Sequence[TrashedRef],
    *,
    author: str,
    branch: str = "HEAD",
    dry_run: bool = False,
) -> EmptyReport:
    """Take messages off the list of the trash, by a commit, and delete refs from it, in one transaction.

    With `dry_run` nothing is changed.

    Raises:
        MessageNotFoundError: a message is not in the branch's context.
        RefNotFoundError: there is no such branch.
        StorageError: the disk failed; nothing is lost.
    """
    store = contexts.store
    amounts = own_amounts(store, [each.ref for each in refs]) if refs else []
    freed = Amount(
        sum(each.objects for each in amounts),
        sum(each.bytes for each in amounts),
        sum(each.disk for each in amounts),
    )
    commit: CommitResult | None = None
    if messages and not dry_run:
        state = contexts.fold(revisions.resolve_commit(store, branch))
        draft = new_draft(store)
        draft.annotate(state.units(messages), labels=EMPTIED)
        commit = write(
            store,
            draft,
            author=author,
            branch=_branch(store, branch),
            along=(lambda reader: _deletions(refs, reader)) if refs else None,
        )
    elif refs and not dry_run:
        delete_entries(store, refs, author=author)
    shared = sum(not each.objects for each in amounts)
    return EmptyReport(len(messages), len(refs), shared, freed, commit)


def delete_entries(store: Store, refs: Sequence[TrashedRef], *, author: str) -> None:
    """Delete refs from the trash in one transaction; those that are gone or have changed stay as they are."""

    def build(reader: RefReader) -> Transaction | None:
        edits = _deletions(refs, reader)
        return Transaction((), edits, f"trash: emptied {len(edits)}") if edits else None

    store.transact(build, author=author)


def _deletions(entries: Sequence[TrashedRef], refs: RefReader) -> list[RefEdit]:
    return [RefEdit(e.ref, None, e.oid) for e in entries if refs.read(e.ref) == e.oid]
