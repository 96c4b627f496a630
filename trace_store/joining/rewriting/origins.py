"""What commits were made from: old addresses, and commits that another line has already.

Rule: only the links of commits say so. What was made anew names all that it was made from before, each with the number
that its messages begin at, where that is not the first; a copy names its own origin.
"""

from __future__ import annotations

from trace_store import revision as revisions
from trace_store.ident import count_of, is_count
from trace_store.objects.commit import Commit, parents_of
from trace_store.objects.origins import PICKED, REWRITES, SQUASHES, origins_of
from trace_store.oid import ObjectId, is_full_id, is_prefix
from trace_store.revision import commits_of, created_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from trace_store.store import Store


_MOST = 2000
"""Of so many commits a side it is looked up whether the other has them."""


def already_there(
    store: Store, commits: Sequence[ObjectId], tip: ObjectId, other: ObjectId
) -> dict[ObjectId, tuple[ObjectId, int]]:
    """Return which commits another line has already, made anew or copied, and where the messages of each begin there.

    Args:
        store: the repository.
        commits: those of the line that is asked about.
        tip: where that line ends.
        other: where the other ends; what both have in their past is not looked at.
    """
    there: dict[str, tuple[ObjectId, int]] = {}
    for oid in commits_of(store).topological([other], [tip]):
        there[str(oid)] = (oid, 0)
        for _, name, first in origins_of(store.objects.read(oid)):
            there.setdefault(name, (oid, first))
    found: dict[ObjectId, tuple[ObjectId, int]] = {}
    for oid in commits if there else ():
        origins = origins_of(store.objects.read(oid))
        names = (
            [str(oid)]
            if any(first for _, _, first in origins)
            else [
                str(oid),
                *(name for _, name, _ in origins),
            ]
        )
        known = next((there[name] for name in names if name in there), None)
        if known is not None:
            found[oid] = known
    return found


def come_again(store: Store, ours: ObjectId, theirs: ObjectId) -> list[ObjectId]:
    """Return the commits with messages that only theirs has, and that ours has made anew, copied or squashed.

    A merge brings their messages in once more: only a rebase leaves out what is there already. Of a side with very many
    commits of its own nothing is said.
    """
    commits = commits_of(store)
    read = store.objects.read
    for one, other in ((theirs, ours), (ours, theirs)):
        if sum(1 for _ in commits.topological([one], [other], limit=_MOST + 1)) > _MOST:
            return []
    new = [
        oid for oid in commits.topological([theirs], [ours]) if created_by(Commit.decode(read(oid)))
    ]
    found = set(already_there(store, new, theirs, ours))
    for oid in commits.topological([ours], [theirs]) if new else ():
        data = read(oid)
        if SQUASHES.encode() in data:
            tips = [str(t) for relation, t in Commit.decode(data).links if relation == SQUASHES]
            known = [ObjectId.parse(tip) for tip in tips if is_full_id(tip)]
            here = [tip for tip in known if store.objects.contains(tip)]
            found |= {*commits.topological(here, [ours])} & {*new}
    return [oid for oid in new if oid in found]


def are_picked(
    store: Store, names: Collection[str], tip: ObjectId | None, since: ObjectId | None
) -> bool:
    """Tell whether copies of all that is named were put on a line of first parents since a commit of it.

    Args:
        store: the repository.
        names: ids of commits, and addresses of single messages.
        tip: where the line ends.
        since: the commit; None where the line had none.
    """
    left = {*names}
    while left and tip is not None and tip != since:
        commit = Commit.decode(store.objects.read(tip))
        left.difference_update(
            str(target) for relation, target in commit.links if relation == PICKED
        )
        tip = commit.parents[0] if commit.parents else None
    return bool(names) and not left


def rewritten_address(
    store: Store,
    address: tuple[bytes, int],
    revision: str | ObjectId = "HEAD",
    *,
    limit: int | None = None,
) -> tuple[ObjectId, int] | None:
    """Return where a message is that had another address before a rebase; None where no rebase says so.

    Args:
        store: the repository.
        address: the one that it had.
        revision: in whose line of first parents the commits are that were made anew, newest first.
        limit: look at so many commits of it, at most.

    Raises:
        RevisionNotFoundError: there is no such commit.
    """
    wanted = str(ObjectId(address[0]))
    for oid, old, first in _rewrites(store, revision, limit):
        if old == wanted:
            return oid, first + address[1]
    return None


def rewritten_name(
    store: Store, text: str, revision: str | ObjectId = "HEAD"
) -> tuple[tuple[ObjectId, int], tuple[ObjectId, int]] | None:
    """Return the address that a text such as `ab12cd.0` named before a rebase, and the one that the message has now.

    None where no rebase says so. The commit that it named need not be here any more. Raises as `rewritten_address`.
    """
    prefix, dot, digits = text.rpartition(".")
    if not (dot and is_prefix(prefix) and is_count(digits)):
        return None
    for oid, old, first in _rewrites(store, revision, None):
        if old.startswith(prefix.lower()):
            number = count_of(digits)
            return (ObjectId.parse(old), number), (oid, first + number)
    return None


def _rewrites(
    store: Store, revision: str | ObjectId, limit: int | None
) -> Iterator[tuple[ObjectId, str, int]]:
    """Yield (commit, id of one that it was made from, where the messages of that begin), the newest commit first."""
    oid: ObjectId | None = revisions.resolve_commit(store, revision)
    while oid is not None and limit != 0:
        data = store.objects.read(oid)
        for relation, name, first in origins_of(data):
            if relation == REWRITES:
                yield oid, name, first
        above = parents_of(data)
        oid = above[0] if above else None
        limit = None if limit is None else limit - 1
