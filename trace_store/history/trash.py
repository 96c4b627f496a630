"""The trash: refs that keep what another ref was moved away from, or was deleted with.

Rule: each value has a name of its own, `refs/trash/<namespace>/<name>/<beginning of its id>`, so that two people's
trash never meets, and keeping one value twice is keeping it once.
"""

from __future__ import annotations

from trace_store.contracts import ANY, RefEdit
from trace_store.objects.codec import COMMIT, kind_of
from trace_store.objects.commit import parents_of
from trace_store.ref_names import is_ref_name
from trace_store.refs.names import TRASH
from trace_store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts import RefReader
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

_TOO_LONG = TRASH + "long/"
_NEAR = 8


def keeping(ref: str, oid: ObjectId) -> RefEdit:
    """Return the edit that keeps what a ref, or HEAD, stands for; its name is where it is found again."""
    name = f"{TRASH}{ref.removeprefix('refs/')}/{oid.short()}"
    # Only a name that is nearly too long itself has no room for the rest.
    return RefEdit(name if is_ref_name(name) else f"{_TOO_LONG}{oid.short()}", oid, ANY)


def keeping_others(refs: RefReader, ref: str) -> list[RefEdit]:
    """Return the edits that keep the other tips of a diverged ref, which it gives up when it is moved back."""
    return [keeping(ref, tip) for tip in refs.tips(ref)[1:]]


def steps_between(store: Store, start: ObjectId, end: ObjectId, limit: int = _NEAR) -> int | None:
    """Return how many steps along first parents lead from a commit back to another; None when that is not so near."""
    oid = start
    for steps in range(limit):
        if oid == end:
            return steps
        data = store.objects.read(oid)
        parents = parents_of(data) if kind_of(data) == COMMIT else []
        if not parents:
            break
        oid = parents[0]
    return None


def goes_on(store: Store, later: ObjectId, earlier: ObjectId) -> bool:
    """Tell whether first parents lead from a commit back to another, however far that is."""
    between = list(commits_of(store).topological([later], [earlier], first_parent=True))
    if not between:
        return later == earlier
    return parents_of(store.objects.read(between[-1]))[:1] == [earlier]


def is_kept_by(store: Store, oid: ObjectId, new: ObjectId | None) -> bool:
    """Tell whether what a ref is moved to keeps what it is moved from, as far as a short look tells."""
    return new is not None and steps_between(store, new, oid) is not None
