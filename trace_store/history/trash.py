"""The trash of a repository: messages that a branch hides, and refs that were deleted or moved."""

from __future__ import annotations

from trace_store import errors, history
from trace_store.base import check
from trace_store.base.frozen import value
from trace_store.base.ident import parse_duration
from trace_store.contracts import RefEdit
from trace_store.contracts.ref_names import BRANCHES, TAGS, check_ref_name
from trace_store.history.branch_state import move_upstream
from trace_store.history.trash_entries import (
    EMPTIED,
    MESSAGE,
    TrashFilter,
    TrashListing,
    find_ref,
    kinds_of_refs,
    list_messages,
    list_refs,
)
from trace_store.maintenance.du import Amount, own_amounts, total_amount
from trace_store.objects.message import KINDS
from trace_store.store import config
from trace_store.store.revision import name_of, resolve_address, resolve_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # the method `list` hides it  # noqa: N812
    from collections.abc import Sequence

    from trace_store.context.fold import Fold
    from trace_store.contracts.protocols import RefReader
    from trace_store.history.draft import CommitResult
    from trace_store.history.retention import ExpiryReport
    from trace_store.history.trash_entries import TrashedRef
    from trace_store.objects.address import Address
    from trace_store.store.store import Store
    from trace_store.writer import Edits, Writer


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

    JSON = "entry=entry.ref ref? object=entry.oid"

    entry: TrashedRef
    ref: str


@value
class TrashRestored:
    """What was restored: messages in one commit, or None, and refs; a ref whose name is taken stays in the trash."""

    JSON = "commit=messages.commit.oid messages=restored"

    messages: RestoredMessages | None
    refs: tuple[RestoredRef, ...]

    @property
    def restored(self) -> tuple[RestoredMessage, ...]:
        """The restored messages."""
        return () if self.messages is None else self.messages.messages


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

    JSON = "objects=freed.objects bytes=freed.disk commit=commit.oid"

    messages: int
    refs: int
    shared: int
    freed: Amount
    commit: CommitResult | None


