"""Compile: revisions and times, strategies, reasoning, tokens and their source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.store.support.histories import move, put
from tests.support.files import flip
from tests.support.pictures import PNG as PNG_BYTES
from trace_store import Environment, FixedClock, Image, Message, Reasoning, Repo, Text, ToolCall
from trace_store.base.frozen import replace
from trace_store.base.ident import format_time
from trace_store.context.compile_index import (
    END,
    HEADER_BYTES,
    IS_PINNED,
    MESSAGE_BYTES,
    MessageRecord,
)
from trace_store.context.compiled import CompiledContext
from trace_store.context.tokens.models import REPLY_TOKENS
from trace_store.context.tokens.overhead import MESSAGE_TOKENS
from trace_store.context.tokens.tokenizer import CallableTokenizer, get_tokenizer
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.disk.column_file import DiskColumn
from trace_store.errors import (
    InvalidInputError,
    InvalidMessageError,
    NotFoundError,
    RenderError,
    UnbornBranchError,
    UnsupportedFormatError,
)
from trace_store.history import commit as writing
from trace_store.maintenance.fsck import check_indexes
from trace_store.maintenance.fsck_objects import ObjectChecks
from trace_store.objects.commit import Commit, Operation
from trace_store.providers.validity import NOT_RECORDED
from trace_store.writer import Writer

ADA = Environment(author="ada")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path, environment=ADA, clock=FixedClock(), durability="fast")


def texts(context: CompiledContext) -> list[str]:
    return [message.text for message in context.messages]


def test_an_unborn_branch_has_an_empty_context(repo: Repo) -> None:
    context = repo.compile()
    assert (len(context), context.token_count, context.commit) == (0, 0, None)
    assert context.messages[:] == []
    assert context.tools == ()
    with pytest.raises(UnbornBranchError):
        repo.compile("HEAD~1")


def test_the_context_of_an_earlier_time(repo: Repo) -> None:
    results = [repo.append("user", text) for text in "abc"]
    second = Commit.decode(repo.store.objects.read(results[1].oid)).time
    assert texts(repo.compile(at=format_time(second))) == ["a", "b"]
    assert texts(repo.compile(at="HEAD~2")) == ["a"]
    with pytest.raises(NotFoundError):
        repo.compile(at="1999-01-01")
    with pytest.raises(NotFoundError):
        repo.compile(at="no-such-branch")


def test_a_context_stays_what_it_was(repo: Repo) -> None:
    repo.append("user", "a")
    early = repo.compile()
    target = repo.append("user", "b").addresses[0]
    repo.edit(target, "B")
    repo.compile()
    repo.seal()
    assert texts(early) == ["a"]
    assert len(early) == 1


def test_messages_are_a_sequence(repo: Repo) -> None:
    repo.commit([Message("user", str(i)) for i in range(700)])
    repo.record_usage({"input_tokens": 1, "output_tokens": 1})
    repo.append("user", "last")
    messages = repo.compile().messages
    assert len(messages) == 701
    assert messages[-1].text == "last"
    assert messages[699].text == "699"
    assert [m.text for m in messages[697:]] == ["697", "698", "699", "last"]
    assert [m.text for m in messages[::350]] == ["0", "350", "last"]
    assert [m.position for m in messages] == list(range(701))
    with pytest.raises(IndexError):
        messages[701]


def test_each_commit_can_stand_as_one_line(repo: Repo) -> None:
    repo.commit([Message("user", "plan\nthe rest"), Message("user", "x")])
    repo.commit([Message("assistant", "done")], message="what was decided")
    context = repo.compile(strategy="messages")
    assert [(m.role, m.text) for m in context.messages] == [
        ("user", "user: plan the rest (+1)"),
        ("assistant", "what was decided"),
    ]
    assert context.to_openai()["messages"][1]["content"] == "what was decided"
    assert context.token_count > 0
    with pytest.raises(InvalidInputError):
        repo.compile(strategy="vibes")


def test_a_custom_compiler_makes_the_messages(repo: Repo) -> None:
    repo.commit([Message("user", text) for text in "abc"])

    def last_two(context: CompiledContext) -> Sequence[Message]:
        return [message.message() for message in context.messages[-2:]]

    context = repo.compile(compiler=last_two)
    assert [m.text for m in context.messages] == ["b", "c"]
    assert context.to_anthropic()["messages"][0]["content"]


def test_reasoning_is_shown_or_hidden(repo: Repo) -> None:
    repo.append("user", "q")
    repo.append("assistant", [Reasoning("because", "sig"), Text("answer")], model="claude-opus-4-6")
    shown = repo.compile(model="claude-opus-4-6").to_anthropic()
    hidden = repo.compile(model="claude-opus-4-6", reasoning=False).to_anthropic()
    assert "because" in str(shown)
    assert "because" not in str(hidden)
    assert "answer" in str(hidden)


def test_token_counts_say_where_they_come_from(repo: Repo) -> None:
    repo.append("user", "some words to count")
    plain = repo.compile()
    words = get_tokenizer().count("some words to count")
    assert (plain.text_token_count, plain.text_token_source) == (words, "exact:o200k_base")
    assert (plain.token_count, plain.token_source) == (
        words + MESSAGE_TOKENS + REPLY_TOKENS,
        "estimate:o200k_base",
    )
    claude = repo.compile(model="claude-opus-4-6")
    assert claude.token_source == "estimate:o200k_base*1.25"
    assert claude.token_count == round(plain.token_count * 1.25)
    assert claude.text_token_source == claude.token_source
    assert repo.compile(model="gpt-4").text_token_source == "exact:cl100k_base"
    repo.append("user", [Image("image/png", PNG_BYTES)])
    assert repo.compile().text_token_count == words
    assert [text for _, text in repo.compile().message_tokens()] == [words, 0]


def test_a_custom_tokenizer_counts(tmp_path: Path) -> None:
    words = CallableTokenizer("words", lambda text: len(text.split()))
    repo = Repo.init(tmp_path, environment=ADA, tokenizer=words)
    repo.append("user", "three words here")
    context = repo.compile()
    assert context.token_source == "custom:words"
    assert context.token_count == 3 + MESSAGE_TOKENS + REPLY_TOKENS


def test_broken_pairs_are_repaired_or_refused(repo: Repo) -> None:
    repo.append("user", "look")
    call = repo.append("assistant", [Text("hm"), ToolCall("t1", "read", "{}")])
    repo.append("user", "and?")
    rendered = repo.compile().render("openai")
    assert [repair.code for repair in rendered.repairs] == ["orphan-call"]
    assert NOT_RECORDED in str(rendered.request)
    with pytest.raises(RenderError) as caught:
        repo.compile().render("openai", strict=True)
    assert caught.value.address == call.addresses[0]


def test_what_this_version_does_not_know_is_refused_by_name(repo: Repo) -> None:
    tip = repo.append("user", "a").oid
    commit = Commit([tip], "ada", 1, [Operation("teleport", {"targets": []})])
    put(repo.store, commit.encode(), "refs/heads/main")
    with pytest.raises(UnsupportedFormatError, match="teleport"):
        repo.compile()
    with pytest.raises(UnsupportedFormatError, match="teleport"):
        repo.edit((tip, 0), "x")


def test_a_message_that_a_move_names_twice_stands_once(repo: Repo) -> None:
    """No verb writes such a move, but a stranger's repository may hold one."""
    tip = repo.commit([Message("user", text) for text in "abc"]).oid
    birth = tip[:16]
    twice = Operation("move", {"targets": [[birth, 2], [birth, 1], [birth, 2]]})
    put(repo.store, Commit([tip], "ada", 1, [twice]).encode(), "refs/heads/main")
    assert texts(repo.compile()) == ["c", "b", "a"]


