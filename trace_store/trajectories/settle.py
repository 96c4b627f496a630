"""Turns what git's hooks saw into links.

A commit that a person made is linked to one trajectory: the one that its message names, else the one in
`TRACE_TRAJECTORY`, else the current one of its agent, work tree or branch. If none is active, the trajectory that ended
last gets the first commit after its end. Commits that a rebase or a cherry-pick made are no changes of their own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from trace_store import disk, errors
from trace_store.base.frozen import value
from trace_store.contracts.ref_names import TRAJECTORIES
from trace_store.disk.files import read_file, replace_file
from trace_store.disk.layout import DIRECTORY_NAME
from trace_store.store.store import Store
from trace_store.trajectories import code, hook_log, reading, waiting
from trace_store.trajectories.claims import claims, linked_changes
from trace_store.trajectories.events import NewEvent
from trace_store.trajectories.git import CodeCommit, Git
from trace_store.trajectories.hook_log import Seen
from trace_store.trajectories.state import ABANDONED, ACTIVE, COMPLETED, State
from trace_store.trajectories.trajectory_index import commit_key

SECONDS = 20.0
MAXIMUM_UNLINKED = 100
"""Maximum number of commits that are listed as not linked."""
_SECOND = 999
_MOMENTS = 3_600_000
"""How long after its end a trajectory is linked to a commit without its record, in milliseconds."""


@value
class Unlinked:
    """A commit that could belong to several trajectories, and was linked to none.

    Attributes:
        commit: its id.
        subject: the first line of its message.
        trajectories: the ids of the trajectories that were active.
    """

    commit: str
    subject: str
    trajectories: tuple[str, ...]


def settle(store: Store, author: str = "") -> None:
    """Link the commits in the log of git's hooks. If that fails, the log stays for the next command.

    Args:
        store: the repository's store.
        author: who links commits of no named agent.
    """
    if not hook_log.has_lines(store):
        return
    try:
        hook_log.take(store, lambda seen: _Settlement(store, author).link(seen))
    except errors.TraceError:
        return  # a read-only folder, or no git


def unlinked(store: Store) -> list[Unlinked]:
    """Return the commits that were linked to no trajectory, since several were active; oldest first."""
    data = read_file(store.disk, store.layout.unlinked_file) or b"[]"
    try:
        rows = json.loads(data)
        return [Unlinked(row[0], row[1], tuple(row[2])) for row in rows]
    except (ValueError, TypeError, LookupError):
        return []


def forget_unlinked(store: Store, commits: Sequence[str]) -> None:
    """Take commits, which are linked now, off the list."""
    before = unlinked(store)
    if kept := [each for each in before if each.commit not in commits]:
        if kept != before:
            _write(store, kept)
    elif before:
        store.disk.remove(store.layout.unlinked_file)


def _write(store: Store, rows: Sequence[Unlinked]) -> None:
    plain = [[each.commit, each.subject, each.trajectories] for each in rows[-MAXIMUM_UNLINKED:]]
    data = json.dumps(plain).encode("ascii")
    scratch = store.layout.tmp_dir
    replace_file(store.disk, store.layout.unlinked_file, data, durable=False, scratch=scratch)


class _Settlement:
    """Links the commits of some lines of the log."""

    def __init__(self, store: Store, author: str) -> None:
        self._store = store
        self._author = author
        self._active = reading.list_trajectories(store, reading.Filter(status=ACTIVE))
        self._names = set(store.disk.names(os.path.join(store.layout.root, TRAJECTORIES)))
        self._gits: dict[str, Git] = {}
        self._unlinked: list[Unlinked] = []
        self._seen: set[str] = set()

    def link(self, seen: Sequence[Seen]) -> None:
        seen = [*hook_log.kept_for_later(self._store), *seen]
        self._seen = {each.id for each in seen}
        amended = {each.id for each in seen if each.what == hook_log.AMENDED}
        commits = self._commits(seen)
        later: list[Seen] = []
        for each in _together(seen):
            git = self._git(each[-1])
            if git is None:
                continue
            commit = commits.get(each[-1].id)
            if not all(map(self._exists, self._known_then(git, each[-1]) - self._names)):
                later += each
            elif each[0].what != hook_log.COMMITTED:
                self._follow(git, each, commit)
            elif commit is not None and _is_change(each[0], amended):
                self._add(git, each[0], commit)
        hook_log.keep_for_later(self._store, later)
        if self._unlinked:
            _write(self._store, [*unlinked(self._store), *self._unlinked])

    def _known_then(self, git: Git, seen: Seen) -> set[str]:
        """Return the trajectories in the commit: where git keeps `.trace`, another branch may have others."""
        if not os.path.isdir(os.path.join(seen.folder, DIRECTORY_NAME)):
            return set()
        folder = f"{DIRECTORY_NAME}/{TRAJECTORIES}"
        words = ("ls-tree", "--full-tree", "--name-only", "-z", seen.id, "--", folder)
        found = git.try_to_ask(*words).split("\0")
        return {name.removeprefix(folder) for name in found if name}

    def _exists(self, id: str) -> bool:
        try:
            return bool(self._store.refs.tips(reading.trajectory_ref(id)))
        except errors.InvalidInputError:
            return False

    def _git(self, seen: Seen) -> Git | None:
        """Return the git of a work tree, or of the repository's folder if that is gone."""
        folder = seen.folder if os.path.isdir(seen.folder) else self._store.folder
        if folder not in self._gits and os.path.isdir(folder):
            self._gits[folder] = Git(folder, seconds=SECONDS)
        return self._gits.get(folder)

    def _commits(self, seen: Sequence[Seen]) -> dict[str, CodeCommit]:
        """Return those commits that still exist, by their ids."""
        by_git: dict[Git, list[str]] = {}
        for each in seen:
            if (git := self._git(each)) is not None:
                by_git.setdefault(git, []).extend(filter(None, (each.id, each.old)))
        found: dict[str, CodeCommit] = {}
        for git, ids in by_git.items():
            found.update((each.id, each) for each in git.commits(sorted(git.existing(ids))))
        return found

    def _until(self, commit: CodeCommit) -> int:
        return min(self._store.clock.now(), commit.committed + _SECOND)

    def _follow(self, git: Git, seen: Sequence[Seen], commit: CodeCommit | None) -> None:
        """Point links to rewritten commits; an amended commit that no trajectory links is a new change."""
        first = seen[0]
        by_hand = first.what == hook_log.AMENDED and first.how in (
            hook_log.BY_HAND,
            hook_log.CONTINUED,
        )
        until = {first.id: self._until(commit)} if by_hand and commit is not None else {}
        pairs = [(each.old, each.id) for each in seen]
        exist = git.existing([id_ for pair in pairs for id_ in pair])
        pairs = [pair for pair in pairs if exist.issuperset(pair)]
        found = code.replaced_links(self._store, git, pairs, until) if pairs else []
        for state, changes in found:
            self._wait(state.id, first, changes)
        if by_hand and commit is not None and not found:
            self._add(git, first, commit)

    def _add(self, git: Git, seen: Seen, commit: CodeCommit) -> None:
        if not commit.files:
            return  # only Trace's own files, or a merge without changes
        state = self._trajectory_of(git, seen, commit)
        if state is None or code.is_linked(self._store, state, commit):
            return
        (link,) = code.link_data(git, [commit])
        data = {**link, "branch": seen.ref, "until": self._until(commit)}
        if not seen.ref:
            del data["branch"]
        elif (born := _birth(self._store, seen)) is not None:
            data["born"] = born
        if unseen := self._unseen(git, state, commit):
            data["unseen"] = unseen
        if seen.stash:
            data.update(_stashed(git, seen.stash, commit))
        self._wait(state.id, seen, [{name: data[name] for name in data if data[name] != ""}])

    def _unseen(self, git: Git, state: State, commit: CodeCommit) -> int:
        """Return when the commit before one was made, in milliseconds, if no trajectory links it; else 0.

        Commits from before the trajectory, and those that were made elsewhere, do not count.
        """
        found = git.history("--skip=1", "--max-count=1", "--first-parent", commit.id)
        if not found or found[0] in self._seen:
            return 0
        (parent,) = git.commits(found)
        if not parent.files or parent.committed <= state.started:
            return 0
        linking = code.linking(self._store, [commit_key(parent.id)])
        if any(code.is_linked(self._store, each, parent) for each in linking):
            return 0
        return parent.committed + _SECOND if git.was_made_here(parent.id) else 0

    def _wait(self, id: str, seen: Seen, new: Sequence[Mapping[str, Any]]) -> None:
        agent, now = seen.agent or self._author, self._store.clock.now()
        session = self._store.refs.head().oid
        waiting.add(self._store, id, [NewEvent(data, agent, now, session) for data in new])

    def _trajectory_of(self, git: Git, seen: Seen, commit: CodeCommit) -> State | None:
        for name in (*filter(self._exists, commit.trajectories), seen.trajectory):
            if name:
                try:
                    return reading.find_state(self._store, name)
                except errors.TraceError:
                    return None
        chosen = reading.narrowed(
            self._active,
            agent=seen.agent,
            worktree=reading.worktree_of(self._store, seen.folder),
            branch=self._store.refs.head().ref or "",
            git_branch=seen.ref.removeprefix("refs/heads/"),
        )
        if len(chosen) == 1 and self._has_decision(chosen[0]):
            return chosen[0]
        if (ended := self._ended_before(git, commit)) is not None:
            return ended
        if len(chosen) > 1:
            ids = tuple(state.id for state in chosen)
            self._unlinked.append(Unlinked(commit.id, commit.subject[:200], ids))
        return chosen[0] if len(chosen) == 1 else None

    def _has_decision(self, state: State) -> bool:
        """Return True if a decision of a trajectory waits for a change."""
        whole = reading.read_trajectory(self._store, state.id)
        claimed = claims(whole, linked_changes(whole))
        return sum(map(len, claimed.values())) < len(whole.decisions)

    def _ended_before(self, git: Git, commit: CodeCommit) -> State | None:
        """Return the trajectory that ended last, if this is the first commit since, and a decision waits for it."""
        ended = [
            state
            for status in (COMPLETED, ABANDONED)
            for state in reading.list_trajectories(
                self._store, reading.Filter(status=status), limit=1
            )
        ]
        last = max(ended, key=lambda state: state.updated, default=None)
        if last is None or last.updated > commit.committed + _SECOND:
            return None
        if not commit.has_record and commit.committed > last.updated + _MOMENTS:
            return None
        parent = git.commits([found] if (found := git.resolve(f"{commit.id}^")) else [])
        if parent and parent[0].committed > last.updated:
            return None
        return last if self._has_decision(last) else None


