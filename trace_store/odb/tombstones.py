"""Tombstones of purged objects, and fingerprints of purged texts.

    tombstones/<oid>-<check>    ["tombstone", {"by": text, "object": id, "time": milliseconds, "why": text}]
    tombstones/text-<hash>      ["fingerprint", {"by": text, "forms": [[size, sieve, check], …], "salt": bytes,
                                 "time": milliseconds, "why": text}]

A tombstone's name has the 64 hex digits of the object's id, and the first 16 of the hash of the file's bytes. So two
people who purge the same object create two files, which git merges without a conflict, and a file never changes.

Rule: a file with such a name alone means that the object is purged. Its content is only displayed, and only if the hash
matches; it may come from a stranger. Of several, the earliest is displayed.

A fingerprint recognises content that contains a purged text. A form of it is one encoding of the text: `size` is its
length in bytes, `check` the first 16 bytes of the hash of salt and form, and `sieve` the low two bits of each of its
eight middle bytes. Content is reduced to these bits, which is as fast as a copy, and searched for the sieve; a hash is
computed only where it matches. A fingerprint does not reveal the text, but it can confirm a guess, as an object id can.
"""

from __future__ import annotations

import itertools
import os

from trace_store import errors
from trace_store.base.ident import format_time
from trace_store.base.oid import HEX_CHARACTERS, ObjectId, digest
from trace_store.disk.files import create_file, read_file, stamp, unchanged
from trace_store.objects.codec import blob_content, chunks_of, decode, encode, is_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout
    from trace_store.odb.database import ObjectDatabase

    Form = tuple[int, bytes, bytes]

KIND = "tombstone"
CHECK_CHARACTERS = 16
MAXIMUM_BYTES = 8 * 1024
MAXIMUM_TEXT_CHARACTERS = 512
"""Maximum length of a reason. Authors have their own limit."""
_HEX = frozenset("0123456789abcdef")
_NAME_CHARACTERS = HEX_CHARACTERS + 1 + CHECK_CHARACTERS
FINGERPRINT_KIND = "fingerprint"
TEXT_PREFIX = "text-"
CHECK_BYTES = 16
SALT_BYTES = 16
SIEVE_BYTES = 8
MAXIMUM_FINGERPRINT_BYTES = 64 * 1024
"""Maximum size of the file of a fingerprint."""
MAXIMUM_FORM_BYTES = 1 << 16
MAXIMUM_FORMS = 1000
"""Maximum forms of a fingerprint: about 80 short texts. Each costs 1 ms per MiB written."""
_LOW_BITS = bytes(byte & 3 for byte in range(256))


class Tombstone:
    """A record of a purge.

    Attributes:
        oid: the object.
        time: when, in milliseconds; 0 if the file is unreadable.
        by: who, or "".
        why: the reason given, or "".
    """

    __slots__ = ("by", "oid", "time", "why")

    def __init__(self, oid: ObjectId, time: int = 0, by: str = "", why: str = "") -> None:
        self.oid = oid
        self.time = time
        self.by = by
        self.why = why

    def encode(self) -> bytes:
        """Return the bytes of the tombstone's file."""
        fields = {"by": self.by, "object": self.oid, "time": self.time, "why": self.why}
        return encode([KIND, fields])

    @property
    def date(self) -> str:
        """The day, such as `2026-11-22`, or ""."""
        return format_time(self.time).partition("T")[0] if self.time else ""

    @property
    def placeholder(self) -> str:
        """The text that replaces the content in a context: `[purged DATE: reason]`."""
        return placeholder_of(self.time, self.why)

    def error(self, what: str = "") -> errors.PurgedError:
        """Return a PurgedError for the object; `what` is the subject of its message."""
        when = f" on {self.date}" if self.date else ""
        why = f": {self.why}" if self.why else ""
        return errors.PurgedError(
            f"{what or f'object {self.oid}'} was purged{when}{why}",
            oid=self.oid,
            time=self.time,
            by=self.by,
            why=self.why,
            placeholder=self.placeholder,
        )


def placeholder_of(time: int, why: str) -> str:
    """Return the placeholder of purged content.

    `time` is in milliseconds, 0 if unknown.
    """
    date = format_time(time).partition("T")[0] if time else ""
    return f"[{' '.join(filter(None, ('purged', date)))}{f': {why}' if why else ''}]"


