"""How a compile index catches up with its branch: extended by appends, derived from what it was, or made anew.

Rule: it writes what a fold of the history would, whichever way it takes. It is imported when an index does not reach
its branch's tip as it stands.
"""

from __future__ import annotations

from trace_store import context, errors
from trace_store.columns import MemoryBytes
from trace_store.context import index_records as form
from trace_store.context.compile_index import IndexView, prefix_of
from trace_store.context.folding_history import fold
from trace_store.context.index_building import (
    MAXIMUM_STEPS,
    Builder,
    UnknownError,
    append_run,
    read_step,
    records_of_fold,
    steps_since,
)
from trace_store.context.index_records import Header
from trace_store.objects.commit import read_commit
from trace_store.objects.moulds import Moulds
from trace_store.oid import digest
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from trace_store.context.compile_index import Column, Opened, Read, Seeds
    from trace_store.context.index_building import AppendRun, Step
    from trace_store.context.recent import NewCommits, Recent
    from trace_store.context.record_wording import ReadMany

__all__ = ["Growth", "Moulds"]

NEAR = 16
"""Over so many commits an index follows its branch before others are looked at."""


@value
class Seed:
    """The records to begin with.

    Attributes:
        view: the context that they are of; None for the empty one.
        steps: the commits that lead from there to the tip, oldest first.
    """

    view: IndexView | None
    steps: Sequence[Step]


