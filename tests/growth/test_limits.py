"""What is very large or very many: it works, memory stays within the bounds of docs/performance.md, and limits say so.

The variable TRACE_TEST_FULL_SIZES asks for the sizes that docs/performance.md speaks of; without it they are smaller.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random

import pytest

import trace_store
from tests.growth.support.children import run, trace
from tests.growth.support.stores import QuickDisk, QuickRecordingDisk, add_branches, branch
from tests.support.installed_here import ROOT
from trace_cli import runtime
from trace_store import FixedClock, Message, Repo, Store
from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.tokens.tokenizer import PART_CHARACTERS
from trace_store.contracts import ref_names
from trace_store.history import commit
from trace_store.importers import input_files
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.objects import codec
from trace_store.objects.codec import encode_blob
from trace_store.odb.pack import MAXIMUM_DESCRIPTORS, MAXIMUM_PACK_BYTES
from trace_store.odb.pack_writer import PackWriter
from trace_store.store import unsealed
from trace_store.writer import Writer

FULL = "TRACE_TEST_FULL_SIZES" in os.environ
MB = 1 << 20
START_BYTES = 100 * MB
"""What a command takes whatever it does: the interpreter, its packages, the ranks of a tokenizer."""
SAMPLE = Path(trace_store.__file__).parent / "samples" / "claude-code.jsonl"


def size(moderate: int, full: int) -> int:
    return full if FULL else moderate


def words(count_bytes: int) -> str:
    """Return text that says something new all the way, as long as asked for."""
    return Random(7).randbytes(count_bytes // 2 + 1).hex(" ", 5)[:count_bytes]


def line(text: str) -> str:
    return json.dumps({"role": "user", "content": text}) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an empty repository."""
    Store.init(str(tmp_path)).close()
    return tmp_path


def opened(folder: Path) -> Repo:
    store = Store.open(str(folder / ".trace"), disk=QuickDisk(), clock=FixedClock(step=1))
    return Repo(store, author="ada")


@pytest.mark.parametrize("line_bytes", [MB, size(6 * MB, 50 * MB)])
def test_a_long_line_is_committed(folder: Path, line_bytes: int) -> None:
    given = folder / "messages.jsonl"
    given.write_text(line("before") + line(words(line_bytes)) + line("after"))
    outcome = trace(folder, "commit", "-q", "--jsonl", stdin=given)
    assert outcome.peak < START_BYTES + 6 * line_bytes
    with opened(folder) as repo:
        assert [len(m.text) for m in repo.compile().messages] == [6, line_bytes, 5]


@pytest.mark.parametrize("line_bytes", [MB, size(6 * MB, 50 * MB)])
def test_a_long_line_is_imported(folder: Path, line_bytes: int) -> None:
    records = [json.loads(each) for each in SAMPLE.read_text().splitlines()]
    asked = next(r for r in records if isinstance(r.get("message", {}).get("content"), str))
    asked["message"]["content"] = words(line_bytes)
    given = folder / "session.jsonl"
    given.write_text("".join(json.dumps(record) + "\n" for record in records))
    outcome = trace(folder, "import", "-q", "session.jsonl")
    assert outcome.peak < START_BYTES + 14 * line_bytes
    restored = trace(folder, "export", "--native")
    assert restored.out == given.read_bytes()


def test_a_large_message(folder: Path) -> None:
    message_bytes = size(17 * MB, 200 * MB)
    bound = START_BYTES + 5 * message_bytes
    given = folder / "message.txt"
    given.write_text(words(message_bytes))
    assert trace(folder, "commit", "-F", "-", stdin=given).peak < bound
    compiled = trace(folder, "compile", "--format", "text")
    assert compiled.peak < bound
    assert given.read_bytes() in compiled.out
    assert trace(folder, "status").peak < bound
    assert trace(folder, "fsck").peak < bound


def test_a_large_file_is_kept_in_chunks(folder: Path) -> None:
    content_bytes = size(17 * MB, 200 * MB)
    given = folder / "content"
    given.write_text(words(content_bytes))
    stored = trace(folder, "hash-object", "-w", "--stdin", stdin=given)
    assert stored.peak < START_BYTES + 3 * content_bytes
    given_back = trace(folder, "cat-file", "-p", stored.out.decode().strip())
    assert given_back.peak < START_BYTES + 3 * content_bytes
    assert given_back.out == given.read_bytes()


def test_more_messages_than_one_commit_takes(folder: Path) -> None:
    given = folder / "messages.jsonl"
    given.write_text("".join(line(f"message {n}") for n in range(65_537)))
    refused = trace(folder, "commit", "-q", "--jsonl", stdin=given, code=2)
    assert "65,537 elements, over the limit of 65,536" in refused.err
    assert "several commits" in refused.err
    with opened(folder) as repo:
        assert repo.store.refs.head().oid is None


def test_the_page_names_the_limits_of_the_code() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for limit in (
        codec.MAXIMUM_ELEMENTS,
        codec.MAXIMUM_STRUCTURE_BYTES,
        codec.MAXIMUM_BLOB_BYTES,
        runtime.MAXIMUM_INPUT_BYTES,
        input_files.MAXIMUM_LINE_BYTES,
        MAXIMUM_PACK_BYTES,
        ref_names.MAXIMUM_NAME_BYTES,
        unsealed.MAXIMUM_JOURNAL_BYTES,
    ):
        assert f"| {limit:,}" in page
    assert f"{MAXIMUM_DESCRIPTORS} descriptors" in page
    assert f"parts of {PART_CHARACTERS >> 10} KiB" in page


