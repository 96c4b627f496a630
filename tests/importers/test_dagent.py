"""dagent's chats and companion files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.checks import assert_recognised
from trace_store import Image, Repo, ToolCall, ToolResult
from trace_store.importers.formats import dagent
from trace_store.maintenance.fsck import fsck

ID = "dev-task-login-T12-in_dev"
USE = {"name": "read", "input": {"path": "a.py"}, "result": "print()"}
CHAT = {
    "messages": [
        {
            "id": "m1",
            "role": "user",
            "content": "Fix the login.",
            "timestamp": "2026-01-20T10:00:00.000Z",
            "metadata": {
                "originalTimestamp": "2026-01-16T09:00:00.000Z",
                "migratedFrom": "session.json",
            },
        },
        {
            "id": "m2",
            "role": "assistant",
            "content": "I read it.",
            "timestamp": "2026-01-20T10:01:00.000Z",
            "metadata": {"toolUses": [USE], "tokens": {"input": 900, "output": 20}, "iteration": 2},
        },
        {
            "id": "m3",
            "role": "assistant",
            "content": "Fixed.",
            "timestamp": "2026-01-20T10:02:00.000Z",
            "metadata": {"internal": True},
        },
    ],
    "totalMessages": 120,
}
SESSION = {
    "id": ID,
    "type": "task",
    "agentType": "dev",
    "featureId": "login",
    "taskId": "T12",
    "taskState": "in_qa",
    "status": "active",
    "createdAt": "2026-01-16T09:00:00.000Z",
    "files": {
        "chat": f"chat_{ID}.json",
        "checkpoint": f"checkpoint_{ID}.json",
        "context": f"context_{ID}.json",
        "agentDescription": f"agent-description_{ID}.json",
    },
}
CHECKPOINT = {
    "version": 1,
    "summary": {
        "completed": ["The form"],
        "inProgress": [],
        "pending": ["The tests"],
        "blockers": [],
        "decisions": ["Use tokens"],
    },
    "compactionInfo": {"messagesCompacted": 117},
}
CONTEXT = {
    "projectRoot": "/Users/someone/app",
    "featureName": "Login",
    "featureGoal": "People sign in.",
    "recentCommits": ["a1b2 form"],
}
DESCRIPTION = {
    "agentType": "dev",
    "roleInstructions": "You write code.",
    "toolInstructions": "Use read.",
}
FILES = {
    "session": SESSION,
    "chat": CHAT,
    "checkpoint": CHECKPOINT,
    "context": CONTEXT,
    "agent-description": DESCRIPTION,
}


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with Repo.init(tmp_path / "project", durability="fast") as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "app" / ".dagent" / "sessions"
    made.mkdir(parents=True)
    for name, data in FILES.items():
        put(made, f"{name}_{ID}.json", data)
    return made


def put(folder: Path, name: str, data: Any) -> None:
    (folder / name).write_text(json.dumps(data, indent=2))


def texts(repo: Repo) -> list[str]:
    return [each.text for each in repo.compile(ref=f"sessions/dagent/{ID}")]


def test_a_session_arrives_whole(repo: Repo, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    report = repo.transcripts.import_(folder.parents[1])
    assert not report.errors
    assert sorted(Path(each.path).name for each in report.files) == [
        *(f"chat_{ID}.json", f"session_{ID}.json")
    ]
    said = texts(repo)
    assert said[0] == "You write code.\n\nUse read."
    assert said[1].startswith("Feature: Login\n\nGoal: People sign in.")
    assert "someone" not in said[1]
    assert said[2].split("\n\n") == [
        *("Summary of 117 earlier messages:", "Completed:\n- The form", "Pending:\n- The tests"),
        "Decisions:\n- Use tokens",
    ]
    assert [each for each in said[3:] if each] == ["Fix the login.", "I read it.", "Fixed."]
    context = repo.compile(ref=f"sessions/dagent/{ID}")
    (call,) = [part for m in context for part in m.parts if isinstance(part, ToolCall)]
    (result,) = [part for m in context for part in m.parts if isinstance(part, ToolResult)]
    assert (call.name, result.call_id, result.text) == ("read", call.id, "print()")
    assert context.messages[-1].labels == {"internal"}
    assert {"iteration-2"} == context.messages[4].labels
    (usage,) = repo.usage(ref=f"sessions/dagent/{ID}")
    assert (usage.fields["input_total"], usage.fields["output_total"]) == (900, 20)
    times = [entry.commit.time for entry in repo.log(ref=f"sessions/dagent/{ID}")]
    assert min(times) == 1_768_554_000_000  # the true time of a migrated message
    (info,) = repo.sessions.list(task="T12")
    facts = info.facts
    assert facts is not None
    assert (facts.type, facts.feature, facts.state, facts.closed) == ("dev", "Login", "in_qa", "")
    assert repo.sessions.open(ID).request("Go on.").body["messages"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert repo.transcripts.export_original(ID).data == before[f"chat_{ID}.json"]


def test_again_only_what_is_new(repo: Repo, folder: Path) -> None:
    repo.transcripts.import_(folder)
    tip = repo.resolve("HEAD", ref=f"sessions/dagent/{ID}")
    again = repo.transcripts.import_(folder)
    assert (again.commits, repo.resolve("HEAD", ref=f"sessions/dagent/{ID}")) == (0, tip)
    put(folder, f"session_{ID}.json", {**SESSION, "taskState": "qa_complete", "status": "archived"})
    put(folder, f"agent-description_{ID}.json", {"roleInstructions": "You review code."})
    more = repo.transcripts.import_(folder)
    assert (more.commits, more.messages) == (1, 0)
    assert texts(repo)[0] == "You review code."
    (info,) = repo.sessions.list(task="T12")
    assert info.facts is not None
    assert (info.facts.state, info.facts.closed) == ("qa_complete", "archived")


def test_in_out_and_in_again(repo: Repo, folder: Path, tmp_path: Path) -> None:
    repo.transcripts.import_(folder.parents[1])
    out = tmp_path / "out"
    out.mkdir()
    done = repo.sessions.export(f"sessions/dagent/{ID}", "dagent", path=out)
    (written,) = out.iterdir()
    assert written.name == f"chat_{ID}.json"
    assert {loss.what for loss in done.losses} == {
        *("message-author", "message-kind", "message-name"),
        "usage-report",  # the instructions from other files came before it
    }
    with Repo.init(tmp_path / "other", durability="fast") as other:
        other.transcripts.import_(written)
        assert [
            (m.role, m.parts, m.labels) for m in other.compile(ref=f"sessions/dagent/{ID}")
        ] == [(m.role, m.parts, m.labels) for m in repo.compile(ref=f"sessions/dagent/{ID}")]


def test_undo_takes_it_back(repo: Repo, folder: Path) -> None:
    repo.transcripts.import_(folder)
    repo.undo()
    assert repo.branches.list() == []


def test_a_session_whose_chat_is_gone(repo: Repo, folder: Path) -> None:
    (folder / f"chat_{ID}.json").unlink()
    repo.transcripts.import_(folder)
    assert len(texts(repo)) == 3
    assert texts(repo)[2].startswith("Summary of 117")


def test_damaged_files_give_what_can_be_read(repo: Repo, folder: Path) -> None:
    whole = (folder / f"chat_{ID}.json").read_bytes()
    (folder / f"chat_{ID}.json").write_bytes(whole[: whole.index(b'"m3"')])
    (folder / f"checkpoint_{ID}.json").write_bytes(b'{"version": 1, "summ')
    (folder / f"context_{ID}.json").write_bytes(b"")
    report = repo.transcripts.import_(folder)
    said = texts(repo)
    assert "Fix the login." in said
    assert "You write code.\n\nUse read." in said
    skips = [skip.detail for each in report.files for skip in each.skips]
    assert any(f"checkpoint_{ID}.json" in each for each in skips)
    assert any(f"context_{ID}.json" in each for each in skips)
    assert not [each for each in fsck(repo.store) if each.severity == "error"]


def test_the_oldest_files(repo: Repo, tmp_path: Path) -> None:
    feature = tmp_path / "feature"
    feature.mkdir()
    at = "2026-01-10T10:00:00.000Z"
    entries = [
        {"role": "user", "content": "See this.", "media": ["media/a.png"], "timestamp": at},
        {"role": "assistant", "content": "A form.", "timestamp": at},
    ]
    put(feature, "chat.json", {"entries": entries})
    (feature / "chat.json.backup").write_text(json.dumps({"entries": entries}))
    task = feature / "nodes" / "T1"
    task.mkdir(parents=True)
    messages = [
        {
            "timestamp": at,
            "direction": "harness_to_task",
            "type": "intention",
            "content": "Build it.",
        },
        {
            "timestamp": at,
            "direction": "task_to_harness",
            "type": "progress",
            "content": "Built.",
            "metadata": {"toolName": "write", "toolInput": {"path": "a"}, "toolResult": "ok"},
        },
    ]
    put(
        task,
        "session.json",
        {"taskId": "T1", "agentId": "dev", "status": "active", "messages": messages},
    )
    report = repo.transcripts.import_(feature)
    assert [each.format for each in report.files] == ["dagent", "dagent"]
    said = {
        each.name: [m.text for m in repo.compile(ref=each.name) if m.text]
        for each in repo.branches.list()
    }
    assert said.pop("sessions/dagent/dev-T1") == ["Build it.", "Built."]
    ((_, chat),) = said.items()
    assert chat == ["See this.\n[file: media/a.png]", "A form."]


PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0\x12\x16\xf1M"
    b"\0\0\0\0IEND\xaeB`\x82"
)


@pytest.mark.parametrize("folder", [".dagent", "."])
def test_images_below_the_feature_are_imported(repo: Repo, tmp_path: Path, folder: str) -> None:
    feature = tmp_path / "feature"
    (feature / "media").mkdir(parents=True)
    (feature / "media" / "a.png").write_bytes(PNG)
    (feature / "media" / "b.png").write_bytes(b"no image")
    (feature / "media" / "c.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "secret.png").write_bytes(PNG)
    media = [
        "media/a.png",
        "media/b.png",
        "media/c.png",
        "../secret.png",
        "/etc/passwd",
        "gone.png",
    ]
    (feature / folder).mkdir(exist_ok=True)
    at = "2026-01-10T10:00:00.000Z"
    entry = {"role": "user", "content": "See this.", "media": media, "timestamp": at}
    put(feature / folder, "chat.json", {"entries": [entry]})
    report = repo.transcripts.import_(feature / folder / "chat.json")
    (branch,) = report.files[0].branches
    (message,) = repo.compile(ref=branch.ref)
    assert [each.data for each in message.parts if isinstance(each, Image)] == [PNG]
    assert message.text == "\n".join(["See this.", *(f"[file: {each}]" for each in media)])
    assert repo.transcripts.import_(feature / folder / "chat.json").commits == 0


def test_recognised() -> None:
    assert_recognised(dagent.FORMAT, json.dumps(CHAT).encode(), True)
    assert_recognised(dagent.FORMAT, json.dumps(CHAT, indent=2).encode(), True)
    others: list[Any] = [
        {"messages": [{"role": "user", "content": "x"}]},
        {"entries": [1]},
        SESSION,
    ]
    for other in others:
        assert_recognised(dagent.FORMAT, json.dumps(other).encode(), False)
