"""Options of porcelain reach the library, and scripts can parse the output."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Outcome, Run, Trace
from trace_store.base.environment import Environment
from trace_store.base.oid import ObjectId
from trace_store.objects.commit import Commit, Operation


def record(outcome: Outcome) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(outcome.out)
    return value


def head(ok: Run) -> str:
    return ok("rev-parse", "HEAD").text.strip()


def messages(ok: Run) -> list[tuple[str, str]]:
    document = record(ok("compile", "--format", "json"))
    return [(m["role"], m["parts"][0].get("text", "")) for m in document["messages"]]


def test_init_says_where(trace: Trace, tmp_path: Path) -> None:
    assert trace("init").text == f"created an empty repository in {tmp_path / '.trace'}\n"
    again = trace("init")
    assert (again.code, again.err.splitlines()[0]) == (
        5,
        f"trace: error: there is already a repository at {tmp_path / '.trace'}",
    )
    assert record(trace("init", "--json", "other"))["directory"] == str(
        tmp_path / "other" / ".trace"
    )


def test_commit_takes_roles_in_the_order_given(ok: Run) -> None:
    words = ["--user", "one", "--system", "two", "--assistant", "three", "--user", "four"]
    said = ok("commit", *words, "-m", "four of them").text
    assert said == f"{head(ok)} 4 messages\n"
    assert messages(ok) == [
        ("user", "one"),
        ("system", "two"),
        ("assistant", "three"),
        ("user", "four"),
    ]
    assert record(ok("log", "--json"))["message"] == "four of them"


@pytest.mark.parametrize(
    ("words", "stdin", "expected"),
    [
        (["hello"], b"", ("user", "hello")),
        (["hello", "--role", "assistant"], b"", ("assistant", "hello")),
        (["-"], b"from stdin\n", ("user", "from stdin")),
        ([], b"from stdin", ("user", "from stdin")),
        (
            ["-F", "-", "--role", "system"],
            b"\xef\xbb\xbfwith a mark\r\n",
            ("system", "with a mark"),
        ),
        (["-F", "file.txt"], b"", ("user", "in a file\nof two lines")),
        (["--", "--user"], b"", ("user", "--user")),
    ],
)
def test_commit_takes_text_from_anywhere(
    ok: Run, tmp_path: Path, words: list[str], stdin: bytes, expected: tuple[str, str]
) -> None:
    (tmp_path / "file.txt").write_text("in a file\nof two lines\n", encoding="utf-8")
    ok("commit", *words, stdin=stdin)
    assert messages(ok) == [expected]


def test_commit_takes_json_and_lines(ok: Run, tmp_path: Path) -> None:
    ok("commit", "--json", stdin=b'{"role": "user", "content": "one"}')
    ok(
        "commit",
        "--json",
        stdin=b'[{"role": "user", "content": [{"type": "text", "text": "two"}]}]',
    )
    (tmp_path / "m.jsonl").write_text(
        '{"role": "user", "content": "three"}\n\n{"role": "assistant", "content": "four"}\n'
    )
    result = record(ok("commit", "--jsonl", "-F", "m.jsonl", "--result-json"))
    assert result["message_count"] == 2
    assert result["addresses"] == [f"{result['commit'][:32]}.{n}" for n in (0, 1)]
    assert [text for _, text in messages(ok)] == ["one", "two", "three", "four"]


def test_commit_pairs_a_tool_result(ok: Run) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    ok("commit", "--json", stdin=json.dumps({"role": "assistant", "tool_calls": [call]}).encode())
    ok("commit", "--tool", "3", "--call-id", "c1")
    request = record(ok("compile", "--format", "openai", "--strict"))
    assert request["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "3"}


def test_commit_to_another_branch_leaves_head(ok: Run) -> None:
    ok("commit", "--user", "here")
    before = head(ok)
    ok("commit", "--user", "there", "--branch", "side")
    assert head(ok) == before
    assert ok("rev-list", "--count", "side").text == "1\n"


def test_sealing_is_left_for_later_when_asked(ok: Run) -> None:
    assert ok("commit", "--user", "x", "-q", "--no-seal") == (0, b"", "")
    assert record(ok("status", "--json"))["unsealed_transactions"] == 1
    assert ok("commit", "--user", "y", "-q") == (0, b"", "")
    assert record(ok("status", "--json"))["unsealed_transactions"] == 0


def test_tokens_are_told_on_a_terminal(ok: Run) -> None:
    said = ok("commit", "--user", "hello world", terminal=True).text
    assert "1 message, +" in said
    assert "tokens: the context has" in said


def test_who_stands_on_an_empty_branch_is_told_of_the_others(ok: Run, trace: Trace) -> None:
    """As in a clone: git carries the branches, and not where HEAD is."""
    assert trace("log").err.endswith("creates the first commit\n")
    ok("commit", "--branch", "sessions/a", "--user", "hello")
    goes = "`trace switch sessions/a` goes to"
    assert ok("status").lines[1:] == [f"worked on last: sessions/a; {goes} it"]
    outcome = trace("log")
    assert outcome.code == 6
    assert outcome.err.splitlines()[1] == f"hint: {goes} the branch worked on last"
    ok("commit", "--branch", "sessions/b", "--user", "hello")
    ok("commit", "--branch", "sessions/a/agents/1", "--user", "a subagent ends later")
    goes = "`trace switch sessions/b` goes to"
    assert ok("status").lines[1:] == [
        f"worked on last: sessions/b; {goes} it",
        "3 branches; `trace branch` lists them",
    ]
    assert f"{goes} the branch worked on last" in trace("log").err
    assert trace("log").err.endswith("lists all branches\n")
    traces = b"".join(
        b'{"version": "0.1.0", "id": "%d", "timestamp": "2036-01-25T10:00:00Z", "files": []}\n' % n
        for n in range(2)
    )
    ok("import", "--format", "agent-trace", "-", stdin=traces)
    assert f"{goes} the branch worked on last" in trace("log").err
    ok("switch", "sessions/a")
    assert len(ok("log").lines) == 1


@pytest.mark.parametrize("count", [2, 40])
def test_a_clone_continues_the_branch_that_travelled(ok: Run, count: int) -> None:
    for number in range(count - 2):  # so many that a summary of them is saved
        ok("commit", "--branch", f"sessions/0{number}", "--user", "hello", "-q")
    for name in ("sessions/a", "sessions/b"):
        ok("commit", "--branch", name, "--user", "hello", "-q")
    for name in ("HEAD", "local", "journal", "logs", "index", "cache"):  # what git does not carry
        shutil.rmtree(f".trace/{name}", ignore_errors=True)
    assert ok("status").lines[0].startswith("on branch sessions/b at ")
    ok("commit", "--user", "more", "-q")
    assert len(ok("log").lines) == 2
    assert [line.split()[0] for line in ok("branch").lines][-2:] == ["sessions/a", "*"]


def test_a_clone_names_the_branch_worked_on_last_until_one_is_chosen(ok: Run) -> None:
    ok("commit", "--user", "old", "-q")
    ok("commit", "--branch", "idea", "--user", "newer", "-q")
    assert "worked on last" not in ok("status").text
    for name in ("local", "journal", "logs", "index", "cache"):  # what git does not carry
        shutil.rmtree(f".trace/{name}", ignore_errors=True)
    assert "worked on last: idea; `trace switch idea` goes to it" in ok("status").lines
    assert record(ok("status", "--json"))["newest_branch"] == "refs/heads/idea"
    ok("switch", "-q", "idea")
    assert "worked on last" not in ok("status").text
    assert record(ok("status", "--json"))["newest_branch"] is None


def test_status_says_it_all(ok: Run) -> None:
    assert ok("status").text == "on branch main, no commit yet\n"
    ok("commit", "--user", "hello")
    ok("config", "budget", "2k")
    found = record(ok("status", "--json"))
    assert found["branch"] == "main"
    assert found["commit"] == head(ok)
    assert found["message_count"] == 1
    assert found["budget"] == 2000
    assert found["share"] == found["token_count"] / 2000
    assert found["token_source"] == "estimate:o200k_base"
    assert found["text_token_source"] == "exact:o200k_base"
    lines = ok("status").lines
    assert lines[0].startswith(f"on branch main at {head(ok)[:12]}")
    counts = found["token_count"], found["text_token_count"]
    said = "{} tokens, {} of them text (exact:o200k_base)".format(*counts)
    assert lines[2] == f"context: 1 message, {said}"
    assert lines[3].endswith("of 2,000 tokens")
    assert len(lines) == 4


def test_status_shows_what_is_unsealed_and_diverged(ok: Run, tmp_path: Path) -> None:
    ok("commit", "--user", "one")
    ok("commit", "--user", "two", "--no-seal")
    assert "unsealed: 1 change" in ok("status").text
    ok("seal")
    other = ok("write-commit", stdin=b'{"author": "Bob", "time": 1}').text.strip()
    # What git leaves when two people moved the branch: a second tip.
    (tmp_path / ".trace" / "refs" / "heads" / "main" / other).write_bytes(b"")
    outcome = ok("status")
    [line] = [each for each in outcome.lines if each.startswith("diverged: ")]
    assert line.startswith("diverged: refs/heads/main has 2 tips: ")
    assert line.endswith("; `trace merge` joins them")
    assert outcome.err == "note: git added another tip of refs/heads/main\n"
    assert ok("status").err == ""  # once for each move
    assert len(record(ok("status", "--json"))["diverged"]["refs/heads/main"]) == 2
    ok("switch", "-q", "-c", "idea")
    assert ok("status").text.count("; `trace switch main`, then `trace merge` joins them\n") == 1


def test_log_is_one_line_a_commit(ok: Run) -> None:
    ok("commit", "--user", "first\nof two lines", "--assistant", "answer")
    ok("commit", "--user", "third", "-m", "said so\nand more")
    assert [line.split("  ", 2)[2] for line in ok("log").lines] == [
        "+1  (HEAD -> main) said so",
        "+2  user: first of two lines (+1)",
    ]
    assert len(ok("log", "-n", "1").lines) == 1
    assert ok("log", "-n", "0").text == ""
    assert [r["message_count"] for r in map(json.loads, ok("log", "--json").lines)] == [1, 2]
    full = ok("log", "--full").text
    assert "Author:   Ada" in full
    assert "    and more" in full
    assert ok("log", "HEAD~1..HEAD").lines == ok("log", "-n", "1").lines


def test_log_tokens_add_up(ok: Run) -> None:
    for text in ("one", "two and more", "three"):
        ok("commit", "--user", text)
    found = [json.loads(line) for line in ok("log", "--tokens", "--json").lines]
    total = record(ok("compile", "--json"))["token_count"]
    assert found[0]["token_count"] == total
    assert sum(each["tokens_added"] for each in found) == total
    assert "+" in ok("log", "--tokens").lines[0]


def test_changes_of_messages(ok: Run) -> None:
    ok("commit", "--user", "one", "--assistant", "two", "--user", "three")
    first = head(ok)
    said = ok("pin", f"{first}.0").text
    assert said.startswith(head(ok))
    assert said.endswith(f"pinned: {first[:8]}.0\n")
    ok("important", f"{first}.1", "--keep", "tw")
    ok("label", f"{first}.1", "--add", "decision", "--add", "later")
    ok("label", f"{first}.1", "--take", "later")
    table = record(ok("compile", "--json", "--table"))["messages"]
    assert [m["priority"] for m in table] == ["pinned", "important", "normal"]
    assert table[1]["labels"] == ["decision"]
    ok("normal", f"{first}.0", f"{first}.1")
    ok("skip", f"{first}.2")
    assert messages(ok) == [("user", "one"), ("assistant", "two")]
    assert f"`trace normal {first}.2`" in ok("restore", f"{first}.2").err
    ok("remove", f"{first}.0", "--ghost")
    assert messages(ok)[0][1].startswith("[removed: ")
    ok("restore", f"{first}.0")
    ok("edit", f"{first}.0", "uno", "-m", "in Spanish")
    assert messages(ok)[0] == ("user", "uno")
    shown = record(ok("show", "--versions", "--json", f"{first}.0"))
    assert [w[0]["text"] for w in shown["wordings"]] == ["one", "uno"]
    assert (shown["version"], shown["version_count"]) == (1, 2)
    ok("restore", f"{first}.0", "--version", "0")
    assert messages(ok)[0] == ("user", "one")
    assert "2 versions; current: 0" in ok("show", f"{first}.0").text
    assert ok("show", f"{first}.0", "--in", f"{first}").lines[0].endswith("dialogue")


def test_show_knows_what_it_is_given(ok: Run) -> None:
    ok("commit", "--user", "hello\x1b[31m", "-m", "greeting")
    oid = head(ok)
    blob = ok("ls-context").text.split()[-1]
    assert "hello\\x1b[31m" in ok("show").text
    assert ok("show", "HEAD.0").lines[1] == "    hello\\x1b[31m"
    assert ok("show", blob).text == "hello\\x1b[31m\n"
    assert ok("show", "--raw", blob).out == b"hello\x1b[31m"
    assert ok("show", "--raw", "HEAD.0").out == b"hello\x1b[31m"
    shown = record(ok("show", "--json"))
    assert shown["commit"] == oid
    assert shown["messages"][0]["parts"] == [{"type": "text", "text": "hello\x1b[31m"}]
    assert record(ok("show", "--json", blob)) == {
        "object": blob,
        "kind": "blob",
        "size": 10,
        "text": "hello\x1b[31m",
    }
    assert record(ok("show", "--json", "HEAD.0"))["address"] == f"{oid[:32]}.0"


def test_show_takes_several(ok: Run) -> None:
    ok("commit", "--user", "one")
    ok("commit", "--user", "two")
    both = ok("show", "HEAD", "HEAD~1.0").lines
    assert both.index("    two") < both.index("    one")
    records = map(json.loads, ok("show", "--json", "HEAD", "HEAD~1").lines)
    assert [each["message_count"] for each in records] == [1, 1]
    assert ok("show", "--raw", "HEAD.0", "HEAD~1.0").out == b"twoone"


def test_compile_has_formats_and_moments(ok: Run, tmp_path: Path) -> None:
    ok("commit", "--system", "Be brief.", "--user", "Hi")
    ok("commit", "--assistant", "Hello")
    assert record(ok("compile", "-f", "openai"))["messages"][0]["role"] == "system"
    assert record(ok("compile", "-f", "anthropic"))["system"]
    assert "Hello" in ok("compile").text
    assert "Hello" not in ok("compile", "HEAD~1").text
    assert "Hello" not in ok("compile", "--at", "HEAD~1").text
    assert "Hello" in ok("compile", "--at", "now").text
    ok("compile", "-o", "out.json", "-f", "openai")
    assert json.loads((tmp_path / "out.json").read_bytes())["messages"]
    assert "same as a fresh context" in ok("compile", "--verify").err
    lines = record(ok("compile", "-f", "json", "--strategy", "messages"))["messages"]
    assert len(lines) == 2
    summary = record(ok("compile", "--json"))
    assert summary["message_count"] == 3
    assert summary["prefix_hash"] == ok("compile-index").lines[0].split()[-1]
    table = ok("compile", "--table").lines
    assert table[0].split() == ["address", "role", "kind", "tokens", "share", "marks", "text"]
    assert table[-1].startswith(f"3 messages, {summary['token_count']} tokens")


def test_compile_round_trips_json(ok: Run) -> None:
    parts = [
        {"type": "reasoning", "text": "hm", "signature": "c2ln"},
        {"type": "tool_call", "id": "c1", "name": "add", "arguments": '{"a":  1}'},
        {"type": "opaque", "provider": "x", "data": "AP8="},
    ]
    given = {"role": "assistant", "kind": "tool_io", "model": "m", "id": "msg_1", "parts": parts}
    ok("commit", "--json", stdin=json.dumps(given).encode())
    found = record(ok("compile", "-f", "json"))["messages"][0]
    assert {key: found[key] for key in given} == given
    hidden = record(ok("compile", "-f", "json", "--no-reasoning"))["messages"][0]
    assert [part["type"] for part in hidden["parts"]] == ["tool_call", "opaque"]


def test_repairs_are_told_and_strict_refuses(ok: Run, repository: Trace) -> None:
    ok("commit", "--tool", "answer", "--call-id", "c9", "--user", "and?")
    outcome = ok("compile", "-f", "openai")
    assert outcome.err.startswith(f"note: {head(ok)[:12]}.0: ")
    strict = repository("compile", "-f", "openai", "--strict")
    assert strict.code == 7
    assert not strict.out
    assert f"{head(ok)[:12]}.0" in strict.err


def test_tools(ok: Run, tmp_path: Path) -> None:
    ok("commit", "--user", "hi")
    schemas = [
        {"name": "add", "description": "Adds", "parameters": {"type": "object", "properties": {}}},
        {"type": "function", "function": {"name": "sub", "parameters": {"type": "object"}}},
    ]
    ok("tools", "set", "-", stdin=json.dumps(schemas).encode())
    assert record(ok("tools", "show", "--json"))["tools"] == schemas
    assert [line.split()[0] for line in ok("tools").lines] == ["tool", "add", "sub"]
    assert len(record(ok("compile", "-f", "openai"))["tools"]) == 2
    ok("tools", "set", "-", stdin=b"[]")
    assert ok("tools", "show").err == "no tools are set\n"


def test_usage(ok: Run) -> None:
    ok("commit", "--user", "hi")
    about = head(ok)
    report = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3}
    ok("usage", "record", json.dumps(report), "--model", "claude-x")
    ok(
        "usage",
        "record",
        stdin=b'{"usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}}',
    )
    found = [json.loads(line) for line in ok("usage", "show", "--json").lines]
    assert [each["input_total"] for each in found] == [7, 15]
    assert found[1]["about"] == about
    assert found[1]["model"] == "claude-x"
    assert len(ok("usage").lines) == 3
    assert len(ok("usage", "show", "-n", "1").lines) == 2


def test_config(ok: Run, repository: Trace) -> None:
    assert "default_branch = main" in ok("config").lines
    ok("config", "budget", "200k")
    assert ok("config", "budget").text == "200000\n"
    assert record(ok("config", "--json"))["budget"] == 200_000
    ok("config", "--unset", "budget")
    assert ok("config", "budget").text == ""
    assert repository("config", "nothing").code == 4
    assert repository("config", "nothing", "x").code == 2
    assert repository("config", "budget", "-3k").code == 2
    assert repository("config", "tokenizer", "nothing").code == 2
    ok("config", "tokenizer", "cl100k_base")
    assert record(ok("status", "--json"))["text_token_source"] == "exact:cl100k_base"
    assert repository("config", "--unset").code == 2


def test_upkeep(ok: Run) -> None:
    ok("commit", "--user", "hi", "--no-seal")
    assert ok("seal").text.startswith("sealed 1 change, 2 objects")
    assert ok("seal").err == "everything is sealed\n"
    ok("hash-object", "-w", "--stdin", stdin=b"loose")
    assert ok("pack").text.startswith("packed 3 objects in 1 pack")
    assert ok("pack").err == "nothing to pack\n"
    assert record(ok("pack", "--json"))["kept"] == []
    outcome = ok("fsck")
    assert (outcome.out, outcome.err) == (b"", "no problems found\n")


def test_fsck_reports_damage_with_12(ok: Run, repository: Trace, tmp_path: Path) -> None:
    ok("hash-object", "-w", "--stdin", stdin=b"precious")
    path = next(p for p in (tmp_path / ".trace" / "objects").rglob("*") if p.is_file())
    path.chmod(0o644)
    path.write_bytes(b"\xff" * 20)
    outcome = repository("fsck")
    assert outcome.code == 12
    assert outcome.lines[0].startswith("error ")
    found = [json.loads(line) for line in repository("fsck", "--json").lines]
    assert found[0]["severity"] == "error"
    assert set(found[0]) == {"severity", "code", "what", "detail"}


def test_fsck_finds_a_context_that_cannot_be_folded(ok: Run, repository: Trace) -> None:
    ok("commit", "--user", "hello")
    first = head(ok)
    parent = ObjectId.parse(first)
    wrong = Commit([parent], "Ada", 1, [Operation("move", {"targets": [[parent[:16], 5]]})])
    oid = ok("hash-object", "-w", "-t", "commit", "--stdin", stdin=wrong.encode()).text.strip()
    ok("update-ref", "refs/heads/main", oid)
    found = [json.loads(line) for line in repository("fsck", "--json").lines]
    assert [(each["code"], each["what"]) for each in found] == [
        ("context-unreadable", "refs/heads/main")
    ]


def test_colour_is_for_terminals(ok: Run, repository: Trace) -> None:
    ok("commit", "--user", "hi")
    assert "\x1b" not in ok("log").text
    assert "\x1b" not in ok("log", terminal=True).text  # the environment says nothing about colour
    coloured = Environment(author="Ada", discovery=False, color=True)
    assert "\x1b[33m" in repository("log", terminal=True, environment=coloured).text
    assert "\x1b" not in repository("--no-color", "log", terminal=True, environment=coloured).text
    assert "\x1b" not in repository("log", environment=coloured).text


def test_a_terminal_is_shown_no_control_characters(ok: Run, repository: Trace) -> None:
    evil = "a\x1b]52;c;eA==\x07b\u202ec\x9b1m"
    ok("commit", "--user", evil, "-m", evil)
    ok("label", "HEAD.0", "--add", "x\u202ey")
    forbidden = set("\x1b\x07\u202e\x9b")
    commands = [
        ["log"],
        ["log", "--full"],
        ["log", "--json"],
        ["show"],
        ["show", "HEAD~1.0"],
        ["show", "HEAD~1.0", "--json"],
        ["status"],
        ["compile"],
        ["compile", "--table"],
        *(["compile", "-f", form] for form in ("openai", "anthropic", "json")),
        ["cat-file", "-p", "HEAD"],
        ["cat-file", "-p", ok("ls-context").text.split()[-1]],
    ]
    for words in commands:
        outcome = ok(*words, terminal=True)
        assert not forbidden & set(outcome.text), words
        assert not forbidden & set(outcome.err), words
    for words in (["show", "--raw", "HEAD~1.0"], ["cat-file", "--raw", "HEAD"]):
        assert repository(*words, terminal=True).code == 2
