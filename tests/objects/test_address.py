"""Addresses: permanent ids of messages."""

from __future__ import annotations

import copy
import pickle

import pytest

from trace_store.base.oid import ObjectId
from trace_store.errors import InvalidInputError
from trace_store.objects.address import HERE, Address, read_address

OID = ObjectId(bytes(range(32)))
ONE = Address.of(OID, 3)


def test_it_is_the_beginning_of_the_commits_id_and_a_number() -> None:
    assert (ONE.birth, ONE.number) == (bytes(range(16)), 3)
    assert (bytes(range(16)), 3) == ONE
    assert str(ONE) == "000102030405.3"
    assert ONE.short(8) == "00010203.3"
    assert Address.parse(ONE.hex) == ONE
    assert str(Address(HERE, 1)) == "this.1"


def test_it_sorts_hashes_and_is_copied_as_a_pair() -> None:
    assert sorted([Address.of(OID, 2), ONE, Address(HERE, 9)]) == [(b"", 9), (ONE.birth, 2), ONE]
    assert {ONE: "found"}[bytes(range(16)), 3] == "found"  # type: ignore[index]
    assert copy.deepcopy(ONE) == pickle.loads(pickle.dumps(ONE)) == ONE


@pytest.mark.parametrize(
    "text", ["", "0001.3", "0" * 32, f"{'0' * 32}.x", f"{'g' * 32}.1", f"{'0' * 64}.1"]
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a message address"):
        Address.parse(text)


def test_an_empty_birth_is_the_commit_it_stands_in() -> None:
    assert read_address([b"", 3], OID) == ONE
    assert read_address([ONE.birth, 3], b"x" * 32) == ONE
    assert read_address([b"", 3], HERE) == Address(HERE, 3)
