"""A reader written from the format pages alone finds the same as Trace."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.format.support import independent_reader as independent
from tests.format.support.independent_reader import Repository
from tests.store.support.histories import MAIN, OTHER, append, move, reopen
from trace_store import FixedClock, Image, Message, ToolCall, ToolResult
from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.context.usage import Usage
from trace_store.history import commit
from trace_store.history.draft import Draft
from trace_store.history.records import Records
from trace_store.journal.frames import encode_void
from trace_store.maintenance.seal import seal
from trace_store.store.store import Store
from trace_store.writer import Writer

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / ".trace-example"
SESSION = "refs/heads/sessions/demo/1"
VECTORS = {
    vector["name"]: vector
    for vector in json.loads((ROOT / "tests/format/vectors.json").read_text(encoding="utf-8"))
}


def vector_objects() -> tuple[dict[bytes, bytes], dict[str, bytes]]:
    """Return the golden vectors by id, and their ids by name."""
    ids = {name: bytes.fromhex(vector["id"]) for name, vector in VECTORS.items()}
    return {oid: bytes.fromhex(VECTORS[name]["bytes"]) for name, oid in ids.items()}, ids


@pytest.fixture(scope="module")
def read() -> Repository:
    return Repository(EXAMPLE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    shutil.copytree(EXAMPLE, tmp_path / ".trace")
    with Store.open(str(tmp_path / ".trace")) as store:
        yield store


def column(ref: str, suffix: str) -> bytes:
    return (EXAMPLE / "index" / f"{ref.replace('/', '%2F')}.{suffix}").read_bytes()


def test_it_knows_nothing_of_trace() -> None:
    tree = ast.parse(Path(independent.__file__).read_text(encoding="utf-8"))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "."]
        )
    }
    assert not {name for name in imported if name.startswith(("trace", "tests", "."))}


def test_objects_from_loose_files_packs_and_journals(read: Repository, store: Store) -> None:
    assert read.loose
    assert read.packed
    assert read.journaled
    for oid, data in read.objects.items():
        assert independent.object_id(data) == oid
        assert store.objects.read(oid) == data
    assert set(store.objects.iterate()) == set(read.objects)


def test_every_object_is_canonical_and_names_what_is_there(read: Repository) -> None:
    kinds = set()
    for data in read.objects.values():
        kind, *rest = independent.structure(data)
        kinds.add(kind)
        if kind != "blob":
            assert set(independent.links(rest)) <= set(read.objects)
    assert kinds == {"blob", "commit", "tag", "list"}


def test_golden_vectors_are_canonical_to_it() -> None:
    for vector in VECTORS.values():
        data = bytes.fromhex(vector["bytes"])
        assert independent.structure(data)[0] == vector["kind"]
        assert independent.object_id(data).hex() == vector["id"]


def test_hidden_values_of_a_record(read: Repository, store: Store) -> None:
    objects, ids = vector_objects()
    for name in (
        "commit of a record with hidden values",
        "commit that keeps the hidden values before it",
    ):
        found = independent.hidden_values(objects, ids[name])
        assert found["state"] == ("json", [b'{"step": 1}'])
        assert found["log"] == ("text", [b"Plan the release."] * 64 + [b'{"step": 1}', b""])
    records = Records(Writer(store, author="ada"))
    (tip,) = read.refs()["refs/records/demo/thread-1/main"]
    found = independent.hidden_values(read.objects, tip)
    assert found["log"] == ("text", [b"asked", b"looked", b"asked"])
    state = records.state(ObjectId(tip))
    assert {name: value.type for name, value in state.values.items()} == {
        name: form for name, (form, _) in found.items()
    }
    for name, value in state.values.items():
        assert [*records.load([value])[0].pieces] == found[name][1]
    fold = read.fold(tip)
    assert [read.content(part["blob"]) for each in fold.shown() for part in each.parts] == [
        b"Which release is this?"
    ]


def test_a_decision_that_supersedes_another_one_until_a_time(read: Repository) -> None:
    objects, ids = vector_objects()
    old, _ = independent.event_of(objects, ids["commit of a decision"])
    name = "commit of a decision that supersedes another one and ends"
    assert independent.event_of(objects, ids[name])[1] == {
        "content": "sessions",
        "question": "Which token?",
        "supersedes": [old],
        "type": "decision",
        "until": 1_800_000_000_000,
    }
    (oid,) = read.refs()["refs/trajectories/traj_example00001"]
    events = []
    while True:
        events.append(independent.event_of(read.objects, oid))
        parents = read.commit(oid)["parents"]
        if not parents:
            break
        (oid,) = parents
    (_, amended), (new, decision), (old, replaced), (_, started) = events
    assert started["title"] == "An empty list"
    assert (replaced["content"], decision["content"]) == ("ValueError", "0.0")
    assert (decision["supersedes"], decision["until"]) == ([old], 1_800_000_000_000)
    assert (amended["event"], amended["changes"]["replaced_by"]) == (old, new)


def test_an_index_leads_to_every_object_of_its_pack(read: Repository) -> None:
    for path, pack in read.packs.items():
        index = independent.read_index(path.with_suffix(".idx").read_bytes())
        assert (index.pack_size, index.check) == (path.stat().st_size, pack.check)
        dictionary = 0
        for number, (frame, place) in enumerate(zip(pack.frames, index.places, strict=True), 1):
            needed = dictionary if frame.sort & 1 else 0
            sizes = frame.compressed, len(frame.raw), len(frame.forms)
            assert place == (frame.offset, *sizes, needed, frame.sort)
            if frame.sort == 4:
                dictionary = number
        forms = [form for frame in pack.frames for form in frame.forms]
        assert index.ids == [independent.object_id(data) for data in pack.objects]
        for data, form in zip(pack.objects, forms, strict=True):
            row = index.find(independent.object_id(data))
            assert row is not None
            raw = pack.frames[row.frame].raw
            assert raw[row.offset : row.offset + len(form)] == form


def test_refs_and_head(read: Repository, store: Store) -> None:
    found = {name: list(tips) for name, tips in store.refs.iterate_tips()}
    assert found == read.refs()
    assert store.refs.head().ref == read.head()


def log_of(store: Store, name: str) -> list[tuple[object, ...]]:
    """Return a reflog as the independent reader has it."""
    return [
        (entry.old, entry.new, entry.time, entry.author, entry.message)
        for entry in reversed(store.refs.reflog(name))
    ]


def test_reflogs(read: Repository, store: Store) -> None:
    for name in ("HEAD", "refs/heads/idea", "refs/heads/never", *read.refs()):
        assert log_of(store, name) == read.log(name)


def test_contexts(read: Repository, store: Store) -> None:
    contexts = ContextCompiler(store)
    for tips in read.refs().values():
        for tip in tips:
            if independent.structure(read.objects[tip])[0] != "commit":
                continue
            fold, context = read.fold(tip), contexts.compile(ObjectId(tip), cold=True)
            assert [entry.address for entry in fold.shown()] == [m.address for m in context]
            assert [entry.labels for entry in fold.shown()] == [m.labels for m in context]
            assert [entry.priority for entry in fold.shown()] == [m.priority for m in context]
            assert fold.prefix_hashes() == context.prefix_hashes()
            for entry, message in zip(fold.shown(), context, strict=True):
                texts = [
                    read.content(p["blob"]).decode()
                    for p in entry.parts
                    if p["type"] in ("text", "data")
                ]
                assert entry.is_ghost or message.text == "\n".join(texts)


def test_an_index_made_from_a_fold_that_grew_by_appends(read: Repository) -> None:
    header, records = independent.read_messages_column(column(MAIN, "messages"))
    merge = next(r.home[0] for r in records if r.flags & 2)
    assert len(read.commit(merge)["parents"]) == 2
    folded = read.records_of_fold(merge)
    assert header.generation == independent.object_id(merge)[:16]
    (tip,) = read.refs()[MAIN]
    assert records == read.records_of_appends(tip, folded)
    assert len(records) > len(folded)


def test_an_index_made_from_a_fold(read: Repository) -> None:
    header, records = independent.read_messages_column(column(SESSION, "messages"))
    (tip,) = read.refs()[SESSION]
    assert header.generation == independent.object_id(tip)[:16]
    assert records == read.records_of_fold(tip)


def test_tokens_run_beside_the_messages(read: Repository) -> None:
    header, records = independent.read_messages_column(column(MAIN, "messages"))
    tokens_header, tokens = independent.read_tokens_column(column(MAIN, "o200k_base.tokens"))
    counts = independent.read_counts(
        (EXAMPLE / "cache/tokens/o200k_base").read_bytes(), "o200k_base"
    )
    assert tokens_header.generation == header.generation
    messages = [record for record in records if not record.flags & 1]
    assert [record.prefix_start for record in tokens] == [
        message.prefix[:4] for message in messages
    ]
    assert [record.seen for record in tokens] == [message.seen[:8] for message in messages]
    total = text_total = 0
    for record in tokens:
        total, text_total = total + record.tokens, text_total + record.text
        assert (record.total, record.text_total) == (total, text_total)
    (tip,) = read.refs()[MAIN]
    for entry, record in zip(read.fold(tip).shown(), tokens, strict=True):
        if not entry.is_ghost:
            texts = [part["blob"] for part in entry.parts if part["type"] == "text"]
            assert record.text == sum(map(counts.__getitem__, texts))


# --- cases that the example does not have -----------------------------------------------------------------------------


def test_an_index_made_from_appends(fresh: Store) -> None:
    draft = Draft(Writer(fresh, author="ada"))
    draft.set_tools([{"name": "read"}])
    commit.write(draft)
    call = Message("assistant", [ToolCall("c1", "read", {})])
    answered = commit.commit(Writer(fresh, author="ada"), [Message("user", "Hi"), call]).oid
    draft = Draft(Writer(fresh, author="ada"))
    draft.append("tool", [ToolResult("c1", "a file")])
    draft.record_usage(Usage(5, 0, 0, 2, 0, "anthropic"), model="m", about=answered)
    commit.write(draft)
    ContextCompiler(fresh).compile(MAIN)
    read = Repository(Path(fresh.layout.root))
    (tip,) = read.refs()[MAIN]
    path = Path(fresh.layout.index_dir) / f"{MAIN.replace('/', '%2F')}.messages"
    header, records = independent.read_messages_column(path.read_bytes())
    assert header.generation == independent.object_id(tip)[:16]
    assert records == read.records_of_appends(tip)
    assert [record.flags for record in records] == [128 | 1 | 2, 0, 2, 2]


def put_tip(store: Store, name: str, *tips: ObjectId) -> None:
    """Make a ref's files these, as git does when it merges or switches."""
    folder = Path(store.layout.ref_dir(name))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for tip in tips:
        (folder / str(tip)).touch()


