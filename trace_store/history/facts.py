"""Newest facts of a branch: for each name, the value from the newest commit that records one.

The walk follows first parents. A value from a merged branch wins if its commit is younger. Results are cached for each
branch, in memory and in a file of the compile index, so only newer commits are read. The file can be deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from trace_store.base.oid import ObjectId
from trace_store.commit_table.graph import near_merge_base
from trace_store.context.compiler import ContextCompiler
from trace_store.context.session_lists import SessionLists
from trace_store.disk.files import read_file, replace_file
from trace_store.errors import NotFoundError, StorageError
from trace_store.objects.commit import Commit
from trace_store.objects.operations import META, facts_of
from trace_store.store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.writer import Writer

Facts: TypeAlias = dict[str, tuple[int, str]]
"""(commit time, value) by name."""
Step: TypeAlias = tuple[Facts, Facts]
"""The facts of the commits that a commit merges, and its facts."""

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


def is_set(contexts: ContextCompiler, ref: str, tip: ObjectId | None, name: str) -> bool:
    """Return True if the newest value of a fact is not empty; a list of sessions may save reading the history.

    Such a list may come from anybody: only that a fact is absent is taken from it. Errors as in `newest_facts`.
    """
    if tip is not None and _is_absent(contexts, ref, tip, name):
        contexts.facts[_absence(ref, name)] = {tip: {}}
        return False
    return bool(newest_facts(contexts, ref, tip).get(name))


def _absence(ref: str, name: str) -> str:
    """Return where a compiler keeps the last tip of a branch without this fact."""
    return f"{ref} without {name}"


def _is_absent(contexts: ContextCompiler, ref: str, tip: ObjectId, name: str) -> bool:
    """Return True if a few commits, and what was found out or listed before them, show that a fact is absent."""
    known, absent = _known(contexts, ref), contexts.facts.get(_absence(ref, name), {})
    since: list[bytes] = []
    oid: bytes | None = tip
    while oid not in absent:
        if oid is None or oid in known:
            return False  # the facts themselves are as cheap
        if len(since) == _UNSAVED:
            entries = SessionLists(contexts.store).of(ref)
            return any(each.summary.tip in since and not each.facts.get(name) for each in entries)
        commit = contexts.read_commit(oid)
        if name in facts_of(commit, META) or not _merges_none(contexts, commit, name):
            return False
        since.append(oid)
        oid = commit.parents[0] if commit.parents else None
    return True


def _merges_none(contexts: ContextCompiler, commit: Commit, name: str) -> bool:
    """Return True if a commit merges nothing, or a short line without a fact."""
    merged = _near_merged(contexts, commit.parents) if len(commit.parents) > 1 else []
    return merged is not None and all(name not in facts_of(each, META) for each in merged)


def _near_merged(contexts: ContextCompiler, parents: Sequence[ObjectId]) -> list[Commit] | None:
    """Return the commits that a merge brings, newest first; None unless these are a short line beside another one."""
    if len(parents) != 2:
        return None

    def parents_of(oid: bytes) -> Sequence[ObjectId]:
        return contexts.read_commit(oid).parents

    first, oid = parents
    base = near_merge_base(first, oid, parents_of, _UNSAVED)
    merged: list[Commit] = []
    while base is not None and oid != base:
        merged.append(contexts.read_commit(oid))
        oid = merged[-1].parents[0]
    return None if base is None else merged


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
    known = _known(contexts, ref)
    if tip not in known:
        found, count = _walk(contexts, tip, known)
        known[tip] = found
        for old in list(known)[:-_KEPT]:
            del known[old]
        if count >= _UNSAVED and contexts.keeps_files:
            _save(contexts, ref, known)
    return {name: value for name, (_, value) in sorted(known[tip].items())}


def _known(contexts: ContextCompiler, ref: str) -> dict[bytes, Facts]:
    known: dict[bytes, Facts] = contexts.facts.get(ref) or _load(contexts, ref)
    contexts.facts[ref] = known
    return known


def _walk(contexts: ContextCompiler, tip: ObjectId, known: dict[bytes, Facts]) -> tuple[Facts, int]:
    """Return the facts at a commit, and how many commits were read."""
    steps: list[Step] = []
    count = 0
    at: bytes | None = tip
    while at is not None and at not in known:
        commit = contexts.read_commit(at)
        count += 1
        steps += steps_of(contexts, commit)
        at = commit.parents[0] if commit.parents else None
    return facts_after(known[at] if at is not None else {}, steps), count


def steps_of(contexts: ContextCompiler, commit: Commit) -> list[Step]:
    """Return what `facts_after` needs of a commit, in a list without elements if that is nothing.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a merged commit is missing or damaged.
    """
    merged = _merged_facts(contexts, commit.parents) if len(commit.parents) > 1 else {}
    own = {name: (commit.time, value) for name, value in facts_of(commit, META).items()}
    return [(merged, own)] if merged or own else []


def facts_after(before: Facts, steps: Sequence[Step]) -> Facts:
    """Return the facts after some commits, whose steps are given newest first."""
    facts = dict(before)
    for merged, own in reversed(steps):
        for name, given in merged.items():
            if name not in facts or given[0] > facts[name][0]:
                facts[name] = given
        facts.update(own)
    return facts


def _merged_facts(contexts: ContextCompiler, parents: Sequence[ObjectId]) -> Facts:
    """Return the newest facts of the commits that a merge brings."""
    facts: Facts = {}
    commits: Iterable[Commit] | None = _near_merged(contexts, parents)
    if commits is None:  # the table of commits finds them
        oids = commits_of(contexts.store).topological(parents[1:], parents[:1])
        commits = map(contexts.read_commit, oids)
    for commit in commits:
        for name, value in facts_of(commit, META).items():
            facts.setdefault(name, (commit.time, value))
    return facts


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
