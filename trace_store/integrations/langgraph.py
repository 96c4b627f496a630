"""LangGraph: a checkpoint saver; extra `langgraph`.

    graph = builder.compile(checkpointer=TraceSaver(repo))

A thread and a namespace are a folder of records: `main`, one more for each fork, and `writes` with what tasks wrote for
a checkpoint. A checkpoint is a commit. Its channels are values, serialized by LangGraph's own serializer. The messages
of the channel `messages` are the context of the record, too, so that a thread reads like a branch.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import threading
from builtins import list as List  # the method `list` hides it  # noqa: N812
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import msgpack
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.history.records import WARN, RecordDraft, RecordState, RecordValue
from trace_store.integrations.framework_store import (
    ARRAY,
    MAXIMUM_ATTEMPTS,
    FrameworkStore,
    array_head,
    common_length,
    message_of,
    split_array,
    split_elements,
)
from trace_store.objects.message import Message
from trace_store.objects.sequences import ContentSequence
from trace_store.repo.repository import Repo
from trace_store.store.revision import commits_of

PROGRAM = META = "langgraph"
"""The folder of the records; and the field of a commit's metadata with the ids of its checkpoint."""
THREAD, NAMESPACE, CHECKPOINT, RUN, WRITES, COPY = (
    f"langgraph.{each}"
    for each in ("thread", "namespace", "checkpoint", "run", "writes", "copy-of")
)
_MAIN, _WRITES, _FORK = "main", "writes", "fork-"
_BODY, _METADATA, _CHANNEL = "checkpoint", "metadata", "channel/"
_CACHED_BYTES = 64 << 20
_CACHED_HEADS = 1024
_STRATEGIES = ("keep_latest", "delete")


class _Array:
    """An array that was written or read: the bytes of its elements, their number, and its sequence."""

    __slots__ = ("body", "count", "sequence")

    def __init__(self, body: bytes, count: int, sequence: ContentSequence) -> None:
        self.body = body
        self.count = count
        self.sequence = sequence

    @property
    def pieces(self) -> list[bytes]:
        return split_elements(self.body, self.count) or []


class _Arrays:
    """The arrays that were used last, by the ids of their sequences."""

    def __init__(self) -> None:
        self._found: OrderedDict[ObjectId, _Array] = OrderedDict()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._found)

    def get(self, oid: ObjectId) -> _Array | None:
        array = self._found.get(oid)
        if array is not None:
            self._found.move_to_end(oid)
        return array

    def keep(self, array: _Array) -> _Array:
        if array.sequence.oid not in self._found:
            self._found[array.sequence.oid] = array
            self._bytes += len(array.body)
        while self._bytes > _CACHED_BYTES and len(self._found) > 1:
            _, old = self._found.popitem(last=False)
            self._bytes -= len(old.body)
        return array

    def longer(self, sequence: ContentSequence) -> _Array | None:
        """Return an array from the beginning of another one: most checkpoints only append messages."""
        items = [*sequence.items]
        for other in reversed(self._found.values()):
            if other.count > len(items) and [*other.sequence.items[: len(items)]] == items:
                size = _size_of(other.body, len(items))
                return self.keep(_Array(other.body[:size], len(items), sequence))
        return None

    def clear(self) -> None:
        self._found.clear()
        self._bytes = 0


class _Head:
    """A commit of a record.

    Attributes:
        state: its state.
        ids: LangGraph's ids of the checkpoint, or of the checkpoint of its writes; empty for a user's commit.
        versions: the versions of its channels, once they are known.
    """

    __slots__ = ("ids", "state", "versions")

    def __init__(
        self, state: RecordState, ids: Mapping[str, str], versions: Mapping[str, Any] | None = None
    ) -> None:
        self.state = state
        self.ids = ids
        self.versions = versions


