"""Rewriting of history without purged content and its ids.

Invariant: an id in a commit, tag or list is 32 bytes and nothing else is, so one rule rewrites them all, oldest
first. All refs move in one transaction from their known values, so a concurrent move is not overwritten.
`local/reissued`, which git ignores, maps old ids to new ones.

Messages keep their addresses: a rewritten commit carries the messages born in the old one.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.contracts import RefEdit, Transaction
from trace_store.files import make_durable_directory, read_file, replace_file
from trace_store.frozen import value
from trace_store.objects.codec import BLOB, COMMIT, decode, encode, encode_blob, kind_of
from trace_store.objects.commit import Commit
from trace_store.objects.operations import carried_operations
from trace_store.odb.reachable import reachable
from trace_store.oid import OID_BYTES, ObjectId, hash_object
from trace_store.refs.names import FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from trace_store.maintenance.verify_purged import Needles
    from trace_store.store.handle import Store

FILE = "reissued"
REMOVED = b"[purged]"
MESSAGE = "purge: history rewritten"
_DROPPED = ("source", "prompt")
_SHORTENED = ("schemas", "keep")
"""Fields from which ids are dropped: single ids, and lists of ids."""


@value
class RewrittenHistory:
    """Rewritten history.

    Attributes:
        objects: new id of each rewritten commit, tag and list.
        refs: sorted full names of the refs moved.
    """

    objects: dict[ObjectId, ObjectId]
    refs: tuple[str, ...]


def rewrite_history(
    store: Store, content: Collection[ObjectId], texts: Needles, *, why: str, author: str
) -> RewrittenHistory:
    """Rewrite everything that reaches some content, and move the refs.

    Args:
        store: the repository.
        content: blobs and chunk lists whose ids must go.
        texts: also removed from the text of commits, tags and lists.
        why: the reason, part of the placeholder.
        author: author of reflog entries.

    Raises:
        StateError: an affected ref has several tips, or HEAD is detached.
        RefChangedError: another process moves a ref; nothing is changed.
        StorageError: the disk refuses; nothing is changed.
    """
    tips = {name: values for name, values in store.refs.iterate_tips() if values}
    rewriter = _HistoryRewriter(content, texts, f"[purged: {why}]" if why else "[purged]")
    starts = [tip for values in tips.values() for tip in values]
    for oid, data in reachable(store.objects.read, starts, absent=lambda _, __: None):
        rewriter.rewrite(oid, data)
    edits: list[RefEdit] = []
    for name, values in tips.items():
        if rewriter.new_ids.keys().isdisjoint(values):
            continue
        if len(values) > 1:
            raise errors.StateError(f"{name} has diverged; join its tips first", ref=name)
        # A source file without one of its parts cannot be restored.
        new = None if name.startswith(FILES) else rewriter.new_ids[values[0]]
        edits.append(RefEdit(name, new, values[0]))
    head = store.refs.head()
    if head.ref is None and head.oid in rewriter.new_ids:
        raise errors.StateError("HEAD is detached at a commit that must be rewritten")
    if edits:
        transaction = Transaction(list(rewriter.new.items()), edits, MESSAGE)
        _save_new_ids(store, rewriter.new_ids)  # first: afterwards the old ids are unknown
        store.transact(lambda _: transaction, author=author)
    return RewrittenHistory(dict(rewriter.new_ids), tuple(sorted(edit.name for edit in edits)))


class _HistoryRewriter:
    """Rewriter of objects, oldest first."""

    def __init__(self, content: Collection[ObjectId], texts: Needles, text: str) -> None:
        self._content = frozenset(content)
        self._texts = texts
        self.new_ids: dict[ObjectId, ObjectId] = {}
        self.new: dict[ObjectId, bytes] = {}
        self._plain = self._put(encode_blob(text.encode()))
        self._json = encode_blob(_as_json(text))

    def rewrite(self, oid: ObjectId, data: bytes) -> None:
        """Rewrite an object if it links to removed content."""
        if oid in self._content or kind_of(data) == BLOB:
            return
        fields = decode(data)
        changed = self._rewrite_value(fields)
        if changed == fields:
            return
        if kind_of(data) == COMMIT:
            commit = Commit.decode(data)
            commit.operations = tuple(carried_operations(oid, commit))
            changed = self._rewrite_value(decode(commit.encode()))
        self.new_ids[oid] = self._put(encode(changed))

    def _put(self, data: bytes) -> ObjectId:
        oid = hash_object(data)
        self.new[oid] = data
        return oid

    def _rewrite_value(self, value: Any) -> Any:
        if isinstance(value, bytes) and len(value) == OID_BYTES:
            if value in self._content:
                return self._plain
            return self.new_ids.get(ObjectId(value), value)
        if isinstance(value, str) and self._texts:
            data = value.encode()
            return (
                self._texts.replace_in(data, REMOVED).decode() if self._texts.find(data) else value
            )
        if isinstance(value, dict):
            return self._part(value) if "type" in value else self._map(value)
        return (
            [self._rewrite_value(each) for each in value]
            if isinstance(value, list | tuple)
            else value
        )

    def _map(self, value: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, each in value.items():
            if key in _DROPPED and each in self._content:
                continue
            if key in _SHORTENED:
                each = [oid for oid in each if oid not in self._content]
            kept[key] = self._rewrite_value(each)
        return kept

    def _part(self, part: dict[str, Any]) -> dict[str, Any]:
        """Return a message part that stays valid without its removed content."""
        removed = [k for k in ("blob", "signature", "url") if part.get(k) in self._content]
        if not removed:
            return self._map(part)
        if part["type"] == "tool_call" and part.get("format", "json") == "json":
            return self._map({**part, "blob": self._put(self._json)})
        if part["type"] in ("tool_call", "reasoning") and removed == ["signature"]:
            return self._map({key: each for key, each in part.items() if key != "signature"})
        if part["type"] in ("image", "opaque"):
            return {"blob": self._plain, "type": "text"}
        return self._map({key: each for key, each in part.items() if key != "signature"})


def _as_json(text: str) -> bytes:
    """Return placeholder arguments of a call, as JSON."""
    import json

    return json.dumps({"purged": text}, ensure_ascii=False, separators=(",", ":")).encode()


def _save_new_ids(store: Store, new_ids: dict[ObjectId, ObjectId]) -> None:
    """Add old and new ids to the file; it may contain some from a failed attempt."""
    path = os.path.join(store.layout.local_dir, FILE)
    make_durable_directory(store.disk, store.layout.local_dir)
    before = read_file(store.disk, path) or b""
    known = set(before.splitlines(keepends=True))
    lines = [f"{old} {new}\n".encode() for old, new in new_ids.items()]
    data = before + b"".join(line for line in lines if line not in known)
    replace_file(store.disk, path, data, scratch=store.layout.tmp_dir)
