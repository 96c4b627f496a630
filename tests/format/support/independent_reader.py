"""Reads a repository with msgpack, blake3, zstd and the pages of docs/format, and with nothing of Trace.

What it needs to know and cannot find on a page is missing there. It takes a repository for sound: damage is an
AssertionError, an exception of a library, or whatever else Python says.
"""

from __future__ import annotations

import json
import re
import struct
import sys
import tomllib
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
from blake3 import blake3

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Address = tuple[bytes, int]


# --- objects.md: bytes ------------------------------------------------------------------------------------------------


def object_id(data: bytes) -> bytes:
    """Return the id of canonical bytes."""
    return blake3(data).digest()


def structure(data: bytes) -> list[Any]:
    """Return an object's elements, after a look at whether this is the one spelling."""
    value = msgpack.unpackb(data, strict_map_key=True)
    assert isinstance(value, list)
    assert 1 <= len(value) <= 15
    assert isinstance(value[0], str)
    assert canonical(value) == data
    return value


def canonical(value: Any) -> bytes:
    """Return the canonical bytes of a value."""
    return bytes(msgpack.packb(_sorted(value), use_bin_type=True))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=str.encode)}
    return [_sorted(item) for item in value] if isinstance(value, list | tuple) else value


def links(value: Any) -> list[bytes]:
    """Return the ids that an object, not a blob, names."""
    if isinstance(value, bytes):
        return [value] if len(value) == 32 else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [oid for item in inner for oid in links(item)]


# --- objects.md: hidden records; trajectories.md ----------------------------------------------------------------------


def content_of(objects: Mapping[bytes, bytes], oid: bytes) -> bytes:
    """Return the content of a blob, or of a list of chunks."""
    kind, content, *_ = structure(objects[oid])
    if kind == "list":
        assert content["type"] == "chunks"
        whole = b"".join(content_of(objects, item) for item in content["items"])
        assert len(whole) == content["size"]
        return whole
    assert kind == "blob"
    return bytes(content)


def pieces_of(objects: Mapping[bytes, bytes], oid: bytes) -> list[bytes]:
    """Return the contents of a value: those of its sequence in order, or its only one."""
    kind, node, *_ = structure(objects[oid])
    if kind == "blob" or node["type"] != "sequence":
        return [content_of(objects, oid)]
    level, depth = list(node["items"]), node["depth"]
    assert len(level) <= 64
    assert not depth or len(level) > 1
    while depth:
        depth -= 1
        nodes = [structure(objects[item])[1] for item in level]
        assert {(each["type"], each["depth"]) for each in nodes} == {("sequence", depth)}
        assert [len(each["items"]) for each in nodes[:-1]] == [64] * (len(nodes) - 1)
        assert 1 <= len(nodes[-1]["items"]) <= 64
        level = [item for each in nodes for item in each["items"]]
    return [content_of(objects, item) for item in level]


def hidden_values(objects: Mapping[bytes, bytes], oid: bytes) -> dict[str, tuple[str, list[bytes]]]:
    """Return the hidden values at a commit by name: what the program calls their form, and their contents."""
    while True:
        fields = structure(objects[oid])[1]
        for name, said in reversed(fields["ops"]):
            if name == "records":
                return {
                    name: (value["type"], pieces_of(objects, value["content"]))
                    for name, value in said["values"].items()
                }
        if not fields["parents"]:
            return {}
        oid = fields["parents"][0]


def event_of(objects: Mapping[bytes, bytes], oid: bytes) -> tuple[str, dict[str, Any]]:
    """Return the address and the fields of the event of a trajectory that a commit is."""
    ((name, said),) = structure(objects[oid])[1]["ops"]
    (message,) = said["messages"]
    (part,) = message["parts"]
    assert (name, message["role"]) == ("add", "assistant")
    assert (part["type"], part["schema"]) == ("data", "trace.event/1")
    fields = json.loads(content_of(objects, part["blob"]))
    assert message["kind"] == ("decision" if fields["type"] == "decision" else "event")
    return f"{oid[:16].hex()}.0", fields


# --- packs.md ---------------------------------------------------------------------------------------------------------


