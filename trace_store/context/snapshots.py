"""Folds that are kept: a later commit, an edit or a merge goes on from the nearest one instead of from the root.

The last fold is kept in memory, and folds that took many commits in `.trace/cache/folds/`, local and deletable.

Rule: what is kept is what `folding_history.fold` says, or it is not used.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.collector import paused
from trace_store.context import kept_folds
from trace_store.context.folding import Fold
from trace_store.context.folding_history import go_on, line_since
from trace_store.files import read_file, replace_file
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, read_commit
from trace_store.oid import ObjectId, is_full_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from trace_store.context.folding_history import ReadCommit
    from trace_store.store import Store

WORTH = 400
"""A fold that took more commits and messages than these, and than a share of all that it holds, is kept in a file."""
_SHARE = 64
BACK = 200
"""Of such a line the fold so many commits back is kept, too, or a share of them: a merge begins where lines parted."""
KEPT = 8
"""Files at most; the oldest go."""
MAXIMUM_BYTES = 1 << 30


def fold_of(store: Store, tip: bytes, known: Mapping[bytes, Fold] = {}) -> Fold:
    """Return the fold of a commit, which must not be changed: `copy` returns one that may be.

    Args:
        store: where the commits are.
        tip: the commit.
        known: folds that are at hand, by their commits; what goes on from one of them shares its entries.

    Raises:
        ObjectNotFoundError: a commit is not here.
        InvalidOperationError, UnsupportedFormatError, CorruptObjectError: as in `Fold.apply`.
    """
    last = store.last_fold
    if last is not None and last[0] == tip:
        kept: Fold = last[1]
        return kept
    with paused:
        state = _state_of(store, tip, known if last is None else {**known, last[0]: last[1]})
    store.last_fold = (bytes(tip), state)
    return state


def _state_of(store: Store, tip: bytes, known: Mapping[bytes, Fold]) -> Fold:
    files = _Files(store)

    def read(oid: bytes) -> Commit:
        return read_commit(oid, store.objects.read)

    line, at, state = _since_one_at_hand(tip, read, known)
    while state is None:  # what is damaged is no longer among the files
        older, at = line_since(at, read, lambda oid: oid in known or oid in files)
        line[:0] = older
        state = Fold() if at is None else known[at] if at in known else files.load(at)
    took = len(line) + sum(ops.added_by(commit) for _, commit in line)
    is_long = took > max(WORTH, (len(state) + took) // _SHARE)
    if line:
        state = state.copy()
        before = line[: -max(BACK, len(line) // _SHARE)] if is_long else []
        if before:
            state = go_on(state, before)
            files.write(before[-1][0], state)
        state = go_on(state, line[len(before) :])
    if is_long:
        files.write(tip, state)
    return state


def _since_one_at_hand(
    tip: bytes, read: ReadCommit, known: Mapping[bytes, Fold]
) -> tuple[list[tuple[bytes, Commit]], bytes | None, Fold | None]:
    """Return the commits since a fold at hand, and that fold, where to go on from it costs less than to unpack a file.

    Otherwise no commits, the tip, and None.
    """
    line: list[tuple[bytes, Commit]] = []
    oid: bytes | None = tip
    left = max(map(len, known.values()), default=0) // _SHARE
    while oid is not None and oid not in known and left > 0:
        commit = read(oid)
        left -= 1 + ops.added_by(commit)
        line.append((oid, commit))
        oid = commit.parents[0] if commit.parents else None
    if oid is None or oid not in known:
        return [], tip, None
    return line[::-1], oid, known[oid]


class _Files:
    """The kept folds of a store; their names are numbers, the newest highest, and the commit's id."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = store.layout.folds_dir if store.local else ""
        self._names: dict[bytes, str] = {}
        self._newest = 0
        try:
            names = store.disk.names(self._folder) if store.local else []
        except errors.StorageError:  # a link, or what is no folder
            names, self._folder = [], ""
        for name in names:
            number, _, oid = name.partition("-")
            if number.isdigit() and is_full_id(oid):
                self._newest = max(self._newest, int(number))
                self._names[bytes.fromhex(oid)] = name

    def __contains__(self, oid: bytes) -> bool:
        return oid in self._names

    def load(self, oid: bytes) -> Fold | None:
        """Return a kept fold; None when it is damaged or gone, and it is forgotten then."""
        path = os.path.join(self._folder, self._names[oid])
        try:
            data = read_file(self._store.disk, path, limit=MAXIMUM_BYTES)
            if data is not None:
                return kept_folds.unpack(oid, data)
        except (errors.CorruptIndexError, errors.StorageError):
            pass
        del self._names[oid]
        return None

    def write(self, oid: bytes, state: Fold) -> None:
        """Keep a fold, and let the oldest go; a disk that refuses costs time only."""
        if not self._folder:
            return
        disk = self._store.disk
        name = f"{self._newest + 1:06}-{ObjectId(oid)}"
        try:
            path = os.path.join(self._folder, name)
            replace_file(disk, path, kept_folds.pack(oid, state), durable=False)
            for old in sorted(self._names.values())[: -KEPT + 1]:
                disk.remove(os.path.join(self._folder, old))
                del self._names[bytes.fromhex(old.partition("-")[2])]
        except errors.StorageError:
            return
        self._newest += 1
        self._names[bytes(oid)] = name
