"""JSON output has exactly the keys that docs/json.md lists."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import Run, first
from trace_cli.porcelain.demo import SAMPLE
from trace_store import Repo

PAGE = Path(__file__).resolve().parents[2] / "docs" / "json.md"


def documented(section: str) -> list[list[str]]:
    """Return the keys of each table of a section."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    tables = re.split(r"\n(?!\|)", text)
    return [keys for table in tables if (keys := re.findall(r"(?m)^\| `(\w+)` \|", table))]


@pytest.fixture
def filled(ok: Run, tmp_path: Path) -> Run:
    shutil.copyfile(SAMPLE, tmp_path / "session.jsonl")
    ok("import", "session.jsonl", "-q")
    ok("usage", "record", '{"input_tokens": 1, "output_tokens": 1}', "-q")
    return ok


@pytest.mark.parametrize(
    ("section", "words", "left_out"),
    [
        ("init", ["init", "other"], []),
        ("commit", ["commit", "--user", "x", "--result-json"], []),
        ("commit", ["edit", "HEAD~1.0", "x"], []),
        ("commit", ["pin", "HEAD~1.0"], []),
        ("status", ["status"], []),
        ("branch", ["branch"], []),
        ("switch, checkout", ["switch", "-c", "idea"], []),
        ("switch, checkout", ["checkout", "HEAD~1"], []),
        ("tag", ["tag", "v1", "-m", "x"], []),
        ("checkpoint", ["checkpoint", "save", "here"], []),
        ("checkpoint", ["checkpoint", "save", "summary", "--soft"], []),
        ("trajectory start, trajectory list", ["trajectory", "start", "x"], []),
        ("fork", ["fork", "idea"], []),
        ("fork compare", ["fork", "compare", "HEAD", "HEAD~1"], []),
        ("reset", ["reset", "HEAD~1"], []),
        ("revert", ["revert", "HEAD~1", "-X", "theirs"], []),
        ("undo, redo", ["undo"], []),
        ("undo --list", ["undo", "--list"], []),
        ("trim, dedupe", ["dedupe"], []),
        ("trim, dedupe", ["trim", "--percent", "99", "--partial"], []),
        ("suggest", ["suggest"], []),
        ("trash restore", ["trash", "restore", "--all"], []),
        ("trash empty", ["trash", "empty"], []),
        ("reflog", ["reflog"], []),
        ("log", ["log", "--tokens"], []),
        ("diff", ["diff"], []),
        ("diff --compiled", ["diff", "--compiled"], []),
        ("blame", ["blame"], []),
        ("search", ["search", "the"], []),
        ("whohas", ["whohas", "HEAD~1.0"], []),
        ("bisect", ["bisect", "start"], []),
        ("compile", ["compile", "--table"], []),
        ("compile", ["compile"], ["messages"]),
        ("merge", ["merge", "HEAD"], []),
        ("cherry-pick, rebase", ["rebase", "HEAD~1"], []),
        ("cherry-pick, rebase", ["cherry-pick", "HEAD~1"], []),
        ("move", ["move", "HEAD~1.0", "--first"], []),
        ("repair", ["repair"], []),
        ("tools show", ["tools", "show"], []),
        ("usage show", ["usage", "show"], []),
        ("usage show --by", ["usage", "--by", "tool"], []),
        ("usage show --by", ["usage", "show", "HEAD", "--by", "model"], []),
        ("import", ["import", "session.jsonl"], []),
        ("export", ["export", "--format", "html"], []),
        ("export --native", ["export", "--native"], []),
        ("bundle create", ["bundle", "create", "all.bundle", "--all"], []),
        ("seal", ["seal"], []),
        ("adopt", ["adopt"], []),
        ("secrets rules", ["secrets", "rules"], []),
        ("pack", ["pack"], []),
        ("purge", ["purge", "--verify"], []),
        ("gc, prune", ["gc"], []),
        ("gc, prune", ["prune", "--now", "--dry-run"], []),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else value,
)
def test_keys(filled: Run, section: str, words: list[str], left_out: list[str]) -> None:
    flags = [] if "--result-json" in words else ["--json"]
    found = first(filled(*words, *flags))
    (keys,) = documented(section)
    assert set(found) == set(keys) - set(left_out)


def test_keys_of_trajectories(filled: Run) -> None:
    (of_state,) = documented("trajectory start, trajectory list")
    (of_event,) = documented("trajectory decision")
    (of_whole,) = documented("trajectory show")
    filled("tr", "start", "x", "-q")
    event = first(filled("tr", "decision", "x", "--json"))
    assert set(event) == set(of_event)
    assert set(first(filled("tr", "reflect", "x", "--json"))) == set(of_event)
    assert set(first(filled("tr", "list", "--json"))) == set(of_state)
    status = first(filled("tr", "status", "--json"))
    assert set(status) == {*of_state, "last", "unlinked"}
    assert status["last"][1] == {name: event[name] for name in of_event[3:]}
    whole = first(filled("tr", "show", "--json"))
    assert set(whole) == {*of_state, *of_whole}
    assert whole["chapters"][0]["events"] == status["last"][1:2]
    filled("commit", "--assistant", "[[TRAJECTORY:note]] x [[/TRAJECTORY]] [[TRAJECTORY:x]]", "-q")
    (of_capture,) = documented("trajectory capture")
    captured = first(filled("tr", "capture", "--json"))
    assert set(captured) == set(of_capture)
    assert set(captured["recorded"][0]) == set(of_event)
    assert list(captured["bad"][0]) == ["address", "number", "type", "reason"]
    filled("commit", "--assistant", "We decided against redis.", "-q")
    (of_proposal,) = documented("trajectory propose")
    assert set(first(filled("tr", "propose", "--json"))) == set(of_proposal)
    (of_found,) = documented("trajectory search, trajectory similar")
    for command in ("search", "similar"):
        found = first(filled("tr", command, "x", "--json"))
        assert set(found) == {"trajectory", "title", *of_event[3:], *of_found[1:]}
    (of_score,) = documented("trajectory score")
    assert set(first(filled("tr", "score", "--json"))) == set(of_score)
    (of_compacted,) = documented("trajectory compact")
    filled("tr", "complete", "--trajectory", whole["id"], "-q")
    compacted = first(filled("tr", "compact", "--older-than", "0d", "--json"))
    assert set(compacted) == set(of_compacted)
    (of_export,) = documented("trajectory export, trajectory bundle")
    assert set(first(filled("tr", "export", whole["id"], "--json"))) == set(of_export)
    assert set(first(filled("tr", "bundle", whole["id"], "--json"))) == set(of_export)
    folder = ("-f", "folder", "-o", "f")
    assert set(first(filled("tr", "export", whole["id"], *folder, "--json"))) == set(of_export)


def test_keys_of_runs(filled: Run, tmp_path: Path) -> None:
    with Repo.open(tmp_path).runs.start("x", id="nightly") as run, run.step("thinking") as step:
        step.source("x")
        step.substep("x").complete()
    (of_run,) = documented("runs")
    (of_event,) = documented("runs watch")
    assert set(first(filled("runs", "--json"))) == set(of_run)
    whole = first(filled("runs", "show", "nightly", "--json"))
    assert set(whole) == {*of_run, "steps", "earlier"}
    events = [json.loads(line) for line in filled("runs", "watch", "nightly", "--json").lines]
    assert [list(each) for each in events] == [of_event] * len(events)
    assert events[1]["value"] == whole["steps"][0]


def test_keys_of_imported_trajectories(filled: Run) -> None:
    filled("tr", "start", "x", "-q")
    filled("tr", "export", "-f", "trail", "-o", "x.json")
    of_report, of_file = documented("trajectory import")
    report = first(filled("tr", "import", "x.json", "--json"))
    assert [set(report), set(report["files"][0])] == [set(of_report), set(of_file)]


def test_keys_of_tasks(filled: Run) -> None:
    filled("tr", "start", "#12", "-q")
    for command in ("task", "sync"):
        (keys,) = documented(f"trajectory {command}")
        assert set(first(filled("trajectory", command, "--json"))) == set(keys)


def test_keys_of_the_trash(filled: Run) -> None:
    of_message, of_ref = documented("trash, trash search")
    filled("remove", "HEAD~1.0", "-q")
    filled("reset", "--hard", "HEAD~1", "-q")
    filled("remove", "HEAD~1.0", "-q")
    lines = [json.loads(line) for line in filled("trash", "--json").lines]
    assert set(lines[0]) == set(of_message)
    assert set(lines[-1]) == set(of_ref)


def test_keys_of_what_is_shown(filled: Run) -> None:
    of_commit, of_message, of_object = documented("show")
    (of_log,) = documented("log")
    assert set(first(filled("show", "--json"))) == {*of_log, *of_commit}
    whole = first(filled("show", "--json", "--versions", "HEAD~1.0"))
    assert set(whole) - {"role", "kind", "parts", "name", "model", "id"} == set(of_message)
    blob = filled("ls-context").lines[0].split()[-1]
    assert set(first(filled("show", "--json", blob))) == set(of_object)


def test_keys_inside(filled: Run) -> None:
    text = PAGE.read_text(encoding="utf-8")

    def row(section: str, key: str) -> set[str]:
        part = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
        line = next(line for line in part.splitlines() if line.startswith(f"| `{key}` |"))
        return set(re.findall(r"`(\w+)`", line.split("|", 2)[2]))

    report = first(filled("import", "session.jsonl", "--json"))
    assert set(report["files"][0]) == row("import", "files")
    filled("bundle", "create", "all.bundle", "--all", "-q")
    taken = first(filled("bundle", "import", "all.bundle", "--json"))
    assert [set(taken)] == [set(keys) for keys in documented("bundle import")]
    assert set(taken["refs"][0]) == row("bundle import", "refs")
    listed = first(filled("bundle", "list", "all.bundle", "--json"))
    assert [set(listed)] == [set(keys) for keys in documented("bundle list")]
    verified = first(filled("bundle", "verify", "all.bundle", "--json"))
    assert [set(verified)] == [set(keys) for keys in documented("bundle create")]
    change = first(filled("diff", "HEAD~2", "--json"))["changes"][0]
    assert set(change) == row("diff", "changes")
    table = first(filled("compile", "--json", "--table"))
    assert set(table["messages"][0]) == row("compile", "messages")
    filled("commit", "--tool", "alone", "--call-id", "none", "-q")
    repaired = first(filled("compile", "--json", "-f", "openai"))
    assert set(repaired["repairs"][0]) == row("compile", "repairs")
    assert set(first(filled("repair", "--json"))["faults"][0]) == row("repair", "faults")


def test_keys_of_conflicts(trace: Run, ok: Run) -> None:
    ok("commit", "--user", "a", "-q")
    ok("update-ref", "refs/heads/side", "HEAD")
    ok("edit", "HEAD.0", "mine", "-q")
    ok("symbolic-ref", "HEAD", "refs/heads/side")
    ok("edit", "HEAD.0", "yours", "-q")
    stopped = trace("merge", "main", "--json")
    assert stopped.code == 3
    assert set(*documented("merge")) == set(first(stopped))
    (open_,) = first(ok("resolve", "--json"))["conflicts"]
    assert [open_] == first(stopped)["conflicts"]
    assert set(*documented("resolve")) == set(open_)
    assert list(open_["ours"][0]) == ["address", "role", "text", "hidden", "priority"]
    assert first(ok("merge", "--abort", "--json")) == {"aborted": "merge", "ref": "refs/heads/side"}


def test_a_branch_without_a_commit_is_renamed(ok: Run) -> None:
    renamed = first(ok("branch", "-m", "main", "plan", "--json"))
    assert (renamed["renamed_from"], renamed["commit"]) == ("refs/heads/main", None)
