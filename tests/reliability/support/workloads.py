"""What is done while the power may be cut: one workload for each thing that writes."""

from __future__ import annotations

from io import BytesIO

from tests.importers.support.transcripts import Transcript, text
from tests.reliability.support.holdings import ELSEWHERE, FOLDER
from tests.reliability.support.recordings import Recording, fresh
from tests.store.support.histories import MAIN, OTHER, append, move
from tests.support.subjects import bundles as bundles_of
from tests.support.subjects import upkeep
from trace_store import Repo
from trace_store.base.ident import FixedClock
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import Transaction
from trace_store.disk.files import create_file, read_file
from trace_store.exporters.contract import Exported
from trace_store.exporters.files import save_file
from trace_store.importers.import_paths import import_paths
from trace_store.journal import published
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.ingest import PackReceiver
from trace_store.refs.database import RefDatabase
from trace_store.store.store import Store
from trace_store.writer import Writer

LOOSE = encode_blob(b"loose 0")
LARGE = "large " * 1000


def init(recording: Recording) -> None:
    """Make a repository."""
    Store.init(FOLDER, clock=recording.clock, disk=recording.disk).close()
    recording.done("init")


def appends(recording: Recording) -> None:
    """Commit by commit, from one handle and from another."""
    store = recording.open()
    for number in range(3):
        append(store, f"message {number}", durability="durable")
        recording.done(f"append {number}")
    with recording.open() as other:
        append(other, "message of another", durability="durable")
        recording.done("append of another")
    store.close()


def seals(recording: Recording) -> None:
    """Seal again and again."""
    store = recording.open()
    for number in range(3):
        append(store, f"message {number}", durability="durable")
        recording.done(f"append {number}")
        append(store, f"message {number} aside", OTHER, durability="durable")
        recording.done(f"append {number} aside")
        seal(store)
        recording.done(f"seal {number}")
    store.close()


def refs(recording: Recording) -> None:
    """Move refs and delete them, sealed and not."""
    store = recording.open()
    first = append(store, "first", durability="durable")
    recording.done("append")
    second = append(store, "second", durability="durable")
    recording.done("append again")
    for sealed in (False, True):
        move(store, OTHER, second)
        recording.done("create")
        if sealed:
            seal(store)
            recording.done("seal")
        move(store, MAIN, first)
        recording.done("move back")
        move(store, OTHER, None)
        recording.done("delete")
        if sealed:
            seal(store)
            recording.done("seal again")
    store.close()


def resets(recording: Recording) -> None:
    """Reset to an earlier state across several seals."""
    store = recording.open()
    tips = []
    for number in range(2):
        tips.append(append(store, f"message {number}", durability="durable"))
        recording.done(f"append {number}")
        seal(store)
        recording.done(f"seal {number}")
    move(store, MAIN, tips[0])
    recording.done("move back")
    seal(store)
    recording.done("seal")
    move(store, MAIN, None)
    recording.done("delete")
    seal(store)
    recording.done("seal without it")
    store.close()


def packs(recording: Recording) -> None:
    """Pack loose objects, sealed and unsealed."""
    store = recording.open()
    for number in range(2):
        append(store, f"message {number}", durability="durable")
        recording.done(f"append {number}")
        store.objects.write(encode_blob(b"loose %d" % number))
        recording.done(f"write {number}")
        pack(store)
        recording.done(f"pack {number}")
    store.close()


def settings(recording: Recording) -> None:
    """Put HEAD elsewhere, and change a setting."""
    store = recording.open()
    tip = append(store, "first", durability="durable")
    recording.done("append", gradual=True)
    for target in (OTHER, tip, MAIN):
        store.refs.set_head(target, message="switch", author="tester")
        recording.done(f"HEAD at {target}")
    store.config.set("default_branch", "trunk")
    recording.done("setting")
    store.close()


