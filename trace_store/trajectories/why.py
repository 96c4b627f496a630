"""The decisions behind a line, a file or a commit of the code.

A commit leads to a change that a trajectory links: by its id, by its patch id, by its author's time and subject, or by
the trailer in its message. Squashed commits are recognised by their lines: a link stores a short hash of each line that
its commit added. So each line leads to the change that first wrote it, even if that commit no longer exists.

Rule: only guesses are marked. A commit without its own decision shows the nearest one, marked. A match by file names
alone is called `same files`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import read_commit
from trace_store.store.store import Store
from trace_store.trajectories import code, reading
from trace_store.trajectories import events as ev
from trace_store.trajectories.claims import CodeChange, Key, claims, linked_changes, named_change
from trace_store.trajectories.events import Event
from trace_store.trajectories.git import TRAILER as TRAILER_NAME
from trace_store.trajectories.git import (
    BlamedLine,
    CodeCommit,
    Git,
    is_distinct,
    mark_of,
    split_marks,
)
from trace_store.trajectories.reading import Trajectory
from trace_store.trajectories.state import State
from trace_store.trajectories.trajectory_index import (
    author_key,
    commit_key,
    file_key,
    patch_key,
)

LINKED, SAME_CHANGE, TRAILER, SAME_FILES = "linked", "same change", "trailer", "same files"
SQUASHED, RESTORED, NOT_COMMITTED = "squashed", "restored", "not committed"
MAXIMUM_COMMITS = 1000
"""Maximum number of commits that are searched in the history of a file or a commit."""
MAXIMUM_PATCHES = 200
"""Maximum number of commits whose changes are compared with those of linked commits."""
MAXIMUM_LINES = 1000
"""Maximum number of lines of a file that are asked for at once."""
_SECOND = 999
_STEPS_TO_MESSAGES = 50
_NEIGHBOURS = 4
_MOST = 0.5
"""How many of the lines of a change a commit must add to have squashed it, 0 to 1."""
_DAY = 86_400_000


@value
class Basis:
    """A decision, and what led to it.

    Attributes:
        event: the decision.
        number: its number in the trajectory: 2 for `d2`.
        messages: the last messages of the agent's branch at that time; empty if there were none.
        is_guess: whether it may be about an earlier commit, which no hook saw.
    """

    JSON = (
        "event=event.id time=event.time agent=event.agent question=event.question "
        "chosen=event.content alternatives=event.alternatives reasoning=event.reasoning "
        "confidence=event.confidence until=event.until replaced_by=event.replaced_by? "
        "guess=is_guess -is_guess"
    )

    event: Event
    number: int
    messages: tuple[Address, ...]
    is_guess: bool = False


@value
class Reason:
    """A trajectory behind a commit of the code.

    Attributes:
        commit: the commit; its id is "" if the lines are not committed.
        how: how the commit leads to it: `linked`, `same change`, `squashed`, `restored` by a revert, `trailer`,
            `same files`, or `not committed`.
        trajectory: the trajectory's state.
        chapter: the title of the chapter in which the change was made, or "".
        decisions: the decisions since the previous linked commit, newest first, guesses last.
        is_guess: whether the commit has no decision of its own; `decisions` then holds the nearest one, or guesses.
    """

    JSON = (
        "commit=commit.id subject=commit.subject made=commit.made trajectory=trajectory.id "
        "title=trajectory.title status=trajectory.status chapter?"
    )

    commit: CodeCommit
    how: str
    trajectory: State
    chapter: str
    decisions: tuple[Basis, ...]
    is_guess: bool


def why(store: Store, git: Git, target: str, limit: int) -> list[Reason]:
    """Return the reasons for a file, lines, a commit or a range of commits, the newest commit first.

    Raises:
        RevisionNotFoundError: it is neither a file nor a commit, or there are no such lines.
        StateError: git is not installed, or knows no repository here.
    """
    asked = _Asked.read(git, target)
    finder = _Finder(store, asked)
    reasons: list[Reason] = []
    if asked.lines:
        commits = {each.id: each for each in asked.commits}
        for line in asked.lines:
            if len(reasons) >= limit:
                break
            found = finder.of_line(commits[line.commit], line) if line.commit else finder.waiting()
            reasons += [each for each in found if each not in reasons]
    else:
        for commit in asked.commits:
            if len(reasons) >= limit:
                break
            reasons += finder.of_commit(commit, asked.file)
    return reasons[:limit]


@value
class _Asked:
    """What is asked for.

    Attributes:
        git: runs in the repository of the code.
        commits: the commits, newest first.
        history: the commits before them that changed the same files.
        file: the path of the file in the work tree, or "".
        lines: the lines of the file that are asked for; empty for all.
    """

    git: Git
    commits: Sequence[CodeCommit]
    history: Sequence[CodeCommit]
    file: str = ""
    lines: Sequence[BlamedLine] = ()

    @classmethod
    def read(cls, git: Git, target: str) -> _Asked:
        name, _, numbers = target.rpartition(":")
        if not _is_file(git, target) and _is_file(git, name) and (span := _span(numbers)):
            return cls._lines(*_around(git, name), *span)
        commit = "" if _is_file(git, target) else git.resolve(target)
        if commit:
            asked = git.commits([commit])
            files = asked[0].files[:MAXIMUM_COMMITS]
            latest = f"--max-count={MAXIMUM_COMMITS}"
            ids = git.history("--full-history", latest, commit, "--", *files) if files else []
            return cls(git, asked, git.commits(ids) or asked)
        if ".." in target and not _is_file(git, target) and (ids := _range(git, target)):
            commits = git.commits(ids)
            return cls(git, commits, commits)
        return cls._file(git, target)

    @classmethod
    def _file(cls, git: Git, target: str) -> _Asked:
        is_file = _is_file(git, target)
        around, file = _around(git, target) if is_file else (git, target)
        latest = f"--max-count={MAXIMUM_COMMITS}"
        is_folder = os.path.isdir(os.path.join(around.folder, file))
        follows = (latest,) if is_folder else ("--follow", latest)
        ids = around.history(*follows, "--", file) if target and "\0" not in target else []
        if not ids and not is_file:
            raise errors.RevisionNotFoundError(
                f"neither a file nor a commit: {target[:80]!r}",
                code=errors.ErrorCode.CODE_NOT_FOUND,
                name=target,
            )
        history = around.commits(ids)
        return cls(around, history, history, code.from_top(around, [file])[0])

    @classmethod
    def _lines(cls, git: Git, file: str, first: int, last: int) -> _Asked:
        if last - first >= MAXIMUM_LINES:
            raise errors.InvalidInputError(f"at most {MAXIMUM_LINES:,} lines", argument="target")
        lines = git.blame(file, first, last)
        commits = git.commits(list(dict.fromkeys(each.commit for each in lines if each.commit)))
        return cls(git, commits, commits, code.from_top(git, [file])[0], lines)


def _span(numbers: str) -> tuple[int, int] | None:
    """Return the first and the last line of `9` or `1-9`; None if it is neither."""
    first, dash, last = numbers.partition("-")
    last = last if dash else first
    if not (numbers.isascii() and first.isdecimal() and last.isdecimal()):
        return None
    return int(first), int(last)


def _is_file(git: Git, path: str) -> bool:
    return bool(path) and "\0" not in path and os.path.lexists(os.path.join(git.folder, path))


def _around(git: Git, path: str) -> tuple[Git, str]:
    """Return git for the repository of a file, which may be a submodule, and the file's path in its folder."""
    folder, name = os.path.split(os.path.join(git.folder, path))
    if not name or os.path.isdir(os.path.join(folder, name)):
        return git, path
    inner = git.within(folder)
    if inner.work_tree().top == git.work_tree().top:
        return git, path
    return inner, name