class Trash:
    """The trash, as `repo.trash`. `ref` is the branch whose messages are meant; "" is HEAD's.

    Filters, which are ANDed:

    - `kinds`: "message", "branch", "tag", "checkpoint", or kinds of messages such as "tool_io".
    - `min_tokens`: only messages with at least so many tokens.
    - `older`: only what has been in the trash for this long, such as "12h" or "30d".
    - `tool`: only messages of this tool.
    - `text`: only what contains this text, ignoring case.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = writer.store

    def list(
        self,
        *,
        kinds: Sequence[str] = (),
        min_tokens: int = 0,
        older: str = "",
        tool: str = "",
        text: str = "",
        expired: bool = False,
        ref: str = "",
    ) -> TrashListing:
        """List entries. With a branch, its messages and its old tips only.

        With `expired`, also list entries that the setting `trash_retention` no longer keeps.

        Raises:
            InvalidInputError: there is no such kind, or `older` is not an age.
            RevisionNotFoundError: there is no such branch, and the trash has no tip of it.
        """
        check.integer(0, 2**53, min_tokens=min_tokens)
        check.text(older=older, tool=tool, text=text, ref=ref)
        check.flag(expired=expired)
        store = self._store
        age = parse_duration(older) if older else None
        if older and age is None:
            raise errors.InvalidInputError(f"not an age: {older[:40]!r}", argument="older")
        since = 0
        if not expired:
            since = history.retention.expires_before(store, history.retention.read_rules(store))
        before = None if age is None else store.clock.now() - age
        where = TrashFilter(_known(kinds), min_tokens, before, since, tool, text)
        return self._find(where, ref)

    def restore(
        self, *entries: str | Address, everything: bool = False, name: str = "", ref: str = ""
    ) -> TrashRestored:
        """Show messages at their positions again, and bring deleted branches and tags back, in one transaction.

        Args:
            entries: addresses of messages, and names of branches, tags or refs in the trash.
            everything: restore all messages of the branch, and all refs whose names are free.
            name: another name for a single branch or tag.
            ref: the branch of the messages.

        Raises:
            RefNotFoundError: the trash has no such entry.
            StateError: a message is not hidden, or an operation of the branch is in progress.
            AlreadyExistsError: the name is taken.
            InvalidInputError: nothing is named, or a name is given for several entries.
        """
        check.flag(everything=everything)
        check.text(name=name, ref=ref)
        if everything:
            found = self._find(TrashFilter(), ref)
            addresses, refs = [each.address for each in found.messages], found.refs
        else:
            addresses, refs = self._named(entries)
        if not (everything or entries):
            raise errors.InvalidInputError("name what to restore")
        if name and (addresses or len(refs) != 1):
            raise errors.InvalidInputError("a new name is for a single branch or tag")
        writer, restoration = self._to(ref), _RefRestoration(refs, name, skip=everything)
        messages = None
        if addresses:
            messages = _restore_messages(writer, addresses, restoration.edits)
        else:
            restoration.edits(self._store.refs)  # for the names
            names = [each.ref.removeprefix(BRANCHES) for each in restoration.restored if each.ref]
            message = f"trash: restored {' '.join(names)}"
            writer.begin().write(lambda refs: restoration.edits(refs) or None, message)
        restoration.move_upstreams(self._store)
        return TrashRestored(messages, tuple(restoration.restored))

    def empty(
        self,
        *,
        kinds: Sequence[str] = (),
        min_tokens: int = 0,
        older: str = "",
        tool: str = "",
        dry_run: bool = False,
        ref: str = "",
    ) -> EmptyReport:
        """Empty the trash, or the entries that the filters select; with `dry_run` nothing changes.

        Messages only leave the list, since history keeps their content. Refs are deleted, so that `gc` and `prune` can
        remove what nothing else reaches.

        Raises:
            StateError: an operation is in progress, and messages would leave the list.
            As `list`.
        """
        check.flag(dry_run=dry_run)
        found = self.list(
            kinds=kinds, min_tokens=min_tokens, older=older, tool=tool, expired=True, ref=ref
        )
        refs = found.refs
        amounts = own_amounts(self._store, [each.ref for each in refs]) if refs else []
        commit: CommitResult | None = None
        if found.messages and not dry_run:
            writer = self._to(ref)
            state = writer.contexts.fold(resolve_commit(writer.store, "HEAD"))
            draft = history.draft.Draft(writer, "trash")
            addresses = [each.address for each in found.messages]
            draft.annotate(state.units(addresses), labels=EMPTIED)
            along = (lambda reader: _deletions(refs, reader)) if refs else None
            commit = history.commit.write(draft, along=along)
        elif refs and not dry_run:
            self._delete(refs)
        shared = sum(not each.objects for each in amounts)
        freed = total_amount(amounts)
        return EmptyReport(len(found.messages), len(refs), shared, freed, commit)

    def expire(
        self,
        *,
        retention: str | None = None,
        max_count: int | None = None,
        max_size: str | int | None = None,
        keep: Sequence[str] = (),
        dry_run: bool = False,
    ) -> ExpiryReport:
        """Delete the refs that the trash no longer keeps; nothing expires without a rule.

        The settings `trash_retention`, `trash_count`, `trash_size` and `trash_keep` are the rules; arguments override
        them.

        Args:
            retention: how long refs are kept: "72 hours", "30 days", "5 sessions" or "by hand".
            max_count: how many are kept.
            max_size: the maximum size of data that only the trash holds, in bytes or such as "100M".
            keep: what never expires: "pinned", "checkpoints", "tags", "summaries" or "nothing".
            dry_run: return what would expire, and delete nothing.

        Raises:
            InvalidInputError: a rule is not valid.
        """
        check.flag(dry_run=dry_run)
        check.texts(keep=keep)
        given = {
            config.TRASH_RETENTION: retention,
            config.TRASH_COUNT: max_count,
            config.TRASH_SIZE: max_size,
            config.TRASH_KEEP: ", ".join(keep) or None,
        }
        rules = history.retention.read_rules(self._store, given)
        report = history.retention.plan_expiry(self._store, rules)
        if report.expired and not dry_run:
            self._delete([each for each, _ in report.expired])
        return report

    def _delete(self, entries: Sequence[TrashedRef]) -> None:
        """Delete refs in one transaction; those that are gone or have changed stay as they are."""
        message = f"trash: emptied {len(entries)}"
        self._writer.begin().write(lambda refs: _deletions(entries, refs) or None, message)

    def _to(self, ref: str) -> Writer:
        """Return the writer of a branch; "" is HEAD's."""
        if ref in ("", "HEAD", "@"):
            return self._writer
        return self._writer.on(history.branches.find_line(self._store, ref))

    def _find(self, where: TrashFilter, ref: str) -> TrashListing:
        refs = list_refs(self._store, ref or None, where)
        try:
            messages = list_messages(self._writer.contexts, ref or "HEAD", where)
        except errors.RevisionNotFoundError:
            if not refs:  # a deleted branch has no context, but may have old tips
                raise
            messages = []
        return TrashListing(tuple(messages), tuple(refs))

    def _named(
        self, entries: Sequence[str | Address]
    ) -> tuple[List[Address], tuple[TrashedRef, ...]]:
        addresses: list[Address] = []
        refs: dict[TrashedRef, None] = {}
        for each in entries:
            text = name_of(each, "entries")
            found = find_ref(self._store, text)
            if found is not None:
                refs[found] = None
                continue
            try:
                addresses.append(resolve_address(self._store, text))
            except errors.InvalidInputError:
                raise errors.RefNotFoundError(
                    f"nothing in the trash is named {text[:120]!r}",
                    code=errors.ErrorCode.NOT_IN_TRASH,
                    ref=text,
                ) from None
        return addresses, tuple(refs)


