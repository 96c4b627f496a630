"""Long real transcripts, compressed to a half and to a tenth: valid, pins unchanged, and undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lost_lines import LONG as LONG_BRANCH
from benchmarks.lost_lines import measure
from tests.compression.test_compress import Script, verbs
from tests.importers.support.transcripts import each_chosen_file
from tests.support.valid_requests import assert_valid_requests
from trace_store import Repo, errors
from trace_store.compression.trim import DEDUPLICATION
from trace_store.context.compiler import ContextCompiler
from trace_store.context.content import seen_of_entry
from trace_store.context.snapshots import fold_of
from trace_store.history.commit import write
from trace_store.history.draft import Draft
from trace_store.history.undo import undo
from trace_store.importers.import_paths import import_paths
from trace_store.maintenance.fsck import fsck
from trace_store.objects.address import Address
from trace_store.store.store import Store
from trace_store.writer import Writer

LONG = 5_000
"""Minimum tokens of a long transcript."""


@pytest.mark.parametrize("path", each_chosen_file(longest=True))
@pytest.mark.parametrize("kind", ["extractive", "model"])
def test_every_long_transcript(path: Path, kind: str) -> None:
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    names = [name for name, _ in store.refs.iterate("refs/heads/sessions/")]
    sizes = {name: message_tokens(store, name) for name in names}
    name = max(names, key=lambda each: sizes[each], default="")
    if not name or sizes[name] < LONG:
        pytest.skip("not long")
    pinned = pin_some(store, name)
    before = ContextCompiler(store).compile(name)
    model = Script("The work goes on.") if kind == "model" else None
    branch = store.on(name)
    for share in ("50%", "10%"):
        target = verbs(branch).target(share)
        try:
            done = verbs(branch).compress(to=target, model=model, force=True)
        except errors.BudgetError as error:  # the minimum in the error must be reachable
            target = error.needed  # type: ignore[assignment]
            done = verbs(branch).compress(to=target, model=model, force=True)
        except errors.InvalidInputError:  # everything is instructions, pinned, or short
            continue
        now = ContextCompiler(store).compile(name)
        assert now.token_count == done.after <= target
        assert_valid_requests(list(now.messages), now.tools)
        assert seen_of(store, name, pinned) == pinned
        assert verbs(branch).report()
        undo(Writer(store, author="A"))
        assert ContextCompiler(store).compile(name).prefix_hash == before.prefix_hash
    assert not [finding for finding in fsck(store) if finding.severity == "error"]


def message_tokens(store: Store, name: str) -> int:
    return sum(size for size, _ in ContextCompiler(store).compile(name).message_tokens())


def seen_of(store: Store, name: str, addresses: dict[Address, bytes]) -> dict[Address, bytes]:
    tip = store.refs.read(name)
    assert tip is not None
    visible = {e.address: e for e in fold_of(store, tip).visible()}
    return {each: seen_of_entry(visible[each]) for each in addresses}


def pin_some(store: Store, name: str) -> dict[Address, bytes]:
    """Pin three short messages and their units, and return their text for a model."""
    context = ContextCompiler(store).compile(name)
    sizes = [size for size, _ in context.message_tokens()]
    places = [n for n, size in enumerate(sizes) if size < 200][2::7][:3]
    chosen = [context.messages[place].address for place in places]
    if not chosen:
        return {}
    draft = Draft(Writer(store, author="A").on(name))
    draft.annotate(chosen, priority="pinned")
    write(draft)
    tip = store.refs.read(name)
    assert tip is not None
    units = fold_of(store, tip).units(chosen)
    return seen_of(store, name, dict.fromkeys(units, b""))


@pytest.mark.parametrize("path", each_chosen_file(longest=True))
def test_what_dedupe_takes_stands_elsewhere_or_is_listed(path: Path) -> None:
    with Repo.memory() as repo:
        import_paths(Writer(repo.store), [str(path)])
        names = [each.name for each in repo.branches.list()]
        name = max(names, key=lambda each: len(repo.compile(each)), default="")
        if not name or len(repo.compile(name)) < LONG_BRANCH:
            pytest.skip("not long")
        repo.branches.switch(name)
        lost, _, older = measure(repo, DEDUPLICATION, None)
        assert sum(lost.values()) <= older
