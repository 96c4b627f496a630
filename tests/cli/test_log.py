"""`trace log`: filters and output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_bad_input import refused
from tests.cli.test_startup import loaded_by
from tests.support.command_line import Outcome, Run, Trace
from trace_cli.render.graph import Graph
from trace_store.odb.database import ObjectDatabase


@pytest.fixture
def talk(ok: Run) -> Run:
    ok("commit", "--user", "Look at src/app.py", "-q")
    ok("commit", "--assistant", "I looked.", "-q")
    ok("edit", "HEAD~1.0", "Look at src/main.py", "-q")
    return ok


def said(outcome: Outcome) -> list[str]:
    return [line.split(") ")[-1].split("  ")[-1] for line in outcome.lines]


def test_filters(talk: Run) -> None:
    assert len(talk("log", "--role", "user").lines) == 2
    assert said(talk("log", "--text", "LOOKED")) == ["assistant: I looked."]
    assert said(talk("log", "--grep", "looked", "--oneline")) == ["assistant: I looked."]
    assert len(talk("log", "--path", "app.py").lines) == 1
    assert len(talk("log", "--path", "src/", "-n", "1").lines) == 1
    assert len(talk("log", "--follow", "HEAD~2.0").lines) == 2
    assert len(talk("log", "--since", "1 day ago", "--author", "ada").lines) == 3
    assert talk("log", "--until", "2001-01-01").lines == []
    assert len(talk("log", "--until", "today").lines) == 3
    first = json.loads(talk("log", "--json", "-n", "1").lines[0])["time"]
    assert len(talk("log", "--until", first[:10]).lines) == len(talk("log").lines)
    assert len(talk("log", "--role", "assistant", "HEAD~2..HEAD").lines) == 1
    (record,) = map(json.loads, talk("log", "--operation", "edit", "--json").lines)
    assert record["operations"] == ["edit"]
    assert "Author:" in talk("log", "--operation", "edit", "--full").text


def test_what_was_looked_for_is_shown(ok: Run) -> None:
    """Under a commit whose line does not say it."""
    ok("commit", "-q", "--user", "many words " * 40 + "and the Needle in it")
    row, hit = ok("log", "--grep", "needle").lines
    assert "Needle" not in row
    assert hit.startswith("    …")
    assert hit.endswith("and the Needle in it")
    assert len(ok("log", "--grep", "needle", "--oneline").lines) == 1
    assert len(ok("log", "--grep", "many").lines) == 1


@pytest.mark.parametrize("command", ["log", "search"])
def test_a_value_that_nothing_has_is_named_with_those_there_are(ok: Run, command: str) -> None:
    ok("import", "-q", "-", stdin=ok("demo", "--sample").out)
    ok("label", "HEAD.0", "-a", "plan", "-q")
    for what, known in (("tool", "Bash, Edit, Read"), ("kind", "dialogue"), ("label", "plan")):
        outcome = ok(command, f"--{what}", "bogus")
        assert outcome.lines == []
        assert outcome.err.startswith(f"nothing with the {what} 'bogus'; {what}s here: {known}")
    assert "with the tool" not in ok(command, "--tool", "Bash", "--until", "2001-01-01").err


def test_an_author_or_fact_that_no_commit_has_is_named(talk: Run) -> None:
    assert (
        talk("log", "--author", "bob").err == "nothing with the author 'bob'; authors here: Ada\n"
    )
    assert talk("log", "--meta", "x").err == "nothing with the fact 'x'; there is no fact here\n"
    talk("commit", "--user", "More", "--meta", "run=7", "-q")
    assert talk("log", "--meta", "run=8").err.endswith("facts here: run=7\n")
    assert talk("log", "--meta", "run=7", "--author", "A").err == ""
    assert talk("log", "--role", "tool").err.endswith("roles here: assistant, user\n")


def test_mistakes(repository: Trace, talk: Run) -> None:
    refused(repository("log", "--since", "some day"), 2, "not a time")
    refused(repository("log", "--operation", "nothing"), 2, "one of add")
    refused(repository("log", "--kind", "No thing"), 2, "one of instruction")
    refused(repository("log", "--role", "usr"), 2, "one of system")
    refused(repository("log", "--follow", "HEAD"), 2, "not a message address")
    refused(repository("log", "--graph", "--json"), 2, "--graph cannot be combined with --json")


def test_a_line_and_a_merge(talk: Run) -> None:
    talk("update-ref", "refs/heads/side", "HEAD~1")
    talk("commit", "--branch", "side", "--user", "Beside", "-q")
    ids = [talk("rev-parse", name).text.strip() for name in ("HEAD", "side")]
    merge = json.dumps({"parents": ids, "ops": []}).encode()
    tip = talk("write-commit", stdin=merge).text.strip()
    rows = [line.split("  ")[0] for line in talk("log", "--graph", tip).lines]
    shapes = ["".join(c for c in row if c in "*|\\/_ ").rstrip() for row in rows]
    assert shapes == ["*", "|\\", "| *", "* |", "|/", "*", "*"]
    straight = talk("log", "--graph", "--first-parent", tip).lines
    assert all(line.startswith("* ") for line in straight)
    full = talk("log", "--graph", "--full", tip).lines
    assert any(line.startswith("| | Author:") for line in full)
    for width in (20, 40):
        cut = talk("log", "--graph", tip, terminal=True).lines
        assert len(cut) == len(rows), width


def test_a_graph_of_what_filters_leave(ok: Run) -> None:
    ok("commit", "--user", "a", "-q")
    ok("commit", "--assistant", "b", "-q")
    ok("switch", "-q", "-c", "side")
    ok("commit", "--assistant", "beside", "-q")
    ok("commit", "--user", "c", "-q")
    ok("switch", "-q", "main")
    ok("commit", "--user", "d", "-q")
    ok("merge", "-q", "side")

    def shapes(*words: str) -> list[str]:
        rows = [line.split("  ")[0] for line in ok("log", "--graph", *words).lines]
        return ["".join(c for c in row if c in "*|\\/_ ").rstrip() for row in rows]

    assert shapes("--role", "user") == ["*", "| *", "|/", "*"]
    assert shapes("--role", "assistant") == ["*", "*"]
    assert shapes("--role", "assistant", "--first-parent") == ["*"]
    assert shapes("--role", "user", "-n", "1") == ["*"]
    assert shapes("--text", "nowhere") == []
    full = ok("log", "--graph", "--full", "--role", "assistant").lines
    assert sum(line.startswith("* ") for line in full) == 2


def drawn(*commits: tuple[str, str]) -> list[str]:
    graph = Graph()
    rows: list[str] = []
    for oid, parents in commits:
        rows += graph.commit(oid.encode(), [parent.encode() for parent in parents])
    return rows


def test_what_is_drawn() -> None:
    assert drawn(("c", "b"), ("b", "a"), ("a", "")) == ["*", "*", "*"]
    assert drawn(("m", "abc"), ("c", "r"), ("b", "r"), ("a", "r"), ("r", "")) == [
        "*",
        "|\\",
        "| |\\",
        "| | *",
        "| * |",
        "* | |",
        "|/ /",
        "|/",
        "*",
    ]
    # Two unrelated histories; the first ends before the second.
    assert drawn(("m", "ab"), ("b", ""), ("a", "")) == ["*", "|\\", "| *", "*"]


def test_a_log_without_filters_loads_nothing_of_them(ok: Run, tmp_path: Path) -> None:
    ok("commit", "--user", "x", "-q")
    loaded = loaded_by(["log"], tmp_path)
    assert not {name for name in loaded if name.endswith((".filters", ".graph", ".naming"))} - {
        "trace_store.commit_table.graph"
    }


def test_several_starts(talk: Run, repository: Trace) -> None:
    talk("update-ref", "refs/heads/side", "HEAD~1")
    talk("commit", "--branch", "side", "--user", "Beside", "-q")
    assert len(talk("log").lines) == 3
    assert len(talk("log", "main", "side").lines) == 4
    assert len(talk("log", "--all").lines) == 4
    assert said(talk("log", "side", "^main")) == ["user: Beside"]
    assert said(talk("log", "^side")) == said(talk("log", "side..main")) != []
    assert said(talk("log", "--all", "--text", "beside")) == ["user: Beside"]
    assert len(talk("log", "--all", "-n", "2").lines) == 2
    assert len(talk("log", "--all", "--graph", "--oneline").lines) == 5
    refused(repository("log", "main", "nowhere"), 4, "nowhere")


def test_what_is_in_the_trash_is_shown_when_asked_for(ok: Run) -> None:
    for text in ("a", "b", "c"):
        ok("commit", "-q", "--user", text)
    ok("branch", "-q", "side", "HEAD~1")
    ok("branch", "-q", "-d", "side")
    ok("reset", "-q", "--hard", "HEAD~2")
    for words in (["--all"], ["--all", "--graph"], ["--all", "-n", "5"]):
        assert said(ok("log", *words)) == ["user: a"]
        shown = ok("log", *words, "--trash").text
        assert shown.count("user:") == 3
        assert shown.count("(trash/heads/") == 2
    for words in (
        ["log", "ORIG_HEAD"],
        ["log", "-3", "--full", "ORIG_HEAD"],
        ["show", "ORIG_HEAD"],
    ):
        assert "trash/" not in ok(*words).text
    assert "refs/trash/heads/main" in ok("log", "--json", "ORIG_HEAD").text
    assert '"refs/trash' not in ok("log", "--json", "--all").text


def test_lines_beside_each_other_are_told_by_time(ok: Run) -> None:
    ok("commit", "--user", "root", "-q")
    ok("branch", "-q", "side")
    for number in range(3):
        ok("commit", "--user", f"m{number}", "-q")
        ok("commit", "--user", f"s{number}", "--branch", "side", "-q")
    latest = ["s2", "m2", "s1", "m1", "s0", "m0", "root"]
    assert said(ok("log", "--all")) == [f"user: {text}" for text in latest]
    assert said(ok("log", "main", "side", "-n", "2")) == ["user: s2", "user: m2"]
    drawn = ok("log", "--all", "--graph").text
    assert drawn.index("user: m0") < drawn.index("user: s2")  # a line after the other


def test_all_of_nothing(repository: Trace) -> None:
    assert repository("log", "--all") == repository("log", "--all", "--text", "x")
    assert repository("log", "--all").code == 0
    refused(repository("log"), 6, "no commit")


def test_merge_bases(talk: Run, repository: Trace) -> None:
    talk("update-ref", "refs/heads/side", "HEAD~1")
    talk("commit", "--branch", "side", "--user", "Beside", "-q")
    base = talk("rev-parse", "HEAD~1").text
    assert talk("merge-base", "main", "side").text == base
    assert talk("merge-base", "--all", "side", "main").text == base
    assert repository("merge-base", "--is-ancestor", "main~1", "side").code == 0
    assert repository("merge-base", "--is-ancestor", "main", "side").code == 1
    ids = [talk("rev-parse", name).text.strip() for name in ("main", "side")]
    crossed = [
        talk("write-commit", stdin=json.dumps({"parents": parents, "ops": []}).encode()).text
        for parents in (ids, ids[::-1])
    ]
    both = talk("merge-base", "--all", *(each.strip() for each in crossed))
    assert both.lines == sorted(ids)
    alone = talk("write-commit", stdin=b'{"parents": [], "ops": []}').text.strip()
    nothing = repository("merge-base", alone, "main")
    assert (nothing.code, nothing.out, nothing.err) == (1, b"", "")
    refused(
        repository("merge-base", "--all", "--is-ancestor", "main", "side"),
        2,
        "--is-ancestor exclude each other",
    )
    refused(repository("merge-base", "main"), 2, "B")


def test_few_and_backwards(talk: Run) -> None:
    assert talk("log", "-2").lines == talk("log", "-n", "2").lines
    assert talk("log", "--oneline", "-1", "HEAD~1").lines == talk("log", "-n1", "HEAD~1").lines
    assert talk("log", "--reverse").lines == talk("log").lines[::-1]
    assert talk("log", "--reverse", "-2").lines == talk("log", "-2").lines[::-1]
    assert talk("reflog", "-1").lines == talk("reflog").lines[:1]
    assert talk("rev-list", "-1", "HEAD").text == talk("rev-parse", "HEAD").text


def test_what_each_commit_changed(repository: Trace, talk: Run) -> None:
    text = talk("log", "-p").text
    assert text.count("\ncommit ") == 2
    assert "    Look at src/[-app-]{+main+}.py" in text
    assert "    + Look at src/app.py" in text  # by the first commit, which has no parent
    patch = talk("log", "-p", "-1").text.partition("diff ")[2]
    assert patch.strip() == talk("diff").text.partition("diff ")[2].strip()
    lines = talk("log", "--stat", "--oneline", "-1").lines
    assert lines[0] == talk("log", "-1").lines[0]
    assert lines[1].startswith("M ")
    assert lines[2].startswith("1 message differs (1 edited)")
    refused(repository("log", "--graph", "-p"), 2, "cannot be combined")
    refused(repository("log", "--json", "--stat"), 2, "cannot be combined")


def test_what_is_no_number_of_commits_is_said_to_be_none(talk: Run, repository: Trace) -> None:
    for value, said in (("x", "'x' is not an integer"), ("-1", "-1 is not in the range x>=0")):
        for command in ("log", "reflog"):
            outcome = repository(command, "-n", value)
            assert outcome.code == 2
            assert said in outcome.err
    assert len(talk("log", "-n", "1", "--", "HEAD").lines) == 1


@pytest.mark.parametrize("edits", [0, 1])
def test_changes_are_told_from_the_commit_before(
    ok: Run, monkeypatch: pytest.MonkeyPatch, edits: int
) -> None:
    """Without an index, each context is derived from the previous one."""
    reads: list[bytes] = []
    read = ObjectDatabase.read

    def counted(self: ObjectDatabase, oid: bytes) -> bytes:
        reads.append(oid)
        return read(self, oid)

    for number in range(120):
        ok("commit", "-q", "--user", f"message {number}")
        if edits and number == 60:
            ok("edit", "-q", "HEAD~60.0", "other words")
    monkeypatch.setattr(ObjectDatabase, "read", counted)
    for words in (["--stat"], ["-p"], ["-p", "--reverse"]):
        reads.clear()
        ok("log", *words)
        assert len(reads) < 20 * 120, words


def test_changes_in_either_order_are_the_same(talk: Run) -> None:
    for number in range(9):
        talk("commit", "-q", "--user", f"message {number}")
    for words in (["--stat"], ["-p"]):
        newest, oldest = (
            [each.strip() for each in f"\n{talk('log', *words, *order).text}".split("\ncommit ")]
            for order in ([], ["--reverse"])
        )
        assert newest[1:] == oldest[:0:-1]


def test_facts_and_settings_are_recorded_and_found(ok: Run, trace: Trace) -> None:
    ok("commit", "--assistant", "42.", "--set", "temperature=0.2", "--meta", "ticket=T-12")
    ok("commit", "--user", "Thanks.")
    (line,) = ok("log", "--meta", "ticket=T-12", "--json").lines
    record = json.loads(line)
    assert (record["facts"], record["settings"]) == ({"ticket": "T-12"}, {"temperature": "0.2"})
    assert "Set:      temperature=0.2" in ok("show", "HEAD~1").lines
    for wrong in (["--meta", "x"], ["--set", "=x"], ["--set", "a=1", "--set", "a=2"]):
        assert trace("commit", "--user", "x", *wrong).code == 2
