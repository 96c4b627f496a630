"""What sentences and tool calls say: words of the user, choices, names of commands, and how calls ended."""

from __future__ import annotations

import json

import pytest

from trace_store import Message, ToolCall, ToolResult
from trace_store.context.activity import action_of, answers_in, outcome_of
from trace_store.context.wording import is_choice, is_inserted, is_narration, own_words


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (
            "<current_time>9:00</current_time>\n\nFix it.\n<system_note>\nx\n</system_note>",
            "Fix it.",
        ),
        ("<task>\nFix it.\n</task>\n<environment_details>\nx\n</environment_details>", "Fix it."),
        ("<ide_opened_file>The user opened a.py</ide_opened_file>\nFix it.", "Fix it."),
        ("Fix this:\n<div>\n</div>", "Fix this:\n<div>\n</div>"),
        ("Is 1 <b>2</b>?", "Is 1 <b>2</b>?"),
        ("<hook_output>done</hook_output>", ""),
    ],
)
def test_the_words_of_the_user_stand_outside_the_blocks_of_programs(text: str, own: str) -> None:
    assert own_words(text) == own
    assert is_inserted(text) is (not own)


def test_an_open_tag_is_no_prompt_and_many_take_no_time() -> None:
    assert is_inserted("<INSTRUCTIONS>\nwithout an end")
    assert is_inserted("<a>" * 300_000)
    assert not is_inserted("<- see above")


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("Use SQLite instead of Redis.", True),
        ("I'll pull the count from the index instead of scanning it.", True),
        ("A new origin can return old ids instead of the new ones.", False),
        ("The parser returns None rather than an error.", False),
        ("[PR #3: Show failures instead of removals](https://example.org/3)", False),
        ("[P1] The cache is keyed by path rather than by id.", False),
    ],
)
def test_a_problem_or_a_title_is_no_choice(sentence: str, said: bool) -> None:
    assert is_choice(sentence) is said


def test_any_announcement_with_let_me_is_narration() -> None:
    assert is_narration("Let me record the link in the notes.")
    assert not is_narration("Let me know which one you want.")


@pytest.mark.parametrize(
    ("script", "paths", "subject"),
    [
        ('const p = "*** Begin Patch\\n*** Update File: /w/a.go\\n@@\\n"; tools.apply_patch(p);',
         ("/w/a.go",), "a.go"),
        ('const cmds = [["one","git status"],["two","git diff"]];\ntools.exec_command({cmd});', (),
         "git status; git diff"),
        ("const r = await tools.github_merge({number: 3});", (), "github_merge"),
    ],
)  # fmt: skip
def test_what_a_script_changes_runs_or_calls(
    script: str, paths: tuple[str, ...], subject: str
) -> None:
    action = action_of(ToolCall("1", "exec", script))
    assert action.paths == paths
    assert action.subject == subject


def test_a_command_is_named_by_what_comes_after_the_change_of_folder() -> None:
    def subject(command: str) -> str:
        return action_of(ToolCall("1", "Bash", json.dumps({"command": command}))).subject

    assert subject("cd /a/long/path && make test") == "make test"
    assert subject("cd /a && \\\n  make all") == "make all"
    assert subject("cd /a") == "cd /a"


@pytest.mark.parametrize(
    ("tool", "text", "failed"),
    [
        ("list_agents", '{"said": "it classifies exit status 1 plus empty output"}', False),
        ("Bash", "make: *** [all] Error 2\nexit status 2", True),
        ("Read", "The script ends.\nexit code 3\n", False),
        ("Read", "Wall time: 1 s\nProcess exited with code 1\nOutput:\n", True),
    ],
)
def test_an_exit_code_in_prose_is_none(tool: str, text: str, failed: bool) -> None:
    assert outcome_of(ToolResult("1", text), action_of(ToolCall("1", tool, "{}"))).failed is failed


def test_the_error_in_a_field_of_json_is_said_without_the_field() -> None:
    text = '[\n  {\n    "exit_code": 128,\n    "output": "fatal: no such ref: main\\n"\n  }\n]'
    action = action_of(ToolCall("1", "Bash", '{"command": "git merge main"}'))
    assert outcome_of(ToolResult("1", text), action).error == "fatal: no such ref: main"


def test_answers_to_questions_of_a_tool_come_with_the_question() -> None:
    ask = ToolCall("1", "ask_user", '{"question": "Keep it?"}')
    told = 'User has answered your questions: "A?"="B". '
    messages = [
        Message("assistant", [ask]),
        Message("tool", [ToolResult("1", "User selected: Yes")]),
        Message("assistant", [ToolCall("2", "AskUserQuestion", "{}")]),
        Message(
            "tool",
            [ToolResult("2", f"{told}You can now continue with the user's answers in mind.")],
        ),
    ]
    assert answers_in(messages) == {1: "Keep it? → Yes", 3: '"A?"="B".'}