def _range(git: Git, target: str) -> list[str]:
    words = ("rev-list", f"--max-count={MAXIMUM_COMMITS}", "--end-of-options", target, "--")
    return git.try_to_ask(*words).split()


def _keys(asked: _Asked) -> list[str]:
    """Return the keys of links that may lead to what is asked for."""
    keys: list[str] = []
    for commit in {each.id: each for each in (*asked.commits, *asked.history)}.values():
        keys += [commit_key(commit.id), author_key(commit.made, commit.subject)]
    files = {asked.file, *(line.file for line in asked.lines)}
    for commit in asked.commits[:MAXIMUM_PATCHES]:
        files.update(commit.files[:MAXIMUM_PATCHES])
    return [*keys, *map(file_key, sorted(files - {""}))]


class _Finder:
    """Finds the trajectories and decisions that commits lead to."""

    def __init__(self, store: Store, asked: _Asked) -> None:
        self._store = store
        self._git = asked.git
        self._history = asked.history
        self._trajectories: dict[str, Trajectory] = {}
        self._changes: dict[str, list[CodeChange]] = {}
        self._by_commit: dict[str, list[CodeChange]] = {}
        self._by_patch: dict[str, list[CodeChange]] = {}
        self._by_author: dict[tuple[object, object], list[CodeChange]] = {}
        self._claimed: dict[str, dict[Key, list[Event]]] = {}
        self._ancestors: dict[tuple[str, str], bool] = {}
        self._moved: dict[str, list[tuple[str, str]]] = {}
        self._load(_keys(asked))
        self._patch_ids = self._patches(asked.history)
        self._load([patch_key(patch) for patch in set(self._patch_ids.values())])

    def _load(self, keys: Sequence[str]) -> None:
        """Read the trajectories that link something of the keys."""
        for state in code.linking(self._store, keys):
            if state.id not in self._trajectories:
                self._add(reading.read_trajectory(self._store, state.id))

    def _add(self, trajectory: Trajectory) -> None:
        self._trajectories[trajectory.id] = trajectory
        self._changes[trajectory.id] = linked_changes(trajectory)
        for change in self._changes[trajectory.id]:
            self._by_commit.setdefault(change.commit, []).append(change)
            if patch := change.data.get("patch_id"):
                self._by_patch.setdefault(patch, []).append(change)
            author = change.data.get("made"), change.data.get("subject")
            self._by_author.setdefault(author, []).append(change)

    def _all(self) -> Iterator[CodeChange]:
        for changes in self._changes.values():
            yield from changes

    def _patches(self, history: Sequence[CodeCommit]) -> dict[str, str]:
        """Return the patch ids of the commits that are not linked, by commit."""
        unknown = [commit.id for commit in history if commit.id not in self._by_commit]
        return self._git.patch_ids(unknown[:MAXIMUM_PATCHES])

    def of_commit(self, commit: CodeCommit, file: str) -> list[Reason]:
        """Return the reasons of a commit; of several changes in it those that changed the file, if one is given."""
        how, chain = self._chain(commit)
        squashed = self._squashed(commit, file)
        found: list[Reason] = []
        for changes in _by_trajectory(_of_file(chain, file) or chain):
            found.append(self._reason(commit, how[changes[0].trajectory.id], changes, file))
        for each, changes in squashed:
            found.append(self._reason(commit, each, changes, file))
        return _without_needless_guesses(found)

    def of_line(self, commit: CodeCommit, line: BlamedLine) -> list[Reason]:
        """Return the reasons of a line that a commit wrote, the one of the change that wrote it first before others."""
        how, chain = self._chain(commit)
        origin, is_certain = self._origin(commit, line, chain)
        found: list[Reason] = []
        rest = [each for each in chain if origin is None or each.trajectory != origin.trajectory]
        if origin is not None:
            same = [each for each in chain if each.trajectory == origin.trajectory]
            is_own = origin in same
            versions = [each for each in same if each.link == origin.link]
            own = [origin] if self._decisions([origin]) or not is_own else versions
            name = RESTORED if _is_revert(commit) else SQUASHED
            name = how[origin.trajectory.id] if is_own else name
            name = name if is_certain else SAME_FILES
            others = _of_file(same, line.file) if self._decisions(own) else ()
            found.append(self._reason(commit, name, own, line.file, others))
            if not is_own and self._decisions(same):
                rest = chain
        for changes in _by_trajectory(_of_file(rest, line.file) or rest):
            trajectory = changes[0].trajectory
            found.append(self._reason(commit, how[trajectory.id], changes, line.file))
        if all(each.is_guess for each in found):
            squashed = self._squashed(commit, line.file) or self._squashed(commit, "")
            decisions = {event.id for _, changes in squashed for event in self._decisions(changes)}
            for each, changes in squashed:
                name = each if len(decisions) == 1 else SAME_FILES
                found.append(self._reason(commit, name, changes, line.file))
        return _without_needless_guesses(found)

    def waiting(self) -> list[Reason]:
        """Return the decisions that no change has yet, of the current trajectory."""
        try:
            state = reading.choose(self._store)
        except errors.StateError:
            return []
        trajectory = self._trajectories.get(state.id) or reading.read_trajectory(
            self._store, state.id
        )
        self._trajectories[state.id] = trajectory
        claimed = {event.id for found in self._claims(trajectory).values() for event in found}
        wait = [event for event in trajectory.decisions if event.id not in claimed]
        now = self._store.clock.now()
        commit = CodeCommit("", now, now, "")
        chapter = _chapter(trajectory, wait, now)
        return [
            Reason(
                commit,
                NOT_COMMITTED,
                trajectory.state,
                chapter,
                self._bases(trajectory, wait),
                True,
            )
        ]

    def _chain(self, commit: CodeCommit) -> tuple[dict[str, str], list[CodeChange]]:
        """Return the changes that became a commit, all their versions, and how it leads to each trajectory."""
        how, found = LINKED, self._by_commit.get(commit.id, [])
        patch_id = self._patch_ids.get(commit.id, "")
        if not found and patch_id:
            how, found = SAME_CHANGE, self._by_patch.get(patch_id, [])
        if not found:
            files = set(commit.files)
            author = self._by_author.get((commit.made, commit.subject), [])
            how, found = SAME_CHANGE, [each for each in author if each.files & files]
        links = {each.link.id for each in found if each.link is not None}
        chain = [
            change
            for id_ in dict.fromkeys(each.trajectory.id for each in found)
            for change in self._changes[id_]
            if change.link is not None and change.link.id in links
        ]
        hows = {each.trajectory.id: how for each in chain}
        for id_ in commit.trajectories:
            if id_ not in hows and (trajectory := self._named(id_)) is not None:
                hows[id_] = TRAILER
                chain.append(named_change(trajectory, commit))
        return hows, chain

    def _named(self, id: str) -> Trajectory | None:
        if id not in self._trajectories:
            try:
                found = reading.read_trajectory(self._store, id)
            except (errors.NotFoundError, errors.InvalidInputError, errors.AmbiguousRevisionError):
                return None
            if found.id != id:
                return None
            self._add(found)
        return self._trajectories[id]

    def _claims(self, trajectory: Trajectory) -> dict[Key, list[Event]]:
        """Return the decisions of each change of a trajectory."""
        if trajectory.id not in self._claimed:
            since = f"--since=@{max(trajectory.state.started - _DAY, 0) // 1000}"
            pattern = f"--grep=^{TRAILER_NAME}: {trajectory.id}"
            latest = f"--max-count={MAXIMUM_COMMITS}"
            ids = self._git.history("--all", "-i", latest, since, pattern)
            named = self._git.commits(ids)
            changes = self._changes.get(trajectory.id, [])
            self._claimed[trajectory.id] = claims(trajectory, changes, named)
        return self._claimed[trajectory.id]

    def _decisions(self, changes: Iterable[CodeChange]) -> list[Event]:
        """Return the decisions that belong to changes of one trajectory, oldest first."""
        found: dict[Address, Event] = {}
        for change in changes:
            for event in self._claims(change.trajectory).get(change.key, ()):
                found[event.id] = event
        return sorted(found.values(), key=lambda event: event.time)

    def _origin(
        self, commit: CodeCommit, line: BlamedLine, chain: Sequence[CodeChange]
    ) -> tuple[CodeChange | None, bool]:
        """Return the change that wrote a line first, and whether that is certain.

        For a line that many files have, the lines around it are asked first; it is certain if they agree.
        """
        own = self._first(commit, mark_of(line.text, line.file), line.file, chain)
        if is_distinct(line.text):
            return own, True
        text = self._git.text(commit.id, line.file)
        above = text[max(line.number - 1 - _NEIGHBOURS, 0) : line.number - 1][::-1]
        below = text[line.number : line.number + _NEIGHBOURS]
        found = []
        for lines in (above, below):
            mark = next((mark_of(each, line.file) for each in lines if is_distinct(each)), "")
            found.append(self._first(commit, mark, line.file, chain))
        near = [each for each in found if each is not None]
        if not near:
            return own, True
        return near[0], len({each.key for each in near}) == 1

    def _first(
        self, commit: CodeCommit, mark: str, file: str, chain: Sequence[CodeChange]
    ) -> CodeChange | None:
        """Return the earliest change that added a line, of those that a commit consists of.

        A revert without a decision of its own gives a line back to the latest change before it that added the line.
        """
        if not mark:
            return None
        if _is_revert(commit) and not self._decisions(chain):
            known = (
                each
                for each in self._all()
                if mark in each.marks and each.link is not None and self._is_before(each, commit)
            )
            return max(known, key=lambda each: each.key[1], default=None)
        own = [each for each in chain if mark in each.marks]
        files = {file, *commit.files}
        late = commit.committed + _SECOND
        others = [
            each
            for each in self._all()
            if each not in own
            and each.key[1] <= late
            and each.files & files
            and mark in each.marks
            and self._decisions([each])
            and (not self._is_before(each, commit) or mark in self._removed(commit, file))
        ]
        return min(
            (*own, *others),
            key=lambda each: (each.key[1], not self._decisions([each])),
            default=None,
        )

    def _removed(self, commit: CodeCommit, file: str) -> set[str]:
        """Return the hashes of the lines that a commit removed from other files, which it may have moved."""
        if commit.id not in self._moved:
            self._moved[commit.id] = self._git.changed_lines([commit.id], "-").get(commit.id, [])
        return {mark_of(line, other) for other, line in self._moved[commit.id] if other != file}

    def _is_before(self, change: CodeChange, commit: CodeCommit) -> bool:
        """Return True if a version of a change is in the history of a commit."""
        assert change.link is not None
        ids = [str(data.get("commit")) for data in (change.link.data, *change.link.versions)]
        for id_ in ids:
            pair = id_, commit.id
            if pair not in self._ancestors:
                self._ancestors[pair] = id_ != commit.id and self._git.is_ancestor(*pair)
            if self._ancestors[pair]:
                return True
        return False

    def _squashed(self, commit: CodeCommit, file: str) -> list[tuple[str, list[CodeChange]]]:
        """Return the changes that were squashed into a commit, by trajectory, and whether only their files say so."""
        here = {each.id for each in self._history}
        patches = set(self._patch_ids.values())
        own = {each.link.id for each in self._by_commit.get(commit.id, []) if each.link}
        added: set[str] | None = None
        by_how: dict[str, list[CodeChange]] = {SQUASHED: [], SAME_FILES: []}
        for change in self._all():
            files = change.files
            if not files or change.link is None or change.link.id in own:
                continue
            if change.key[1] > commit.committed + _SECOND or not files & {*commit.files}:
                continue
            if file and file not in files:
                continue
            data = (change.link.data, *change.link.versions)
            if {each.get("commit") for each in data} & here:
                continue
            if change.data.get("patch_id", "") in patches or self._is_before(change, commit):
                continue
            if change.marks:
                if added is None:
                    added = split_marks(code.marks_of_commit(self._git, commit.id))
                if len(change.marks & added) >= _MOST * len(change.marks):
                    by_how[SQUASHED].append(change)
            elif files <= {*commit.files} and self._is_first_with(files, change, commit):
                by_how[SAME_FILES].append(change)
        return [
            (how, changes) for how, found in by_how.items() for changes in _by_trajectory(found)
        ]

    def _is_first_with(self, files: set[str], change: CodeChange, commit: CodeCommit) -> bool:
        """Return True if no earlier commit after a change has all of its files."""
        for each in sorted(self._history, key=lambda each: each.committed):
            if each.committed >= change.data.get("made", 0) and files <= {*each.files}:
                return each.id == commit.id
        return False

    def _reason(
        self,
        commit: CodeCommit,
        how: str,
        changes: Sequence[CodeChange],
        file: str,
        others: Sequence[CodeChange] = (),
    ) -> Reason:
        """Return the reason that changes give; the decisions of others in the same commit follow."""
        trajectory = changes[0].trajectory
        last = max(each.key[1] for each in changes)
        chosen = self._decisions(changes)
        decisions = trajectory.decisions
        nearest = [event for event in decisions if event.time <= last][-1:] or decisions[:1]
        known = {event.id for event in chosen}
        about = [
            *(event for event in self._decisions(others) if event.id not in known),
            *sorted(chosen, key=lambda event: _is_about(event, file)),
        ]
        claimed = self._claims(trajectory)
        guesses = {
            event.id
            for change in (*changes, *others)
            for event in claimed.get(change.key, ())
            if change.is_doubtful(event)
        }
        about.sort(key=lambda event: event.id not in guesses)
        bases = self._bases(trajectory, about or nearest, guesses)
        chapter = _chapter(trajectory, chosen, last)
        is_guess = all(event.id in guesses for event in chosen)
        return Reason(commit, how, trajectory.state, chapter, bases, is_guess)

    def _bases(
        self, trajectory: Trajectory, events: Sequence[Event], guesses: Collection[Address] = ()
    ) -> tuple[Basis, ...]:
        decisions = [event.id for event in trajectory.decisions]
        return tuple(
            Basis(
                each,
                decisions.index(each.id) + 1,
                _messages(self._store, each.session),
                each.id in guesses,
            )
            for each in reversed(events)
        )


