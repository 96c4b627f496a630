"""`trace search`: results, and the cost of the index."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import ok, repository, trace
from tests.support.command_line import Run, Trace
from trace_cli.porcelain.demo import SAMPLE
from trace_store import FixedClock, Message, Repo, ToolCall
from trace_store.errors import InvalidInputError
from trace_store.history import commit
from trace_store.history.draft import Draft
from trace_store.history.records import Records, record_name
from trace_store.objects import operations
from trace_store.search.index import SearchIndex
from trace_store.search.query import NEWEST, SearchFilter, any_word, fts_query, matches, search
from trace_store.writer import Writer

__all__ = ["ok", "repository", "trace"]


def said(repo: Repo, query: str, **given: object) -> list[str]:
    return [hit.snippet.text for hit in search(repo.store, query, **given)]  # type: ignore[arg-type]


@pytest.fixture
def repo() -> Repo:
    repo = Repo.memory()
    for text in ("The freeze is on Monday", "call foo.bar() in C++", "Freeze the café, naïve 日本"):
        repo.append("user", text)
    return repo


def test_a_text_that_is_not_unicode_hides_no_other(repo: Repo) -> None:
    repo.append("user", "half of a pair \ud83d before the freeze")
    repo.append("user", "after it")
    assert len(said(repo, "freeze")) == 3
    assert said(repo, "pair") == ["half of a pair \ud83d before the freeze"]
    assert len(said(repo, "after")) == 1


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


@pytest.mark.parametrize("query", ["~", "{ }", "→", "!?"])
def test_signs_alone_are_no_query(repo: Repo, query: str) -> None:
    with pytest.raises(InvalidInputError, match="nothing to search for"):
        said(repo, query)


def test_20_hits_are_found_unless_more_are_asked_for(repo: Repo) -> None:
    for number in range(25):
        repo.append("user", f"remark {number}")
    assert len(said(repo, "remark")) == 20
    assert len(said(repo, "remark", limit=24)) == 24


def test_an_argument_of_several_words_ranks_exact_phrases_first(ok: Run) -> None:
    for text in ("the old build cache", "cache of the build", "clear the Build cache", "a build"):
        ok("commit", "-q", "--user", text)

    def found(*words: str) -> list[str]:
        return [json.loads(line)["snippet"] for line in ok("search", *words, "--json").lines]

    apart = ["clear the Build cache", "cache of the build", "the old build cache"]
    together = ["clear the Build cache", "the old build cache"]
    assert found("build", "cache") == apart
    assert found("build cache") == [*together, "cache of the build"]
    assert found("build cache", "-n", "2") == together
    assert found("build cache", "--rank")[-1] == "cache of the build"
    assert found("clear", "build cache") == ["clear the Build cache"]
    assert found('"build cache"') == together
    assert found("build nowhere OR cache")  # no phrase, but a query
    [first, *_] = [json.loads(line) for line in ok("search", "build cache", "--json").lines]
    assert first["snippet"][first["start"] : first["end"]] == "Build cache"


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
    assert hits("--session", "The word counts", "tabs") == hits("tabs"), "by its title"
    assert hits("--tool", "Bash", "pytest") >= 1
    assert not hits("--until", "2026-03-01", "tabs")
    assert hits("--until", "2026-03-02", "tabs") == hits("tabs"), "a date is its whole day"
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
    for name in ("another", "other"):  # one before main, one after it
        ok("branch", name)
    ok("reset", "HEAD~1")
    for name in ("another", "other"):
        (hit,) = (json.loads(line) for line in ok("search", "--json", "zebra").lines)
        assert hit["ref"] == f"refs/heads/{name}"
        ok("branch", "-D", name)
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
    assert repository("trajectory", "start", "-q", "Client").code == 0
    assert repository("trajectory", "decision", "-q", "httpx, not requests").code == 0
    assert "`trace trajectory search` finds a decision" in repository("search", "requests").err
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
    draft = Draft(Writer(repo.store, author="ada"))
    draft.operations.append(operations.add([stored]))
    commit.write(draft)
    with SearchIndex(repo.store) as index:
        assert index.catch_up() == 4, "three of the repository, and this one"
    (hit,) = search(repo.store, "zebra")
    assert (hit.address, hit.is_edit, hit.role) == (address, False, "user")
    (hit,) = search(repo.store, "horse")
    assert (hit.address, hit.is_edit, hit.role) == (address, True, "")


@pytest.fixture(scope="module")
def crowded() -> Repo:
    """Return a repository whose first message of 240 is the only one about a zebra, and has a label."""
    repo = Repo.memory()
    first = repo.append("user", "a zebra in the yard").addresses[0]
    repo.annotate(first, labels=["keep"])
    repo.commit([Message("user", f"number {at} of the yard") for at in range(1, 240)])
    return repo


@pytest.mark.parametrize("ranked", [False, True])
def test_what_few_messages_have_is_found_however_old_they_are(crowded: Repo, ranked: bool) -> None:
    found = search(crowded.store, "z[e]bra", regex=True, ranked=ranked)
    assert [hit.snippet.text for hit in found] == ["a zebra in the yard"]
    found = search(crowded.store, "", SearchFilter(label="keep"), ranked=ranked)
    assert [hit.snippet.text for hit in found] == ["a zebra in the yard"]


def test_nothing_is_lost_where_the_second_page_begins(crowded: Repo) -> None:
    last = 239 - NEWEST
    wanted = [f"number {at} of the yard" for at in range(last - 1, last + 3)]
    numbers = "|".join(str(at) for at in range(last - 1, last + 3))
    assert sorted(said(crowded, f"^number ({numbers}) ", regex=True)) == sorted(wanted)


@pytest.mark.parametrize("count", [NEWEST - 1, NEWEST, NEWEST + 1, 240])
def test_as_many_are_found_as_are_asked_for_each_once(crowded: Repo, count: int) -> None:
    wanted = ["a zebra in the yard", *(f"number {at} of the yard" for at in range(1, 240))][::-1]
    for query, regex in (("yard", False), ("y.rd", True)):
        found = said(crowded, query, regex=regex, limit=count)
        assert sorted(found) == sorted(wanted[:count]), (query, count)


def test_times_include_the_very_moment(tmp_path: Path) -> None:
    with Repo.init(tmp_path, clock=FixedClock(9_000_000)) as repo:
        for number in range(3):
            repo.append("user", f"zebra {number}")
        times = [hit.time for hit in search(repo.store, "zebra")][::-1]
        assert len(set(times)) == 3
        for given, wanted in (
            (SearchFilter(until=times[1]), [1, 0]),
            (SearchFilter(until=times[1] - 1), [0]),
            (SearchFilter(since=times[1]), [2, 1]),
            (SearchFilter(since=times[1] + 1), [2]),
            (SearchFilter(since=times[1], until=times[1]), [1]),
        ):
            found = search(repo.store, "zebra", given)
            assert [hit.snippet.text for hit in found] == [f"zebra {each}" for each in wanted]


def test_progress_ends_with_all_that_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trace_store.search.index.BATCH_COMMITS", 2)
    told: list[tuple[int, int]] = []

    def tell(done: int, whole: int) -> None:
        told.append((done, whole))

    with Repo.init(tmp_path) as repo:
        for text in ("one zebra", "two zebras", "a zebra at last"):
            repo.append("user", text)
        search(repo.store, "zebra", progress=tell)
        assert told == [(0, 2), (2, 3), (3, 3)]
        told.clear()
        search(repo.store, "zebra", progress=tell)
        assert told == []
        repo.append("user", "one more zebra")
        search(repo.store, "zebra", progress=tell)
        assert told == [(1, 1)]


def test_a_branch_that_only_grew_is_known(repo: Repo) -> None:
    """Its hits need no look at its history."""
    with SearchIndex(repo.store) as index:
        for _ in range(3):
            repo.append("user", "one more")
            index.catch_up()
            assert index.only_grew("refs/heads/main")
        repo.branches.create("side")
        Repo(repo.store.on("side"), author="ada").append("user", "beside")
        repo.append("user", "meanwhile")
        index.catch_up()
        repo.merge("side")
        index.catch_up()
        assert index.only_grew("refs/heads/main")
        repo.reset("HEAD~1", hard=True)
        for _ in range(2):
            repo.append("user", "another one")
            index.catch_up()
            assert not index.only_grew("refs/heads/main")
        assert not index.only_grew("refs/heads/other")


def test_only_a_large_update_compacts_the_index(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More commits than a batch, and more than were there before."""
    monkeypatch.setattr("trace_store.search.index.BATCH_COMMITS", 2)
    compacted: list[int] = []
    total = 3
    monkeypatch.setattr(SearchIndex, "_compact", lambda _: compacted.append(total))
    with SearchIndex(repo.store) as index:
        index.catch_up()
        for count in (3, 7, 2):
            for _ in range(count):
                repo.append("user", "one more")
            total += count
            assert index.catch_up() == count
    assert compacted == [3, 13]


