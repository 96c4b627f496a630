"""Records: values that no model is sent, found by facts, written by compare and swap, and erased."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_store import Image, Message, Opaque, Repo, Text, errors
from trace_store.base.oid import ObjectId, hash_object
from trace_store.history.records import Records, RecordState, RecordValue, record_name
from trace_store.integrations.framework_store import FrameworkStore, split_array
from trace_store.objects.address import Address
from trace_store.objects.codec import encode
from trace_store.objects.sequences import FANOUT, ContentSequence, read_sequence
from trace_store.providers import parse_messages
from trace_store.store import fact_index
from trace_store.store.fact_index import FactIndex

SECRET = "password=Tr0ub4dor-3x"
NAME = record_name("example", "thread", "main")


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with Repo.init(tmp_path, author="ada", durability="fast") as made:
        yield made


def step(records: Records, number: int, before: RecordState | None = None) -> RecordState:
    """Write a value and a message."""
    values = {} if before is None else before.values
    draft = records.draft(NAME, expect=None if before is None else before.commit, values=values)
    draft.set("state", "text", b"value %d" % number)
    draft.messages.append("user", f"message {number}")
    return draft.write({"example.step": number, "example.thread": "Ä/1"})


def test_values_are_kept_beside_messages_and_sent_to_no_model(repo: Repo) -> None:
    records = Records(repo.writer)
    state = None
    for number in range(3):
        state = step(records, number, state)
    assert state is not None
    assert records.read(state.values["state"]) == b"value 2"
    context = repo.compile(NAME)
    assert [m.text for m in context] == ["message 0", "message 1", "message 2"]
    assert context.render("anthropic").repairs == ()
    alone = repo.line("plain").commit([Message("user", f"message {n}") for n in range(3)])
    assert context.token_count == repo.compile(alone.oid).token_count
    (first,) = records.find(NAME, "example.step", 0)
    assert records.read(records.state(first).values["state"]) == b"value 0"
    assert [e.summary() for e in repo.log(NAME, meta="example.step=1")] == ["user: message 1"]
    assert repo.branches.facts(NAME)["example.step"] == "2"
    assert [b.name for b in repo.branches.list()] == ["plain"]
    assert not repo.maintenance.fsck()


def test_a_value_goes_along_when_commits_are_copied_and_bundled(repo: Repo, tmp_path: Path) -> None:
    records = Records(repo.writer)
    state = step(records, 1, step(records, 0))
    repo.append("user", "another branch")
    repo.cherry_pick(state.commit)
    picked = records.state(repo.resolve("HEAD"))
    assert records.read(picked.values["state"]) == b"value 1"
    repo.bundles.create(tmp_path / "all.bundle", NAME)
    with Repo.init(tmp_path / "other", durability="fast") as other:
        other.bundles.import_(tmp_path / "all.bundle")
        found = Records(other.writer)
        tip = found.tip(NAME)
        assert tip is not None
        assert found.read(found.state(tip).values["state"]) == b"value 1"


def test_a_commit_of_a_user_keeps_the_values(repo: Repo) -> None:
    records = Records(repo.writer)
    state = step(records, 0)
    done = repo.line(NAME).append("user", "by hand")
    assert records.state(done.oid).values == state.values
    assert repo.append("user", "also", ref=NAME).ref == NAME


def test_writes_are_compared_and_swapped(repo: Repo) -> None:
    records = Records(repo.writer)
    first = step(records, 0)
    with pytest.raises(errors.RefChangedError):
        step(records, 1)  # expects that there is none
    second = step(records, 1, first)
    with pytest.raises(errors.RefChangedError) as caught:
        step(records, 2, first)
    assert caught.value.actual == second.commit
    assert records.tip(NAME) == second.commit


@pytest.mark.parametrize(
    "write",
    [
        lambda line, at: line.append("user", "more"),
        lambda line, at: line.append("user", "more", meta={"a": "b"}),
        lambda line, at: line.edit(at, "other"),
        lambda line, at: line.remove(at),
        lambda line, at: line.annotate(at, labels="x"),
        lambda line, at: line.reset(line.resolve("HEAD"), hard=True),
    ],
)
def test_a_line_expects_a_commit(repo: Repo, write: Any) -> None:
    old = repo.append("user", "one")
    line = repo.line("main", expect=old)
    own = line.append("user", "two")  # its own writes move what it expects
    assert line.append("user", "three").parents == (own.oid,)
    stale = repo.line("main", expect=old.oid)
    before = repo.resolve("main")
    with pytest.raises(errors.RefChangedError):
        write(stale, old.addresses[0])
    assert repo.resolve("main") == before
    with pytest.raises(errors.RefChangedError):
        repo.line("main", expect=None).append("user", "new")
    assert repo.line("fresh", expect=None).append("user", "new").changed


def test_threads_update_one_list_and_lose_nothing(repo: Repo) -> None:
    store = FrameworkStore(repo, "example")
    name = store.name("list")

    def add(number: int) -> None:
        def change(draft: Any, state: RecordState | None) -> dict[str, Any]:
            old = store.pieces(state, "items")
            new = [*old, b'{"role": "user", "content": "%d"}' % number]
            store.set_list(draft, state, "items", "json", old, new, as_message=message)
            return {"example.last": number}

        store.update(name, change)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    pieces = store.pieces(store.state(name), "items")
    assert sorted(pieces) == [b'{"role": "user", "content": "%d"}' % n for n in range(8)]
    assert [m.text for m in repo.compile(name)] == [p.decode()[-3] for p in pieces]


def message(piece: bytes) -> Message:
    return parse_messages(piece.decode())[0]


def test_bytes_are_never_rewritten_and_what_they_hold_is_reported(repo: Repo, caplog: Any) -> None:
    raw = b"\x00" + SECRET.encode() + b"\xff"
    parts = [Opaque("example", raw), Image("image/svg+xml", SECRET.encode()), Text(SECRET)]
    done = repo.commit([Message("user", parts)])
    opaque, image, text = repo.message(done.addresses[0]).message.parts
    assert (opaque.raw, image.raw) == (raw, SECRET.encode())
    assert b"redacted" in text.raw
    assert (done.secrets, done.redacted) == ({"password": 3}, {"password": 1})
    block = repo.commit([Message("user", [Opaque("example", f'{{"a": "{SECRET}"}}')])])
    assert b"redacted" in repo.message(block.addresses[0]).message.parts[0].raw  # JSON is text
    records = Records(repo.writer)
    with caplog.at_level(logging.WARNING, "trace_store"):
        for number in range(2):
            draft = records.draft(record_name("example", "x"))
            draft.set("raw", "bytes", raw + b"%d" % number)
            assert records.read(draft.write().values["raw"]) == raw + b"%d" % number
    assert len([each for each in caplog.messages if "secret" in each]) == 1
    assert "secrets-stored" in {each.code for each in repo.maintenance.doctor()}
    places = {ref for found in repo.maintenance.scan_secrets().found for ref in found.refs}
    assert record_name("example", "x") in places


def test_secrets_are_refused_or_not_looked_for(repo: Repo, tmp_path: Path) -> None:
    draft = Records(repo.writer, secrets="refuse").draft(NAME)
    draft.set("a", "text", SECRET.encode())
    with pytest.raises(errors.SecretFoundError):
        draft.write()
    assert Records(repo.writer).tip(NAME) is None
    draft = Records(repo.writer, secrets="off").draft(NAME)
    draft.set("a", "text", SECRET.encode())
    assert "trace.secrets" not in draft.write().facts
    with (
        Repo.init(tmp_path / "off", secrets="off") as other,
        pytest.raises(errors.InvalidInputError),
    ):
        Records(other.writer, secrets="refuse")


def test_a_fact_that_looks_like_a_secret_is_found_as_a_hash(repo: Repo) -> None:
    records = Records(repo.writer)
    id = "ghp_" + "a1B2" * 9
    draft = records.draft(NAME)
    state = draft.write({"example.id": id})
    assert records.find(NAME, "example.id", id) == [state.commit]
    assert id not in str(state.facts)


def test_the_index_of_facts_is_rebuilt_and_follows_other_processes(tmp_path: Path) -> None:
    with Repo.init(tmp_path, durability="fast") as repo:
        step(Records(repo.writer), 0)
        one = Records(repo.writer)
        assert len(one.find(NAME, "example.step", 0)) == 1
        with Repo.open(tmp_path) as other:
            records = Records(other.writer)
            tip = records.tip(NAME)
            assert tip is not None
            step(records, 1, records.state(tip))
        assert len(one.find(NAME, "example.step", 1)) == 1
        one.close()
        index = Path(repo.store.layout.search_files("facts")[0])
        index.write_bytes(b"damaged" * 1000)
        assert len(Records(repo.writer).find(NAME, "example.step", 0)) == 1
        repo.branches.create("copy", repo.resolve(f"{NAME}~1"))
        assert [e.summary() for e in repo.log("copy", meta="example.thread=Ä/1")] == [
            "user: message 0"
        ]
        assert not [*repo.log("copy", meta="example.step=1")]
        assert len([*repo.log(NAME, meta="example.thread=Ä/1", role="user")]) == 2


@pytest.mark.parametrize("is_open", [False, True])
def test_a_look_up_rebuilds_an_index_with_damaged_pages(repo: Repo, *, is_open: bool) -> None:
    records = Records(repo.writer)
    state = step(records, 0)
    assert records.find(NAME, "example.step", 0) == [state.commit]
    if not is_open:
        records.close()
    index = Path(repo.store.layout.search_files("facts")[0])
    with closing(sqlite3.connect(index)) as base:
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    sound = index.read_bytes()
    pages = 2 * 4096  # the schema and the version stay readable
    index.write_bytes(sound[:pages] + b"damaged!" * ((len(sound) - pages) // 8))
    for _ in range(2):
        assert records.find(NAME, "example.step", 0) == [state.commit]
        assert records.newest(NAME, "example.step", "") == [("0", state.commit)]
    records.close()
    assert Records(repo.writer).find(NAME, "example.step", 0) == [state.commit]
    with closing(sqlite3.connect(index)) as base:
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_look_up_does_without_an_index_that_it_cannot_use(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fact_index, "_WAIT_SECONDS", 0)
    records = Records(repo.writer)
    first = step(records, 0)
    assert records.find(NAME, "example.step", 0) == [first.commit]
    index = Path(repo.store.layout.search_files("facts")[0])
    with closing(sqlite3.connect(index, isolation_level=None)) as base:
        base.execute("BEGIN IMMEDIATE")
        second = step(records, 1, first)
        assert records.find(NAME, "example.step", 1) == [second.commit]
        assert [e.oid for e in repo.log(NAME, meta="example.step=1")] == [second.commit]
    records.close()
    for path in repo.store.layout.search_files("facts"):
        Path(path).unlink(missing_ok=True)
    index.mkdir()
    assert records.find(NAME, "example.step", 1) == [second.commit]


def test_a_write_succeeds_without_its_index(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    records = Records(repo.writer)
    with monkeypatch.context() as patched:
        patched.setattr(FactIndex, "note", fail)
        state = step(records, 0)
    assert records.find(NAME, "example.step", 0) == [state.commit]


def test_what_is_deleted_is_erased_and_what_others_have_stays(repo: Repo) -> None:
    records = Records(repo.writer)
    step(records, 0)
    other = record_name("example", "other", "main")
    draft = records.draft(other)
    draft.set("state", "text", b"value 0")
    draft.write()
    repo.search("message")
    report = records.delete(NAME)
    assert report.objects > 0
    assert report.kept == 1
    assert records.read(records.state(records.tips()[other][0]).values["state"]) == b"value 0"
    root = Path(repo.store.layout.root)
    assert not [p for p in root.rglob("*") if p.is_file() and b"message 0" in p.read_bytes()]
    assert not repo.search("message")
    assert not repo.trash.list().refs
    assert not repo.maintenance.fsck()
    assert records.delete(NAME).objects == 0


def test_a_rewritten_record_shows_the_same_messages(repo: Repo) -> None:
    records = Records(repo.writer)
    states = [step(records, 0)]
    for number in range(1, 5):
        states.append(step(records, number, states[-1]))
    line = repo.line(NAME)
    line.edit(line.compile().messages[1].address, "edited")
    tip = line.append("user", "by hand").oid
    shown = [m.text for m in repo.compile(NAME)]
    (new,) = records.keep_only({NAME: tip}, [states[2].commit, tip]).values()
    assert new is not None
    assert [m.text for m in repo.compile(NAME)] == shown
    assert next(e.oid for e in repo.log(NAME)) == new
    assert len([*repo.log(NAME)]) == 2
    assert not records.find(NAME, "example.step", 1)
    assert not repo.maintenance.fsck()


def test_a_repository_opened_for_reading_writes_nothing(tmp_path: Path) -> None:
    with Repo.init(tmp_path, durability="fast") as repo:
        writing = Records(repo.writer)
        step(writing, 0)
        writing.close()
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with Repo.open(tmp_path, read_only=True) as repo:
        records = Records(repo.writer)
        assert len(records.find(NAME, "example.step", 0)) == 1
        assert [m.text for m in repo.compile(NAME)] == ["message 0"]
        assert repo.search("message")
        with pytest.raises(errors.StorageError, match="reading only"):
            repo.append("user", "no")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == files
    with pytest.raises(errors.InvalidInputError):
        Repo.open(tmp_path, read_only=True, create=True)


def test_messages_are_read_by_address_in_one_pass(repo: Repo) -> None:
    addresses = [repo.append("user", f"m{n}").addresses[0] for n in range(4)]
    repo.remove(addresses[1])
    repo.edit(addresses[2], "other")
    found = repo.contexts.messages([addresses[3], *addresses[:3]])
    assert [each.text for each in found] == ["m3", "m0", "m1", "m2"]
    with pytest.raises(errors.MessageNotFoundError):
        repo.contexts.messages([Address(addresses[0].birth, 7)])


def test_values_of_providers_are_parsed_as_texts_are() -> None:
    form = {"role": "user", "content": "hi"}
    assert parse_messages([form]) == parse_messages('{"role": "user", "content": "hi"}')


@pytest.mark.parametrize("name", ["", "Ä/ü", "UPPER", "a" * 200, "con", "..", "a.lock", "0" * 64])
def test_any_id_names_a_record(repo: Repo, name: str) -> None:
    full = record_name("example", name, "main")
    Records(repo.writer).draft(full).write()
    assert record_name("example", name.lower() + "-", "main") != full
    with pytest.raises(errors.InvalidRefNameError):
        Records(repo.writer).draft("refs/heads/main")


@given(st.integers(0, 3 * FANOUT), st.integers(0, 3 * FANOUT), st.integers(0, 200))
def test_equal_sequences_have_equal_ids(count: int, keep: int, more: int) -> None:
    stored: dict[ObjectId, bytes] = {}

    def put(data: bytes) -> ObjectId:
        stored[hash_object(data)] = data
        return hash_object(data)

    items = [hash_object(b"%d" % n) for n in range(count)]
    added = [hash_object(b"new %d" % n) for n in range(more)]
    made = ContentSequence.of(items, put).extended(min(keep, count), added, put)
    whole = ContentSequence.of([*items[:keep], *added], put)
    assert made.oid == whole.oid
    assert [*map(list, made.levels)] == [*map(list, whole.levels)]
    again = read_sequence(made.oid, lambda oids: (stored[ObjectId(oid)] for oid in oids))
    assert [*again.items] == [*items[:keep], *added]


def test_a_node_with_another_number_of_items_than_the_format_says_is_corrupt(repo: Repo) -> None:
    records = Records(repo.writer)
    draft = records.draft(NAME)
    item = draft.put(b"piece")

    def node(depth: int, items: list[ObjectId]) -> ObjectId:
        fields = {"depth": depth, "items": items, "type": "sequence"}
        return repo.store.objects.write(encode(["list", fields]))

    full, one, none = node(0, [item] * FANOUT), node(0, [item]), node(0, [])
    high = node(1, [full, one])
    wrong = {
        "too few in the middle": node(1, [one, full]),
        "too many": node(0, [item] * (FANOUT + 1)),
        "too many below": node(1, [full, node(0, [item] * (FANOUT + 1))]),
        "an empty node": node(1, [full, none]),
        "a root that is not needed": node(1, [full]),
        "no items above": node(1, []),
        "a missing depth": node(2, [full, full]),
        "a depth too many": node(1, [high, full]),
        "content": item,
    }
    draft.set("state", "text", b"a value")
    draft.write()
    assert len(records.sequence(RecordValue("text", high)).items) == FANOUT + 1
    assert records.read(RecordValue("text", none)) == b""
    for why, oid in wrong.items():
        with pytest.raises(errors.CorruptObjectError, match="is not a sequence"):
            pytest.fail(f"{why}: {records.sequence(RecordValue('text', oid))}")


def test_an_append_to_a_long_sequence_writes_few_nodes() -> None:
    written: list[bytes] = []

    def put(data: bytes) -> ObjectId:
        written.append(data)
        return hash_object(data)

    items = [hash_object(b"%d" % n) for n in range(20_000)]
    sequence = ContentSequence.of(items, put)
    written.clear()
    sequence.extended(20_000, [hash_object(b"one more")], put)
    assert len(written) == 3


@given(st.binary(max_size=200))
def test_any_bytes_are_split_so_that_they_come_back(data: bytes) -> None:
    pieces = split_array(data)
    assert pieces is None or data.endswith(b"".join(pieces))


def test_a_commit_keeps_the_values_of_one_that_goes(repo: Repo) -> None:
    records = Records(repo.writer)
    step(records, 0)
    tip = repo.line(NAME).append("user", "by hand").oid
    before = {name: records.read(value) for name, value in records.state(tip).values.items()}
    (new,) = records.keep_only({NAME: tip}, [tip]).values()
    assert new is not None
    found = {name: records.read(value) for name, value in records.state(new).values.items()}
    assert found == before != {}