def _is_revert(commit: CodeCommit) -> bool:
    """Return True if a commit has the subject that `git revert` writes, also for a revert of a revert."""
    return commit.subject.startswith(('Revert "', 'Reapply "'))


def _without_needless_guesses(reasons: Sequence[Reason]) -> list[Reason]:
    """Return reasons without the guesses of trajectories that have a better one."""
    known = {each.trajectory.id for each in reasons if not each.is_guess}
    kept: list[Reason] = []
    for each in reasons:
        if each.is_guess and each.trajectory.id in known:
            continue
        if each not in kept:
            kept.append(each)
    return kept


def _is_about(event: Event, file: str) -> int:
    """Return 2 if a decision names a file, 1 if it names none, 0 if it names others."""
    files = event.data.get("files", ())
    if files:
        return 2 if file in files else 0
    name = os.path.basename(file)
    words = f"{event.question} {event.content} {event.reasoning}"
    return 2 if name and name in words else 1


def _chapter(trajectory: Trajectory, decisions: Sequence[Event], last: int) -> str:
    """Return the title of the chapter of the agent that decided; of any agent if it has none."""
    chapters = [each for each in trajectory.of_type(ev.CHAPTER) if each.time <= last]
    agents = {event.agent for event in decisions}
    own = [each for each in chapters if each.agent in agents] or chapters
    return str(own[-1].data.get("title", "")) if own else ""


def _by_trajectory(changes: Sequence[CodeChange]) -> list[list[CodeChange]]:
    found: dict[str, list[CodeChange]] = {}
    for change in changes:
        found.setdefault(change.trajectory.id, []).append(change)
    return list(found.values())


def _of_file(changes: Sequence[CodeChange], file: str) -> list[CodeChange]:
    """Return the changes that changed a file; all if none is given."""
    return [each for each in changes if not file or file in each.files]


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
