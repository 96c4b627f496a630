"""A purge that takes the ids along: history is issued anew, and nothing tells the old ids any more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trace_store import Repo, importers
from trace_store.contracts import RefEdit, Transaction
from trace_store.errors import ObjectNotFoundError, StateError
from trace_store.history import log
from trace_store.maintenance.checking import fsck
from trace_store.maintenance.purging import plan_purge, purge_and_reissue
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Commit
from trace_store.objects.parts import Image, ToolCall, ToolResult
from trace_store.oid import ObjectId, hash_object

PIN = "PIN 471193"
OID = hash_object(encode_blob(PIN.encode()))


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def nowhere(folder: Path, oid: ObjectId) -> None:
    for path, data in files(folder).items():
        assert bytes(oid) not in data, path
        assert str(oid) not in path
        assert str(oid).encode() not in data, path


def test_no_id_of_it_is_left_and_all_that_was_built_on_it_has_moved(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        store = repo.store
        repo.append("system", "before")
        first = store.refs.head().oid
        result = repo.append("user", PIN)
        repo.append("assistant", "fine")
        repo.annotate(result.addresses[0], priority="pinned", labels=["keep"])
        repo.append("assistant", [ToolCall("c", "run", {"pin": PIN})])
        repo.append("tool", [ToolResult("c", f"ran with {PIN}")])
        old = store.refs.head().oid
        assert old is not None
        said = Commit((old,), "Ada", 1, (), message=f"about {PIN}").encode()
        edits = [
            RefEdit("refs/heads/main", hash_object(said), old),
            RefEdit("refs/tags/v1", old, None),
            RefEdit("refs/tags/early", first, None),
        ]
        store.transact(lambda _: Transaction([(hash_object(said), said)], edits))
        repo.seal()
        before = [(m.role, m.priority) for m in repo.compile()]
        assert len(list(log(store, "refs/heads/main"))) > 1
        plan = plan_purge(store, [], [PIN])
        report, issued = purge_and_reissue(store, plan, why="a card", by="Ada", verify=True)
        assert report.absence is not None
        assert report.absence.is_proven, report.absence
        assert issued.refs == ("refs/heads/main", "refs/tags/v1")
        assert store.refs.read("refs/tags/early") == first
        assert store.refs.read("refs/tags/v1") == issued.objects[old]
        context = repo.compile()
        assert [(m.role, m.priority) for m in context] == before
        assert [m.text for m in context][1] == "[purged: a card]"
        arguments = json.loads(
            context.to_openai()["messages"][3]["tool_calls"][0]["function"]["arguments"]
        )
        assert arguments == {"purged": "[purged: a card]"}
        assert (
            Commit.decode(store.objects.read(store.refs.head().oid or b"")).message
            == "about [purged]"
        )
        assert not fsck(store)
        for gone in (OID, old):
            with pytest.raises(ObjectNotFoundError, match="no object"):
                store.objects.read(gone)
        assert store.objects.purged == frozenset()
        repo.append("user", PIN)  # nothing keeps it from being said again
    with Repo.open(str(tmp_path)) as repo:
        assert [m.text for m in repo.compile()][-1] == PIN


def test_the_id_of_short_content_is_in_no_file(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", PIN)
        repo.append("assistant", "thanks")
        repo.seal()
        purge_and_reissue(repo.store, plan_purge(repo.store, [OID]))
    nowhere(tmp_path / ".trace", OID)


def test_a_session_that_was_imported_is_issued_anew(tmp_path: Path) -> None:
    lines = [
        {"type": "user", "uuid": "a", "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z",
         "message": {"role": "user", "content": f"remember {PIN}"}},
        {"type": "assistant", "uuid": "b", "parentUuid": "a", "sessionId": "s", "timestamp": "2026-01-01T00:00:01Z",
         "message": {"role": "assistant", "content": [{"type": "text", "text": "yes"}]}},
    ]  # fmt: skip
    path = tmp_path / "session.jsonl"
    path.write_text(
        "".join(json.dumps({"version": "2.0.0", "cwd": "/", **line}) + "\n" for line in lines)
    )
    with Repo.init(str(tmp_path)) as repo:
        importers.import_paths(repo.store, [str(path)])
        report, issued = purge_and_reissue(
            repo.store, plan_purge(repo.store, [], [PIN]), verify=True
        )
        assert report.absence is not None
        assert report.absence.is_proven, report.absence.found
        (ref,) = [name for name, _ in repo.store.refs.iterate("refs/heads/sessions/")]
        assert ref in issued.refs
        assert [m.text for m in repo.compile(ref)] == ["[purged]", "yes"]
        assert not list(repo.store.refs.iterate("refs/transcripts/"))
        assert not [f for f in fsck(repo.store) if f.severity == "error"]


def test_a_ref_with_two_tips_is_refused_and_nothing_moves(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", PIN)
        one = repo.store.refs.head().oid
        repo.append("user", "later")
        repo.seal()
        other = Commit((one,) if one else (), "Ada", 5, ()).encode()
        repo.store.objects.write(other)
        folder = tmp_path / ".trace" / "refs" / "heads" / "main"
        (folder / str(hash_object(other))).touch()
    with Repo.open(str(tmp_path)) as repo:
        plan = plan_purge(repo.store, [OID])
        before = files(tmp_path / ".trace" / "refs")
        with pytest.raises(StateError, match="several tips"):
            purge_and_reissue(repo.store, plan)
        assert files(tmp_path / ".trace" / "refs") == before
        assert repo.store.objects.read(OID)


def test_an_image_becomes_a_text(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", [Image("image/png", b"\x89PNG secret pixels")])
        oid = hash_object(encode_blob(b"\x89PNG secret pixels"))
        purge_and_reissue(repo.store, plan_purge(repo.store, [oid]))
        assert [m.text for m in repo.compile()] == ["[purged]"]
