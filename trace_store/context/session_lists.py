"""Lists of sessions: what a list shows of each, with the summary of its context.

`cache/sessions` has what the last listing found. A seal copies it to `objects/info/`, which git carries, if that saves
clones reading 1,000 messages. Anything that does not fit is ignored: these files decide what lists show and find, never
what a context holds.
"""

from __future__ import annotations

import os

from trace_store import context, errors
from trace_store.base.frozen import value
from trace_store.base.oid import digest, is_full_id
from trace_store.disk.files import read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from trace_store.base.oid import ObjectId
    from trace_store.context.compiled import CompiledContext
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.summary import ContextSummary
    from trace_store.store.store import Store

    Entries: TypeAlias = dict[str, list[Any]]
    """By branch: the data of its summary, and the fields of its row."""

VERSION = 9
SUFFIX = ".sessions"
CARRIED_MESSAGES = 1000
"""New entries are copied for git once reading their contexts would take so many messages."""
_COUNT, _ORIGIN = 1, -1
"""Positions of the message count and the origin in a summary's data."""
MOST_FILES = 8
"""With this many carried files, the next one replaces them all."""


@value
class ListEntry:
    """What is known of a branch at one of its commits.

    Attributes:
        summary: the numbers of its context.
        row: the other fields, in the order of `SessionRow`.
        is_own: whether this working copy listed it, and not another one.
    """

    summary: ContextSummary
    row: list[Any]
    is_own: bool

    @property
    def facts(self) -> Mapping[str, str]:
        """The facts that Trace recorded of the session, the last of these fields; empty if it is damaged."""
        try:
            return {name: value for name, (_, value) in self.row[-1].items()}
        except (TypeError, LookupError, ValueError, AttributeError):
            return {}


class SessionLists:
    """What this working copy and its clones know of the sessions of a store.

    Attributes:
        own: what this working copy knows.
    """

    def __init__(self, store: Store) -> None:
        """Read what this working copy knows; files of another version, or that are damaged, count as absent."""
        self._store = store
        self._key = store.objects.purged_key()
        self.own = self._parsed(_read(store, store.layout.session_list_file)) or {}
        self._carried: dict[str, Entries] | None = None
        self._unusable: list[str] = []
        self._is_changed = False
        self._refs_by_tip: dict[bytes, str] | None = None

    def of(self, ref: str) -> Iterator[ListEntry]:
        """Yield what is known of a branch, at commits that it has or had; that of this working copy first."""
        yield from self._entry(self.own, ref, is_own=True)
        for entries in self.carried().values():
            yield from self._entry(entries, ref)

    def at_first_of(self, commits: Iterable[bytes]) -> Iterator[ListEntry]:
        """Yield what is known of a branch that had one of these commits as its tip: the first one of them."""
        if self._refs_by_tip is None:
            self._refs_by_tip = {}
            for entries in (*self.carried().values(), self.own):
                for ref, entry in entries.items():
                    self._note_tip(ref, entry)
        refs = self._refs_by_tip
        for commit in commits if refs else ():
            if commit in refs:
                yield from (each for each in self.of(refs[commit]) if each.summary.tip == commit)
                return

    def _note_tip(self, ref: str, entry: list[Any]) -> None:
        tip = entry[0][0] if type(entry[0]) is list and entry[0] else None
        if self._refs_by_tip is not None and type(tip) is bytes:
            self._refs_by_tip[tip] = ref

    def sizes_at(self, ref: str, tip: bytes) -> Iterator[tuple[str, int]]:
        """Yield each file that says how many messages a branch has at a commit, and the number."""
        files = {self._store.layout.session_list_file: self.own, **self.carried()}
        for path, entries in files.items():
            for each in self._entry(entries, ref):
                if each.summary.tip == tip:
                    yield path, each.summary.message_count

    def unusable(self) -> list[str]:
        """Return the paths of files in `objects/info/` that are no lists, or were written before a purge."""
        self.carried()
        return self._unusable

    def carried(self) -> dict[str, Entries]:
        """Return the entries of each file that git carries, by its path; read on first use."""
        if self._carried is None:
            self._carried = {}
            folder = self._store.layout.info_dir
            for name in self._store.disk.names(folder):
                path = os.path.join(folder, name)
                data = _read(self._store, path) if name.endswith(SUFFIX) else None
                entries = self._parsed(data) if data and _is_intact(name, data) else None
                if entries is None:
                    self._unusable.append(path)
                else:
                    self._carried[path] = entries
        return self._carried

    def learn(self, ref: str, entry: ListEntry) -> None:
        """Replace what this working copy knows of a branch; `save` writes it."""
        self.learn_all({ref: [entry.summary.to_data(), entry.row]})

    def learn_all(self, entries: Entries) -> None:
        """Replace what this working copy knows of branches by what `own` is in another process; `save` writes it."""
        for ref, new in entries.items():
            if self.own.get(ref) != new:
                self.own[ref] = new
                self._note_tip(ref, new)
                self._is_changed = True

    def forget_others(self, refs: Collection[str]) -> None:
        """Forget all branches of this working copy except for these; `save` writes the rest."""
        kept = {ref: entry for ref, entry in self.own.items() if ref in refs}
        self._is_changed = self._is_changed or len(kept) < len(self.own)
        self.own = kept

    def save(self) -> None:
        """Save what this working copy knows if that has changed; a failed write is ignored."""
        if not self._is_changed:
            return
        self._is_changed = False
        store = self._store
        try:
            store.disk.make_directory(store.layout.cache_dir)
            _write(store, store.layout.session_list_file, self._packed(self.own))
        except errors.StorageError:
            return  # a read-only repository

    def publish(self, *, tidy: bool = False) -> int:
        """Write new entries to a file for git; return their number, or 0 if they save too little.

        Args:
            tidy: whether the files are also written again if they name a branch that is gone, or were written before a
                purge: they have words of messages.

        Raises:
            StorageError: a file cannot be written.
        """
        saves = sum(map(_saved_messages, self.own.values())) >= CARRIED_MESSAGES
        if not saves and not tidy:
            return 0
        store, carried = self._store, self.carried()
        known = list(carried.values())
        new = {
            ref: entry
            for ref, entry in self.own.items()
            if all(entries.get(ref) != entry for entries in known)
        }
        saved = sum(
            _saved_messages(entry, [each[ref] for each in known if ref in each])
            for ref, entry in new.items()
        )
        is_stale = tidy and (self._old() or self._names_lost_branches(known))
        if saved < CARRIED_MESSAGES and not is_stale:
            return 0
        whole = is_stale or len(carried) >= MOST_FILES
        if whole:
            new = {**_fullest(known), **self.own}
        new = {ref: entry for ref, entry in new.items() if _has(store, ref)}
        if store.objects.purged_key() != self._key:
            return 0  # a purge has happened meanwhile
        data = self._packed(new)
        path = os.path.join(store.layout.info_dir, digest(data).hex() + SUFFIX)
        if new:
            _write(store, path, data)
        for old in (*carried, *self._old()) if whole else ():
            if old != path:
                store.disk.remove(old)
        return len(new)

    def _old(self) -> list[str]:
        return [path for path in self.unusable() if path.endswith(SUFFIX)]

    def _names_lost_branches(self, known: Sequence[Entries]) -> bool:
        return not all(_has(self._store, ref) for ref in {r for each in known for r in each})

    def _entry(self, entries: Entries, ref: str, *, is_own: bool = False) -> Iterator[ListEntry]:
        if ref not in entries:
            return
        data, row = entries[ref]
        try:
            yield ListEntry(context.summary.ContextSummary.from_data(data), row, is_own)
        except (ValueError, TypeError, errors.TraceError):
            return

    def _packed(self, entries: Entries) -> bytes:
        import msgpack  # slow to import

        data = [VERSION, self._key, dict(sorted(entries.items()))]
        packed: bytes = msgpack.packb(data, unicode_errors="surrogatepass")
        return packed

    def _parsed(self, data: bytes | None) -> Entries | None:
        """Return the entries of a file; None if it is no list of this version, or of before a purge."""
        if not data:
            return None
        import msgpack

        try:
            version, key, entries = msgpack.unpackb(data, unicode_errors="surrogatepass")
            if (version, key) != (VERSION, self._key):
                return None
            return {str(ref): [summary, row] for ref, (summary, row) in entries.items()}
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None


