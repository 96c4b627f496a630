"""Capture: the blocks in agents' messages are recorded as events.

Each event names its message and the number of the block, so nothing is recorded twice. A local file holds the last
scanned commit of each branch, so that a scan reads new messages only; it may be deleted.
"""

from __future__ import annotations

from trace_store import errors, trajectories
from trace_store.files import read_file, replace_file
from trace_store.frozen import value
from trace_store.objects import operations as ops
from trace_store.objects.commit import read_commit
from trace_store.objects.message import load_message
from trace_store.oid import ObjectId, is_full_id
from trace_store.refs.names import BRANCHES
from trace_store.revision import branch_of, resolve_commit
from trace_store.trajectories import reading
from trace_store.trajectories.blocks import MARK, BlockReader, blocks_in, read_block
from trace_store.trajectories.events import NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trace_store.llm.contract import Model
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Commit
    from trace_store.store.handle import Store
    from trace_store.trajectories.blocks import Block
    from trace_store.trajectories.proposals import Proposal
    from trace_store.trajectories.recording import Recorded, Recorder
    from trace_store.trajectories.state import State


@value
class BadBlock:
    """A block that was not recorded.

    Attributes:
        address: the message that it is in; None in a stream.
        number: its place in the message or stream; 1 for the first block.
        type: its type.
        reason: why it was not recorded.
    """

    address: Address | None
    number: int
    type: str
    reason: str


@value
class Captured:
    """The result of a scan.

    Attributes:
        recorded: the new events.
        bad: blocks that were not recorded.
        known: number of blocks that had been recorded before.
    """

    recorded: tuple[Recorded, ...]
    bad: tuple[BadBlock, ...]
    known: int


@value
class _Text:
    """The text of a message with blocks; `author` and `time` are those of its commit."""

    commit: ObjectId
    author: str
    time: int
    address: Address
    text: str


class Capture:
    """Records the blocks in messages of one store, or in a stream: `repo.trajectories.capture`."""

    def __init__(self, store: Store, recorder: Recorder, named: str, agent: str) -> None:
        self._store = store
        self._recorder = recorder
        self._named = named
        self._agent = agent

    def scan(self, branch: str = "HEAD", *, trajectory: str = "") -> Captured:
        """Record the blocks in agents' messages on a branch, or up to a commit; read only new commits.

        Args:
            branch: the branch, or a commit.
            trajectory: where to record; "" for the one in `TRACE_TRAJECTORY`, else the active one of `branch`, else of
                HEAD's branch, else the only active one.

        Raises:
            RevisionNotFoundError: there is no such commit.
            StateError: there are blocks, but there is no current trajectory, there are several, or it has ended.
            RefNotFoundError: there is no such trajectory.
        """
        tip = resolve_commit(self._store, branch)
        ref = branch_of(self._store, branch) or ""
        return self._scan(ref, tip, trajectory, is_final=True)

    def scan_all(self, *, trajectory: str = "") -> Captured:
        """Record the blocks on all branches; arguments and errors as in `scan`."""
        tips = dict(self._store.refs.iterate(BRANCHES))
        found = [self._scan(*each, trajectory, is_final=True) for each in tips.items()]
        return Captured(
            tuple(each for one in found for each in one.recorded),
            tuple(each for one in found for each in one.bad),
            sum(one.known for one in found),
        )

    def after_commit(self, oid: ObjectId, ref: str) -> None:
        """Record the blocks in a new commit of a branch; if that fails, a later scan does it."""
        try:
            commit = read_commit(oid, self._store.objects.read)
            self._record(_texts(self._store, oid, commit), ref, "")
        except errors.TraceError:
            pass  # the commit is written

    def after_import(self, tips: Mapping[str, ObjectId]) -> None:
        """Record the blocks on imported branches, given their tips; if that fails, a later scan does it."""
        try:
            for ref, tip in tips.items():
                self._scan(ref, tip, "", is_final=False)
        except errors.TraceError:
            pass  # the import is done

    def propose(self, branch: str = "HEAD", *, model: Model | None = None) -> list[Proposal]:
        """Return decisions found in messages, for review; record nothing.

        Args:
            branch: the branch, or a commit.
            model: finds the decisions; if it is None, they are found by their wording.

        Raises:
            RevisionNotFoundError: there is no such commit.
            ModelError: the request failed, or the answer could not be used.
        """
        return trajectories.proposals.propose(
            self._store, resolve_commit(self._store, branch), model
        )

    def proposed(self) -> list[Proposal]:
        """Return the last list of proposals; empty if there is none."""
        return trajectories.proposals.last_list(self._store)

    def accept(self, numbers: Sequence[int], *, trajectory: str = "") -> list[Recorded]:
        """Record proposals of the last list; skip those that are recorded already.

        Args:
            numbers: their numbers in the list.
            trajectory: as in `scan`.

        Raises:
            InvalidInputError: the list has no such number.
            StateError: there is no list, or as in `scan`.
            RefNotFoundError: there is no such trajectory.
        """
        new = trajectories.proposals.accepted(self._store, numbers)
        id_ = self._choose(trajectory).id
        return self._recorder.record(id_, new) if new else []

    def feed(self, *, trajectory: str = "", agent: str = "") -> Feed:
        """Return a `Feed`, which records each block in a stream when it ends.

        Args:
            trajectory: where to record; "" for the one that is current when the first block ends.
            agent: whose output it is.
        """
        return Feed(self, trajectory, agent or self._agent)

    def _scan(self, ref: str, tip: ObjectId, trajectory: str, *, is_final: bool) -> Captured:
        """Record the new blocks on a branch; unless `is_final`, a later scan reports bad blocks again."""
        marks = _read_marks(self._store)
        last = marks.get(ref)
        found = self._record(_texts_since(self._store, tip, last), ref, trajectory)
        if ref and tip != last and (is_final or not found.bad):
            _write_marks(self._store, {**marks, ref: tip})
        return found

    def _record(self, texts: Sequence[_Text], ref: str, trajectory: str) -> Captured:
        """Record the blocks in texts, oldest first."""
        found = [(text, block) for text in texts for block in blocks_in(text.text)]
        if not found:
            return Captured((), (), 0)
        addresses = dict.fromkeys(text.address for text, _ in found)
        known = trajectories.event_search.recorded_sources(self._store, addresses)
        bad: list[BadBlock] = []
        new: list[NewEvent] = []
        for text, block in found:
            source = text.address.hex, block.number
            if source in known:
                continue
            known.add(source)
            try:
                data = {**read_block(block), "source": source[0], "block": block.number}
            except errors.InvalidInputError as error:
                bad.append(_bad(text.address, block, error))
                continue
            new.append(NewEvent(data, text.author, text.time, text.commit))
        made: list[Recorded] = []
        if new:
            made = self._recorder.record(self._choose(trajectory, ref).id, new)
        return Captured(tuple(made), tuple(bad), len(found) - len(new) - len(bad))

    def _choose(self, trajectory: str, ref: str = "") -> State:
        return reading.choose(self._store, trajectory or self._named, branch=ref)

    def record_block(self, block: Block, trajectory: str, agent: str) -> Recorded:
        """Record a block of a stream.

        Raises:
            InvalidInputError: it cannot be read.
            As `scan`.
        """
        event = NewEvent(read_block(block), agent, None, self._store.refs.head().oid)
        return self._recorder.record(self._choose(trajectory).id, [event])[0]


