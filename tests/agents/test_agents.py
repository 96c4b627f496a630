"""Agents: spawn, collapse, expand, resume, and their state at a time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.support.provider import Provider
from trace_store import FixedClock, Message, Repo, ToolCall, ToolResult, errors
from trace_store.agents.agent import AgentSession
from trace_store.llm.contract import Completion
from trace_store.sessions.session import Session

ROOT = Path(__file__).parents[2]
CALL = ToolCall("call-1", "Task", '{"prompt":"find the bug"}')


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with Repo.init(tmp_path, durability="fast", clock=FixedClock()) as made:
        yield made


@pytest.fixture
def lead(repo: Repo) -> Session:
    session = repo.sessions.start("pm", name="lead", task="T-1", limit=50_000)
    session.add(Message("user", "Fix the login. Never touch the schema."))
    session.add(
        Message(
            "assistant",
            "I send someone.",
        ),
        Message("assistant", [CALL]),
    )
    return session


def test_it_answers_a_call_that_its_parent_made(repo: Repo, lead: Session) -> None:
    with pytest.raises(errors.InvalidInputError, match="no call 'other' without a result"):
        repo.agents.spawn("scout", "Look.", parent=lead, call="other")
    lead.add(Message("tool", [ToolResult("call-1", "Done.")]))
    with pytest.raises(errors.InvalidInputError, match="no call 'call-1' without a result"):
        repo.agents.spawn("scout", "Look.", parent=lead, call="call-1")


def work(agent: AgentSession, said: str = "The bug is in src/login.py.") -> None:
    request = agent.request()
    edit = ToolCall("e1", "Edit", '{"file_path":"src/login.py","old_string":"a","new_string":"b"}')
    agent.add(Message("assistant", [edit]), usage=Provider().usage(request), request=request)
    agent.add(Message("tool", [ToolResult("e1", "ok")]))
    agent.add(Message("assistant", f"{said} We decided to use tokens, because cookies expire."))


def texts(repo: Repo, ref: str) -> list[str]:
    return [each.text for each in repo.compile(ref=ref)]


class TestSpawning:
    def test_it_is_a_session_that_links_its_parent(self, repo: Repo, lead: Session) -> None:
        agent = repo.agents.spawn("scout", "Find the bug.", parent=lead, call="call-1")
        info = repo.agents.get("scout")
        assert agent.ref == info.ref == "refs/heads/sessions/agent/scout"
        assert (info.parent, info.call, info.purpose) == (lead.ref, "call-1", "Find the bug.")
        assert info.point == repo.resolve("HEAD", ref=lead.ref)
        assert agent.facts.limit == 50_000
        assert agent.facts.task == "T-1"
        assert [each.session for each in repo.sessions.list(type="agent")] == ["scout"]
        (first, *_) = [*repo.log(ref=agent.ref)][::-1]
        assert list(first.commit.links) == [("spawned-by", info.point)]

    @pytest.mark.parametrize(("inherit", "count"), [("full", 4), ("summary", 2), ("none", 1)])
    def test_what_it_inherits(self, repo: Repo, lead: Session, inherit: str, count: int) -> None:
        agent = repo.agents.spawn("scout", "Find the bug.", parent=lead, inherit=inherit)
        said = texts(repo, agent.ref)
        assert len(said) == count
        assert said[-1] == "Find the bug."
        assert any("Never touch the schema" in each for each in said) is (inherit != "none")

    def test_messages_are_inherited(self, repo: Repo, lead: Session) -> None:
        address = lead.messages()[0].address
        agent = repo.agents.spawn("scout", "Find it.", parent=lead, inherit=[address], budget=9_000)
        assert texts(repo, agent.ref) == ["Fix the login. Never touch the schema.", "Find it."]
        assert agent.facts.limit == 9_000

    def test_wrong_ways(self, repo: Repo, lead: Session) -> None:
        repo.agents.spawn("scout", "Find the bug.", parent=lead)
        with pytest.raises(errors.AlreadyExistsError):
            repo.agents.spawn("scout", "Again.", parent=lead)
        with pytest.raises(errors.UnbornBranchError):
            repo.agents.spawn("two", "From main, which has no commit.")
        with pytest.raises(errors.InvalidInputError, match="inherit"):
            repo.agents.spawn("two", "x", parent=lead, inherit="some")
        with pytest.raises(errors.NotFoundError):
            repo.agents.spawn("two", "x", parent=lead, inherit=[f"{'0' * 32}.0"])
        with pytest.raises(errors.RefNotFoundError):
            repo.agents.spawn("two", "x", parent="nowhere")
        with pytest.raises(errors.RefNotFoundError):
            repo.agents.get("two")
        assert len(repo.agents.list()) == 1


class TestCollapsing:
    @pytest.mark.parametrize("inherit", ["full", "none"])
    def test_an_agent_that_said_nothing_has_no_conclusion(
        self, repo: Repo, lead: Session, inherit: str
    ) -> None:
        repo.agents.spawn("scout", "Find the bug.", parent=lead, inherit=inherit)
        before = repo.resolve("HEAD", ref=lead.ref)
        with pytest.raises(errors.StateError, match="has not said anything"):
            repo.agents.collapse("scout")
        assert repo.resolve("HEAD", ref=lead.ref) == before
        assert repo.agents.collapse("scout", text="It took too long.").changed

    def test_it_answers_the_call(self, repo: Repo, lead: Session) -> None:
        agent = repo.agents.spawn("scout", "Find the bug.", parent=lead, call="call-1")
        work(agent)
        done = repo.agents.collapse("scout")
        assert done.changed
        assert (done.call, done.name) == ("call-1", "scout")
        assert "The bug is in src/login.py." in done.text
        assert "Files: src/login.py" in done.text
        assert "- We decided to use tokens, because cookies expire." in done.text
        message = repo.message(done.address or "", ref=lead.ref).message
        (result,) = message.parts
        assert isinstance(result, ToolResult)
        assert (message.role, result.call_id, result.text) == ("tool", "call-1", done.text)
        assert not [each for each in lead.request().repairs if each.is_fault]

    def test_again_it_is_about_what_is_new(self, repo: Repo, lead: Session) -> None:
        agent = repo.agents.spawn("scout", "Find the bug.", parent=lead, call="call-1")
        work(agent)
        repo.agents.collapse("scout")
        assert not repo.agents.collapse("scout").changed
        assert repo.agents.get("scout").ahead == 0
        agent.add(Message("user", "And the tests?"), Message("assistant", "They pass now."))
        assert repo.agents.get("scout").ahead == 2
        again = repo.agents.collapse("scout")
        assert "They pass now." in again.text
        assert "2 messages" in again.text
        assert "src/login.py" not in again.text
        assert again.call == ""
        assert list(repo.compile(ref=lead.ref))[-1].kind == "summary"

    def test_a_conclusion_may_be_given_or_written(self, repo: Repo, lead: Session) -> None:
        agent = repo.agents.spawn("scout", "Find the bug.", parent=lead)
        work(agent)
        assert "Nothing found." in repo.agents.collapse("scout", text="Nothing found.").text
        agent.add(Message("assistant", "More."))
        answer = '{"summary": "It was the cookie.", "decisions": [], "open_ends": []}'
        made = repo.agents.collapse("scout", model=lambda _: Completion(answer, "m"))
        assert "It was the cookie." in made.text
        agent.add(Message("assistant", "Even more."))
        head = repo.resolve("HEAD", ref=lead.ref)
        with pytest.raises(errors.ModelError):
            repo.agents.collapse("scout", model=lambda _: Completion("no JSON", "m"))
        assert repo.resolve("HEAD", ref=lead.ref) == head

    def test_not_into_itself(self, repo: Repo, lead: Session) -> None:
        agent = repo.agents.spawn("scout", "Find the bug.", parent=lead)
        with pytest.raises(errors.InvalidInputError, match="into itself"):
            repo.agents.collapse("scout", to=agent)

    def test_expanded_for_one_compile_or_for_good(self, repo: Repo, lead: Session) -> None:
        agent = repo.agents.spawn("scout", "Find the bug.", parent=lead, inherit="none")
        work(agent)
        done = repo.agents.collapse("scout")
        lead.add(Message("user", "Thanks."))
        head, before = repo.resolve("HEAD", ref=lead.ref), texts(repo, lead.ref)
        shown = repo.compile(
            ref=lead.ref, compiler=repo.agents.expanded(done.address or "", ref=lead)
        )
        assert repo.resolve("HEAD", ref=lead.ref) == head
        said = [each.text for each in shown.messages]
        at = before.index(done.text)
        assert said[: at + 2] == [*before[: at + 1], "Find the bug."]
        assert said[-1] == "Thanks."
        assert len(said) == len(before) + 4
        made = repo.agents.expand(done.address or "", ref=lead)
        assert made.changed
        assert texts(repo, lead.ref) == said
        assert not repo.agents.expand(done.address or "", ref=lead).changed
        with pytest.raises(errors.InvalidInputError, match="not the conclusion of an agent"):
            repo.agents.expand(lead.messages()[0].address, ref=lead)

    def test_a_deleted_agent_can_be_expanded(self, repo: Repo, lead: Session) -> None:
        agent = repo.agents.spawn("scout", "Find the bug.", parent=lead, inherit="none")
        work(agent)
        done = repo.agents.collapse("scout")
        agent.release()
        repo.sessions.delete("scout")
        repo.trash.empty()
        repo.maintenance.gc()
        repo.maintenance.prune()
        repo.agents.expand(done.address or "", ref=lead)
        assert any("We decided to use tokens" in each for each in texts(repo, lead.ref)[3:])


class TestStates:
    def test_running_waiting_finished(self, repo: Repo, lead: Session) -> None:
        agent = repo.agents.spawn("scout", "Find the bug.", parent=lead)
        assert repo.agents.get("scout").state == "running"
        agent.add(Message("assistant", [ToolCall("c9", "Bash", "{}")]))
        assert repo.agents.get("scout").state == "waiting"
        assert [each.id for each in agent.open_calls] == ["c9"]
        agent.add(Message("tool", [ToolResult("c9", "ok")]))
        agent.close("done")
        assert repo.agents.get("scout").state == "finished"

    def test_a_killed_one_is_interrupted_and_resumed(
        self, repo: Repo, lead: Session, tmp_path: Path
    ) -> None:
        code = (
            "import os, sys, trace_store as t\n"
            "from trace_store import Message, ToolCall\n"
            f"repo = t.Repo.open({str(tmp_path)!r})\n"
            "agent = repo.agents.spawn('scout', 'Find it.', parent='sessions/pm/lead')\n"
            "agent.add(Message('assistant', [ToolCall('c9', 'Bash', '{}')]))\n"
            "print('there', flush=True)\n"
            "sys.stdin.read()\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        assert repo.agents.get("scout").state == "waiting"
        with pytest.raises(errors.LockedError):
            repo.agents.resume("scout")
        process.kill()
        process.communicate()
        assert repo.agents.get("scout").state == "interrupted"
        agent = repo.agents.resume("scout")
        assert [each.id for each in agent.open_calls] == ["c9"]
        assert agent.purpose == "Find it."
        agent.add(Message("tool", [ToolResult("c9", "ok")]))
        assert repo.agents.get("scout").state == "running"

    def test_the_tree(self, repo: Repo, lead: Session) -> None:
        first = repo.agents.spawn("one", "a", parent=lead)
        repo.agents.spawn("two", "b", parent=lead)
        repo.agents.spawn("deep", "c", parent=first)
        assert [(depth, each.name) for depth, each in repo.agents.tree()] == [
            *((0, "one"), (1, "deep"), (0, "two"))
        ]
        assert [each.name for each in repo.agents.list(parent=lead)] == ["one", "two"]


class TestWhatTheyKnew:
    def test_at_a_time_or_a_commit_of_another_line(self, repo: Repo, lead: Session) -> None:
        agent = repo.agents.spawn("scout", "Find the bug.", parent=lead, inherit="none")
        agent.add(Message("user", "The password is swordfish."))
        then = lead.add(Message("user", "A remark of the lead.")).oid
        agent.add(Message("user", "No, it is herring."))
        knew: Any = repo.compile(ref=agent.ref, at=str(then))
        assert [each.text for each in knew] == ["Find the bug.", "The password is swordfish."]
        assert [h.ref for v in repo.branches.whohas("swordfish", at=then) for h in v.holders] == [
            agent.ref
        ]
        assert repo.branches.whohas("herring", at=then) == []
        assert len(repo.branches.whohas("herring")) == 1
        with pytest.raises(errors.InvalidInputError):
            repo.branches.whohas("herring", at="some day")

    def test_the_timeline(self, repo: Repo, lead: Session) -> None:
        agent = repo.agents.spawn("scout", "Find the bug.", parent=lead, inherit="full")
        lead.add(Message("user", "A remark of the lead."))
        agent.add(Message("assistant", "Found."))
        found = repo.agents.timeline()
        assert [each.agent for each in found][-3:] == ["scout", "sessions/pm/lead", "scout"]
        assert sorted(each.time for each in found) == [each.time for each in found]
        assert len({each.commit for each in found}) == len(found)
