"""Purging, end to end: wherever the bytes are, they go, nothing else does, and they do not come back."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.support.histories import put
from tests.support.git import git
from tests.support.subjects import bundles
from trace_cli.porcelain.demo import SAMPLE
from trace_store import Repo, history, importers
from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.compiler import ContextCompiler
from trace_store.contracts import RefEdit, Transaction
from trace_store.errors import InvalidInputError, ObjectNotFoundError, PurgedError
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.purge import Eraser, PurgeReport, plan_purge, purge
from trace_store.maintenance.repack import pack
from trace_store.maintenance.verify_purged import Needles, search
from trace_store.objects.address import Address
from trace_store.objects.codec import MAXIMUM_BLOB_BYTES, encode_blob
from trace_store.objects.commit import Commit
from trace_store.objects.content import ObjectCollector
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.writer import Writer

SECRET = "Zk4-opal-JUNIPER-98213"
SAID = f"The password is {SECRET}, keep it."
OTHERS = [f"an ordinary remark, number {number}" for number in range(8)]


def blob(text: str) -> ObjectId:
    return hash_object(encode_blob(text.encode()))


def texts(store: Store, revision: str = "HEAD") -> list[str]:
    return [message.text for message in ContextCompiler(store).compile(revision)]


def purged(
    store: Store, *texts: str, oids: tuple[ObjectId, ...] = (), why: str = "leaked"
) -> PurgeReport:
    return purge(store, plan_purge(store, oids, texts), why=why, by="Ada", verify=True)


def stands_nowhere(folder: Path, text: str = SECRET) -> None:
    """Assert that a text is in no file, using only the library's decompression."""
    needles = Needles([("text", text.encode())])
    for path in folder.rglob("*"):
        if path.is_file():
            assert not needles.find(path.read_bytes()), path
    with Store.open(str(folder)) as store:
        absence = search(store, {blob(SAID)}, needles, Needles())
    assert absence.is_proven, absence.found or absence.unread


def said(repo: Repo) -> None:
    for number, text in enumerate(OTHERS):
        repo.append("user" if number % 2 else "assistant", text)
        if number == 3:
            repo.append("user", SAID)


def as_loose(repo: Repo) -> None:
    repo.store.objects.write(encode_blob(SAID.encode()))
    said(repo)


def as_packed(repo: Repo) -> None:
    said(repo)
    repo.seal()
    pack(repo.store)


def as_dictionary(repo: Repo) -> None:
    """Pack it where the dictionary of a pack holds its line, and others repeat that."""
    lines = "".join(f"line {number} of a long log\n" for number in range(40))
    for number in range(60):
        filler = random.Random(number).randbytes(3000).hex()
        repo.append("user", f"{lines}{SAID}\n{filler}")
    repo.seal()
    pack(repo.store, frame_bytes=16 * 1024)


def as_sealed_and_journal(repo: Repo) -> None:
    said(repo)
    repo.seal()
    repo.append("user", SAID)
    repo.append("assistant", f"again: {SAID}")


def with_caches(repo: Repo) -> None:
    said(repo)
    repo.seal()
    assert repo.compile().token_count
    list(repo.log())
    folder = Path(repo.store.layout.cache_dir)
    (folder / "search").mkdir(parents=True)
    (folder / "search" / "words").write_text(SAID)


def with_scratch(repo: Repo) -> None:
    said(repo)
    tmp = Path(repo.store.layout.tmp_dir)
    tmp.mkdir(exist_ok=True)
    (tmp / "object-999999999-0123456789ab").write_bytes(b"\xb0" + encode_blob(SAID.encode()))
    lost = Path(repo.store.layout.root) / "lost-found"
    lost.mkdir()
    (lost / "piece").write_text(f"…{SAID}")


