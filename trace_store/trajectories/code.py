"""Code: the commits that belong to a trajectory, and the decisions behind a line.

A commit is linked once, by an event. When a rebase or an amend replaces the commit, the event is amended: the link
leads to the new commit, and its earlier version keeps the old one.

A commit leads to a trajectory if it is linked, if it makes the same change as a linked one, or if its message names the
trajectory. Otherwise it may be a squash. A linked commit that is not in the history is assumed to be squashed into the
first later commit that changes all of its files.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.frozen import value
from trace_store.objects import operations as ops
from trace_store.objects.commit import read_commit
from trace_store.ref_names import TRAJECTORIES
from trace_store.trajectories import events as ev
from trace_store.trajectories import reading, waiting
from trace_store.trajectories.events import event_data
from trace_store.trajectories.git import MAXIMUM_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.objects.address import Address
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store
    from trace_store.trajectories.events import Event
    from trace_store.trajectories.git import CodeCommit, Git
    from trace_store.trajectories.reading import Trajectory
    from trace_store.trajectories.state import State

_OLDER_IN_A_ROW = 16
"""Stop after this many consecutive older events; not at the first, since events may be late and clocks differ."""
LINKED, SAME_CHANGE, TRAILER, SAME_FILES = "linked", "same change", "trailer", "same files"
MAXIMUM_COMMITS = 1000
"""Maximum number of commits that are searched in the history of a file or a commit."""
MAXIMUM_PATCHES = 200
"""Maximum number of commits whose changes are compared with those of linked commits."""
_SECOND = 999
"""Added to git's times, which have no milliseconds."""
_STEPS_TO_MESSAGES = 50


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
    patch_ids = git.patch_ids([commit.id for commit in commits])
    work_tree = git.work_tree()
    return [
        event_data(
            ev.LINKED,
            more={
                "commit": commit.id,
                "patch_id": patch_ids.get(commit.id, ""),
                "subject": commit.subject,
                "files": commit.files[:MAXIMUM_FILES],
                "branch": work_tree.branch if commit.id == work_tree.head else "",
                "made": commit.made,
            },
        )
        for commit in commits
    ]


