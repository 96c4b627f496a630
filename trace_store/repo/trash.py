"""The trash of a repository: messages that a branch hides, and refs that were deleted or moved."""

from __future__ import annotations

from trace_store import check, config, errors, history
from trace_store.ident import parse_duration
from trace_store.objects.message import KINDS
from trace_store.repo.handle import Handle, name_of
from trace_store.revision import resolve_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # the method `list` hides it  # noqa: N812
    from collections.abc import Sequence

    from trace_store.history.retention import ExpiryReport
    from trace_store.history.trash_entries import (
        EmptyReport,
        TrashedRef,
        TrashFilter,
        TrashListing,
        TrashRestored,
    )
    from trace_store.objects.address import Address


class Trash:
    """The trash, as `repo.trash`. `ref` is the branch whose messages are meant; "" is HEAD's.

    Filters, which are ANDed:

    - `kinds`: "message", "branch", "tag", "checkpoint", or kinds of messages such as "tool_io".
    - `min_tokens`: only messages with at least so many tokens.
    - `older`: only what has been in the trash for this long, such as "12h" or "30d".
    - `tool`: only messages of this tool.
    - `text`: only what contains this text, ignoring case.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._store = handle.store

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
        where = history.trash_entries.TrashFilter(
            _known(kinds), min_tokens, before, since, tool, text
        )
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
            found = self._find(history.trash_entries.TrashFilter(), ref)
            addresses, refs = [each.address for each in found.messages], found.refs
        else:
            addresses, refs = self._named(entries)
        if not (everything or entries):
            raise errors.InvalidInputError("name what to restore")
        if name and (addresses or len(refs) != 1):
            raise errors.InvalidInputError("a new name is for a single branch or tag")
        if addresses:
            self._handle.check_not_stopped()
        return history.trash_entries.restore(
            *(self._handle.contexts, addresses, refs),
            author=self._handle.author,
            name=name,
            skip=everything,
            branch=ref or "HEAD",
        )

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
        if found.messages and not dry_run:
            self._handle.check_not_stopped()
        return history.trash_entries.empty(
            *(self._handle.contexts, [each.address for each in found.messages], found.refs),
            author=self._handle.author,
            branch=ref or "HEAD",
            dry_run=dry_run,
        )

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
        if dry_run:
            return history.retention.plan_expiry(self._store, rules)
        return history.retention.expire(self._store, rules, author=self._handle.author)

    def _find(self, where: TrashFilter, ref: str) -> TrashListing:
        entries = history.trash_entries
        refs = entries.list_refs(self._store, ref or None, where)
        try:
            messages = entries.list_messages(self._handle.contexts, ref or "HEAD", where)
        except errors.RevisionNotFoundError:
            if not refs:  # a deleted branch has no context, but may have old tips
                raise
            messages = []
        return history.trash_entries.TrashListing(tuple(messages), tuple(refs))

    def _named(
        self, entries: Sequence[str | Address]
    ) -> tuple[List[Address], tuple[TrashedRef, ...]]:
        addresses: list[Address] = []
        refs: dict[TrashedRef, None] = {}
        for each in entries:
            text = name_of(each, "entries")
            found = history.trash_entries.find_ref(self._store, text)
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
    entries = history.trash_entries
    known = (entries.MESSAGE, *entries.kinds_of_refs(), *KINDS)
    for kind in kinds:
        if kind not in known:
            raise errors.InvalidInputError(
                f"unknown kind {kind[:40]!r}: kinds are {', '.join(known)}", argument="kinds"
            )
    return tuple(kinds)