def test_words_of_a_question_that_very_many_texts_have_are_left_out(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trace_store.search.query.COMMON", 1)
    for number in range(13):
        words = ("rare", "twice", "twice", "common", "common", "common")[number : number + 1]
        repo.append("user", " ".join(("filler", *words)))
    with SearchIndex(repo.store) as index:
        index.catch_up()
        for asked, wanted in (
            ("What is rare, twice, common?", '"rare" OR "twice"'),
            ("common filler", '"common" OR "filler"'),
            ("filler common twice", '"twice"'),
            ("rare nowhere", '"rare" OR "nowhere"'),
            ("filler nowhere", '"filler" OR "nowhere"'),
            ("What is it?", '"is" OR "it" OR "what"'),
            ("?", ""),
        ):
            assert set(any_word(index, asked).split(" OR ")) == set(wanted.split(" OR ")), asked


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("monday freeze", "Monday"),
        ("-cafe freeze", "freeze"),
        ("... freeze", "freeze"),
        ("nowhere OR mond*", "Mond"),
        ('"is on" freeze', "is on"),
    ],
)
def test_the_first_word_that_is_there_is_marked(repo: Repo, query: str, marked: str) -> None:
    hit = search(repo.store, query)[-1].snippet
    assert hit.text[hit.start : hit.end] == marked


