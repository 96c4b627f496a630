"""Output and exit codes of `trace trash`."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.command_line import Run, Trace


@pytest.fixture
def filled(ok: Run) -> Run:
    """Run commands where two messages are removed, and a branch and a tag deleted."""
    for text in ("first words", "second words", "third words"):
        ok("commit", "--user", text, "-q")
    ok("switch", "-c", "idea", "-q")
    ok("commit", "--user", "only here", "-q")
    ok("switch", "main", "-q")
    ok("branch", "-d", "idea", "-q")
    ok("tag", "v1")
    ok("tag", "-d", "v1", "-q")
    ok("remove", "--ghost", "HEAD~1.0", "-q")
    ok("remove", "HEAD~3.0", "-q")
    return ok


def test_an_empty_trash(ok: Run) -> None:
    assert ok("trash").text == "nothing in the trash\n"
    assert ok("trash", "--json").text == ""
    assert ok("trash", "empty").text == "nothing to empty\n"
    assert ok("trash", "restore", "--all").text == "nothing to restore\n"


def test_list_and_filters(filled: Run) -> None:
    lines = filled("trash").lines
    assert lines[0].split() == ["entry", "kind", "tokens", "since", "marks", "text"]
    assert lines[-1] == "2 messages, 12 tokens recoverable; 1 branch, 1 tag"
    assert filled("trash", "list").lines == lines
    assert "ghost" in lines[2]
    assert "first words" not in filled("trash", "search", "SECOND").text
    assert filled("trash", "search", "only here").lines[-1].endswith("; 1 branch")
    assert filled("trash", "--kind", "tag").lines[-1].endswith("; 1 tag")
    assert filled("trash", "--older", "1h").text == "nothing in the trash matches\n"
    assert len(filled("trash", "--branch", "idea").lines) == 3, "it is deleted, and in the trash"


def test_ghosts_are_marked_in_every_view(filled: Run) -> None:
    for words in (("compile",), ("compile", "--table"), ("view",)):
        text = filled(*words).text
        assert re.search(r"\[removed: (?:second[ \w]*, )?4 tokens, ", text)
        assert "ghost" in text


def test_restore_says_where(filled: Run) -> None:
    before = filled("compile", "main~2").text
    first, second = [json.loads(line)["address"] for line in filled("trash", "--json").lines[:2]]
    told = filled("trash", "restore", second).text
    assert told == f"restored {second[:12]}.0 at its place, at the start\n" or "nearest" in told
    assert filled("trash", "restore", first, "idea", "v1").lines == [
        f"restored {first[:12]}.0 at its place, at the start",
        filled("rev-parse", "idea").text.strip()[:12].join(["restored branch idea at ", ""]),
        filled("rev-parse", "v1").text.strip()[:12].join(["restored tag v1 at ", ""]),
    ]
    assert filled("compile").text == before
    assert filled("trash").text == "nothing in the trash\n"


def test_restore_all_and_undo(filled: Run) -> None:
    filled("branch", "idea")
    told = filled("trash", "restore", "--all")
    assert "note: heads/idea/" in told.err
    assert "its name is taken; --as NAME restores it" in told.err
    assert filled("trash").lines[-1] == "0 messages, 0 tokens recoverable; 1 branch"
    assert "restored branch better" in filled("trash", "restore", "idea", "--as", "better").text
    filled("undo")
    assert filled("trash").lines[-1] == "0 messages, 0 tokens recoverable; 1 branch"


def test_empty_and_what_it_says(filled: Run) -> None:
    dry = filled("trash", "empty", "--dry-run").lines
    assert dry[0] == "2 messages would leave the list; the history keeps the content"
    assert dry[1].startswith("2 refs would leave the trash: 2 objects, ")
    assert filled("trash").lines[-1].startswith("2 messages")
    messages = filled("trash", "--json").lines[:2]
    told = filled("trash", "empty")
    assert told.lines[0] == "2 messages left the list; the history keeps the content"
    assert filled("trash").text == "nothing in the trash\n"
    filled("restore", json.loads(messages[0])["address"])
    assert "first words" in filled("compile").text


def test_retention_hides_and_gc_applies_it(filled: Run) -> None:
    filled("config", "trash_retention", "0 days")
    assert filled("trash").text == "nothing in the trash\n"
    assert filled("trash", "--expired").lines[-1].startswith("2 messages")
    dry = filled("gc", "--dry-run").text
    assert "trash, by age" in dry
    assert "trash, kept: tags" in dry
    assert "held only by these" in dry
    assert filled("trash", "--expired").lines[-1].endswith("1 branch, 1 tag")
    assert filled("gc").lines[0].startswith("1 ref expired from the trash, ")
    assert filled("trash", "--expired").lines[-1].endswith("; 1 tag")
    found = json.loads(filled("prune", "--dry-run", "--keep", "nothing", "--json").text)
    assert [each["rule"] for each in found["expired"]] == ["age"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("trash", "restore"), 2, "name what to restore, or give --all"),
        (("trash", "restore", "--all", "idea"), 2, "name what to restore, or give --all"),
        (("trash", "restore", "nothing"), 4, "nothing in the trash is named 'nothing'"),
        (("trash", "restore", "idea", "HEAD~2.0"), 6, "is not in the trash"),
        (("trash", "restore", "abcdef0123.0"), 4, "abcdef0123"),
        (("trash", "restore", "v1", "idea", "--as", "x"), 2, "--as is for a single branch or tag"),
        (("trash", "restore", "idea", "--as", "a..b"), 2, "invalid ref name"),
        (("trash", "restore", "idea", "--as", "main"), 5, "refs/heads/main already exists"),
        (("trash", "search", ""), 2, "no text to look for"),
        (("trash", "--kind", "cat"), 2, "unknown kind 'cat'"),
        (("trash", "--older", "long"), 2, "not an age: 'long'"),
        (("trash", "--branch", "nothing"), 4, "nothing"),
        (("trash", "bogus"), 2, "no such command 'bogus'"),
        (("gc", "--retention", "soon"), 2, "not a retention: 'soon'"),
        (("gc", "--max-size", "much"), 2, "not a size in bytes: 'much'"),
        (("prune", "--keep", "cats"), 2, "not something to keep: 'cats'"),
        (("config", "trash_count", "many"), 2, "not a number: 'many'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input(
    filled: Run, repository: Trace, words: tuple[str, ...], code: int, said: str
) -> None:
    before = filled("trash", "--json").text, filled("for-each-ref").text
    outcome = repository(*words)
    assert outcome.code == code, outcome.err
    assert said in outcome.err
    assert "Traceback" not in outcome.err
    assert (filled("trash", "--json").text, filled("for-each-ref").text) == before
