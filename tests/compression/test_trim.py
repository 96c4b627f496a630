"""Trimming: it meets the target, keeps important messages, and can be undone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compression.support.agent_session import LONG, agent_session, call
from tests.importers.support.transcripts import each_chosen_file
from trace_store import Message, Repo, ToolResult
from trace_store.compression.compress import parse_target
from trace_store.compression.trim import DEDUPLICATION, TrimResult, trim
from trace_store.errors import BudgetError, InvalidInputError, UnbornBranchError
from trace_store.importers.import_file import import_paths
from trace_store.providers.rendering import FAULTS

PROVIDERS = ("anthropic", "openai", "openai-responses", "gemini")
LONGEST = 20_000


@pytest.fixture
def repo() -> Iterator[Repo]:
    with Repo.memory() as made:
        agent_session(made)
        yield made


def trimmed(repo: Repo, target: int | None, range: str = "", **options: object) -> TrimResult:
    return trim(repo.store, range, to=target, author="ada", **options)  # type: ignore[arg-type]


def half(repo: Repo) -> int:
    return repo.compile().token_count // 2


def faults(repo: Repo, revision: str = "HEAD") -> list[str]:
    """Return the faults that a provider would reject."""
    shown = repo.compile(revision)
    return [
        f"{provider} {repair.code}"
        for provider in PROVIDERS
        for repair in shown.render(provider).repairs
        if repair.code in FAULTS
    ]


def texts(repo: Repo) -> str:
    return json.dumps(repo.compile().to_json(), ensure_ascii=False)


def outputs(repo: Repo) -> dict[str, str]:
    """Return the texts of the tool results by call."""
    return {
        part.call_id: "".join(getattr(each, "text", "") for each in part.content)
        for message in repo.compile().messages
        for part in message.parts
        if isinstance(part, ToolResult)
    }


@pytest.mark.parametrize("percent", [75, 50, 25])
def test_the_target_is_met_and_undone(repo: Repo, percent: int) -> None:
    before = repo.compile()
    result = trimmed(repo, before.token_count * percent // 100)
    after = repo.compile()
    assert result.met
    assert after.token_count == result.after <= before.token_count * percent // 100
    assert faults(repo) == []
    repo.undo()
    assert repo.compile().prefix_hash == before.prefix_hash


def test_what_the_user_said_and_what_is_pinned_stays(repo: Repo) -> None:
    pinned = repo.compile().messages[7].address
    repo.annotate(pinned, priority="pinned")
    said = [m.text for m in repo.compile().messages if m.role in ("user", "system")]
    kept = repo.compile().messages[7].parts
    trimmed(repo, 3_000)
    after = repo.compile().messages
    assert [text for text in said if text not in [m.text for m in after]] == []
    assert next(m for m in after if m.address == pinned).parts == kept


def test_a_file_that_was_read_again_points_to_the_newest_read(repo: Repo) -> None:
    trimmed(repo, None, steps=DEDUPLICATION)
    newest = next(m for m in repo.compile().messages if _answers(m.parts, "call_90"))
    found = outputs(repo)
    assert found["call_1"] == f"[parser.py was read again in {newest.address.short(8)}]"
    assert found["call_90"].startswith(LONG)
    assert found["call_4"].startswith("[the same output as ")
    assert found["call_5"] == LONG.title()


def _answers(parts: object, call: str) -> bool:
    return any(isinstance(p, ToolResult) and p.call_id == call for p in parts)  # type: ignore[attr-defined]


def test_one_of_two_results_in_a_message_is_shortened(repo: Repo) -> None:
    trimmed(repo, repo.compile().token_count - 2_500)
    found = outputs(repo)
    assert found["call_3"].startswith("ImportError: no module named lexer")
    assert "exit code 2" in found["call_3"].lower()
    assert found["call_2"] == LONG.upper()


def test_the_newest_messages_stay_whole(repo: Repo) -> None:
    last = [m.text for m in repo.compile().messages[-3:]]
    trimmed(repo, half(repo))
    assert [m.text for m in repo.compile().messages[-3:]] == last


def test_kept_turns_stay_whole_however_large(repo: Repo) -> None:
    with pytest.raises(BudgetError):
        trimmed(repo, half(repo), keep_last=3)
    assert trimmed(repo, half(repo), keep_last=1).met


def test_a_target_that_cannot_be_met_writes_nothing_and_says_what_can(repo: Repo) -> None:
    tip = repo.resolve("HEAD")
    with pytest.raises(BudgetError, match="smallest possible") as refused:
        trimmed(repo, 10)
    assert repo.resolve("HEAD") == tip
    smallest = refused.value.needed
    planned = trimmed(repo, 10, dry_run=True)
    assert planned.after == smallest
    assert {"messages of the user", "newest messages"} <= set(planned.stays)
    assert trimmed(repo, int(smallest)).met


def test_only_the_range_changes(repo: Repo) -> None:
    messages = repo.compile().messages
    start, end = messages[12].address, messages[20].address
    before = {m.address: m.parts for m in messages}
    trimmed(repo, 10, f"{start}..{end}", partial=True)
    changed = [a for a, parts in before.items() if _parts_of(repo, a) != parts]
    assert changed
    places = [m.address for m in messages]
    assert all(12 <= places.index(address) <= 20 for address in changed)


def _parts_of(repo: Repo, address: object) -> object:
    return next((m.parts for m in repo.compile().messages if m.address == address), None)


def test_an_empty_range_is_refused(repo: Repo) -> None:
    messages = repo.compile().messages
    with pytest.raises(InvalidInputError, match="names no message"):
        trimmed(repo, 10, f"{messages[5].address}..{messages[2].address}")


def test_a_note_names_the_work_and_its_messages_come_back(repo: Repo) -> None:
    before = repo.compile().messages[13]
    result = trimmed(repo, trimmed(repo, 0, dry_run=True).after)
    assert before.address in result.replaced
    notes = [m.text for m in repo.compile().messages if m.kind == "summary"]
    assert "ran pytest -q (failed)" in notes[0]
    assert "make part_" in notes[1]
    repo.restore(before.address)
    assert before.address in [m.address for m in repo.compile().messages]


def test_trimming_again_goes_on_from_what_is_left(repo: Repo) -> None:
    whole = repo.compile()
    trimmed(repo, whole.token_count // 2)
    assert trimmed(repo, whole.token_count // 4).met
    assert not trimmed(repo, whole.token_count // 4).steps
    repo.undo()
    repo.undo()
    assert repo.compile().prefix_hash == whole.prefix_hash


def test_an_open_call_stays(repo: Repo) -> None:
    waiting = call(99, "Bash", command="make docs")
    repo.commit([Message("assistant", [waiting])])
    trimmed(repo, 2_000)
    assert repo.compile().messages[-1].parts == (waiting,)


def test_a_branch_that_is_not_checked_out(repo: Repo) -> None:
    repo.branches.create("other")
    whole = repo.compile().token_count
    result = repo.compression.trim(half(repo), ref="other")
    assert repo.compile().token_count == whole
    assert repo.compile("other").token_count == result.after


def test_an_unborn_branch_has_nothing_to_trim() -> None:
    with Repo.memory() as empty, pytest.raises(UnbornBranchError):
        trimmed(empty, 10)


@pytest.mark.parametrize("path", each_chosen_file(longest=True))
def test_real_sessions_fit_or_the_rest_is_explained(path: Path) -> None:
    with Repo.memory() as repo:
        import_paths(repo.store, [str(path)])
        name = max(
            (each.name for each in repo.branches.list()),
            key=lambda n: len(repo.compile(n)),
            default="",
        )
        if not name or repo.compile(name).token_count < LONGEST:
            pytest.skip("not long")
        repo.branches.switch(name)
        before, known = repo.compile(), faults(repo)
        said = [m.text for m in before.messages if m.role == "user" and m.text]
        for percent in (50, 25, 10):
            target = parse_target(repo.store, f"{percent}%")
            result = trimmed(repo, target, partial=True)
            after = repo.compile()
            assert result.after == after.token_count
            assert result.met or abs(sum(result.stays.values()) - result.after) <= 2
            assert set(faults(repo)) <= set(known)
            assert set(said) <= {m.text for m in after.messages}
            if result.commit:
                repo.undo()
            assert repo.compile().prefix_hash == before.prefix_hash


def test_a_message_that_is_edited_with_its_own_parts_keeps_its_call() -> None:
    with Repo.memory() as repo:
        waiting = call(1, "Read", file_path="a.py")
        answer = Message("tool", [ToolResult("call_1", "text")])
        repo.commit([Message("user", "go"), Message("assistant", [waiting]), answer])
        message = repo.compile().messages[2]
        repo.edit(message.address, message.parts)
        assert faults(repo) == []
