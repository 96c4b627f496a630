"""Whole transcripts, invented, packaged and real: nothing is lost, and each record is counted once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import trace_store
from tests.importers.support.states import (
    commits,
    entries,
    parts_of,
    raw_records,
    reachable,
)
from tests.importers.support.transcripts import (
    COUNTS,
    each_real_file,
    lively,
    real_files,
    real_format,
    records_in,
)
from tests.support.valid_requests import assert_valid_requests
from trace_store.context.compiler import ContextCompiler
from trace_store.history.log import log
from trace_store.importers.build_commits import messages_of
from trace_store.importers.import_paths import import_paths
from trace_store.importers.registry import format_of
from trace_store.importers.report import FileReport
from trace_store.importers.sniff import HEAD_BYTES, is_trajectory
from trace_store.maintenance.fsck import fsck
from trace_store.objects.message import load_parts
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.writer import Writer


def check(path: Path, tmp_path: Path) -> None:
    """Check the guarantees of all formats on one file."""
    data = path.read_bytes()
    format = format_of(data[:HEAD_BYTES])
    assert format is not None
    with Store.init(str(tmp_path / "project")) as store:
        report, *others = import_paths(Writer(store), [str(path)]).files
        assert all(other.is_stray for other in others)
        outcomes = Counter[str]()
        for (kind, what), count in report.records.items():
            outcomes["unreadable" if kind == "unreadable" else what] += count

        # Every record comes back byte for byte, except for exact duplicates with the same id.
        kept = Counter(raw_records(store))
        assert all(raw in data for raw in kept)
        lost = outcomes["duplicate"] + outcomes["no-messages"]
        if not format.is_document(data[:HEAD_BYTES]):
            expected = Counter(raw for raw, _ in records_in(data))
            assert set(kept) <= set(expected)
            assert sum(expected.values()) - sum(kept.values()) == lost

        # Each record is counted once, and skipped ones are named.
        assert sum(outcomes.values()) - outcomes["unreadable"] == sum(kept.values()) + lost
        assert len(report.skips) == outcomes["unreadable"] + lost
        if format.NAME == "claude-code":
            check_claude_code(data, report)

        # Calls and results, against a count by ids that knows nothing of messages.
        if format.NAME in COUNTS:
            assert calls_and_results(store) == COUNTS[format.NAME](data)

        # One commit an API message, in the order of a model's view; every state can be folded and read.
        for _, tip in store.refs.iterate("refs/heads/sessions/"):
            assert all(commit.meta["record"] for commit in commits(store, tip))
            for entry in entries(store, tip):
                parts_of(store, entry)

        refs = dict(store.refs.iterate())
        assert import_paths(Writer(store), [str(path)]).commits == 0
        assert dict(store.refs.iterate()) == refs
        assert not [finding for finding in fsck(store) if finding.severity == "error"]


def check_claude_code(data: bytes, report: FileReport) -> None:
    """What a person or a model said is never passed over."""
    types = Counter(str(record.get("type")) for _, record in records_in(data))
    for kind in ("user", "assistant"):
        outcomes = {what: n for (k, what), n in report.records.items() if k == kind}
        assert sum(outcomes.values()) == types[kind]
        assert set(outcomes) <= {"message", "source", "duplicate"}


def calls_and_results(store: Store) -> tuple[set[str], set[str]]:
    """The ids of all calls and of all results in a store."""
    calls, results = set(), set()
    for commit in reachable(store).values():
        for message in messages_of(commit):
            for part in load_parts(message["parts"], store.objects.read):
                if isinstance(part, ToolCall):
                    calls.add(part.id)
                elif isinstance(part, ToolResult):
                    results.add(part.call_id)
    return calls, results


def test_the_invented_transcript(tmp_path: Path) -> None:
    check(Path(lively().write(tmp_path)), tmp_path)


def test_the_packaged_sample(tmp_path: Path) -> None:
    samples = Path(trace_store.__file__).parent / "samples"
    for number, sample in enumerate(sorted(samples.glob("*.jsonl"))):
        check(sample, tmp_path / str(number))


@pytest.mark.parametrize("path", each_real_file())
def test_real_transcripts(path: Path, tmp_path: Path) -> None:
    check(path, tmp_path)


@pytest.mark.parametrize("path", each_real_file())
def test_real_transcripts_that_grow(path: Path, tmp_path: Path) -> None:
    """Importing a truncated and then the complete file equals a single import."""
    data = path.read_bytes()
    format = format_of(data[:HEAD_BYTES])
    assert format is not None
    if format.is_document(data[:HEAD_BYTES]):
        pytest.skip("one document: it does not grow at its end")
    whole = Store.memory()
    import_paths(Writer(whole), [str(path)])
    copy = tmp_path / path.name
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        for cut in (len(data) // 3, len(data) * 2 // 3, len(data)):
            copy.write_bytes(data[:cut])
            import_paths(Writer(store), [str(copy)], format=format.NAME)
        assert dict(store.refs.iterate("refs/heads/")) == dict(whole.refs.iterate("refs/heads/"))


def test_every_real_file_is_of_a_known_format() -> None:
    unknown = [path for path in real_files() if not real_format(path)]
    assert [
        path.name for path in unknown if not is_trajectory(path.read_bytes()[:HEAD_BYTES])
    ] == []


def test_nothing_of_this_machine_is_in_the_store(tmp_path: Path) -> None:
    """Trap C36: the text of a transcript keeps its paths, and Trace adds none."""
    folder = tmp_path / "a-telling-name"
    folder.mkdir()
    path = lively().write(folder)
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [path])
        everything = b"".join(store.objects.read(oid) for oid in store.objects.iterate())
        names = " ".join(name for name, _ in store.refs.iterate())
    assert b"/w/app/parser.py" in everything
    assert b"a-telling-name" not in everything
    assert str(tmp_path).encode() not in everything
    assert "telling" not in names


def test_a_report_is_json(tmp_path: Path) -> None:
    report = import_paths(Writer(Store.memory()), [lively().write(tmp_path)])
    again = json.loads(json.dumps(trace_store.record(report)))
    assert again["outcomes"] == {"message": 20, "source": 7}
    assert again["files"][0]["records"]["assistant"] == {"message": 10}


@pytest.mark.parametrize("path", each_real_file())
def test_every_context_of_a_real_transcript_is_a_valid_request(path: Path, tmp_path: Path) -> None:
    """At the end of each branch, and at commits on the way, compactions among them."""
    with Store.init(str(tmp_path), durability="fast") as store:
        import_paths(Writer(store), [str(path)])
        contexts = ContextCompiler(store)
        for name, tip in store.refs.iterate("refs/heads/"):
            assert contexts.verify(name).matches
            line = [entry.oid for entry in log(store, tip, first_parent=True)]
            for oid in {*line[:: max(1, len(line) // 5)], line[0], line[-1]}:
                context = contexts.compile(oid)
                assert_valid_requests(list(context.messages), context.tools)