def inflate(data: bytes, size: int, dictionary: bytes = b"") -> bytes:
    """Decompress one zstd frame with raw content as its dictionary."""
    window = {int(zstd.DecompressionParameter.window_log_max): 25}
    before = zstd.ZstdDict(dictionary, is_raw=True) if dictionary else None
    machine = zstd.ZstdDecompressor(zstd_dict=before, options=window)
    content = machine.decompress(data)
    assert len(content) == size
    assert machine.eof
    assert not machine.unused_data
    return content


def loose_object(file: bytes) -> bytes:
    """Return the object in a loose file."""
    if file[0] == 0xB0:
        return file[1:]
    assert file[0] == 0xB1
    return inflate(file[5:], int.from_bytes(file[1:5], "little"))


class PackFrame(NamedTuple):
    """A frame of a pack: where its zstd frame stands, its sizes, its sort, and the forms of its objects."""

    offset: int
    compressed: int
    sort: int
    raw: bytes
    forms: list[bytes]


class Pack(NamedTuple):
    """A pack: its three numbers for people, its frames, its objects, and the hash in its trailer."""

    numbers: tuple[int, int, int]
    frames: list[PackFrame]
    objects: list[bytes]
    check: bytes


def read_pack(file: bytes, name: str) -> Pack:
    """Return a pack."""
    magic, version, level, zero, *numbers = struct.unpack_from("<4sBB2sII", file)
    assert (magic, version, zero) == (b"TRPK", 2, bytes(2))
    frames: list[PackFrame] = []
    objects: list[bytes] = []
    dictionary = b""
    at = 16
    while True:
        compressed, size, count, sort = struct.unpack_from("<IIII", file, at)
        at += 16
        if not compressed:
            assert (size, count, sort) == (0, 0, 0)
            break
        assert sort in (0, 1, 2, 3, 4)
        raw = inflate(file[at : at + compressed], size, dictionary if sort & 1 else b"")
        forms: list[bytes] = []
        if sort == 4:
            assert count == 0
            dictionary = raw
        else:
            place = 4 * count
            for length in struct.unpack_from(f"<{count}I", raw):
                forms.append(raw[place : place + length])
                place += length
            assert place == len(raw)
        for form in forms:
            objects.append(lengthened(form, objects) if sort & 2 else form)
        frames.append(PackFrame(at, compressed, sort, raw, forms))
        at += compressed
    frame_count, object_count, check = struct.unpack("<II32s", file[at:])
    assert (frame_count, object_count) == (len(frames), len(objects))
    assert check == blake3(file[:-32]).digest()
    assert name == blake3(file).hexdigest()
    return Pack((level, numbers[0], numbers[1]), frames, objects, check)


def lengthened(form: bytes, before: list[bytes]) -> bytes:
    """Return an object, given its form with short links and the objects before it."""
    found = bytearray()
    at = 0
    while at < len(form):
        if form[at : at + 2] != b"\xc4\x20":
            found.append(form[at])
            at += 1
            continue
        low, middle, high = form[at + 2 : at + 5]
        distance = low + 128 * middle + 128 * 128 * high
        found += b"\xc4\x20"
        if distance:
            found += object_id(before[len(before) - distance])
        at += 5
    return bytes(found)


class Row(NamedTuple):
    """Where an object is: its frame, and the offset there."""

    frame: int
    offset: int


class PackIndex(NamedTuple):
    """The index of a pack."""

    pack_size: int
    check: bytes
    buckets: list[int]
    numbers: list[int]
    ids: list[bytes]
    rows: list[Row]
    places: list[tuple[int, int, int, int, int, int]]

    def find(self, oid: bytes) -> Row | None:
        """Return where an object is, by way of its bucket."""
        bits = (len(self.buckets) - 1).bit_length() - 1
        bucket = int.from_bytes(oid[:2], "big") >> (16 - bits)
        for number in self.numbers[self.buckets[bucket] : self.buckets[bucket + 1]]:
            if self.ids[number] == oid:
                return self.rows[number]
        return None


