"""A killed import leaves a valid store, and can be resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.importers.support.states import branches, context
from tests.importers.support.transcripts import SESSION, Transcript, call, text
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.importers import write
from trace_store.importers.import_paths import import_paths
from trace_store.maintenance.fsck import fsck
from trace_store.objects.commit import Commit
from trace_store.store.store import Store
from trace_store.writer import Writer

SCRIPT = """
import sys
from trace_store.importers.import_paths import import_paths
from trace_store.store.store import Store
from trace_store.writer import Writer
def progress(path, done, size, lines=[0]):
    lines[0] += 1
    if lines[0] % 100 == 0:
        print(lines[0], flush=True)
with Store.open(sys.argv[1]) as store:
    import_paths(Writer(store), [sys.argv[2]], progress=progress)
"""


def long_transcript(turns: int) -> Transcript:
    t = Transcript()
    for turn in range(turns):
        t.user(f"Question {turn}.")
        t.assistant(f"msg_{turn}", call(f"toolu_{turn}", "Bash", command=f"echo {turn}"))
        t.result(f"toolu_{turn}", f"{turn}\n" * 20)
        t.assistant(f"msg_{turn}b", text(f"It is {turn}."), stop="end_turn")
    return t


def valid(store: Store) -> None:
    findings = [finding for finding in fsck(store) if finding.severity == "error"]
    assert not findings
    for tip in branches(store).values():
        context(store, tip)


@pytest.mark.parametrize("lines", [100, 700, 1300])
def test_a_killed_import_goes_on_where_it_was(tmp_path: Path, lines: int) -> None:
    path = long_transcript(400).write(tmp_path)
    expected = Store.memory()
    import_paths(Writer(expected), [path])
    Store.init(str(tmp_path)).close()
    root = str(tmp_path / ".trace")
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, root, path],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    while process.stdout.readline().strip() != str(lines).encode():
        assert process.poll() is None
    process.kill()
    process.wait()
    process.stdout.close()
    with Store.open(root) as store:
        valid(store)
        done = len(context(store, branches(store)[SESSION])) if branches(store) else 0
        assert done < 1600, "it was killed in the middle"
        assert done >= lines - write.BATCH_COMMITS - 2, "what was written in batches is there"
        report = import_paths(Writer(store), [path])
        assert branches(store) == branches(expected)
        assert report.messages == 1600 - done, "only what was missing is added"
        assert not report.files[0].trashed
        valid(store)


def test_every_batch_is_a_valid_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "BATCH_COMMITS", 3)
    path = long_transcript(6).write(tmp_path)
    store = Store.memory()
    states: list[int] = []
    transact = store.transact

    def watching(*args: object, **options: object) -> object:
        done = transact(*args, **options)  # type: ignore[arg-type]
        states.append(len(context(store, branches(store)[SESSION])))
        return done

    monkeypatch.setattr(store, "transact", watching)
    import_paths(Writer(store), [path])
    assert states == [3, 6, 9, 12, 15, 18, 21, 24, 24], "the last keeps the file"


def test_a_branch_that_moves_meanwhile_is_taken_up_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "BATCH_COMMITS", 4)
    path = long_transcript(4).write(tmp_path)
    store = Store.memory()
    transact = store.transact
    ref = f"refs/heads/sessions/claude-code/{SESSION}"
    moved: list[ObjectId] = []

    def meddling(*args: object, **options: object) -> object:
        tip = store.refs.read(ref)
        if tip is not None and not moved:
            data = Commit((tip,), "somebody", 0, ()).encode()
            oid = hash_object(data)
            moved.append(oid)
            transact(lambda _: Transaction([(oid, data)], [RefEdit(ref, oid, ANY)]))
        return transact(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "transact", meddling)
    report = import_paths(Writer(store), [path])
    tip = branches(store)[SESSION]
    assert moved
    assert len(context(store, tip)) == 16
    assert report.files[0].branches[0].oid == tip
    chain = tip
    while chain != moved[0]:
        (chain,) = Commit.decode(store.objects.read(chain)).parents


def test_progress_is_told(tmp_path: Path) -> None:
    path = long_transcript(3).write(tmp_path)
    told: list[tuple[str, int, int]] = []
    import_paths(Writer(Store.memory()), [path], progress=lambda *step: told.append(step))
    size = os.path.getsize(path)
    assert told[-1] == (path, size - 1, size)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
