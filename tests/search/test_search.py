"""`trace search`: results, and the cost of the index."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import ok, repository, trace
from tests.support.command_line import Run, Trace
from trace_cli.porcelain.demo import SAMPLE
from trace_store import FixedClock, Repo
from trace_store.history import commit
from trace_store.objects import operations
from trace_store.search.index import SearchIndex
from trace_store.search.query import SearchFilter, fts_query, search

__all__ = ["ok", "repository", "trace"]


def said(repo: Repo, query: str, **given: object) -> list[str]:
    return [hit.snippet.text for hit in search(repo.store, query, **given)]  # type: ignore[arg-type]


@pytest.fixture
def repo() -> Repo:
    repo = Repo.memory()
    for text in ("The freeze is on Monday", "call foo.bar() in C++", "Freeze the café, naïve 日本"):
        repo.append("user", text)
    return repo


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("freeze", 2),
        ("FREEZE monday", 1),
        ('"freeze is"', 1),
        ('"is freeze"', 0),
        ("fre*", 2),
        ("freeze -monday", 1),
        ("monday OR c++", 2),
        ("foo.bar()", 1),
        ("cafe", 1),
        ("日本", 1),
        ('"unbalanced freeze', 0),
        ("nothing", 0),
    ],
)
def test_words(repo: Repo, query: str, count: int) -> None:
    assert len(said(repo, query)) == count


@pytest.mark.parametrize("text", ['"', "*", "(", "a AND (", "NEAR(", "-", "foo:bar", "^x", "{a}"])
def test_nothing_typed_is_a_syntax_error(repo: Repo, text: str) -> None:
    if fts_query(text):
        said(repo, text)


def test_the_newest_come_first_with_their_place(repo: Repo) -> None:
    first, second = search(repo.store, "freeze")
    assert first.snippet.text.startswith("Freeze the")
    assert second.snippet.text[second.snippet.start : second.snippet.end] == "freeze"


def test_filters(ok: Run, repository: Trace) -> None:
    ok("import", "-q", str(SAMPLE))

    def hits(*words: str) -> int:
        return len(ok("search", "--json", *words).lines)

    assert hits("tabs") >= 1
    assert hits("--role", "user", "tabs") == 1
    assert hits("--agent", "claude-code", "tabs") == hits("tabs")
    assert hits("--role", "user") > 1, "without words"
    assert hits("--tool", "Edit", "--path", "wordcount.py") >= 1
    for wrong, said in (
        (("--agent", "claude"), "there are claude-code"),
        (("--session", "nosuch"), "no session or branch begins with 'nosuch'"),
        (("--role", "users"), "one of system, developer, user"),
    ):
        refused = repository("search", *wrong, "tabs")
        assert (refused.code, said in refused.err) == (2, True), refused
    assert hits("--session", "89c6", "tabs") == hits("tabs")
    assert hits("--tool", "Bash", "pytest") >= 1
    assert not hits("--until", "2026-03-01", "tabs")
    assert hits("--regex", r"t[a]bs\b") >= 1
    assert hits("-n", "1", "count") == 1
    assert ok("search", "-n", "1", "count").err == "more than 1 hits; -n shows more\n"
    assert hits("--rank", "count") >= 1


def test_labels_and_files(ok: Run) -> None:
    ok("import", "-q", str(SAMPLE))
    ok("commit", "--user", "remember the zebra")
    ok("label", "HEAD.0", "--add", "keep")
    assert len(ok("search", "--label", "keep", "zebra").lines) == 1
    assert not ok("search", "--label", "other", "zebra").lines
    calls = [
        json.loads(line)
        for line in ok("search", "--json", "--path", "wordcount.py", "wordcount").lines
    ]
    assert calls
    assert {call["role"] for call in calls} == {"assistant"}


def test_old_wordings_are_found_and_deleted_branches_are_not(ok: Run) -> None:
    ok("commit", "--user", "the first wording")
    ok("edit", "HEAD.0", "another text")
    assert "the first wording" in ok("search", "wording").text
    (found,) = (json.loads(line) for line in ok("search", "--json", "another").lines)
    assert found["edited"] is True
    ok("switch", "-c", "side")
    ok("commit", "--user", "only here: zebra")
    assert ok("search", "zebra").lines
    ok("switch", "-")
    ok("branch", "-D", "side")
    assert not ok("search", "zebra").lines


def test_what_a_branch_gave_up_is_not_found(ok: Run) -> None:
    """Also when it comes by the same name again, and when another branch still has it."""
    ok("commit", "-q", "--user", "first")
    ok("commit", "-q", "--user", "zebra")
    assert ok("search", "zebra").lines
    ok("branch", "other")
    ok("reset", "HEAD~1")
    (hit,) = (json.loads(line) for line in ok("search", "--json", "zebra").lines)
    assert hit["ref"] == "refs/heads/other"
    ok("branch", "-D", "other")
    assert not ok("search", "zebra").lines
    ok("branch", "other")
    ok("commit", "-q", "--user", "third")
    assert not ok("search", "zebra").lines
    assert len(ok("search", "first").lines) == 1


def test_a_purge_takes_the_words_along(ok: Run, tmp_path: Path) -> None:
    ok("commit", "--user", "Hedwig Wanderlust was here, and so was somebody else")
    assert ok("search", "hedwig").lines
    path = tmp_path / ".trace/cache/search.sqlite3"
    assert b"hedwig" in path.read_bytes()
    outcome = ok("purge", "--match-file", "-", "--yes", "--reason", "x", stdin=b"Hedwig Wanderlust")
    assert outcome.code == 0
    assert not path.exists()
    assert not ok("search", "hedwig").lines


def test_only_new_commits_are_read(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    with SearchIndex(repo.store) as index:
        assert index.catch_up() == 3
        assert index.catch_up() == 0
        repo.append("user", "one more")
        assert index.catch_up() == 1


def test_a_damaged_index_is_made_anew(ok: Run, tmp_path: Path) -> None:
    ok("commit", "--user", "find me")
    path = tmp_path / ".trace/cache/search.sqlite3"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"no database at all" * 100)
    assert ok("search", "find").lines
    with sqlite3.connect(path) as base:
        base.execute("UPDATE meta SET value = '0 other'")
    base.close()
    assert ok("search", "find").lines


def test_what_cannot_be_searched_is_said(repository: Trace) -> None:
    assert repository("search", "...").code == 2
    assert repository("search", "--regex", "(").code == 2
    assert repository("search", "nothing").err.startswith(
        "nothing was found: only whole words match"
    )
    assert repository("search", "nothing*").err == "nothing was found\n"
    assert repository("search").code == 2


def test_what_was_said_last_comes_first_whenever_it_was_indexed(tmp_path: Path) -> None:
    with Repo.init(tmp_path, clock=FixedClock(9_000_000)) as repo:
        repo.append("user", "zebra")
        assert len(search(repo.store, "zebra")) == 1
    with Repo.open(tmp_path, clock=FixedClock(1_000)) as repo:
        repo.append("user", "an older zebra")
        found = search(repo.store, "zebra")
    assert [hit.snippet.text for hit in found] == ["zebra", "an older zebra"]


def test_filters_of_the_library(repo: Repo) -> None:
    assert len(search(repo.store, "freeze", SearchFilter(role="user"))) == 2
    assert not search(repo.store, "freeze", SearchFilter(role="assistant"))


def test_a_carried_message_is_one_hit(ok: Run) -> None:
    """By its own address, and with the time when it was made; whether the branch that it comes from is there or not."""
    ok("commit", "-q", "--user", "first")
    ok("switch", "-c", "side")
    ok("commit", "-q", "--user", "a zebra")
    (before,) = (json.loads(line) for line in ok("search", "--json", "zebra").lines)
    ok("switch", "-")
    ok("commit", "-q", "--user", "second")
    ok("cherry-pick", "side")
    (picked,) = (json.loads(line) for line in ok("search", "--json", "zebra").lines)
    assert (picked["address"], picked["time"]) == (before["address"], before["time"])
    ok("branch", "-D", "side")
    (left,) = (json.loads(line) for line in ok("search", "--json", "zebra").lines)
    assert left == {**before, "ref": "refs/heads/main", "title": "main"}


def test_wordings_of_a_carried_message(repo: Repo) -> None:
    """Each is found once, also where the commits are gone that they come from."""
    address = repo.append("user", "a zebra").addresses[0]
    tip = repo.edit(address, "a striped horse").oid
    stored = repo.contexts.fold(tip).entry(address).to_carried()
    repo.reset("HEAD~2", hard=True)
    draft = commit.new_draft(repo.store)
    draft.operations.append(operations.add([stored]))
    commit.write(repo.store, draft, author="ada")
    with SearchIndex(repo.store) as index:
        assert index.catch_up() == 4, "three of the repository, and this one"
    (hit,) = search(repo.store, "zebra")
    assert (hit.address, hit.is_edit, hit.role) == (address, False, "user")
    (hit,) = search(repo.store, "horse")
    assert (hit.address, hit.is_edit, hit.role) == (address, True, "")