def read_index(file: bytes) -> PackIndex:
    """Return the index in a file."""
    magic, version, bits, zero, n, f, pack_size, check = struct.unpack_from("<4sBB2sIIQ32s", file)
    assert (magic, version, zero) == (b"TRPI", 2, bytes(2))
    assert file[-32:] == blake3(file[:-32]).digest()
    at = 56
    buckets = list(struct.unpack_from(f"<{2**bits + 1}I", file, at))
    at += 4 * len(buckets)
    entries = struct.unpack_from(f"<{n}I", file, at)
    numbers = [entry % 2**18 for entry in entries]
    at += 4 * n
    ids = [file[at + 32 * i : at + 32 * i + 32] for i in range(n)]
    at += 32 * n
    rows = [Row(*reversed(struct.unpack_from("<IH", file, at + 6 * i))) for i in range(n)]
    at += 6 * n
    places = [struct.unpack_from("<IIIIII", file, at + 24 * i) for i in range(f)]
    assert at + 24 * f + 32 == len(file)
    assert [ids[number] for number in numbers] == sorted(ids)
    checks = [int.from_bytes(ids[number][2:4], "big") for number in numbers]
    assert [entry >> 18 for entry in entries] == [check >> 2 for check in checks]
    assert buckets[-1] == n
    return PackIndex(pack_size, check, buckets, numbers, ids, rows, places)


# --- journal.md -------------------------------------------------------------------------------------------------------

TRANSACTION, END, BEGIN, VOID = 1, 2, 3, 4


class Frame(NamedTuple):
    """A frame of a journal."""

    kind: int
    end: int
    objects: dict[bytes, bytes]
    fields: dict[str, Any]


def read_frames(file: bytes) -> list[Frame]:
    """Return the frames of a journal."""
    frames: list[Frame] = []
    at = 0
    while at < len(file):
        length, kind, zero, check = struct.unpack_from("<IB3sI", file, at)
        payload = file[at + 12 : at + 12 + length]
        assert zero == bytes(3)
        assert check == zlib.crc32(payload, zlib.crc32(file[at : at + 8], 0x54524A31))
        at += 12 + length
        (count,) = struct.unpack_from("<I", payload)
        place = 4 + 36 * count
        objects: dict[bytes, bytes] = {}
        for i in range(count):
            oid, size = struct.unpack_from("<32sI", payload, 4 + 36 * i)
            objects[oid] = payload[place : place + size]
            place += size
        frames.append(Frame(kind, at, objects, msgpack.unpackb(payload[place:])))
    assert frames[0].kind == BEGIN
    return frames


class Published(NamedTuple):
    """The file `local/published`."""

    sealed: dict[bytes, list[tuple[int, int]]]
    tips: dict[str, list[bytes]]


def read_published(text: str, folder: Path) -> Published:
    """Return the tips that this working copy last published; tables share its folder."""
    sealed: dict[bytes, list[tuple[int, int]]] = {}
    tips: dict[str, list[bytes]] = {}
    table: dict[str, list[bytes]] = {}
    wanted = 0
    for line in text.splitlines():
        first, _, rest = line.partition(" ")
        if first == "sealed":
            number, _, name = rest.partition(" ")
            spans = [span.rpartition("-") for span in number.split(",")]
            sealed[bytes.fromhex(name)] = [(int(low or 1), int(high)) for low, _, high in spans]
        elif first == "table":
            data = (folder / f"published-{rest}").read_bytes()
            assert blake3(data).hexdigest()[:32] == rest
            for entry in data.decode("ascii").splitlines():
                oid, _, name = entry.partition(" ")
                table.setdefault(name, []).append(bytes.fromhex(oid))
        elif first == "refs":
            wanted = int(rest)
        elif first == "-":
            tips[rest] = []
        elif first == "check":
            assert int(rest, 16) == zlib.crc32(text.partition("check ")[0].encode("ascii"))
        else:
            tips.setdefault(rest, []).append(bytes.fromhex(first))
    assert len(tips) == wanted
    return Published(sealed, {name: found for name, found in {**table, **tips}.items() if found})


class Moved(NamedTuple):
    """What unsealed journals say of a ref."""

    value: bytes | None
    passed: set[bytes | None]


def fold_moves(frames: list[Frame]) -> dict[str, Moved]:
    """Apply transactions in order, and return the value of each ref."""
    state: dict[str, Moved] = {}
    for frame in frames:
        new = {name: Moved(moved.value, set(moved.passed)) for name, moved in state.items()}
        for name, old, value in frame.fields["moves"]:
            if name in new and new[name].value != old:
                break
            passed = new[name].passed if name in new else set()
            new[name] = Moved(value, passed | {old})
        else:
            state = new
    return state


