"""Where an index begins that does not lead to its branch's tip: at the records of another that comes near.

A branch that was begun, reset or rebased is a few commits away from one that has an index.
"""

from __future__ import annotations

from trace_store.context.compile_index import IndexView, prefix_of
from trace_store.context.index_building import MAXIMUM_STEPS, Step, read_step
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.context.index_building import AppendRun, Read
    from trace_store.objects.moulds import Moulds


@value
class Seed:
    """The records to begin with.

    Attributes:
        view: the context that they are of; None for the empty one.
        steps: the commits that lead from there to the tip, oldest first.
    """

    view: IndexView | None
    steps: Sequence[Step]


def find_seed(
    candidates: Sequence[IndexView], tip: bytes, run: AppendRun, read: Read, moulds: Moulds
) -> Seed | None:
    """Return the nearest of some contexts, or of their beginnings, from which few steps or only appends lead to a tip.

    Beginnings are looked for at distances that grow, so that it takes few looks. The empty context is a beginning of
    all. None when only a fold can tell.

    Args:
        candidates: of equals the first is taken.
        tip: the commit.
        run: the appends that end there, as far as they were read.
        read: gives an object's bytes by its id.
        moulds: decode commits.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is not here, or is damaged or none.
    """
    ends = {view.tip: view for view in reversed(candidates)}
    taken: list[Step] = []
    only_appends = True
    due = 0
    for oid, step in _back(tip, run, read, moulds):
        found = ends.get(oid)
        if found is None and len(taken) == due:
            due = 4 * due or 1
            found = next(filter(None, (prefix_of(view, oid) for view in candidates)), None)
        if found is not None:
            return Seed(found, taken[::-1])
        only_appends = only_appends and step.only_appends
        if not only_appends and len(taken) >= MAXIMUM_STEPS:
            return None
        taken.append(step)
    return Seed(None, taken[::-1])


def _back(tip: bytes, run: AppendRun, read: Read, moulds: Moulds) -> Iterator[tuple[bytes, Step]]:
    """Yield the commits that lead to a tip, newest first."""
    for step in reversed(run.commits):
        yield step.oid, step
    oid = run.stopped
    while oid is not None:
        step = read_step(oid, read, moulds)
        yield oid, step
        oid = step.parent