class TraceSaver(BaseCheckpointSaver[Any]):  # type: ignore[misc]
    """Keeps the checkpoints of LangGraph in a repository.

    Threads and processes may write at the same time. A checkpoint whose parent has a successor already begins a fork, a
    record of its own, so that no process lands on the state of another. Async methods run in threads.
    """

    def __init__(
        self,
        repo: Repo,
        *,
        messages: str = "messages",
        secrets: str = WARN,
        serde: SerializerProtocol | None = None,
    ) -> None:
        """Open the saver.

        Args:
            repo: the repository, which the caller closes.
            messages: the channel whose messages make the context of a thread.
            secrets: "warn" stores values with secrets unchanged and says so once, "refuse" raises SecretFoundError,
                "off" does not look.
            serde: serializes values, in place of LangGraph's own serializer. Encrypted messages make no context.
        """
        super().__init__(serde=serde)
        self._store = FrameworkStore(repo, PROGRAM, secrets=secrets)
        self._records = self._store.records
        self._shown = _CHANNEL + messages
        self._mutex = threading.RLock()
        self._heads: OrderedDict[ObjectId, _Head] = OrderedDict()
        self._arrays = _Arrays()

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, by default the latest of the thread; None if there is none."""
        prefix, wanted = self._folder(config), get_checkpoint_id(config)
        with self._mutex:
            head = self._find(prefix, wanted) if wanted else self._latest(prefix)
            if head is None:
                return None
            return self._tuple(head, str(config["configurable"]["thread_id"]), prefix)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a thread, or of all, newest first."""
        given: Mapping[str, Any] = (config or {}).get("configurable", {})
        prefix = self._store.name()
        if "thread_id" in given:
            prefix = self._prefix(str(given["thread_id"]), given.get("checkpoint_ns"))
        only, end = given.get("checkpoint_id"), get_checkpoint_id(before) if before else None
        count = 0
        for name, head in self._newest_first(prefix):
            if count == limit:
                return
            id = head.ids["id"]
            if (end and id >= end) or (only and id != only):
                continue
            with self._mutex:
                metadata = self._load([head.state.values[_METADATA]])[0]
                if filter and any(metadata.get(key) != value for key, value in filter.items()):
                    continue
                thread = str(given.get("thread_id") or self._thread_of(name))
                found = self._tuple(head, thread, name.rpartition("/")[0] + "/", metadata)
            count += 1
            yield found

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return, for channels that store changes, the writes since their last whole value, and that value.

        Of each ancestor only these are read.
        """
        found: dict[str, List[PendingWrite]] = {name: [] for name in channels}
        seeds: dict[str, Any] = {}
        prefix, wanted = self._folder(config), get_checkpoint_id(config)
        with self._mutex:
            head = self._find(prefix, wanted) if wanted else self._latest(prefix)
            while found.keys() - seeds.keys():
                head = None if head is None else self._parent(prefix, head)
                if head is None:
                    break
                for write in reversed(self._pending(prefix, head.ids["id"])):
                    if write[1] in found and write[1] not in seeds:
                        found[write[1]].append(write)
                for name in found.keys() - seeds.keys():
                    if value := head.state.values.get(_CHANNEL + name):
                        seeds[name] = self._load([value])[0]
        history: dict[str, DeltaChannelHistory] = {}
        for name, writes in found.items():
            history[name] = {"writes": writes[::-1]}
            if name in seeds:
                history[name]["seed"] = seeds[name]
        return history

    def _tuple(
        self, head: _Head, thread: str, prefix: str, metadata: Any = None
    ) -> CheckpointTuple:
        values, ids = head.state.values, head.ids
        channels = [name for name in values if name.startswith(_CHANNEL)]
        body, *loaded = self._load([values[name] for name in (_BODY, *channels)])
        if metadata is None:
            metadata = self._load([values[_METADATA]])[0]
        named = (name.removeprefix(_CHANNEL) for name in channels)
        own = {"thread_id": thread, "checkpoint_ns": ids["ns"]}
        parent: RunnableConfig | None = None
        if ids["parent"]:
            parent = {"configurable": {**own, "checkpoint_id": ids["parent"]}}
        return CheckpointTuple(
            {"configurable": {**own, "checkpoint_id": ids["id"]}},
            {**body, "channel_values": dict(zip(named, loaded, strict=True))},
            metadata,
            parent,
            self._pending(prefix, ids["id"]),
        )

    def _pending(self, prefix: str, id: str) -> List[PendingWrite]:
        """Return what tasks wrote for a checkpoint, in the order in which a graph applies it."""
        if self._records.tip(prefix + _WRITES) is None:
            return []
        kept: dict[tuple[str, int], tuple[str, str, RecordValue]] = {}
        for oid in reversed(self._records.find(prefix, WRITES, id)):
            head = self._head_if_there(oid)
            if head is None or head.ids.get("writes") != id or not self._is_on(prefix, oid):
                continue
            task, path = head.ids["task"], head.ids["path"]
            for name, value in head.state.values.items():
                number, _, channel = name.partition("/")
                index = WRITES_IDX_MAP.get(channel, int(number))
                if index < 0 or (task, index) not in kept:  # a task that runs again writes the same
                    kept[task, index] = path, channel, value
        rows = sorted(
            (writes_sort_key(path, task, index), channel, value)
            for (task, index), (path, channel, value) in kept.items()
        )
        values = self._load([value for _, _, value in rows])
        return [
            (key[1], channel, value) for (key, channel, _), value in zip(rows, values, strict=True)
        ]

    def _load(self, values: Sequence[RecordValue]) -> List[Any]:
        """Return decoded values; values that are not in memory are read in one pass."""
        found: dict[ObjectId, bytes] = {}
        missing: List[RecordValue] = []
        for each in values:
            array = self._array(each) if each.type.startswith(ARRAY) else None
            if array is None:
                missing.append(each)
            else:
                found[each.content] = array_head(array.count) + array.body
        for each, loaded in zip(missing, self._records.load(missing), strict=True):
            data = b"".join(loaded.pieces)
            if loaded.sequence is not None:
                self._arrays.keep(_Array(data, len(loaded.pieces), loaded.sequence))
                data = array_head(len(loaded.pieces)) + data
            found[each.content] = data
        load = self.serde.loads_typed
        return [load((each.type.removeprefix(ARRAY), found[each.content])) for each in values]

    def _array(self, value: RecordValue) -> _Array | None:
        """Return an array from memory, or None."""
        array = self._arrays.get(value.content)
        if array is None and self._arrays:
            array = self._arrays.longer(self._records.sequence(value))
        return array

    # Checkpoints and their places

    def _folder(self, config: RunnableConfig) -> str:
        given = config["configurable"]
        return self._prefix(str(given["thread_id"]), given.get("checkpoint_ns", ""))

    def _prefix(self, thread: str, namespace: str | None = None) -> str:
        """Return the prefix of the records of a thread, or of one namespace of it."""
        if namespace is None:
            return self._store.name(thread) + "/"
        return self._store.name(thread, f"ns {namespace}" if namespace else "root") + "/"

    def _lines(self, prefix: str) -> dict[str, tuple[ObjectId, ...]]:
        """Return the tips of the records of checkpoints under a prefix."""
        found = self._records.tips(prefix)
        return {ref: tips for ref, tips in found.items() if not ref.endswith(f"/{_WRITES}")}

    def _latest(self, prefix: str) -> _Head | None:
        found = [self._at_or_before(tip) for tips in self._lines(prefix).values() for tip in tips]
        heads = [head for head in found if head is not None]
        return max(heads, key=lambda head: head.ids["id"], default=None)

    def _find(self, prefix: str, id: str) -> _Head | None:
        """Return the checkpoint with an id, if a record under the prefix has it."""
        for tips in self._lines(prefix).values():
            head = self._at_or_before(tips[0])
            if head is not None and head.ids["id"] == id:
                return head
        for oid in self._records.find(prefix, CHECKPOINT, id):
            head = self._head_if_there(oid)
            if head is not None and head.ids.get("id") == id and self._is_on(prefix, oid):
                return head
        return None

    def _parent(self, prefix: str, head: _Head) -> _Head | None:
        """Return the parent of a checkpoint, which is usually the commit before."""
        id = head.ids["parent"]
        before = None if head.state.parent is None else self._at_or_before(head.state.parent)
        if before is not None and before.ids["id"] == id:
            return before
        return self._find(prefix, id) if id else None

    def _is_on(self, prefix: str, oid: ObjectId) -> bool:
        """Return True if a record under a prefix reaches a commit; the index may still name erased ones."""
        tips = [tip for found in self._records.tips(prefix).values() for tip in found]
        is_ancestor = commits_of(self._store.repo.store).is_ancestor
        return oid in tips or any(is_ancestor(oid, tip) for tip in tips)

    def _at_or_before(self, oid: ObjectId) -> _Head | None:
        """Return the checkpoint of a commit, or of the nearest one before it."""
        at: ObjectId | None = oid
        while at is not None:
            head = self._head(at)
            if head.ids.get("id"):
                return head
            at = head.state.parent
        return None

    def _head(self, oid: ObjectId) -> _Head:
        head = self._heads.get(oid)
        if head is None:
            ids = self._records.commit(oid).meta.get(META)
            head = _Head(self._records.state(oid), ids if isinstance(ids, dict) else {})
        return self._keep(head)

    def _head_if_there(self, oid: ObjectId) -> _Head | None:
        try:
            return self._head(oid)
        except errors.ObjectNotFoundError:
            return None

    def _keep(self, head: _Head) -> _Head:
        self._heads[head.state.commit] = head
        self._heads.move_to_end(head.state.commit)
        while len(self._heads) > _CACHED_HEADS:
            self._heads.popitem(last=False)
        return head

    def _newest_first(self, prefix: str) -> Iterator[tuple[str, _Head]]:
        """Yield (record, checkpoint) of all records under a prefix, by the checkpoints' ids."""
        with self._mutex:
            starts = [(ref, tip) for ref, tips in self._lines(prefix).items() for tip in tips]
            waiting = [
                (_Descending(head.ids["id"]), number, head)
                for number, (_, tip) in enumerate(starts)
                if (head := self._at_or_before(tip)) is not None
            ]
        heapq.heapify(waiting)
        seen: set[tuple[str, str]] = set()
        while waiting:
            _, number, head = heapq.heappop(waiting)
            name = starts[number][0]
            place = name.rpartition("/")[0], head.ids["id"]
            if place not in seen:  # else two records have met, or it was stored twice
                seen.add(place)
                yield name, head
            elif waiting and any(head is other for _, _, other in waiting):
                continue
            with self._mutex:
                parent = head.state.parent
                older = None if parent is None else self._at_or_before(parent)
            if older is not None:
                heapq.heappush(waiting, (_Descending(older.ids["id"]), number, older))

    def _thread_of(self, name: str) -> str:
        """Return the thread of a record; a copy says so at its newest commits."""
        at = self._records.tip(name)
        while at is not None:
            head = self._head(at)
            if thread := head.ids.get("thread"):
                return thread
            at = head.state.parent
        return ""

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: Mapping[str, Any],
    ) -> RunnableConfig:
        """Store a checkpoint after its parent, and return its config."""
        given = config["configurable"]
        thread, namespace = str(given["thread_id"]), given.get("checkpoint_ns", "")
        prefix, parent = self._prefix(thread, namespace), get_checkpoint_id(config) or ""
        said = get_checkpoint_metadata(config, metadata)
        id, run = checkpoint["id"], str(said.get("run_id") or "")
        ids = {"id": id, "parent": parent, "thread": thread, "ns": namespace, "run": run}
        facts = {THREAD: thread, NAMESPACE: namespace, CHECKPOINT: id, RUN: run}
        facts = {name: value for name, value in facts.items() if value}
        with self._mutex:
            for attempt in range(MAXIMUM_ATTEMPTS):
                name, tip, start, before = self._place(prefix, parent, id)
                draft = self._records.draft(name, start=start, expect=tip)
                self._fill(draft, tip or start, before, checkpoint, new_versions)
                self._set(draft, _METADATA, said)
                subject = "" if draft.messages.operations else _subject(said)
                try:
                    state = draft.write(facts, subject, meta={META: ids})
                except errors.RefChangedError:
                    if attempt == MAXIMUM_ATTEMPTS - 1:
                        raise
                    continue
                self._keep(_Head(state, ids, checkpoint["channel_versions"]))
                break
        own = {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": id}
        return {"configurable": own}

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote for a checkpoint, which may be stored later."""
        id = get_checkpoint_id(config) or ""
        with self._mutex:
            draft = self._records.draft(self._folder(config) + _WRITES)
            for number, (channel, value) in enumerate(writes):
                self._set(draft, f"{number}/{channel}", value)
            ids = {"writes": id, "task": task_id, "path": task_path}
            draft.write({WRITES: id}, f"task {task_id}", meta={META: ids})

    def _place(
        self, prefix: str, parent: str, id: str
    ) -> tuple[str, ObjectId | None, ObjectId | None, _Head | None]:
        """Return where a checkpoint goes: the record, its tip, where a new record starts, the checkpoint before."""
        lines = self._lines(prefix)
        for name, tips in lines.items():
            head = self._at_or_before(tips[0])
            if head is not None and head.ids["id"] in (parent, id):  # or it is stored again
                return name, tips[0], None, head
        before = self._find(prefix, parent) if parent else None
        name, number = prefix + _MAIN, 1
        while name in lines:
            fork = f"{_FORK}{id}" + (f"-{number}" if number > 1 else "")
            name, number = prefix + self._store.name(fork).rpartition("/")[2], number + 1
        return name, None, None if before is None else before.state.commit, before

    def _fill(
        self,
        draft: RecordDraft,
        tip: ObjectId | None,
        before: _Head | None,
        checkpoint: Checkpoint,
        new_versions: Mapping[str, Any],
    ) -> None:
        """Set the values of a checkpoint; unchanged channels keep the values of the previous checkpoint."""
        body = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        self._set(draft, _BODY, body)
        old: Mapping[str, RecordValue] = {} if before is None else before.state.values
        old_versions = {} if before is None else self._versions(before)
        versions = checkpoint["channel_versions"]
        for channel, value in checkpoint["channel_values"].items():
            name = _CHANNEL + channel
            is_same = channel not in new_versions and old_versions.get(channel) == versions.get(
                channel
            )
            if name in old and is_same:
                draft.values[name] = old[name]
            else:
                self._set(draft, name, value, tip, old.get(name))

    def _versions(self, head: _Head) -> Mapping[str, Any]:
        if head.versions is None:
            head.versions = self._load([head.state.values[_BODY]])[0]["channel_versions"]
        return head.versions

    def _set(
        self,
        draft: RecordDraft,
        name: str,
        value: Any,
        tip: ObjectId | None = None,
        old: RecordValue | None = None,
    ) -> None:
        """Set a value; an array element by element, so that what `old` has is not stored again."""
        kind, data = self.serde.dumps_typed(value)
        if kind != "msgpack" or type(value) is not list:
            draft.set(name, kind, data)
            return
        known = None
        if old is not None and old.type == ARRAY + kind and (known := self._array(old)) is None:
            self._load([old])
            known = self._array(old)
        body = data[len(array_head(len(value))) :]
        pieces: List[bytes] | None
        if known is not None and len(value) >= known.count and body.startswith(known.body):
            keep, gone = known.count, List[bytes]()
            pieces = split_elements(body[len(known.body) :], len(value) - keep)
        else:
            pieces, gone = split_array(data), [] if known is None else known.pieces
            keep = common_length(gone, pieces or [])
            pieces, gone = pieces and pieces[keep:], gone[keep:]
        if name == self._shown and (pieces is not None or not value):
            new = pieces or []
            said = dict(zip(new, value[keep:], strict=True))  # these need not be decoded
            self._store.show(draft, tip, gone, new, lambda piece: self._message(piece, said))
        if pieces is None:
            draft.set(name, kind, data)
            return
        before = None if known is None else known.sequence
        made = draft.set_sequence(name, ARRAY + kind, pieces, before=before, keep=keep)
        self._arrays.keep(_Array(body, len(value), made))

    def _message(self, piece: bytes, known: Mapping[bytes, Any]) -> Message | None:
        """Return the message of an element of the channel, which may be known; None for another value."""
        value = known[piece] if piece in known else self.serde.loads_typed(("msgpack", piece))
        return message_of(value) if isinstance(value, BaseMessage | dict) else None

    # Deleting and copying

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread, and erase what only it holds."""
        with self._mutex:
            self._records.delete(*self._records.tips(self._prefix(str(thread_id))))
            self._forget()

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete and erase the checkpoints of runs, with their writes; later checkpoints stay as they are."""
        with self._mutex:
            dropped: dict[str, set[str]] = {}
            for run in run_ids:
                for oid in self._records.find(self._store.name(), RUN, run):
                    head = self._head_if_there(oid)
                    if head is None or head.ids.get("run") != run:
                        continue
                    for thread in self._copies(head.ids["thread"]):
                        prefix = self._prefix(thread, head.ids["ns"])
                        dropped.setdefault(prefix, set()).add(head.ids["id"])
            self._drop(
                {prefix: lambda id, ids=ids: id not in ids for prefix, ids in dropped.items()}
            )

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Erase all checkpoints of threads, or all but the latest of each namespace and what that is derived from."""
        if strategy not in _STRATEGIES:
            raise errors.InvalidInputError(
                f"strategy is {' or '.join(_STRATEGIES)}, not {strategy[:40]!r}",
                argument="strategy",
            )
        with self._mutex:
            if strategy == "delete":
                prefixes = [self._prefix(str(thread)) for thread in thread_ids]
                self._records.delete(*(n for p in prefixes for n in self._records.tips(p)))
                self._forget()
                return
            wanted: dict[str, set[str]] = {}
            for thread in thread_ids:
                for name in self._records.tips(self._prefix(str(thread))):
                    prefix = name.rpartition("/")[0] + "/"
                    if prefix not in wanted:
                        wanted[prefix] = self._needed(prefix)
            self._drop({prefix: lambda id, ids=ids: id in ids for prefix, ids in wanted.items()})

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread; its commits are shared.

        Raises:
            AlreadyExistsError: the target exists.
        """
        source, target = str(source_thread_id), str(target_thread_id)
        with self._mutex:
            prefix, to = self._prefix(source), self._prefix(target)
            if self._records.tips(to):
                raise errors.AlreadyExistsError(f"the thread {target[:80]!r} exists already")
            for name, tips in self._records.tips(prefix).items():
                values = self._head(tips[0]).state.values
                new = to + name.removeprefix(prefix)
                draft = self._records.draft(new, start=tips[0], expect=None, values=values)
                meta = {META: {"thread": target}}
                draft.write({THREAD: target, COPY: source}, f"copied from {source[:80]}", meta=meta)

    def _copies(self, thread: str) -> List[str]:
        """Return a thread and all its copies."""
        found = [thread]
        for each in found:
            for oid in self._records.find(self._store.name(), COPY, each):
                head = self._head_if_there(oid)
                if head is not None and head.ids.get("thread") not in (None, *found):
                    found.append(head.ids["thread"])
        return found

    def _needed(self, prefix: str) -> set[str]:
        """Return the ids of the latest checkpoint, and of those that its channels of changes are derived from."""
        head = self._latest(prefix)
        if head is None:
            return set()
        found = {head.ids["id"]}
        metadata = self._load([head.state.values[_METADATA]])[0]
        open_ = {*metadata.get("counters_since_delta_snapshot", {})}
        while open_ := {each for each in open_ if _CHANNEL + each not in head.state.values}:
            head = self._parent(prefix, head)
            if head is None:
                break
            found.add(head.ids["id"])
        return found

    def _drop(self, stays: Mapping[str, Any]) -> None:
        """Rewrite the records under prefixes without some checkpoints.

        Args:
            stays: by prefix, a function that returns whether the checkpoint with an id stays.
        """
        lines: dict[str, ObjectId] = {}
        kept: List[ObjectId] = []
        for prefix, is_kept in stays.items():
            for name, tips in self._records.tips(prefix).items():
                lines[name] = tips[0]
                belongs = ""
                for oid, commit in reversed([*self._records.lines([tips[0]])]):
                    ids = commit.meta.get(META) or {}
                    belongs = ids.get("writes") or ids.get("id") or belongs
                    if is_kept(belongs):
                        kept.append(oid)
        if lines:
            self._records.keep_only(lines, kept)
            self._forget()

    def _forget(self) -> None:
        self._heads.clear()
        self._arrays.clear()

    def get_next_version(self, current: Any, channel: None) -> str:
        """Return the next version of a channel; a random tail tells forks apart."""
        number = int(str(current).split(".")[0]) if current is not None else 0
        return f"{number + 1:032}.{random.random():016}"

    # Async

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: Mapping[str, Any],
    ) -> RunnableConfig:
        """As `put`."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As `put_writes`."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `get_delta_channel_history`."""
        read = self.get_delta_channel_history
        return await asyncio.to_thread(read, config=config, channels=channels)


class _Descending:
    """An id that sorts in descending order."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id

    def __lt__(self, other: _Descending) -> bool:
        return self.id > other.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.id == other.id

    __hash__ = None  # type: ignore[assignment]


def _size_of(body: bytes, count: int) -> int:
    """Return the length of the first elements of an array, in bytes."""
    unpacker = msgpack.Unpacker(max_buffer_size=len(body) or 1)
    unpacker.feed(body)
    for _ in range(count):
        unpacker.skip()
    return int(unpacker.tell())


def _subject(metadata: Mapping[str, Any]) -> str:
    """Return the message of a checkpoint that adds no message, such as "loop 3"."""
    return f"{metadata.get('source', 'checkpoint')} {metadata.get('step', '')}".strip()
