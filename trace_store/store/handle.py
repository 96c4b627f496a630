"""The handle of one repository: layout, configuration, objects, refs, clock.

Rule: it has no verbs of a history. It opens, closes, and makes transactions, in which objects and the ref moves that
make them reachable become durable together.
"""

from __future__ import annotations

import os
from _thread import RLock

from trace_store import errors, journal, odb, ref_names, refs, store
from trace_store.config import DEFAULT_BRANCH, Config, new_config
from trace_store.contracts import DURABILITIES, DURABLE, FAST
from trace_store.files import Disk
from trace_store.ident import Randomness, SystemClock
from trace_store.journal.journal import Journal
from trace_store.layout import DIRECTORIES, DIRECTORY_NAME, Layout
from trace_store.odb.database import ObjectDatabase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, TypeVar

    from trace_store.contracts import Transaction
    from trace_store.ident import Clock
    from trace_store.objects.address import Address
    from trace_store.oid import ObjectId
    from trace_store.refs.database import RefDatabase
    from trace_store.refs.memory import MemoryRefs
    from trace_store.store.transactions import Build, Make

    T = TypeVar("T")

STORE_ID_BYTES = 16


class Store:
    """One open repository, on disk or in memory. Use `init`, `open` or `memory` to get one.

    Attributes:
        objects: the object database.
        config: the settings.
        clock: tells the time.
        durability: `durable`, `batch` or `fast`; what an acknowledged transaction survives.
        last_folds: the latest folds by commit, cached by the context floor.
        pending_calls: the last appended commit, and by call id the messages whose calls, written by this process, have
            no result at that commit; set by the history floor.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock,
        durability: str,
        disk: Disk | None = None,
        layout: Layout | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        if durability not in DURABILITIES:
            raise errors.InvalidInputError(f"not a durability: {durability!r}", value=durability)
        self.config = config
        self.clock = clock
        self.durability = durability
        self._disk = disk
        self._layout = layout
        self._mutex = RLock()
        self._closed = False
        self._events: store.follow.MemoryEvents | None = None
        self.last_folds: Mapping[bytes, Any] = {}
        self.pending_calls: tuple[ObjectId | None, Mapping[str, Address]] = (None, {})
        self._journal: Journal | None = None
        self._transactions: (
            store.transactions.Transactions | store.transactions.MemoryTransactions | None
        ) = None
        self._refs: RefDatabase | MemoryRefs | None = None
        self.objects: ObjectDatabase | odb.memory.MemoryObjects
        if disk is None or layout is None:
            self.objects = odb.memory.MemoryObjects()
            return
        self._journal = Journal(disk, layout, randomness)
        self.objects = ObjectDatabase(
            disk, layout, self._journal, self._mutex, durable=durability != FAST
        )

    @classmethod
    def init(
        cls,
        path: str,
        *,
        directory: str | None = None,
        clock: Clock | None = None,
        durability: str = DURABLE,
        disk: Disk | None = None,
        randomness: Randomness | None = None,
    ) -> Store:
        """Make a repository in a folder, which is made too when absent, and open it.

        It is built aside and renamed, so there is a complete one or none. `directory` names the repository's own
        directory, for one that is not the `.trace` of the folder; `randomness` gives what tells this repository, and
        its journals, from all others.

        Raises:
            AlreadyExistsError: there is one already.
        """
        disk, randomness = disk or Disk(), randomness or Randomness()
        target = os.path.abspath(directory or os.path.join(path, DIRECTORY_NAME))
        store.creation.create(disk, target, randomness.take(STORE_ID_BYTES))
        return cls.open(
            target, durability=durability, clock=clock, disk=disk, randomness=randomness
        )

    @classmethod
    def open(
        cls,
        path: str,
        *,
        durability: str = DURABLE,
        clock: Clock | None = None,
        disk: Disk | None = None,
        randomness: Randomness | None = None,
    ) -> Store:
        """Open the repository whose `.trace` directory this is.

        Raises:
            RepositoryNotFoundError: it is none.
            FormatError: its configuration is not readable.
            UnsupportedFormatError: a newer version wrote it.
        """
        disk = disk or Disk()
        layout = Layout(os.path.abspath(path))
        _, others = disk.scan(layout.root)
        for name in DIRECTORIES.intersection(others):
            directory = os.path.join(layout.root, name)
            raise errors.StorageError(f"not a directory: {directory}", path=directory)
        try:
            config = Config.load(disk, layout.config_file)
        except errors.RepositoryNotFoundError:
            if not store.creation.put_back_settings(disk, layout):
                raise
            config = Config.load(disk, layout.config_file)
        return cls(config, clock or SystemClock(), durability, disk, layout, randomness)

    @classmethod
    def memory(cls, *, clock: Clock | None = None) -> Store:
        """Return an empty repository that lasts as long as the process."""
        config = Config(None, "", new_config(Randomness().take(STORE_ID_BYTES).hex()))
        return cls(config, clock or SystemClock(), FAST)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def refs(self) -> RefDatabase | MemoryRefs:
        """The ref database, which a process that names objects by their ids alone does not come to."""
        found = self._refs
        return self._make_refs() if found is None else found

    def on(self, ref: str) -> Store:
        """Return a view of this store whose HEAD is a branch, which need not be checked out or have a commit.

        It shares everything with this one, and is closed with it. Its `set_head` raises StateError.

        Args:
            ref: the full name of the branch, or its short name.

        Raises:
            InvalidRefNameError: it is not a valid name.
        """
        return store.branch_view.BranchView(self, ref)

    @property
    def local(self) -> bool:
        """Whether it is on disk."""
        return self._layout is not None

    @property
    def layout(self) -> Layout:
        """Where its files are.

        Raises:
            InvalidInputError: it is in memory and has none.
        """
        if self._layout is None:
            raise errors.InvalidInputError("a repository in memory has no files")
        return self._layout

    @property
    def disk(self) -> Disk:
        """How its files are accessed.

        Raises:
            InvalidInputError: it is in memory and has none.
        """
        if self._disk is None:
            raise errors.InvalidInputError("a repository in memory has no files")
        return self._disk

    @property
    def journal(self) -> Journal:
        """Its journals.

        Raises:
            InvalidInputError: it is in memory and has none.
        """
        if self._journal is None:
            raise errors.InvalidInputError("a repository in memory has no journal")
        return self._journal

    @property
    def mutex(self) -> RLock:
        """What threads that share this handle exclude each other with."""
        return self._mutex

    def transact(
        self,
        build: Build,
        *,
        author: str = "",
        durability: str | None = None,
    ) -> Transaction | None:
        """Make objects and ref moves durable together.

        Args:
            build: given the refs as they are, which nobody else can move meanwhile, returns what to write, or None
                when there is nothing to do. It may be called again, so it must have no effects.
            author: for the reflogs.
            durability: other than the handle's own.

        Returns:
            What was built.

        Raises:
            RefChangedError: a ref has another value than an edit expects; nothing is written.
            StorageError: the disk refused; nothing has effect.
            ClosedError: the handle is closed.
        """
        with self._mutex:
            self.check_open()
            return self._writing().transact(build, author, durability or self.durability)

    def advance(
        self,
        ref: str,
        make: Make,
        author: str,
        message: str,
        head: str | ObjectId | None = None,
        durability: str | None = None,
    ) -> None:
        """Move a branch on from whatever it is: what `transact` does too, at a fraction of the cost for one message.

        Args:
            ref: the full name of the branch.
            make: given its tip, which nobody else can move meanwhile, returns the next one and the objects to write,
                the commit among them. It may be called again, so it must have no effects.
            author: for the reflogs.
            message: for the reflogs.
            head: what HEAD names, when the caller has just looked.
            durability: other than the handle's own.

        Raises:
            As `transact`.
        """
        with self._mutex:
            transactions = self._transactions
            if transactions is None or self._closed:
                self.check_open()
                transactions = self._writing()
            transactions.advance(ref, make, author, message, head, durability or self.durability)

    def emit(self, kind: str, data: Mapping[str, Any], *, author: str = "") -> None:
        """Tell all followers something that need not last.

        It is written to the journal without a sync, is no part of any history, and is dropped by the next seal.

        Args:
            kind: a name of lower-case letters, digits, `_`, `-` and `.`; `ref` is taken.
            data: what msgpack can hold: None, bool, int, float, str, bytes, lists, and maps with text keys. All of it,
                encoded, has at most 64 KiB.
            author: who says so.

        Raises:
            InvalidInputError: the kind or the data is not valid.
            StorageError: the disk refuses.
            ClosedError: the handle is closed.
        """
        event = journal.events.Event(kind, data, self.clock.now(), author)
        frame = journal.events.encode(event)
        with self._mutex:
            self.check_open()
            if self._journal is not None:
                self._journal.emit(frame)
            elif self._events is not None:
                self._events.publish([event])

    def follow(
        self, *, since: int | None = None, timeout: float | None = None
    ) -> store.follow.Follower:
        """Return an iterator over the events of all processes that have this repository open, as they come.

        It yields an event for each ref move, and each event that was emitted. Each comes once. Ref moves come without
        exception, also where they were sealed meanwhile; what was emitted comes if it was written while this follows.
        A repository in memory has events of this process alone.

        Args:
            since: milliseconds since the epoch. First come the ref moves after that time, and such emitted events as
                the journals still hold. None is from now on.
            timeout: end after so many seconds without an event; None is to wait for ever.

        Raises:
            InvalidInputError: `since` or `timeout` is not a number.
            StorageError: the disk refuses.
            ClosedError: the handle is closed.
        """
        with self._mutex:
            self.check_open()
            if self._journal is None and self._events is None:
                events = self._events = store.follow.MemoryEvents()
                transactions = self._writing()
                if isinstance(transactions, store.transactions.MemoryTransactions):
                    transactions.listener = lambda frame: events.publish(
                        journal.events.moves_of(frame)
                    )
            return store.follow.follow(self, self._events, since, timeout)

    def rotate(self) -> list[tuple[bytes, int]]:
        """Close the live journal and return the keys (line, number) of the journals to seal.

        For maintenance: whoever holds the lock of sealing calls it.

        Raises:
            InvalidInputError: it is in memory and has none.
        """
        with self._mutex:
            transactions = self._writing()
            if not isinstance(transactions, store.transactions.Transactions):
                raise errors.InvalidInputError("a repository in memory has no journal")
            return transactions.rotate()

    def alone(self, do: Callable[[], T]) -> T:
        """Do something while no process writes, and return what it returns; every writer looks anew afterwards.

        For maintenance that removes objects: a writer that saw one before looks for it again before it names it.

        Raises:
            InvalidInputError: it is in memory.
            StorageError: the disk refuses.
        """
        with self._mutex:
            self.check_open()
            transactions = self._writing()
            if not isinstance(transactions, store.transactions.Transactions):
                raise errors.InvalidInputError("a repository in memory has no journal")
            return transactions.alone(do)

    def sync(self) -> None:
        """Make everything durable that `batch` has only written so far, and write a lost journal anew.

        Raises:
            StorageError: the disk refuses; what was not yet synced may be lost.
            ClosedError: the handle is closed.
        """
        with self._mutex:
            self.check_open()
            transactions = self._transactions
            if transactions is None:
                return  # nothing was written
            there = transactions.wrote and self.disk.stat(self.layout.config_file) is not None
            transactions.sync(there=there)

    def unsealed(self) -> store.unsealed.Unsealed:
        """Return what a seal would write."""
        if self._journal is None:
            return store.unsealed.Unsealed(0, 0, 0, (), None)
        with self._mutex:
            self._journal.refresh()
            return store.unsealed.unsealed_of(self._journal)

    def close(self) -> None:
        """Close all files; a transaction afterwards raises ClosedError. Closing twice is harmless."""
        with self._mutex:
            if self._closed:
                return
            try:
                self.sync()
            finally:
                self._closed = True
                if self._journal is not None:
                    self._journal.shut()
                if isinstance(self.objects, ObjectDatabase):
                    self.objects.close()

    def _make_refs(self) -> RefDatabase | MemoryRefs:
        with self._mutex:
            if self._refs is None:
                branch = self.config.default_branch
                if not ref_names.is_ref_name(refs.names.BRANCHES + branch):
                    branch = DEFAULT_BRANCH
                objects, clock = self.objects, self.clock
                if self._disk is None or self._layout is None:
                    self._refs = refs.memory.MemoryRefs(objects, clock, default_branch=branch)
                else:
                    self._refs = refs.database.RefDatabase(
                        *(self._disk, self._layout, self.journal, objects, clock, self._mutex),
                        default_branch=branch,
                    )
            return self._refs

    def _writing(self) -> store.transactions.Transactions | store.transactions.MemoryTransactions:
        """Return what makes transactions: many that open a repository make none."""
        if self._transactions is None:
            objects, refs_ = self.objects, self._refs or self._make_refs()
            if isinstance(objects, ObjectDatabase) and isinstance(refs_, refs.database.RefDatabase):
                self._transactions = store.transactions.Transactions(self.journal, refs_, objects)
            elif isinstance(objects, odb.memory.MemoryObjects) and isinstance(
                refs_, refs.memory.MemoryRefs
            ):
                self._transactions = store.transactions.MemoryTransactions(refs_, objects)
            else:
                raise TypeError("objects on disk and refs in memory, or the other way about")
        return self._transactions

    def check_open(self) -> None:
        """Raise ClosedError once the handle is closed; a call that reads only small files would still answer."""
        if self._closed:
            raise errors.ClosedError("the repository is closed")


def lacks_files(opened: Store) -> bool:
    """Return True if git may have removed packs, or all files of HEAD's branch; reads only a few directory entries."""
    if not isinstance(opened.refs, refs.database.RefDatabase):
        return False
    disk, layout = opened.disk, opened.layout
    if odb.packs.missing_packs(disk, layout):
        return True
    head = opened.refs.head_target()
    if not isinstance(head, str) or opened.refs.read(head) is not None:
        return False
    fresh = opened.journal.published.stamp is None and bool(disk.names(layout.pack_dir))
    return fresh or opened.refs.rewind_guard.is_gone(head)
