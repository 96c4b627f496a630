"""An import of one file, and invariants of all imports."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest

from tests.importers.support.checks import JSON, assert_skips_named, damaged, report_of
from tests.importers.support.states import commits, tip_of, visible
from tests.importers.support.transcripts import REASON
from tests.support.valid_requests import assert_valid_requests
from trace_store.context.compiled import CompiledMessage
from trace_store.context.compiler import ContextCompiler
from trace_store.contracts.ref_names import FILES
from trace_store.history.log import log
from trace_store.importers.import_paths import import_paths
from trace_store.importers.report import FileReport
from trace_store.maintenance.fsck import fsck
from trace_store.objects.commit import Commit
from trace_store.objects.message import Message, load_message
from trace_store.objects.parts import Opaque, ToolResult
from trace_store.store.store import Store
from trace_store.transcripts.segments import restore
from trace_store.writer import Writer

HEADS = "refs/heads/sessions/"
PROVIDERS = ("anthropic", "gemini", "openai")


def imported(
    folder: Path, name: str, content: Any, format: str | None = None
) -> tuple[Store, FileReport]:
    """Import a file, JSON unless it is bytes, and hold everything against it that must always hold."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    store = Store.memory()
    (report,) = import_paths(Writer(store), [str(path)], format=format).files
    assert_sound(store, path)
    assert sum(report.records.values()) == report.record_count
    return store, report


def assert_sound(store: Store, *files: Path) -> None:
    """Assert that nothing is damaged, the files come back, and importing them again adds nothing."""
    assert not [finding for finding in fsck(store) if finding.severity == "error"]
    kept = [b"".join(restore(tip, store.objects.read)) for _, tip in store.refs.iterate(FILES)]
    assert sorted(kept) == sorted(path.read_bytes() for path in files) or not kept
    for name, _ in store.refs.iterate(HEADS):
        context = ContextCompiler(store).compile(name)
        assert_valid_requests(list(context.messages), context.tools)
    before = dict(store.refs.iterate())
    assert import_paths(Writer(store), [str(path) for path in files]).commits == 0 or not before
    assert dict(store.refs.iterate()) == before


def assert_valid(store: Store, *, everywhere: bool = False) -> None:
    """Assert that every provider takes the context at the end of each branch, or at each commit of it."""
    contexts = ContextCompiler(store)
    for name, tip in store.refs.iterate("refs/heads/"):
        assert contexts.verify(name).matches
        line = [entry.oid for entry in log(store, tip, first_parent=True)]
        for oid in line if everywhere else [tip]:
            compiled = contexts.compile(oid)
            assert_valid_requests(list(compiled.messages), compiled.tools)


def messages(store: Store, branch: str) -> list[Message]:
    """The messages of a branch's context; `branch` is its name below `sessions/`."""
    tip = tip_of(store, HEADS + branch)
    read = store.objects.read
    return [
        load_message({**entry.message, "parts": entry.parts}, read) for entry in visible(store, tip)
    ]


def commits_of(store: Store, branch: str) -> list[Commit]:
    """The commits of a branch, oldest first; `branch` is its name below `sessions/`."""
    return commits(store, tip_of(store, HEADS + branch))


def branches_of(store: Store) -> set[str]:
    """The names of all branches below `sessions/`."""
    return {name.removeprefix(HEADS) for name, _ in store.refs.iterate(HEADS)}


def real_files(folder: str, pattern: str = "*") -> list[Any]:
    """Parameters for a test of every real transcript of a kind; one that is skipped where there are none."""
    place = os.environ.get("TRACE_TEST_TRANSCRIPTS")
    found = sorted((Path(place) / folder).glob(pattern)) if place else []
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason=REASON), id="none-here")]
    return [pytest.param(path, id=path.name[-40:]) for path in found]


@st.composite
def damaged_document(draw: st.DrawFn, document: dict[str, Any]) -> Any:
    """A document with random values at random depths."""
    (found,) = draw(damaged([document]).filter(lambda values: len(values) == 1))
    return found if isinstance(found, dict | list) else draw(JSON.map(lambda value: [value]))


def import_damaged(folder: Path, document: Any, format: str) -> None:
    """Import a damaged document as a format, and check all invariants."""
    path = folder / "damaged.json"
    path.write_bytes(json.dumps(document).encode())
    store = Store.memory()
    assert_skips_named(report_of(store, path, format))
    assert not [finding for finding in fsck(store) if finding.severity == "error"]
    kept = [b"".join(restore(tip, store.objects.read)) for _, tip in store.refs.iterate(FILES)]
    assert kept in ([], [path.read_bytes()])
    for name, _ in store.refs.iterate(HEADS):
        context = ContextCompiler(store).compile(name)
        # Of tools too only their provider knows whether they are sound.
        if not _goes_out_verbatim(context.messages):
            assert_valid_requests(list(context.messages))


def _goes_out_verbatim(found: Iterable[CompiledMessage]) -> bool:
    """Tell whether there is a block in a provider's own form: whether it is sound only that provider knows."""
    parts = [part for message in found for part in message.parts]
    parts += [inner for part in parts if isinstance(part, ToolResult) for inner in part.content]
    return any(isinstance(part, Opaque) and part.provider in PROVIDERS for part in parts)