def compare(store: Store) -> Repository:
    """Read a repository twice, and find the same."""
    read = Repository(Path(store.layout.root))
    assert set(store.objects.iterate()) == set(read.objects)
    found = {name: list(tips) for name, tips in store.refs.iterate_tips()}
    assert {name: set(tips) for name, tips in found.items()} == {
        name: set(tips) for name, tips in read.refs().items()
    }
    assert {name: tips[0] for name, tips in found.items()} == {
        name: tips[0] for name, tips in read.refs().items()
    }
    for name in ("HEAD", *found):
        assert log_of(store, name) == read.log(name)
    head = store.refs.head_target()
    assert read.head() == head
    return read


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Store]:
    with Store.init(str(tmp_path), clock=FixedClock(), durability="fast") as store:
        yield store


def test_refs_that_git_moved(fresh: Store) -> None:
    first, second = append(fresh, "a"), append(fresh, "b")
    append(fresh, "x", OTHER)
    compare(fresh)
    seal(fresh)
    compare(fresh)
    side = append(fresh, "c", "refs/heads/side", parent=first)
    further = append(fresh, "d", "refs/heads/side")
    seal(fresh)
    for tips in ([further], [second, side], [side, further], [], [ObjectId(bytes(32)), side]):
        put_tip(fresh, MAIN, *tips)
        put_tip(fresh, "refs/tags/v1", *tips)
        compare(reopen(Path(fresh.layout.root).parent))


