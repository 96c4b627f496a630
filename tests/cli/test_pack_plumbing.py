"""Plumbing for packs: pipes, transfer to other repositories, and refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Run, Trace
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.disk.files import Disk
from trace_store.disk.layout import Layout
from trace_store.objects.codec import encode, encode_blob
from trace_store.objects.commit import Tag
from trace_store.odb.pack_writer import PackWriter
from trace_store.store.store import Store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def filled(ok: Run) -> Run:
    """A repository with a branch of two commits, its objects in a pack."""
    ok("commit", "--user", "What is 6 times 7?")
    ok("commit", "--assistant", "42.")
    return ok


@pytest.fixture
def other(filled: Run, tmp_path: Path) -> Path:
    (tmp_path / "other").mkdir()
    filled("-C", "other", "init", "-q")
    return tmp_path / "other"


def packs(folder: Path) -> list[Path]:
    return sorted((folder / ".trace" / "objects" / "pack").glob("*.pack"))


def test_a_branch_goes_to_another_repository(filled: Run, other: Path) -> None:
    listed = filled("ls-objects", "main")
    pack = filled("pack-objects", "--stdout", stdin=listed.out)
    assert pack.out == filled("pack-objects", "--revs", "--stdout", stdin=b"main\n").out
    for _ in range(2):
        (name,) = filled("-C", "other", "index-pack", "--stdin", stdin=pack.out).lines
        assert [path.stem for path in packs(other)] == [name]
    tip = filled("rev-parse", "main").text.strip()
    filled("-C", "other", "update-ref", "refs/heads/main", tip)
    assert filled("-C", "other", "ls-objects", "main").out == listed.out
    assert sorted(filled("-C", "other", "ls-objects").lines) == sorted(listed.lines)
    assert not filled("-C", "other", "fsck").out
    only = filled("ls-objects", "main~1..main")
    assert listed.out.endswith(only.out)
    more = filled("pack-objects", "--revs", "--stdout", stdin=b"main\n^main~1\n")
    told = filled("unpack-objects", "-n", stdin=more.out).lines
    assert sorted(told) == sorted(line.split()[0] for line in only.lines)


def test_objects_of_a_pack_one_by_one(filled: Run, other: Path) -> None:
    listed = filled("ls-objects", "main")
    pack = filled("pack-objects", "--stdout", stdin=listed.out).out
    ids = [line.split()[0] for line in listed.lines]
    assert sorted(filled("-C", "other", "unpack-objects", "-n", stdin=pack).lines) == sorted(ids)
    assert not filled("-C", "other", "ls-objects").out
    assert filled("-C", "other", "unpack-objects", "-q", stdin=pack + pack).out == b""
    assert filled("-C", "other", "count-objects", "-v").lines[0] == f"loose: {len(ids)}"
    assert sorted(filled("-C", "other", "ls-objects").lines) == sorted(listed.lines)
    assert sorted(filled("-C", "other", "unpack-objects", stdin=pack).lines) == sorted(ids)


def test_a_pack_that_is_damaged_is_taken_by_nobody(
    filled: Run, repository: Trace, other: Path
) -> None:
    pack = filled("pack-objects", "--revs", "--stdout", stdin=b"main\n").out
    changed = bytearray(pack)
    changed[len(pack) // 2] ^= 1
    wrong = [pack[:-1], bytes(changed), pack + b"x", pack + bytes(changed), b"x" * 100]
    for data in wrong:
        for words in (["index-pack", "--stdin"], ["unpack-objects", "-n"]):
            outcome = repository("-C", "other", *words, stdin=data)
            assert outcome.code == 12
            assert outcome.err.splitlines()[1] == "hint: copy or send the file again"
        assert repository("-C", "other", "index-pack", "--stdin", stdin=data).out == b""
    assert packs(other) == []
    assert not filled("-C", "other", "ls-objects").out
    assert not list((other / ".trace" / "tmp").iterdir())


def test_objects_that_are_none_are_refused(filled: Run, repository: Trace, tmp_path: Path) -> None:
    writer = PackWriter(Disk(), Layout(str(tmp_path / "made")))
    for data in (encode_blob(b"x"), b"\x92\xa4list\x82\xa1b\x01\xa1a\x02"):
        writer.add(hash_object(data), data)
    (name,) = writer.finish()
    path = tmp_path / "made" / "objects" / "pack" / f"{name}.pack"
    for words in (["index-pack", "--stdin"], ["unpack-objects"], ["index-pack", str(path)]):
        outcome = repository(*words, stdin=path.read_bytes())
        assert outcome.code == 12
        assert "not in canonical form" in outcome.err
        assert not outcome.out


class TestVerifying:
    def test_packs_of_the_repository(self, filled: Run, tmp_path: Path) -> None:
        assert filled("verify-pack").out == b""
        (path,) = packs(tmp_path)
        lines = filled("verify-pack", "-v").lines
        assert lines[-1] == f"{path} ok"
        listed = [line.rsplit(" ", 2)[0] for line in lines[:4]]
        assert sorted(listed) == sorted(filled("ls-objects", "main").lines)
        name = path.stem
        assert filled("verify-pack", name, "-v").lines == lines
        index = str(path.with_suffix(".idx"))
        assert filled("verify-pack", "-v", index).lines == lines
        frames = [line.removeprefix("frame ") for line in lines if line.startswith("frame ")]
        assert filled("show-index", "--frames", index).lines == frames
        rows = [f"{i} {f} {o}" for i, _, _, f, o in map(str.split, lines[:4])]
        assert filled("show-index", index).lines == sorted(rows)

    def test_everything_wrong_is_told(self, filled: Run, repository: Trace, tmp_path: Path) -> None:
        (path,) = packs(tmp_path)
        data = path.read_bytes()
        whole = tmp_path / "whole.pack"
        whole.write_bytes(data)
        changed = bytearray(data)
        changed[60] ^= 1
        path.write_bytes(changed)
        outcome = repository("verify-pack", str(path), str(whole))
        assert outcome.code == 12
        assert outcome.err.startswith("trace: error: damaged packs: 1 of 2\n")
        assert all(line.startswith(f"{path} damaged ") for line in outcome.lines)
        assert len(outcome.lines) > 2
        assert outcome.lines[-1].endswith("its hash differs from the hash in its name")
        path.write_bytes(data[:50])
        assert "it has 50 bytes" in repository("verify-pack").text

    def test_indexes(self, filled: Run, repository: Trace, tmp_path: Path) -> None:
        (path,) = packs(tmp_path)
        index = path.with_suffix(".idx")
        sound = index.read_bytes()
        filled("commit", "--user", "more", "--no-seal")
        filled("ls-objects", "--stdin", stdin=b"main\n")
        extra = filled("pack-objects", "extra", stdin=filled("ls-objects", "main").out)
        changed = bytearray(sound)
        changed[70] ^= 1
        index.write_bytes(changed)
        assert repository("verify-pack").lines == [
            f"{path} damaged the pack index is too short, or its checksum is wrong"
        ]
        index.write_bytes((tmp_path / f"extra-{extra.text.strip()}.idx").read_bytes())
        assert "its index does not match it" in repository("verify-pack").text
        index.unlink()
        assert filled("verify-pack").out == b""
        assert filled("index-pack", str(path)).text.strip() == path.stem
        assert index.read_bytes() == sound

    def test_a_flood_is_bounded(self, repository: Trace, tmp_path: Path) -> None:
        writer = PackWriter(Disk(), Layout(str(tmp_path / "made")))
        for number in range(300):
            data = b"\xcd" + number.to_bytes(2, "big")
            writer.add(hash_object(data), data)
        (name,) = writer.finish()
        path = tmp_path / "made" / "objects" / "pack" / f"{name}.pack"
        outcome = repository("verify-pack", str(path))
        assert (outcome.code, len(outcome.lines)) == (12, 100)


class TestListing:
    def test_what_is_missing(self, ok: Run, repository: Trace, tmp_path: Path) -> None:
        absent = ObjectId(bytes(range(32)))
        with Store.open(str(tmp_path / ".trace")) as store:
            named = store.objects.write(encode(["list", {"items": [absent]}]))
            edits = [RefEdit("refs/tags/x", named, ANY)]
            store.transact(lambda refs: Transaction([], edits, "test"))
        tips = tmp_path / ".trace/refs/tags/y"  # as git leaves a ref without its objects
        tips.mkdir(parents=True)
        (tips / str(absent)).touch()
        outcome = repository("ls-objects", "x")
        assert outcome.code == 4
        assert f"no object {absent}, which {named} links to" in outcome.err
        listed = ok("ls-objects", "--all", "--missing").lines
        assert sorted(line.split()[1:] for line in listed) == [["list", "48"], ["missing", "-"]]
        assert ok("ls-objects", "x", "--missing", "--kind", "missing").lines == [
            f"{absent} missing -"
        ]
        assert repository("pack-objects", "--revs", "out", stdin=b"x\n").code == 4
        assert not list(tmp_path.glob("out*"))
        assert not list(tmp_path.glob("pack-*"))

    def test_a_tag_leads_to_its_commit(self, filled: Run, tmp_path: Path) -> None:
        tip = ObjectId.parse(filled("rev-parse", "main").text.strip())
        with Store.open(str(tmp_path / ".trace")) as store:
            tag = store.objects.write(Tag(tip, "v1", "ada", 1).encode())
            edits = [RefEdit("refs/tags/v1", tag, ANY), RefEdit("refs/heads/main", None, ANY)]
            store.transact(lambda refs: Transaction([], edits, "test"))
        assert filled("rev-list", "--all", "--count").text == "2\n"
        assert filled("ls-objects", "v1").lines[-1].split()[:2] == [str(tag), "tag"]
        assert len(filled("ls-objects", "v1").lines) == 5

    def test_json_lines(self, ok: Run) -> None:
        odd = [b"text", b"\xff\x00", "\ud800".encode("utf-8", "surrogatepass"), "ü\u202e".encode()]
        ids = [ok("hash-object", "-w", "--stdin", stdin=each).text for each in odd]
        lines = ok("cat-file", "--batch", "--json", stdin="".join(ids).encode()).lines
        found = [json.loads(line) for line in lines]
        assert [each["id"] + "\n" for each in found] == ids
        assert [each.get("text") for each in found] == ["text", None, "\ud800", "ü\u202e"]
        assert found[1]["base64"] == "/wA="
        shown = ok("cat-file", "--batch", "--json", stdin="".join(ids).encode(), terminal=True)
        assert shown.out.isascii()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no broken pipes on Windows")
@pytest.mark.parametrize(
    "words",
    [
        ["ls-objects"],
        ["ls-objects", "--all"],
        ["pack-objects", "--revs", "--stdout"],
        ["verify-pack", "-v"],
        ["bundle", "create", "-", "--all"],
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_a_reader_that_stops_is_no_error(filled: Run, tmp_path: Path, words: list[str]) -> None:
    noise = os.urandom(1 << 20)
    oid = filled("hash-object", "-w", "--stdin", stdin=noise).text.strip()
    filled("update-ref", "refs/tags/noise", oid)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "trace_cli", *words],
        input=b"main\n" + oid.encode() + b"\n",
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}", "PATH": os.environ["PATH"]},
    )
    os.close(writing)
    assert done.returncode == 141
    assert not done.stderr
