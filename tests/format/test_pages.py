"""The hex examples and limits in docs/format match the code."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.format.support.independent_reader import read_pack
from tests.support.subjects import bundles
from trace_store.base import ident
from trace_store.base.oid import hash_object
from trace_store.bundles import format
from trace_store.commit_table import table
from trace_store.commit_table.table import CHUNK_ROWS
from trace_store.context import compile_index
from trace_store.context.compile_index import cold_view
from trace_store.context.content import LINE_WIDTH, SummaryLine
from trace_store.contracts import RefEdit, Transaction, ref_names
from trace_store.disk import layout
from trace_store.disk.files import Disk
from trace_store.history import line_cache
from trace_store.journal import frames, published, tail
from trace_store.objects import codec, message, operations
from trace_store.objects.commit import Commit
from trace_store.objects.content import ObjectCollector
from trace_store.objects.message import KINDS, ROLES, Message, store_message
from trace_store.odb import compression, pack, pack_index
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.tombstones import Tombstone, file_name
from trace_store.refs import head
from trace_store.store.config import KNOWN_KEYS, new_config
from trace_store.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "format"
EXAMPLE = ROOT / ".trace-example"


def hex_blocks(page: str) -> list[bytes]:
    """Return the bytes of each hex block: the pairs of hex digits that begin its lines."""
    text = (PAGES / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```hex\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lead = re.compile(r"(?:[0-9a-f]{2} ?)+(?= |$)")
    return [
        bytes.fromhex("".join(m[0] for line in block.splitlines() if (m := lead.match(line))))
        for block in blocks
    ]


def object_examples() -> list[bytes]:
    stored = store_message(Message("user", "Plan the release."), ObjectCollector().put)
    commit = Commit([], "Ada <ada@example.org>", 1_700_000_000_000, [operations.add([stored])])
    address, _ = next(operations.added_messages(commit, hash_object(commit.encode())))
    written = codec.encode(["a text before it", list(address)])[-20:]
    return [codec.encode_blob(b"Plan the release."), commit.encode(), written]


def compile_index_examples() -> list[bytes]:
    data = object_examples()[1]
    view = cold_view(hash_object(data), lambda _: data)
    return [view.opened.read(0, view.opened.size())]


def journal_examples() -> list[bytes]:
    blob = codec.encode_blob(b"Hi")
    oid = hash_object(blob)
    name = "refs/heads/main"
    moves = [frames.Move(name, None, oid)]
    frame = frames.Frame.of_transaction(moves, "Ada", 1_700_000_000_000, "", name)
    return [frames.encode_end(), frames.encode_transaction(frame, {oid: blob})]


def pack_examples() -> list[bytes]:
    disk = Disk()
    blob = codec.encode_blob(b"Hi")
    with tempfile.TemporaryDirectory() as root:
        places = layout.Layout(root)
        writer = PackWriter(disk, places)
        writer.add(hash_object(blob), blob)
        (name,) = writer.finish()
        files = [places.pack_file(name), places.pack_index_file(name)]
        assert name in (PAGES / "packs.md").read_text(encoding="utf-8")
        return [Path(file).read_bytes() for file in files]


def bundle_examples() -> list[bytes]:
    store = Store.memory()
    oid = store.objects.write(codec.encode_blob(b"Hi"))
    edit = RefEdit("refs/tags/hi", oid, None)
    store.transact(lambda refs: Transaction([], [edit], ""))
    out = io.BytesIO()
    bundles(store).create(out.write, "hi")
    return [out.getvalue()]


def example_parts() -> list[bytes]:
    """Return the bytes that the comment above each block of the example's page names.

    `<!-- bytes: FILE FROM-TO -->`; `PACK#N` is the content of frame N of a pack.
    """
    text = (PAGES / "example.md").read_text(encoding="utf-8")
    found: list[bytes] = []
    for name, first, last in re.findall(r"<!-- bytes: (\S+) (\d+)-(\d+) -->\n```hex\n", text):
        file, _, frame = name.partition("#")
        data = (EXAMPLE / file).read_bytes()
        if frame:
            data = read_pack(data, Path(file).stem).frames[int(frame)].raw
        found.append(data[int(first) : int(last)])
        assert len(found[-1]) == int(last) - int(first), name
    return found


def commit_table_examples() -> list[bytes]:
    data = object_examples()[1]
    header = table.encode_header(table.tag_of("01" * 16), bytes([1]) * 16)
    facts = table.facts_of(Commit.decode(data))
    line, text = line_cache.encode_line(
        64, SummaryLine("user: ", "Plan the release."), "", table.SEED
    )
    return [header + table.encode_rows(hash_object(data), 0, [], 0, facts), line + text]


def tombstone_examples() -> list[bytes]:
    oid = hash_object(codec.encode_blob(b"Hi"))
    data = Tombstone(oid, 1_700_000_000_000, "Ada", "a key").encode()
    page = (PAGES / "tombstones.md").read_text(encoding="utf-8")
    assert f"`{file_name(oid, data)}`" in page
    assert f"has {len(data)} bytes" in page
    return [data]


EXAMPLES: dict[str, Callable[[], list[bytes]]] = {
    "bundles.md": bundle_examples,
    "commit-table.md": commit_table_examples,
    "compile-index.md": compile_index_examples,
    "example.md": example_parts,
    "objects.md": object_examples,
    "journal.md": journal_examples,
    "packs.md": pack_examples,
    "tombstones.md": tombstone_examples,
}


@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.glob("*.md")))
def test_hex_examples_are_what_the_code_writes(page: str) -> None:
    expected = EXAMPLES[page]() if page in EXAMPLES else []
    assert [block.hex(" ") for block in hex_blocks(page)] == [block.hex(" ") for block in expected]


def test_objects_page_names_everything() -> None:
    text = (PAGES / "objects.md").read_text(encoding="utf-8")
    words = [*operations.OPERATIONS, *operations.PRIORITIES, *ROLES, *KINDS, *codec.KINDS]
    assert not [word for word in words if f"`{word}`" not in text]
    limits = (
        f"at most {codec.MAXIMUM_DEPTH} levels, {codec.MAXIMUM_ELEMENTS:,} elements in a container,"
        f" {codec.MAXIMUM_TOTAL_ELEMENTS:,} in all, {codec.MAXIMUM_STRUCTURE_BYTES >> 20} MiB"
    )
    assert limits in " ".join(text.split())
    assert codec.MAXIMUM_BLOB_BYTES == 8 << 20
    assert codec.SALT_BYTES == 16


def test_refs_page_has_the_table_of_namespaces() -> None:
    text = (PAGES / "refs.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `(refs/\w+/)` \|.*\| ([\w ]+) \| `?(\w+|–)`? \| (\w+|–) \|$", text)
    assert rows == [
        (each.prefix, each.join, each.listing or "–", each.kind or "–")
        for each in ref_names.NAMESPACES
    ]


def test_overview_shows_what_init_writes() -> None:
    text = (PAGES / "overview.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```\w+\n(.*?)^```$", text)
    written = [new_config("01" * 16), layout.IGNORED, layout.ATTRIBUTES]
    assert [block for block in blocks if block in written] == written
    assert not [key for key in KNOWN_KEYS if f"| `{key}` |" not in text]


def test_overview_names_every_file() -> None:
    text = (PAGES / "overview.md").read_text(encoding="utf-8")
    places = layout.Layout("/r")
    names = [*sorted(layout.DIRECTORIES), Path(places.config_file).name]
    assert not [name for name in names if name not in text]
    assert f"version {layout.FORMAT_VERSION}" in text


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("packs.md", f"at most {pack.MAXIMUM_PACK_BYTES >> 20} MiB"),
        ("packs.md", f"{pack.MAXIMUM_PACK_RAW_BYTES >> 20} MiB of raw content"),
        ("packs.md", f"`{pack.MAGIC.decode()}`"),
        (
            "packs.md",
            f"{pack.MAXIMUM_PACK_FRAMES:,} frames and {pack.MAXIMUM_PACK_OBJECTS:,} objects",
        ),
        ("packs.md", f"at most {pack.MAXIMUM_FRAME_OBJECTS:,} of them in one frame"),
        ("packs.md", f"A frame has at most {pack.MAXIMUM_FRAME_BYTES >> 20} MiB"),
        ("packs.md", f"an object at most {layout.MAXIMUM_OBJECT_BYTES >> 20} MiB"),
        ("packs.md", f"a dictionary at most {pack.MAXIMUM_DICTIONARY_BYTES >> 20} MiB"),
        ("packs.md", f"at most {1 << compression.MAXIMUM_WINDOW_LOG >> 20} MiB (2²⁵)"),
        ("packs.md", f"b is at most {pack_index.MAXIMUM_BITS}"),
        ("packs.md", f"is at most {pack_index.BUCKET_OBJECTS}."),
        ("objects.md", f"1 to {ident.MAXIMUM_AUTHOR_BYTES:,} bytes"),
        ("objects.md", f"have at most {message.MAXIMUM_NAME_BYTES:,} bytes"),
        ("objects.md", f"{layout.MAXIMUM_OBJECT_BYTES >> 20} MiB in any"),
        ("refs.md", f"at most {ref_names.MAXIMUM_NAME_BYTES} characters"),
        ("refs.md", f"longer than {ref_names.MAXIMUM_COMPONENT_BYTES} characters"),
        ("journal.md", f"`0x{frames.SEED:08x}`"),
        ("journal.md", f"Kinds below {frames.FIRST_PASSING} are *lasting*"),
        ("journal.md", f"`line`: {frames.LINE_BYTES} bytes"),
        ("journal.md", f"| {frames.EVENT} | event, a passing frame"),
        ("journal.md", f"has at most {tail.MAXIMUM_EVENT_BYTES:,} bytes"),
        ("journal.md", f"the last {tail.KEPT_JOURNALS} sealed journals"),
        ("journal.md", f"more than {codec.MAXIMUM_ELEMENTS:,} elements"),
        ("journal.md", f"at most {published.MAXIMUM_LINES}, `sealed N ID`"),
        ("refs.md", f"at most {head.MAXIMUM_BYTES:,} bytes"),
        ("commit-table.md", f"`0x{table.SEED:08x}`"),
        ("commit-table.md", f"A row of the table, {table.ROW_BYTES} bytes"),
        ("commit-table.md", f"A row of the lines, {line_cache.LINE_BYTES} bytes"),
        ("commit-table.md", f"A **chunk** is {CHUNK_ROWS} rows"),
        ("commit-table.md", f"at most {LINE_WIDTH};"),
        ("compile-index.md", f"`0x{compile_index.SEED:08x}`"),
        (
            "compile-index.md",
            f"A record of the messages column, {compile_index.MESSAGE_BYTES} bytes",
        ),
        ("compile-index.md", f"A record of a tokens column, {compile_index.TOKENS_BYTES} bytes"),
    ],
)
def test_limits_are_those_of_the_code(page: str, said: str) -> None:
    assert said in " ".join((PAGES / page).read_text(encoding="utf-8").split())


def test_bundles_page_says_what_is_written_and_how_much_may_be() -> None:
    text = " ".join((PAGES / "bundles.md").read_text(encoding="utf-8").split())
    assert f"`{format.MAGIC.decode()}{format.VERSION}`" in text
    assert format.MAXIMUM_HEADER_BYTES == 16 << 20
    assert f"at most {format.MAXIMUM_REFS:,} refs" in text
    assert f"at most {format.MAXIMUM_TIPS}, the working copy's own tip first" in text
    assert {format.TOMBSTONES} == format.KNOWN_REQUIREMENTS
