"""The trash: refs that keep old tips of other refs.

The name `refs/trash/<namespace>/<name>/<short id>` contains the value, so that different people's trash never conflicts
and keeping a value twice has no effect.
"""

from __future__ import annotations

from trace_store.contracts import ANY, RefEdit
from trace_store.objects.codec import COMMIT, kind_of
from trace_store.objects.commit import parents_of
from trace_store.ref_names import TRASH, is_ref_name
from trace_store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts import RefReader
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

_TOO_LONG = TRASH + "long/"
TRASHED = (
    ("heads/", "branch"),
    ("tags/", "tag"),
    ("checkpoints/", "checkpoint"),
    ("trajectories/", "trajectory"),
)
"""Namespaces whose deleted refs can be restored under their names, each with the kind of its refs."""
OTHER = "other"
_NEAR = 8


def keep_in_trash(ref: str, oid: ObjectId) -> RefEdit:
    """Return the edit that keeps a tip of a ref or HEAD; its name is the ref in the trash."""
    name = f"{TRASH}{ref.removeprefix('refs/')}/{oid.short()}"
    # A ref whose own name is almost too long has no room for the prefix.
    return RefEdit(name if is_ref_name(name) else f"{_TOO_LONG}{oid.short()}", oid, ANY)


def original_of(ref: str) -> tuple[str, str]:
    """Return (kind, full name) of a trash ref's original; (OTHER, "") for HEAD etc."""
    name = ref.removeprefix(TRASH).rpartition("/")[0]
    kind = next((kind for space, kind in TRASHED if name.startswith(space)), OTHER)
    return kind, "" if kind == OTHER else f"refs/{name}"


def keep_other_tips(refs: RefReader, ref: str) -> list[RefEdit]:
    """Return the edits that keep the other tips of a diverged ref, which a forced move drops."""
    return [keep_in_trash(ref, tip) for tip in refs.tips(ref)[1:]]


def steps_between(store: Store, start: ObjectId, end: ObjectId, limit: int = _NEAR) -> int | None:
    """Return the number of first-parent steps from a commit to its ancestor; None if there are `limit` or more."""
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
    """Return True if the first-parent history of `later` contains `earlier`."""
    between = list(commits_of(store).topological([later], [earlier], first_parent=True))
    if not between:
        return later == earlier
    return parents_of(store.objects.read(between[-1]))[:1] == [earlier]


def is_kept_by(store: Store, oid: ObjectId, new: ObjectId | None) -> bool:
    """Return True if a ref's new value keeps the old one reachable within a few steps."""
    return new is not None and steps_between(store, new, oid) is not None
