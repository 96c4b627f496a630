"""Saved state of imports: where each file ended, and stray rows.

Stray rows are those that a program wrote into another session's file.

Invariant: local, derived and safe to delete. Without it a file is read whole, and existing commits are recognised;
stray rows are also stored with the file that they are in. Invalid state counts as absent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from trace_store.base.frozen import fields, value
from trace_store.base.oid import OID_BYTES, ObjectId, digest
from trace_store.disk.files import read_file, replace_file
from trace_store.errors import FormatError, StorageError
from trace_store.importers.input_files import INNER, Input, InputBytes
from trace_store.importers.source_archive import ResumeCut
from trace_store.importers.write import make_durable
from trace_store.objects.content import bytes_of
from trace_store.odb.compression import compress, decompress_first
from trace_store.store.store import Store

VERSION = 8
COMPRESSION_LEVEL = 3
EDGE_BYTES = 4096
"""Bytes at both edges of the imported data that must be unchanged."""

MAXIMUM_UNSAVED = 256
MAXIMUM_UNSAVED_BYTES = 8 << 20
"""Limits of unsaved state: it is written after one sync for many files."""

MAXIMUM_STATE_BYTES = 1 << 30

_FOLDER = "imports"
_NONE = bytes(OID_BYTES)
_FILE = os.path.join("imports", "strays")


@value
class ResumeState:
    """Where an import of a file ended.

    Attributes:
        ref: the session's branch, or the branch appended to.
        session: session id.
        folder: where its source files are stored, as in `source_archive.keep_file`.
        stamp: the file's stamp; see `input_files.Input`.
        end: end of the imported data.
        offset, line: where to resume reading.
        head, tail: hashes of the edges of the imported data.
        plan: state of the plan; None if the file is read whole when it has grown.
        oids: commits by number in the plan, None for an empty one; without a plan only the first and last ones.
        names: names of the plan's threads.
        continuation: state of the appender, or None.
        cut: where to resume the source file, or None if it is not stored.
    """

    ref: str
    session: str
    folder: str
    stamp: str
    end: int
    offset: int
    line: int
    head: str
    tail: str
    plan: Any
    oids: Mapping[int, ObjectId | None]
    names: list[tuple[int, str]]
    continuation: Any
    cut: ResumeCut | None


class ResumeStates:
    """Saved states of the files of an import.

    They are written once the imported objects are durable: a sync per file would take longer than reading it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsaved: dict[str, bytes] = {}
        self._bytes = 0

    def has(self, key: str) -> bool:
        """Return True if a file was imported before; False if the disk fails."""
        try:
            return key in self._unsaved or self._store.disk.exists(_path(self._store, key))
        except StorageError:
            return False

    def load(self, key: str, file: Input) -> ResumeState | None:
        """Return where the last import of a file ended, if the file has only grown since."""
        store = self._store
        data = self._unsaved.get(key)
        try:
            if data is None:
                data = read_file(store.disk, _path(store, key))
        except StorageError:
            return None
        checksum, _, body = (data or b"").partition(b"\n")
        if not body or checksum != digest(body).hex().encode():
            return None
        try:
            saved = json.loads(decompress_first(body, MAXIMUM_STATE_BYTES))
            if saved.pop("version") != VERSION:
                return None
            cut, oids = saved.pop("cut"), _unpack_oids(*saved.pop("oids"))
            state = ResumeState(**saved, oids=oids, cut=None if cut is None else ResumeCut(**cut))
            is_valid = _is_sound(state) and state.end <= file.size
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, FormatError):
            return None
        return state if is_valid and edges(file, state.end) == (state.head, state.tail) else None

    def add(self, key: str, state: ResumeState) -> None:
        """Add the state of a file; it is saved by `write`, or when the limits are reached.

        Raises:
            StorageError: imported objects cannot be made durable.
        """
        saved = _values(state)
        saved["cut"] = None if state.cut is None else _values(state.cut)
        saved["oids"] = _pack_oids(state.oids)
        try:
            text = json.dumps({"version": VERSION, **saved}, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):
            return  # an external importer returned state that JSON cannot express
        body = compress(text.encode(), level=COMPRESSION_LEVEL)
        self.take({key: digest(body).hex().encode() + b"\n" + body})

    @property
    def unsaved(self) -> Mapping[str, bytes]:
        """States that are not saved yet, by their keys."""
        return self._unsaved

    def take(self, states: Mapping[str, bytes]) -> None:
        """Add states as `unsaved` has them; errors as in `add`."""
        self._unsaved.update(states)
        self._bytes += sum(map(len, states.values()))
        if len(self._unsaved) >= MAXIMUM_UNSAVED or self._bytes >= MAXIMUM_UNSAVED_BYTES:
            self.write()

    def write(self) -> None:
        """Make imported objects durable, then save the state.

        A failed save is ignored: the file is then read whole next time.

        Raises:
            StorageError: imported objects cannot be made durable.
        """
        make_durable(self._store)
        unsaved, self._unsaved, self._bytes = self._unsaved, {}, 0
        for key, data in unsaved.items():
            try:
                replace_file(self._store.disk, _path(self._store, key), data, durable=False)
            except StorageError:
                return


