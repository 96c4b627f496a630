"""Listed sessions: what a list shows of each, with the summary of its context.

`cache/sessions` has what the last listing found. A seal copies it to `objects/info/`, which git carries, once clones
save the reading of many messages with it. All of it can be deleted, and is ignored where it does not fit: it decides
only what is displayed.
"""

from __future__ import annotations

import os

from trace_store import context, errors
from trace_store.base.frozen import value
from trace_store.base.oid import digest, is_full_id
from trace_store.disk.files import read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from trace_store.base.oid import ObjectId
    from trace_store.context.compiled import CompiledContext
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.summary import ContextSummary
    from trace_store.store.store import Store

    Entries: TypeAlias = dict[str, list[Any]]
    """By branch: the data of its summary, and the fields of its row."""

VERSION = 8
SUFFIX = ".sessions"
CARRIED_MESSAGES = 1000
"""New entries are copied for git once reading their contexts would take so many messages."""
_COUNT, _ORIGIN = 1, -1
"""Where the data of a summary has these."""
MOST_FILES = 8
"""More carried files than this are replaced by one."""


@value
class Listed:
    """What is known of a branch at one of its commits.

    Attributes:
        summary: the numbers of its context.
        row: the other fields, in the order of `SessionRow`.
    """

    summary: ContextSummary
    row: list[Any]


class ListedSessions:
    """What this working copy and its clones know of the sessions of a store.

    Attributes:
        own: what this working copy knows.
    """

    def __init__(self, store: Store) -> None:
        """Read what this working copy knows; files of another version, or that are damaged, count as absent."""
        self._store = store
        self._key = store.objects.purged_key()
        self.own = self._parsed(_read(store, store.layout.listed_file))
        self._carried: dict[str, Entries] | None = None
        self._forgot = False

    def of(self, ref: str) -> Iterator[Listed]:
        """Yield what is known of a branch, at commits that it has or had; that of this working copy first."""
        yield from self._entry(self.own, ref)
        for entries in self.carried().values():
            yield from self._entry(entries, ref)

    def sizes_at(self, ref: str, tip: bytes) -> Iterator[tuple[str, int]]:
        """Yield each file that says how many messages a branch has at a commit, and the number."""
        files = {self._store.layout.listed_file: self.own, **self.carried()}
        for path, entries in files.items():
            for each in self._entry(entries, ref):
                if each.summary.tip == tip:
                    yield path, each.summary.message_count

    def damaged(self) -> list[str]:
        """Return the paths of files beside those that git carries, which are not such files."""
        folder = self._store.layout.info_dir
        paths = [os.path.join(folder, name) for name in self._store.disk.names(folder)]
        return [path for path in paths if path not in self.carried()]

    def _entry(self, entries: Entries, ref: str) -> Iterator[Listed]:
        if ref not in entries:
            return
        data, row = entries[ref]
        try:
            yield Listed(context.summary.ContextSummary.from_data(data), row)
        except (ValueError, TypeError, errors.TraceError):
            return

    def carried(self) -> dict[str, Entries]:
        """Return the entries of each file that git carries, by its path; read on first use."""
        if self._carried is None:
            self._carried = {}
            folder = self._store.layout.info_dir
            for name in self._store.disk.names(folder):
                path = os.path.join(folder, name)
                data = _read(self._store, path) if name.endswith(SUFFIX) else None
                if data and is_intact(name, data):
                    self._carried[path] = self._parsed(data)
        return self._carried

    def save(self, entries: Mapping[str, Listed]) -> None:
        """Save what this working copy knows now; a failed write is ignored."""
        new = {ref: [each.summary.to_data(), each.row] for ref, each in entries.items()}
        if all(self.own.get(ref) == entry for ref, entry in new.items()) and not self._forgot:
            return
        self.own.update(new)
        store = self._store
        try:
            store.disk.make_directory(store.layout.cache_dir)
            _write(store, store.layout.listed_file, self._packed(self.own))
        except errors.StorageError:
            return  # a read-only repository

    def forget_others(self, refs: Collection[str]) -> None:
        """Forget all branches of this working copy except for these."""
        kept = {ref: entry for ref, entry in self.own.items() if ref in refs}
        self._forgot = len(kept) < len(self.own)
        self.own = kept

    def publish(self) -> int:
        """Copy what is new to a file for git, and return how many sessions it has; 0 if that is not worth a file.

        Raises:
            StorageError: the file cannot be written.
        """
        if sum(map(_saved_messages, self.own.values())) < CARRIED_MESSAGES:
            return 0
        store, carried = self._store, self.carried()
        new = {
            ref: entry
            for ref, entry in self.own.items()
            if all(entries.get(ref) != entry for entries in carried.values())
        }
        known = carried.values()
        saved = (
            _saved_messages(entry, [each[ref] for each in known if ref in each])
            for ref, entry in new.items()
        )
        if sum(saved) < CARRIED_MESSAGES:
            return 0
        if len(carried) >= MOST_FILES:
            for entries in carried.values():
                new = {**entries, **new}
        new = {ref: entry for ref, entry in new.items() if store.refs.read(ref) is not None}
        data = self._packed(new)
        path = os.path.join(store.layout.info_dir, digest(data).hex() + SUFFIX)
        _write(store, path, data)
        if len(carried) >= MOST_FILES:
            for old in carried:
                if old != path:
                    store.disk.remove(old)
        return len(new)

    def _packed(self, entries: Entries) -> bytes:
        import msgpack  # slow to import

        data = [VERSION, self._key, dict(sorted(entries.items()))]
        packed: bytes = msgpack.packb(data, unicode_errors="surrogatepass")
        return packed

    def _parsed(self, data: bytes | None) -> Entries:
        if not data:
            return {}
        import msgpack

        try:
            version, key, entries = msgpack.unpackb(data, unicode_errors="surrogatepass")
            if (version, key) != (VERSION, self._key):
                return {}
            return {str(ref): [summary, row] for ref, (summary, row) in entries.items()}
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return {}


def is_intact(name: str, data: bytes) -> bool:
    """Return True if a file that git carries has the name that its bytes give it."""
    base = name.removesuffix(SUFFIX)
    return is_full_id(base) and digest(data).hex() == base


def summarised_branch(contexts: ContextCompiler, ref: str, tip: ObjectId) -> CompiledContext | None:
    """Return the context of a branch by what is known of it, for its numbers; None if it must be read."""
    once = context.compiler.ContextCompiler(contexts.store, keeps_files=False)
    if contexts.tokenizer() is not once.tokenizer():
        return None  # lists have the counts of the repository's
    known = [each.summary for each in ListedSessions(contexts.store).of(ref)]
    return context.summary.summarised(once, ref, tip, known)


def _saved_messages(entry: list[Any], carried: Sequence[list[Any]] = ()) -> int:
    """Return how many messages a clone need not read if it gets an entry, beside those that are carried."""
    try:
        count, origin = entry[0][_COUNT], entry[0][_ORIGIN]
        same = [summary for summary, _ in carried if summary[_ORIGIN] == origin]
        return int(count - max((summary[_COUNT] for summary in same), default=0))
    except (TypeError, LookupError, ValueError):
        return 0


def _read(store: Store, path: str) -> bytes | None:
    try:
        return read_file(store.disk, path)
    except errors.StorageError:
        return None


def _write(store: Store, path: str, data: bytes) -> None:
    replace_file(store.disk, path, data, durable=False, scratch=store.layout.tmp_dir)