# --- refs.md ----------------------------------------------------------------------------------------------------------


class LogEntry(NamedTuple):
    """A line of a reflog."""

    old: bytes | None
    new: bytes | None
    time: int
    author: str
    message: str


def read_log(file: bytes) -> list[LogEntry]:
    """Return the entries of a reflog, oldest first."""
    entries = []
    for line in file.decode().split("\n")[:-1]:
        if "\0" in line:
            continue
        head, _, message = line.partition("\t")
        old, new, time, author = head.split(" ", 3)
        values = [None if value == "-" else bytes.fromhex(value) for value in (old, new)]
        said = [re.sub(r"\\(?:\\|x(..))", _unescaped, text) for text in (author, message)]
        entries.append(LogEntry(values[0], values[1], int(time), *said))
    return entries


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else "\\"


# --- objects.md: the context of a commit ------------------------------------------------------------------------------

Place = tuple[bytes, int]


def absolute(parts: list[Any], birth: bytes) -> list[Any]:
    """Return stored parts whose results name whole addresses."""
    return [
        {**part, "call": [part["call"][0] or birth, part["call"][1]]} if "call" in part else part
        for part in parts
    ]


class Entry:
    """An entry of a fold."""

    def __init__(self, stored: dict[str, Any], home: Place, wording: int) -> None:
        oid, number = home
        birth, born_number = stored.get("born", ["", number])
        self.address: Address = (birth or oid[:16], born_number)
        self.home = home
        self.message = stored
        state = stored if "born" in stored else {}
        self.wordings = [
            (absolute(parts, oid[:16]), (oid, wording + i))
            for i, parts in enumerate([stored["parts"], *state.get("edits", [])])
        ]
        self.counts: int = state.get("current", len(self.wordings) - 1)
        self.hidden: str = state.get("hidden", "")
        self.ghost: bool = state.get("ghost", False)
        self.priority: str = state.get("priority", "normal")
        self.labels = set(state.get("labels", []))
        self.keep: list[bytes] = state.get("keep", [])
        assert 0 <= self.counts < len(self.wordings)

    @property
    def parts(self) -> list[Any]:
        return self.wordings[self.counts][0]

    @property
    def place(self) -> Place:
        return self.wordings[self.counts][1]

    @property
    def answers(self) -> list[Address]:
        born = self.wordings[0][0]
        return [tuple(part["call"]) for part in born if "call" in part]

    @property
    def state(self) -> tuple[str, bool, str]:
        """What is alike in a unit."""
        return (self.hidden, self.ghost, self.priority)

    @state.setter
    def state(self, state: tuple[str, bool, str]) -> None:
        self.hidden, self.ghost, self.priority = state

    @property
    def is_ghost(self) -> bool:
        return self.hidden == "removed" and self.ghost

    @property
    def is_shown(self) -> bool:
        return self.is_ghost or (not self.hidden and self.priority != "skip")

    @property
    def seen(self) -> bytes:
        """The hash of the visible content."""
        role = self.message["role"]
        if self.is_ghost:
            birth, number = self.address
            born = [
                {key: part[key] for key in part if key != "call"} for part in self.wordings[0][0]
            ]
            named = {"address": f"{birth.hex()[:8]}.{number}", "parts": born, "role": role}
            return object_id(canonical(["ghost", named]))
        name = self.message.get("name", "")
        parts = [{key: part[key] for key in part if key != "call"} for part in self.parts]
        return object_id(canonical(["message", {"name": name, "parts": parts, "role": role}]))


