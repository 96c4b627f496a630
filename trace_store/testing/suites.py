"""Test suites for all implementations of a contract.

A test class inherits a suite and implements its factory method; pytest finds the tests. The suites need only this
library.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.contracts.protocols import RefReader
from trace_store.errors import (
    InvalidInputError,
    InvalidRefNameError,
    ObjectNotFoundError,
    RefChangedError,
    TraceError,
)
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Commit


class ObjectStore(Protocol):
    """The interface of an object store."""

    def read(self, oid: bytes) -> bytes: ...
    def read_many(self, oids: Iterable[bytes]) -> Iterator[tuple[ObjectId, bytes]]: ...
    def read_data(self, oids: Iterable[bytes]) -> Iterator[bytes]: ...
    def contains(self, oid: bytes) -> bool: ...
    def write(self, data: bytes) -> ObjectId: ...
    def resolve_prefix(self, prefix: str) -> list[ObjectId]: ...
    def iterate(self) -> Iterator[ObjectId]: ...


class TransactingStore(Protocol):
    """The interface of a store with refs and transactions."""

    refs: Any
    objects: Any

    def transact(
        self, build: Callable[[RefReader], Transaction | None], *, author: str = ""
    ) -> Transaction | None: ...


MAIN = "refs/heads/main"
OTHER = "refs/heads/other"


def expect_error(kind: type[TraceError], call: Callable[[], object]) -> TraceError:
    """Return the error that a call raises.

    Raises:
        AssertionError: it does not raise this kind.
    """
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def commit_of(parents: Sequence[ObjectId], text: str = "") -> tuple[ObjectId, bytes]:
    """Return (id, bytes) of a commit without operations."""
    data = Commit(list(parents), "tester", 1_700_000_000_000, [], message=text).encode()
    return hash_object(data), data


class ObjectStoreSuite(ABC):
    """Tests of an object store."""

    @abstractmethod
    def make_objects(self) -> ObjectStore:
        """Return an empty object store; subclasses implement it."""

    def test_what_is_written_is_read(self) -> None:
        objects = self.make_objects()
        for content in (b"", b"a", bytes(range(256)) * 40, b"line\n" * 50_000):
            data = encode_blob(content)
            oid = objects.write(data)
            assert oid == hash_object(data)
            assert objects.read(oid) == data
            assert objects.contains(oid)

    def test_writing_again_is_harmless(self) -> None:
        objects = self.make_objects()
        data = encode_blob(b"twice")
        assert objects.write(data) == objects.write(data)
        assert list(objects.iterate()) == [hash_object(data)]

    def test_what_is_absent_is_not_found(self) -> None:
        objects = self.make_objects()
        oid = hash_object(b"never written")
        assert not objects.contains(oid)
        error = expect_error(ObjectNotFoundError, lambda: objects.read(oid))
        assert error.oid == oid

    def test_many_come_in_the_order_asked_for(self) -> None:
        objects = self.make_objects()
        oids = [objects.write(encode_blob(str(n).encode())) for n in range(20)]
        asked = oids[::-1] + oids[:3]
        assert [oid for oid, _ in objects.read_many(asked)] == asked
        assert list(objects.read_data(asked)) == [objects.read(oid) for oid in asked]

    def test_every_object_is_listed_once(self) -> None:
        objects = self.make_objects()
        oids = {objects.write(encode_blob(str(n).encode())) for n in range(50)}
        listed = list(objects.iterate())
        assert len(listed) == len(oids)
        assert set(listed) == oids

    def test_a_prefix_leads_to_its_objects(self) -> None:
        objects = self.make_objects()
        oids = sorted(objects.write(encode_blob(str(n).encode())) for n in range(300))
        for oid in oids[::17]:
            text = str(oid)
            assert objects.resolve_prefix(text) == [oid]
            alike = [other for other in oids if str(other).startswith(text[:4])]
            assert objects.resolve_prefix(text[:4]) == alike
            assert oid in objects.resolve_prefix(text[:7])
        assert objects.resolve_prefix("0" * 64) == []

    def test_a_prefix_is_hex_and_long_enough(self) -> None:
        objects = self.make_objects()
        for text in ("", "abc", "ABCD", "xyzw", "a" * 65, "../."):
            expect_error(InvalidInputError, lambda text=text: objects.resolve_prefix(text))  # type: ignore[misc]


class RefStoreSuite(ABC):
    """Tests of a ref store."""

    @abstractmethod
    def make_store(self) -> TransactingStore:
        """Return an empty store; subclasses implement it."""

    def move(
        self, store: TransactingStore, name: str, new: ObjectId | None, expected: Any = ANY
    ) -> None:
        """Move one ref."""
        edit = RefEdit(name, new, expected)
        store.transact(lambda refs: Transaction([], [edit], "move"), author="tester")

    def commits(self, store: TransactingStore, count: int) -> list[ObjectId]:
        """Store a linear history and return its ids, oldest first."""
        oids: list[ObjectId] = []
        for number in range(count):
            oids.append(store.objects.write(commit_of(oids[-1:], str(number))[1]))
        return oids

    def test_an_empty_store_is_unborn(self) -> None:
        store = self.make_store()
        head = store.refs.head()
        assert (head.ref, head.oid) == (MAIN, None)
        assert store.refs.read(MAIN) is None
        assert store.refs.tips(MAIN) == ()
        assert list(store.refs.iterate()) == []

    def test_a_ref_has_the_value_it_was_moved_to(self) -> None:
        store = self.make_store()
        one, two = self.commits(store, 2)
        self.move(store, MAIN, one, None)
        assert store.refs.read(MAIN) == one
        self.move(store, MAIN, two, one)
        assert store.refs.tips(MAIN) == (two,)
        assert store.refs.head().oid == two

    def test_a_wrong_expectation_moves_nothing(self) -> None:
        store = self.make_store()
        one, two = self.commits(store, 2)
        self.move(store, MAIN, one, None)
        for expected in (None, two):
            error = expect_error(
                RefChangedError,
                lambda e=expected: self.move(store, MAIN, two, e),  # type: ignore[misc]
            )
            assert (error.ref, error.expected, error.actual) == (MAIN, expected, one)
        assert store.refs.read(MAIN) == one

    def test_all_moves_of_a_transaction_happen_or_none(self) -> None:
        store = self.make_store()
        one, two = self.commits(store, 2)
        self.move(store, MAIN, one, None)
        edits = [RefEdit(OTHER, two, None), RefEdit(MAIN, two, None)]
        expect_error(RefChangedError, lambda: store.transact(lambda refs: Transaction([], edits)))
        assert dict(store.refs.iterate()) == {MAIN: one}

    def test_a_ref_is_edited_once_in_a_transaction(self) -> None:
        store = self.make_store()
        (one,) = self.commits(store, 1)
        edits = [RefEdit(MAIN, one, ANY), RefEdit(MAIN, None, ANY)]
        expect_error(InvalidInputError, lambda: store.transact(lambda refs: Transaction([], edits)))

    def test_objects_come_with_the_moves(self) -> None:
        store = self.make_store()
        oid, data = commit_of([], "together")
        store.transact(lambda refs: Transaction([(oid, data)], [RefEdit(MAIN, oid, None)]))
        assert store.objects.read(oid) == data
        assert store.refs.read(MAIN) == oid

    def test_nothing_to_do_is_fine(self) -> None:
        store = self.make_store()
        assert store.transact(lambda refs: None) is None

    def test_a_deleted_ref_is_gone_and_can_come_back(self) -> None:
        store = self.make_store()
        (one,) = self.commits(store, 1)
        self.move(store, OTHER, one, None)
        self.move(store, OTHER, None, one)
        assert store.refs.read(OTHER) is None
        assert list(store.refs.iterate()) == []
        self.move(store, OTHER, one, None)
        assert store.refs.read(OTHER) == one

    def test_refs_are_listed_by_prefix_and_name(self) -> None:
        store = self.make_store()
        (one,) = self.commits(store, 1)
        names = ["refs/heads/b", "refs/heads/a/x", "refs/heads/a", "refs/tags/v1", "refs/trash/t"]
        for name in names:
            self.move(store, name, one, None)
        assert [name for name, _ in store.refs.iterate()] == sorted(names)
        assert [name for name, _ in store.refs.iterate("refs/heads/")] == sorted(names[:3])
        assert [name for name, _ in store.refs.iterate("refs/heads/a")] == [
            "refs/heads/a",
            "refs/heads/a/x",
        ]

    def test_bad_names_are_expect_error(self) -> None:
        store = self.make_store()
        (one,) = self.commits(store, 1)
        for name in (
            "main",
            "refs/heads/../x",
            "refs/heads/-x",
            "refs/heads/" + "a" * 64,
            "refs/heads/con",
        ):
            expect_error(InvalidRefNameError, lambda name=name: self.move(store, name, one))  # type: ignore[misc]

    def test_head_is_attached_detached_and_attached_again(self) -> None:
        store = self.make_store()
        one, two = self.commits(store, 2)
        self.move(store, MAIN, one, None)
        store.refs.set_head(two, message="detach")
        assert (store.refs.head().ref, store.refs.head().oid) == (None, two)
        store.refs.set_head(OTHER)
        assert (store.refs.head().ref, store.refs.head().oid) == (OTHER, None)
        store.refs.set_head(MAIN, message="back")
        assert store.refs.head().oid == one
        assert [entry.message for entry in store.refs.reflog("HEAD")][::2] == ["back", "detach"]

    def test_movements_are_logged_newest_first(self) -> None:
        store = self.make_store()
        one, two = self.commits(store, 2)
        self.move(store, MAIN, one, None)
        self.move(store, MAIN, two, one)
        self.move(store, OTHER, one, None)
        entries = store.refs.reflog(MAIN)
        assert [(entry.old, entry.new) for entry in entries] == [(one, two), (None, one)]
        assert {(entry.author, entry.message) for entry in entries} == {("tester", "move")}
        assert [entry.new for entry in store.refs.reflog("HEAD")] == [two, one]
        assert store.refs.reflog("refs/heads/never") == []