class Tombstones:
    """The tombstones of one repository.

    Attributes:
        oids: the ids of all purged objects, as of the last refresh.
    """

    __slots__ = ("_disk", "_folder", "_names", "_scratch", "_stamp", "_texts", "oids")

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._folder = layout.tombstones_dir
        self._scratch = layout.tmp_dir
        self._stamp: object = None
        self._names: dict[bytes, list[str]] = {}
        self._texts: dict[str, Fingerprint | None] = {}
        self.oids: frozenset[bytes] = frozenset()
        self.refresh()

    def refresh(self) -> None:
        """List the folder again if it may have changed."""
        if (self._names or self._texts) and unchanged(self._disk, self._folder, self._stamp):
            return
        self._stamp = stamp(self._disk, self._folder)
        names: dict[bytes, list[str]] = {}
        texts: dict[str, Fingerprint | None] = {}
        for name in self._disk.names(self._folder):
            oid = oid_of(name)
            if oid is not None:
                names.setdefault(oid, []).append(name)
            elif name.startswith(TEXT_PREFIX):
                texts[name] = self._texts.get(name) or self._fingerprint(name)
        self._names = names
        self._texts = texts
        self.oids = frozenset(names)

    def key(self) -> str:
        """Return a short cache key of the set of purged objects; "" if it is empty."""
        if not self._names:
            return ""
        listed = sorted(name for names in self._names.values() for name in names)
        return digest("\n".join(listed).encode()).hex()[:12]

    @property
    def texts(self) -> list[Fingerprint]:
        """The fingerprints of purged texts, oldest first."""
        return sorted(filter(None, self._texts.values()), key=lambda each: each.time)

    def add_text(self, fingerprint: Fingerprint) -> None:
        """Store a fingerprint durably.

        Raises:
            StorageError: it cannot be written.
        """
        data = fingerprint.encode()
        self._write(_text_file_name(data), data)
        self._sync_names()

    def find(self, oid: bytes) -> Tombstone | None:
        """Return the earliest tombstone of an object, or None."""
        names = self._names.get(oid)
        if names is None:
            return None
        tombstones = [self._read(ObjectId(oid), name) for name in names]
        known = [each for each in tombstones if each.time]
        return min(known or tombstones, key=lambda each: (each.time, each.by, each.why))

    def add(self, tombstones: Iterable[Tombstone]) -> int:
        """Create tombstones for objects that have none; return how many, all durable.

        Raises:
            StorageError: some could not be written.
        """
        self.refresh()
        wanted = list(tombstones)
        lacking = {each.oid: each for each in reversed(wanted) if each.oid not in self._names}
        for each in lacking.values():
            self._write(file_name(each.oid, data := each.encode()), data)
        if wanted:
            self._sync_names()
        return len(lacking)

    def remove(self, oids: Iterable[bytes]) -> None:
        """Remove the tombstones of objects that nothing links to any more, with their ids.

        Raises:
            StorageError: some could not be removed.
        """
        for oid in oids:
            for name in self._names.get(oid, ()):
                self._disk.remove(os.path.join(self._folder, name))
        self._disk.sync_directory(self._folder)
        self._names = {}
        self.refresh()

    def valid_files(self) -> list[tuple[str, bytes]]:
        """Return the names and bytes of all valid files, sorted, for bundles."""
        files = []
        for name in sorted(name for names in self._names.values() for name in names):
            data = self._data(name)
            if data is not None and parse(name, data) is not None:
                files.append((name, data))
        return files

    def add_files(self, files: Iterable[tuple[str, bytes]]) -> int:
        """Import files from a bundle; return how many are new.

        Raises:
            CorruptObjectError: one is not a tombstone; nothing is written.
            StorageError: some could not be written.
        """
        files = list(files)
        for name, data in files:
            if parse(name, data) is None:
                raise errors.CorruptObjectError(f"not a tombstone: {name[:80]!r}")
        known = {name for names in self._names.values() for name in names}
        new = [(name, data) for name, data in files if name not in known]
        for name, data in new:
            self._write(name, data)
        if files:
            self._sync_names()
        return len(new)

    def invalid_files(self) -> list[str]:
        """Return the names of invalid files in the folder."""
        invalid = []
        for name in self._disk.names(self._folder):
            if name.startswith(TEXT_PREFIX):
                if self._fingerprint(name) is None:
                    invalid.append(name)
                continue
            data = self._data(name) if oid_of(name) is not None else None
            if data is None or parse(name, data) is None:
                invalid.append(name)
        return invalid

    def _read(self, oid: ObjectId, name: str) -> Tombstone:
        data = self._data(name)
        parsed = None if data is None else parse(name, data)
        return parsed or Tombstone(oid)

    def _fingerprint(self, name: str) -> Fingerprint | None:
        data = self._data(name, MAXIMUM_FINGERPRINT_BYTES)
        return None if data is None else _parse_fingerprint(name, data)

    def _data(self, name: str, limit: int = MAXIMUM_BYTES) -> bytes | None:
        try:
            return read_file(self._disk, os.path.join(self._folder, name), limit=limit)
        except errors.StorageError:
            return None

    def _sync_names(self) -> None:
        """Sync the names of all tombstones: their writers may have died before doing so."""
        self._disk.sync_directory(self._folder)
        self._disk.sync_directory(os.path.dirname(self._folder))
        self._names = {}
        self.refresh()

    def _write(self, name: str, data: bytes) -> None:
        self._disk.make_directory(self._folder)
        self._disk.make_directory(self._scratch)
        temporary = os.path.join(self._scratch, f"tombstone-{os.getpid()}-{os.urandom(6).hex()}")
        create_file(self._disk, temporary, data)
        self._disk.rename(temporary, os.path.join(self._folder, name))