class Fold:
    """The fold of a commit.

    Attributes:
        entries: in the order of the context.
        arrived: the same, in the order in which they came in.
        tools: the commit that last set the tools.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.arrived: list[Entry] = []
        self.tools: bytes | None = None

    def entry(self, address: Address) -> Entry:
        """Return an entry."""
        return next(entry for entry in self.entries if entry.address == address)

    def unit(self, entry: Entry) -> list[Entry]:
        """Return an entry's unit, including itself, in context order."""
        members = [entry]
        for one in members:
            members += [
                other
                for other in self.entries
                if other not in members
                and (other.address in one.answers or one.address in other.answers)
            ]
        return [entry for entry in self.entries if entry in members]

    def units(self, targets: list[Address]) -> list[Entry]:
        """Return the members of the units of messages, each once, in the given order."""
        found: list[Entry] = []
        for target in targets:
            found += [each for each in self.unit(self.entry(target)) if each not in found]
        return found

    def shown(self) -> list[Entry]:
        """Return the entries that a model is shown."""
        return [entry for entry in self.entries if entry.is_shown]

    def prefix_hashes(self) -> list[bytes]:
        """Return the prefix hash after each of them."""
        hashes, last = [], bytes(32)
        for entry in self.shown():
            last = object_id(last + entry.seen)
            hashes.append(last)
        return hashes

    def apply(self, oid: bytes, commit: dict[str, Any]) -> None:
        """Apply a commit's operations."""

        def address(stored: list[Any]) -> Address:
            return (stored[0] or oid[:16], stored[1])

        added = wordings = 0
        for name, fields in commit["ops"]:
            targets = [address(target) for target in fields.get("targets", ())]
            after = address(fields["after"]) if "after" in fields else None
            new = []
            for stored in fields.get("messages", ()):
                new.append(Entry(stored, (oid, added), wordings))
                added += 1
                wordings += len(new[-1].wordings)
            if name == "add":
                self._add(new, self._behind(after, len(self.entries)))
            elif name == "edit":
                entry = self.entry(address(fields["target"]))
                entry.counts = len(entry.wordings)
                entry.wordings.append((absolute(fields["parts"], oid[:16]), (oid, wordings)))
                wordings += 1
            elif name == "replace":
                old = self.units(targets)
                at = min((self.entries.index(entry) for entry in old), default=len(self.entries))
                for entry in old:
                    entry.hidden, entry.ghost = "replaced", False
                self._add(new, at)
            elif name == "move":
                moved = self.units(targets)
                if after is not None and self.entry(after) in moved:
                    moved = [self.entry(target) for target in dict.fromkeys(targets)]
                self.entries = [entry for entry in self.entries if entry not in moved]
                at = self._behind(after, 0)
                self.entries[at:at] = moved
            elif name == "tools":
                self.tools = oid
            elif name in ("annotate", "remove", "restore"):
                self._change(name, fields, targets)
            else:
                assert name in ("usage", "config", "records")

    def _behind(self, after: Address | None, otherwise: int) -> int:
        return otherwise if after is None else self.entries.index(self.entry(after)) + 1

    def _add(self, new: list[Entry], at: int) -> None:
        for entry in new:
            if any(entry.address == other.address for other in self.entries):
                continue
            asking = [other for other in self.arrived if entry.address in other.answers]
            asked = [o for call in entry.answers for o in self.entries if o.address == call]
            self.entries.insert(at, entry)
            self.arrived.append(entry)
            at += 1
            if asking or asked:
                state = (asking or asked)[0].state
                for other in self.unit(entry):
                    other.state = state

    def _change(self, name: str, fields: dict[str, Any], targets: list[Address]) -> None:
        named = [self.entry(target) for target in targets]
        if name == "annotate":
            for entry in self.units(targets):
                entry.priority = fields.get("priority", entry.priority)
            for entry in named:
                entry.keep = fields.get("keep", entry.keep)
                entry.labels |= {*fields.get("labels", ())}
                entry.labels -= {*fields.get("unlabels", ())}
        elif name == "remove":
            for entry in self.units(targets):
                entry.hidden, entry.ghost = "removed", fields.get("ghost", False)
        else:
            for entry in named:
                entry.counts = fields.get("version", entry.counts)
                assert 0 <= entry.counts < len(entry.wordings)
            for entry in self.units(targets):
                entry.hidden, entry.ghost = "", False


# --- compile-index.md -------------------------------------------------------------------------------------------------

ROLES = ["system", "developer", "user", "assistant", "tool"]
KINDS = ["instruction", "dialogue", "tool_io", "reasoning", "artifact", "output", "freeform"]


