"""How a compile index catches up with its branch: extended by appends, derived from what it was, or made anew.

Rule: it writes what a fold of the history would, whichever way it takes. It is imported when an index does not reach
its branch's tip as it stands.
"""

from __future__ import annotations

from trace_store import context, errors
from trace_store.columns import MemoryBytes
from trace_store.context import index_records as form
from trace_store.context.compile_index import IndexView
from trace_store.context.folding import fold
from trace_store.context.index_building import (
    Builder,
    UnknownError,
    append_run,
    records_of_fold,
    steps_since,
)
from trace_store.context.index_records import Header
from trace_store.objects.commit import read_commit
from trace_store.objects.moulds import Moulds
from trace_store.oid import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trace_store.context.compile_index import Column, Opened, Read, Seeds
    from trace_store.context.deriving import ReadMany
    from trace_store.context.index_building import AppendRun, Step
    from trace_store.context.recent import NewCommits, Recent

__all__ = ["Growth", "Moulds"]


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
        run = append_run(tip, None if own is None else own.tip, read, self._moulds)
        return self._follow(own, run, read, read_many) or self._rebuild(tip, read, run, seeds())

    def unfolded(
        self, own: IndexView | None, tip: bytes, read: Read, read_many: ReadMany
    ) -> IndexView | None:
        """Return what `view` does, or None when that would take a fold."""
        run = append_run(tip, None if own is None else own.tip, read, self._moulds)
        followed = self._follow(own, run, read, read_many)
        if followed is None and run.reaches_root:
            return self._rebuild(tip, read, run, ())
        return followed

    def rebuild(self, tip: bytes, read: Read) -> IndexView:
        """Write the index of a commit anew from its history alone."""
        return self._rebuild(tip, read, append_run(tip, None, read, self._moulds), ())

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
        self, own: IndexView | None, run: AppendRun, read: Read, read_many: ReadMany | None
    ) -> IndexView | None:
        """Return the view at the end of a run as it follows from what there is; None when it does not."""
        if own is None:
            return None
        if run.since == own.tip:
            return self._extend(own, run.commits, read)
        steps = None if read_many is None else steps_since(own.tip, run, read, self._moulds)
        if steps is None or read_many is None:
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
        builder = Builder(view.last, view.records)
        builder.data[:] = data
        for step in steps:
            if step.only_appends:
                builder.append([step])
            else:
                data = bytes(builder.data)
                included = self._recent(read).included
                made = context.derive(
                    data, step.oid, step.decoded(), included, read_many, self._moulds
                )
                if made is None:
                    return None
                builder = made
        generation = digest(steps[-1].oid)[:16]
        header = Header(form.MESSAGES_MAGIC, form.MESSAGE_BYTES, builder.count, generation)
        opened = self._column.replace(b"".join((header.pack(), builder.data)))
        return IndexView(opened, builder.count, builder.last, builder.count, generation)

    def _rebuild(
        self, tip: bytes, read: Read, run: AppendRun, seeds: Iterable[IndexView]
    ) -> IndexView:
        left = list(seeds)
        seed, delta = _longest(left, run)
        kept = None if seed is None else _records(seed)
        while seed is not None and kept is None:
            left.remove(seed)
            seed, delta = _longest(left, run)
            kept = None if seed is None else _records(seed)
        builder = Builder()
        base = 0
        if seed is not None:
            base = seed.base
            builder = Builder(seed.last, seed.records)
            builder.append(delta)
        elif run.reaches_root:
            builder.append(run.commits)
        else:
            for record in records_of_fold(tip, fold(tip, lambda oid: read_commit(oid, read))):
                builder.add(record)
            base = builder.count
        generation = digest(tip)[:16]
        header = Header(form.MESSAGES_MAGIC, form.MESSAGE_BYTES, base, generation)
        opened = self._column.replace(b"".join((header.pack(), kept or b"", builder.data)))
        return IndexView(opened, builder.count, builder.last, base, generation)


def _records(view: IndexView) -> bytes | None:
    """Return the records of a view, to be copied; None when one of them is damaged."""
    data = view.opened.read(form.HEADER_BYTES, view.records * form.MESSAGE_BYTES)
    try:
        form.message_places(data)
    except errors.CorruptIndexError:
        return None
    return data


def _longest(seeds: Iterable[IndexView], run: AppendRun) -> tuple[IndexView | None, Sequence[Step]]:
    """Return the view from which the fewest commits of the run lead to its tip, and those commits."""
    places: dict[bytes | None, int] = {each.oid: i + 1 for i, each in enumerate(run.commits)}
    if run.commits and run.commits[0].parent is not None:
        places[run.commits[0].parent] = 0
    best: IndexView | None = None
    start = -1
    for view in seeds:
        at = -1 if view.tip is None else places.get(view.tip, -1)
        if at > start:
            best, start = view, at
    return best, run.commits[max(start, 0) :]
