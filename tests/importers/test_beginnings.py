"""How sessions begin is looked at once, whatever else is in the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.importers.support.states import branches, count_reads
from tests.importers.support.transcripts import SESSION, Transcript, text
from trace_store.base.oid import ObjectId
from trace_store.errors import ObjectNotFoundError
from trace_store.importers.import_paths import import_paths
from trace_store.store.store import Store
from trace_store.writer import Writer


def session(number: int) -> Transcript:
    t = Transcript(f"{number:08x}{SESSION[8:]}")
    t.user(f"Question {number}?", uuid=f"{number:08x}-1111-4000-8000-000000000000")
    t.assistant(f"msg_{number}", text("Answer."), stop="end_turn")
    return t


def copy_of(folder: Path, original: Transcript) -> Path:
    name = "f" * 8 + SESSION[8:]
    path = folder / f"{name}.jsonl"
    path.write_bytes(original.data.replace(original.session.encode(), name.encode()))
    return path


def test_no_commit_of_another_session_is_read_again_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "transcripts"
    folder.mkdir()
    for number in range(30):
        session(number).write(folder)
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        times = count_reads(store, monkeypatch)
        import_paths(Writer(store), [str(folder)])
        session(30).write(folder)
        import_paths(Writer(store), [str(folder)])
        assert len(branches(store)) == 31
        assert max(times.values(), default=0) <= 3


@pytest.mark.parametrize("at_once", [True, False])
def test_a_copy_shares_the_commits_of_the_session_it_was_copied_from(
    tmp_path: Path, at_once: bool
) -> None:
    first, second = session(1), session(2)
    paths = [first.write(tmp_path), second.write(tmp_path), str(copy_of(tmp_path, second))]
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        steps = [paths] if at_once else [[path] for path in paths]
        reports = [file for step in steps for file in import_paths(Writer(store), step).files]
        assert [file.commits_shared for file in reports] == [0, 0, 2]
        found = branches(store)
        assert found["f" * 8 + SESSION[8:]] == found[second.session]


def test_another_session_that_is_not_whole_does_not_stop_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.memory()
    import_paths(Writer(store), [session(1).write(tmp_path)])
    gone: ObjectId = branches(store)[session(1).session]
    read = type(store.objects).read

    def incomplete(objects: object, oid: bytes) -> bytes:
        if oid == gone:
            raise ObjectNotFoundError("not here", oid=oid)
        return read(objects, oid)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store.objects), "read", incomplete)
    assert import_paths(Writer(store), [session(2).write(tmp_path)]).commits == 2


def test_damaged_notes_count_as_none(tmp_path: Path) -> None:
    second = session(2)
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        import_paths(Writer(store), [second.write(tmp_path)])
        notes = Path(store.layout.local_dir) / "imports" / "beginnings"
        assert notes.exists()
        copy = copy_of(tmp_path, second)
        for damaged in (b"[", b"[]", b'{"a":1}', b'{"a":["x","y"]}', b'{"a":[1,2,3]}', b"\xff"):
            notes.write_bytes(damaged)
            import_paths(Writer(store), [str(copy)])
        assert branches(store)["f" * 8 + SESSION[8:]] == branches(store)[second.session]


def test_a_copy_that_grows_becomes_what_a_whole_one_becomes(tmp_path: Path) -> None:
    """Also from before its first own message, when records at its head have no commit yet."""
    second = session(2)
    original = second.write(tmp_path)
    copy = copy_of(tmp_path, second)
    more = Transcript(session="f" * 8 + SESSION[8:])
    more.user("Said in the copy only.")
    *_, last = (json.loads(line) for line in copy.read_bytes().splitlines())
    added = {**json.loads(more.data.splitlines()[0]), "parentUuid": last["uuid"]}
    head = b'{"type":"mode","mode":"normal"}\n'
    data = head + copy.read_bytes() + json.dumps(added).encode() + b"\n"
    copy.write_bytes(data)
    whole = Store.memory()
    import_paths(Writer(whole), [original, str(copy)])
    lines = data.splitlines(keepends=True)
    for count in range(1, len(lines) + 1):
        store = Store.memory()
        import_paths(Writer(store), [original])
        for part in (lines[:count], lines):
            copy.write_bytes(b"".join(part))
            import_paths(Writer(store), [], discovered=[str(copy)], format="claude-code")
        assert branches(store) == branches(whole), count