def purged_text_error(oid: ObjectId, text: Fingerprint) -> errors.PurgedError:
    """Return the error for an object that contains a purged text."""
    return Tombstone(oid, text.time, text.by, text.why).error("its content has a text that")


def find_purged_texts(
    objects: Mapping[ObjectId, bytes], texts: Iterable[Fingerprint]
) -> dict[ObjectId, Fingerprint]:
    """Return the objects that contain a purged text, each with the fingerprint.

    If a text spans two chunks, both are returned.
    """
    matches: dict[ObjectId, Fingerprint] = {}
    texts = list(texts)
    for oid, data in objects.items():
        hit = find_text(data, texts)
        if hit is not None:
            matches[oid] = hit
        chunks = [chunk for chunk in chunks_of(data) if chunk in objects]
        for first, second in itertools.pairwise(chunks):
            border = blob_content(objects[first])[-MAXIMUM_FORM_BYTES:]
            border += blob_content(objects[second])[:MAXIMUM_FORM_BYTES]
            hit = find_text(border, texts)
            if hit is not None:
                matches |= {oid: hit, first: hit, second: hit}
    return matches


def file_name(oid: bytes, data: bytes) -> str:
    """Return the name of a tombstone's file, given its bytes."""
    return f"{oid.hex()}-{digest(data).hex()[:CHECK_CHARACTERS]}"


def oid_of(name: str) -> ObjectId | None:
    """Return the object in a tombstone's file name, or None for another name."""
    oid, dash, check = name[:HEX_CHARACTERS], name[HEX_CHARACTERS:-CHECK_CHARACTERS], name[-16:]
    if len(name) != _NAME_CHARACTERS or dash != "-" or not _HEX.issuperset(oid + check):
        return None
    return ObjectId.parse(oid)


def check_reason(why: str) -> str:
    """Return the reason if it is valid.

    Raises:
        InvalidInputError: it is too long, not valid UTF-8, or has control characters.
    """
    if len(why) > MAXIMUM_TEXT_CHARACTERS or not _is_line(why):
        raise errors.InvalidInputError(
            f"a reason must be one line of at most {MAXIMUM_TEXT_CHARACTERS} characters"
        )
    return why


def parse(name: str, data: bytes) -> Tombstone | None:
    """Return the tombstone in a file, or None if the file is invalid."""
    oid = oid_of(name)
    if oid is None or len(data) > MAXIMUM_BYTES or file_name(oid, data) != name:
        return None
    fields: dict[str, Any]
    try:
        kind, fields = decode(data)
        tombstone = Tombstone(oid, fields["time"], fields["by"], fields["why"])
    except (errors.TraceError, ValueError, KeyError, TypeError):
        return None
    texts: tuple[object, ...] = (tombstone.by, tombstone.why)
    if (
        kind != KIND
        or fields.get("object") != oid
        or type(tombstone.time) is not int
        or not 0 < tombstone.time < 1 << 53
        or not all(isinstance(text, str) and _is_line(text) for text in texts)
        or len(tombstone.why) > MAXIMUM_TEXT_CHARACTERS
    ):
        return None
    return tombstone


def _is_line(text: str) -> bool:
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def find_new_purged_texts(
    database: ObjectDatabase, objects: Mapping[ObjectId, bytes]
) -> dict[ObjectId, Fingerprint]:
    """Return the new objects that contain a purged text, each with the fingerprint."""
    hits = find_purged_texts(objects, database.purged_texts)
    return {oid: text for oid, text in hits.items() if not database.contains(oid)}


