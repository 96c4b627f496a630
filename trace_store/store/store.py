"""The handle of one repository: layout, configuration, objects, refs, clock.

Rule: it has no history commands. It opens, closes, and writes transactions, in which objects and the ref moves that
make them reachable become durable together.
"""

from __future__ import annotations

import os
from _thread import RLock

from trace_store import errors, journal, odb, refs, store
from trace_store.base.ident import Randomness, SystemClock
from trace_store.contracts import ANY, DURABILITIES, DURABLE, FAST
from trace_store.contracts.ref_names import BRANCHES, is_ref_name
from trace_store.disk.files import Disk
from trace_store.disk.layout import DIRECTORIES, DIRECTORY_NAME, Layout
from trace_store.journal.journal import Journal
from trace_store.odb.database import ObjectDatabase
from trace_store.store.config import DEFAULT_BRANCH, Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from trace_store.base.environment import Environment
    from trace_store.base.ident import Clock
    from trace_store.base.oid import ObjectId
    from trace_store.contracts import AnyValue, Transaction
    from trace_store.objects.address import Address
    from trace_store.refs.database import RefDatabase
    from trace_store.store.transactions import Build, Make

    T = TypeVar("T")

STORE_ID_BYTES = 16


IMPORT_AUTHOR = "import"


class Store:
    """One open repository, on disk or in memory. Use `init`, `open` or `memory` to get one.

    Attributes:
        objects: the object database.
        config: the settings.
        clock: the clock.
        disk: the disk that its files are on.
        layout: the paths of its files.
        folder: the folder that is worked in: where the search for the repository began, or else the one with it.
        journal: its journals.
        mutex: the mutex for threads that share this handle.
        durability: `durable`, `batch` or `fast`: which failures an acknowledged transaction survives.
        import_author: who the reflogs say imported: `undo` takes back what `import` did, and passes over others.
        last_folds: the latest folds by commit, cached by the context floor.
        pending_calls: for each branch the last appended commit, and by call id the messages whose calls, written by
            this process, have no result at that commit; set by the history floor.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock,
        durability: str,
        disk: Disk,
        layout: Layout,
        randomness: Randomness | None = None,
    ) -> None:
        if durability not in DURABILITIES:
            raise errors.InvalidInputError(f"not a durability: {durability!r}", value=durability)
        self.config = config
        self.clock = clock
        self.durability = durability
        self.disk = disk
        self.layout = layout
        self.folder = os.path.dirname(layout.root)
        self.import_author = IMPORT_AUTHOR
        self.mutex = RLock()
        self._closed = False
        self.last_folds: Mapping[bytes, Any] = {}
        self.pending_calls: dict[str | ObjectId, tuple[ObjectId | None, Mapping[str, Address]]] = {}
        self._transactions: store.transactions.Transactions | None = None
        self._refs: RefDatabase | None = None
        self.journal = Journal(disk, layout, randomness)
        self.objects = ObjectDatabase(
            disk, layout, self.journal, self.mutex, durable=durability != FAST
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
        """Create a repository in a folder, which is created if absent, and open it.

        It is built under a temporary name and renamed, so it is never incomplete. `directory` is the repository's own
        directory if it is not the `.trace` of the folder. `randomness` provides the ids of the repository and its
        journals.

        Raises:
            AlreadyExistsError: there is already a repository.
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
            RepositoryNotFoundError: it is not a repository.
            FormatError: its configuration is unreadable.
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
            if not store.creation.restore_config(disk, layout):
                raise
            config = Config.load(disk, layout.config_file)
        return cls(config, clock or SystemClock(), durability, disk, layout, randomness)

    @staticmethod
    def find(
        start: str,
        environment: Environment,
        *,
        explicit: str | None = None,
        trusting: bool = False,
        damaged: bool = False,
    ) -> str:
        """Return the path of the `.trace` directory that a folder uses; arguments and errors as in `discovery.find`."""
        return store.discovery.find(
            start, environment, explicit=explicit, trusting=trusting, damaged=damaged
        )

    @classmethod
    def memory(cls, *, clock: Clock | None = None) -> Store:
        """Return an empty repository that lasts as long as the process."""
        disk = store.memory_disk.MemoryDisk()
        return cls.init(os.sep, clock=clock, durability=FAST, disk=disk)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def refs(self) -> RefDatabase:
        """The ref database, loaded on first use; access by object id does not need it."""
        found = self._refs
        return self._make_refs() if found is None else found

    def on(self, ref: str, expected: ObjectId | AnyValue | None = ANY) -> Store:
        """Return a view of this store whose HEAD is a branch, which may be unborn.

        It shares everything with this one, and is closed with it. Its `set_head` raises StateError.

        Args:
            ref: the full name of the branch or of a record, or the short name of a branch.
            expected: the tip that the branch must have, None if it must not exist: otherwise every write through the
                view raises RefChangedError. Writes through the view move it along.

        Raises:
            InvalidRefNameError: it is not a valid name.
            RefNotFoundError: it is the full name of another kind of ref.
        """
        return store.branch_view.BranchView(self, ref, expected)

    @property
    def local(self) -> bool:
        """Whether other programs can read its files: it is not in memory."""
        return self.disk.has_paths

    def transact(
        self,
        build: Build,
        *,
        author: str = "",
        durability: str | None = None,
    ) -> Transaction | None:
        """Make objects and ref moves durable together.

        Args:
            build: returns the transaction for the current refs, which are locked meanwhile, or None if there is nothing
                to do. It may be called again, so it must have no side effects.
            author: for the reflogs.
            durability: overrides the handle's own.

        Returns:
            The transaction.

        Raises:
            RefChangedError: a ref does not have the value that an edit expects; nothing is written.
            StorageError: the disk failed; nothing has effect.
            ClosedError: the handle is closed.
        """
        with self.mutex:
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
        """Advance a branch from its current tip; much cheaper than `transact`.

        Args:
            ref: the full name of the branch.
            make: returns the next tip and the objects to write, including the commit, for the current tip, which is
                locked meanwhile. It may be called again, so it must have no side effects.
            author: for the reflogs.
            message: for the reflogs.
            head: HEAD's target, if the caller has just read it.
            durability: overrides the handle's own.

        Raises:
            As `transact`.
        """
        with self.mutex:
            transactions = self._transactions
            if transactions is None or self._closed:
                self.check_open()
                transactions = self._writing()
            transactions.advance(ref, make, author, message, head, durability or self.durability)

    def emit(self, kind: str, data: Mapping[str, Any], *, author: str = "") -> None:
        """Emit a temporary event to all followers.

        It is written to the journal without a sync, is not part of any history, and is dropped by the next seal.

        Args:
            kind: a name of lower-case letters, digits, `_`, `-` and `.`; `ref` is taken.
            data: values that msgpack supports: None, bool, int, float, str, bytes, lists, and maps with text keys; at
                most 64 KiB when encoded.
            author: the author of the event.

        Raises:
            InvalidInputError: the kind or the data is not valid.
            StorageError: the disk failed.
            ClosedError: the handle is closed.
        """
        self.emit_all([(kind, data)], author=author)

    def emit_all(
        self, events: Sequence[tuple[str, Mapping[str, Any]]], *, author: str = ""
    ) -> None:
        """Emit temporary events together, with one write; each is a kind and data as in `emit`, and so are the errors.

        If one is not valid, none is emitted.
        """
        moment = self.clock.now()
        frames = [
            journal.tail.encode(journal.tail.JournalEvent(kind, data, moment, author))
            for kind, data in events
        ]
        with self.mutex:
            self.check_open()
            if frames:
                self.journal.emit(b"".join(frames))

    def follow(
        self, *, since: int | None = None, timeout: float | None = None, containing: str = ""
    ) -> store.follow.Follower:
        """Return an iterator over new events of all processes that use this repository.

        It yields each ref move and each emitted event once. Ref moves are never missed, even if they were sealed
        meanwhile. Emitted events are yielded if they were written during the iteration.

        Args:
            since: milliseconds since the epoch; start with the ref moves after that time, and the emitted events that
                are still in the journals. None starts now.
            timeout: end after this many seconds without an event; None waits forever.
            containing: only events with this text, such as the name of a ref. Others are skipped without being
                decoded, which costs much less while many processes write.

        Raises:
            InvalidInputError: `since` or `timeout` is not a number, or `containing` not text.
            StorageError: the disk failed.
            ClosedError: the handle is closed.
        """
        with self.mutex:
            self.check_open()
            return store.follow.follow(self, since, timeout, containing)

    def rotate(self) -> list[tuple[bytes, int]]:
        """Close the live journal and return the keys (line, number) of the journals to seal.

        For maintenance; the caller holds the seal lock.
        """
        with self.mutex:
            return self._writing().rotate()

    def alone(self, do: Callable[[], T]) -> T:
        """Run a function while no process writes; all writers refresh afterwards.

        For maintenance that removes objects: a writer rechecks that an object exists before it refers to it.

        Raises:
            StorageError: the disk failed.
        """
        with self.mutex:
            self.check_open()
            return self._writing().alone(do)

    def sync(self) -> None:
        """Sync what `batch` has only written so far, and restore a lost journal.

        Raises:
            StorageError: the disk failed; unsynced transactions may be lost.
            ClosedError: the handle is closed.
        """
        with self.mutex:
            self.check_open()
            transactions = self._transactions
            if transactions is None:
                return  # nothing was written
            there = transactions.wrote and self.disk.stat(self.layout.config_file) is not None
            transactions.sync(there=there)

    def unsealed(self) -> store.unsealed.Unsealed:
        """Return the data that a seal would write."""
        with self.mutex:
            self.journal.refresh()
            return store.unsealed.unsealed_of(self.journal)

    def close(self) -> None:
        """Close all files; later transactions raise ClosedError. Closing twice is allowed."""
        with self.mutex:
            if self._closed:
                return
            try:
                self.sync()
            finally:
                self._closed = True
                self.journal.shut()
                self.objects.close()

    def _make_refs(self) -> RefDatabase:
        with self.mutex:
            if self._refs is None:
                branch = self.config.default_branch
                if not is_ref_name(BRANCHES + branch):
                    branch = DEFAULT_BRANCH
                self._refs = refs.database.RefDatabase(
                    *(self.disk, self.layout, self.journal, self.objects, self.clock, self.mutex),
                    default_branch=branch,
                )
            return self._refs

    def _writing(self) -> store.transactions.Transactions:
        """Return the transaction writer, created on first use; many processes need none."""
        if self._transactions is None:
            refs = self._refs or self._make_refs()  # never those of a view, whose HEAD is a branch
            self._transactions = store.transactions.Transactions(self.journal, refs, self.objects)
        return self._transactions

    def check_open(self) -> None:
        """Raise ClosedError if closed; calls that only read small files would still work."""
        if self._closed:
            raise errors.ClosedError("the repository is closed")

    def check_local(self) -> None:
        """Raise InvalidInputError if it is in memory, so that other programs cannot read its files."""
        if not self.local:
            raise errors.InvalidInputError("a repository in memory has no files")

    def lacks_files(self) -> bool:
        """Return True if git may have removed packs, or all files of HEAD's branch; cheap."""
        disk, layout = self.disk, self.layout
        if odb.packs.missing_packs(disk, layout):
            return True
        head = self.refs.head_target()
        if not isinstance(head, str) or self.refs.read(head) is not None:
            return False
        fresh = self.journal.published.stamp is None and bool(disk.names(layout.pack_dir))
        return fresh or self.refs.rewind_guard.is_gone(head)
