"""Unsealed data: the content of the journals, which git does not see yet."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.journal.journal import Journal


INTERVAL_MS = 30_000
"""Maximum age of an unsealed transaction while many are written."""
MAXIMUM_JOURNAL_BYTES = 8 * 1024 * 1024


class Unsealed:
    """The data that a seal would write.

    Attributes:
        transactions, objects, bytes: the numbers of each in the journals.
        refs: the names of the refs that were moved.
        since: the time of the oldest transaction, in milliseconds; None without one.
        passing: the number of bytes of passing frames, which a seal drops.
    """

    __slots__ = ("bytes", "objects", "passing", "refs", "since", "transactions")

    def __init__(
        self,
        transactions: int,
        objects: int,
        size: int,
        refs: tuple[str, ...],
        since: int | None,
        passing: int = 0,
    ) -> None:
        self.transactions = transactions
        self.objects = objects
        self.bytes = size
        self.refs = refs
        self.since = since
        self.passing = passing

    def due(self, now: int) -> bool:
        """Return True if a seal is due: a transaction is old, or there is a lot of data."""
        if self.bytes + self.passing >= MAXIMUM_JOURNAL_BYTES:
            return True
        return self.since is not None and now - self.since >= INTERVAL_MS


def unsealed_of(journal: Journal) -> Unsealed:
    """Return the data that a seal of this view would write."""
    frames = [frame for file in journal.files for frame in file.transactions()]
    return Unsealed(
        transactions=len(frames),
        objects=sum(len(file.objects) for file in journal.files),
        size=sum(size for file in journal.files for _, size in file.places().values()),
        refs=tuple(sorted(journal.fold.refs)),
        since=min((frame.time for frame in frames), default=None),
        passing=sum(file.passing for file in journal.files),
    )
