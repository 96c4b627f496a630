"""Capture: the blocks in agents' messages are recorded as events.

    [[TRAJECTORY:decision]] {"question": "Where?", "chosen": "in memory", "reasoning": "no store"} [[/TRAJECTORY]]
    [[RETROSPECTIVE]] summary: Tokens are signed [[/RETROSPECTIVE]]

The type may also be in the body of an `event`. Blocks in code fences, quotes and inline code are
examples, and stay text.
A body that begins with `{` is JSON. Models write it with small faults, such as code fences, single quotes and trailing
commas; these are repaired. Any other body is read as lines `field: value`.

Each event names its message and the number of the block, so nothing is recorded twice. A local file holds the last
scanned commit of each branch, so that a scan reads new messages only; it may be deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from trace_store import errors, trajectories
from trace_store.base import check
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId, is_full_id
from trace_store.contracts.ref_names import BRANCHES
from trace_store.disk.files import read_file, replace_file
from trace_store.llm.contract import Model
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.message import load_message
from trace_store.store.revision import branch_of, resolve_commit
from trace_store.store.store import Store
from trace_store.trajectories import events as ev
from trace_store.trajectories import reading
from trace_store.trajectories.events import NewEvent, event_data
from trace_store.trajectories.recording import Recorded, Recorder
from trace_store.trajectories.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.trajectories.proposals import Proposal

MAXIMUM_CHARACTERS = 256 * 1024
"""Maximum length of a block."""
MARK = "[["
"""The first characters of every block."""
_OPENING = re.compile(r"\[\[(?:TRAJECTORY:[ \t]*([A-Za-z][\w-]{0,63})|RETROSPECTIVE)[ \t]*\]\]")
_ANY_MARK = re.compile(_OPENING.pattern + r"|\[\[/(?:TRAJECTORY|RETROSPECTIVE)\]\]")
_LONGEST_MARK = 128
_LONGEST_LINE = 4096
_FENCE_LINE = re.compile(r"[ ]{0,3}(?:>[ ]?)*(`{3,}|~{3,})(.*)")
_TICKS = re.compile(r"`+")
_ANY_TYPE = "event"
"""The type of a block whose body names the type."""
_FENCE = re.compile(r"\A```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```\Z", re.DOTALL)
_JSON_FAULT = re.compile(
    r"""("(?:\\.|[^"\\])*")|('(?:\\.|[^'\\])*')|(,)(?=\s*[}\]])|\b(True|False|None)\b""", re.DOTALL
)
_PYTHON_NAMES = {"True": "true", "False": "false", "None": "null"}
_FIELD_LINE = re.compile(r"[ \t]*(?:[#*>-]+[ \t]*)?\**([A-Za-z_]+)\**[ \t]*:\**[ \t]*(.*)")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+(.*)")
_CONTENT_NAMES = {"chosen", "text", "message", "description", "decision"}
"""Aliases of the field `content`."""
_LISTS = ("alternatives", "challenges", "learnings", "suggestions", "tags")
_FIELDS = frozenset(
    (
        *("content", "question", "reasoning", "confidence", "significance", "title", "to", "from"),
        *("summary", "approach", *_LISTS),
    )
)
_REQUIRED = {ev.RETROSPECTIVE: "summary", ev.CHAPTER: "title"}
"""The required field of each type; `content` for the others."""


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
        check.text(branch=branch, trajectory=trajectory)
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
        check.text(branch=branch)
        check.function(model=model)
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
        check.items(numbers=numbers)
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
        recorded = 0
        for text, block in found:
            source = text.address.hex, block.number
            if source in known:
                continue
            known.add(source)
            try:
                events = read_block(block)
            except errors.InvalidInputError as error:
                bad.append(_bad(text.address, block, error))
                continue
            recorded += 1
            for each in events:
                data = {**each, "source": source[0], "block": block.number}
                new.append(NewEvent(data, text.author, text.time, text.commit))
        made: list[Recorded] = []
        if new:
            made = self._recorder.record(self._choose(trajectory, ref).id, new)
        return Captured(tuple(made), tuple(bad), len(found) - recorded - len(bad))

    def _choose(self, trajectory: str, ref: str = "") -> State:
        return reading.choose(self._store, trajectory or self._named, branch=ref)

    def record_block(self, block: Block, trajectory: str, agent: str) -> list[Recorded]:
        """Record the events in a block of a stream.

        Raises:
            InvalidInputError: it cannot be read.
            As `scan`.
        """
        head = self._store.refs.head().oid
        events = [NewEvent(each, agent, None, head) for each in read_block(block)]
        return self._recorder.record(self._choose(trajectory).id, events)


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
                self._trajectory = made[0].state.id
                self.recorded += made


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


@value
class Block:
    """A block in a text.

    Attributes:
        number: 1 for the first one.
        type: the type of the event.
        body: the text in it; None if the block was never closed, or is too long.
    """

    number: int
    type: str
    body: str | None


class _Surroundings:
    """Where in Markdown a text is that has been read so far: in a code fence, a quote or inline code, or in none."""

    def __init__(self) -> None:
        self._line = ""
        self._fence = ""

    def read(self, text: str) -> None:
        """Read the next piece of the text."""
        *lines, rest = (self._line + text).split("\n")
        for line in lines:
            found = _FENCE_LINE.match(line)
            if found and not self._fence:
                self._fence = found[1]
            elif found and found[1].startswith(self._fence) and not found[2].strip():
                self._fence = ""
        self._line = rest[:_LONGEST_LINE]

    @property
    def is_example(self) -> bool:
        """Whether a block that begins here is an example."""
        if self._fence or self._line.lstrip().startswith(">"):
            return True
        opened = ""
        for run in _TICKS.findall(self._line):
            opened = run if not opened else "" if run == opened else opened
        return bool(opened)


