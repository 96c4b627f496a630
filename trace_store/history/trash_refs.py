"""The trash: refs that keep old tips of other refs.

The name `refs/trash/<namespace>/<name>/<short id>` contains the value, so that different people's trash never conflicts
and keeping a value twice has no effect.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.contracts import ANY, RefEdit
from trace_store.contracts.ref_names import TRASH, is_ref_name, namespace_of, short_name
from trace_store.objects.codec import COMMIT, kind_of
from trace_store.objects.commit import parents_of
from trace_store.store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.base.oid import ObjectId
    from trace_store.contracts.protocols import RefReader
    from trace_store.store.store import Store
    from trace_store.writer import Writer

_TOO_LONG = TRASH + "long/"
OTHER = "other"
_NEAR = 8


@value
class DeletedRef:
    """A deleted ref: its full name, the commit it pointed to, and the refs in the trash that keep its tips."""

    JSON = "object=oid"

    ref: str
    oid: ObjectId
    kept: tuple[str, ...]


def keep_in_trash(ref: str, oid: ObjectId) -> RefEdit:
    """Return the edit that keeps a tip of a ref or HEAD; its name is the ref in the trash."""
    name = f"{TRASH}{ref.removeprefix('refs/')}/{oid.short()}"
    # A ref whose own name is almost too long has no room for the prefix.
    return RefEdit(name if is_ref_name(name) else f"{_TOO_LONG}{oid.short()}", oid, ANY)


def delete_refs(writer: Writer, wanted: Sequence[str], *, what: str) -> list[DeletedRef]:
    """Move refs, given by full names, to the trash in one transaction; raises as `Branches.delete`."""
    found: list[DeletedRef] = []

    def edits(refs: RefReader) -> list[RefEdit]:
        found.clear()
        moves: list[RefEdit] = []
        for ref in wanted:
            tips = refs.tips(ref)
            if not tips:
                raise errors.RefNotFoundError(f"no {what} {short_name(ref)!r}", ref=ref)
            if writer.store.refs.head_target() == ref:
                raise errors.StateError(
                    f"HEAD is on {short_name(ref)}; switch to another branch first"
                )
            kept = [keep_in_trash(ref, tip) for tip in tips]
            moves += [RefEdit(ref, None, tips[0]), *kept]
            found.append(DeletedRef(ref, tips[0], tuple(edit.name for edit in kept)))
        return moves

    names = " ".join(map(short_name, wanted))
    writer.begin().write(edits, f"{what}: deleted {names}")
    return found


def original_of(ref: str) -> tuple[str, str]:
    """Return (kind, full name) of a trash ref's original; (OTHER, "") for HEAD etc."""
    name = "refs/" + ref.removeprefix(TRASH).rpartition("/")[0]
    namespace = namespace_of(name)
    return (namespace.kind, name) if namespace is not None and namespace.kind else (OTHER, "")


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
