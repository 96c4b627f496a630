"""A purge of a text leaves each message a wording without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import ok, repository, trace
from tests.support.command_line import Run, Trace, record
from trace_store import Image, Message, Reasoning, Repo, Text, ToolCall, ToolResult
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.verify_purged import SHORTEST_BYTES
from trace_store.objects.address import Address

__all__ = ["ok", "repository", "trace"]

NAME = "Hedwig Wanderlust"


def purge(repo: Repo, text: str = NAME, **options: bool) -> dict[str, int]:
    """Purge a text, and return how many messages were reworded on each branch."""
    report = repo.maintenance.purge(
        repo.maintenance.plan_purge(texts=[text]), why="a customer", verify=True, **options
    )
    assert options.get("dry_run") or (report.absence and report.absence.is_proven)
    assert not [each for each in fsck(repo.store) if each.severity == "error"]
    return {each.ref.removeprefix("refs/heads/"): len(each.messages) for each in report.reworded}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path, author="Ada")


def texts(repo: Repo, revision: str = "HEAD") -> list[str]:
    return [message.text for message in repo.compile(revision)]


def test_each_branch_that_shows_it_gets_a_wording(repo: Repo) -> None:
    with repo:
        repo.append("user", "nothing")
        shown = repo.append("user", f"Write to {NAME} today.")
        repo.branches.create("other")
        repo.branches.create("before", "HEAD~1")
        repo.line("other").append("assistant", f"{NAME} has it.")
        hidden = repo.append("user", f"{NAME} once more")
        repo.remove(f"{hidden.oid}.0")
        assert purge(repo) == {"main": 1, "other": 2}
        assert texts(repo) == ["nothing", "Write to [purged] today."]
        assert texts(repo, "other")[1:] == ["Write to [purged] today.", "[purged] has it."]
        assert texts(repo, "HEAD~1")[1] == f"[purged {texts(repo, 'HEAD~1')[1][8:18]}: a customer]"
        assert len(list(repo.log("before"))) == 1
        versions = repo.versions(f"{shown.oid}.0")
        assert [each.is_current for each in versions] == [False, True]
        repo.restore(f"{hidden.oid}.0")  # it was not shown, so it was purged whole
        assert texts(repo)[-1].startswith("[purged 2")


def test_calls_results_and_reasoning(repo: Repo) -> None:
    with repo:
        call = ToolCall("c1", "mail", json.dumps({"to": NAME, "cc": "Ada"}))
        said = [Reasoning(f"{NAME} wants it"), Text("Sent."), call]
        repo.append(Message("assistant", said))
        picture = Image("image/png", b"\x89PNG\r\n\x1a\n")
        repo.append(Message("tool", [ToolResult("c1", [Text(f"to {NAME}: ok"), picture], True)]))
        signed = Reasoning(f"I know {NAME}", "c2lnbmVk")
        repo.append(Message("assistant", [signed, Text(f"{NAME} has it")]))
        assert purge(repo) == {"main": 3}
        first, answer, last = (message.parts for message in repo.compile())
        assert first[0] == Reasoning("[purged] wants it")
        assert isinstance(first[2], ToolCall)
        assert json.loads(first[2].arguments) == {"to": "[purged]", "cc": "Ada"}
        assert isinstance(answer[0], ToolResult)
        assert answer[0] == ToolResult("c1", [Text("to [purged]: ok"), picture], True)
        assert last[-1] == Text("[purged] has it")
        assert repo.compile().to_anthropic()["messages"]


def test_what_cannot_be_reworded_is_purged_whole(repo: Repo) -> None:
    with repo:
        repo.append(Message("user", [Image("image/png", f"\x89PNG {NAME}".encode("latin-1"))]))
        assert purge(repo) == {}
        assert texts(repo)[0].startswith("[purged 2") or not texts(repo)[0]


def test_private_messages_stay_private(repo: Repo) -> None:
    with repo:
        at = repo.append("user", f"Call {NAME}.", private=True)
        assert purge(repo) == {"main": 1}
        [blob] = [part["blob"] for part in repo.contexts.stored_parts(Address.of(at.oid, 0))]
        assert not repo.store.objects.read(blob).startswith(b"\x92")  # it has a salt


def test_a_purge_by_id_changes_no_wording(repo: Repo) -> None:
    with repo:
        at = repo.append("user", f"Write to {NAME} today.")
        [blob] = [part["blob"] for part in repo.contexts.stored_parts(Address.of(at.oid, 0))]
        report = repo.maintenance.purge(repo.maintenance.plan_purge(blob.hex()))
        assert report.reworded == ()
        assert texts(repo)[0].startswith("[purged 2")


def test_nothing_is_reworded_if_the_purge_is_refused_or_tried(repo: Repo) -> None:
    with repo:
        repo.append("user", f"Write to {NAME} today.")
        tip = repo.head.oid
        assert purge(repo, dry_run=True) == {"main": 1}
        plan = repo.maintenance.plan_purge(texts=[NAME])
        with pytest.raises(Exception, match="line"):
            repo.maintenance.purge(plan, why="two\nlines")
        assert repo.head.oid == tip
        assert len(NAME) > SHORTEST_BYTES


def test_a_message_whose_rest_is_refused_is_purged_whole(trace: Trace, ok: Run) -> None:
    key = "AKIA" + "QZ7X4M2N5P3R3T6V"
    ok("commit", "-q", "--secrets", "off", "--user", f"{NAME}: aws_access_key_id = {key}")
    ok("commit", "-q", "--branch", "idea", "--user", f"Write to {NAME} today.")
    with Repo.open(secrets="block") as repo:
        report = repo.maintenance.purge(repo.maintenance.plan_purge(texts=[NAME]))
        found = {each.ref: each.commit is not None for each in report.reworded}
        assert found == {"refs/heads/idea": True, "refs/heads/main": False}
        assert texts(repo, "idea") == ["Write to [purged] today."]
        assert texts(repo)[0].startswith("[purged 2")


def test_the_command_says_what_it_reworded(ok: Run) -> None:
    ok("commit", "-q", "--user", f"Write to {NAME} today.")
    planned = ok("purge", "--match", NAME, "--dry-run")
    assert planned.lines[-1] == "would be reworded without the text: 1 message on main"
    done = record(ok("purge", "--match", NAME, "--yes", "--json"))
    assert [each["ref"] for each in done["reworded"]] == ["refs/heads/main"]
    assert done["reworded"][0]["commit"] == ok("rev-parse", "HEAD").text.strip()
    assert "today" in ok("log", "--json").text or "today" in ok("compile").text
    assert ok("log", "-n", "1").text.rstrip().endswith("purge: wordings without the text")
