"""How a compile index catches up with its branch: extended by appends, taken over from another, or made from a fold.

Rule: it writes what a fold of the history would, whichever way it takes.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.collector import paused
from trace_store.context import index_records as form
from trace_store.context.compile_index import IndexView, prefix_of
from trace_store.context.index_building import (
    Builder,
    Step,
    UnknownError,
    records_of_fold,
    step_of,
)
from trace_store.context.index_records import Header, MessageRecord
from trace_store.oid import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.context.compile_index import Column, History, Seeds


NEAR = 16
"""Over so many commits an index follows its branch before others are looked at."""
FAR = 4096
"""Over so many commits the beginnings of other contexts are looked for; then a fold, which may be kept, is nearer."""


class Growth:
    """The ways in which one index grows."""

    __slots__ = ("_column", "_history")

    def __init__(self, column: Column, history: History) -> None:
        self._column = column
        self._history = history

    def view(self, own: IndexView | None, tip: bytes, seeds: Seeds) -> IndexView:
        """Return the context of a commit, given what this index holds and what others do."""
        with paused:
            return self._view(own, tip, seeds)

    def _view(self, own: IndexView | None, tip: bytes, seeds: Seeds) -> IndexView:
        steps = None if own is None else self._steps_since(own, tip)
        views = [] if own is None else [own]
        seed = own
        if steps is None:
            views += seeds()
            steps, seed = self._steps_since_any(views, tip)
        appends = [step for step in reversed(steps) if step is not None]
        if len(appends) == len(steps):
            try:
                return self._extended(own, seed, appends, tip)
            except UnknownError:
                pass
        return self._folded(tip, views[0] if views else None)

    def _steps_since(self, own: IndexView, tip: bytes) -> list[Step | None] | None:
        """Return the few commits that lead to one from what this index holds, newest first; None when more do."""
        found: list[Step | None] = []
        oid: bytes | None = tip
        while oid != own.tip:
            if oid is None or len(found) == NEAR:
                return None
            commit = self._history.read_commit(oid)
            found.append(step_of(oid, commit))
            oid = commit.parents[0] if commit.parents else None
        return found

    def _steps_since_any(
        self, views: Sequence[IndexView], tip: bytes
    ) -> tuple[list[Step | None], IndexView | None]:
        """Return the commits that lead to one, newest first, and what an index holds that they go on from, or None.

        None stands last where something else than appends leads there, or too many. Beginnings are looked for at
        distances that grow.
        """
        ends = {view.tip: view for view in reversed(views)}
        found: list[Step | None] = []
        oid: bytes | None = tip
        due = 0
        while oid is not None:
            seed = ends.get(oid)
            if seed is None and len(found) == due:
                due = 4 * due or 1
                seed = next(filter(None, (prefix_of(view, oid) for view in views)), None)
            if seed is not None:
                return found, seed
            is_far = views and len(found) == FAR
            step = None if is_far else step_of(oid, self._history.read_commit(oid))
            found.append(step)
            oid = None if step is None else step.parent
        return found, None

    def _extended(
        self, own: IndexView | None, seed: IndexView | None, steps: Sequence[Step], tip: bytes
    ) -> IndexView:
        """Return the view with what commits append; raises UnknownError where a fold has to tell."""
        if seed is None:
            builder = Builder()
            builder.append(steps, lambda _: None)
            return self._written(tip, b"", builder)
        builder = Builder(seed.last, seed.records)
        builder.append(steps, seed.find)
        expected = form.HEADER_BYTES + seed.records * form.MESSAGE_BYTES
        if seed is own and seed.opened.append(expected, bytes(builder.data)):
            last = MessageRecord.unpack_from(builder.data, len(builder.data) - form.MESSAGE_BYTES)
            return IndexView(seed.opened, builder.count, last, seed.generation)
        records = _records(seed)
        if records is None:
            raise UnknownError
        return self._written(tip, records, builder)

    def _folded(self, tip: bytes, view: IndexView | None) -> IndexView:
        """Write the index of a commit from its fold; what another index tells of a message is taken over."""
        records = None if view is None else _records(view)
        measured = view.measured() if view is not None and records is not None else None
        state = self._history.fold(tip)
        return self._written(tip, *records_of_fold(tip, state, records or b"", measured))

    def _written(self, tip: bytes, records: bytes, builder: Builder) -> IndexView:
        """Write the index: records that are there, and those that were made behind them."""
        generation = digest(tip)[:16]
        header = Header(form.MESSAGES_MAGIC, form.MESSAGE_BYTES, generation)
        opened = self._column.replace(b"".join((header.pack(), records, builder.data)))
        data = builder.data or records
        last = MessageRecord.unpack_from(bytes(data[-form.MESSAGE_BYTES :]), 0)
        return IndexView(opened, builder.count, last, generation)


def _records(view: IndexView) -> bytes | None:
    """Return the records of a view, to be copied; None when one of them is damaged."""
    data = view.opened.read(form.HEADER_BYTES, view.records * form.MESSAGE_BYTES)
    try:
        form.check_records(data)
    except errors.CorruptIndexError:
        return None
    return data