PLACES = [
    as_loose,
    said,
    as_packed,
    as_dictionary,
    as_sealed_and_journal,
    with_caches,
    with_scratch,
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_it_goes_from_wherever_it_is(tmp_path: Path, place: Callable[[Repo], None]) -> None:
    with Repo.init(str(tmp_path)) as repo:
        place(repo)
        before = texts(repo.store)
        report = purged(repo.store, SECRET)
        assert report.absence is not None
        assert report.absence.is_proven, report.absence
        assert not report.left
        after = texts(repo.store)
        assert [t for t in before if SECRET not in t] == [t for t in after if "[purged" not in t]
        assert len(after) == len(before)
        assert {f.code for f in fsck(repo.store)} == {"object-purged"}
    stands_nowhere(tmp_path / ".trace")
    with Repo.open(str(tmp_path)) as repo:
        assert texts(repo.store) == after


def test_everyone_who_held_it_is_listed(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", "before")
        store = repo.store
        early = store.refs.head().oid
        repo.append("user", SAID)
        holder = store.refs.head().oid
        repo.append("assistant", "thanks")
        assert early
        assert holder
        edits = [
            RefEdit("refs/tags/early", early, None),
            RefEdit("refs/tags/v1", holder, None),
            RefEdit("refs/checkpoints/nightly", store.refs.head().oid, None),
        ]
        store.transact(lambda _: Transaction((), edits))
        repo.record_usage({"input_tokens": 5, "output_tokens": 2}, model="model-1")
        plan = plan_purge(store, [], [SECRET])
        (found,) = plan.holders.commits
        assert (found.commit, found.messages) == (holder, (Address.of(holder, 0),))
        assert found.refs == ("refs/checkpoints/nightly", "refs/heads/main", "refs/tags/v1")
        (sent,) = plan.holders.contexts
        assert sent.model == "model-1"
        assert plan.guessable == plan.objects


def test_a_message_is_named_by_its_address_wherever_it_is_held(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        first = repo.append("user", "before").addresses[0]
        repo.branches.create("side")
        repo.append("user", "meanwhile")
        repo.branches.switch("side")
        edited = repo.edit(first, SAID)
        said = repo.append("user", SAID)
        repo.branches.switch("main")
        repo.cherry_pick(said.oid)
        picked = repo.resolve("HEAD")
        plan = plan_purge(repo.store, [], [SECRET])
        assert {held.commit: held.messages for held in plan.holders.commits} == {
            edited.oid: (first,),
            said.oid: tuple(said.addresses),
            picked: tuple(said.addresses),
        }


def test_content_that_others_hold_too_is_told(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", SECRET)
        repo.append("user", SAID)
        plan = plan_purge(repo.store, [blob(SECRET)])
        assert plan.objects == (blob(SECRET),)
        assert plan.elsewhere == (blob(SAID),)
        report = purge(repo.store, plan, verify=True)
        assert report.absence is not None
        assert report.absence.is_proven  # for the object, as requested
        assert texts(repo.store)[1] == SAID


def test_the_text_of_a_commit_stays_and_is_told(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", SAID)

        tip = repo.store.refs.head().oid
        assert tip is not None
        data = Commit((tip,), "Ada", 1, (), message=f"about {SECRET}").encode()
        oid = put(repo.store, data, "refs/heads/main")
        report = purged(repo.store, SECRET)
        assert report.plan.structure == (oid,)
        assert report.absence is not None
        assert not report.absence.is_proven


def test_content_in_chunks_goes_also_where_the_text_is_cut(tmp_path: Path) -> None:
    half = len(SECRET) // 2
    content = b"x" * (MAXIMUM_BLOB_BYTES - half) + SECRET.encode() + b"y" * 100
    with Store.init(str(tmp_path)) as store:
        gathering = ObjectCollector()
        list_id = gathering.put(content)
        store.transact(lambda _: Transaction(gathering.objects))
        report = purged(store, SECRET)
        assert set(report.plan.objects) == {oid for oid, _ in gathering.objects}
        with pytest.raises(PurgedError):
            store.objects.read(list_id)


@pytest.mark.parametrize("wrong", ["commit", "absent", "short"])
def test_a_refusal_changes_nothing(tmp_path: Path, wrong: str) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", SAID)
        repo.seal()
        before = state(tmp_path)
        tip = repo.store.refs.head().oid
        assert tip is not None
        oids, searched = {
            "commit": ([tip], []),
            "absent": ([hash_object(b"nothing")], []),
            "short": ([], ["ab"]),
        }[wrong]
        with pytest.raises((InvalidInputError, ObjectNotFoundError)):
            plan_purge(repo.store, oids, searched)
        assert state(tmp_path) == before


def state(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted((folder / ".trace").rglob("*")) if p.is_file()}


def test_a_transcript_is_imported_again_without_what_was_purged(tmp_path: Path) -> None:
    lines = Path(SAMPLE).read_text(encoding="utf-8").splitlines()
    victim = next(
        text
        for line in lines
        if isinstance(text := json.loads(line).get("message", {}).get("content"), str)
        and len(text) > 40
    )
    source = tmp_path / "session.jsonl"
    shutil.copyfile(SAMPLE, source)
    with Repo.init(str(tmp_path)) as repo:
        importers.import_paths.import_paths(Writer(repo.store), [str(source)])
        ref = next(n for n, _ in repo.store.refs.iterate("refs/heads/sessions/"))
        tip = repo.store.refs.read(ref)
        assert victim in texts(repo.store, ref)
        report = purged(repo.store, victim)
        assert report.absence is not None
        assert report.absence.is_proven, report.absence.found
        again = importers.import_paths.import_paths(Writer(repo.store), [str(source)])
        assert not again.files[0].skips
        assert repo.store.refs.read(ref) == tip
        assert repo.store.objects.reappeared() == []
    with Repo.init(str(tmp_path / "second")) as other:
        shutil.copytree(
            tmp_path / ".trace" / "tombstones", tmp_path / "second" / ".trace" / "tombstones"
        )
        importers.import_paths.import_paths(Writer(other.store), [str(source)])
        assert victim not in texts(other.store, ref)
        assert any(text.startswith("[purged") for text in texts(other.store, ref))
        other.seal()
    stands_nowhere(tmp_path / "second" / ".trace", victim)


def test_a_clone_knows_and_a_merge_that_brings_the_bytes_back_is_told_and_undone(
    tmp_path: Path,
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    git(here, "init", "-q", "-b", "main")
    with Repo.init(str(here)) as repo:
        said(repo)
        repo.seal()
        git(here, "add", ".trace")
        git(here, "commit", "-qm", "one")
        git(here, "switch", "-qc", "other")
        repo.append("user", "on the other branch")
        repo.seal()
    pack_names = set(os.listdir(here / ".trace" / "objects" / "pack"))
    git(here, "add", "-A", ".trace")
    git(here, "commit", "-qm", "two")
    git(here, "switch", "-q", "main")
    with Repo.open(str(here)) as repo:
        assert purged(repo.store, SECRET).tombstones == 1
    git(here, "add", "-A", ".trace")
    git(here, "commit", "-qm", "purge")
    git(tmp_path, "clone", "-q", "here", "there")
    with Repo.open(str(tmp_path / "there")) as clone:
        assert sum(text.startswith("[purged") for text in texts(clone.store)) == 1
        with pytest.raises(PurgedError):
            clone.append("user", SAID)
    git(here, "checkout", "-q", "other", "--", ".trace/objects")
    assert pack_names & set(os.listdir(here / ".trace" / "objects" / "pack"))
    with Repo.open(str(here)) as repo:
        assert repo.status().returned == (blob(SAID),)
        assert "purged-object-present" in {f.code for f in fsck(repo.store)}
        assert sum(text.startswith("[purged") for text in texts(repo.store)) == 1
        report = purge(repo.store, plan_purge(repo.store), verify=True)
        assert report.absence is not None
        assert report.absence.is_proven
        assert repo.status().returned == ()
    stands_nowhere(here / ".trace")


def test_calls_of_tools_and_reasoning_stay_what_they_are(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        repo.append("user", "run it")
        repo.append("assistant", [ToolCall("c1", "run", {"key": SECRET})])
        repo.append("tool", [ToolResult("c1", f"ran with {SECRET}")])
        purged(repo.store, SECRET)
        rendered = repo.compile().to_openai()["messages"]
        arguments = json.loads(rendered[1]["tool_calls"][0]["function"]["arguments"])
        assert arguments["purged"].startswith("[purged")
        assert rendered[2]["content"].startswith("[purged")
        for request in (repo.compile().to_anthropic(), repo.compile().to_gemini()):
            assert SECRET not in json.dumps(request)
            assert "[purged" in json.dumps(request)


def test_a_bundle_of_a_purged_history_carries_its_tombstones(tmp_path: Path) -> None:
    bundle = str(tmp_path / "all.bundle")
    with Repo.init(str(tmp_path / "a")) as repo:
        said(repo)
        purged(repo.store, SECRET)
        repo.bundles.create(bundle, everything=True)
    bundles().verify(bundle, alone=True)
    with Repo.init(str(tmp_path / "b")) as other:
        bundles(other.store).import_(bundle)
        assert sum("[purged" in text for text in texts(other.store)) == 1
        assert {f.code for f in fsck(other.store)} == {"object-purged"}
        with pytest.raises(PurgedError):
            other.append("user", SAID)
    with Repo.init(str(tmp_path / "c")) as third:
        third.append("user", SAID)
        bundles(third.store).import_(bundle, prefix="theirs")
        assert texts(third.store) == [SAID]  # other people's tombstones do not delete local content


def test_a_bundle_from_before_the_purge_is_taken_without_what_was_purged(tmp_path: Path) -> None:
    bundle = str(tmp_path / "all.bundle")
    with Repo.init(str(tmp_path / "a")) as repo:
        said(repo)
        repo.bundles.create(bundle, everything=True)
        purged(repo.store, SECRET)
        repo.append("user", "later")
        repo.bundles.import_(bundle, prefix="theirs")
        assert repo.store.objects.reappeared() == []
    with Repo.init(str(tmp_path / "b")) as other:
        shutil.copytree(
            tmp_path / "a" / ".trace" / "tombstones", tmp_path / "b" / ".trace" / "tombstones"
        )
        report = bundles(other.store).import_(bundle)
        assert report.packs
        assert texts(other.store)[:4] == OTHERS[:4]
        assert "[purged" in texts(other.store)[4]
    stands_nowhere(tmp_path / "b" / ".trace")


def test_a_clone_that_learns_of_a_purge_shows_nothing_of_it_from_its_caches(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path / "a")) as repo:
        said(repo)
        repo.seal()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with Repo.open(str(tmp_path / "b")) as clone:
        told = [history.summary.summary(clone.store, entry.commit) for entry in clone.log()]
        assert any(SECRET in line for line in told)
        before = clone.compile().token_count
    with Repo.open(str(tmp_path / "a")) as repo:
        purged(repo.store, SECRET)
        expected = repo.compile().token_count
    shutil.copytree(
        tmp_path / "a" / ".trace" / "tombstones", tmp_path / "b" / ".trace" / "tombstones"
    )
    trace = [sys.executable, "-m", "trace_cli", "-C", str(tmp_path / "b")]
    log = subprocess.run([*trace, "log"], capture_output=True, text=True, check=True).stdout
    assert SECRET not in log
    assert "[purged" in log
    with Repo.open(str(tmp_path / "b")) as clone:
        assert clone.compile().token_count == expected != before


@pytest.mark.parametrize(("count", "kept_out"), [(1, True), (200, False)])
def test_texts_that_are_too_many_are_not_refused_afterwards_and_that_is_told(
    tmp_path: Path, count: int, kept_out: bool
) -> None:
    with Repo.init(str(tmp_path)) as repo:
        said(repo)
        repo.seal()
        others = [f"{SECRET} and number {number}" for number in range(count - 1)]
        report = purged(repo.store, SECRET, *others)
        assert (report.tombstones, report.kept_out) == (1, kept_out)
        assert report.packs == 1
        again = f"Once more: {SECRET}."
        if kept_out:
            with pytest.raises(PurgedError):
                repo.append("user", again)
        else:
            repo.append("user", again)


def test_each_other_file_with_the_content_is_counted(tmp_path: Path) -> None:
    places = (
        "tmp/left",
        "cache/search.sqlite3",
        "lost-found/old",
        "index/notes",
        "local/imports/x",
    )
    counts = []
    for number in range(len(places) + 1):
        with Repo.init(str(tmp_path / str(number))) as repo:
            as_loose(repo)
            for place in places[:number]:
                file = tmp_path / str(number) / ".trace" / place
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(SAID)
            counts.append(purged(repo.store, SECRET).files)
    assert counts == [counts[0] + number for number in range(len(places) + 1)]


def test_what_was_removed_is_counted(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        as_loose(repo)
        report = purged(repo.store, SECRET)
        assert (report.tombstones, report.packs, report.damaged) == (1, 0, ())
        files = report.files
        nothing = purged(repo.store, "is in no file of this repository")
        assert (nothing.tombstones, nothing.packs) == (0, 0)
        assert files > nothing.files >= 0
        assert purged(repo.store, "is in no file of this repository").files == 0


def test_what_another_process_writes_again_meanwhile_goes_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []
    clean = Eraser.clean

    def clean_and_write(self: Eraser) -> None:
        clean(self)
        rounds.append(len(rounds))
        if len(rounds) < returns:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    monkeypatch.setattr(Eraser, "clean", clean_and_write)
    for returns in (1, 3):
        folder = tmp_path / str(returns)
        with Repo.init(str(folder)) as repo:
            as_loose(repo)
            repo.seal()
            path = Path(repo.store.layout.loose_file(blob(SAID).hex()))
            data = path.read_bytes()
            rounds.clear()
            purged(repo.store, SECRET)
            assert rounds == list(range(returns))
            assert repo.store.objects.reappeared() == []
        stands_nowhere(folder / ".trace")


def test_a_text_that_is_only_in_the_message_of_a_commit_is_found(tmp_path: Path) -> None:
    with Repo.init(str(tmp_path)) as repo:
        said(repo)
        assert plan_purge(repo.store, (), [SECRET]).is_found
        assert not plan_purge(repo.store, (), ["Zk5-amber-JUNIPER-11111"]).is_found
    with Repo.init(str(tmp_path / "other")) as repo:
        repo.append("user", OTHERS[0])
        made = repo.append("user", OTHERS[1], message=f"note {SECRET}").oid
        plan = plan_purge(repo.store, (), [SECRET])
        assert (plan.objects, plan.structure, plan.is_found) == ((), (made,), True)


def test_content_that_other_messages_will_have_is_not_purged_by_its_id() -> None:
    with Repo.memory() as repo:
        for text in ("yes", "no", "yes", "x" * 15, "y" * 16):
            repo.append("user", text)
        ids = {text: blob(text) for text in ("yes", "no", "x" * 15, "y" * 16)}
        for chosen, refusal in (
            (["yes"], f"blob {ids['yes'].short()} has only 3 bytes: 2 messages have it"),
            (["no"], f"blob {ids['no'].short()} has only 2 bytes: 1 message has it"),
            (["yes", "no"], f"blob {ids['yes'].short()} has only 3 bytes: 3 messages have it"),
            (["x" * 15], "has only 15 bytes"),
        ):
            plan = plan_purge(repo.store, [ids[text] for text in chosen])
            with pytest.raises(InvalidInputError, match=refusal):
                purge(repo.store, plan, why="x")
        plan = plan_purge(repo.store, [ids["y" * 16]])
        assert purge(repo.store, plan, why="x", dry_run=True).tombstones == 0
        plan.check_common()