def test_refs_that_git_and_the_journal_moved(fresh: Store) -> None:
    first = append(fresh, "a")
    seal(fresh)
    second = append(fresh, "b")
    side = append(fresh, "c", OTHER, parent=first)
    further = append(fresh, "d", OTHER)
    for tips in ([], [first], [second], [side], [further, first], [side, second]):
        put_tip(fresh, MAIN, *tips)
        compare(fresh)
        assert len(fresh.refs.tips(MAIN)) == (2 if {side, further} & set(tips) else 1)
    move(fresh, MAIN, None)
    compare(fresh)


def test_heads_logs_and_journals_of_all_sorts(fresh: Store) -> None:
    tip = append(fresh, "a\tb\\x41 \\ \x07 ü")
    fresh.refs.set_head(tip, message="tab\tbell\x07 back\\slash", author="Ada \\ Ö")
    compare(fresh)
    seal(fresh)
    fresh.refs.set_head(OTHER)
    append(fresh, "b", OTHER)
    live = Path(fresh.layout.journal_file(2))
    with live.open("ab") as file:
        file.write(encode_void())  # cancels the appended transaction
    read = compare(fresh)
    assert OTHER not in read.refs()
    assert len(read.journals) == 2


def test_a_pack_of_many_and_a_content_in_chunks(fresh: Store) -> None:
    content = bytes(range(256)) * 4 * (9 << 10)
    result = commit.commit(
        Writer(fresh, author="ada"), [Message("user", [Image("image/x", content)])]
    )
    for number in range(40):
        append(fresh, str(number), OTHER)
    seal(fresh)
    read = compare(fresh)
    (part,) = read.commit(result.oid)["ops"][0][1]["messages"][0]["parts"]
    assert structure_kind(read, part["blob"]) == "list"
    assert read.content(part["blob"]) == content
    for path in read.packs:
        index = independent.read_index(path.with_suffix(".idx").read_bytes())
        assert len(index.buckets) > 2
        assert all(index.find(oid) for oid in read.packed)


def structure_kind(read: Repository, oid: bytes) -> str:
    return str(independent.structure(read.objects[oid])[0])
