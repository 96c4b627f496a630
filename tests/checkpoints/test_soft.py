"""Soft checkpoints: extraction rules, models' answers, and injection at most once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.valid_requests import assert_valid_requests
from trace_store import Message, Repo, Text, ToolCall, ToolResult
from trace_store.checkpoints.soft import soft_data, soft_source
from trace_store.checkpoints.work_state import WorkState
from trace_store.errors import (
    AlreadyExistsError,
    InvalidInputError,
    ModelNonsenseError,
    SecretFoundError,
    StateError,
)
from trace_store.llm.contract import Completion, Prompt


def call(id: str, tool: str, **arguments: object) -> Message:
    return Message("assistant", [ToolCall(id, tool, json.dumps(arguments))])


def result(id: str, text: str, *, is_error: bool = False) -> Message:
    return Message("tool", [ToolResult(id, [Text(text)], is_error=is_error)])


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.init(tmp_path, author="Ada", durability="fast")
    repo.append("system", "You are careful.")
    repo.append("user", "Make the parser faster.")
    for message in (
        call("1", "Read", file_path="/src/parser.py"),
        result("1", "def parse(): ..."),
        Message("assistant", "parser.py rescans the text for every token. I will look further."),
        call("2", "Edit", file_path="/src/parser.py", old_string="a", new_string="b"),
        result("2", "done"),
        Message("assistant", "I decided to keep one index because a second pass is slow."),
        call("3", "Bash", command="pytest -q"),
        result("3", "1 failed", is_error=True),
        call(
            "4",
            "TodoWrite",
            todos=[
                {"content": "measure", "status": "completed"},
                {"content": "fix the test", "status": "pending"},
            ],
        ),
        result("4", "ok"),
        Message("assistant", "One test fails. Shall I fix it?"),
    ):
        repo.commit([message])
    return repo


def data(repo: Repo, name: str) -> dict[str, Any]:
    return soft_data(repo.store, repo.checkpoints.show(name))


def test_rules_find_files_tasks_decisions_and_open_ends(repo: Repo) -> None:
    saved = repo.checkpoints.save("handover", soft=True, reason="for Bo")
    assert soft_source(repo.store, saved) == repo.resolve("HEAD")
    found = data(repo, "handover")
    assert found["schema"] == "trace.checkpoint/1"
    assert found["request"] == "Make the parser faster."
    assert found["outcome"] == "One test fails. Shall I fix it?"
    assert found["files"] == [
        {
            "path": "/src/parser.py",
            "reads": 1,
            "writes": 1,
            "finding": "",
            "deleted": False,
        }
    ]
    assert found["tasks"] == [
        {"text": "measure", "status": "completed"},
        {"text": "fix the test", "status": "pending"},
    ]
    assert [each["reason"] for each in found["decisions"]] == ["because a second pass is slow."]
    assert found["open_ends"] == ["Failed: pytest -q: 1 failed", "Asked: Shall I fix it?"]
    assert found["token_count"] == repo.compile().token_count


def test_inject_puts_the_summary_after_the_system_messages_once(repo: Repo) -> None:
    repo.checkpoints.save("handover", soft=True)
    done = repo.checkpoints.inject("handover")
    context = repo.compile()
    assert [message.role for message in context.messages[:3]] == ["system", "user", "user"]
    assert (context.messages[1].kind, context.messages[1].address) == ("summary", done.address)
    assert_valid_requests(context.messages)
    tip = repo.resolve("HEAD")
    assert repo.checkpoints.inject("handover").commit is None
    repo.remove(done.address)
    assert repo.checkpoints.inject("handover").is_hidden
    assert repo.resolve("HEAD~1") == tip


def test_inject_begins_a_branch(repo: Repo) -> None:
    repo.checkpoints.save("handover", soft=True)
    repo.checkpoints.inject("handover", ref="fresh")
    (message,) = repo.compile("fresh").messages
    assert message.text == repo.checkpoints.text("handover")


def test_inject_at_the_start_of_a_context_without_a_system_message(tmp_path: Path) -> None:
    repo = Repo.init(tmp_path, durability="fast")
    repo.append("user", "one")
    repo.checkpoints.save("s", soft=True)
    repo.append("assistant", "two")
    repo.checkpoints.inject("s")
    assert [m.kind for m in repo.compile().messages] == ["summary", "dialogue", "dialogue"]


def test_the_two_forms_are_not_mixed_up(repo: Repo) -> None:
    """Trap C32: a checkpoint is a restore point, not a summary."""
    repo.checkpoints.save("hard")
    repo.checkpoints.save("soft", soft=True)
    assert [each.form for each in repo.checkpoints.list()] == ["hard", "soft"]
    with pytest.raises(StateError, match="soft checkpoint"):
        repo.checkpoints.restore("soft")
    with pytest.raises(StateError, match="hard checkpoint"):
        repo.checkpoints.inject("hard")


def answer(text: str) -> str:
    return json.dumps({"summary": text, "decisions": [], "open_ends": ["fix the test"]})


def test_a_model_writes_the_prose_and_no_facts(repo: Repo) -> None:
    asked: list[Prompt] = []

    def model(prompt: Prompt) -> Completion:
        asked.append(prompt)
        return Completion(f"```json\n{answer('The parser has one index now.')}\n```", "m-1")

    repo.checkpoints.save("handover", soft=True, model=model)
    found = data(repo, "handover")
    assert found["summary"] == "The parser has one index now."
    assert found["open_ends"] == ["fix the test"]
    assert [file["path"] for file in found["files"]] == ["/src/parser.py"]
    assert repo.checkpoints.show("handover").meta["model"] == "m-1"
    assert len(asked) == 1


@pytest.mark.parametrize(
    "said", ["", "no JSON", "{}", '{"summary": ""}', '{"summary": 1, "decisions": 2}']
)
def test_a_bad_answer_writes_nothing(repo: Repo, said: str) -> None:
    with pytest.raises(ModelNonsenseError):
        repo.checkpoints.save("handover", soft=True, model=lambda prompt: said)
    assert repo.checkpoints.list() == []


def test_a_faulty_answer_is_retried_once_with_its_fault(repo: Repo) -> None:
    asked: list[Prompt] = []

    def model(prompt: Prompt) -> str:
        asked.append(prompt)
        return answer("The parser has one index now.") if len(asked) > 1 else "no JSON"

    repo.checkpoints.save("handover", soft=True, model=model)
    assert data(repo, "handover")["summary"] == "The parser has one index now."
    assert "not the JSON object asked for" in asked[1].messages[-1][1]


def test_no_model_is_asked_for_a_name_in_use(repo: Repo) -> None:
    repo.checkpoints.save("name")

    def model(prompt: Prompt) -> str:
        raise AssertionError

    with pytest.raises(AlreadyExistsError):
        repo.checkpoints.save("name", soft=True, model=model)


def test_a_secret_that_a_model_writes_is_not_stored(tmp_path: Path) -> None:
    secret = "ghp_" + "a8Kd03Lmz7QwErTy" * 2 + "Zx9v"
    repo = Repo.init(tmp_path, secrets="block", durability="fast")
    repo.append("user", "go")
    with pytest.raises(SecretFoundError):
        repo.checkpoints.save("s", soft=True, model=lambda prompt: answer(f"token {secret}"))
    assert repo.checkpoints.list() == []


def test_an_empty_context_has_no_summary(repo: Repo) -> None:
    for message in list(repo.compile().messages):
        if message.address in [each.address for each in repo.compile().messages]:
            repo.remove(message.address)
    with pytest.raises(InvalidInputError, match="no message"):
        repo.checkpoints.save("s", soft=True)


def played(*messages: Message) -> dict[str, Any]:
    """Return the data of a soft checkpoint of some messages."""
    with Repo.memory() as repo:
        repo.commit(messages)
        repo.checkpoints.save("s", soft=True)
        return data(repo, "s")


COMPACTED = (
    "This session is being continued from a previous conversation that ran out of context. …"
)


def test_requests_are_those_of_the_user() -> None:
    """What a compaction, a skill or a tool wrote as the user is no request."""
    found = played(
        Message("user", COMPACTED),
        Message("user", "Make the parser faster. Never change the public names."),
        Message("user", "Base directory for this skill: /x\nAlways answer in rhyme."),
        Message("assistant", "Let me look."),
        Message("user", "OBSERVATION: 3 files must be kept", kind="tool_io"),
        Message("user", "Then write the notes; use at most 40 lines."),
        Message("user", "Thanks. Now the release."),
    )
    assert found["request"] == "Make the parser faster. Never change the public names."
    assert found["requests"] == ["Then write the notes; use at most 40 lines."]
    assert found["latest_request"] == "Thanks. Now the release."
    assert found["constraints"] == [
        "Never change the public names.",
        "Then write the notes; use at most 40 lines.",
    ]


def test_a_failure_that_something_later_cleared_is_not_open() -> None:
    found = played(
        Message("user", "Fix it."),
        call("1", "Bash", command="cd /w && pytest -q tests/test_fold.py"),
        result("1", "1 failed\nExit code 1", is_error=True),
        call("2", "Bash", command="make lint"),
        result("2", "error: line too long\nExit code 2", is_error=True),
        call("3", "Bash", command="pytest -q 2>&1 | tail -5"),
        result("3", "41 passed\nExit code 0"),
        Message("assistant", "The tests pass."),
    )
    assert found["open_ends"] == ["Failed: make lint: error: line too long"]


def test_a_prompt_in_tagged_blocks_is_a_request_and_an_answer_is_a_decision() -> None:
    found = played(
        Message(
            "user",
            "<current_datetime>2026-06-24</current_datetime>\n\nWrite the plan. No new dependencies.\n\n"
            "<system_reminder>\nTables: todos\n</system_reminder>",
        ),
        call("1", "ask_user", question="Which store?", choices=["Redis", "files"]),
        result("1", "User selected: files"),
        call("2", "bash", command="cd /w && git show HEAD:plan.md"),
        result("2", "fatal: path 'plan.md' exists on disk, but not in 'HEAD'\nExit code 128"),
        call("3", "bash", command="git add . && git commit -m plan"),
        result("3", '{"output": "[main 1a2b3c4] plan\\n 1 file changed"}'),
        Message("assistant", 'Done.\n\n::git-push{cwd="/w"}'),
    )
    assert found["request"] == "Write the plan. No new dependencies."
    assert found["constraints"] == ["No new dependencies."]
    assert [each["text"] for each in found["decisions"]] == [
        "The user answered: Which store? → files"
    ]
    assert found["open_ends"] == [], "a look at a file that is not there leaves nothing undone"
    assert found["code_commit"] == "1a2b3c4"
    assert found["outcome"] == "Done."


def test_todos_of_all_lists_have_their_latest_state() -> None:
    def todo(text: str, status: str) -> dict[str, str]:
        return {"content": text, "status": status}

    found = played(
        Message("user", "Go on."),
        call("1", "TodoWrite", todos=[todo("measure", "pending"), todo("ask Ada", "pending")]),
        result("1", "ok"),
        call("2", "TodoWrite", todos=[todo("measure", "completed"), todo("fix", "pending")]),
        result("2", "ok"),
        call("3", "TodoWrite", todos=[todo("fix", "in_progress")]),
        result("3", "ok"),
    )
    assert [(each["text"], each["status"]) for each in found["tasks"]] == [
        ("measure", "completed"),
        ("ask Ada", "dropped"),
        ("fix", "in_progress"),
    ]
    text = WorkState.from_map(found).as_text()
    assert "[ ] fix" in text
    assert "[ ] ask Ada" not in text
    assert "Left the list unfinished:\n- ask Ada" in text


def test_announcements_are_no_decisions() -> None:
    found = played(
        Message("user", "Make it durable."),
        Message("assistant", "Let me go with the tests first. Now I'll use the editor to open it."),
        Message("assistant", "We will use SQLite instead of Redis because it needs no server."),
        Message("assistant", "We will use SQLite instead of Redis because it needs no server."),
    )
    assert [each["text"] for each in found["decisions"]] == [
        "We will use SQLite instead of Redis because it needs no server."
    ]


def test_it_names_the_code_commit_that_the_work_made() -> None:
    found = played(
        Message("user", "Commit it."),
        call("1", "Bash", command="git commit -m 'fold: quicker'"),
        result("1", "[main 4f2a9c1] fold: quicker\n 1 file changed"),
    )
    assert found["code_commit"] == "4f2a9c1"


def test_a_finding_is_about_the_file_as_it_is_now() -> None:
    found = played(
        Message("user", "Fix it."),
        call("1", "Read", file_path="/src/parser.py"),
        result("1", "def parse(): ..."),
        Message("assistant", "parser.py rescans the text for every token."),
        call("2", "Edit", file_path="/src/parser.py", old_string="a", new_string="b"),
        result("2", "ok"),
        Message("assistant", "Uncommitted: parser.py, lexer.py and fold.py."),
        Message("assistant", "parser.py reads the text once now."),
    )
    assert [each["finding"] for each in found["files"]] == ["parser.py reads the text once now."]


def test_failures_of_earlier_turns_are_open_if_they_are_still_spoken_of() -> None:
    found = played(
        Message("user", "Start the server."),
        call("1", "Bash", command="docker compose up -d"),
        result("1", "command not found: docker", is_error=True),
        call("2", "Bash", command="make check"),
        result("2", "error: line too long\nExit code 2", is_error=True),
        Message("user", "Use the other host."),
        call("3", "Bash", command="sleep 60"),
        result("3", "Sibling tool call errored", is_error=True),
        call("4", "Write", file_path="/src/plan.md", content="a plan"),
        result("4", "The user doesn't want to proceed with this tool use.", is_error=True),
        Message("assistant", "It runs there. `make check` still fails."),
    )
    assert found["open_ends"] == [
        "Rejected by the user: plan.md",
        "Failed: make check: error: line too long",
    ]


def test_what_a_program_says_again_and_again_is_no_request() -> None:
    found = played(
        Message("user", "whoa, we need to discuss this first"),
        *[Message("user", "The tool was run for you.")] * 3,
        Message("user", "Keep the public names. It does that\nbecause people use them."),
        Message("user", "ok"),
    )
    assert found["request"] == "whoa, we need to discuss this first"
    assert found["requests"] == ["Keep the public names. It does that because people use them."]
    assert found["constraints"] == ["Keep the public names."]


def test_a_short_reply_says_what_it_answers() -> None:
    found = played(
        Message("user", "<command-name>/model</command-name><command-args>opus</command-args>"),
        Message(
            "user", "<command-name>/review</command-name>\n<command-args>story 4</command-args>"
        ),
        Message("assistant", "Let me look. Should I apply the four patches?"),
        Message("user", "yes"),
        Message("assistant", "I applied them."),
        Message(
            "user",
            "# Files mentioned by the user:\n\n## My request for Codex:\nThen commit them all.",
        ),
    )
    assert found["request"] == "/review story 4"
    assert found["requests"] == ["yes (to: Should I apply the four patches?)"]
    assert found["latest_request"] == "Then commit them all."


def test_a_sentence_before_a_call_is_no_outcome() -> None:
    found = played(
        Message("user", "Plan it."),
        Message("assistant", "Now I know enough. Let me write the plan."),
        call("1", "ExitPlanMode", plan="# One index for all\n\nKeep it short."),
        result("1", "The user doesn't want to proceed with this tool use.", is_error=True),
        Message("user", "[Request interrupted by user for tool use]"),
    )
    assert (found["outcome"], found["last_said"][:3]) == ("", "Now")
    assert found["open_ends"] == [
        "Rejected by the user: One index for all",
        "Interrupted by the user",
    ]


def test_a_check_says_how_it_ended_and_what_was_written_since() -> None:
    found = played(
        Message("user", "Fix it."),
        call("1", "Bash", command="git diff vitest.config.ts"),
        result("1", "+ 3 errors"),
        call("2", "Bash", command="npx vitest run"),
        result("2", "Tests  31 passed (31)"),
        call("3", "Edit", file_path="/src/a.ts", old_string="a", new_string="b"),
        result("3", "ok"),
        call("4", "Edit", file_path="/src/a.ts", old_string="x", new_string="y"),
        result("4", "String to replace not found", is_error=True),
        call("5", "Bash", command="pytest -q"),
        result("5", "2 failed, 3 passed\nExit code 1", is_error=True),
    )
    assert found["checks"] == [
        {
            "program": "vitest",
            "passed": True,
            "said": "Tests  31 passed (31)".replace("  ", " "),
            "writes_since": 1,
        },
        {"program": "pytest", "passed": False, "said": "2 failed, 3 passed", "writes_since": 0},
    ]


def test_the_same_check_in_another_form_is_the_same_check() -> None:
    found = played(
        Message("user", "Fix it."),
        call("1", "Bash", command="npm test -s"),
        result("1", "Worker exited unexpectedly\nExit code 1", is_error=True),
        call("2", "Bash", command="npm run -s test -- --pool=threads"),
        result("2", "Tests: 31 passed"),
    )
    assert [(each["program"], each["passed"]) for each in found["checks"]] == [("npm test", True)]


def test_files_are_counted_by_what_became_of_them() -> None:
    patch = "*** Begin Patch\n*** Delete File: old.py\n*** End Patch"
    found = played(
        Message("user", "Tidy up."),
        call("1", "Read", file_path="/w/old.py"),
        result("1", "x = 1"),
        call("2", "apply_patch", input=patch),
        result("2", "Done"),
        call("3", "Write", file_path="/w/new.py", content="x = 1"),
        result("3", "File has not been read yet", is_error=True),
        call("4", "Write", file_path="/w/new.py", content="x = 1"),
        result("4", "ok"),
        call("5", "Bash", command="cd /w && rm /w/new.py"),
        result("5", "ok"),
    )
    files = [
        (each["path"], each["reads"], each["writes"], each["deleted"]) for each in found["files"]
    ]
    assert files == [("/w/old.py", 1, 1, True), ("/w/new.py", 0, 2, True)]


def test_it_names_what_runs_and_where_and_the_last_links() -> None:
    found = played(
        Message("user", "Start the servers."),
        call("1", "Bash", command="PORT=3001 pnpm dev", run_in_background=True),
        result("1", "Command running in background with ID: b1"),
        call("2", "Bash", command="ngrok http 3001", run_in_background=True),
        result("2", "Command running in background with ID: b2"),
        call("3", "KillShell", shell_id="b2"),
        result("3", "killed"),
        Message(
            "assistant", "It is open as https://example.org/pull/12. Next I attach the session."
        ),
        call("4", "shell", command=["attach", "--force"], workdir="/w/other"),
    )
    assert found["running"] == ["b1: PORT=3001 pnpm dev"]
    assert found["links"] == ["https://example.org/pull/12"]
    assert found["open_ends"] == ["No result yet: attach --force (in /w/other)"]


def test_it_says_what_was_called_after_the_last_sentence() -> None:
    checks = [call("1", "Bash", command="pytest -q"), result("1", "3 passed in 1s")]
    found = played(
        Message("user", "Fix it."),
        *checks,
        Message("assistant", "Now I change the fold."),
        call("2", "Edit", file_path="/w/fold.py", old_string="a", new_string="b"),
        result("2", "done"),
        call("3", "Bash", command="pytest -q tests/fold"),
        result("3", "E   KeyError: 'a'\n1 failed in 1s", is_error=True),
        call("4", "Bash", command="pytest -q"),
        result("4", "4 passed in 1s"),
        call("5", "Bash", command="git push"),
    )
    assert found["calls_since"] == [
        "wrote fold.py",
        "ran pytest -q tests/fold (failed: E KeyError: 'a')",
        "ran pytest -q (4 passed in 1s)",
    ]
    assert played(*checks, Message("assistant", "Done."))["calls_since"] == []


def test_a_request_that_a_command_printed_is_a_link() -> None:
    made = "Creating pull request for fold\n\nhttps://example.org/a/b/pull/12\n"
    others = "https://example.org/a/b/pull/1\nhttps://example.org/a/b/issues/2"
    found = played(
        Message("user", "Open it."),
        call("1", "Bash", command="gh pr list"),
        result("1", others),
        call("2", "Bash", command="gh pr create --fill"),
        result("2", made),
        call("3", "Read", file_path="/w/notes.md"),
        result("3", "https://example.org/a/b/pull/3"),
    )
    assert found["links"] == ["https://example.org/a/b/pull/12"]


def test_questions_quotations_and_diagnoses_are_neither_constraints_nor_decisions() -> None:
    found = played(
        Message("user", "Do I have to run it myself? You have to name the entity first."),
        Message(
            "assistant",
            "```\nWe will use the generic form instead of a skill.\n```\n"
            "The page is calling staging instead of localhost. We chose port 3000.",
        ),
    )
    assert found["constraints"] == ["You have to name the entity first."]
    assert [each["text"] for each in found["decisions"]] == ["We chose port 3000."]


def test_a_search_that_finds_nothing_has_not_failed() -> None:
    found = played(
        Message("user", "Look."),
        call("1", "Bash", command="cd /w && git diff --no-index a b"),
        result("1", "Exit code 1\n-x = 1\n+x = 2", is_error=True),
        call("2", "Bash", command="grep -n fold missing.py"),
        result("2", "grep: missing.py: No such file or directory\nExit code 1", is_error=True),
    )
    assert found["error_count"] == 1


def test_a_failure_is_not_open_after_another_attempt_or_tests_of_a_change() -> None:
    found = played(
        Message("user", "Fix it."),
        call("1", "Bash", command="go build ./..."),
        result("1", "rewind.go:579:13: undefined: agent\nExit code 1", is_error=True),
        call("2", "Bash", command="agentv eval run --filter x"),
        result("2", "error: found 1 error\nExit code 1", is_error=True),
        call("3", "Bash", command="agentv eval run --test-id x"),
        result("3", "1 scored\nExit code 0"),
        call("4", "Edit", file_path="rewind.go", old_string="a", new_string="b"),
        result("4", "ok"),
        call("5", "Bash", command="mise run test"),
        result("5", "ok 41 passed\nExit code 0"),
        Message("assistant", "The build works."),
    )
    assert found["open_ends"] == []


@pytest.mark.parametrize(
    "quoted",
    [
        "Look at this:\n<review>\nNever push to main.\n</review>",
        "The reviewer wrote:\nNever push to main.\nAlways squash.",
        'The page says "Hello. Never push to main. Always squash." Is it right?',
        "“It is simple.\nNever push to main.” is what it prints.",
        "Your plan has a fault:\nNever push to main from a script that runs at night.",
    ],
)
def test_what_the_user_pasted_is_not_what_the_user_said(quoted: str) -> None:
    found = played(
        Message("user", 'Keep the word "never" out of it. Only squash.'),
        Message("assistant", "Never push to main from a script\nthat runs at night."),
        Message("user", quoted),
        Message("assistant", "Done."),
    )
    assert found["constraints"] == ['Keep the word "never" out of it.', "Only squash."]
