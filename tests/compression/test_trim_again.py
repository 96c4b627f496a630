"""What readers of trimmed sessions missed: answers of the user, final answers, reports, notes of earlier trims."""

from __future__ import annotations

import json

from tests.compression.support.agent_session import LONG, append_steps, call, result
from trace_store import Message, Reasoning, Repo, Text, ToolCall, ToolResult
from trace_store.compression.cuts import shortened

ANSWER = 'User has answered your questions: "Which store?"="Redis, and only for sessions". ' + (
    "You can now continue with the user's answers in mind."
)


def shown(repo: Repo) -> str:
    return "\n".join(
        part.text if isinstance(part, Text | ToolResult) else getattr(part, "arguments", "")
        for message in repo.compile().messages
        for part in message.parts
    )


def end(repo: Repo) -> None:
    """Append two turns, so that the earlier ones are old."""
    for _ in range(2):
        repo.append("user", "Go on.")
        repo.append("assistant", "Fine.")


def step(repo: Repo, number: int, tool: str, text: str, **arguments: object) -> None:
    repo.commit([Message("assistant", [call(number, tool, **arguments)])])
    repo.commit([Message("tool", [result(number, text)])])


def test_what_the_user_answered_to_a_question_stays_with_the_question() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Plan the store.")
        append_steps(repo, 1, 4)
        ask = call(10, "AskUserQuestion", questions=[{"question": "Which store?" + " So?" * 200}])
        repo.commit([Message("assistant", [Reasoning("think " * 99), Text("I ask."), ask])])
        repo.commit([Message("tool", [result(10, ANSWER)])])
        append_steps(repo, 20, 4)
        end(repo)
        repo.compression.trim(1, partial=True)
        assert ANSWER in shown(repo)
        assert " So?" * 200 in shown(repo)
        assert "think" not in shown(repo)


def test_the_answer_before_new_instructions_stays() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Review it.")
        append_steps(repo, 1, 2)
        repo.append("assistant", "Three faults: the lock, the retry and the log.")
        repo.append("developer", "Approvals are on request.")
        repo.append("user", "Fix the first.")
        append_steps(repo, 10, 2)
        end(repo)
        repo.compression.trim(1, partial=True)
        assert "Three faults: the lock, the retry and the log." in shown(repo)


def test_reports_of_other_agents_are_no_words_of_the_user() -> None:
    report = "Message Type: FINAL_ANSWER\nTask name: /root\nSender: /root/audit\nPayload:\n"
    with Repo.memory() as repo:
        repo.append("user", "Check it.")
        append_steps(repo, 1, 2)
        repo.append("user", f"{report}The lock is taken twice.\n\n{LONG}")
        append_steps(repo, 10, 2)
        repo.append("assistant", "The audit is done.")
        end(repo)
        repo.compression.trim(1, partial=True)
        [note] = [m.text for m in repo.compile().messages if m.kind == "summary"]
        assert note.startswith("[7 messages removed: ran ")
        assert "\nReported: The lock is taken twice." in note


def test_a_long_argument_is_cut_no_deeper_than_needed() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Write it.")
        content = "\n".join(f"{n}: {LONG[:80]!r}" for n in range(900))
        step(repo, 1, "Write", "ok", file_path="/p/a.py", content=content)
        end(repo)
        before = repo.compile().token_count
        done = repo.compression.trim(before // 2)
        assert before * 0.4 < done.after <= before * 0.5


def test_a_second_trim_takes_up_what_the_notes_of_the_first_say() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Build it.")
        for number in range(12):
            step(repo, number, "Bash", LONG, command=f"cd /work && make part_{number}")
        repo.append("assistant", "We use SQLite instead of files, because it locks.")
        append_steps(repo, 20, 8)
        end(repo)
        repo.compression.trim(900, partial=True)
        notes = [m.text for m in repo.compile().messages if m.kind == "summary"]
        assert [note.split(":")[0] for note in notes] == ["[39 messages removed"]
        repo.append("user", "More.")
        append_steps(repo, 40, 6)
        end(repo)
        repo.compression.trim(10, partial=True)
        notes = [m.text for m in repo.compile().messages if m.kind == "summary"]
        assert notes[0].startswith("[41 messages removed: ran "), "the newest output stayed before"
        assert "Decided: We use SQLite instead of files, because it locks." in notes[0]
        assert "cd /work" not in notes[0]


def test_a_note_among_replaced_messages_counts_what_it_replaced() -> None:
    earlier = (
        "[12 messages removed: read a.py; ran make all, make doc and 3 more. trace expand 0a1b2c3d.0]\n"
        "Failed: E1\nDecided: We keep one index.\nConcluded: It is quick now."
    )
    with Repo.memory() as repo:
        repo.append("user", "Build it.")
        repo.append("user", earlier, kind="summary")
        for number in range(3):
            step(repo, number, "Bash", LONG, command="make all" if number else "make new")
        repo.append("assistant", "Done.")
        repo.append("user", "A summary of the earlier turns.", kind="summary")
        end(repo)
        repo.compression.trim(1, partial=True)
        notes = [m.text for m in repo.compile().messages if m.kind == "summary"]
    assert notes == [
        "[16 messages removed: read a.py; ran make all, make doc, make new and 3 more. trace expand 0a1b2c3d.0]\n"
        "Failed: E1\nDecided: We keep one index.\nConcluded: It is quick now.",
        "A summary of the earlier turns.",
    ]


def test_a_reference_of_an_earlier_trim_says_that_its_text_was_cut_now() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Read it.")
        for number in range(2):
            step(repo, number, "Read", LONG, file_path="/p/a.py")
        end(repo)
        repo.compression.dedupe()
        [first, second] = [m for m in repo.compile().messages if m.role == "tool"]
        address = second.address.short(8)
        assert f"[a.py was read again in {address}]" in shown(repo)
        done = repo.compression.trim(1_200)
        assert f"[a.py was read again in {address}, which is cut: trace expand {address}]" in shown(
            repo
        )
        assert {each.short() for each, _ in done.changes} >= {
            first.address.short(),
            second.address.short(),
        }
        assert done.after == repo.compile().token_count


def test_a_long_line_keeps_its_head_and_tail_beside_others() -> None:
    lines = [f"line {n} of a page that is not short" for n in range(40)]
    lines[3] = "The limits: " + "word " * 900 + "at most nine."
    cut = shortened("\n".join(lines), 100, "abc.0").splitlines()
    [long] = [line for line in cut if line.startswith("The limits: ")]
    assert long.endswith("at most nine.")
    [note] = [line for line in cut if "removed: trace expand" in line]
    assert " lines and " in note
    assert " characters removed: trace expand abc.0]" in note


def test_a_blank_line_between_kept_ones_is_no_gap() -> None:
    text = "\n\n".join(f"Paragraph {n} of a text." for n in range(60))
    cut = shortened(text, 60, "abc.0")
    assert "Paragraph 0 of a text.\n\nParagraph 1 of a text." in cut or "[…]" not in cut
    assert cut.count("removed: trace expand") == 1


def test_json_arguments_stay_json_when_they_are_cut_twice() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Write it.")
        step(repo, 1, "Write", "ok", file_path="/p/a.py", content=LONG * 4)
        append_steps(repo, 5, 3)
        end(repo)
        for target in (4_000, 700):
            repo.compression.trim(target, partial=True)
        parts = [part for m in repo.compile().messages for part in m.parts]
        for part in parts:
            if isinstance(part, ToolCall) and part.name == "Write":
                assert json.loads(part.arguments)["file_path"] == "/p/a.py"
