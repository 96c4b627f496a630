"""What a model sees of the messages that records name, read from the commits that made them.

Rule: commits are read in the order of the records, each run of messages of one commit once.
"""

from __future__ import annotations

from trace_store.context import index_records as form
from trace_store.context.index_building import seen_in_place
from trace_store.context.wording import created_messages, seen_of, seen_of_ghost, wording_of
from trace_store.objects.commit import Commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeAlias

    from trace_store.context.index_records import MessageRecord
    from trace_store.objects.moulds import Mould, Moulds
    from trace_store.oid import ObjectId

    ReadMany: TypeAlias = Callable[[Iterable[bytes]], Iterator[tuple[ObjectId, bytes]]]


def seen_of_records(
    records: Sequence[MessageRecord],
    oid: bytes,
    commit: Commit,
    read_many: ReadMany,
    moulds: Moulds,
) -> Iterator[bytes]:
    """Yield what a model sees of each message, as bytes to hash.

    Args:
        records: of the messages.
        oid: a commit that is at hand, of which some of them may be.
        commit: that commit.
        read_many: gives objects by their ids.
        moulds: the forms of commits that were met.
    """
    commits = read_many(_commits_to_read(records, oid))
    made = data = b""
    mould: Mould | None = None
    created: list[Any] = []
    for record in records:
        if record.commit != made:
            made = record.commit
            if made == oid:
                mould, created = None, created_messages(commit)
            else:
                _, data = next(commits)
                mould = moulds.find(data)
                created = [] if mould else created_messages(Commit.decode(data))
        if record.flags & form.EDITED:
            name = _name(created, mould, data, record.number)
            edit = commit if record.place_commit == oid else Commit.decode(next(commits)[1])
            seen = seen_of(record.role, name, wording_of(edit, record.place_number))
        elif mould is not None:
            seen = seen_in_place(data, mould.messages[record.number])
        else:
            message = created[record.number]
            seen = seen_of(record.role, message.get("name", ""), message["parts"])
        if record.flags & form.GHOST:
            seen = seen_of_ghost(record.role, (made, record.number))
        yield seen


def _name(created: list[Any], mould: Mould | None, commit: bytes, number: int) -> str:
    if mould is None:
        name: str = created[number].get("name", "")
        return name
    place = mould.messages[number].name
    return place if isinstance(place, str) else str(commit[place], "utf-8")


def _commits_to_read(records: Sequence[MessageRecord], oid: bytes) -> Iterator[bytes]:
    made = b""
    for record in records:
        if record.commit != made:
            made = record.commit
            if made != oid:
                yield made
        if record.flags & form.EDITED and record.place_commit != oid:
            yield record.place_commit
