"""All forms of the revision grammar (also trap C15)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.support.histories import move, put
from trace_store import FixedClock, Message, ObjectId, Store
from trace_store.base.oid import hash_object
from trace_store.errors import (
    AmbiguousRevisionError,
    InvalidInputError,
    MessageNotFoundError,
    RevisionNotFoundError,
    UnbornBranchError,
)
from trace_store.history import commit
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, Tag
from trace_store.store.revision import (
    branch_of,
    ref_of,
    resolve,
    resolve_address,
    resolve_commit,
    resolve_range,
)
from trace_store.writer import Writer

START = 1_700_000_000_000


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    clock = FixedClock(START, step=60_000)
    if request.param == "memory":
        return Store.memory(clock=clock)
    return Store.init(str(tmp_path), clock=clock)


@pytest.fixture
def line(store: Store) -> list[ObjectId]:
    """Four commits on main, oldest first; the second creates two messages."""
    return [
        commit.commit(
            Writer(store, author="ada"), [Message("user", f"m{i}")] * (2 if i == 1 else 1)
        ).oid
        for i in range(4)
    ]


def test_names_of_the_tip(store: Store, line: list[ObjectId]) -> None:
    move(store, "refs/tags/v1", line[3])
    for text in ("HEAD", "@", "main", "heads/main", "refs/heads/main", "v1", "tags/v1"):
        assert resolve(store, text) == line[3], text


def test_a_name_as_long_as_an_id(store: Store, line: list[ObjectId]) -> None:
    for length in (63, 64, 65):
        name = "refs/heads/".ljust(length, "w")
        move(store, name, line[1])
        assert resolve(store, name) == resolve(store, name.removeprefix("refs/heads/")) == line[1]


def test_ids_and_prefixes(store: Store, line: list[ObjectId]) -> None:
    assert resolve(store, str(line[1])) == line[1]
    assert resolve_commit(store, str(line[1])[:16]) == line[1]
    with pytest.raises(RevisionNotFoundError):
        resolve(store, "0" * 64)
    with pytest.raises(RevisionNotFoundError):
        resolve(store, str(line[1])[:3])


def test_an_ambiguous_prefix_lists_its_candidates(store: Store) -> None:
    # Two blobs whose ids begin alike, found by trying.
    seen: dict[str, bytes] = {}
    pair: list[bytes] = []
    numbers = iter(range(100_000))
    while not pair:
        data = b"\x92\xa4blob\xc4\x04" + next(numbers).to_bytes(4, "big")
        prefix = str(hash_object(data))[:4]
        if prefix in seen:
            pair = [seen[prefix], data]
        seen[prefix] = data
    prefix = str(hash_object(pair[0]))[:4]
    ids = {store.objects.write(data) for data in pair}
    with pytest.raises(AmbiguousRevisionError) as caught:
        resolve(store, prefix)
    assert set(caught.value.candidates) == ids  # type: ignore[call-overload]


def test_ancestors(store: Store, line: list[ObjectId]) -> None:
    assert resolve(store, "HEAD~") == resolve(store, "HEAD^") == line[2]
    assert resolve(store, "HEAD~3") == resolve(store, "main^^^") == line[0]
    assert resolve(store, "HEAD~0") == resolve(store, "HEAD^0") == line[3]
    with pytest.raises(RevisionNotFoundError):
        resolve(store, "HEAD~4")
    with pytest.raises(RevisionNotFoundError):
        resolve(store, "HEAD^2")


def test_the_second_parent_of_a_merge(store: Store, line: list[ObjectId]) -> None:
    merge = Commit([line[3], line[0]], "ada", START, [], "joined").encode()
    put(store, merge, "refs/heads/main")
    assert resolve(store, "HEAD^2") == line[0]
    assert resolve(store, "HEAD^1") == line[3]


def test_where_a_branch_was(store: Store, line: list[ObjectId]) -> None:
    assert resolve(store, "main@{0}") == resolve(store, "@{0}") == line[3]
    assert resolve(store, "main@{2}") == line[1]
    move(store, "refs/heads/main", line[0])
    assert resolve(store, "main") == line[0]
    assert resolve(store, "main@{1}") == line[3]
    assert resolve(store, "HEAD@{1}") == line[3]
    with pytest.raises(RevisionNotFoundError):
        resolve(store, "main@{99}")


def test_where_a_branch_was_at_a_time(store: Store, line: list[ObjectId]) -> None:
    times = [entry.time for entry in reversed(store.refs.reflog("refs/heads/main"))]
    seconds = times[1] // 1000
    minute, second = divmod(seconds, 60)
    hour, minute = divmod(minute, 60)
    day = hour // 24
    assert day == START // 86_400_000
    moment = f"2023-11-14T{hour % 24:02d}:{minute:02d}:{second:02d}Z"
    assert resolve(store, f"main@{{{moment}}}") == line[1]
    assert resolve(store, "main@{now}") == line[3]
    assert resolve(store, "main@{1.minute.ago}") in line
    with pytest.raises(RevisionNotFoundError):
        resolve(store, "main@{2001-01-01}")
    with pytest.raises(InvalidInputError):
        resolve(store, "main@{someday}")


def test_the_branch_left_last(store: Store, line: list[ObjectId]) -> None:
    move(store, "refs/heads/side", line[1])
    store.refs.set_head("refs/heads/side", message="switch: moving from main to side")
    assert resolve(store, "-") == resolve(store, "@{-1}") == line[3]
    assert resolve(store, "HEAD") == line[1]


def test_ranges(store: Store, line: list[ObjectId]) -> None:
    assert resolve_range(store, "HEAD~2..").include == [line[3]]
    assert resolve_range(store, "HEAD~2..").exclude == [line[1]]
    assert resolve_range(store, "..main").exclude == [line[3]]
    both = resolve_range(store, "main...HEAD~1")
    assert both.symmetric
    assert both.include == [line[3], line[2]]


def test_addresses(store: Store, line: list[ObjectId]) -> None:
    assert resolve_address(store, "HEAD.0") == Address.of(line[3], 0)
    assert resolve_address(store, f"{str(line[1])[:16]}.1") == Address.of(line[1], 1)
    assert resolve_address(store, "HEAD~2.1") == Address.of(line[1], 1)
    with pytest.raises(MessageNotFoundError):
        resolve_address(store, "HEAD.1")
    with pytest.raises(InvalidInputError) as caught:
        resolve_address(store, "HEAD")
    assert caught.value.code == "invalid-address"


def test_tags_are_followed_to_their_commit(store: Store, line: list[ObjectId]) -> None:
    tag = store.objects.write(Tag(line[2], "v2", "ada", START).encode())
    move(store, "refs/tags/v2", tag)
    assert resolve(store, "v2") == tag
    assert resolve_commit(store, "v2") == resolve(store, "v2^{commit}") == line[2]
    assert resolve(store, "v2~1") == line[1]


def test_content_is_no_commit(store: Store) -> None:
    blob = store.objects.write(b"\x92\xa4blob\xc4\x02hi")
    with pytest.raises(RevisionNotFoundError):
        resolve_commit(store, str(blob))


@pytest.mark.parametrize("text", ["", "a\nb", "main@{", "HEAD~x", "a..b", "HEAD@x{", "\x1b[0m"])
def test_what_cannot_be_a_revision_is_refused(
    store: Store, line: list[ObjectId], text: str
) -> None:
    with pytest.raises((InvalidInputError, RevisionNotFoundError)):
        resolve(store, text)


def test_an_unborn_branch_has_no_commit(store: Store) -> None:
    with pytest.raises(UnbornBranchError):
        resolve(store, "HEAD")
    assert ref_of(store, "main") is None


def test_a_session_is_called_by_its_id(store: Store, line: list[ObjectId]) -> None:
    for name, oid in (
        ("codex/0f3c-aa11", line[0]),
        ("codex/0f3c-aa11/rewinds/zz99", line[1]),
        ("codex/0f3d-bb22", line[1]),
        ("entire/0f3d-bb22", line[2]),
        ("entire/same", line[3]),
        ("codex/same", line[2]),
        ("codex/same-as-that", line[1]),
    ):
        move(store, f"refs/heads/sessions/{name}", oid)
    for name in ("0f3c-aa11", "0f3c", "codex/0f3c", "sessions/codex/0f3c-a", "sessions/0f3c"):
        assert resolve(store, name) == line[0]
    assert resolve(store, "0f3c-aa11~0") == line[0]
    assert resolve(store, "entire/same") == resolve(store, "sessions/entire/same") == line[3]
    with pytest.raises(RevisionNotFoundError):
        resolve(store, "zz99")
    for name, told in (
        ("0f3", ["codex/0f3c-aa11", "codex/0f3d-bb22", "entire/0f3d-bb22"]),
        ("same", ["codex/same", "entire/same"]),
        ("0f3d-bb22", ["codex/0f3d-bb22", "entire/0f3d-bb22"]),
    ):
        with pytest.raises(AmbiguousRevisionError) as caught:
            resolve(store, name)
        assert caught.value.candidates == [f"sessions/{each}" for each in told]


def test_a_session_hides_no_branch_and_an_id_of_both_lists_both(
    store: Store, line: list[ObjectId]
) -> None:
    digits = str(line[0])[:8]
    for name in ("main", "side", digits, "HEAD"):
        move(store, f"refs/heads/sessions/codex/{name}", line[1])
    move(store, "refs/heads/side", line[2])
    assert resolve(store, "side") == line[2]
    assert resolve(store, "HEAD") == resolve(store, "main") == line[3]
    for text in (digits, f"{digits}~1"):
        for find in (resolve, resolve_commit):
            with pytest.raises(AmbiguousRevisionError, match="a session and of an object") as told:
                find(store, text)
            assert told.value.candidates == [f"sessions/codex/{digits}", line[0]]
    assert (
        resolve_commit(store, str(line[0])[:12]) == resolve_commit(store, str(line[0])) == line[0]
    )
    assert branch_of(store, digits) == f"refs/heads/sessions/codex/{digits}"
    assert resolve(store, f"codex/{digits}") == line[1]


def test_an_address_is_said_to_be_one_where_a_commit_is_needed(
    store: Store, line: list[ObjectId]
) -> None:
    move(store, "refs/tags/v1.0", line[3])
    for text in ("HEAD.0", "HEAD~2.1", "main^.0", "@{0}.0", f"{line[1]}.1", "v1.0.0"):
        for find in (resolve, resolve_commit, resolve_range):
            with pytest.raises(RevisionNotFoundError, match="names a message, not a") as caught:
                find(store, text)
            assert caught.value.address == text
    for text in ("HEAD.1", "nope.0", "HEAD~9.0", "HEAD.0.0", ".0" * 2000):
        with pytest.raises((RevisionNotFoundError, InvalidInputError)) as caught_:
            resolve_commit(store, text)
        assert "message" not in str(caught_.value)
