"""Bundles: equal hashes on the other side, whatever is in them (trap C40); again, and bit by bit."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bundles.support.graphs import MAIN, Growing, all_refs, everything, files, store_in
from tests.store.support.histories import errors
from tests.support.examples import examples
from tests.support.subjects import bundles
from trace_store import Repo
from trace_store.base.oid import ObjectId, digest, hash_object
from trace_store.bundles.ingest import (
    BEHIND,
    CREATED,
    DIVERGED,
    FORWARDED,
    KEPT,
    UNCHANGED,
)
from trace_store.errors import (
    AlreadyExistsError,
    AmbiguousRevisionError,
    InvalidInputError,
    InvalidRefNameError,
    ObjectNotFoundError,
    RefNotFoundError,
    StateError,
    UnbornBranchError,
)
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode, encode_blob
from trace_store.objects.commit import Tag
from trace_store.odb.reachable import reachable
from trace_store.store.store import Store


def bundle(store: Store, *words: str, **options: object) -> bytes:
    out = io.BytesIO()
    bundles(store).create(out.write, *words, **options)  # type: ignore[arg-type]
    return out.getvalue()


def take(store: Store, data: bytes, *, prefix: str = "") -> dict[str, str]:
    report = bundles(store).import_(io.BytesIO(data).read, prefix=prefix)
    return {each.name: each.outcome for each in report.refs}


@settings(max_examples=examples(25))
@given(st.integers(0, 2**32), st.integers(1, 25))
def test_c40_everything_is_the_same_on_the_other_side(seed: int, steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = Growing(store_in(Path(folder) / "here"), seed).grow(steps).store
        data = bundle(here, everything=True, trash=True)
        there = store_in(Path(folder) / "there")
        assert set(take(there, data).values()) == {CREATED}
        assert all_refs(there) == all_refs(here)
        starts = [tip for tips in all_refs(here).values() for tip in tips]
        reached = dict(reachable(here.objects.read, starts))
        assert everything(there) == reached
        assert errors(there) == errors(here) == []
        before = files(Path(folder) / "there")
        assert set(take(there, data).values()) == {UNCHANGED}
        assert files(Path(folder) / "there") == before
        there.refs.set_head(here.refs.head().ref or MAIN)
        assert bundle(there, everything=True, trash=True) == data
        memory = Store.memory()
        assert set(take(memory, data).values()) == {CREATED}
        assert everything(memory) == reached
        memory.refs.set_head(here.refs.head().ref or MAIN)
        assert bundle(memory, everything=True, trash=True) == data


@settings(max_examples=examples(25))
@given(st.integers(0, 2**32), st.integers(1, 15), st.integers(0, 10), st.booleans())
def test_what_is_new_is_enough_for_who_has_the_rest(
    seed: int, before: int, after: int, folded: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        growing = Growing(store_in(Path(folder) / "here"), seed).grow(before)
        here = growing.store
        there = store_in(Path(folder) / "there")
        take(there, bundle(here, everything=True, trash=True))
        if folded:
            there.objects.write(encode_blob(b"alone"))
            pack(there)
        had = set(everything(there))
        tips = [tip for tip in growing.commits if there.objects.contains(tip)]
        since = [str(growing.random.choice(tips))] if tips else []
        growing.grow(after)
        data = bundle(here, everything=True, trash=True, since=since)
        report = bundles(there).verify(io.BytesIO(data).read)
        assert set(report.prerequisites) <= had
        outcomes = take(there, data)
        assert DIVERGED not in outcomes.values()
        branches = {n: tips for n, tips in all_refs(here).items() if n.startswith("refs/heads/")}
        assert {n: all_refs(there)[n] for n in branches} == branches
        starts = [tip for tips in all_refs(here).values() for tip in tips]
        for oid, content in reachable(here.objects.read, starts):
            assert there.objects.read(oid) == content
        assert errors(there) == []


def test_since_leaves_out_what_the_receiver_has(tmp_path: Path) -> None:
    growing = Growing(store_in(tmp_path / "here"), 1)
    one = growing.commit([])
    two = growing.commit([one])
    three = growing.commit([two])
    growing.move(MAIN, three)
    data = bundle(growing.store, "main", since=[str(two)])
    report = bundles().verify(io.BytesIO(data).read, alone=True)
    assert report.prerequisites == (two,)
    ranged = bundle(growing.store, f"{two}..main")
    assert ranged == data == bundle(growing.store, "main", f"^{two}")
    with pytest.raises(ObjectNotFoundError) as caught:
        bundles(store_in(tmp_path / "there")).import_(io.BytesIO(data).read)
    assert caught.value.missing == (two,)
    nothing = bundles().verify(
        io.BytesIO(bundle(growing.store, "main", since=["main"])).read, alone=True
    )
    assert (nothing.object_count, nothing.prerequisites) == (0, (three,))


def test_only_what_the_prerequisites_lead_to_is_left_out(tmp_path: Path) -> None:
    """Another line of history may hold content that the receiver, who has the fork alone, has not."""
    here = Growing(store_in(tmp_path / "here"), 1)
    fork = here.commit([])
    shared = encode_blob(b"said on both lines")
    here.put(shared)

    def saying(parent: ObjectId, time: int) -> ObjectId:
        fields = {
            "author": "ada",
            "meta": {"content": hash_object(shared)},
            "ops": [],
            "parents": [parent],
            "time": time,
        }
        return here.put(encode(["commit", fields]))

    here.move(MAIN, saying(fork, 1))
    here.move("refs/heads/side", saying(fork, 2))
    there = Growing(store_in(tmp_path / "there"), 1)
    assert there.commit([]) == fork
    data = bundle(here.store, "main", since=["side"])
    assert bundles().verify(io.BytesIO(data).read, alone=True).prerequisites == (fork,)
    assert take(there.store, data) == {MAIN: CREATED}
    assert there.store.objects.read(hash_object(shared)) == shared
    assert errors(there.store) == []


def test_branches_go_forward_and_never_back(tmp_path: Path) -> None:
    here = Growing(store_in(tmp_path / "here"), 1)
    first = here.commit([])
    here.move(MAIN, first)
    old = bundle(here.store)
    second = here.commit([first])
    here.move(MAIN, second)
    new = bundle(here.store)
    there = store_in(tmp_path / "there")
    assert take(there, old) == {MAIN: CREATED}
    assert take(there, new) == {MAIN: FORWARDED}
    assert there.refs.read(MAIN) == second
    assert take(there, old) == {MAIN: BEHIND}
    assert there.refs.read(MAIN) == second
    assert [entry.message for entry in there.refs.reflog(MAIN)] == ["bundle import"] * 2


def test_a_branch_that_both_sides_moved_has_two_tips(tmp_path: Path) -> None:
    here = Growing(store_in(tmp_path / "here"), 1, "ada")
    base = here.commit([])
    here.move(MAIN, base)
    there = Growing(store_in(tmp_path / "there"), 2, "bob")
    take(there.store, bundle(here.store))
    theirs, ours = here.commit([base]), there.commit([base])
    here.move(MAIN, theirs)
    there.move(MAIN, ours)
    data = bundle(here.store)
    assert take(there.store, data) == {MAIN: DIVERGED}
    assert there.store.refs.tips(MAIN) == (ours, theirs)
    assert there.store.refs.moved_by_git() == []
    assert take(there.store, data) == {MAIN: UNCHANGED}
    further = here.commit([theirs])
    here.move(MAIN, further)
    assert take(there.store, bundle(here.store)) == {MAIN: DIVERGED}
    assert there.store.refs.tips(MAIN) == (ours, further)
    back = bundle(there.store)
    assert take(here.store, back) == {MAIN: DIVERGED}
    assert here.store.refs.tips(MAIN) == (further, ours)
    joined = there.commit([ours, further])
    there.move(MAIN, joined)
    seal(there.store)
    assert take(here.store, bundle(there.store)) == {MAIN: FORWARDED}
    assert here.store.refs.tips(MAIN) == (joined,)
    assert errors(here.store) == errors(there.store) == []


def test_a_diverged_branch_arrives_with_all_its_tips(tmp_path: Path) -> None:
    here = Growing(store_in(tmp_path / "here"), 1)
    one, two = here.commit([]), here.commit([])
    here.move(MAIN, one)
    seal(here.store)
    here.store.refs.files.add(MAIN, two)
    seal(here.store)
    there = store_in(tmp_path / "there")
    data = bundle(here.store)
    assert take(there, data) == {MAIN: CREATED}
    assert there.refs.tips(MAIN) == here.store.refs.tips(MAIN) == (one, two)
    assert take(there, data) == {MAIN: UNCHANGED}
    memory = Store.memory()
    assert take(memory, data) == {MAIN: CREATED}
    assert memory.refs.tips(MAIN) == (one, two)


def test_what_is_no_branch_never_moves(tmp_path: Path) -> None:
    here = Growing(store_in(tmp_path / "here"), 1)
    here.move(MAIN, here.commit([]))
    here.move("refs/tags/v1", here.blob())
    there = store_in(tmp_path / "there")
    take(there, bundle(here.store, everything=True))
    before = there.refs.read("refs/tags/v1")
    here.move("refs/tags/v1", here.put(Tag(here.commits[0], "v1", "ada", 2).encode()))
    data = bundle(here.store, everything=True)
    assert take(there, data) == {MAIN: UNCHANGED, "refs/tags/v1": KEPT}
    assert there.refs.read("refs/tags/v1") == before
    assert take(there, data, prefix="ada") == {
        "refs/heads/ada/main": CREATED,
        "refs/tags/ada/v1": CREATED,
    }
    assert there.refs.read("refs/tags/ada/v1") == here.store.refs.read("refs/tags/v1")
    with pytest.raises(InvalidRefNameError):
        take(there, data, prefix="a b")


def test_a_trajectory_that_two_continued_has_the_events_of_both() -> None:
    here, there = Repo.memory(), Repo.memory()
    here.append("user", "Start.")
    here.trajectories.start("Sign in", agent="lead")
    first = copied(here, there)
    assert set(first.values()) == {CREATED}
    here.trajectories.record("finding", "Clocks differ", agent="lead")
    assert FORWARDED in copied(here, there).values()
    here.trajectories.record("finding", "Tokens expire", agent="lead")
    there.trajectories.record("finding", "Time zones differ", agent="bo")
    assert DIVERGED in copied(here, there).values()
    texts = [event.content for event in there.trajectories.read().events]
    assert {"Clocks differ", "Tokens expire", "Time zones differ"} <= set(texts)
    assert errors(there.store) == []


def copied(here: Repo, there: Repo) -> dict[str, str]:
    out = io.BytesIO()
    here.bundles.create(out.write, everything=True)
    return take(there.store, out.getvalue())


def test_head_of_a_new_repository_goes_to_the_bundles(tmp_path: Path) -> None:
    here = Growing(store_in(tmp_path / "here"), 1)
    for name in (MAIN, "refs/heads/side", "refs/heads/a"):
        here.move(name, here.commit([]))
    here.store.refs.set_head("refs/heads/side")
    data = bundle(here.store, everything=True)
    assert bundles().list(io.BytesIO(data).read).head == "refs/heads/side"

    def head_after(name: str, content: bytes, prefix: str = "") -> str | None:
        store = store_in(tmp_path / name)
        take(store, content, prefix=prefix)
        return store.refs.head().ref

    assert head_after("whole", data) == "refs/heads/side"
    assert head_after("others", bundle(here.store, "a", "main")) == MAIN
    assert head_after("one", bundle(here.store, "a")) == "refs/heads/a"
    assert head_after("beside", data, prefix="ada") == MAIN
    busy = Growing(store_in(tmp_path / "busy"), 2, "bob")
    busy.move(MAIN, busy.commit([]))
    take(busy.store, data)
    assert busy.store.refs.head().ref == MAIN


class TestChoosing:
    @pytest.fixture
    def growing(self, tmp_path: Path) -> Growing:
        made = Growing(store_in(tmp_path), 1)
        self.blob = made.blob()
        for name in (
            "refs/heads/main",
            "refs/heads/work/a",
            "refs/heads/work/b",
            "refs/heads/sessions/tool/ab12",
            "refs/heads/sessions/tool/ab12/agents/1",
            "refs/heads/sessions/tool/ab99",
            "refs/heads/sessions/other/cd34",
            "refs/tags/v1",
            "refs/trash/main/1",
        ):
            made.move(name, made.commit([]))
        made.move("refs/transcripts/tool/ab12/ff00", made.structure())
        return made

    def names(self, growing: Growing, *words: str, **options: bool) -> list[str]:
        header = bundles().list(io.BytesIO(bundle(growing.store, *words, **options)).read)
        return [ref.name.removeprefix("refs/") for ref in header.refs]

    def test_words(self, growing: Growing) -> None:
        session = ["heads/sessions/tool/ab12", "heads/sessions/tool/ab12/agents/1"]
        kept = "transcripts/tool/ab12/ff00"
        assert self.names(growing) == self.names(growing, "HEAD") == ["heads/main"]
        assert self.names(growing, "work") == ["heads/work/a", "heads/work/b"]
        assert self.names(growing, "v1", "work/a") == ["heads/work/a", "tags/v1"]
        assert self.names(growing, "refs/tags") == ["tags/v1"]
        assert self.names(growing, "sessions/tool/ab12") == [*session, kept]
        assert self.names(growing, "ab12") == self.names(growing, "tool/ab12") == [*session, kept]
        assert self.names(growing, "tool/") == [*session, "heads/sessions/tool/ab99", kept]
        assert self.names(growing, "refs/trash/main/1") == ["trash/main/1"]
        every = self.names(growing, everything=True)
        assert len(every) == 9
        assert self.names(growing, everything=True, trash=True) == [*every, "trash/main/1"]

    def test_what_leads_to_no_ref(self, growing: Growing) -> None:
        with pytest.raises(RefNotFoundError):
            self.names(growing, "nothing")
        with pytest.raises(AmbiguousRevisionError) as caught:
            self.names(growing, "ab")
        assert caught.value.candidates == ["tool/ab12", "tool/ab99"]
        for word in (str(self.blob), "main~0", "a...main"):
            with pytest.raises(InvalidInputError):
                self.names(growing, word)
        with pytest.raises(StateError):
            self.names(growing, "^main")
        growing.store.refs.set_head("refs/heads/unborn")
        with pytest.raises(UnbornBranchError):
            self.names(growing)
        growing.store.refs.set_head(growing.commits[0])
        with pytest.raises(StateError):
            self.names(growing)
        with pytest.raises(StateError):
            self.names(Growing(Store.memory(), 1), everything=True)


class TestFiles:
    def test_a_file_is_whole_or_not_there(self, tmp_path: Path) -> None:
        growing = Growing(store_in(tmp_path / "here"), 1).grow(5)
        oid = growing.blob()
        growing.move("refs/tags/x", growing.put(encode(["list", {"items": [oid]}])))
        path = tmp_path / "out.bundle"
        report = bundles(growing.store).create(str(path), everything=True)
        assert path.stat().st_size == report.size_bytes
        with pytest.raises(AlreadyExistsError):
            bundles(growing.store).create(str(path), everything=True)
        data = path.read_bytes()
        assert digest(data[:-32]) == data[-32:]
        tips = tmp_path / "here/.trace/refs/tags/y"  # as git leaves a ref without its objects
        tips.mkdir(parents=True)
        (tips / str(ObjectId(bytes(range(32))))).touch()
        with pytest.raises(ObjectNotFoundError):
            bundles(growing.store).create(str(path), everything=True, overwrite=True)
        assert path.read_bytes() == data
        assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["out.bundle"]
        assert bundles(growing.store).create(str(path), "x", overwrite=True).refs[0].tips
        link = tmp_path / "link.bundle"
        link.symlink_to(path)
        assert bundles().verify(str(link), alone=True).refs == bundles().list(str(path)).refs
        there = store_in(tmp_path / "there")
        assert bundles(there).import_(str(link)).refs[0].name == "refs/tags/x"

    def test_what_is_shared_is_sealed_first(self, tmp_path: Path) -> None:
        growing = Growing(store_in(tmp_path / "here"), 1).grow(5)
        assert growing.store.unsealed().transactions
        bundle(growing.store, everything=True)
        assert not growing.store.unsealed().transactions

    def test_more_than_one_pack(self, tmp_path: Path) -> None:
        growing = Growing(store_in(tmp_path / "here"), 1)
        noise = growing.random.randbytes
        blobs = [growing.put(encode_blob(noise(7 << 20))) for _ in range(6)]
        growing.move("refs/tags/big", growing.put(encode(["list", {"items": blobs}])))
        data = bundle(growing.store, "big", level=1)
        there = store_in(tmp_path / "there")
        report = bundles(there).import_(io.BytesIO(data).read)
        assert report.bundle.pack_count == len(report.packs) == 2
        assert report.bundle.object_count == 7
        assert everything(there) == everything(growing.store)

    def test_progress_is_told(self, tmp_path: Path) -> None:
        growing = Growing(store_in(tmp_path / "here"), 1).grow(5)
        told: list[tuple[int, int]] = []
        out = io.BytesIO()
        report = bundles(growing.store).create(
            out.write, everything=True, progress=lambda *n: told.append(n)
        )
        count = report.object_count
        assert told == [(n, count) for n in range(1, count + 1)]
        told.clear()
        out.seek(0)
        bundles(store_in(tmp_path / "b")).import_(out.read, progress=lambda *n: told.append(n))
        assert told == [(n, count) for n in range(1, count + 1)]


def test_refs_that_move_meanwhile_are_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Growing(store_in(tmp_path / "here"), 1, "ada")
    base = here.commit([])
    here.move(MAIN, base)
    first = bundle(here.store)
    here.move(MAIN, here.commit([base]))
    there = Growing(store_in(tmp_path / "there"), 2, "bob")
    take(there.store, first)
    ours = there.commit([base])
    transact, moved = Store.transact, list[str]()

    def racing(store: Store, build: object, **options: object) -> object:
        if not moved:
            moved.append(MAIN)
            there.move(MAIN, ours)
        return transact(store, build, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "transact", racing)
    assert take(there.store, bundle(here.store)) == {MAIN: DIVERGED}
    assert there.store.refs.tips(MAIN)[0] == ours
