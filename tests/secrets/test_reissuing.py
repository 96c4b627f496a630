"""A purge that rewrites history: no file has the content or the old commit ids."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.changes import begin, long_histories, write_changes
from tests.support.examples import examples
from tests.support.subjects import upkeep
from trace_store import FixedClock, Repo, importers
from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.fold import Fold, fold
from trace_store.contracts import RefEdit, Transaction
from trace_store.errors import ObjectNotFoundError, StateError
from trace_store.history.log import log
from trace_store.maintenance.fsck import check_derived, fsck
from trace_store.maintenance.purge import plan_purge, rewrite_history
from trace_store.maintenance.verify_purged import Needles
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.parts import Image, Reasoning, Text, ToolCall, ToolResult
from trace_store.writer import Writer

PIN = "PIN 471193"
OID = hash_object(encode_blob(PIN.encode()))


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def fold_at(repo: Repo, tip: bytes) -> Fold:
    """Return a fold from nothing."""
    return fold(tip, lambda oid: read_commit(oid, repo.store.objects.read))


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
        report, issued = upkeep(store).purge_and_rewrite(plan, why="a card", verify=True)
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
        repo.maintenance.purge_and_rewrite(plan_purge(repo.store, [OID]))
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
        importers.import_paths.import_paths(Writer(repo.store), [str(path)])
        report, issued = repo.maintenance.purge_and_rewrite(
            plan_purge(repo.store, [], [PIN]), verify=True
        )
        assert report.absence is not None
        assert report.absence.is_proven, report.absence.found
        (ref,) = [name for name, _ in repo.store.refs.iterate("refs/heads/sessions/")]
        assert ref in issued.refs
        assert [m.text for m in repo.compile(ref)] == ["remember [purged]", "yes"]
        assert [m.text for m in repo.compile(f"{ref}~1")] == ["[purged]", "yes"]
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
        with pytest.raises(StateError, match="diverged"):
            repo.maintenance.purge_and_rewrite(plan)
        assert files(tmp_path / ".trace" / "refs") == before
        assert repo.store.objects.read(OID)


def test_an_image_becomes_a_text(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", [Image("image/png", b"\x89PNG secret pixels")])
        oid = hash_object(encode_blob(b"\x89PNG secret pixels"))
        repo.maintenance.purge_and_rewrite(plan_purge(repo.store, [oid]))
        assert [m.text for m in repo.compile()] == ["[purged]"]


def test_a_signature_goes_and_the_rest_of_its_part_stays(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        parts = [Reasoning("I think.", PIN), ToolCall("c", "run", {"a": 1}), Text("Done.")]
        repo.append("assistant", parts)
        repo.maintenance.purge_and_rewrite(plan_purge(repo.store, [OID]))
        (message,) = repo.compile()
        thought, call, said = message.parts
        assert isinstance(thought, Reasoning)
        assert (thought.text, thought.signature) == ("I think.", None)
        assert isinstance(call, ToolCall)
        assert (call.id, call.name, call.arguments) == ("c", "run", '{"a":1}')
        assert said == Text("Done.")


def test_messages_keep_their_addresses(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path), clock=FixedClock()) as repo:
        asked = repo.append("user", PIN).addresses[0]
        repo.branches.create("side")
        call = repo.append("assistant", [ToolCall("c", "run", {"pin": PIN})]).addresses[0]
        result = repo.append("tool", [ToolResult("c", f"ran with {PIN}")]).addresses[0]
        repo.annotate(asked, priority="pinned")
        repo.edit(result, [ToolResult("c", "ran")])
        repo.branches.switch("side")
        early = repo.append("user", f"again {PIN}")
        late = repo.append("user", "and more")
        repo.branches.switch("main")
        assert repo.cherry_pick(late.oid).outcome == "done"
        repo.merge("side")
        addresses = [asked, call, result, late.addresses[0], early.addresses[0]]
        tips = {name: repo.resolve(name) for name in ("main", "side")}
        before = {name: [m.address for m in repo.compile(name)] for name in tips}
        assert sorted(before["main"]) == sorted(addresses)
        repo.maintenance.purge_and_rewrite(plan_purge(repo.store, [], [PIN]))
    with Repo.open(str(tmp_path)) as repo:
        assert not set(tips.values()) & set(map(repo.resolve, tips))
        for name in tips:
            assert [m.address for m in repo.compile(name)] == before[name]
            assert list(repo.log(name))
        assert not fsck(repo.store, also=[check_derived])
        repo.remove(call)
        hidden = {e.address for e in fold_at(repo, repo.resolve("HEAD")).entries if e.hidden}
        assert hidden == {call, result}
        for address in addresses:
            repo.annotate(address.hex, labels=["named"])
        repo.branches.switch("side")
        repo.edit(late.addresses[0], "and less")
        assert repo.merge("main").outcome == "merged"
        assert sorted(m.address for m in repo.compile()) == sorted({*addresses} - {call, result})
        assert "and less" in [m.text for m in repo.compile()]


def test_who_counts_says_of_what(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", PIN)
        repo.append("assistant", "fine")
        repo.record_usage({"input_tokens": 70, "output_tokens": 7}, model="model-1")
        before = repo.compile().token_count
        assert before == 77
        repo.maintenance.purge_and_rewrite(plan_purge(repo.store, [OID]))
        assert repo.compile().token_count == before


def state_of(found: Fold, before: bytes = b"", after: bytes = b"") -> list[Any]:
    """Return a fold's state without commit ids, with one content replaced by another."""

    def said(parts: Any) -> Any:
        if isinstance(parts, dict):
            return {key: said(each) for key, each in parts.items()}
        if isinstance(parts, list | tuple):
            return [said(each) for each in parts]
        return after if parts == before else parts

    entries = [
        (
            (e.address, said(e.message), [said(v.parts) for v in e.versions], e.current),
            (e.answers, e.hidden, e.ghost, e.priority, e.labels, said(e.keep)),
        )
        for e in found.entries
    ]
    return [*entries, found.links, found.tools, found.measured is None]


@given(long_histories)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(100), deadline=None)
def test_a_context_is_the_same_but_for_what_goes(history: list[list[tuple[Any, ...]]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Repo.init(folder, clock=FixedClock(), durability="fast") as repo,
    ):
        known = [repo.append("user", PIN).addresses[0], *begin(repo)]
        for changed in history:
            write_changes(repo, changed, known)
        old, tip = OID, repo.resolve("HEAD")
        for why in ("once", "twice"):  # rewritten history can be rewritten again
            new = hash_object(encode_blob(f"[purged: {why}]".encode()))
            before = state_of(fold_at(repo, tip), old, new)
            done = rewrite_history(Writer(repo.store, author="ada"), [old], Needles(), why=why)
            assert done.refs == ("refs/heads/main",)
            old, tip = new, done.objects[tip]
            assert tip == repo.resolve("HEAD")
            assert state_of(fold_at(repo, tip)) == before