def _together(seen: Sequence[Seen]) -> Iterator[list[Seen]]:
    """Yield the lines of each rebase together, and every other line alone."""
    rebase: list[Seen] = []
    for each in seen:
        is_same = each.what == hook_log.REBASED and not any(
            each.old in (other.old, other.id) or each.folder != other.folder for other in rebase
        )
        if rebase and not is_same:
            yield rebase
            rebase = []
        if each.what == hook_log.REBASED:
            rebase.append(each)
        else:
            yield [each]
    if rebase:
        yield rebase


def _is_change(seen: Seen, amended: Collection[str]) -> bool:
    """Return True if a person made a commit, other than by amending one."""
    return seen.how == hook_log.BY_HAND and seen.id not in amended


def _birth(store: Store, seen: Seen) -> int | None:
    """Return when a branch was created here, in milliseconds since the epoch; None if it is not known."""
    try:
        log = disk.git.first_log_line(store.disk, seen.folder, seen.ref)
    except errors.StorageError:
        return None
    _, _, rest = log.partition("> ")
    seconds = rest.split(" ", 1)[0]
    return int(seconds) * 1000 if seconds.isascii() and seconds.isdecimal() else None


def _stashed(git: Git, stash: str, commit: CodeCommit) -> dict[str, object]:
    """Return what a link says if the commit has nothing of the files that were stashed when it was made."""
    if not git.resolve(stash):
        return {}
    files: set[str] = set()
    files.update(git.try_to_ask("diff", "--name-only", "-z", f"{stash}^", stash).split("\0"))
    untracked = git.try_to_ask("ls-tree", "-r", "-z", "--name-only", f"{stash}^3")
    files.update(untracked.split("\0"))
    if files & {*commit.files}:
        return {}
    (stashed,) = git.commits([stash])
    return {"since": stashed.committed + _SECOND, "stash": stash[:12]}