def drop_purged(
    database: ObjectDatabase, objects: Mapping[ObjectId, bytes]
) -> dict[ObjectId, bytes]:
    """Return the objects without purged ones, although others may link to these.

    Content with a purged text gets its own tombstone, which explains its absence.

    Raises:
        PurgedError: a commit or tag itself contains a purged text.
        StorageError: a tombstone cannot be written.
    """
    if database.purged_texts:
        hits = find_new_purged_texts(database, objects)
        hits = {oid: text for oid, text in hits.items() if oid not in database.purged}
        for oid, text in hits.items():
            if not is_content(objects[oid]):
                raise purged_text_error(oid, text)
        if hits:
            database.tombstones.add(
                Tombstone(oid, text.time, text.by, text.why) for oid, text in hits.items()
            )
            database.refresh_tombstones()
    purged = database.purged
    return {oid: data for oid, data in objects.items() if oid not in purged}


class Fingerprint:
    """The fingerprint of one purge of texts.

    Attributes:
        forms: (size, sieve, check) of each encoding.
        salt: 16 bytes, hashed before each form.
        time, by, why: as in a tombstone.
    """

    __slots__ = ("by", "forms", "salt", "time", "why")

    def __init__(
        self, forms: Iterable[Form], salt: bytes, time: int, by: str = "", why: str = ""
    ) -> None:
        self.forms = tuple(forms)
        self.salt = salt
        self.time = time
        self.by = by
        self.why = why

    @classmethod
    def of(
        cls, spellings: Iterable[bytes], salt: bytes, time: int, by: str = "", why: str = ""
    ) -> Fingerprint:
        """Return the fingerprint of a text, given all its encodings."""
        forms = []
        for form in sorted(set(spellings), key=lambda form: (len(form), form)):
            start, end = _middle(len(form))
            sieve = form[start:end].translate(_LOW_BITS)
            forms.append((len(form), sieve, digest(salt + form)[:CHECK_BYTES]))
        return cls(forms, salt, time, by, why)

    def encode(self) -> bytes:
        """Return the bytes of the fingerprint's file."""
        fields = {
            "by": self.by,
            "forms": [list(form) for form in self.forms],
            "salt": self.salt,
            "time": self.time,
            "why": self.why,
        }
        return encode([FINGERPRINT_KIND, fields])

    def matches(self, data: bytes, reduced: bytes) -> bool:
        """Return True if the data contains the text; `reduced` is `reduce(data)`."""
        for size, sieve, check in self.forms:
            start = (size - len(sieve)) // 2
            at = reduced.find(sieve, start)
            while at >= 0:
                form = data[at - start : at - start + size]
                if len(form) < size:
                    break
                if digest(self.salt + form)[:CHECK_BYTES] == check:
                    return True
                at = reduced.find(sieve, at + 1)
        return False


def reduce(data: bytes) -> bytes:
    """Return the low two bits of each byte, to search for sieves."""
    return data.translate(_LOW_BITS)


def find_text(data: bytes, texts: Iterable[Fingerprint]) -> Fingerprint | None:
    """Return the first fingerprint whose text is in the data, or None."""
    reduced = reduce(data)
    return next((text for text in texts if text.matches(data, reduced)), None)


def _text_file_name(data: bytes) -> str:
    """Return the name of a fingerprint's file, given its bytes."""
    return TEXT_PREFIX + digest(data).hex()


def _parse_fingerprint(name: str, data: bytes) -> Fingerprint | None:
    """Return the fingerprint in a file, or None if the file is invalid."""
    if len(data) > MAXIMUM_FINGERPRINT_BYTES or _text_file_name(data) != name:
        return None
    fields: Mapping[str, object]
    try:
        kind, fields = decode(data)
        forms, salt, time = fields["forms"], fields["salt"], fields["time"]
        by, why = fields["by"], fields["why"]
    except (errors.TraceError, ValueError, KeyError, TypeError):
        return None
    is_sound = (
        kind == FINGERPRINT_KIND
        and isinstance(salt, bytes)
        and len(salt) == SALT_BYTES
        and type(time) is int
        and 0 < time < 1 << 53
        and isinstance(by, str)
        and isinstance(why, str)
        and (by + why).isprintable()
        and isinstance(forms, list)
        and 0 < len(forms) <= MAXIMUM_FORMS
        and all(map(_is_form, forms))
    )
    if not is_sound:
        return None
    assert isinstance(forms, list)
    return Fingerprint(map(tuple, forms), salt, time, by, why)  # type: ignore[arg-type]


def _is_form(form: object) -> bool:
    if not isinstance(form, list) or len(form) != 3:
        return False
    size, sieve, check = form
    return (
        type(size) is int
        and 0 < size <= MAXIMUM_FORM_BYTES
        and isinstance(sieve, bytes)
        and len(sieve) == min(size, SIEVE_BYTES)
        and isinstance(check, bytes)
        and len(check) == CHECK_BYTES
    )


def _middle(size: int) -> tuple[int, int]:
    width = min(size, SIEVE_BYTES)
    start = (size - width) // 2
    return start, start + width