class Header(NamedTuple):
    """The header of a column."""

    magic: bytes
    version: int
    record_bytes: int
    generation: bytes
    measured: tuple[bytes, int]


class MessageRecord(NamedTuple):
    """A record of a messages column."""

    address: Address
    home: Place
    place: Place
    flags: int
    role: int
    kind: int
    tools: int
    prefix: bytes
    seen: bytes
    ordinal: int
    measured: int


class TokenRecord(NamedTuple):
    """A record of a tokens column."""

    tokens: int
    text: int
    media: int
    total: int
    text_total: int
    media_total: int
    prefix_start: bytes
    seen: bytes


def _checked(data: bytes) -> bytes:
    assert zlib.crc32(data[:-4], 0x2144DF1C) == int.from_bytes(data[-4:], "little")
    return data


def _column(file: bytes) -> tuple[Header, list[bytes]]:
    magic, version, size, text, media, generation, commit, total, no, _ = struct.unpack(
        "<4sHHII16s16sQII", _checked(file[:64])
    )
    assert no == 0
    assert text + media <= total
    assert (len(file) - 64) % size == 0
    records = [_checked(file[at : at + size]) for at in range(64, len(file), size)]
    return Header(magic, version, size, generation, (commit, total)), records


def read_messages_column(file: bytes) -> tuple[Header, list[MessageRecord]]:
    """Return the header and the records of a messages column."""
    header, records = _column(file)
    assert header[:3] == (b"TRIX", 6, 180)
    assert header.measured == (bytes(16), 0)
    found = []
    for record in records:
        fields = struct.unpack("<16sI32sI32sIHBBI32s32sQII", record)
        places = (fields[:2], fields[2:4], fields[4:6])
        found.append(MessageRecord(*places, *fields[6:14]))
    return header, found


def read_tokens_column(file: bytes) -> tuple[Header, list[TokenRecord]]:
    """Return the header and the records of a tokens column."""
    header, records = _column(file)
    assert header[:3] == (b"TRTK", 6, 52)
    return header, [TokenRecord(*struct.unpack("<IIIQQQ4s8sI", record)[:8]) for record in records]


def read_counts(file: bytes, encoding: str) -> dict[bytes, int]:
    """Return the remembered counts of an encoding."""
    seed = zlib.crc32(f"token counts: {encoding}".encode())
    counts = {}
    for at in range(0, len(file), 40):
        oid, tokens, check = struct.unpack(">32sII", file[at : at + 40])
        assert check == zlib.crc32(file[at : at + 36], seed)
        counts[oid] = tokens
    return counts


# --- the repository ---------------------------------------------------------------------------------------------------


