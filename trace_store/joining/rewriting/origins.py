"""What commits were made from: the old addresses of their messages, and whether a line has copies by now.

Rule: only the links of commits say so. What was made anew names all that it was made from before, each with the number
that its messages begin at, where that is not the first; a copy names its own origin.
"""

from __future__ import annotations

from trace_store import errors
from trace_store import revision as revisions
from trace_store.ident import count_of, is_count
from trace_store.joining.rewriting.addressing import with_address
from trace_store.objects.commit import parents_of
from trace_store.objects.origins import REWRITES, origins_of
from trace_store.oid import ObjectId, is_prefix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from trace_store.history.draft import Draft
    from trace_store.store import Store

    T = TypeVar("T")


def rewritten_address(
    store: Store,
    address: tuple[bytes, int],
    revision: str | ObjectId = "HEAD",
    *,
    limit: int | None = None,
    passed: set[ObjectId] | None = None,
) -> tuple[ObjectId, int] | None:
    """Return where a message is that had another address before a rebase; None where no rebase says so.

    Args:
        store: the repository.
        address: the one that it had.
        revision: in whose line of first parents the commits are that were made anew, newest first.
        limit: look at so many commits of it, at most.
        passed: commits that were looked at for the same, where the line need not be followed further; those that are
            looked at are added.

    Raises:
        InvalidInputError: it is no address.
        RevisionNotFoundError: there is no such commit.
    """
    commit, number = revisions.as_address(address)
    wanted = str(commit)
    for oid, old, first in _rewrites(store, revision, limit, passed):
        if old == wanted:
            return oid, first + number
    return None


def rewritten_name(
    store: Store,
    text: str,
    revision: str | ObjectId = "HEAD",
    *,
    passed: set[ObjectId] | None = None,
) -> tuple[tuple[ObjectId, int], tuple[ObjectId, int]] | None:
    """Return the address that a text such as `ab12cd.0` named before a rebase, and the one that the message has now.

    None where no rebase says so. The commit that it named need not be here any more. Raises as `rewritten_address`.
    """
    prefix, dot, digits = text.rpartition(".")
    if not (dot and is_prefix(prefix) and is_count(digits)):
        return None
    for oid, old, first in _rewrites(store, revision, None, passed):
        if old.startswith(prefix.lower()):
            number = count_of(digits)
            return (ObjectId.parse(old), number), (oid, first + number)
    return None


def address_in(
    store: Store,
    address: tuple[ObjectId, int],
    tips: Sequence[ObjectId],
    passed: set[ObjectId] | None = None,
) -> tuple[ObjectId, int]:
    """Return the address of a message as the history of the first commit that knows it has it, also since a rebase.

    Args:
        store: the repository.
        address: the one that it has, or had; it is returned where none knows it.
        tips: where to look.
        passed: as in `rewritten_address`.
    """
    passed = set() if passed is None else passed
    for tip in tips:
        if revisions.commits_of(store).is_ancestor(address[0], tip):
            break
        moved = rewritten_address(store, address, tip, passed=passed)
        if moved is not None:
            return moved
    return address


def written_readdressed(
    store: Store,
    draft: Draft,
    write: Callable[[], T],
    tell: Callable[[tuple[bytes, int], tuple[ObjectId, int]], object],
) -> T:
    """Return what writing a draft returns, in which messages are named as a rebase has put them, where it has.

    Args:
        store: the repository.
        draft: what is written.
        write: writes it.
        tell: told of each message that was not found by its address, and which it has.

    Raises:
        MessageNotFoundError: no rebase is known to have put it anywhere.
        As `write`.
    """
    while True:
        try:
            return write()
        except errors.MessageNotFoundError as error:
            named = error.data.get("address")
            if not isinstance(named, tuple):
                raise
            old = revisions.as_address(named)
            new = rewritten_address(store, old)
            if new is None or new == old:
                raise
        changed = with_address(draft.operations, old, new)
        if changed == draft.operations:
            return write()  # which says what is wrong
        draft.operations[:] = changed
        tell(old, new)


def _rewrites(
    store: Store, revision: str | ObjectId, limit: int | None, passed: set[ObjectId] | None
) -> Iterator[tuple[ObjectId, str, int]]:
    """Yield (commit, id of one that it was made from, where the messages of that begin), the newest commit first."""
    oid: ObjectId | None = revisions.resolve_commit(store, revision)
    passed = set() if passed is None else passed
    while oid is not None and limit != 0 and oid not in passed:
        passed.add(oid)
        data = store.objects.read(oid)
        for relation, name, first in origins_of(data):
            if relation == REWRITES:
                yield oid, name, first
        above = parents_of(data)
        oid = above[0] if above else None
        limit = None if limit is None else limit - 1