class Growth:
    """The ways in which one index grows."""

    __slots__ = ("_column", "_load", "_moulds", "_new_commits")

    def __init__(
        self,
        column: Column,
        moulds: Moulds,
        load: Callable[[], IndexView | None],
        new_commits: NewCommits,
    ) -> None:
        self._column = column
        self._moulds = moulds
        self._load = load
        self._new_commits = new_commits

    def view(
        self,
        own: IndexView | None,
        tip: bytes,
        read: Read,
        seeds: Seeds,
        read_many: ReadMany | None,
    ) -> IndexView:
        """Return the context of a commit, given what the index holds; as `CompileIndex.view`."""
        since = None if own is None else own.tip
        run = append_run(tip, since, read, self._moulds, NEAR if own else 1)
        return (
            self._follow(own, run, read, read_many, NEAR)
            or self._take_over(own, tip, run, read, seeds(), read_many)
            or self._fold(tip, read)
        )

    def unfolded(
        self, own: IndexView | None, tip: bytes, read: Read, read_many: ReadMany
    ) -> IndexView | None:
        """Return what `view` does, or None when that would take a fold."""
        run = append_run(tip, None if own is None else own.tip, read, self._moulds)
        followed = self._follow(own, run, read, read_many)
        if followed is None and run.reaches_root:
            return self._rebuild(tip, read, run)
        return followed

    def rebuild(self, tip: bytes, read: Read) -> IndexView:
        """Write the index of a commit anew from its history alone."""
        return self._rebuild(tip, read, append_run(tip, None, read, self._moulds))

    def _extend(self, view: IndexView, delta: Sequence[Step], read: Read) -> IndexView | None:
        """Return the view with what commits add at the end; None when it had to be copied and is damaged.

        Raises:
            UnknownError: only a fold can tell what they include.
        """
        builder = Builder(view.last, view.records)
        builder.append(delta, lambda commit: self._recent(read).included(commit, lambda _: False))
        data = bytes(builder.data)
        expected = form.HEADER_BYTES + view.records * form.MESSAGE_BYTES
        opened: Opened = view.opened
        if not opened.append(expected, data):
            # Somebody else is catching up, or a torn tail is in the way: answer from memory.
            if _records(view) is None:
                return None
            whole = opened.read(0, expected) + data
            damaged = opened.size() > expected and self._load() == view
            opened = self._column.replace(whole) if damaged else MemoryBytes(whole)
        return IndexView(opened, builder.count, builder.last, view.base, view.generation)

    def _follow(
        self,
        own: IndexView | None,
        run: AppendRun,
        read: Read,
        read_many: ReadMany | None,
        at_most: int = MAXIMUM_STEPS,
    ) -> IndexView | None:
        """Return the view at the end of a run as it follows from what there is; None when it does not."""
        if own is None:
            return None
        if run.since == own.tip:
            return self._extend(own, run.commits, read)
        if read_many is None:
            return None
        steps = steps_since(own.tip, run, read, self._moulds, at_most)
        if steps is None:
            return None
        if all(step.only_adds for step in steps):
            try:
                return self._extend(own, steps, read)
            except UnknownError:
                pass
        return self._derive(own, steps, read, read_many)

    def _recent(self, read: Read) -> Recent:
        return context.Recent(lambda oid: read_commit(oid, read), self._new_commits)

    def _derive(
        self, view: IndexView, steps: Sequence[Step], read: Read, read_many: ReadMany
    ) -> IndexView | None:
        """Return the view that a few more commits of any kind lead to; None when only a fold can tell."""
        data = _records(view)
        if data is None:
            return None
        base, builder = view.base, Builder(view.last, view.records, data)
        for step in steps:
            if step.only_appends:
                builder.append([step])
            else:
                whole = b"".join((builder.head, builder.data)) if builder.data else data
                recent = self._recent(read)
                made = context.derive(
                    whole, step.oid, step.decoded(), recent, read_many, self._moulds
                )
                if made is None:
                    return None
                builder = made
                if builder.kept < base:
                    base = builder.count  # no record before tells any more where a commit ended
        return self._written(steps[-1].oid, base, builder)

    def _take_over(
        self,
        own: IndexView | None,
        tip: bytes,
        run: AppendRun,
        read: Read,
        seeds: Iterable[IndexView],
        read_many: ReadMany | None,
    ) -> IndexView | None:
        """Return the view of a commit that is made from the records of a near one; None when there is none."""
        left = [*([] if own is None else [own]), *seeds]
        while (seed := find_seed(left, tip, run, read, self._moulds)) is not None:
            made = self._grown(seed, own, read, read_many)
            if made is not None or seed.view is None:
                return made
            left = [view for view in left if view.opened is not seed.view.opened]
        return None

    def _grown(
        self, seed: Seed, own: IndexView | None, read: Read, read_many: ReadMany | None
    ) -> IndexView | None:
        """Return the view at the end of a seed's steps; None when it is damaged, or only a fold can tell."""
        view, steps = seed.view, seed.steps
        if all(step.only_adds for step in steps):
            try:
                if view is not None and view is own:
                    return self._extend(view, steps, read)
                return self._copy(view, steps, read)
            except UnknownError:
                pass
        if view is None or read_many is None:
            return None
        return self._derive(view, steps, read, read_many)

    def _copy(self, view: IndexView | None, steps: Sequence[Step], read: Read) -> IndexView | None:
        """Write the index with the records of another and what steps add to them; None when a record is damaged.

        Raises:
            UnknownError: only a fold can tell what they include.
        """
        base, builder = 0, Builder()
        if view is not None:
            records = _records(view)
            if records is None:
                return None
            base, builder = view.base, Builder(view.last, view.records, records)
        builder.append(steps, lambda commit: self._recent(read).included(commit, lambda _: False))
        tip = steps[-1].oid if steps or view is None else view.tip
        return None if tip is None else self._written(tip, base, builder)

    def _rebuild(self, tip: bytes, read: Read, run: AppendRun) -> IndexView:
        """Write the index of a commit anew from its history alone; `run` is all appends that end there."""
        if not run.reaches_root:
            return self._fold(tip, read)
        builder = Builder()
        builder.append(run.commits)
        return self._written(tip, 0, builder)

    def _fold(self, tip: bytes, read: Read) -> IndexView:
        """Write the index of a commit from a fold of its history."""
        builder = Builder()
        for record in records_of_fold(tip, fold(tip, lambda oid: read_commit(oid, read))):
            builder.add(record)
        return self._written(tip, builder.count, builder)

    def _written(self, tip: bytes, base: int, builder: Builder) -> IndexView:
        """Write the index: records that are there, and those that were made behind them."""
        generation = digest(tip)[:16]
        header = Header(form.MESSAGES_MAGIC, form.MESSAGE_BYTES, base, generation)
        opened = self._column.replace(b"".join((header.pack(), builder.head, builder.data)))
        return IndexView(opened, builder.count, builder.last, base, generation)


def _records(view: IndexView) -> bytes | None:
    """Return the records of a view, to be copied; None when one of them is damaged."""
    data = view.opened.read(form.HEADER_BYTES, view.records * form.MESSAGE_BYTES)
    try:
        form.check_records(data)
    except errors.CorruptIndexError:
        return None
    return data


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