def test_what_a_first_commit_carries_is_found(repo: Repo) -> None:
    """It has no parent that has the message; the branch where it was made is gone."""
    address = repo.append("user", "a zebra").addresses[0]
    stored = repo.contexts.fold(repo.resolve("HEAD")).entry(address).to_carried()
    draft = Draft(Writer(repo.store, author="ada").on("other"))
    draft.operations.append(operations.add([stored]))
    commit.write(draft)
    repo.branches.switch("other")
    repo.branches.delete("main")
    (hit,) = search(repo.store, "zebra")
    assert (hit.address, hit.ref) == (address, "refs/heads/other")


def test_a_filter_that_nothing_can_match_is_told_with_the_values_that_there_are(repo: Repo) -> None:
    repo.append("assistant", [ToolCall("c", "Read", "{}"), ToolCall("d", "Bash", "{}")])
    repo.append("user", "a decision", kind="decision")
    repo.annotate(repo.compile().messages[0].address, labels=["keep", "later"])
    told: list[tuple[str, str, list[str]]] = []

    def tell(name: str, word: str, known: Sequence[str]) -> None:
        told.append((name, word, list(known)))

    for wanted, words in (
        (SearchFilter(tool="Raed"), [("tool", "Raed", ["Bash", "Read"])]),
        (SearchFilter(label="kept"), [("label", "kept", ["keep", "later"])]),
        (SearchFilter(tool="Read", label="none"), [("label", "none", ["keep", "later"])]),
        (SearchFilter(tool="Read", label="keep"), []),
        (SearchFilter(tool="Read"), []),
    ):
        search(repo.store, "nowhere", wanted, unmatched=tell)
        assert told == words
        told.clear()
    search(repo.store, "nowhere", SearchFilter(kind="dialog"), unmatched=tell)
    [(name, word, known)] = told
    assert (name, word) == ("kind", "dialog")
    assert {"decision"} <= set(known)
    told.clear()
    search(repo.store, "freeze", SearchFilter(role="user"), unmatched=tell)
    assert told == []


def test_other_words_may_stand_in_another_message_of_the_branch(repo: Repo) -> None:
    repo.branches.switch("side", create=True)
    repo.append("user", "a striped zebra")
    repo.append("user", "freeze it")
    with SearchIndex(repo.store) as index:
        index.catch_up()

        def found(match: str, *beside: str) -> list[str]:
            return [hit.snippet.text for hit in matches(index, repo.store, match, beside=beside)]

        assert found("zebra") == ["a striped zebra"]
        assert found("zebra", "it") == ["a striped zebra"]
        assert found("zebra", "monday") == []
        assert found("monday", "call", "naive") == ["The freeze is on Monday"]
        assert found("monday", "call", "zebra") == []