class Feed:
    """Records the blocks in a stream.

    Attributes:
        recorded: the events so far.
        bad: the blocks that were not recorded.
    """

    def __init__(self, capture: Capture, trajectory: str, agent: str) -> None:
        self._capture = capture
        self._trajectory = trajectory
        self._agent = agent
        self._reader = BlockReader()
        self.recorded: list[Recorded] = []
        self.bad: list[BadBlock] = []

    def write(self, text: str) -> None:
        """Take the next piece of the stream, and record the blocks that end in it; bad ones go to `bad`."""
        self._take(self._reader.feed(text))

    def close(self) -> None:
        """End the stream: a block that is still open is bad."""
        self._take(self._reader.finish())

    def _take(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            try:
                made = self._capture.record_block(block, self._trajectory, self._agent)
            except errors.TraceError as error:
                self.bad.append(_bad(None, block, error))
            else:
                self._trajectory = made.state.id
                self.recorded.append(made)


def _bad(address: Address | None, block: Block, error: errors.TraceError) -> BadBlock:
    return BadBlock(address, block.number, block.type, error.message)


def _texts_since(store: Store, tip: ObjectId, last: ObjectId | None) -> list[_Text]:
    """Return the texts with blocks in the commits after `last`, or in all commits, oldest first."""
    found: list[_Text] = []
    oid: ObjectId | None = tip
    while oid is not None and oid != last:
        try:
            commit = read_commit(oid, store.objects.read)
        except errors.ObjectNotFoundError:
            break  # the beginning was not fetched
        found += reversed(_texts(store, oid, commit))
        oid = commit.parents[0] if commit.parents else None
    return found[::-1]


def _texts(store: Store, oid: ObjectId, commit: Commit) -> list[_Text]:
    """Return the assistant texts with blocks in a commit; damaged messages are left to fsck."""
    found = []
    for address, stored in ops.added_messages(commit, oid):
        if stored["role"] != "assistant":
            continue
        try:
            text = load_message(stored, store.objects.read).text
        except (errors.NotFoundError, errors.FormatError):
            continue
        if MARK in text:
            found.append(_Text(oid, commit.author, commit.time, address, text))
    return found


def _read_marks(store: Store) -> dict[str, ObjectId]:
    """Return the last scanned commit of each branch."""
    data = read_file(store.disk, store.layout.captured_file) or b""
    rows = (line.partition(" ") for line in data.decode("utf-8", "replace").splitlines())
    return {ref: ObjectId.parse(hex) for hex, _, ref in rows if is_full_id(hex)}


def _write_marks(store: Store, marks: Mapping[str, ObjectId]) -> None:
    data = "".join(f"{marks[ref]} {ref}\n" for ref in sorted(marks)).encode()
    path, scratch = store.layout.captured_file, store.layout.tmp_dir
    try:
        store.disk.make_directory(store.layout.cache_dir)
        replace_file(store.disk, path, data, durable=False, scratch=scratch)
    except errors.StorageError:
        pass  # the next scan reads the same messages again