APPENDS = """
from trace_store import Repo
with Repo.open_or_init(".", durability="fast") as repo:
    for number in range(int(sys.argv[1])):
        repo.append("user", f"message {number}")
"""


def test_many_tiny_commits_take_little_memory(tmp_path: Path) -> None:
    few, many = 500, size(4_000, 100_000)
    peaks = []
    for count in (few, many):
        (tmp_path / str(count)).mkdir()
        outcome = run(APPENDS, tmp_path / str(count), str(count))
        assert outcome.code == 0, outcome.err
        peaks.append(outcome.peak)
        counted = trace(tmp_path / str(count), "status")
        assert counted.peak < START_BYTES + 1024 * count
        for bytes_each in (4096, 1024):  # the first time a fold of the whole history, which is kept
            edited = trace(tmp_path / str(count), "edit", "HEAD~1.0", "other words", "-q")
            assert edited.peak < START_BYTES + bytes_each * count
    assert peaks[1] - peaks[0] < 64 * MB


@pytest.fixture
def many_branches(folder: Path) -> tuple[Path, int]:
    """A repository with many branches, all sealed."""
    count = size(400, 10_000)
    with opened(folder) as repo:
        first = repo.append("user", "one").oid
        add_branches(repo.store, [branch(n) for n in range(count)], first)
        seal(repo.store)
    return folder, count


def test_many_branches_are_listed(many_branches: tuple[Path, int]) -> None:
    folder, count = many_branches
    listed = trace(folder, "for-each-ref")
    assert listed.out.count(b"\n") == count + 1
    assert listed.peak < START_BYTES
    assert trace(folder, "status").peak < START_BYTES


def test_status_and_seal_take_the_same_with_10_and_with_10000_branches(tmp_path: Path) -> None:
    costs = []
    for count in (10, size(1_000, 10_000)):
        (tmp_path / str(count)).mkdir()
        Store.init(str(tmp_path / str(count))).close()
        with opened(tmp_path / str(count)) as repo:
            first = repo.append("user", "one").oid
            add_branches(repo.store, [branch(n) for n in range(count)], first)
            seal(repo.store)
            repo.append("user", "two")
            assert repo.status().branch_count == count + 1
        disk = QuickRecordingDisk()
        with Store.open(str(tmp_path / str(count) / ".trace"), disk=disk) as store:
            repo = Repo(store, author="ada")
            repo.append("user", "three")
            assert repo.status().branch_count == count + 1
            assert seal(store).refs == ("refs/heads/main",)
            assert seal(store).refs == ()
            costs.append((disk.touched, disk.read_bytes, disk.written_bytes))
    few, many = costs
    assert many[0] < few[0] + 50
    assert many[1] < few[1] + 64 * 1024
    assert many[2] < few[2] + 4 * 1024


def test_an_append_looks_at_no_other_branch(many_branches: tuple[Path, int]) -> None:
    folder, _ = many_branches
    disk = QuickRecordingDisk()
    with Store.open(str(folder / ".trace"), durability="fast", disk=disk) as store:
        commit.commit(Writer(store, author="ada").on(branch(2)), [Message("user", "two")])
    assert disk.touched < 60
    assert disk.read_bytes < 64 * 1024


def descriptors() -> int:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc to count descriptors")
    return len(os.listdir("/proc/self/fd"))


def many_packs(folder: Path, count: int) -> list[ObjectId]:
    """Leave packs of one object each, as processes do that are killed before they fold any; return the ids."""
    found: list[ObjectId] = []
    with Store.open(str(folder / ".trace"), disk=QuickDisk()) as store:
        for number in range(count):
            data = encode_blob(f"content {number}".encode())
            found.append(hash_object(data))
            writer = PackWriter(store.disk, store.layout, level=1)
            writer.add(found[-1], data)
            writer.finish()
    return found


def test_many_packs_are_read_with_few_descriptors_and_folded(folder: Path) -> None:
    count = size(150, 1_000)
    ids = many_packs(folder, count)
    disk = QuickRecordingDisk()
    with Store.open(str(folder / ".trace"), disk=disk, durability="fast") as store:
        before = descriptors()
        for oid in (*ids, *reversed(ids)):
            assert store.objects.read(oid)
        assert descriptors() - before <= MAXIMUM_DESCRIPTORS
        report = pack(store, level=1)
        assert (report.replaced, len(report.packs)) == (count, 1)
        for oid in ids:
            assert store.objects.read(oid)


def test_an_append_opens_no_pack(folder: Path) -> None:
    many_packs(folder, size(150, 1_000))
    disk = QuickRecordingDisk()
    with Store.open(str(folder / ".trace"), disk=disk, durability="fast") as store:
        for number in range(3):
            commit.commit(Writer(store, author="ada"), [Message("user", f"turn {number}")])
    assert disk.touched < 100
    assert disk.opened < 10
