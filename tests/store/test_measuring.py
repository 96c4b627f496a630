"""`du`: every object once, each branch completely, and the space saved."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.importers.support.transcripts import SESSION, Transcript, lively, text
from trace_store.base.oid import ObjectId
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.errors import ObjectNotFoundError
from trace_store.importers.import_paths import import_paths
from trace_store.maintenance.du import StoreUsage, measure
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import COMMIT, decode, kind_of, links_within
from trace_store.store.store import Store
from trace_store.writer import Writer


def check(store: Store, found: StoreUsage) -> None:
    """What holds of every measure."""
    oids = list(store.objects.iterate())
    assert found.total.objects == len(oids)
    assert found.total.bytes == sum(len(store.objects.read(oid)) for oid in oids)
    for field in ("objects", "bytes"):
        kinds = sum(getattr(kind, field) for kind in found.kinds.values())
        assert kinds == getattr(found.total, field)
    for part in (*found.branches, *found.sessions):
        assert part.own.bytes <= part.whole.bytes <= found.total.bytes


def test_a_session_and_a_copy_of_it(tmp_path: Path) -> None:
    t = Transcript()
    for turn in range(30):
        t.user(f"Question {turn}: " + "very long " * 60)
        t.assistant(f"msg_{turn}", text(f"Answer {turn}: " + "quite long " * 60), stop="end_turn")
    fork = "0" * 8 + SESSION[8:]
    copy = t.data.replace(SESSION.encode(), fork.encode())
    (tmp_path / f"{fork}.jsonl").write_bytes(copy)
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [t.write(tmp_path), str(tmp_path / f"{fork}.jsonl")])
        before = measure(store)
        check(store, before)
        seal(store)
        found = measure(store)
        check(store, found)
        packs = Path(store.layout.root) / "objects" / "pack"
        assert found.disk >= sum(p.stat().st_size for p in packs.glob("*.pack"))
    assert (found.files, found.file_bytes) == (2, len(t.data) + len(copy))
    assert {part.name for part in found.sessions} == {
        f"claude-code/{SESSION}",
        f"claude-code/{fork}",
    }
    assert sum(part.file_bytes for part in found.sessions) == found.file_bytes
    assert found.repeated > len(t.data) / 3, "the copy shares what was said"
    for part in found.sessions:
        assert part.own.bytes < part.whole.bytes / 2
    assert found.total.disk < found.total.bytes / 3, "packs compress"
    assert found.unreachable.objects == 0


def test_what_no_ref_leads_to_is_told(tmp_path: Path) -> None:
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [lively().write(tmp_path)])
        store.objects.write(b"\x92\xa4blob\xc4\x05alone")
        found = measure(store)
        check(store, found)
    assert found.unreachable.objects == 1


def test_an_empty_store(tmp_path: Path) -> None:
    with Store.init(str(tmp_path / "project")) as store:
        found = measure(store)
    assert (found.total.objects, found.branches, found.sessions) == (0, (), ())
    assert os.path.isdir(tmp_path / "project")


def test_a_store_in_memory(tmp_path: Path) -> None:
    store = Store.memory()
    import_paths(Writer(store), [lively().write(tmp_path)])
    found = measure(store)
    check(store, found)
    assert found.disk > found.total.bytes


def reached(store: Store, starts: list[ObjectId]) -> set[ObjectId]:
    found: set[ObjectId] = set()
    while starts:
        oid = starts.pop()
        if oid not in found and store.objects.contains(oid):
            found.add(oid)
            starts += links_within(decode(store.objects.read(oid)))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_branches_and_sessions_are_counted_as_if_each_were_walked_alone(
    tmp_path: Path, seed: int
) -> None:
    chosen = random.Random(seed)
    store = Store.memory()
    for number in range(4):
        t = lively()
        data = t.data.replace(SESSION.encode(), f"{number:08x}{SESSION[8:]}".encode())
        lines = data.splitlines(keepends=True)
        path = tmp_path / f"{number:08x}{SESSION[8:]}.jsonl"
        path.write_bytes(b"".join(lines[: chosen.randrange(5, len(lines))]))
        import_paths(Writer(store), [str(path)])
    commits = [o for o in store.objects.iterate() if kind_of(store.objects.read(o)) == COMMIT]
    picked = [chosen.choice(sorted(commits)) for _ in range(12)]
    names = [f"refs/heads/at/{n}" for n in range(6)] + [f"refs/tags/at{n}" for n in range(6)]
    edits = [RefEdit(name, oid, ANY) for name, oid in zip(names, picked, strict=True)]
    store.transact(lambda _: Transaction([], edits))
    sessions = list(store.refs.iterate("refs/heads/sessions/"))[:: chosen.choice([2, 3])]
    removals = [RefEdit(name, None, ANY) for name, _ in sessions]
    store.transact(lambda _: Transaction([], removals))
    refs = dict(store.refs.iterate())
    of_branch = {
        name.removeprefix("refs/heads/"): reached(store, [oid])
        for name, oid in refs.items()
        if name.startswith("refs/heads/")
    }
    of_session: dict[str, set[ObjectId]] = {}
    for name, oid in refs.items():
        for place in ("refs/heads/sessions/", "refs/transcripts/"):
            if name.startswith(place):
                session = "/".join(name.removeprefix(place).split("/")[:2])
                of_session.setdefault(session, set()).update(reached(store, [oid]))
    found = measure(store)
    for parts, expected in ((found.branches, of_branch), (found.sessions, of_session)):
        assert {part.name for part in parts} == set(expected)
        for part in parts:
            others = set().union(*(s for name, s in expected.items() if name != part.name))
            whole, own = expected[part.name], expected[part.name] - others
            assert (part.whole.objects, part.own.objects) == (len(whole), len(own))
            assert part.own.bytes == sum(len(store.objects.read(oid)) for oid in own)
    alone = set(store.objects.iterate()) - reached(store, list(refs.values()))
    assert found.unreachable.objects == len(alone)
    size = {oid: len(store.objects.read(oid)) for oid in store.objects.iterate()}
    every = [oid for held in of_session.values() for oid in held]
    assert found.repeated == sum(map(size.__getitem__, every)) - sum(size[o] for o in set(every))


def test_what_is_not_here_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.memory()
    import_paths(Writer(store), [lively().write(tmp_path)])
    (tip,) = (oid for _, oid in store.refs.iterate("refs/transcripts/"))
    read, iterate = type(store.objects).read, type(store.objects).iterate

    def absent(objects: object, oid: bytes) -> bytes:
        if oid == tip:
            raise ObjectNotFoundError("not here", oid=oid)
        return read(objects, oid)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store.objects), "read", absent)
    monkeypatch.setattr(
        type(store.objects),
        "iterate",
        lambda objects: (oid for oid in iterate(objects) if oid != tip),
    )
    found = measure(store)
    assert (found.files, found.file_bytes) == (1, 0)