class BlockReader:
    """Finds blocks in streamed text; keeps only an open block in memory."""

    def __init__(self) -> None:
        self._text = ""
        self._opened: str | None = None  # the type of the open block
        self._pieces: list[str] = []
        self._size = 0
        self._count = 0
        self._around = _Surroundings()

    def feed(self, text: str) -> Iterator[Block]:
        """Yield the blocks that end in the next piece of the text."""
        self._text += text
        at = 0
        for mark in _ANY_MARK.finditer(self._text):
            self._keep(self._text[at : mark.start()])
            at = mark.end()
            opens = _OPENING.fullmatch(mark[0]) is not None
            if self._opened is None and (not opens or self._around.is_example):
                self._around.read(mark[0])
                continue
            if self._opened is not None:
                yield self._end(is_closed=not opens)
            if opens:
                self._opened, self._size = (mark[1] or ev.RETROSPECTIVE).lower(), 0
        # What may be the beginning of a mark stays for the next piece.
        rest = max(at, len(self._text) - _LONGEST_MARK)
        rest = self._text.find(MARK[0], rest)
        rest = len(self._text) if rest < 0 else rest
        self._keep(self._text[at:rest])
        self._text = self._text[rest:]

    def finish(self) -> Iterator[Block]:
        """Yield the block that was never closed, if there is one."""
        if self._opened is not None:
            yield self._end(is_closed=False)

    def _keep(self, text: str) -> None:
        if self._opened is None:
            self._around.read(text)
            return
        self._size += len(text)
        if self._size <= MAXIMUM_CHARACTERS:
            self._pieces.append(text)

    def _end(self, *, is_closed: bool) -> Block:
        body = "".join(self._pieces)
        is_whole = is_closed and self._size <= MAXIMUM_CHARACTERS
        type_, self._opened = self._opened or "", None
        self._pieces, self._size = [], 0
        self._count += 1
        return Block(self._count, type_, body if is_whole else None)


def blocks_in(text: str) -> Iterator[Block]:
    """Yield the blocks of a text."""
    if MARK in text:
        reader = BlockReader()
        yield from reader.feed(text)
        yield from reader.finish()


def read_block(block: Block) -> list[dict[str, Any]]:
    """Return the data of the event in a block, and of the decisions in a retrospective; unknown fields go to `raw`.

    Raises:
        InvalidInputError: the block cannot be read, is not closed, or lacks the required field.
    """
    if block.body is None:
        raise errors.InvalidInputError(
            f"the block is not closed, or longer than {MAXIMUM_CHARACTERS:,} characters"
        )
    type_ = block.type
    written = _read_body(block.body, _REQUIRED.get(type_, "content"))
    if type_ == _ANY_TYPE and isinstance(named := written.pop("type", None), str):
        type_ = named.strip().lower()
    decisions = written.pop("decisions", ()) if type_ == ev.RETROSPECTIVE else ()
    found = trajectories.retrospective.read_decisions(decisions)
    is_allowed = type_ in (*ev.IN_CHAPTER, ev.CHAPTER, ev.RETROSPECTIVE) or type_ not in ev.TYPES
    ev.check_type(type_)
    if not is_allowed:
        raise errors.InvalidInputError(f"a block cannot record the type {type_!r}")
    main = _REQUIRED.get(type_, "content")
    fields = {main if name in _CONTENT_NAMES else name: written[name] for name in written}
    data = event_data(type_, more={name: fields[name] for name in fields if name in _FIELDS})
    if not data.get(main):
        raise errors.InvalidInputError(f"the block has no {main}")
    if raw := {name: fields[name] for name in fields if name not in _FIELDS}:
        data["raw"] = raw
    return [*found, data]


def _read_body(body: str, main: str) -> dict[str, Any]:
    text = body.strip()
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    if not text.startswith("{"):
        return _read_lines(text, main)
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as first:
        try:
            found = json.loads(
                _JSON_FAULT.sub(_repaired, text), strict=False, parse_constant=_refuse_constant
            )
        except (ValueError, RecursionError):
            raise errors.InvalidInputError(f"the block is not JSON: {first}") from first
    return dict(found)


def _repaired(match: re.Match[str]) -> str:
    double, single, comma, name = match.groups()
    if single:
        return json.dumps(single[1:-1].replace("\\'", "'"), ensure_ascii=False)
    return "" if comma else double or _PYTHON_NAMES[name]


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _read_lines(text: str, main: str) -> dict[str, Any]:
    """Return the fields in lines `field: value`; lines before the first one belong to the field `main`."""
    found: dict[str, list[str]] = {}
    name = main
    for line in text.splitlines():
        field = _FIELD_LINE.match(line)
        if field and (key := field[1].lower()) in _FIELDS | _CONTENT_NAMES | {"type"}:
            name, line = key, field[2]
        if line.strip():
            found.setdefault(name, []).append(line)
    fields: dict[str, Any] = {}
    for name, lines in found.items():
        if name in _LISTS:
            fields[name] = [item[1] if (item := _ITEM.match(each)) else each for each in lines]
        else:
            fields[name] = "\n".join(lines).strip()
    if "confidence" in fields:
        with suppress(ValueError):  # event_data reports it
            fields["confidence"] = float(fields["confidence"])
    return fields
