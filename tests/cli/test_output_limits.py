"""Output of reading commands: budgets, terminal width, scripts, missing objects."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.test_bad_input import refused
from tests.support.command_line import Run, Trace
from trace_cli.advice import INSTEAD
from trace_cli.commands import BY_NAME
from trace_cli.render import tables

LONG = " ".join(f"word{n}" for n in range(20)) + " needle" + " and more" * 100


def test_a_program_reads_more_of_the_log_than_a_terminal_shows(ok: Run) -> None:
    branch = "/".join(["a-branch-with-a-name-of-many-words"] * 3)
    ok("commit", "--user", LONG, "--branch", branch)
    (line,) = ok("log", branch).lines
    assert f"({branch}) user: {LONG[:200]}" in line
    assert len(line) < 600, "a message of any length makes a line that can be read"
    (cut,) = ok("log", branch, terminal=True).lines
    assert "needle" not in cut
    assert branch not in cut


def test_json_lists_the_messages_that_the_table_lists(ok: Run) -> None:
    for text in ("short", LONG, "medium words"):
        ok("commit", "--user", text)
    table = json.loads(ok("compile", "--json", "--largest", "2", "--heat").text)["messages"]
    rows = [line.split("\t") for line in ok("compile", "--plain", "--largest", "2").lines]
    assert [each["token_count"] for each in table] == [int(row[3]) for row in rows]
    assert len(table) == 2
    assert all(0 <= each["heat"] <= 1 for each in table)


@pytest.mark.parametrize("width", [1, 10, 33, 40, 60, 80, 200])
def test_no_row_is_wider_than_the_terminal(
    ok: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    ok("commit", "--user", LONG, "--assistant", "\u65e5\u672c " * 50, "-m", LONG)
    ok("pin", "HEAD.0")
    monkeypatch.setattr(tables, "terminal_width", lambda invocation: width)
    for words in (["log"], ["log", "--tokens"], ["compile", "--table"]):
        rows = ok(*words, terminal=True).lines
        assert len(rows) > 1
        rows = rows[:-1] if "--table" in words else rows
        assert max(map(tables.columns_of, rows)) <= width


def test_a_history_that_is_too_short(repository: Trace, ok: Run) -> None:
    ok("commit", "--user", "x")
    for words in (["show", "HEAD~13.0"], ["rev-parse", "HEAD~13.0"], ["rev-parse", "HEAD~13"]):
        refused(repository(*words), 4, "HEAD~13: commit", "has no parent")
    ok("update-ref", "refs/heads/v1.0", "HEAD")
    assert ok("rev-parse", "v1.0").text == ok("rev-parse", "HEAD").text
    assert ok("show", "v1.0").text.startswith("commit ")
    refused(repository("show", "HEAD.1"), 4, "adds 1 message, none numbered 1")


def test_a_context_over_its_budget(repository: Trace, ok: Run, tmp_path: Path) -> None:
    ok("commit", "--user", LONG)
    ok("config", "budget", "100")
    count = json.loads(ok("compile", "--json").out)["token_count"]
    said = f"note: the context is over its budget: {count:.1f}% of 100 tokens\n"
    for words in ([], ["-f", "openai"], ["--json"], ["--table"], ["--strategy", "messages"]):
        outcome = ok("compile", *words)
        assert outcome.out
        if "--strategy" not in words:
            assert outcome.err == said
        else:
            assert not outcome.err  # one line for each commit is within it
    refused(repository("compile", "--strict"), 15, f"{count:,} tokens", "100")
    refused(repository("compile", "--strict", "-o", "out"), 15)
    assert not (tmp_path / "out").exists()
    ok("config", "budget", "1m")
    assert ok("compile", "--strict").err == ""


def test_compile_writes_what_it_would_print(ok: Run, repository: Trace, tmp_path: Path) -> None:
    ok("commit", "--user", "x" * 200)
    for words in (["--table"], ["--json"], ["--json", "--table", "-f", "openai"], ["-f", "openai"]):
        assert ok("compile", *words, "-o", "out", terminal=True).out == b""
        assert (tmp_path / "out").read_bytes() == ok("compile", *words).out
    refused(repository("compile", "--table", "-f", "text"), 2, "--table", "--format")
    refused(repository("compile", "--table", "--format", "json"), 2)


def test_at_stands_for_one_revision(ok: Run, repository: Trace) -> None:
    ok("commit", "--user", "first")
    ok("commit", "--user", "second")
    ok("commit", "--user", "elsewhere", "--branch", "side")
    assert "second" not in ok("compile", "--at", "HEAD~1").text
    assert "second" not in ok("compile", "HEAD", "--at", "HEAD~1").text
    assert "elsewhere" in ok("compile", "side", "--at", "now").text
    refused(repository("compile", "side", "--at", "nowhere"), 4, "nowhere")
    assert "refs/heads/main" in ok("whohas", "second", "--at", "now").text
    refused(repository("whohas", "second", "--at", "HEAD~1"), 4, "second")


def test_groups_take_the_options_of_what_they_show(ok: Run, repository: Trace) -> None:
    ok("commit", "--user", "x")
    ok("tools", "set", "-", stdin=b'[{"name": "add", "parameters": {"type": "object"}}]')
    assert "tools: 1 schema\n" in ok("log").text.replace("  ", " ") + "\n"
    assert ok("tools", "--json").out == ok("tools", "show", "--json").out
    for number in (1, 2):
        ok("usage", "record", f'{{"input_tokens": {number}, "output_tokens": 1}}')
    assert ok("usage", "-n", "1").out == ok("usage", "show", "-n", "1").out
    assert len(ok("usage", "--json").lines) == 2
    refused(repository("usage", "--json", "show"), 2, "goes after show")
    refused(repository("tools", "--json", "show"), 2, "goes after show")


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_unknown_commands_are_answered_with_what_to_use(repository: Trace, name: str) -> None:
    outcome = repository(name, "-b", "x")
    refused(outcome, 2, f"no such command '{name}'")
    assert outcome.err.splitlines()[1] == f"hint: {INSTEAD[name]}"


def test_a_repository_that_is_read_only(
    repository: Trace, ok: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok("commit", "--user", "x", "-q")
    opened = os.open

    def refusing(path: str, flags: int, *mode: int) -> int:
        """Refuse root, too, as the system refuses others."""
        if flags & (os.O_WRONLY | os.O_RDWR) and tmp_path / ".trace" in Path(path).parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return opened(path, flags, *mode)

    monkeypatch.setattr(os, "open", refusing)
    for words in (("commit", "--user", "y"), ("commit", "--user", "y", "--result-json")):
        refused(repository(*words), 14, "cannot open .trace/journal/", "Permission denied")
    assert len(ok("log").lines) == 1
    assert ok("log", "--json").out.count(b'"commit"') == 1
    assert "x" in ok("compile").text.split()


def test_every_command_that_a_hint_names_exists() -> None:
    named = {name for hint in INSTEAD.values() for name in re.findall(r"`trace ([a-z-]+)", hint)}
    assert named <= set(BY_NAME)
    assert not set(INSTEAD) & set(BY_NAME)
