"""Secrets in what is stored: wherever it lies, packed or not, reachable or not.

Rule: reads, never writes, and never tells a value. What finds secrets is given; what is found is told by the object,
and by the messages and refs that lead to it.
"""

from __future__ import annotations

from trace_store.frozen import value
from trace_store.maintenance.holders import Survey
from trace_store.objects.codec import BLOB, COMMIT, blob_content
from trace_store.odb.reachable import reachable_ids
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trace_store.objects.address import Address
    from trace_store.secrets.engine import SecretFinding
    from trace_store.store.handle import Store

    Find = Callable[[bytes], Iterable[SecretFinding]]


@value
class StoredSecret:
    """A secret in an object.

    Attributes:
        rule: its kind.
        id: by which it may be allowed.
        oid: the object.
        kind: of the object.
        addresses: of the messages that say it.
        commits: that name the object, also without saying it, such as by the record that they were read from.
        refs: the full names of those that lead to one of them, sorted.
    """

    rule: str
    id: str
    oid: ObjectId
    kind: str
    addresses: tuple[Address, ...]
    commits: tuple[ObjectId, ...]
    refs: tuple[str, ...]


@value
class Scan:
    """What a search found.

    Attributes:
        found: each secret once for each object that holds it.
        objects, bytes: how much was looked through.
        unreadable: objects that could not be, and why.
    """

    found: tuple[StoredSecret, ...]
    objects: int
    bytes: int
    unreadable: dict[ObjectId, str]


def scan_stored(
    store: Store,
    find: Find,
    start: ObjectId | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Scan:
    """Look through stored objects for secrets.

    Args:
        store: where.
        find: returns the secrets in bytes, such as `Scanner.find_bytes`.
        start: look only at what this object leads to; else at all that is here, in quarantine too.
        progress: told how many objects were gone through.
    """
    survey = Survey()
    within = None if start is None else reachable_ids(store.objects.read, [start])
    hits: dict[ObjectId, dict[tuple[str, str], str]] = {}
    count = size = 0
    for oid, kind, data in survey.objects(store, within):
        count += 1
        size += len(data)
        if progress is not None:
            progress(count)
        content = blob_content(data) if kind == BLOB else data
        for each in find(content):
            hits.setdefault(oid, {})[each.rule, each.id] = kind
    holders = survey.holders(store, frozenset(hits))
    by_commit = {holder.commit: holder for holder in holders.commits}
    found: list[StoredSecret] = []
    for oid, secrets in hits.items():
        kind = next(iter(secrets.values()))
        naming = [h for h in holders.commits if survey.names(h, oid)]
        if kind == COMMIT:
            naming = [by_commit[oid]]
        addresses = dict.fromkeys(a for h in naming for a in survey.messages_with(h, oid))
        refs = sorted({ref for holder in naming for ref in holder.refs})
        found += [
            StoredSecret(
                *(rule, id_, oid, kind, tuple(addresses)),
                tuple(holder.commit for holder in naming),
                tuple(refs),
            )
            for rule, id_ in secrets
        ]
    return Scan(tuple(found), count, size, survey.unreadable)