def _values(record: ResumeState | ResumeCut) -> dict[str, Any]:
    """Return the attributes without copying them, unlike `asdict`."""
    return {name: getattr(record, name) for name in fields(record)}


def _is_sound(state: ResumeState) -> bool:
    texts = (state.ref, state.session, state.folder, state.stamp, state.head, state.tail)
    numbers = (state.offset, state.end, state.line)
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(number, int) for number in numbers)
        and 0 <= state.offset <= state.end
    )


def _pack_oids(oids: Mapping[int, ObjectId | None]) -> tuple[int | list[int], str]:
    """Return the numbers of commits and their ids, in hexadecimal as in the cut: repetition is compressed."""
    numbers = list(oids)
    data = b"".join(_NONE if oid is None else oid for oid in oids.values())
    in_order = numbers == list(range(len(numbers)))
    return len(numbers) if in_order else numbers, data.hex()


def _unpack_oids(numbers: int | list[int], text: str) -> dict[int, ObjectId | None]:
    data = bytes.fromhex(text)
    pieces = [data[at : at + OID_BYTES] for at in range(0, len(data), OID_BYTES)]
    named = range(numbers) if isinstance(numbers, int) else numbers
    return {
        number: None if piece == _NONE else ObjectId(piece)
        for number, piece in zip(named, pieces, strict=True)
    }


def _real_path(path: str) -> str:
    """Return the path with symbolic links resolved.

    A session inside a file may have any name.
    """
    return path if "\0" in path else os.path.realpath(path)


def state_key(path: str, format_name: str, onto: str, *, source: bool) -> str:
    """Return the key of a file's saved state."""
    parts = (_real_path(path), format_name, onto, "source" if source else "")
    return digest(bytes_of("\0".join(parts))).hex()[:32]


def edges(file: Input, offset: int) -> tuple[str, str]:
    """Return hashes of a file's first bytes, and of the last ones before an offset."""
    size = min(EDGE_BYTES, offset)
    return digest(file.read_at(0, size)).hex(), digest(file.read_at(offset - size, size)).hex()


def _path(store: Store, key: str) -> str:
    return os.path.join(store.layout.local_dir, _FOLDER, key)


@runtime_checkable
class StrayFinder(Protocol):
    """A plan that finds rows of other sessions."""

    @property
    def strays(self) -> Mapping[str, Sequence[bytes]]:
        """Rows of other sessions found in this import, by session id."""
        ...


class Strays:
    """Stray rows by the session's `<format>/<id>` and the path of the file."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows = _load(store)
        self._pending: set[str] = set()
        self._changed = False

    @property
    def rows(self) -> Mapping[str, Mapping[str, Sequence[str]]]:
        """Rows as texts, by session and path."""
        return self._rows

    def add(self, session: str, path: str, rows: Sequence[bytes]) -> None:
        """Record rows of a session found in a file."""
        self.take({session: {_real_path(path): list(map(_text, rows))}})

    def take(self, found: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        """Record rows as `rows` has them."""
        for session, files in found.items():
            for path, rows in files.items():
                known = self._rows.setdefault(session, {}).setdefault(path, [])
                new = [row for row in rows if row not in known]
                known += new
                self._changed = self._changed or bool(new)
            self._pending.add(session)

    def expect(self, session: str) -> None:
        """Note that a session was imported, so that its stray rows can be appended."""
        if session in self._rows:
            self._pending.add(session)

    def pending(self) -> Iterator[tuple[str, InputBytes]]:
        """Yield sessions with an input of their stray rows, in a stable order."""
        for session in sorted(self._pending):
            name = session.rpartition("/")[2]
            for path, rows in sorted(self._rows[session].items()):
                data = b"".join(row.encode("utf-8", "surrogateescape") + b"\n" for row in rows)
                yield session, InputBytes(f"{path}{INNER}{name}", name, data)

    def save(self) -> None:
        """Save the rows; a failed write is ignored."""
        if not self._changed:
            return
        path = os.path.join(self._store.layout.local_dir, _FILE)
        try:
            replace_file(self._store.disk, path, json.dumps(self._rows).encode(), durable=False)
        except StorageError:
            return


def _text(row: bytes) -> str:
    return row.decode("utf-8", "surrogateescape")


def _load(store: Store) -> dict[str, dict[str, list[str]]]:
    try:
        data = read_file(store.disk, os.path.join(store.layout.local_dir, _FILE))
        saved = json.loads(data or b"{}").items()
        return {
            str(session): {str(path): [str(row) for row in rows] for path, rows in files.items()}
            for session, files in saved
        }
    except (StorageError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