def diverged(recording: Recording) -> None:
    """Continue a branch to which git has added another person's tip."""
    store = recording.open()
    first = append(store, "first", durability="durable")
    recording.done("first")
    ours = append(store, "ours", durability="durable")
    recording.done("ours")
    number, theirs = 0, ours
    while theirs >= ours:  # so that only the published tips tell which is whose
        number += 1
        theirs = append(store, f"theirs {number}", OTHER, parent=first, durability="durable")
        recording.done(f"theirs {number}")
    seal(store)
    recording.done("begin")
    assert isinstance(store.refs, RefDatabase)
    store.refs.files.add(MAIN, theirs)
    recording.done("git brings a tip")
    seal(store)
    recording.done("accept it")
    append(store, "ours goes on", durability="durable")
    recording.done("append")
    seal(store)
    recording.done("seal")
    move(store, MAIN, first)
    recording.done("settle")
    store.close()


def many_refs(recording: Recording) -> None:
    """Seal enough refs for a table."""
    limit, published.MAXIMUM_CHANGED = published.MAXIMUM_CHANGED, 1
    try:
        store = recording.open()
        for number in range(3):
            append(store, f"message {number}", f"refs/heads/{number}", durability="durable")
            append(store, f"message {number}", durability="durable")
            seal(store)
            recording.done(f"seal {number}", gradual=True)
        store.close()
    finally:
        published.MAXIMUM_CHANGED = limit


def bundles(recording: Recording) -> None:
    """Write a bundle, and take one in that brings another tip."""
    with Store.memory(clock=FixedClock(1)) as other:
        append(other, "theirs")
        data: list[bytes] = []
        bundles_of(other).create(data.append, "main")
    store = recording.open()
    append(store, "ours", durability="durable")
    recording.done("begin", gradual=True)
    rest = BytesIO(b"".join(data))
    bundles_of(store).import_(rest.read)
    recording.done("import", gradual=True)
    bundles_of(store).create(f"{FOLDER}/all.bundle", everything=True)
    recording.done("bundle")
    store.close()


def objects_alone(recording: Recording) -> None:
    """Store unreachable objects: in a transaction, and in a foreign pack."""
    store = recording.open()
    for number in range(2):
        blob = encode_blob(b"alone %d" % number)
        transaction = Transaction([(hash_object(blob), blob)], [], "")
        store.transact(lambda _, made=transaction: made)  # type: ignore[misc]
        recording.done(f"write {number}")
        seal(store)
        recording.done(f"seal {number}")
    store.close()


def received(recording: Recording) -> None:
    """Take a pack from elsewhere."""
    elsewhere = Recording(fresh())
    with elsewhere.open() as other:
        append(other, "from elsewhere")
        [name] = seal(other).packs
        data = read_file(other.disk, other.layout.pack_file(name)) or b""
    with recording.open() as store:
        assert isinstance(store.objects, ObjectDatabase)
        receiver = PackReceiver(store.disk, store.layout, store.objects)
        receiver.add(data, "the pack")
        receiver.publish()
        recording.done("keep")


def exports(recording: Recording) -> None:
    """Save a file twice."""
    disk, path = recording.disk, f"{FOLDER}/session.md"
    save_file(disk, path, Exported(b"first " * 200, (), "session.md"))
    recording.done("save")
    save_file(disk, path, Exported(b"second", (), "session.md"), overwrite=True)
    recording.done("save over it")


def imports(recording: Recording) -> None:
    """Import a transcript, and once more when it has grown."""
    path = f"{ELSEWHERE}/session.jsonl"
    transcript = Transcript()
    for turn in range(3):
        transcript.user(f"Question {turn}.")
        transcript.assistant(f"msg_{turn}", text(f"Answer {turn}."), stop="end_turn")
    lines = [f"{line}\n".encode() for line in transcript.lines]
    with recording.open() as store:
        for number, count in enumerate((4, len(lines))):
            recording.disk.make_directory(ELSEWHERE)
            recording.disk.remove(path)
            create_file(recording.disk, path, b"".join(lines[:count]))
            import_paths(Writer(store), [path])
            recording.done(f"import {number}", gradual=True)
        seal(store)
        recording.done("seal")


