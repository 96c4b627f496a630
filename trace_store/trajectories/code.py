"""Code: the commits that belong to a trajectory.

A commit is linked once, by an event. When a rebase or an amend replaces the commit, the event is amended: the link
leads to the new commit, and its earlier version keeps the old one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import TRAJECTORIES
from trace_store.objects.commit import read_commit
from trace_store.store.store import Store
from trace_store.trajectories import events as ev
from trace_store.trajectories import reading, waiting
from trace_store.trajectories.events import event_data
from trace_store.trajectories.git import MAXIMUM_FILES, CodeCommit, Git, marks_of
from trace_store.trajectories.state import State
from trace_store.trajectories.trajectory_index import commit_key

_OLDER_IN_A_ROW = 16
"""Stop after this many consecutive older events; not at the first, since events may be late and clocks differ."""


def new_links(
    store: Store, state: State, git: Git, names: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the data of links to those commits that a trajectory does not link yet.

    Args:
        store: the repository's store.
        state: the trajectory.
        git: the repository of the code.
        names: the commits, as git names them.

    Raises:
        RevisionNotFoundError: git knows no such commit.
        StateError: git is not installed, or knows no repository here.
    """
    ids: dict[str, None] = {}
    for name in names:
        found = git.resolve(name)
        if not found:
            raise errors.RevisionNotFoundError(
                f"git knows no commit {name[:80]!r}",
                code=errors.ErrorCode.CODE_NOT_FOUND,
                name=name,
            )
        ids[found] = None
    commits = git.commits(list(ids))
    linked = _linked_since(store, state, commits)
    return link_data(git, [commit for commit in commits if commit.id not in linked])


def link_data(git: Git, commits: Sequence[CodeCommit]) -> list[Mapping[str, Any]]:
    """Return the data of links to commits; raises as `Git.ask`."""
    if not commits:
        return []
    ids = [commit.id for commit in commits]
    patch_ids, lines = git.patch_ids(ids), git.changed_lines(ids)
    work_tree = git.work_tree()
    return [
        event_data(
            ev.LINKED,
            more={
                "commit": commit.id,
                "patch_id": patch_ids.get(commit.id, ""),
                "subject": commit.subject,
                "files": commit.files[:MAXIMUM_FILES],
                "lines": marks_of(lines.get(commit.id, ())),
                "branch": work_tree.branch if commit.id == work_tree.head else "",
                "made": commit.made,
            },
        )
        for commit in commits
    ]


def replaced_links(
    store: Store,
    git: Git,
    pairs: Iterable[tuple[str, str]],
    until: Mapping[str, int] | None = None,
) -> list[tuple[State, list[Mapping[str, Any]]]]:
    """Return amendments that point links to the rewritten commits, by trajectory.

    The time of a change stays: a commit that was squashed of several has that of the first one.

    Args:
        store: the repository's store.
        git: the repository of the code.
        pairs: (old, new) ids of commits, as git gives them to its hook `post-rewrite`.
        until: the times of those new commits that a person changed, in milliseconds since the epoch.

    Raises:
        StateError: git is not installed, or knows no repository here.
        InvalidInputError: git does not know one of the commits.
    """
    replaced = dict(pairs)
    olds = git.commits(list(replaced))
    news = link_data(git, git.commits(list(dict.fromkeys(replaced.values()))))
    changes = {link["commit"]: {**link} for link in news}
    for change in changes.values():
        del change["type"], change["made"]
        if at := (until or {}).get(change["commit"]):
            change["until"] = at
        else:
            change.pop("lines", None)  # no person wrote them at that time
    result: list[tuple[State, list[Mapping[str, Any]]]] = []
    for state in linking(store, [commit_key(old) for old in replaced]):
        linked = _linked_since(store, state, olds)
        amendments: list[Mapping[str, Any]] = [
            event_data(ev.AMENDED, more={**which, "changes": changes[new]})
            for old, new in replaced.items()
            if new in changes
            for which in linked.get(old, ())
        ]
        if amendments:
            result.append((state, amendments))
    return result


def linking(store: Store, keys: Iterable[str] = ()) -> list[State]:
    """Return the trajectories with links to commits; raises as `reading.list_trajectories`.

    Where there are many, only those that link something of the keys, as `trajectory_index.keys_of` returns them.
    """
    late = waiting.trajectories_with_events(store)
    if (index := reading.many(store)) is not None:
        try:
            ids = dict.fromkeys([*index.linking(keys), *sorted(late)])
        finally:
            index.close()
        found = (store.refs.tips(TRAJECTORIES + id) for id in ids)
        return [reading.state_of(store, tips) for tips in found if tips]
    return [
        state
        for state in reading.list_trajectories(store)
        if state.count(ev.LINKED) or state.id in late
    ]


def _linked_since(
    store: Store, state: State, commits: Sequence[CodeCommit]
) -> dict[str, list[Mapping[str, str]]]:
    """Return which links lead to a commit, as an amendment names them; several do if it was squashed.

    A commit is linked only after it was made, so events from before the oldest of `commits` was made are not read.
    """
    found: dict[str, list[Mapping[str, str]]] = {}
    known: set[str] = set()
    late = waiting.waiting(store, state.id)
    for each in late:
        if each.data["type"] == ev.LINKED:
            found[each.data["commit"]] = [{waiting.REPLACES: each.data["commit"]}]
        elif found.pop(each.data.get(waiting.REPLACES, ""), None):
            commit = each.data["changes"]["commit"]
            found[commit] = [{waiting.REPLACES: commit}]
    for each in reversed(late):
        if "event" in each.data:
            _keep_newest(found, known, each.data["event"], each.data["changes"])
    if not commits or not state.count(ev.LINKED):
        return found
    since = min(commit.committed for commit in commits)
    unread, older = list(store.refs.tips(TRAJECTORIES + state.id)), 0
    seen: set[ObjectId] = set()
    while unread and older < _OLDER_IN_A_ROW:
        oid = unread.pop()
        if oid in seen:
            continue
        seen.add(oid)
        stored = read_commit(oid, store.objects.read)
        unread += stored.parents
        older = older + 1 if stored.time < since else 0
        for event in reading.events_of(store, oid, stored):
            if event.type == ev.LINKED:
                _keep_newest(found, known, event.id.hex, event.data)
            elif event.type == ev.AMENDED and "event" in event.data:
                _keep_newest(found, known, event.data["event"], event.data["changes"])
    return found


def _keep_newest(
    found: dict[str, list[Mapping[str, str]]], known: set[str], link: str, data: Mapping[str, Any]
) -> None:
    """Keep which commit a link leads to, unless a newer event said it."""
    if link not in known and "commit" in data:
        known.add(link)
        found.setdefault(data["commit"], []).append({"event": link})


def is_linked(store: Store, state: State, commit: CodeCommit) -> bool:
    """Return True if a trajectory links a commit."""
    return commit.id in _linked_since(store, state, [commit])


def marks_of_commit(git: Git, commit: str) -> str:
    """Return the hashes of the lines that a commit added."""
    return marks_of(git.changed_lines([commit]).get(commit, ()))


def from_top(git: Git, files: Sequence[str]) -> list[str]:
    """Return paths relative to the top of the work tree, given those relative to git's folder; raises as `Git.ask`."""
    folder, top = os.path.realpath(git.folder), os.path.realpath(git.work_tree().top)
    return [os.path.relpath(os.path.join(folder, each), top).replace(os.sep, "/") for each in files]