class Repository:
    """A repository in a directory.

    Attributes:
        loose, packed, journaled: its objects by id, from each of the three places.
        moved: what the unsealed journals say of refs.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        config = tomllib.loads((root / "config").read_text(encoding="utf-8"))
        assert (config["format"], config["requires"]) == (2, [])
        self.default_branch: str = config["default_branch"]
        published = root / "local/published"
        said = published.read_text(encoding="ascii") if published.exists() else "refs 0"
        self.published = read_published(said, root / "local")
        self.journals = {
            int(path.name): read_frames(path.read_bytes()) for path in root.glob("journal/*")
        }
        unsealed = self._unsealed()
        self.journaled = {oid: data for f in unsealed for oid, data in f.objects.items()}
        self.moved = fold_moves(unsealed)
        self.loose = {
            bytes.fromhex(path.parent.name + path.name): loose_object(path.read_bytes())
            for path in root.glob("objects/??/*")
        }
        self.packs = {
            path: read_pack(path.read_bytes(), path.stem)
            for path in sorted(root.glob("objects/pack/*.pack"))
        }
        self.packed = {
            object_id(data): data for pack in self.packs.values() for data in pack.objects
        }
        self.objects = {**self.loose, **self.packed, **self.journaled}
        self._folds: dict[bytes, Fold] = {}

    def _unsealed(self) -> list[Frame]:
        """Return the transactions of unsealed journals, in order."""
        limits: dict[tuple[int, bytes], int] = {}
        counting: list[Frame] = []
        for number in sorted(self.journals, reverse=True):
            frames = self.journals[number]
            begin = frames[0].fields
            spans = self.published.sealed.get(begin["line"], [])
            if any(first <= number <= last for first, last in spans):
                continue
            limit = limits.get((number, begin["line"]), frames[-1].end)
            frames = [frame for frame in frames if frame.end <= limit]
            closes = begin["closes"]
            limits.update({(closed, begin["closed"]): size for closed, size in closes})
            counting[:0] = [
                frame
                for i, frame in enumerate(frames)
                if frame.kind == TRANSACTION and [f.kind for f in frames[i + 1 : i + 2]] != [VOID]
            ]
        return counting

    def commit(self, oid: bytes) -> dict[str, Any]:
        """Return the map of a commit."""
        kind, fields = structure(self.objects[oid])
        assert kind == "commit"
        return dict(fields)

    def content(self, oid: bytes) -> bytes:
        """Return the content of a blob, or of a list of chunks."""
        return content_of(self.objects, oid)

    def past(self, oid: bytes) -> set[bytes]:
        """Return a commit and its ancestors; missing objects and non-commits are skipped."""
        seen: set[bytes] = set()
        waiting = [oid]
        while waiting:
            oid = waiting.pop()
            if oid in seen or oid not in self.objects:
                continue
            kind, fields = structure(self.objects[oid])
            if kind == "commit":
                seen.add(oid)
                waiting += fields["parents"]
        return seen

    def tip_files(self) -> dict[str, list[bytes]]:
        """Return the tips in files, by ref."""
        found: dict[str, list[bytes]] = {}
        for path in sorted(self.root.glob("refs/**/*")):
            if path.is_file():
                assert path.stat().st_size == 0
                name = path.parent.relative_to(self.root).as_posix()
                found.setdefault(name, []).append(bytes.fromhex(path.name))
        return found

    def refs(self) -> dict[str, list[bytes]]:
        """Return the tips of each ref, this working copy's own first."""
        files = self.tip_files()
        found: dict[str, list[bytes]] = {}
        for name in sorted({*files, *self.moved}):
            tips = self._greatest(name, files.get(name, []))
            own = next(iter(self.published.tips.get(name, ())), None)
            moved = self.moved.get(name)
            if moved is not None:
                own = moved.value
                others = [tip for tip in tips if tip not in moved.passed]
                tips = self._greatest(name, [*([own] if own else ()), *others])
            if tips:
                tips.sort(key=lambda tip: (*self._distance(tip, own), tip))
                found[name] = tips
        return found

    def _distance(self, tip: bytes, own: bytes | None) -> tuple[bool, bool, bool]:
        """Return a value that is the smaller the likelier a tip is this working copy's own."""
        return (tip != own, own not in self.past(tip), tip not in self.objects)

    def _greatest(self, name: str, tips: list[bytes]) -> list[bytes]:
        distinct = list(dict.fromkeys(tips))
        if not name.startswith("refs/heads/"):
            return distinct
        return [
            tip
            for tip in distinct
            if not any(tip in self.past(other) for other in distinct if other != tip)
        ]

    def head(self) -> str | bytes:
        """Return the ref that HEAD is attached to, or the commit it is detached at."""
        path = self.root / "HEAD"
        if not path.exists():
            return f"refs/heads/{self.default_branch}"
        text = path.read_text(encoding="ascii").rstrip("\r\n")
        return text[5:] if text.startswith("ref: ") else bytes.fromhex(text)

    def log(self, name: str) -> list[LogEntry]:
        """Return the movements of a ref or of HEAD, oldest first."""
        path = self.root / "logs" / f"{name}.log"
        entries = read_log(path.read_bytes()) if path.exists() else []
        for frame in self._unsealed():
            fields = frame.fields
            for ref, old, new in fields["moves"]:
                if name == ref or (name == "HEAD" and ref == fields.get("head")):
                    said = (old, new, fields["time"], fields["author"], fields.get("message", ""))
                    entries += [entry for entry in [LogEntry(*said)] if entry not in entries]
        return entries

    def fold(self, oid: bytes) -> Fold:
        """Return the fold of a commit."""
        if oid not in self._folds:
            state = Fold()
            for each in self._line(oid):
                state.apply(each, self.commit(each))
            self._folds[oid] = state
        return self._folds[oid]

    def records_of_fold(self, oid: bytes) -> list[MessageRecord]:
        """Return the records of an index that is made from a fold."""
        state = self.fold(oid)
        found: list[MessageRecord] = []
        for entry in state.shown():
            found.append(_record(entry, found))
        measured = next(filter(self._is_measured, reversed(self._line(oid))), None)
        tools = None
        if measured not in (None, oid):
            tools = self.fold(measured).tools
            if tools is not None:
                found.append(_marker(tools, 128, found, tools=len(found) + 1))
            found.append(_marker(measured, 256, found, measured=len(found) + 1))
        if state.tools not in (None, tools):
            found.append(_marker(state.tools, 128, found, tools=len(found) + 1))
        found.append(_marker(oid, 0, found))
        return _ended(found, is_measured=measured == oid)

    def records_of_appends(
        self, tip: bytes, found: list[MessageRecord] | None = None
    ) -> list[MessageRecord]:
        """Return the records of an index that is made from appends, or that grew by them from those found."""
        found = list(found or ())
        since = found[-1].home[0] if found else None
        before = len(self.fold(since).entries) if since else 0
        for oid in self._line(tip, since):
            first, state = len(found), self.fold(oid)
            if any(name == "tools" for name, _ in self.commit(oid)["ops"]):
                found.append(_marker(oid, 128, found, tools=len(found) + 1))
            for entry in state.entries[before:]:
                found.append(_record(entry, found))
            if len(found) == first:
                found.append(_marker(oid, 0, found))
            found = _ended(found, is_measured=self._is_measured(oid))
            before = len(state.entries)
        return found

    def _is_measured(self, oid: bytes) -> bool:
        """Tell whether a commit holds a provider's report of its own context."""
        commit = self.commit(oid)
        parents = commit["parents"]
        names = [name for name, _ in commit["ops"]]
        links = {relation for relation, _ in commit.get("links", ())}
        if links & {"rewrites", "picked"}:
            return False
        other_text = len(parents) > 1 or "replace" in names
        reports = [
            fields
            for name, fields in commit["ops"]
            if name == "usage" and not (other_text and fields.get("about") in (None, *parents[:1]))
        ]
        return any(each.get("input_total", 0) > 0 for each in reports)

    def _line(self, tip: bytes, since: bytes | None = None) -> list[bytes]:
        """Return the commits along first parents, oldest first."""
        line: list[bytes] = []
        at: bytes | None = tip
        while at is not None and at != since:
            line.insert(0, at)
            at = next(iter(self.commit(at)["parents"]), None)
        return line