def front_door(recording: Recording) -> None:
    """Use the verbs that one types, which keep derived files besides."""
    repo = Repo(recording.open(), author="tester")
    repo.append("user", "Which day is the freeze?")
    recording.done("append")
    repo.compile()
    with repo.batch("two at once") as batch:
        batch.append("assistant", "Monday.")
        batch.annotate("HEAD.0", priority="pinned")
    recording.done("batch")
    repo.compile()
    repo.edit("HEAD~1.0", "Which day?")
    recording.done("edit")
    repo.seal()
    recording.done("seal")
    repo.compile()
    repo.close()


def batch(recording: Recording) -> None:
    """Let transactions share their syncs."""
    with recording.open(durability="batch") as store:
        for number in range(3):
            append(store, f"message {number}", durability="batch")
            recording.done(f"append {number}", durable=False)
        store.sync()
        recording.done("sync")
        append(store, "behind it", durability="batch")
        recording.done("append behind it", durable=False)
    recording.done("close")


def fast(recording: Recording) -> None:
    """Sync only in a seal."""
    with recording.open(durability="fast") as store:
        for number in range(3):
            append(store, f"message {number}", durability="fast")
            recording.done(f"append {number}", durable=False)
        seal(store)
        recording.done("seal")
        append(store, "behind it", durability="fast")
        recording.done("append behind it", durable=False)
    recording.done("close", durable=False)


def collects(recording: Recording) -> None:
    """Quarantine unreachable packed and loose objects, restore them, and delete them."""
    store = recording.open()
    append(store, "kept", durability="fast")
    lone = append(store, "lone", OTHER, parent=None, durability="fast")
    seal(store)
    move(store, OTHER, None)
    store.objects.write(encode_blob(b"loose"))
    seal(store)
    for name in (MAIN, OTHER, "HEAD"):
        store.disk.remove(store.layout.log_file(name))
    recording.done("give up", gradual=True)
    upkeep(store).prune(grace_days=0)
    recording.done("prune")
    move(store, OTHER, lone)
    recording.done("bring back")
    upkeep(store).gc(grace_days=0, reflog_days=0)
    recording.done("gc", drops=True)
    store.close()


def goes_on(recording: Recording) -> None:
    """What another process does where one was killed: it says of each thing that it is done."""
    with recording.open() as store:
        recording.promise(store.objects.write(LOOSE))
        recording.done("write", settles=False)
        append(store, "goes on", durability="durable")
        recording.done("append")
        seal(store)
        recording.done("seal")
        append(store, "goes on", OTHER, durability="durable")
        recording.done("append again")
        seal(store)
        recording.done("seal again")


def seals_on(recording: Recording) -> None:
    """What another process does where one was killed while it sealed."""
    with recording.open() as store:
        seal(store)
        recording.done("seal")
        seal(store)
        append(store, "goes on", "refs/heads/third", durability="durable")
        recording.done("append")
        seal(store)
        recording.done("seal again")


def loose(recording: Recording) -> None:
    """Write an object into a file of its own."""
    with recording.open() as store:
        store.objects.write(LOOSE)
        recording.done("write")


def takes_large(recording: Recording) -> None:
    """Take a pack from elsewhere with an object so large that it is looked for in packs before it is written."""
    elsewhere = Recording(fresh())
    with elsewhere.open() as other:
        append(other, LARGE)
        [name] = seal(other).packs
        data = read_file(other.disk, other.layout.pack_file(name)) or b""
    taken: list[ObjectId] = []
    with recording.open() as store:
        assert isinstance(store.objects, ObjectDatabase)
        receiver = PackReceiver(store.disk, store.layout, store.objects)
        receiver.add(data, "the pack", lambda found: taken.append(found.oid))
        receiver.publish()
        for oid in taken:
            recording.promise(oid)
        recording.done("keep")


def says_large(recording: Recording) -> None:
    """Append a message whose content another process has stored."""
    with recording.open() as store:
        append(store, LARGE, durability="durable")
        recording.done("append")


def takes_large_again(recording: Recording) -> None:
    """Take the same pack in another process, which finds all of it here."""
    takes_large(recording)
