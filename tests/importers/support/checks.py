"""What tests of every format hold against a file: that it grows as it should, and that no shape of it does harm."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hypothesis.strategies as st

from tests.importers.support.states import raw_records
from trace_store.base.oid import ObjectId
from trace_store.importers.contract import Format
from trace_store.importers.discovery import OTHER_FORMAT
from trace_store.importers.import_paths import import_paths
from trace_store.importers.registry import format_of
from trace_store.importers.report import FileReport
from trace_store.maintenance.fsck import fsck
from trace_store.store.store import Store
from trace_store.writer import Writer

Json = Any
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["user", "assistant", "tool", "x" * 300, "\ud83d", "message", "reasoning"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def heads(store: Store) -> dict[str, ObjectId]:
    """The branches of sessions, by name."""
    return dict(store.refs.iterate("refs/heads/sessions/"))


def lines_of(records: Sequence[Json]) -> bytes:
    """Records as a file, one a line."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def import_by_lines(store: Store, path: Path, data: bytes, onto: str | None = None) -> None:
    """Let a file grow by a line at a time, and import it after each."""
    path.write_bytes(b"")
    for line in data.splitlines(keepends=True):
        with path.open("ab") as file:
            file.write(line)
        import_paths(Writer(store), [str(path)], format="claude-code", onto=onto)


def assert_grows(tmp_path: Path, data: bytes, name: str, format: str | None = None) -> None:
    """Assert that importing a file after each of its lines equals a single import."""
    whole = tmp_path / "whole" / name
    whole.parent.mkdir()
    whole.write_bytes(data)
    expected = Store.memory()
    import_paths(Writer(expected), [str(whole)], format=format)
    path = tmp_path / name
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        lines = data.splitlines(keepends=True)
        for count in range(1, len(lines) + 1):
            path.write_bytes(b"".join(lines[:count]))
            import_paths(Writer(store), [str(path)], format=format)
        assert heads(store) == heads(expected)
        again = import_paths(Writer(store), [str(path)], format=format)
        assert (again.commits, again.files[0].skipped) == (0, "unchanged")
        assert not [finding for finding in fsck(store) if finding.severity == "error"]


def assert_counted_once(store: Store, report: FileReport, records: int) -> None:
    """Assert that so many records are each in the report once, and kept once unless a skip names them."""
    outcomes = Counter[str]()
    for (kind, what), count in report.records.items():
        outcomes["unreadable" if kind == "unreadable" else what] += count
    assert sum(outcomes.values()) == records
    lost = outcomes["unreadable"] + outcomes["duplicate"] + outcomes["no-messages"]
    assert len(raw_records(store)) == records - lost
    assert len(report.skips) == lost


def assert_skips_named(report: FileReport) -> None:
    """Assert that each record that could not be read has a skip."""
    lost = sum(
        count
        for (kind, what), count in report.records.items()
        if kind == "unreadable" or what == "no-messages"
    )
    assert len(report.skips) == lost


def assert_recognised(format: Format, head: bytes, known: bool) -> None:
    """Assert that a format takes the beginning of a file for its own, or leaves it."""
    assert format.sniff(head) is known
    if known:
        assert format_of(head) is format


@st.composite
def damaged(draw: st.DrawFn, records: Sequence[Json]) -> list[Json]:
    """Some of the records, in random order, with some random values."""
    chosen = draw(st.lists(st.sampled_from(range(len(records))), min_size=1, max_size=12))
    found = [copy.deepcopy(records[index]) for index in chosen]
    for _ in range(draw(st.integers(1, 4))):
        holder: Json = found
        at: Json = draw(st.sampled_from(range(len(found))))
        while isinstance(holder[at], dict | list) and holder[at] and draw(st.integers(0, 3)):
            holder = holder[at]
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            at = draw(st.sampled_from(keys))
        if isinstance(holder, dict) and draw(st.booleans()):
            del holder[at]
        else:
            holder[at] = draw(JSON)
    return found


def report_of(store: Store, path: Path, format: str | None = None) -> FileReport:
    """Import one file and return its report, even if nothing in it is readable.

    On its own, such a file would raise an error.
    """
    return import_paths(Writer(store), [str(path), f"{path}.missing"], format=format).files[0]


def import_hostile(tmp_path: Path, records: Sequence[Json], format: str) -> Store:
    """Import records of a format, whatever they hold, and return the store; every line is counted once.

    Damage can make a file look like one of another format, and then it is refused if nothing in it is readable.
    """
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(lines_of(records))
    store = Store.memory()
    report = report_of(store, path, format)
    if report.skipped == OTHER_FORMAT:
        return store
    assert_counted_once(store, report, len(records))
    return store
