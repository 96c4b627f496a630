"""Agents in their own repositories and processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.test_agents import CALL, texts
from trace_store import Message, Repo, errors
from trace_store.sessions.session import Session

ROOT = Path(__file__).parents[2]


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with Repo.init(tmp_path / "lead", durability="fast") as made:
        yield made


@pytest.fixture
def lead(repo: Repo) -> Session:
    session = repo.sessions.start("pm", name="lead", limit=50_000)
    session.add(Message("user", "Fix the login."), Message("assistant", [CALL]))
    return session


def sent_out(repo: Repo, lead: Session, folder: Path, **options: object) -> None:
    agent = repo.agents.spawn(
        "far",
        "Find the bug.",
        parent=lead,
        call="call-1",
        store=folder,
        **options,  # type: ignore[arg-type]
    )
    agent.add(Message("assistant", "It is in src/login.py."))
    agent.release()


def run(*words: str, cwd: Path) -> None:
    subprocess.run(words, cwd=cwd, check=True, capture_output=True)


def test_it_is_linked_both_ways(repo: Repo, lead: Session, tmp_path: Path) -> None:
    sent_out(repo, lead, tmp_path / "far")
    (info,) = repo.agents.list()
    assert (info.name, info.parent, info.store) == ("far", lead.ref, str(tmp_path / "far"))
    assert repo.agents.get("far").message_count == 3
    ((link, why),) = repo.agents.linked()
    assert why == ""
    with Repo.open(tmp_path / "far") as other:
        assert link.id == other.store.config.store_id
        ((back, _),) = other.agents.linked()
        assert back.id == repo.store.config.store_id
        assert other.agents.get("far").parent == lead.ref
        assert [entry.oid for entry in other.log(ref="sessions/agent/far")]


@pytest.mark.parametrize(("inherit", "count"), [("full", 4), ("summary", 3), ("none", 2)])
def test_what_it_inherits_is_copied(
    repo: Repo, lead: Session, tmp_path: Path, inherit: str, count: int
) -> None:
    sent_out(repo, lead, tmp_path / "far", inherit=inherit)
    assert repo.agents.get("far").message_count == count


def test_collapse_and_expand(repo: Repo, lead: Session, tmp_path: Path) -> None:
    sent_out(repo, lead, tmp_path / "far", inherit="none")
    done = repo.agents.collapse("far")
    assert (done.call, "src/login.py" in done.text) == ("call-1", True)
    assert not repo.agents.collapse("far").changed
    shown = repo.compile(ref=lead.ref, compiler=repo.agents.expanded(done.address or "", ref=lead))
    assert [each.text for each in shown.messages][-2:] == [
        "Find the bug.",
        "It is in src/login.py.",
    ]
    repo.agents.expand(done.address or "", ref=lead)
    assert texts(repo, lead.ref)[-2:] == ["Find the bug.", "It is in src/login.py."]
    agent = repo.agents.resume("far")
    agent.add(Message("user", "More?"))
    agent.release()
    assert repo.agents.get("far").ahead == 1


def test_one_that_is_gone_or_another_one(repo: Repo, lead: Session, tmp_path: Path) -> None:
    sent_out(repo, lead, tmp_path / "far")
    done = repo.agents.collapse("far")
    shutil.rmtree(tmp_path / "far")
    assert repo.agents.list() == []
    ((_, why),) = repo.agents.linked()
    assert "is gone" in why
    with pytest.raises(errors.RepositoryNotFoundError, match="is gone"):
        repo.agents.expand(done.address or "", ref=lead)
    Repo.init(tmp_path / "far").close()
    with pytest.raises(errors.StateError, match="another repository"):
        repo.agents.get("far")
    assert done.text in texts(repo, lead.ref) or lead.messages()[-1].role == "tool"


def test_three_agents_in_processes_and_two_clones_merged(tmp_path: Path) -> None:
    place = tmp_path / "project"
    with Repo.init(place, durability="fast") as repo:
        lead = repo.sessions.start("pm", name="lead")
        lead.add(Message("user", "Fix the login."))
    code = (
        "import sys, trace_store as t\n"
        "name = sys.argv[1]\n"
        f"repo = t.Repo.open({str(place)!r})\n"
        "agent = repo.agents.spawn(name, 'Find it.', parent='sessions/pm/lead')\n"
        "for number in range(20):\n"
        "    agent.add(t.Message('assistant', f'{name} {number}'))\n"
        "agent.close('done')\n"
        "repo.agents.collapse(name)\n"
        "repo.close()\n"
    )
    names = ["one", "two", "three"]
    processes = [subprocess.Popen([sys.executable, "-c", code, name], cwd=ROOT) for name in names]
    assert [each.wait() for each in processes] == [0, 0, 0]
    with Repo.open(place) as repo:
        found = repo.agents.list()
        assert {(each.name, each.state, each.ahead) for each in found} == {
            (name, "finished", 0) for name in names
        }
        said = texts(repo, "sessions/pm/lead")
        assert {
            name: sum(f"{name} 19" in each for each in said) for name in names
        } == dict.fromkeys(names, 1)
    run("git", "init", "-q", cwd=place)
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        run("git", "config", key, value, cwd=place)
    run("git", "add", "-A", cwd=place)
    run("git", "commit", "-qm", "agents", cwd=place)
    run("git", "clone", "-q", str(place), str(tmp_path / "clone"), cwd=tmp_path)
    for folder, name in ((place, "four"), (tmp_path / "clone", "five")):
        with Repo.open(folder) as repo:
            agent = repo.agents.spawn(name, "More.", parent="sessions/pm/lead")
            agent.add(Message("assistant", f"said {name}"))
            agent.close()
            repo.agents.collapse(name)
        run("git", "add", "-A", cwd=folder)
        run("git", "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", name, cwd=folder)
    run("git", "pull", "-q", "--no-rebase", "--no-edit", str(tmp_path / "clone"), cwd=place)
    with Repo.open(place) as repo:
        assert {each.name for each in repo.agents.list()} == {*names, "four", "five"}
        repo.merge(ref="sessions/pm/lead")
        said = texts(repo, "sessions/pm/lead")
        assert all(any(f"said {name}" in each for each in said) for name in ("four", "five"))
        assert not [f for f in repo.maintenance.fsck() if f.severity == "error"]