def _ended(records: list[MessageRecord], *, is_measured: bool) -> list[MessageRecord]:
    last = records[-1]
    measured = len(records) if is_measured else last.measured
    return [*records[:-1], last._replace(flags=last.flags | 2, measured=measured)]


def _marker(
    oid: bytes, flags: int, before: list[MessageRecord], *, tools: int = 0, measured: int = 0
) -> MessageRecord:
    last = before[-1] if before else _NOTHING
    return last._replace(
        address=(bytes(16), 0),
        home=(oid, 0),
        place=(oid, 0),
        flags=1 | flags,
        role=2,
        kind=6,
        seen=bytes(32),
        tools=tools or last.tools,
        measured=measured or last.measured,
    )


def _record(entry: Entry, before: list[MessageRecord]) -> MessageRecord:
    last = before[-1] if before else _NOTHING
    flags = 4 * entry.is_ghost + 8 * (entry.counts > 0) + 64 * bool(entry.labels or entry.keep)
    flags += {"pinned": 16, "important": 32}.get(entry.priority, 0)
    message = entry.message
    return last._replace(
        address=entry.address,
        home=entry.home,
        place=entry.place,
        flags=flags,
        role=ROLES.index(message["role"]),
        kind=KINDS.index(message["kind"]),
        prefix=object_id(last.prefix + entry.seen),
        seen=entry.seen,
        ordinal=last.ordinal + 1,
    )


_NO_PLACE = (bytes(32), 0)
_NOTHING = MessageRecord(
    (bytes(16), 0), _NO_PLACE, _NO_PLACE, 0, 0, 0, 0, bytes(32), bytes(32), 0, 0
)
