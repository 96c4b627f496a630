"""Issuing history anew: commits without some content, under new ids, where a purge would leave the ids as they are.

Rule: an id in a commit, tag or list is 32 bytes and is used for nothing else, so one rule makes all of them anew: what
they name is exchanged, from the oldest on. All refs move in one transaction, each from where it was; whoever moved one
meanwhile is not overrun. Which old id became which new one is kept in `local/reissued`, which git ignores.

Messages keep their addresses, which are no ids: a new commit carries those that were born in the old one.
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
MESSAGE = "purge: history issued anew"
_DROPPED = ("source", "prompt")
_SHORTENED = ("schemas", "keep")
"""Fields in which no placeholder makes sense: with an id, and with a list of them."""


@value
class Reissued:
    """What was issued anew.

    Attributes:
        objects: the new id of each old commit, tag and list.
        refs: the full names of the refs that were moved, sorted.
    """

    objects: dict[ObjectId, ObjectId]
    refs: tuple[str, ...]


def reissue(
    store: Store, content: Collection[ObjectId], texts: Needles, *, why: str, author: str
) -> Reissued:
    """Write everything anew that leads to some content, with a placeholder in its place, and move the refs.

    Args:
        store: where.
        content: blobs, and lists of chunks, whose ids are to go.
        texts: taken out of the text of commits, tags and lists, too.
        why: the reason, which the placeholder says.
        author: for the reflogs.

    Raises:
        StateError: a ref that leads there has several tips, or HEAD is detached.
        RefChangedError: somebody moves a ref meanwhile; nothing is moved.
        StorageError: the disk refuses; nothing is moved.
    """
    tips = {name: found for name, found in store.refs.iterate_tips() if found}
    work = _Reissuing(content, texts, f"[purged: {why}]" if why else "[purged]")
    starts = [tip for found in tips.values() for tip in found]
    for oid, data in reachable(store.objects.read, starts, absent=lambda _, __: None):
        work.see(oid, data)
    edits: list[RefEdit] = []
    for name, found in tips.items():
        if work.issued.keys().isdisjoint(found):
            continue
        if len(found) > 1:
            raise errors.StateError(
                f"{name} has several tips, which have to be joined first", ref=name
            )
        # A file of which a piece is gone cannot be given back.
        new = None if name.startswith(FILES) else work.issued[found[0]]
        edits.append(RefEdit(name, new, found[0]))
    head = store.refs.head()
    if head.ref is None and head.oid in work.issued:
        raise errors.StateError("HEAD is detached at a commit that has to be issued anew")
    if edits:
        made = Transaction(list(work.new.items()), edits, MESSAGE)
        _note(store, work.issued)  # first: once the refs are moved, nobody can tell what led where
        store.transact(lambda _: made, author=author)
    return Reissued(dict(work.issued), tuple(sorted(edit.name for edit in edits)))


class _Reissuing:
    """What has become of the objects that went by, the oldest first."""

    def __init__(self, content: Collection[ObjectId], texts: Needles, said: str) -> None:
        self._content = frozenset(content)
        self._texts = texts
        self.issued: dict[ObjectId, ObjectId] = {}
        self.new: dict[ObjectId, bytes] = {}
        self._plain = self._put(encode_blob(said.encode()))
        self._json = encode_blob(_as_json(said))

    def see(self, oid: ObjectId, data: bytes) -> None:
        """Issue an object anew, if it leads to what goes."""
        if oid in self._content or kind_of(data) == BLOB:
            return
        fields = decode(data)
        changed = self._changed(fields)
        if changed == fields:
            return
        if kind_of(data) == COMMIT:
            commit = Commit.decode(data)
            commit.operations = tuple(carried_operations(oid, commit))
            changed = self._changed(decode(commit.encode()))
        self.issued[oid] = self._put(encode(changed))

    def _put(self, data: bytes) -> ObjectId:
        oid = hash_object(data)
        self.new[oid] = data
        return oid

    def _changed(self, value: Any) -> Any:
        if isinstance(value, bytes) and len(value) == OID_BYTES:
            if value in self._content:
                return self._plain
            return self.issued.get(ObjectId(value), value)
        if isinstance(value, str) and self._texts:
            data = value.encode()
            return self._texts.without(data, REMOVED).decode() if self._texts.find(data) else value
        if isinstance(value, dict):
            return self._part(value) if "type" in value else self._map(value)
        return [self._changed(each) for each in value] if isinstance(value, list | tuple) else value

    def _map(self, value: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, each in value.items():
            if key in _DROPPED and each in self._content:
                continue
            if key in _SHORTENED:
                each = [oid for oid in each if oid not in self._content]
            kept[key] = self._changed(each)
        return kept

    def _part(self, part: dict[str, Any]) -> dict[str, Any]:
        """Return a part of a message; where its content goes, one that a provider still takes."""
        gone = [k for k in ("blob", "signature", "url") if part.get(k) in self._content]
        if not gone:
            return self._map(part)
        if part["type"] == "tool_call" and part.get("format", "json") == "json":
            return self._map({**part, "blob": self._put(self._json)})
        if part["type"] in ("tool_call", "reasoning") and gone == ["signature"]:
            return self._map({key: each for key, each in part.items() if key != "signature"})
        if part["type"] in ("image", "opaque"):
            return {"blob": self._plain, "type": "text"}
        return self._map({key: each for key, each in part.items() if key != "signature"})


def _as_json(said: str) -> bytes:
    """Return what stands for the arguments of a call, which have to be JSON."""
    import json

    return json.dumps({"purged": said}, ensure_ascii=False, separators=(",", ":")).encode()


def _note(store: Store, issued: dict[ObjectId, ObjectId]) -> None:
    """Add to the file what becomes of which id; what was refused before the refs were moved may be in it already."""
    path = os.path.join(store.layout.local_dir, FILE)
    make_durable_directory(store.disk, store.layout.local_dir)
    before = read_file(store.disk, path) or b""
    known = set(before.splitlines(keepends=True))
    lines = [f"{old} {new}\n".encode() for old, new in issued.items()]
    data = before + b"".join(line for line in lines if line not in known)
    replace_file(store.disk, path, data, scratch=store.layout.tmp_dir)
