"""Deliberately broken files: imported without loss, repaired for all providers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.importers.support.broken import DAMAGES, Damage, healthy, lines
from tests.importers.support.states import PREFIX, branches, raw_records
from tests.importers.support.transcripts import (
    SESSION,
    each_real_transcript,
    lively,
    records_in,
)
from tests.support.subjects import sessions
from tests.support.valid_requests import assert_valid_requests
from trace_store.context.compiled import CompiledContext
from trace_store.context.compiler import ContextCompiler
from trace_store.history.branch_repair import REPAIRED, REPAIRED_BEFORE, SOUND, ContextRepairReport
from trace_store.importers.import_paths import import_paths
from trace_store.maintenance.fsck import fsck
from trace_store.objects.message import load_parts
from trace_store.providers.rendering import RENDERERS
from trace_store.store.store import Store
from trace_store.writer import Writer


def assert_sound(context: CompiledContext) -> None:
    """Every renderer accepts it unchanged; independent checkers accept the requests."""
    for name in RENDERERS:
        context.render(name, strict=True)
    assert_valid_requests(list(context.messages), context.tools, strict=True)


def assert_nothing_lost(contexts: ContextCompiler, report: ContextRepairReport) -> None:
    """The repaired branch has each original message, shown or hidden."""
    read = contexts.store.objects.read
    repaired = contexts.fold(contexts.store.refs.read(report.repaired) or b"")
    wordings = {
        entry.address: [load_parts(version.parts, read) for version in entry.versions]
        for entry in repaired.entries
    }
    for message in contexts.compile(report.commit).messages:
        assert message.parts in wordings[message.address]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_a_broken_file_is_imported_and_repaired(damage: Damage, tmp_path: Path) -> None:
    data = damage.data()
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(data)
    with Store.init(str(tmp_path / "project")) as store:
        file, *others = import_paths(Writer(store), [str(path)]).files
        assert all(other.is_stray for other in others)
        assert {skip.reason for skip in file.skips} == set(damage.skips)
        assert set(raw_records(store)) == {raw for raw, _ in records_in(data)}

        contexts = ContextCompiler(store)
        ref = PREFIX + SESSION
        names = set(branches(store))
        tip = store.refs.read(ref)
        before = contexts.compile(ref).prefix_hashes()
        dry = sessions(contexts.store).repair(ref, dry_run=True)
        assert Counter(fault.code for fault in dry.faults) == damage.finds
        assert set(branches(store)) == names

        report = sessions(contexts.store).repair(ref)
        assert report.faults == dry.faults
        assert store.refs.read(ref) == tip
        assert contexts.compile(ref).prefix_hashes() == before
        if not damage.finds:
            assert report.outcome == SOUND
            assert_sound(contexts.compile(ref))
            return
        assert (report.outcome, report.repaired) == (REPAIRED, dry.repaired)
        assert_sound(contexts.compile(report.repaired))
        assert_nothing_lost(contexts, report)
        assert contexts.verify(report.repaired).matches
        assert sessions(contexts.store).repair(ref).outcome == REPAIRED_BEFORE
        assert sessions(contexts.store).repair(report.repaired).outcome == SOUND
        assert not [finding for finding in fsck(store) if finding.severity == "error"]


def test_there_are_many_ways() -> None:
    broken = [damage for damage in DAMAGES if damage.finds]
    assert len({damage.name for damage in broken}) >= 12
    assert all(damage.data() != b"".join(lines()) for damage in DAMAGES)


@pytest.mark.parametrize("transcript", [healthy(), lively()], ids=["healthy", "lively"])
def test_a_whole_file_is_left_alone(transcript: object, tmp_path: Path) -> None:
    """Rewinds, compactions and parallel calls are nothing to repair."""
    store = Store.memory()
    import_paths(Writer(store), [transcript.write(tmp_path)])  # type: ignore[attr-defined]
    contexts = ContextCompiler(store)
    refs = dict(store.refs.iterate())
    for name, _ in store.refs.iterate("refs/heads/"):
        assert sessions(contexts.store).repair(name).outcome == SOUND
        assert_sound(contexts.compile(name))
    assert dict(store.refs.iterate()) == refs


@pytest.mark.parametrize("length", range(1, len(healthy().data), 97))
def test_a_file_cut_anywhere(length: int, tmp_path: Path) -> None:
    """A session can continue wherever a write was torn."""
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(healthy().data[:length])
    store = Store.memory()
    import_paths(Writer(store), [str(path)], format="claude-code")
    contexts = ContextCompiler(store)
    for name in branches(store):
        report = sessions(contexts.store).repair(PREFIX + name)
        assert_sound(contexts.compile(report.repaired or PREFIX + name))


@pytest.mark.parametrize("path", each_real_transcript())
def test_real_transcripts_are_sound_or_repaired(path: Path, tmp_path: Path) -> None:
    with Store.init(str(tmp_path), durability="fast") as store:
        import_paths(Writer(store), [str(path)])
        contexts = ContextCompiler(store)
        for name, tip in list(store.refs.iterate("refs/heads/")):
            report = sessions(contexts.store).repair(name)
            assert store.refs.read(name) == tip
            assert_sound(contexts.compile(report.repaired or name))
            if report.outcome == REPAIRED:
                assert_nothing_lost(contexts, report)
