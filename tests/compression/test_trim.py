"""Trimming: it meets the target, keeps important messages, and can be undone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compression.support.agent_session import (
    LONG,
    agent_session,
    append_steps,
    call,
    result,
)
from tests.importers.support.transcripts import each_chosen_file
from tests.support.pictures import png
from trace_store import Image, Message, Opaque, Reasoning, Repo, Text, ToolResult
from trace_store.compression.cuts import shortened
from trace_store.compression.trim import OUTPUT, STEPS, plan
from trace_store.context.activity import RUN, Action
from trace_store.errors import BudgetError, InvalidInputError, UnbornBranchError
from trace_store.importers.import_paths import import_paths
from trace_store.objects.commit import read_commit
from trace_store.providers.rendering import FAULTS
from trace_store.writer import Writer

PROVIDERS = ("anthropic", "openai", "openai-responses", "gemini")
LONGEST = 20_000


@pytest.fixture
def repo() -> Iterator[Repo]:
    with Repo.memory() as made:
        agent_session(made)
        yield made


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
    result = repo.compression.trim(before.token_count * percent // 100)
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
    repo.compression.trim(3_000)
    after = repo.compile().messages
    assert [text for text in said if text not in [m.text for m in after]] == []
    assert next(m for m in after if m.address == pinned).parts == kept


def test_a_file_that_was_read_again_points_to_the_newest_read(repo: Repo) -> None:
    repo.compression.dedupe()
    newest = next(m for m in repo.compile().messages if _answers(m.parts, "call_90"))
    found = outputs(repo)
    assert found["call_1"] == f"[parser.py was read again in {newest.address.short(8)}]"
    assert found["call_90"].startswith(LONG)
    assert found["call_4"].startswith("[the same output as ")
    assert found["call_5"] == LONG.title()


def _answers(parts: object, call: str) -> bool:
    return any(isinstance(p, ToolResult) and p.call_id == call for p in parts)  # type: ignore[attr-defined]


def test_one_of_two_results_in_a_message_is_shortened(repo: Repo) -> None:
    repo.compression.trim(repo.compile().token_count - 2_500)
    found = outputs(repo)
    assert found["call_3"].startswith("ImportError: no module named lexer")
    assert "exit code 2" in found["call_3"].lower()
    assert found["call_2"] == LONG.upper()


def test_the_newest_messages_stay_whole(repo: Repo) -> None:
    last = [m.text for m in repo.compile().messages[-3:]]
    repo.compression.trim(half(repo))
    assert [m.text for m in repo.compile().messages[-3:]] == last


def test_kept_turns_stay_whole_however_large(repo: Repo) -> None:
    with pytest.raises(BudgetError):
        repo.compression.trim(half(repo), keep_last=3)
    assert repo.compression.trim(half(repo), keep_last=1).met


def test_a_target_that_cannot_be_met_writes_nothing_and_says_what_can(repo: Repo) -> None:
    tip = repo.resolve("HEAD")
    with pytest.raises(BudgetError, match="smallest possible") as refused:
        repo.compression.trim(10)
    assert repo.resolve("HEAD") == tip
    smallest = refused.value.needed
    planned = repo.compression.trim(10, dry_run=True)
    assert planned.after == smallest
    assert {"messages of the user", "newest messages"} <= set(planned.stays)
    assert repo.compression.trim(int(smallest)).met


def test_only_the_range_changes(repo: Repo) -> None:
    messages = repo.compile().messages
    start, end = messages[12].address, messages[20].address
    before = {m.address: m.parts for m in messages}
    repo.compression.trim(10, f"{start}..{end}", partial=True)
    changed = [a for a, parts in before.items() if _parts_of(repo, a) != parts]
    assert changed
    places = [m.address for m in messages]
    assert all(12 <= places.index(address) <= 20 for address in changed)


def _parts_of(repo: Repo, address: object) -> object:
    return next((m.parts for m in repo.compile().messages if m.address == address), None)


def test_an_empty_range_is_refused(repo: Repo) -> None:
    messages = repo.compile().messages
    with pytest.raises(InvalidInputError, match="names no message"):
        repo.compression.trim(10, f"{messages[5].address}..{messages[2].address}")


def test_a_note_names_the_work_and_its_messages_come_back(repo: Repo) -> None:
    before = repo.compile().messages[13]
    result = repo.compression.trim(repo.compression.trim(0, dry_run=True).after)
    assert before.address in result.replaced
    notes = [m.text for m in repo.compile().messages if m.kind == "summary"]
    assert "ran pytest -q (failed)" in notes[0]
    assert "make part_" in notes[1]
    repo.restore(before.address)
    assert before.address in [m.address for m in repo.compile().messages]


def test_only_as_much_work_becomes_a_note_as_the_target_needs() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Look at all of it.")
        for number in range(30):
            repo.commit(
                [Message("assistant", [call(number, "Bash", command=f"cat part_{number}")])]
            )
            repo.commit([Message("tool", [ToolResult(f"call_{number}", "It is fine. " * 20)])])
        repo.append("assistant", "All is fine.")
        repo.append("user", "Thanks.")
        result = repo.compression.trim(repo.compile().token_count * 80 // 100, keep_last=1)
        assert {step.reason for step in result.steps} >= {"episode"}
        assert 6 <= len(result.replaced) < 30


def test_trimming_again_goes_on_from_what_is_left(repo: Repo) -> None:
    whole = repo.compile()
    repo.compression.trim(whole.token_count // 2)
    assert repo.compression.trim(whole.token_count // 4).met
    assert not repo.compression.trim(whole.token_count // 4).steps
    repo.undo()
    repo.undo()
    assert repo.compile().prefix_hash == whole.prefix_hash


def test_an_open_call_stays(repo: Repo) -> None:
    waiting = call(99, "Bash", command="make docs")
    repo.commit([Message("assistant", [waiting])])
    repo.compression.trim(2_000)
    assert repo.compile().messages[-1].parts == (waiting,)


def test_a_branch_that_is_not_checked_out(repo: Repo) -> None:
    repo.branches.create("other")
    whole = repo.compile().token_count
    result = repo.compression.trim(half(repo), ref="other")
    assert repo.compile().token_count == whole
    assert repo.compile("other").token_count == result.after


def test_an_unborn_branch_has_nothing_to_trim() -> None:
    with Repo.memory() as empty, pytest.raises(UnbornBranchError):
        empty.compression.trim(10)


@pytest.mark.parametrize("path", each_chosen_file(longest=True))
def test_real_sessions_fit_or_the_rest_is_explained(path: Path) -> None:
    with Repo.memory() as repo:
        import_paths(Writer(repo.store), [str(path)])
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
            target = repo.compression.target(f"{percent}%")
            result = repo.compression.trim(target, partial=True)
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


RECENT = "\n".join(f"note {number}: ask {number * 7919 % 101} people" for number in range(40))


def change_notes(repo: Repo) -> None:
    """Append a turn that reads a file of some 400 tokens and then overwrites it."""
    repo.append("user", "Now the notes, please.")
    repo.commit([Message("assistant", [call(200, "Read", file_path="src/notes.md")])])
    repo.commit([Message("tool", [ToolResult("call_200", RECENT)])])
    newer = RECENT.replace("note 0", "note zero")
    write = call(201, "Write", file_path="src/notes.md", content=newer)
    repo.commit([Message("assistant", [write])])
    repo.commit([Message("tool", [ToolResult("call_201", "ok")])])


def test_a_recent_read_stays_whole_though_its_file_was_changed(repo: Repo) -> None:
    """The model still needs the text for its next change, until the turn is an old one."""
    change_notes(repo)
    repo.compression.dedupe()
    assert outputs(repo)["call_200"] == RECENT
    assert "superseded" not in {reason for _, reason in repo.compression.trim(8_000).changes}
    assert outputs(repo)["call_200"] == RECENT
    for number in range(3):
        repo.append("user", f"Go on with number {number}.")
        repo.append("assistant", "word " * 600)
    repo.compression.dedupe()
    assert outputs(repo)["call_200"].startswith("[notes.md was written again in ")


def test_a_target_that_is_met_exactly_is_met(repo: Repo) -> None:
    tokens, tip = repo.compile().token_count, repo.resolve("HEAD")
    result = repo.compression.trim(tokens)
    assert (result.met, result.steps, result.commit) == (True, (), None)
    assert (result.before, result.after, repo.resolve("HEAD")) == (tokens, tokens, tip)
    result = repo.compression.trim(tokens - 1)
    assert (result.met, result.before) == (True, tokens)
    assert result.after == repo.compile().token_count < tokens
    assert result.before - result.after == sum(step.tokens for step in result.steps)


def test_a_dry_run_knows_what_the_trim_will_leave(repo: Repo) -> None:
    for percent in (80, 40):
        target = repo.compile().token_count * percent // 100
        planned = repo.compression.trim(target, dry_run=True)
        done = repo.compression.trim(target)
        assert (planned.before, planned.after, planned.steps) == (
            done.before,
            done.after,
            done.steps,
        )
        assert done.after == repo.compile().token_count


@pytest.mark.parametrize("tokens", [60, 200])
def test_what_is_left_of_an_output_is_whole_lines(tokens: int) -> None:
    lines = LONG.splitlines()
    head: list[str] = []
    tail: list[str] = []
    said = ""
    for line in shortened(LONG, tokens, "abc.0", "exit code 3").splitlines():
        if line.startswith("["):
            said = line
        else:
            (tail if said else head).append(line)
    assert head == lines[: len(head)]
    assert tail == lines[len(lines) - len(tail) :]
    assert len(head) > len(tail) > 0
    gone = len(lines) - len(head) - len(tail)
    assert said == f"[{gone} lines removed, exit code 3: trace expand abc.0]"
    assert 3 * tokens < len("\n".join(head + tail)) <= 4 * tokens


def test_a_short_output_stays_as_it_is() -> None:
    assert shortened("x" * (4 * 50 + 320), 50, "abc.0") == ""
    assert 180 < shortened("x" * (4 * 50 + 321), 50, "abc.0").count("x") <= 4 * 50
    assert shortened(LONG, 0, "abc.0") == "[120 lines removed: trace expand abc.0]"


def test_only_the_last_to_do_list_is_protected(repo: Repo) -> None:
    for number, text in ((300, "first list " * 90), (301, "second list " * 90)):
        repo.commit([Message("assistant", [call(number, "TodoWrite", todos=[{"content": text}])])])
        repo.commit([Message("tool", [ToolResult(f"call_{number}", "ok")])])
    for number in range(3):
        repo.append("user", f"Go on with number {number}.")
        repo.append("assistant", "word " * 1_100)
    repo.compression.trim(10, partial=True)
    left = texts(repo)
    assert "second list " * 90 in left
    assert "first list " * 90 not in left


def test_pictures_and_blanks_of_the_user_are_no_turns(repo: Repo) -> None:
    """Only what has words is: the last two turns are those before the picture and the blanks."""
    repo.append("user", [Image("image/png", png(8, 8))])
    repo.append("user", "   ")
    kept = [m.address for m in repo.compile().messages if m.role == "user"][-4:]
    result = repo.compression.trim(half(repo), keep_last=1)
    assert result.met
    shown = [message.address for message in repo.compile().messages]
    assert kept[1] in shown
    assert shown.index(kept[1]) == len(shown) - 4


def test_the_newest_messages_fill_half_of_what_is_not_fixed() -> None:
    """One fixed context: 40 answers of the same size, a short prompt before each, all in two turns of the user."""
    with Repo.memory() as repo:
        repo.append("user", "Tell a long story.")
        for number in range(40):
            repo.append("assistant", f"Part {number}. " + "word " * 200)
        sizes = [total for total, _ in repo.compile().message_tokens()]
        tokens = repo.compile().token_count
        target = tokens * 6 // 10
        fixed = tokens - sum(sizes) + sizes[0]
        wanted = (target - fixed) // 2 // sizes[-1]
        before = [message.text for message in repo.compile().messages]
        repo.compression.trim(target)
        after = [message.text for message in repo.compile().messages]
        whole = 0
        while before[-1 - whole] == after[-1 - whole]:
            whole += 1
        assert whole >= wanted
        tail = repo.compression.trim(10, partial=True, dry_run=True).stays["newest messages"]
        assert tail == sum(sizes[-(1_000 // sizes[-1]) :])


def test_of_a_long_last_output_half_of_the_room_stays() -> None:
    """The last answer speaks of it; older outputs make way first."""
    with Repo.memory() as repo:
        repo.append("user", "Look at the logs.")
        append_steps(repo, 1, 6)
        repo.commit([Message("assistant", [call(90, "Bash", command="cat server.log")])])
        log = "\n".join(f"request {number} took {number * 37 % 991} ms" for number in range(600))
        repo.commit([Message("tool", [ToolResult("call_90", log)])])
        repo.append("assistant", "The slowest requests are in the last third.")
        before = repo.compile().token_count
        for percent in (70, 50, 25):
            target = before * percent // 100
            assert repo.compression.trim(target).met
            sizes = [total for total, _ in repo.compile().message_tokens()]
            assert 0.4 * target < sizes[-2] < 0.55 * target
            assert max(sizes[:-2]) < sizes[-2]
            repo.undo()
        # A smaller target than it leaves room for cuts it, too.
        assert repo.compression.trim(before // 15).met


def test_an_answer_that_is_cut_says_by_how_much() -> None:
    first, rest = "The import is wrong.", "\n\n" + "More about it. " * 80
    with Repo.memory() as repo:
        for number in range(4):
            repo.append("user", f"Question {number}?")
            repo.append("assistant", first + rest)
        repo.compression.trim(1, partial=True)
        cut = repo.compile().messages[1]
        said = f"[{len(rest):,} characters removed: trace expand {cut.address.short(8)}]"
        assert cut.text == f"{first}\n{said}"


def test_an_answer_that_is_cut_keeps_more_than_its_heading() -> None:
    with Repo.memory() as repo:
        for number in range(4):
            repo.append("user", f"Question {number}?")
            repo.append("assistant", "## Cause\n\nThe import is wrong.\n\n" + "More. " * 300)
        repo.compression.trim(1, partial=True)
        assert repo.compile().messages[1].text.startswith("## Cause\n\nThe import is wrong.\n[")


def test_a_note_counts_what_it_replaces() -> None:
    with Repo.memory() as repo:
        for number in range(4):
            repo.append("user", f"Question {number}?")
            for _ in range(1 + number % 2):
                repo.append("assistant", "word " * 300)
            repo.append("assistant", f"Answer {number}.")
        repo.compression.trim(1, partial=True)
        shown = [m.text for m in repo.compile().messages]
    assert shown[1].startswith("[1 message removed. trace expand ")
    assert shown[4].startswith("[2 messages removed. trace expand ")


@pytest.fixture(scope="module")
def varied() -> Repo:
    """Return a session in which each step finds something to shorten."""
    repo = Repo.memory()
    repo.append("system", "Be careful.")
    repo.append("user", "Fix it.")
    read = call(1, "Read", file_path="src/a.py")
    repo.commit([Message("assistant", [Reasoning("think " * 300), Text("Let me look."), read])])
    repo.commit([Message("tool", [result(1, LONG)])])
    repo.commit([Message("assistant", [call(2, "Bash", command="make")])])
    repo.commit([Message("tool", [result(2, f"ValueError: x\n{LONG}", failed=True)])])
    write = call(3, "Write", file_path="src/b.py", content=LONG.upper())
    repo.commit([Message("assistant", [write]), Message("tool", [result(3, "ok")])])
    repo.commit([Message("assistant", [call(4, "Read", file_path="src/a.py")])])
    repo.commit([Message("tool", [result(4, LONG)])])
    repo.append("assistant", "It is fixed.\n\n" + "More. " * 300)
    repo.append("user", "Go on.")
    append_steps(repo, 10, 3)
    repo.append("assistant", "Done.")
    for _ in range(2):
        repo.append("user", "And on.")
        repo.append("assistant", "Fine. " * 90)
    return repo


@pytest.mark.parametrize(
    ("target", "least", "counts", "changed", "replaced"),
    [
        (11_000, 10_600, [2], {3: 1, 9: 1}, 0),
        (10_300, 10_150, [2, 1, 1], {2: 2, 3: 1, 5: 3, 9: 1}, 0),
        (8_900, 8_750, [2, 1, 1, 1], {2: 2, 3: 1, 5: 3, 9: 1, 13: 4}, 0),
        (6_800, 6_650, [2, 1, 1, 2, 1], {2: 2, 3: 1, 5: 3, 6: 5, 9: 1, 13: 4, 15: 4}, 0),
        (5_400, 5_100, [2, 1, 1, 2, 1], {2: 2, 3: 1, 5: 3, 6: 5, 9: 1, 13: 4, 15: 4}, 0),
        (2_600, 2_350, [2, 1, 1, 4, 1], {2: 2, 3: 1, 5: 4, 6: 5, 9: 1, 13: 4, 15: 4, 17: 4}, 0),
        (1_900, 1_780, [2, 1, 1, 4, 1, 1], {13: 4, 15: 4, 17: 4}, 8),
        (1_200, 1_080, [2, 1, 1, 4, 1, 2, 1], {10: 7, 17: 4}, 12),
        (500, 640, [2, 1, 1, 4, 1, 2, 1], {10: 7, 17: 4}, 12),
    ],
)
def test_the_steps_that_a_target_needs(
    varied: Repo,
    target: int,
    least: int,
    counts: list[int],
    changed: dict[int, int],
    replaced: int,
) -> None:
    """The changes of each step, in their order, the last step that changed each message, and what notes replace."""
    messages = varied.compile().messages
    places = {message.address: at for at, message in enumerate(messages)}
    done = varied.compression.trim(target, partial=True, dry_run=True)
    names = STEPS[1:]
    assert [(step.reason, step.count) for step in done.steps] == list(
        zip(names, counts, strict=False)
    )
    assert {places[each]: why for each, why in done.changes} == {
        at: names[step - 1] for at, step in changed.items()
    }
    assert len(done.replaced) == replaced
    assert done.met is (target > 500)
    assert least < done.after < (target if done.met else 800)
    assert (done.before, done.messages) == (varied.compile().token_count,) * 2
    assert done.before - done.after == sum(step.tokens for step in done.steps)
    assert set(done.stays) == (
        set()
        if done.met
        else {
            *("newest messages", "rest of trimmed messages", "notes", "messages of the user"),
            *(
                "instructions and to-dos",
                "tool schemas, and the difference to the provider's count",
            ),
        }
    )
    assert list(done.stays.values()) == sorted(done.stays.values(), reverse=True)


def test_what_a_trim_leaves_alone_is_told_by_reason(repo: Repo) -> None:
    messages = repo.compile().messages
    sizes = [total for total, _ in repo.compile().message_tokens()]
    repo.annotate(messages[3].address, priority="pinned")
    repo.annotate(messages[7].address, priority="important")
    repo.append("user", "One more.")
    span = f"{messages[12].address}..{messages[13].address}"
    stays = repo.compression.trim(10, span, keep_last=1, dry_run=True).stays
    assert stays["pinned"] == sum(sizes[2:4]), "the call and its result"
    assert stays["important"] == sum(sizes[6:8])
    assert stays["instructions and to-dos"] == sizes[0]
    assert stays["messages outside the range"] > sum(sizes[14:35:2])


def test_a_dedupe_records_no_target(repo: Repo) -> None:
    done = repo.compression.dedupe()
    assert done.commit is not None
    meta = read_commit(done.commit.oid, repo.store.objects.read).meta["trim"]
    assert meta == {"before": done.before, "after": done.after, "target": 0}


def test_what_a_note_would_not_make_smaller_stays() -> None:
    with Repo.memory() as repo:
        for number in range(9):
            repo.append("user", f"Question {number}?")
            for text in ("Yes.", "No."):
                repo.append("assistant", text)
        before = repo.compile()
        done = repo.compression.trim(1, keep_last=1, partial=True)
        assert (done.steps, done.commit, done.after) == ((), None, before.token_count)


def test_of_a_failed_output_more_stays_than_of_another_one() -> None:
    lines = [f"line {number:02} of it is longer than some others are" for number in range(90)]
    with Repo.memory() as repo:
        repo.append("user", "Run both.")
        for number in range(2):
            repo.commit([Message("assistant", [call(number, "Bash", command=f"run {number}")])])
            text = "\n".join([*lines, f"end {number}"])
            repo.commit([Message("tool", [result(number, text, failed=bool(number))])])
        repo.append("user", "Go on.")
        repo.commit([Message("assistant", "Fine. " * 9) for _ in range(2)])
        _, working = plan(repo.contexts, to=1, keep_last=1, steps=(OUTPUT,))
    kept = [
        sum(line in lines for line in part.text.splitlines())
        for at in (2, 4)
        for part in working.current_parts(at)
        if isinstance(part, ToolResult)
    ]
    assert kept == [1, 3]


def test_a_reference_says_that_its_text_was_cut_and_that_is_counted() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Rewrite both.")
        for number, name in enumerate(("a.py", "b.py")):
            text = LONG.replace("setting", name)
            steps = [
                (call(number, "Read", file_path=name), text),
                (call(10 + number, "Bash", command=f"cat {name} | sort"), f"{text}\nend"),
                (call(20 + number, "Write", file_path=name, content=f"{text}\nnew"), "ok"),
            ]
            for made, output in steps:
                repo.commit([Message("assistant", [made])])
                repo.commit([Message("tool", [ToolResult(made.id, output)])])
        repo.append("assistant", "Done.")
        for _ in range(3):
            repo.append("user", "Go on.")
            repo.append("assistant", "Fine.")
        writes = [repo.compile().messages[at].address.short(8) for at in (5, 11)]
        before = repo.compile().token_count
        for target, is_cut in (
            *((5_500, (False, False)), (4_000, (True, False))),
            (1_500, (True, True)),
        ):
            done = repo.compression.trim(target, keep_last=3)
            assert done.met
            assert done.after == repo.compile().token_count
            assert done.before - done.after == sum(step.tokens for step in done.steps)
            found = outputs(repo)
            for number, write in enumerate(writes):
                cut = f", which is cut: trace expand {write}" if is_cut[number] else ""
                name = "ab"[number]
                assert found[f"call_{number}"] == f"[{name}.py was written again in {write}{cut}]"
            repo.undo()
        assert repo.compile().token_count == before


@pytest.mark.parametrize("name", ["compaction", "compaction_summary", "context_compaction"])
def test_what_a_provider_compacted_stays(name: str) -> None:
    """No text replaces it: it is all that the model knows of the windows before."""
    block = json.dumps({"type": name, "id": "cmp_1", "encrypted_content": "ciphertext" * 40})
    summary = Opaque("openai", block)
    with Repo.memory() as compacted:
        compacted.commit([Message("user", "Go on."), Message("assistant", [summary])])
        append_steps(compacted, 1, 12)
        for _ in range(2):
            compacted.compression.trim(plan(compacted.writer.contexts, to=0)[0].after)
            assert summary in compacted.compile().messages[1].parts
        append_steps(compacted, 20, 12)
        compacted.compression.compress(half(compacted), force=True)
        assert summary in compacted.compile().messages[1].parts


def test_a_target_is_refused_only_if_a_smaller_one_is(repo: Repo) -> None:
    smallest = plan(repo.writer.contexts, to=0)[0].after
    for more in range(0, 2000, 401):
        assert plan(repo.writer.contexts, to=smallest + more)[0].met, more


def test_how_a_check_ended_stays_in_a_short_output() -> None:
    lines = [f"  {number} of a long table of scores" for number in range(300)]
    lines[200] = "RESULT: FAIL  (0/1 scored >= 80%, mean: 0%)"
    assert lines[200] in shortened("\n".join(lines), 80, "1a2b3c4d.0")


@pytest.mark.parametrize(
    "command", ["pnpm --filter @scope/worker test", "npm -w app test", "yarn --cwd web run test"]
)
def test_tests_of_one_package_are_tests(command: str) -> None:
    assert Action(RUN, (), command).is_test