@pytest.mark.parametrize("cut", [0, 1, 63, 64, 65, 200, 244, 424, 425, 603])
def test_a_torn_or_garbled_index_is_rebuilt(repo: Repo, cut: int) -> None:
    repo.append("user", "a")
    repo.commit([Message("user", text) for text in "bc"])
    expected = repo.compile().prefix_hash
    path = Path(repo.store.layout.index_file("refs/heads/main", "messages"))
    whole = path.read_bytes()
    for damaged in (whole[:cut], whole[:cut] + bytes(len(whole) - cut), whole + b"\0" * cut):
        path.write_bytes(damaged)
        again = Repo.open(repo.store.layout.root + "/..", environment=ADA)
        assert again.compile().prefix_hash == expected
        assert texts(again.compile()) == ["a", "b", "c"]
        again.append("user", "d")
        assert texts(again.compile()) == ["a", "b", "c", "d"]
        back = Transaction([], [RefEdit("refs/heads/main", again.resolve("HEAD~1"), ANY)])
        again.store.transact(lambda _, back=back: back)  # type: ignore[misc]
        path.write_bytes(whole)


def test_a_flipped_bit_in_a_record_is_seen_and_the_index_made_anew(repo: Repo) -> None:
    """A commit that sets the tools, three messages, and one that is pinned and edited."""
    repo.set_tools([{"name": "grep"}])
    for text in "abc":
        repo.append("user", text)
    repo.edit("HEAD.0", "C")
    repo.append("user", "d")
    path = Path(repo.store.layout.index_file("refs/heads/main", "messages"))
    addresses = [message.address for message in repo.compile()]
    whole = path.read_bytes()
    asks: dict[str, Callable[[Repo], object]] = {
        "texts": lambda r: texts(r.compile()),
        "one": lambda r: r.compile().messages[1].text,
        "tools": lambda r: r.compile().tools,
        "tokens": lambda r: (r.compile().token_count, r.compile().message_tokens()),
        "prefixes": lambda r: r.compile().prefix_hashes(),
        "earlier": lambda r: texts(r.compile("HEAD~1")),
        "wording": lambda r: [list(r.contexts.stored_parts(each)) for each in addresses],
        "objects": lambda r: b"".join(r.compile().objects()),
    }
    expected = {name: ask(repo) for name, ask in asks.items()}
    assert expected["texts"] == ["a", "b", "C", "d"]
    for record in range((len(whole) - HEADER_BYTES) // MESSAGE_BYTES):
        for field in (3, 92, 96, 164):
            for name, ask in asks.items():
                path.write_bytes(whole)
                flip(path, HEADER_BYTES + record * MESSAGE_BYTES + field, 4)
                with Repo.open(repo.store.layout.root + "/..", environment=ADA) as again:
                    assert ask(again) == expected[name], (record, field, name)
        if record < (len(whole) - HEADER_BYTES) // MESSAGE_BYTES - 1:
            path.write_bytes(whole)
            flip(path, HEADER_BYTES + record * MESSAGE_BYTES + 100, 4)
            with Repo.open(repo.store.layout.root + "/..", environment=ADA) as again:
                assert [
                    f.code
                    for f in check_indexes(again.store, ObjectChecks(again.store.objects), {})
                ] == ["compile-index-differs"]
                assert texts(again.compile()) == expected["texts"]
                assert again.compile().tools == expected["tools"]
                assert not list(check_indexes(again.store, ObjectChecks(again.store.objects), {}))


def test_a_flipped_bit_in_what_was_counted_is_counted_again(repo: Repo) -> None:
    for text in "abc":
        repo.append("user", text)
    expected = repo.compile().message_tokens()
    (path,) = Path(repo.store.layout.index_dir).glob("*.tokens")
    flip(path, HEADER_BYTES + 3, 4)
    with Repo.open(repo.store.layout.root + "/..", environment=ADA) as again:
        assert again.compile().message_tokens() == expected


@pytest.mark.parametrize("how", ["taken over", "torn"])
def test_a_damaged_record_is_not_copied_on(repo: Repo, how: str) -> None:
    for text in "abc":
        repo.append("user", text)
    repo.compile()
    path = Path(repo.store.layout.index_file("refs/heads/main", "messages"))
    flip(path, HEADER_BYTES + MESSAGE_BYTES + 90, 4)
    branch = "main"
    if how == "taken over":
        branch = "side"
        move(repo.store, "refs/heads/side", repo.resolve("HEAD"))
    else:
        path.write_bytes(path.read_bytes() + b"cut off")
    writing.commit(Writer(repo.store, author="ada").on(branch), [Message("user", "s")])
    with Repo.open(repo.store.layout.root + "/..", environment=ADA) as again:
        assert again.contexts.verify(branch).matches
        assert texts(again.compile(branch)) == ["a", "b", "c", "s"]


def test_an_index_of_another_branch_is_taken_over(repo: Repo) -> None:
    for text in "abc":
        repo.append("user", text)
    repo.compile()
    move(repo.store, "refs/heads/side", repo.resolve("HEAD"))
    writing.commit(Writer(repo.store, author="ada").on("side"), [Message("user", "s")])
    assert texts(repo.compile("side")) == ["a", "b", "c", "s"]
    assert texts(repo.compile("side~2")) == ["a", "b"]
    assert repo.contexts.verify("side").matches


def test_tokens_of_other_messages_are_never_taken_for_these(repo: Repo) -> None:
    """A branch that goes back and on another way has a message where another one was counted."""
    base = repo.append("user", "base").oid
    repo.append("user", "x" * 1000)
    assert repo.compile().token_count > 100
    back = Transaction([], [RefEdit("refs/heads/main", base, ANY)])
    repo.store.transact(lambda _: back)
    assert repo.compile().token_count < 20
    repo.append("user", "short")
    assert repo.compile().token_count == repo.contexts.compile(cold=True).token_count < 30


def test_an_index_that_is_being_written_is_left_alone(repo: Repo) -> None:
    """Also when the lock was taken through a descriptor that is shared, as after a fork."""
    repo.append("user", "a")
    repo.compile()
    layout, disk = repo.store.layout, repo.store.disk
    column = DiskColumn(disk, layout.index_file("refs/heads/main", "messages")).current()
    assert column is not None
    size = column.size()
    assert disk.lock(column._fd, blocking=False)
    assert not column.append(size, b"x")
    disk.unlock(column._fd)
    assert not column.append(size - 1, b"x")
    assert column.size() == size


def test_an_index_that_differs_from_the_history_is_told_with_its_first_message(
    tmp_path: Path,
) -> None:
    with Repo.init(tmp_path) as repo:
        for text in "abcde":
            repo.append("user", text)
        repo.compile()
        path = Path(repo.store.layout.index_file("refs/heads/main", "messages"))
        assert repo.contexts.verify().first_difference is None
    data = bytearray(path.read_bytes())
    first = MessageRecord.unpack(_record(data, 0))
    for number, wrong in (
        (3, replace(MessageRecord.unpack(_record(data, 3)), flags=END | IS_PINNED)),
        (2, replace(MessageRecord.unpack(_record(data, 2)), place_commit=first.place_commit)),
    ):
        at = HEADER_BYTES + number * MESSAGE_BYTES
        data[at : at + MESSAGE_BYTES] = wrong.pack()
        path.write_bytes(data)
        with Repo.open(tmp_path) as again:
            outcome = again.contexts.verify()
        assert (outcome.matches, outcome.first_difference) == (False, number)


def _record(column: bytearray, number: int) -> bytes:
    at = HEADER_BYTES + number * MESSAGE_BYTES
    return bytes(column[at : at + MESSAGE_BYTES])


def test_a_kind_may_be_a_name_of_ones_own(repo: Repo) -> None:
    made = repo.commit(
        [Message("user", "Use SQLite.", kind="design-note"), Message("user", "Yes.")]
    )
    context = repo.compile()
    assert [message.kind for message in context.messages] == ["design-note", "dialogue"]
    assert context.messages[0].message().kind == "design-note"
    assert [entry.oid for entry in repo.log(kind="design-note")] == [made.oid]
    for wrong in ("Dialogue", "two words", "1st", "x" * 65):
        with pytest.raises(InvalidMessageError, match="unknown kind"):
            Message("user", "x", kind=wrong)