def _is_intact(name: str, data: bytes) -> bool:
    """Return True if a file that git carries has the name that its bytes give it."""
    base = name.removesuffix(SUFFIX)
    return is_full_id(base) and digest(data).hex() == base


def publish_lists(store: Store, *, tidy: bool = False) -> int:
    """Publish the lists of sessions for clones; return the number of sessions. Errors as in `SessionLists.publish`."""
    layout = store.layout
    if store.disk.exists(layout.session_list_file) or (tidy and store.disk.exists(layout.info_dir)):
        return SessionLists(store).publish(tidy=tidy)
    return 0


def branch_from_lists(contexts: ContextCompiler, ref: str, tip: ObjectId) -> CompiledContext | None:
    """Return a context with the numbers that lists have of a branch; None if it must be read."""
    disk, layout = contexts.store.disk, contexts.store.layout
    if not disk.exists(layout.session_list_file) and not disk.exists(layout.info_dir):
        return None
    once = context.compiler.ContextCompiler(contexts.store, keeps_files=False)
    if contexts.tokenizer() is not once.tokenizer():
        return None  # lists have the counts of the repository's
    known = [each.summary for each in SessionLists(contexts.store).of(ref)]
    return context.summary.context_from_summary(once, ref, tip, known, contexts.fold)


def _has(store: Store, ref: str) -> bool:
    """Return True if there is a branch of a name that may come from anybody."""
    try:
        return store.refs.read(ref) is not None
    except errors.InvalidRefNameError:
        return False


def _fullest(known: Sequence[Entries]) -> Entries:
    """Return of each branch the entry with the most messages."""
    found: Entries = {}
    for entries in known:
        for ref, entry in entries.items():
            if ref not in found or _saved_messages(entry) > _saved_messages(found[ref]):
                found[ref] = entry
    return found


def _saved_messages(entry: list[Any], carried: Sequence[list[Any]] = ()) -> int:
    """Return how many messages an entry saves a clone, beyond the carried entries."""
    try:
        count, origin = entry[0][_COUNT], entry[0][_ORIGIN]
        same = [summary for summary, _ in carried if summary[_ORIGIN] == origin]
        return int(count - max((summary[_COUNT] for summary in same), default=0))
    except (TypeError, LookupError, ValueError, OverflowError):
        return 0


def _read(store: Store, path: str) -> bytes | None:
    try:
        return read_file(store.disk, path)
    except errors.StorageError:
        return None


def _write(store: Store, path: str, data: bytes) -> None:
    replace_file(store.disk, path, data, durable=False, scratch=store.layout.tmp_dir)
