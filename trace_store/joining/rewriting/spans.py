"""Which commits a rebase makes anew: those of a span of first parents, and what is committed meanwhile.

Rule: reads, and changes nothing but the steps of what is in progress.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.joining import stops
from trace_store.joining.rewriting.todo import PICK, Step
from trace_store.objects.commit import parents_of
from trace_store.oid import ObjectId
from trace_store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store import Store


def commits_since(store: Store, upstream: ObjectId | None, tip: ObjectId) -> list[ObjectId]:
    """Return the commits on a tip's line of first parents that another has not in its past, oldest first.

    Without another they are all of the line.
    """
    new = set(commits_of(store).topological([tip], [] if upstream is None else [upstream]))
    found: list[ObjectId] = []
    oid = tip
    while oid in new:
        found.append(oid)
        above = parents_of(store.objects.read(oid))
        if not above:
            break
        oid = above[0]
    found.reverse()
    return found


def take_along(store: Store, stop: stops.Stop) -> None:
    """Add to a rebase what was committed on the branch since it was looked at.

    Raises:
        RefChangedError: the branch does not go on from where it was.
    """
    tip, before = store.refs.read(stop.ref), stop.before
    if stop.kind != stops.REBASE or tip == before:
        return
    new = [] if tip is None or before is None else commits_since(store, before, tip)
    if not new or parents_of(store.objects.read(new[0]))[:1] != [before]:
        raise errors.RefChangedError(
            f"{stop.ref} went elsewhere since the rebase began", ref=stop.ref, expected=before
        )
    stop.inputs["steps"] += [Step(PICK, oid).as_json() for oid in new]
    stop.before = tip