def test_sessions_and_agents_by_the_names_of_their_branches() -> None:
    repo = Repo.memory(clock=FixedClock())
    for name in ("sessions/codex/ab12", "sessions/claude_code/cd34/helper", "sessions/plain"):
        Repo(repo.store.on(name), author="ada").append("user", f"a zebra of {name}")

    def found(**where: str) -> list[str]:
        return [text.removeprefix("a zebra of ") for text in said_where(repo, **where)]

    every = ["sessions/plain", "sessions/claude_code/cd34/helper", "sessions/codex/ab12"]
    assert found() == found(session="sessions") == every
    assert found(agent="codex") == found(session="ab") == every[2:]
    assert found(session="sessions/codex") == found(session="ab12") == every[2:]
    assert (
        found(session="cd34") == found(agent="claude_code") == found(session="help") == every[1:2]
    )
    for wrong in ("plain", "claude-code", "claude%", "clau", "sessions"):
        with pytest.raises(InvalidInputError, match="; there are claude_code, codex"):
            found(agent=wrong)
    for wrong in ("b12", "codex_ab12", "sessions/%", "x" * 90):
        with pytest.raises(InvalidInputError, match=f"begins with '{wrong[:80]}'"):
            found(session=wrong)


def test_a_message_that_several_sessions_share_is_found_in_each() -> None:
    repo = Repo.memory(clock=FixedClock())
    names = [f"sessions/codex/{name}" for name in ("first", "fork", "other", "same")]
    first = repo.line(names[0])
    first.append("user", "a zebra before the fork")
    for name in (names[1], names[3]):
        repo.branches.create(name, start=names[0])
    first.append("user", "a zebra after it")
    repo.line(names[1]).append("user", "a zebra of the fork")
    repo.line(names[2]).append("user", "another zebra")

    def found(session: str) -> list[tuple[str, str]]:
        hits = search(repo.store, "zebra", SearchFilter(session=session))
        return [(hit.snippet.text, hit.ref.rpartition("/")[2]) for hit in hits]

    before, after = "a zebra before the fork", "a zebra after it"
    assert found("fork") == [("a zebra of the fork", "fork"), (before, "fork")]
    assert found("first") == [(after, "first"), (before, "first")]
    assert found("same") == [(before, "same")]
    assert found("other") == [("another zebra", "other")]
    assert len(found("sessions/codex")) == 4
    repo.line(names[3]).append("user", "a zebra later")
    assert found("same") == [("a zebra later", "same"), (before, "same")]


def said_where(repo: Repo, **where: str) -> list[str]:
    return said(repo, "zebra", wanted=SearchFilter(**where))  # type: ignore[arg-type]


def test_without_sessions_no_agent_is_named(repo: Repo) -> None:
    with pytest.raises(InvalidInputError, match=r"no session of agent 'codex'$"):
        said_where(repo, agent="codex")


def test_tools_and_kinds_are_compared_as_whole_words(repo: Repo) -> None:
    calls = [ToolCall("a", "Read", '{"x": "zebra"}'), ToolCall("b", "Bash_Output", "{}")]
    repo.append("assistant", calls)
    repo.append("user", "a zebra here", kind="decision")
    for tool, count in (("Read", 1), ("Bash_Output", 1), ("BashXOutput", 0), ("Rea", 0), ("%", 0)):
        assert len(said_where(repo, tool=tool)) == count, tool
    for kind, count in (("decision", 1), ("decisio", 0), ("d%", 0)):
        assert len(said_where(repo, kind=kind)) == count, kind


def test_a_hidden_value_shows_its_commit_and_name(ok: Run, tmp_path: Path) -> None:
    with Repo.open(tmp_path) as repo:
        draft = Records(repo.writer).draft(record_name("demo", "thread", "main"))
        draft.set("state", "json", b'{"city": "Berlin", "id": "1ef0-44"}')
        oid = draft.write().commit
        assert not repo.search("1ef0")  # no text
    (line,) = ok("search", "berlin").lines
    assert line.startswith(oid.short())
    assert "  state  " in line
