"""Refs: names, resolution from files, published tips and journals, HEAD, reflogs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.support.histories import (
    MAIN,
    OTHER,
    append,
    codes,
    errors,
    main_line,
    move,
    new_store,
    reopen,
)
from tests.support.examples import examples
from trace_store.base.ident import FixedClock
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import RefEdit, Transaction
from trace_store.contracts.ref_names import check_ref_name, is_ref_name
from trace_store.disk.files import Disk
from trace_store.errors import FormatError, InvalidRefNameError, StorageError
from trace_store.journal.view import RefState
from trace_store.maintenance.seal import seal
from trace_store.objects.commit import Commit
from trace_store.refs.head import Head
from trace_store.refs.reflog import (
    ReflogEntry,
    append_log,
    encode_entry,
    examine_log,
    read_backwards,
)
from trace_store.refs.resolution import Lineage, resolve
from trace_store.store.store import Store
from trace_store.testing.disks import RecordingDisk

# A small history: 0 ← 1 ← 2, and 1 ← 3.
HISTORY = Store.memory().objects


def commit(number: int, *parents: ObjectId) -> ObjectId:
    return HISTORY.write(Commit(list(parents), "tester", number, []).encode())


ROOT = commit(0)
BASE = commit(1, ROOT)
LEFT, RIGHT = commit(2, BASE), commit(3, BASE)
OIDS = [ROOT, BASE, LEFT, RIGHT]
PAST = {ROOT: {ROOT}, BASE: {ROOT, BASE}, LEFT: {ROOT, BASE, LEFT}, RIGHT: {ROOT, BASE, RIGHT}}
LINEAGE = Lineage(HISTORY)


def fold(*values: ObjectId | None) -> RefState:
    made = RefState(values[-1])
    made.passed = set(values[:-1])
    return made


class TestDivergence:
    def test_it_is_not_remembered_of_a_history_with_a_gap(self, tmp_path: Path) -> None:
        """When the commit between two tips arrives, one becomes the other's ancestor."""
        source = new_store(tmp_path / "a")
        first, middle, last = (append(source, text) for text in "abc")
        store = new_store(tmp_path / "b")
        for tip in (first, last):
            store.objects.write(source.objects.read(tip))
            path = tmp_path / "b/.trace/refs/heads/main" / str(tip)
            path.parent.mkdir(exist_ok=True, parents=True)
            path.touch()
        assert set(store.refs.tips(MAIN)) == {first, last}
        store.objects.write(source.objects.read(middle))
        assert store.refs.tips(MAIN) == (last,)

    def test_an_append_to_a_diverged_branch_walks_no_history(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = new_store(tmp_path)
        append(store, "root")
        other = append(store, "other side", OTHER, parent=store.refs.read(MAIN))
        for number in range(5):
            append(store, f"{number}")
        seal(store)
        (tmp_path / ".trace/refs/heads/main" / str(other)).touch()
        seal(store)
        append(store, "known from here on")
        monkeypatch.setattr(
            "trace_store.commit_table.graph.maximal", lambda *_: pytest.fail("walked")
        )
        for number in range(3):
            tip = append(store, f"more {number}")
            assert store.refs.tips(MAIN) == (tip, other)
        monkeypatch.undo()
        with reopen(tmp_path) as again:
            tip = [append(again, f"elsewhere {number}") for number in range(3)][-1]
        monkeypatch.setattr(
            "trace_store.commit_table.graph.maximal", lambda *_: pytest.fail("walked")
        )
        assert store.refs.tips(MAIN) == (tip, other)

    def test_a_line_that_took_in_the_other_is_no_longer_apart(self, tmp_path: Path) -> None:
        """Neither after a merge, nor when a tip is followed by the other's child."""
        store = new_store(tmp_path)
        root = append(store, "root")
        other = append(store, "other side", OTHER, parent=root)
        append(store, "own")
        seal(store)
        (tmp_path / ".trace/refs/heads/main" / str(other)).touch()
        seal(store)
        own = append(store, "own again")
        assert store.refs.tips(MAIN) == (own, other)
        child = append(store, "child of the other", OTHER)
        (tmp_path / ".trace/refs/heads/main" / str(child)).touch()
        assert store.refs.tips(MAIN) == (own, child)
        merge = Commit([own, child], "tester", 1_700_000_000_000, []).encode()
        made = hash_object(merge)
        edit = RefEdit(MAIN, made, own)
        store.transact(lambda refs: Transaction([(made, merge)], [edit], "merge"))
        assert store.refs.tips(MAIN) == (made,)


class TestResolving:
    @pytest.mark.parametrize(
        ("files", "published", "moves", "tips"),
        [
            ([], [], None, ()),
            ([BASE], [BASE], None, (BASE,)),
            # The files equal the published tips: the journal wins.
            ([BASE], [BASE], fold(BASE, LEFT), (LEFT,)),
            ([LEFT], [LEFT], fold(LEFT, BASE), (BASE,)),
            ([BASE], [BASE], fold(BASE, None), ()),
            ([], [], fold(None, BASE), (BASE,)),
            # They differ without a move in the journal: git moved the ref, the file wins.
            ([RIGHT], [LEFT], None, (RIGHT,)),
            ([ROOT], [LEFT], None, (ROOT,)),
            ([], [LEFT], None, ()),
            ([LEFT], [], None, (LEFT,)),
            # Both moved: both are tips, this working copy's first.
            ([RIGHT], [BASE], fold(BASE, LEFT), (LEFT, RIGHT)),
            ([RIGHT, BASE], [BASE], fold(BASE, LEFT), (LEFT, RIGHT)),
            # An ancestor of another tip is not a tip.
            ([BASE, LEFT], [BASE], None, (LEFT,)),
            ([ROOT, LEFT, RIGHT], [LEFT], None, (LEFT, RIGHT)),
            ([LEFT], [ROOT], fold(ROOT, BASE), (LEFT,)),
            # Deleted here and moved there, or the reverse: the move wins.
            ([RIGHT], [BASE], fold(BASE, None), (RIGHT,)),
            ([], [BASE], fold(BASE, LEFT), (LEFT,)),
            # During a seal the files are ahead of the published tips.
            ([LEFT], [BASE], fold(BASE, LEFT), (LEFT,)),
            ([BASE, LEFT], [BASE], fold(BASE, LEFT), (LEFT,)),
            ([LEFT], [BASE], fold(BASE, LEFT, RIGHT), (RIGHT,)),
            # A reset after git brought the commits being reset.
            ([BASE, LEFT], [BASE], fold(LEFT, ROOT), (ROOT,)),
        ],
    )
    def test_what_a_branch_is(
        self,
        files: list[ObjectId],
        published: list[ObjectId],
        moves: RefState | None,
        tips: tuple[ObjectId, ...],
    ) -> None:
        for order in (files, files[::-1]):
            assert resolve(MAIN, order, published, moves, LINEAGE) == tips

    def test_other_refs_do_not_fast_forward(self) -> None:
        tips = resolve("refs/tags/v", [BASE, LEFT], [BASE], None, LINEAGE)
        assert set(tips) == {BASE, LEFT}
        assert tips[0] == BASE

    def test_without_own_tip_the_choice_is_the_same_everywhere(self) -> None:
        expected = resolve(MAIN, [LEFT, RIGHT], [], None, LINEAGE)
        assert resolve(MAIN, [RIGHT, LEFT], [], None, LINEAGE) == expected
        assert expected[0] == min(LEFT, RIGHT)

    def test_the_own_tip_follows_its_own_line(self) -> None:
        assert resolve(MAIN, [LEFT, RIGHT], [RIGHT], None, LINEAGE) == (RIGHT, LEFT)
        assert resolve(MAIN, [LEFT, RIGHT], [LEFT], None, LINEAGE) == (LEFT, RIGHT)

    @settings(max_examples=examples(300), deadline=None)
    @given(
        st.lists(st.sampled_from(OIDS), max_size=4),
        st.lists(st.sampled_from(OIDS), max_size=2, unique=True),
        st.none() | st.lists(st.none() | st.sampled_from(OIDS), min_size=2, max_size=4),
    )
    def test_nothing_is_hidden_and_nothing_invented(
        self,
        files: list[ObjectId],
        published: list[ObjectId],
        values: list[ObjectId | None] | None,
    ) -> None:
        moves = None if values is None else fold(*values)
        tips = resolve(MAIN, files, published, moves, LINEAGE)
        own = [] if moves is None or moves.value is None else [moves.value]
        assert set(tips) <= {*files, *own}
        assert len(set(tips)) == len(tips)
        given_up = set() if moves is None else moves.passed
        covering = [*tips, *(f for f in files if f in given_up)]
        for value in [*own, *(f for f in files if f not in given_up)]:
            assert any(value in PAST[tip] for tip in covering)


class TestNames:
    def test_good_names(self) -> None:
        for name in (
            "main",
            "a/b/c",
            "sessions/claude-code/0a1b",
            "v1.0",
            "Ünicode"[1:],
            "x_y+z=1,2;(3)",
        ):
            assert check_ref_name(f"refs/heads/{name}") == f"refs/heads/{name}"

    @pytest.mark.parametrize(
        "name",
        [
            "main",
            "refs/heads",
            "refs/heads/",
            "refs//x",
            "refs/heads/a//b",
            "refs/heads/../x",
            "refs/heads/a..b",
            "refs/heads/.a",
            "refs/heads/a.",
            "refs/heads/a.lock",
            "refs/heads/A.LOCK",
            "refs/heads/-a",
            "refs/heads/a b",
            "refs/heads/a\nb",
            "refs/heads/a\x7f",
            "refs/heads/ä",
            "refs/heads/a:b",
            "refs/heads/a\\b",
            "refs/heads/a*",
            "refs/heads/a?",
            "refs/heads/<a>",
            "refs/heads/a|b",
            'refs/heads/"',
            "refs/heads/a~1",
            "refs/heads/a^",
            "refs/heads/a@{1}",
            "refs/heads/@",
            "refs/heads/CON",
            "refs/heads/nul.txt",
            "refs/heads/com1/x",
            "refs/heads/LPT9",
            "refs/heads/" + "a" * 64,
            "refs/heads/" + "A" * 64 + "/x",
            "refs/heads/" + "y" * 101,
            "refs/heads/" + "y/" * 250 + "z",
            "/etc/passwd",
            "refs/heads/../../config",
            "",
        ],
    )
    def test_bad_names(self, name: str) -> None:
        assert not is_ref_name(name)
        with pytest.raises(InvalidRefNameError):
            check_ref_name(name)

    @settings(max_examples=examples(300))
    @given(st.text(max_size=30))
    def test_an_accepted_name_stays_below_refs(self, text: str) -> None:
        name = f"refs/heads/{text}"
        if is_ref_name(name):
            assert os.path.normpath(name) == name
            assert name.isascii()
            assert name.isprintable()


class TestHead:
    def test_an_unreadable_head_is_an_error_until_it_is_set(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        for content in (
            b"",
            b"ref: \n",
            b"ref: refs/heads/../x\n",
            b"\xff\xfe",
            b"12345\n",
            b"<<<<<<< ours\n",
        ):
            (tmp_path / ".trace" / "HEAD").write_bytes(content)
            with pytest.raises(FormatError):
                store.refs.head()
            assert "head-unreadable" in codes(store)
            store.refs.set_head(MAIN)
            assert main_line(store) == ["one"]
            assert store.refs.head().ref == MAIN

    def test_line_ends_do_not_matter(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        (tmp_path / ".trace" / "HEAD").write_bytes(b"ref: refs/heads/other\r\n")
        assert store.refs.head().ref == OTHER

    def test_the_default_branch_is_configured(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        store.config.set("default_branch", "trunk")
        assert reopen(tmp_path).refs.head().ref == "refs/heads/trunk"


class TestReflog:
    def test_it_is_the_same_before_and_after_a_seal(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        for number in range(3):
            append(store, str(number))
        move(store, MAIN, store.refs.reflog(MAIN)[-1].new)
        before = {name: store.refs.reflog(name) for name in (MAIN, "HEAD")}
        seal(store)
        assert {name: reopen(tmp_path).refs.reflog(name) for name in (MAIN, "HEAD")} == before
        append(store, "more")
        assert [e.message for e in store.refs.reflog(MAIN)][:2] == ["append more", "move"]

    def test_head_follows_the_branch_it_is_attached_to(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "on main")
        append(store, "elsewhere", OTHER)
        store.refs.set_head(OTHER, message="switch")
        append(store, "on other", OTHER)
        append(store, "not seen")
        seal(store)
        messages = [entry.message for entry in store.refs.reflog("HEAD")]
        assert messages == ["append on other", "switch", "append on main"]

    def test_texts_are_escaped(self, tmp_path: Path) -> None:
        path = str(tmp_path / "log")
        entries = [
            ReflogEntry(None, OIDS[0], 1, "A B <a@b>", "plain"),
            ReflogEntry(OIDS[0], None, -5, "tab\there", "line\nend\r \\n \x1b[31m \\\\x0a ünï"),
            ReflogEntry(OIDS[0], OIDS[1], 2**50, "", ""),
        ]
        append_log(Disk(), os.path.dirname(path), path, entries)
        assert Path(path).read_bytes().count(b"\n") == 3
        assert b"\x1b" not in Path(path).read_bytes()
        assert examine_log(Disk(), path) == (entries, 0)

    def test_repeating_an_interrupted_append_adds_what_is_missing(self, tmp_path: Path) -> None:
        entries = [ReflogEntry(OIDS[0], OIDS[1], n, "a", str(n)) for n in range(4)]
        data = b"".join(map(encode_entry, entries))
        for length in range(len(data) + 1):
            path = tmp_path / str(length)
            path.write_bytes(data[:length])
            append_log(Disk(), str(path.parent), str(path), entries)
            assert list(read_backwards(Disk(), str(path))) == [*reversed(entries)]

    def test_a_damaged_line_hides_no_other(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        seal(store)
        log = tmp_path / ".trace" / "logs" / "refs" / "heads" / "main.log"
        log.write_bytes(bytes(40) + b"\n\xff\xfe junk\n" + log.read_bytes())
        assert [entry.message for entry in reopen(tmp_path).refs.reflog(MAIN)] == ["append one"]


class TestTipFiles:
    def test_a_link_is_not_followed_to_write(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        victim = outside / ("ab" * 32)
        victim.touch()
        folder = tmp_path / "project"
        folder.mkdir()
        store = new_store(folder)
        (folder / ".trace" / "refs" / "heads").symlink_to(tmp_path)
        append(store, "one", "refs/heads/outside")
        with pytest.raises(StorageError):
            seal(store)
        assert os.listdir(outside) == [victim.name]

    def test_strays_are_reported_and_hide_nothing(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        seal(store)
        refs = tmp_path / ".trace" / "refs"
        tip = os.listdir(refs / "heads" / "main")[0]
        (refs / "heads" / "main" / tip).write_text("<<<<<<< ours\n")
        (refs / "heads" / "main" / "README").touch()
        (refs / "heads" / "bad name").mkdir()
        (refs / "heads" / "bad name" / tip).touch()
        assert main_line(reopen(tmp_path)) == ["one"]
        assert [name for name, _ in store.refs.iterate()] == [MAIN]
        assert codes(store) == {"ref-stray-file"}
        append(store, "two")
        seal(store)
        assert main_line(reopen(tmp_path)) == ["one", "two"]

    def test_a_name_may_be_a_ref_and_a_folder_of_refs(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        for name in ("refs/heads/a", "refs/heads/a/b", "refs/heads/a/b/c"):
            append(store, name, name)
        seal(store)
        move(store, "refs/heads/a/b", None)
        seal(store)
        assert [name for name, _ in reopen(tmp_path).refs.iterate()] == [
            "refs/heads/a",
            "refs/heads/a/b/c",
        ]
        assert errors(store) == []

    def test_what_is_remembered_of_a_folder_ends_with_its_next_change(self, tmp_path: Path) -> None:
        """The folder and HEAD are not read again until git or a user changes them."""
        disk = RecordingDisk()
        store = new_store(tmp_path, disk=disk)
        root = append(store, "root")
        other = append(store, "other side", OTHER, parent=root)
        seal(store)
        folder, head = tmp_path / ".trace/refs/heads/main", tmp_path / ".trace/HEAD"
        store.refs.set_head(MAIN)
        for path in (folder, head):
            os.utime(path, ns=(1_600_000_000_000_000_001,) * 2)
        own = append(store, "own")
        assert store.refs.head() == Head(MAIN, own)
        disk.reset()
        own = append(store, "own again")
        assert disk.opened == 0
        assert store.refs.tips(MAIN) == (own,)
        (folder / str(other)).touch()
        assert store.refs.tips(MAIN) == (own, other)
        head.write_text(f"ref: {OTHER}\n")
        assert store.refs.head() == Head(OTHER, other)

    def test_a_lost_published_file_only_forgets(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        seal(store)
        append(store, "two")
        seal(store)
        published = tmp_path / ".trace" / "local" / "published"
        for content in (None, b"", b"sealed x\n", b"\xff", b"sealed 1\nshort refs/heads/main\n"):
            if content is None:
                published.unlink()
            else:
                published.write_bytes(content)
            again = reopen(tmp_path)
            assert main_line(again) == ["one", "two"]
            assert again.refs.diverged() == []
            assert errors(again) == []
            seal(again)
            assert main_line(reopen(tmp_path)) == ["one", "two"]


def test_a_long_log_is_not_read_from_its_beginning(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    append_log(
        Disk(),
        os.path.dirname(path),
        path,
        [ReflogEntry(OIDS[0], OIDS[1], n, "a", str(n)) for n in range(5000)],
    )
    disk = RecordingDisk()
    recent = [ReflogEntry(OIDS[0], OIDS[1], n, "a", str(n)) for n in range(4990, 5010)]
    append_log(disk, os.path.dirname(path), path, recent)
    assert disk.read_bytes < 50_000
    assert [entry.time for entry in examine_log(Disk(), path)[0]] == list(range(5010))


def test_the_log_of_head_keeps_its_order_within_a_millisecond(tmp_path: Path) -> None:
    store = Store.init(str(tmp_path), durability="fast", clock=FixedClock(step=0))
    expected: list[str] = []
    for number in range(6):
        append(store, f"first {number}")
        store.refs.set_head(OTHER, message=f"leave {number}")
        append(store, f"other {number}", OTHER)
        if number == 3:
            seal(store)
        store.refs.set_head(MAIN, message=f"return {number}")
        expected += [
            f"append first {number}",
            f"leave {number}",
            f"append other {number}",
            f"return {number}",
        ]
        assert [entry.message for entry in store.refs.reflog("HEAD")][::-1] == expected
    seal(store)
    assert [entry.message for entry in reopen(tmp_path).refs.reflog("HEAD")][::-1] == expected