def replaced_links(
    store: Store, git: Git, pairs: Iterable[tuple[str, str]]
) -> list[tuple[State, list[Mapping[str, Any]]]]:
    """Return amendments that point links to the rewritten commits, by trajectory.

    The time of a change stays: a commit that was squashed of several has that of the first one.

    Args:
        store: the repository's store.
        git: the repository of the code.
        pairs: (old, new) ids of commits, as git gives them to its hook `post-rewrite`.

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
    result: list[tuple[State, list[Mapping[str, Any]]]] = []
    for state in linking(store):
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


def linking(store: Store) -> list[State]:
    """Return the trajectories with links to commits; raises as `reading.list_trajectories`."""
    late = waiting.trajectories_with_events(store)
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


@value
class Basis:
    """A decision, and what led to it.

    Attributes:
        event: the decision.
        number: its number in the trajectory: 2 for `d2`.
        messages: the last messages of the agent's branch at that time; empty if there were none.
    """

    event: Event
    number: int
    messages: tuple[Address, ...]


@value
class Reason:
    """A trajectory behind a commit of the code.

    Attributes:
        commit: the commit.
        how: how the commit leads to it: `linked`, `same change`, `trailer` or `same files`.
        trajectory: the trajectory's state.
        chapter: the title of the chapter in which the change was made, or "".
        decisions: the decisions since the previous linked commit, newest first.
        is_guess: whether the commit has no decision of its own; `decisions` then holds the nearest one.
    """

    commit: CodeCommit
    how: str
    trajectory: State
    chapter: str
    decisions: tuple[Basis, ...]
    is_guess: bool


def why(store: Store, git: Git, target: str, limit: int) -> list[Reason]:
    """Return the reasons for a file, a line or a commit, the newest commit first.

    Raises:
        RevisionNotFoundError: it is neither a file nor a commit, or the line is not committed.
        StateError: git is not installed, or knows no repository here.
    """
    asked, history, file = _commits_of(git, target)
    trajectories = [reading.read_trajectory(store, state.id) for state in linking(store)]
    matches = _Matches(trajectories, history, git)
    reasons: list[Reason] = []
    for commit in asked:
        if len(reasons) >= limit:
            break
        found = [_reason(store, commit, *each) for each in matches.of(commit, file)]
        known = {each.trajectory.id for each in found if not each.is_guess}
        reasons += [e for e in found if not (e.is_guess and e.trajectory.id in known)]
    return reasons[:limit]


def _commits_of(git: Git, target: str) -> tuple[list[CodeCommit], list[CodeCommit], str]:
    """Return the commits of a target, their history, and the path of its file in the work tree, or ""."""
    name, _, line = target.rpartition(":")
    folder, top = os.path.realpath(git.folder), os.path.realpath(git.work_tree().top)
    latest = f"--max-count={MAXIMUM_COMMITS}"

    def is_file(path: str) -> bool:
        return bool(path) and "\0" not in path and os.path.lexists(os.path.join(folder, path))

    def from_top(path: str) -> str:
        return os.path.relpath(os.path.join(folder, path), top).replace(os.sep, "/")

    if not is_file(target) and line.isascii() and line.isdecimal() and is_file(name):
        commit = git.blame(name, int(line))
        file = from_top(name)
    else:
        commit, file = "" if is_file(target) else git.resolve(target), ""
        if not commit:
            follows = ("--follow", latest) if not os.path.isdir(target) else (latest,)
            ids = git.history(*follows, "--", target) if target and "\0" not in target else []
            if not ids and not is_file(target):
                raise errors.RevisionNotFoundError(
                    f"neither a file nor a commit: {target[:80]!r}",
                    code=errors.ErrorCode.CODE_NOT_FOUND,
                    name=target,
                )
            history = git.commits(ids)
            return history, history, from_top(target)
    asked = git.commits([commit])
    files = asked[0].files[:MAXIMUM_COMMITS]
    ids = git.history("--full-history", latest, commit, "--", *files) if files else []
    return asked, git.commits(ids) or asked, file


class _Matches:
    """Finds the trajectories that commits lead to."""

    def __init__(
        self, trajectories: Sequence[Trajectory], history: Sequence[CodeCommit], git: Git
    ) -> None:
        self._named = {each.id: each for each in trajectories}
        self._linked: dict[str, list[tuple[Trajectory, Event]]] = {}
        self._changes: dict[str, list[tuple[Trajectory, Event]]] = {}
        for trajectory in trajectories:
            for link in trajectory.of_type(ev.LINKED):
                for data in (link.data, *link.versions):
                    self._linked.setdefault(str(data.get("commit")), []).append((trajectory, link))
                    if data.get("patch_id"):
                        self._changes.setdefault(data["patch_id"], []).append((trajectory, link))
        self._patch_ids = self._patches(history, git)
        self._squashed = self._squashes(history)

    def of(self, commit: CodeCommit, file: str) -> Iterator[tuple[Trajectory, str, list[Event]]]:
        """Yield (trajectory, how, links) of a commit; of several links those that changed the wanted file."""
        patch_id = self._patch_ids.get(commit.id, "")
        same = self._changes.get(patch_id, []) if patch_id else []
        linked, how = self._linked.get(commit.id, []), LINKED
        if not linked:
            linked, how = same, SAME_CHANGE
        named = [self._named[name] for name in commit.trajectories if name in self._named]
        yield from _by_trajectory(how, _of_file(linked, file) or linked)
        if linked or not named:
            squashed = self._squashed.get(commit.id, [])
            yield from _by_trajectory(SAME_FILES, _of_file(squashed, file) if file else squashed)
        else:
            yield from ((trajectory, TRAILER, []) for trajectory in named)

    def _patches(self, history: Sequence[CodeCommit], git: Git) -> Mapping[str, str]:
        """Return the patch ids of the commits that are not linked, by commit."""
        first = min(
            (link.data.get("made", 0) for found in self._changes.values() for _, link in found),
            default=None,
        )
        if first is None:
            return {}
        unknown = [c.id for c in history if c.id not in self._linked and c.committed >= first]
        return git.patch_ids(unknown[:MAXIMUM_PATCHES])

    def _squashes(
        self, history: Sequence[CodeCommit]
    ) -> Mapping[str, list[tuple[Trajectory, Event]]]:
        """Return links to commits that the history lacks, by the first later commit that changes all their files."""
        found: dict[str, list[tuple[Trajectory, Event]]] = {}
        here = {commit.id for commit in history}
        changes = set(self._patch_ids.values())
        oldest_first = sorted(history, key=lambda commit: commit.committed)
        for linked in self._linked.values():
            for trajectory, link in linked:
                data = link.data
                files = set(data.get("files", ()))
                ids = {each.get("commit") for each in (data, *link.versions)}
                if ids & here or data.get("patch_id", "") in changes or not files:
                    continue
                for commit in oldest_first:
                    own = self._linked.get(commit.id, ())
                    if own and not any(t is trajectory and link.time < e.time for t, e in own):
                        continue
                    if commit.committed >= data.get("made", 0) and files <= {*commit.files}:
                        found.setdefault(commit.id, []).append((trajectory, link))
                        break
        return found


def _by_trajectory(
    how: str, found: Sequence[tuple[Trajectory, Event]]
) -> Iterator[tuple[Trajectory, str, list[Event]]]:
    by_id: dict[str, tuple[Trajectory, list[Event]]] = {}
    for trajectory, link in found:
        by_id.setdefault(trajectory.id, (trajectory, []))[1].append(link)
    for trajectory, each in by_id.values():
        yield trajectory, how, each


def _of_file(
    found: Sequence[tuple[Trajectory, Event]], file: str
) -> list[tuple[Trajectory, Event]]:
    """Return the links to commits that changed a file before they were squashed."""
    return [
        (trajectory, link)
        for trajectory, link in found
        if file in (*link.versions, link.data)[0].get("files", ())
    ]


def _reason(
    store: Store, commit: CodeCommit, trajectory: Trajectory, how: str, found: Sequence[Event]
) -> Reason:
    moments = {moment(link.time, link.data.get("made", link.time)) for link in found}
    moments = moments or {moment(commit.committed + _SECOND, commit.made)}
    last, decisions = max(moments), trajectory.decisions
    chosen = decisions_between(trajectory, moments)
    nearest = [event for event in decisions if event.time <= last][-1:] or decisions[:1]
    bases = tuple(
        Basis(each, decisions.index(each) + 1, _messages(store, each.session))
        for each in reversed(chosen or nearest)
    )
    chapters = [c.data.get("title", "") for c in trajectory.of_type(ev.CHAPTER) if c.time <= last]
    chapter = str(chapters[-1]) if chapters else ""
    return Reason(commit, how, trajectory.state, chapter, bases, not chosen)


def moment(linked: int, made: int) -> int:
    """Return when a change was made, in milliseconds since the epoch.

    Args:
        linked: when it was linked.
        made: git's time, in whole seconds.
    """
    return min(linked, made + _SECOND)


def decisions_between(trajectory: Trajectory, moments: Collection[int]) -> list[Event]:
    """Return the decisions since the linked change before each of some moments, oldest first."""
    changes = [moment(e.time, e.data.get("made", e.time)) for e in trajectory.of_type(ev.LINKED)]
    spans = [(max((at for at in changes if at < end), default=0), end) for end in moments]
    return [
        event
        for event in trajectory.decisions
        if any(start < event.time <= end for start, end in spans)
    ]


def _messages(store: Store, session: ObjectId | None) -> tuple[Address, ...]:
    """Return the last messages of a branch up to a commit."""
    for _ in range(_STEPS_TO_MESSAGES):
        if session is None or not store.objects.contains(session):
            break
        commit = read_commit(session, store.objects.read)
        added = tuple(address for address, _ in ops.added_messages(commit, session))
        if added:
            return added
        session = commit.parents[0] if commit.parents else None
    return ()
