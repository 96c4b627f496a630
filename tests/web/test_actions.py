"""What a page can do: each action does what it says, and Undo takes it back."""

from __future__ import annotations

import pytest

from tests.exporters.support.pages import Page
from tests.web.support.client import Client
from trace_store import ToolCall, ToolResult
from trace_store.base.ident import FixedClock
from trace_store.repo.repository import Repo


@pytest.fixture
def repo() -> Repo:
    repo = Repo.memory(author="Ada", clock=FixedClock())
    line = repo.line("work")
    line.append("system", "Be brief.")
    for turn in range(6):
        line.append("user", f"Question {turn}")
        line.append("assistant", [ToolCall(f"c{turn}", "Bash", {"command": f"cat {turn}"})])
        line.append("tool", [ToolResult(f"c{turn}", f"line of file {turn}\n" * 400)])
        line.append("assistant", f"Answer {turn} is in the file, which says a lot about it.")
    return repo


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("pin", ""),
        ("remove", ""),
        ("edit", "Another wording"),
        ("trim", "50%"),
        ("compact", "50%"),
        ("clear", ""),
    ],
)
def test_each_action_is_undone_from_the_page(repo: Repo, action: str, text: str) -> None:
    if action == "clear":
        repo.sessions.start("dev", name="x")
        name = "sessions/dev/x"
        repo.line(name).append("user", "Something")
    else:
        name = "work"
    client = Client(repo)
    before = repo.compile(name).prefix_hash, [m.priority for m in repo.compile(name).messages]
    message = str(repo.compile(name).messages[-1].address)
    done = client.act(action, session=name, message=message, text=text)
    after = repo.compile(name).prefix_hash, [m.priority for m in repo.compile(name).messages]
    assert after != before
    assert done["said"].endswith(".")
    assert done["undo"] is True
    undone = client.act("undo", session=name)
    assert undone["said"].startswith("Undid")
    assert not undone["undo"]
    again = repo.compile(name).prefix_hash, [m.priority for m in repo.compile(name).messages]
    assert again == before


def test_pin_edit_remove_and_restore_are_seen_on_the_page(repo: Repo) -> None:
    client = Client(repo)
    address = str(repo.compile("work").messages[1].address)
    client.act("pin", session="work", message=address)
    client.act("edit", session="work", message=address, text="Question nought")
    page = Page(client.page("/session", name="work").encode()).said()
    assert "pinned" in page
    assert "Question nought" in page
    client.act("remove", session="work", message=address)
    assert "Question nought" not in client.page("/session", name="work")
    trash = client.page("/trash", name="work")
    assert "Question nought" in trash
    assert f'value="{address}"' in trash
    assert address in client.act("restore", session="work", message=address)["said"]
    assert "Question nought" in client.page("/session", name="work")
    client.act("unpin", session="work", message=address)
    assert repo.message(address, "work").priority == "normal"


def test_the_trash_shows_and_restores_the_messages_of_every_session(repo: Repo) -> None:
    repo.append("user", "HEAD is elsewhere")
    removed = {}
    for name in ("work", "other"):
        at = repo.line(name).append("user", f"Wrong in {name}").addresses[0]
        repo.line(name).remove(at)
        removed[name] = str(at)
    repo.line("other").append("user", "Something else")
    client = Client(repo)
    page = client.page("/trash")
    for name, address in removed.items():
        assert f"Wrong in {name}" in page
        assert f'href="/session?name={name}"' in page
        assert f'value="{address}" data-session="{name}"' in page
    assert "2 messages" in page
    assert "Wrong in other" not in client.page("/trash", name="work")
    client.act("restore", session="other", message=removed["other"])
    assert "Wrong in other" in client.page("/session", name="other")
    assert "Wrong in other" not in client.page("/trash")
    client.act("undo", session="other")
    assert "Wrong in other" in client.page("/trash")


def test_undo_says_what_it_undid(repo: Repo) -> None:
    client = Client(repo)
    client.act("compact", session="work", text="50%")
    summary = repo.undo(ref="work", dry_run=True).summary
    assert "compression" in summary
    assert summary in client.act("undo", session="work")["said"]


def test_a_deleted_branch_comes_back_from_the_trash(repo: Repo) -> None:
    repo.line("idea").append("user", "An idea")
    repo.branches.delete("idea")
    client = Client(repo)
    page = client.page("/trash", name="work")
    assert "An idea" in page
    (entry,) = [each.ref for each in repo.trash.list(kinds=["branch"]).refs]
    client.act("restore", session="work", message=entry)
    assert "An idea" in client.page("/session", name="idea")


def test_a_checkpoint_is_saved_and_listed(repo: Repo) -> None:
    client = Client(repo)
    assert "before" in client.act("checkpoint", session="work", text="before")["said"]
    assert "before" in client.page("/checkpoints")
    assert (
        "after-the-risk" in client.act("checkpoint", session="work", text="after the risk")["said"]
    )
    assert "before" in client.act("checkpoint", 409, session="work", text="before")["error"]


def test_an_export_is_the_page_of_the_exporter(repo: Repo) -> None:
    answer = Client(repo).ask("/export", {"name": "work"})
    assert answer.content == repo.sessions.export("work", "html", hidden=True).to_bytes()
    assert answer.headers["content-disposition"].startswith('attachment; filename="')


@pytest.mark.parametrize(
    ("action", "given", "status"),
    [
        ("destroy", {}, 400),
        ("__class__", {}, 400),
        ("pin", {}, 400),
        ("pin", {"message": "0123456789ab.0"}, 404),
        ("edit", {"message": "HEAD.0"}, 400),
        ("checkpoint", {"text": "../../x"}, 400),
        ("compact", {"session": "work", "text": "lots"}, 400),
        ("trim", {"session": "gone", "text": "50%"}, 404),
        ("undo", {"session": "gone"}, 404),
        ("restore", {"message": "no such entry"}, 404),
    ],
)
def test_what_cannot_be_done_says_why(
    repo: Repo, action: str, given: dict[str, str], status: int
) -> None:
    before = dict(repo.store.refs.values())
    assert Client(repo).act(action, status, **given)["error"]
    assert dict(repo.store.refs.values()) == before


def test_an_action_has_only_texts_and_a_limit(repo: Repo) -> None:
    client = Client(repo)
    head = {"x-trace-token": client.access.action_token}
    wrong: list[object] = [{"message": 1}, {"session": ["work"]}, [], "text"]
    for given in wrong:
        answer = client.ask("/do/pin", method="POST", headers=head, json=given)
        assert answer.status_code == 400, given
    large = {"message": "HEAD.0", "text": "x" * (5 << 20)}
    assert client.ask("/do/edit", method="POST", headers=head, json=large).status_code == 413
