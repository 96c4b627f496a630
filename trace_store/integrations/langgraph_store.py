"""LangGraph: a store of items across threads; extra `langgraph`.

    graph = builder.compile(checkpointer=TraceSaver(repo), store=TraceStore(repo))

Items are one record, `refs/records/langgraph-store/main`. Each put and each deletion is a commit with the item as JSON
and a fact that names it, so the newest commit with the fact is the item, and older ones are its history.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.history.records import WARN
from trace_store.integrations.framework_store import FrameworkStore
from trace_store.repo.repository import Repo

PROGRAM = "langgraph-store"
ITEM = "langgraph.item"
_VALUE = "item"
_HASHED = "hash-"
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": eq,
    "$ne": ne,
    "$gt": gt,
    "$gte": ge,
    "$lt": lt,
    "$lte": le,
}
_ORDERED = ("$gt", "$gte", "$lt", "$lte")


class TraceStore(BaseStore):  # type: ignore[misc]
    """Keeps the items of LangGraph in a repository, with their history.

    A search with a query returns the items that have its words, those with most of them first. There are no embeddings,
    and items do not expire.
    """

    def __init__(self, repo: Repo, *, secrets: str = WARN) -> None:
        """Open the store; arguments as in `TraceSaver`."""
        self._store = FrameworkStore(repo, PROGRAM, secrets=secrets)
        self._records = self._store.records
        self._name = self._store.name("main")
        self._clock = repo.store.clock
        self._mutex = threading.RLock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run several operations at once; reads see the state before the writes."""
        results: list[Result] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        with self._mutex:
            for op in ops:
                found: Result = None
                if isinstance(op, GetOp):
                    found = self._get(tuple(op.namespace), op.key)
                elif isinstance(op, SearchOp):
                    found = self._search(op)
                elif isinstance(op, ListNamespacesOp):
                    found = self._namespaces(op)
                elif isinstance(op, PutOp):
                    puts[tuple(op.namespace), op.key] = op
                else:
                    raise errors.InvalidInputError(f"unknown operation: {type(op).__name__}")
                results.append(found)
            for op in puts.values():
                self._put(tuple(op.namespace), op.key, op.value)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def history(self, namespace: tuple[str, ...], key: str) -> list[tuple[ObjectId, Any]]:
        """Return the commits that set an item, newest first, and its value in each; None where it was deleted."""
        with self._mutex:
            found = self._records.find(self._name, ITEM, _fact(namespace, key))
            read = ((oid, self._read(oid)) for oid in found)
            return [
                (oid, item["value"])
                for oid, item in read
                if item is not None and _is(item, namespace, key)
            ]

    def erase(self, namespace_prefix: tuple[str, ...]) -> None:
        """Erase the items of a namespace and those below it, with their history; `delete` keeps the history."""
        with self._mutex:
            tip = self._records.tip(self._name)
            if tip is None:
                return
            count = len(namespace_prefix)
            kept = [
                oid
                for oid, _ in self._records.lines([tip])
                if (item := self._read(oid)) is None
                or tuple(item["namespace"][:count]) != namespace_prefix
            ]
            self._records.keep_only({self._name: tip}, kept)

    def _get(self, namespace: tuple[str, ...], key: str) -> Item | None:
        for oid in self._records.find(self._name, ITEM, _fact(namespace, key)):
            found = self._read(oid)
            if found is not None and _is(found, namespace, key):
                return None if found["value"] is None else Item(**_fields(found))
        return None

    def _put(self, namespace: tuple[str, ...], key: str, value: Mapping[str, Any] | None) -> None:
        before = self._get(namespace, key)
        if value is None and before is None:
            return
        now = datetime.fromtimestamp(self._clock.now() / 1000, UTC).isoformat()
        item = {
            "namespace": namespace,
            "key": key,
            "value": value,
            "created_at": now if before is None else before.created_at.isoformat(),
            "updated_at": now,
        }
        try:
            data = json.dumps(item, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise errors.InvalidInputError(
                f"an item must be JSON: {error}", argument="value"
            ) from error
        draft = self._records.draft(self._name)
        draft.set(_VALUE, "json", data)
        said = "delete" if value is None else "put"
        draft.write({ITEM: _fact(namespace, key)}, f"{said} {key[:80]}")

    def _read(self, oid: ObjectId) -> dict[str, Any] | None:
        """Return the item of a commit; None if it has none, or was erased."""
        try:
            value = self._records.state(oid).values.get(_VALUE)
            found = None if value is None else json.loads(self._records.read(value))
        except errors.ObjectNotFoundError:
            return None
        return found if isinstance(found, dict) else None

    def _items(self, prefix: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the items of a namespace and of those below it, in the order of their facts."""
        begin = json.dumps(list(prefix), ensure_ascii=False)[:-1]
        for start in (begin, _HASHED):
            for _, oid in self._records.newest(self._name, ITEM, start):
                item = self._read(oid)
                if item is None or item["value"] is None:
                    continue
                if item["namespace"][: len(prefix)] == [*prefix]:
                    yield item

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = [
            (_score(op.query, item["value"]) if op.query else None, item)
            for item in self._items(op.namespace_prefix)
            if all(
                _matches(item["value"].get(k), wanted) for k, wanted in (op.filter or {}).items()
            )
        ]
        if op.query:
            found = sorted((each for each in found if each[0]), key=lambda each: -(each[0] or 0))
        return [
            SearchItem(**_fields(item), score=score)
            for score, item in found[op.offset : op.offset + op.limit]
        ]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = {tuple(item["namespace"]) for item in self._items(())}
        for condition in op.match_conditions or ():
            found = {each for each in found if _fits(each, condition)}
        if op.max_depth is not None:
            found = {each[: op.max_depth] for each in found}
        return sorted(found)[op.offset : op.offset + op.limit]


def _fact(namespace: tuple[str, ...], key: str) -> str:
    return json.dumps([*namespace, key], ensure_ascii=False)


def _is(item: Mapping[str, Any], namespace: tuple[str, ...], key: str) -> bool:
    return tuple(item["namespace"]) == namespace and item["key"] == key


def _fields(item: Mapping[str, Any]) -> dict[str, Any]:
    times = {each: datetime.fromisoformat(item[each]) for each in ("created_at", "updated_at")}
    return {**item, "namespace": tuple(item["namespace"]), **times}


def _matches(value: Any, wanted: Any) -> bool:
    """Return True if a value fulfils a filter: a value, or operators such as `{"$gt": 1}`."""
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    if not any(str(name).startswith("$") for name in wanted):
        return isinstance(value, Mapping) and all(
            _matches(value.get(name), each) for name, each in wanted.items()
        )
    for name, each in wanted.items():
        if name not in _COMPARE:
            raise errors.InvalidInputError(f"unknown operator in a filter: {str(name)[:40]}")
        if (value is None and name in _ORDERED) or not _COMPARE[name](value, each):
            return False
    return True


def _score(query: str, value: Any) -> float:
    """Return which share of the words of a query a value has."""
    words = query.casefold().split()
    text = json.dumps(value, ensure_ascii=False).casefold()
    return sum(word in text for word in words) / len(words) if words else 0.0


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Return True if a namespace begins or ends with a path, in which "*" is any label."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return not path or all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
