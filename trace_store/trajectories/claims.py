"""Which decision belongs to which change of the code.

A change is a commit that a person made, and that a trajectory links. An amended commit is a change again; a rebased one
is not. A decision belongs to the first change after it. Left out is only what cannot be about the same work: a change
on another branch that existed when the decision was recorded, and a change that was made while the work was stashed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trace_store.base.frozen import value
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import Event
from trace_store.trajectories.git import CodeCommit, split_marks
from trace_store.trajectories.reading import Trajectory

_SECOND = 999
"""Added to git's times, which have no milliseconds."""
Key = tuple[str, int]
"""What decisions belong to: the address of a link, and when its commit was made."""


@value
class CodeChange:
    """A change of the code that a trajectory links, in one of its versions.

    Attributes:
        trajectory: the trajectory.
        key: its link, and until when decisions may belong to it, in milliseconds since the epoch.
        commit: the id of the commit.
        data: the fields of the link.
        link: the link; None if only the message of the commit names the trajectory.
    """

    trajectory: Trajectory
    key: Key
    commit: str
    data: Mapping[str, Any]
    link: Event | None = None

    def is_doubtful(self, decision: Event) -> bool:
        """Return True if a decision that belongs to it may be about an earlier commit, which no hook saw."""
        is_named = bool(decision.data.get("commit"))
        return not is_named and decision.time <= self.data.get("unseen", 0)

    @property
    def files(self) -> set[str]:
        """The files that it changed."""
        return set(self.data.get("files", ()))

    @property
    def marks(self) -> set[str]:
        """The hashes of the lines that it added, as `git.mark_of` returns them."""
        return split_marks(self.data.get("lines"))


def moment(linked: int, data: Mapping[str, Any]) -> int:
    """Return until when decisions may belong to a link, in milliseconds since the epoch.

    Args:
        linked: when it was linked.
        data: its fields.
    """
    return int(data.get("until") or min(linked, data.get("made", linked) + _SECOND))


def linked_changes(trajectory: Trajectory) -> list[CodeChange]:
    """Return all versions of the linked changes, oldest link first.

    A version that only a rebase made has the files and lines of the one before, since a person wrote those.
    """
    found: list[CodeChange] = []
    for link in trajectory.of_type(ev.LINKED):
        written, last = link.data, -1
        for data in (*link.versions, link.data):
            until = moment(link.time, data)
            if until != last:
                written, last = data, until
            kept = {name: written.get(name, ()) for name in ("files", "lines")}
            key = link.id.hex, until
            commit = str(data.get("commit", ""))
            found.append(CodeChange(trajectory, key, commit, {**data, **kept}, link))
    return found


def named_change(trajectory: Trajectory, commit: CodeCommit) -> CodeChange:
    """Return the change of a commit whose message names the trajectory."""
    data = {"files": commit.files, "made": commit.made, "subject": commit.subject}
    return CodeChange(trajectory, (commit.id, commit.committed + _SECOND), commit.id, data)


def claims(
    trajectory: Trajectory, changes: Sequence[CodeChange], named: Sequence[CodeCommit] = ()
) -> dict[Key, list[Event]]:
    """Return the decisions that belong to each change, oldest first.

    Args:
        trajectory: the trajectory.
        changes: its linked changes.
        named: the commits whose messages name it, newest first.
    """
    known = {(each.data.get("made"), each.data.get("subject")) for each in changes}
    commits = {each.commit for each in changes}
    others = [
        named_change(trajectory, each)
        for each in named
        if each.files and each.id not in commits and (each.made, each.subject) not in known
    ]
    # git's times are whole seconds; within one, its order of commits counts.
    order = {commit.id: number for number, commit in enumerate(reversed(named))}

    def place(change: CodeChange) -> tuple[int, int, int]:
        # git no longer finds a commit that was amended: it stands where its last version does.
        last = change.link.commit if change.link is not None else change.commit
        number = order.get(change.commit, order.get(last, -1))
        return change.key[1] // 1000, number, change.key[1]

    in_order = sorted((*changes, *others), key=place)
    found: dict[Key, list[Event]] = {}
    for decision in trajectory.decisions:
        about = decision.data.get("commit")
        for change in in_order:
            if change.commit == about if about else _may_be_about(decision, change):
                found.setdefault(change.key, []).append(decision)
                break
    return found


def _may_be_about(decision: Event, change: CodeChange) -> bool:
    data, said = change.data, decision.data
    if decision.time > change.key[1]:
        return False
    if decision.time <= data.get("since", 0) and said.get("stash", "") != data.get("stash"):
        return False  # the work of the decision was stashed
    branch, born = data.get("branch"), data.get("born")
    if branch and born is not None and said.get("branch") not in (None, "", branch):
        return bool(decision.time <= born + _SECOND)
    return True