def _known(kinds: Sequence[str]) -> tuple[str, ...]:
    """Return kinds of entries if all are known.

    Raises:
        InvalidInputError: one is not.
    """
    check.texts(kinds=kinds)
    known = (MESSAGE, *kinds_of_refs(), *KINDS)
    for kind in kinds:
        if kind not in known:
            raise errors.InvalidInputError(
                f"unknown kind {kind[:40]!r}: kinds are {', '.join(known)}", argument="kinds"
            )
    return tuple(kinds)


def _restore_messages(
    writer: Writer, addresses: Sequence[Address], along: Edits
) -> RestoredMessages:
    """Show removed messages of a branch again, in one commit with other edits; units are restored whole."""
    contexts = writer.contexts
    state = contexts.fold(resolve_commit(writer.store, "HEAD"))
    for address in addresses:
        if not state.entry(address).hidden:
            raise errors.StateError(f"message {address} is not in the trash", address=address)
    units = state.units(addresses)
    draft = history.draft.Draft(writer, "restore")
    draft.restore(list(dict.fromkeys(addresses)))
    unlisted = [each for each in units if EMPTIED in state.entry(each).labels]
    if unlisted:
        draft.annotate(unlisted, unlabels=EMPTIED)
    result = history.commit.write(draft, along=along)
    after, shown = contexts.fold(result.oid), set(units)
    places = [_place(after, at) for at, entry in enumerate(after.entries) if entry.address in shown]
    return RestoredMessages(result, tuple(places))


def _place(state: Fold, at: int) -> RestoredMessage:
    entries = state.entries
    near = next((n for n in range(at - 1, -1, -1) if entries[n].visible), None)
    after = None if near is None else entries[near].address
    return RestoredMessage(entries[at].address, after, near == at - 1 or at == 0)


class _RefRestoration:
    """The restoration of some refs, as edits of a transaction.

    With `skip`, an entry stays in the trash if its name is taken or it never had one; else that is an error.
    """

    def __init__(self, entries: Sequence[TrashedRef], name: str, *, skip: bool) -> None:
        self._entries = entries
        self._name = name
        self._skip = skip
        self.restored: list[RestoredRef] = []

    def edits(self, refs: RefReader) -> list[RefEdit]:
        """Return the edits.

        Raises:
            AlreadyExistsError: a ref of that name exists.
            InvalidInputError: an entry never had a name.
            InvalidRefNameError: the name is not valid.
            RefNotFoundError: an entry is no longer in the trash.
        """
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


def _deletions(entries: Sequence[TrashedRef], refs: RefReader) -> list[RefEdit]:
    return [RefEdit(e.ref, None, e.oid) for e in entries if refs.read(e.ref) == e.oid]
