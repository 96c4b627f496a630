"""Newest facts of a branch: for each name, the value from the newest commit that records one.

The walk follows first parents. A value from a merged branch wins if its commit is younger. Results are cached for each
branch, in memory and in a file of the compile index, so only newer commits are read. The file can be deleted.
"""

from __future__ import annotations

import json
from typing import TypeAlias

from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.disk.files import read_file, replace_file
from trace_store.errors import NotFoundError, StorageError
from trace_store.objects.operations import META, facts_of
from trace_store.store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.writer import Writer

Facts: TypeAlias = dict[str, tuple[int, str]]
"""(commit time, value) by name."""

VERSION = 1
_COLUMN = "facts"
_KEPT = 16
"""Number of cached tips for each branch, so that an undo finds the previous one."""
_UNSAVED = 64
"""Save the cache after reading this many commits."""


def branch_facts(writer: Writer) -> dict[str, str]:
    """Return the newest facts at the tip of a writer's branch; raises as `newest_facts`."""
    head = writer.store.refs.head()
    return newest_facts(writer.contexts, head.ref or "HEAD", head.oid)


def newest_facts(contexts: ContextCompiler, ref: str, tip: ObjectId | None) -> dict[str, str]:
    """Return the newest facts at a commit, sorted by name.

    Args:
        contexts: the branch's compiler, which holds the cache.
        ref: the full name of the branch.
        tip: the commit; None has no facts.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
    """
    if tip is None:
        return {}
    known: dict[bytes, Facts] = contexts.facts.get(ref) or _load(contexts, ref)
    contexts.facts[ref] = known
    if tip not in known:
        found, count = _walk(contexts, tip, known)
        known[tip] = found
        for old in list(known)[:-_KEPT]:
            del known[old]
        if count >= _UNSAVED and contexts.keeps_files:
            _save(contexts, ref, known)
    return {name: value for name, (_, value) in sorted(known[tip].items())}


def _walk(contexts: ContextCompiler, tip: ObjectId, known: dict[bytes, Facts]) -> tuple[Facts, int]:
    """Return the facts at a commit, and how many commits were read."""
    found: Facts = {}
    brought: Facts = {}
    count = 0
    at: bytes | None = tip
    while at is not None and at not in known:
        commit = contexts.read_commit(at)
        count += 1
        for name, value in facts_of(commit, META).items():
            _add(found, brought, name, (commit.time, value))
        if len(commit.parents) > 1:
            _add_merged(contexts, commit.parents, brought)
        at = commit.parents[0] if commit.parents else None
    for name, given in known[at].items() if at is not None else ():
        _add(found, brought, name, given)
    return {**brought, **found}, count


def _add(found: Facts, brought: Facts, name: str, given: tuple[int, str]) -> None:
    """Add an older fact, unless the branch or a later merge has a newer value."""
    if name not in found:
        merged = brought.get(name)
        found[name] = merged if merged is not None and merged[0] > given[0] else given


def _add_merged(contexts: ContextCompiler, parents: tuple[ObjectId, ...], brought: Facts) -> None:
    """Add the facts of merged commits, unless a later merge has a value for the name."""
    own: Facts = {}
    for oid in commits_of(contexts.store).topological(list(parents[1:]), [parents[0]]):
        commit = contexts.read_commit(oid)
        for name, value in facts_of(commit, META).items():
            own.setdefault(name, (commit.time, value))
    for name, given in own.items():
        brought.setdefault(name, given)


def _load(contexts: ContextCompiler, ref: str) -> dict[bytes, Facts]:
    store = contexts.store
    if not store.local:
        return {}
    try:
        saved = json.loads(read_file(store.disk, store.layout.index_file(ref, _COLUMN)) or b"{}")
        if not isinstance(saved, dict) or saved.get("version") != VERSION:
            return {}
        return {
            bytes.fromhex(tip): {name: (time, value) for name, (time, value) in facts.items()}
            for tip, facts in saved["tips"].items()
        }
    except (NotFoundError, StorageError, ValueError, TypeError, AttributeError):
        return {}


def _save(contexts: ContextCompiler, ref: str, known: dict[bytes, Facts]) -> None:
    """Save what `_load` returns; a failed write is ignored, since the repository may be read-only."""
    store = contexts.store
    if not store.local:
        return
    tips = {tip.hex(): facts for tip, facts in known.items()}
    data = json.dumps({"version": VERSION, "tips": tips}).encode()
    try:
        store.disk.make_directory(store.layout.index_dir)
        path = store.layout.index_file(ref, _COLUMN)
        replace_file(store.disk, path, data, durable=False, scratch=store.layout.tmp_dir)
    except StorageError:
        return
