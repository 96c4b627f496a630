"""Records of frameworks by the names that a list of sessions shows: a thread, a record, or the beginning of one."""

from __future__ import annotations

from trace_store import objects
from trace_store.contracts.record_names import MAIN_PARTS, parts_below, record_part, thread_in
from trace_store.contracts.ref_names import RECORDS
from trace_store.errors import FormatError, NotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.oid import ObjectId
    from trace_store.store.store import Store

_SEARCHED = 64
"""Number of commits to search for the thread of a record."""


def records_named(store: Store, name: str) -> list[str]:
    """Return the records that a name may mean: one with this name, the latest of a thread, or all that begin so.

    `user-42` is the record of this thread that was written last, whether its main branch or a fork.
    """
    names = {ref: ref.removeprefix(RECORDS) for ref, _ in store.refs.iterate(RECORDS)}
    exact = [ref for ref, path in names.items() if name in (path, path.partition("/")[2])]
    if exact:
        return exact
    part = record_part(name)
    threads: dict[str, list[str]] = {}
    for ref in names:
        below = parts_below(ref, part)
        if below and set(below[:-1]) <= {*MAIN_PARTS}:
            threads.setdefault(ref.removesuffix("/".join(below)), []).append(ref)
    if latest := [ref for refs in threads.values() if (ref := _latest(store, refs))]:
        return latest
    return [
        ref
        for ref, path in names.items()
        if path.startswith(name) or path.partition("/")[2].startswith(name)
    ]


def _latest(store: Store, refs: list[str]) -> str:
    """Return the record of a thread that was written last; "" if none of some is a thread's."""
    times = {ref: time for ref in refs if (time := _written(store, ref))}
    return max(times, key=lambda ref: (times[ref], ref.endswith(MAIN_PARTS)), default="")


def _written(store: Store, ref: str) -> int:
    """Return when a record of a thread was written; 0 for a record of other state, or one that cannot be read."""
    oid: ObjectId | None = store.refs.read(ref)
    time = 0
    try:
        for _ in range(_SEARCHED):
            if oid is None:
                break
            commit = objects.commit.read_commit(oid, store.objects.read)
            time = time or commit.time
            if thread_in(ref, objects.operations.facts_of(commit, objects.operations.META)):
                return time
            oid = commit.parents[0] if commit.parents else None
    except (NotFoundError, FormatError):
        pass  # fsck reports damage
    return 0
