"""What revisions reach: the commits that they start from, and those whose past they leave out."""

from __future__ import annotations

from trace_store import errors
from trace_store.oid import ObjectId
from trace_store.revision import commits_of, resolve_commit, resolve_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from trace_store.commit_table import Commits
    from trace_store.store import Store

    Ends = tuple[list[ObjectId], list[ObjectId]]


def reach(store: Store, text: str, commits: Commits | None = None) -> Ends:
    """Return the commits that `A`, `^A`, `A..B` or `A...B` starts from, and those whose past it leaves out.

    Args:
        store: where the commits are.
        text: as it is typed.
        commits: as in `revision.resolve_commit`.

    Raises:
        RevisionNotFoundError, AmbiguousRevisionError, InvalidInputError: as in `trace_store.revision`.
    """
    if text.startswith("^"):
        return [], [resolve_commit(store, text[1:], commits)]
    found = resolve_range(store, text, commits)
    hidden = list(found.exclude)
    if found.symmetric:
        hidden += (commits or commits_of(store)).merge_bases(*found.include)
    return list(found.include), hidden


def reach_of_several(
    store: Store, revisions: Iterable[str | ObjectId], commits: Commits | None = None
) -> Ends:
    """Return what several revisions and ranges start from and leave out together; raises as `reach`."""
    starts: list[ObjectId] = []
    hidden: list[ObjectId] = []
    for each in revisions:
        if isinstance(each, ObjectId):
            starts.append(each)
        else:
            included, excluded = reach(store, each, commits)
            starts += included
            hidden += excluded
    return list(dict.fromkeys(starts)), hidden


def tips_of_refs(store: Store, without: tuple[str, ...] = ()) -> list[ObjectId]:
    """Return every tip of every ref but those whose names begin with one of `without`."""
    return [
        tip
        for name, tips in store.refs.iterate_tips()
        if not name.startswith(without)
        for tip in tips
    ]


def all_tips(store: Store, without: tuple[str, ...] = ()) -> list[ObjectId]:
    """Return what `tips_of_refs` does, each once, and HEAD when it is detached."""
    found = tips_of_refs(store, without)
    head = store.refs.head()
    if head.ref is None and head.oid is not None:
        found.append(head.oid)
    return list(dict.fromkeys(found))


def all_commits(store: Store, without: tuple[str, ...] = ()) -> list[ObjectId]:
    """Return the commits that `all_tips` stand for, through tags; a ref may stand for any object."""
    return commits_among(store, all_tips(store, without))


def commits_among(
    store: Store, tips: Iterable[ObjectId], commits: Commits | None = None
) -> list[ObjectId]:
    """Return the commits that tips of refs stand for; `commits` is as in `revision.resolve_commit`."""
    found: list[ObjectId] = []
    for tip in tips:
        try:
            found.append(resolve_commit(store, tip, commits))
        except errors.RevisionNotFoundError:
            continue
    return list(dict.fromkeys(found))
