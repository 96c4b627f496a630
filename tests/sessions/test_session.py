"""Sessions: facts, requests, compactions, clear, iterations, states."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.support.provider import Provider
from trace_store import Message, Repo, Text, ToolCall, ToolResult, errors
from trace_store.llm.contract import Completion, Prompt
from trace_store.sessions.session import Session, tokens_in_refusal

LONG = "The harbour was built in stages, and each stage has a report of its own. "


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with Repo.init(tmp_path, durability="fast") as made:
        yield made


def begin(repo: Repo, **options: Any) -> Session:
    wanted = {"name": "one", "limit": 20_000, "reply": 2_000, **options}
    return repo.sessions.start("dev", **wanted)


def talk(session: Session, turns: int, words: int = 60, provider: Provider | None = None) -> None:
    provider = provider or Provider()
    for turn in range(turns):
        request = session.request(f"Question {turn}. " + LONG * (words // 15))
        session.add(
            Message("assistant", f"Answer {turn}. " + LONG * (words // 15)),
            usage=provider.usage(request),
            request=request,
            model="m",
        )


def texts(session: Session) -> list[str]:
    return [each.text for each in session.messages()]


class TestWhatItIs:
    def test_it_is_a_branch_with_facts(self, repo: Repo) -> None:
        session = begin(repo, feature="login", task="T-1", description="You write code.")
        assert session.ref == "refs/heads/sessions/dev/one"
        assert (session.facts.type, session.facts.feature, session.facts.task, session.state) == (
            *("dev", "login", "T-1", "open"),
        )
        assert (session.facts.limit, session.facts.target, session.facts.reply) == (
            20_000,
            0.6,
            2_000,
        )
        again = repo.sessions.open("dev/one")
        assert (again.ref, again.facts) == (session.ref, session.facts)
        assert repo.sessions.open("one").ref == session.ref

    def test_a_name_is_taken_once(self, repo: Repo) -> None:
        begin(repo)
        with pytest.raises(errors.AlreadyExistsError):
            begin(repo)
        assert repo.sessions.start("dev").name != repo.sessions.start("dev").name

    def test_a_compaction_keeps_the_first_prompt_as_title(self, repo: Repo) -> None:
        session = begin(repo)
        session.add(Message("user", "My important first question."), Message("assistant", LONG))
        talk(session, 6)
        session.compact()
        assert "My important" not in session.messages()[0].text.splitlines()[0]
        (info,) = repo.sessions.list()
        assert info.prompt == "My important first question."

    def test_of_contradicting_statements_the_newest_counts(self, repo: Repo) -> None:
        session = begin(repo)
        session.add(
            Message("user", "Use at most 3 workers. Never touch the schema."),
            Message("assistant", "We decided to use SQLite for the store."),
        )
        talk(session, 6)
        session.compact()
        session.add(
            Message("user", "Use at most 8 workers."),
            Message("assistant", "We use PostgreSQL instead of SQLite."),
        )
        state = session.summary.state
        assert state is not None
        assert "Use at most 8 workers." in state.constraints
        assert "Never touch the schema." in state.constraints
        assert "Use at most 3 workers." not in state.constraints
        assert [each.text for each in state.decisions] == ["We use PostgreSQL instead of SQLite."]
        assert set(state.earlier) == {
            "Use at most 3 workers. (later: Use at most 8 workers.)",
            "We decided to use SQLite for the store. (later: We use PostgreSQL instead of SQLite.)",
        }
        assert "Contradicted since" in state.as_text()

    def test_lists_are_filtered(self, repo: Repo) -> None:
        begin(repo, task="T-1", feature="login")
        repo.sessions.start("qa", name="two", task="T-1").state = "in_qa"
        repo.sessions.start("dev", name="three", task="T-2").close("given up")
        repo.append("user", "On main.")
        assert {each.session for each in repo.sessions.list(type="dev")} == {"one", "three"}
        assert [each.session for each in repo.sessions.list(feature="login")] == ["one"]
        assert [each.session for each in repo.sessions.list(active=False)] == ["three"]
        assert {each.session for each in repo.sessions.list(active=True)} == {"one", "two"}
        found = repo.sessions.of_task("T-1")
        assert {state: [e.session for e in each] for state, each in found.items()} == {
            "in_qa": ["two"],
            "open": ["one"],
        }
        assert len(repo.sessions.list()) == 4

    def test_a_state_that_is_there_makes_no_commit(self, repo: Repo) -> None:
        session = begin(repo)
        tip = repo.resolve("HEAD", ref=session.ref)
        session.state = "open"
        assert repo.resolve("HEAD", ref=session.ref) == tip
        session.state = "in_qa"
        assert session.state == "in_qa"

    def test_a_closed_session_takes_nothing(self, repo: Repo) -> None:
        session = begin(repo)
        session.close("merged")
        assert session.facts.closed == "merged"
        for refused in (
            lambda: session.add(Message("user", "x")),
            lambda: session.request("x"),
            session.compact,
            session.clear,
            lambda: setattr(session, "state", "x"),
        ):
            with pytest.raises(errors.StateError, match=r"closed \(merged\)"):
                refused()
        session.reopen()
        session.add(Message("user", "x"))
        assert session.facts.closed == ""

    @pytest.mark.parametrize(
        "wrong",
        [
            {"limit": 0},
            {"limit": "many"},
            {"target": 2},
            {"reply": 30_000},
            {"compaction": "sometimes"},
            {"model": 5},
            {"name": "a b"},
            {"task": 5},
        ],
    )
    def test_wrong_arguments(self, repo: Repo, wrong: dict[str, Any]) -> None:
        with pytest.raises(errors.InvalidInputError):
            begin(repo, **wrong)
        assert repo.sessions.list() == []

    def test_an_imported_branch_can_be_gone_on_with(self, repo: Repo) -> None:
        repo.append("user", "Hello.", ref="talk")
        session = repo.sessions.open("talk")
        assert (session.facts.type, session.facts.limit) == ("", 100_000)
        assert session.request("And?").body["messages"]


class TestRequests:
    def test_the_parts_are_sections(self, repo: Repo) -> None:
        session = begin(repo, description="You write code.", context="A web app.")
        request = session.request("Fix the test.")
        assert request.provider == "anthropic"
        said = str(request.body["system"])
        assert "# Task" in said
        assert "You write code." in said
        assert "# Project" in said
        assert "Fix the test." in str(request.body["messages"])
        assert texts(session) == ["You write code.", "A web app.", "Fix the test."]

    @pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses", "gemini"])
    def test_each_provider(self, repo: Repo, provider: str) -> None:
        session = begin(repo, description="You write code.")
        assert session.request("Fix it.", provider=provider).body
        with pytest.raises(errors.InvalidInputError):
            session.request(provider="unknown")

    def test_a_reply_is_one_commit_with_its_usage(self, repo: Repo) -> None:
        session = begin(repo)
        request = session.request("Fix it.")
        reply = {
            "role": "assistant",
            "model": "claude-opus-4-5",
            "content": [{"type": "text", "text": "Done."}],
            "usage": {"input_tokens": 900, "output_tokens": 5},
        }
        made = session.add(reply, request=request)
        (usage,) = repo.usage(ref=session.ref)
        assert (usage.commit, usage.about) == (made.oid, request.commit)
        assert usage.fields["sent"] == request.sent.hex()
        assert (usage.model, usage.fields["input_total"]) == ("claude-opus-4-5", 900)
        assert session.preview().total > 900

    def test_a_preview_writes_nothing(self, repo: Repo) -> None:
        session = begin(repo, description="You write code.", context="A web app. " * 50)
        tip = repo.resolve("HEAD", ref=session.ref)
        before, after = session.preview(), session.preview("And this? " * 100)
        assert repo.resolve("HEAD", ref=session.ref) == tip
        assert before.description > 0
        assert before.context > before.description
        assert after.messages - before.messages > 200
        assert after.total - before.total == after.messages - before.messages
        assert after.fits

    def test_no_request_is_over_the_limit(self, repo: Repo) -> None:
        session, provider = begin(repo), Provider()
        for turn in range(40):
            request = session.request(f"Question {turn}. " + LONG * 20)
            assert provider.count(request) + session.facts.reply <= session.facts.limit
            session.add(
                Message("assistant", LONG * 30), usage=provider.usage(request), request=request
            )
        assert len(session.history()) > 2
        assert {each.why for each in session.history()} == {"at the limit"}

    def test_a_cut_is_no_deeper_than_needed_and_is_said(self, repo: Repo) -> None:
        session, provider = begin(repo), Provider(1.0)
        first = session.request("Hello.")
        session.add(Message("assistant", "Hi."), usage=provider.usage(first), request=first)
        huge = "\n".join(f"rule {n} must hold." for n in range(9_000))
        request = session.request(huge)
        room = session.facts.room
        assert room / 2 < provider.count(request) <= room
        (said,) = request.done
        assert said.startswith(f"{request.cut[0]} (user) is sent as head and tail: ")

    def test_news_larger_than_the_window_are_cut_for_the_request(self, repo: Repo) -> None:
        session, provider = begin(repo), Provider(1.7)
        session.add(Message("user", "Read it."))
        session.add(Message("assistant", [ToolCall("c1", "read", "{}")]))
        huge = "\n".join(f"line {n}: {LONG}" for n in range(4_000))
        (address,) = session.add(Message("tool", [ToolResult("c1", huge)])).addresses
        request = session.request()
        assert provider.count(request) + session.facts.reply <= session.facts.limit
        assert request.cut == (address.short(8),)
        body = str(request.body)
        assert "line 0:" in body
        assert "line 3999:" in body
        assert f"trace expand {address.short(8)}" in body
        (result,) = repo.message(address, ref=session.ref).message.parts
        assert isinstance(result, ToolResult)
        assert result.text == huge
        session.add(Message("assistant", "Read."), usage=provider.usage(request), request=request)
        later = session.request("Go on.")
        assert provider.count(later) + session.facts.reply <= session.facts.limit
        assert later.done  # now it was shown, and can be compacted

    def test_what_does_not_fit_is_named(self, repo: Repo) -> None:
        session = begin(repo, limit=2_000, reply=500, context="A web app. " * 2_000)
        tip = repo.resolve("HEAD", ref=session.ref)
        with pytest.raises(errors.BudgetError, match=r"8,\d+ context"):
            session.request()
        assert repo.resolve("HEAD", ref=session.ref) == tip

    def test_a_refusal_is_a_report(self, repo: Repo) -> None:
        session = begin(repo)
        talk(session, 3, words=1_500, provider=Provider(1.0, prompt=0))
        request = session.request("More.")
        before = session.preview().total
        session.refused("prompt is too long: 22,500 tokens > 20,000 maximum", request)
        assert before < 20_000 < session.preview().total
        again = session.request()
        assert again.tokens < 18_000
        assert again.done

    def test_a_refusal_without_numbers_counts_as_too_long(self, repo: Repo) -> None:
        session = begin(repo)
        talk(session, 2)
        request = session.request("More.")
        session.refused(ValueError("context length exceeded"), request)
        assert session.preview().total > request.bound

    @pytest.mark.parametrize("wrong", [None, "a request", 3])
    def test_what_was_refused_is_a_request(self, repo: Repo, wrong: Any) -> None:
        session = begin(repo)
        with pytest.raises(errors.InvalidInputError, match="refused request"):
            session.refused("too long", wrong)

    @pytest.mark.parametrize("reported", [0, 10**12])
    def test_nothing_is_learned_from_nonsense(
        self, repo: Repo, tmp_path: Path, reported: int
    ) -> None:
        session = begin(repo)
        talk(session, 3)
        request = session.request("More.")
        usage = {"input_tokens": reported, "output_tokens": 1}
        session.add(Message("assistant", "Yes."), usage=usage, request=request)
        assert session.request("Go on.").tokens < 10_000
        with Repo.open(tmp_path) as other:
            assert other.sessions.open("one").request().tokens < 10_000

    def test_an_empty_prompt_is_refused(self, repo: Repo) -> None:
        session = begin(repo)
        with pytest.raises(errors.InvalidMessageError, match="prompt is empty"):
            session.add(Message("user", ""))

    def test_a_small_limit_keeps_less_for_the_reply(self, repo: Repo) -> None:
        assert begin(repo, limit=5_000, reply=None).facts.reply == 1_250
        assert begin(repo, name="two", limit=80_000, reply=None).facts.reply == 8_000

    @pytest.mark.parametrize("lines", [1_200, 3_000, 6_000])
    def test_a_large_result_leaves_what_was_said(self, repo: Repo, lines: int) -> None:
        session, provider = begin(repo, limit=12_000, reply=1_000), Provider(1.35, prompt=2_000)

        def ask(*parts: Any) -> None:
            request = session.request()
            usage = provider.usage(request)
            session.add(Message("assistant", list(parts)), usage=usage, request=request)

        for turn in range(1, 10):
            session.add(
                Message("user", f"Add endpoint {turn}. You must never drop table t_{turn}.")
            )
            ask(ToolCall(f"c{turn}", "read", f'{{"path":"src/e{turn}.py"}}'))
            said = "line of source code\n" * (lines if turn == 9 else 40)
            session.add(Message("tool", [ToolResult(f"c{turn}", said)]))
            ask(Text(f"Endpoint {turn} is done."))
        shown = str(session.request("Which tables stay?").body)
        assert session.history()
        assert all(f"drop table t_{turn}." in shown for turn in range(1, 10))
        assert "Endpoint 9 is done." in shown

    def test_another_process_learns_the_same(self, repo: Repo, tmp_path: Path) -> None:
        session = begin(repo)
        talk(session, 8, words=150)
        session.add(Message("user", LONG * 10))
        with Repo.open(tmp_path) as other:
            there = other.sessions.open("one")
            assert there.preview().total == pytest.approx(session.preview().total, rel=0.01)
            request = there.request()
            there.add(
                Message("assistant", "Yes."), usage=Provider().usage(request), request=request
            )
        assert session.preview().total == pytest.approx(
            repo.sessions.open("one").preview().total, rel=0.01
        )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prompt is too long: 210,000 tokens > 200000 maximum", 210_000),
        (
            "maximum context length is 128000 tokens. However, your messages resulted in 130512",
            130_512,
        ),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)",
            1_200_000,
        ),
        ("error 413", 0),
        ("", 0),
    ],
)
def test_numbers_of_a_refusal(text: str, expected: int) -> None:
    assert tokens_in_refusal(text, 100_000) == expected


class TestClearing:
    def test_messages_go_and_come_back(self, repo: Repo) -> None:
        session = begin(repo, description="You write code.")
        talk(session, 6, words=150)
        session.compact()
        session.add(Message("user", "Go on."))
        before, hashed = texts(session), repo.compile(ref=session.ref).prefix_hash
        done = session.clear()
        assert done is not None
        assert [each.kind for each in session.messages()] == ["instruction", "summary"]
        repo.undo(ref=session.ref)
        assert repo.compile(ref=session.ref).prefix_hash == hashed
        done = session.clear(all=True)
        assert done is not None
        assert texts(session) == ["You write code."]
        session.add(Message("user", "Later."))
        repo.revert(done.oid, ref=session.ref)
        assert texts(session) == [*before, "Later."]
        assert session.clear() is not None
        assert session.clear() is None

    def test_iterations(self, repo: Repo) -> None:
        session = begin(repo)
        session.add(Message("user", "Make the test pass."))
        with session.iteration() as attempt:
            added = session.add(Message("user", "Try."), Message("assistant", "Tried."))
            attempt.result(checks={"tests": False, "lint": True}, note="the login fails")
        assert texts(session)[1].splitlines() == [
            *("Result of attempt 1:", "- passed: lint", "- failed: tests", "the login fails")
        ]
        assert len(texts(session)) == 2
        assert repo.message(added.addresses[0], ref=session.ref).message.text == "Try."
        with session.iteration() as attempt:
            session.add(Message("user", "Again."))
        assert attempt.number == 2
        assert texts(session)[-1] == "Again."
        with suppress(ZeroDivisionError), session.iteration() as attempt:
            session.add(Message("user", "Once more."))
            attempt.result(note="lost")
            session.add(Message("user", str(1 // 0)))
        assert texts(session)[-2:] == ["Again.", "Once more."]

    def test_results_of_iterations_survive_compactions(self, repo: Repo) -> None:
        session = begin(repo)
        with session.iteration() as attempt:
            session.add(Message("user", "Try."), Message("assistant", "Tried."))
            attempt.result(checks={"tests": False})
        talk(session, 40, words=300)
        assert len(session.history()) > 1
        assert any("- failed: tests" in each for each in texts(session))


class TestCompactions:
    def test_now(self, repo: Repo) -> None:
        session = begin(repo)
        talk(session, 6, words=300)
        hashed = repo.compile(ref=session.ref).prefix_hash
        done = session.compact(instructions="focus on the harbour")
        assert (done.why, done.summariser) == ("asked", "extractive")
        assert done.before > done.after
        assert session.history() == [done]
        assert session.summary.version == 1
        repo.undo(ref=session.ref)
        assert repo.compile(ref=session.ref).prefix_hash == hashed

    def test_nothing_to_compact_is_said(self, repo: Repo) -> None:
        session = begin(repo)
        session.add(Message("user", "Hello."))
        with pytest.raises(errors.StateError, match=r"not compacted|nothing to compact"):
            session.compact()

    def test_three_failures_of_the_model_rest_it(self, repo: Repo) -> None:
        asked: list[int] = []

        def model(prompt: Prompt) -> Completion:
            asked.append(1)
            raise TimeoutError("no answer")

        session = begin(repo, model=model)
        done: list[str] = []
        provider = Provider()
        for turn in range(60):
            request = session.request(f"{turn}. " + LONG * 20)
            done += request.done
            session.add(
                Message("assistant", LONG * 20), usage=provider.usage(request), request=request
            )
        assert len(session.history()) > 4
        assert {each.summariser for each in session.history()} <= {"extractive", "trim"}
        assert len(asked) == 3
        assert "rules write summaries for ten minutes" in done
        assert sum("the model failed" in each for each in done) == 3

    def test_a_model_writes_it(self, repo: Repo) -> None:
        session = begin(repo, model=lambda _: Completion("The harbour is built in stages.", "m"))
        talk(session, 6, words=300)
        done = session.compact()
        assert (done.summariser, done.model) == ("model", "m")
        assert any("built in stages" in each for each in texts(session))

    def test_in_the_background(self, repo: Repo) -> None:
        go, began = threading.Event(), threading.Event()

        def model(_: Prompt) -> Completion:
            began.set()
            go.wait(20)
            return Completion("The harbour is built in stages.", "m")

        session, provider = begin(repo, model=model, compaction="background"), Provider()
        turn = 0
        while not began.is_set():
            turn += 1
            assert turn < 40
            request = session.request(f"{turn}. " + LONG * 10)
            assert provider.count(request) + session.facts.reply <= session.facts.limit
            session.add(
                Message("assistant", LONG * 10), usage=provider.usage(request), request=request
            )
            began.wait(0.05)
        late = [session.add(Message("user", f"Late {n}.")).addresses[0] for n in range(100)]
        go.set()
        session.wait()
        shown = [each.address for each in session.messages()]
        assert shown[-100:] == late
        (done,) = session.history()
        assert (done.why, done.summariser) == ("background", "model")

    def test_a_cancelled_one_writes_nothing(self, repo: Repo) -> None:
        began, go = threading.Event(), threading.Event()

        def model(_: Prompt) -> Completion:
            began.set()
            go.wait(20)
            return Completion("", "m")  # is asked again, and then it is cancelled

        session = begin(repo, model=model, compaction="background", limit=12_000)
        talk(session, 1, words=900)
        while not began.is_set():
            request = session.request(LONG * 10)
            session.add(
                Message("assistant", LONG), usage=Provider().usage(request), request=request
            )
            began.wait(0.05)
        tip = repo.resolve("HEAD", ref=session.ref)
        threading.Timer(0.1, go.set).start()
        session.cancel()
        assert repo.resolve("HEAD", ref=session.ref) == tip
        assert session.history() == []

    def test_off_never_compacts(self, repo: Repo) -> None:
        session = begin(repo, compaction="off")
        with pytest.raises(errors.BudgetError):
            talk(session, 40, words=300)
        assert session.history() == []

    def test_two_at_once_are_safe(self, repo: Repo, tmp_path: Path) -> None:
        begun = threading.Barrier(2)

        def model(_: Prompt) -> Completion:
            begun.wait(20)
            return Completion("The harbour is built in stages.", "m")

        session = begin(repo)
        talk(session, 6, words=300)
        outcomes: list[object] = []

        def compact(here: Repo) -> None:
            other = here.sessions.open("one", model=model)
            try:
                outcomes.append(other.compact())
            except errors.StateError as error:
                outcomes.append(str(error))

        with Repo.open(tmp_path) as other:
            threads = [threading.Thread(target=compact, args=(each,)) for each in (repo, other)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        assert len(session.history()) == 1
        assert "not compacted: another compaction finished first" in outcomes

    def test_events(self, repo: Repo) -> None:
        session = begin(repo)
        follower = repo.store.follow(timeout=0.2)
        talk(session, 6, words=300)
        session.compact()
        session.state = "in_qa"
        session.close()
        seen = [e.data["event"] for e in follower if getattr(e, "kind", "") == "session"]
        assert [*dict.fromkeys(seen)] == [
            *("compaction-started", "compaction-progress", "compaction-done", "state", "closed")
        ]


class TestWhatItCameTo:
    def test_the_summary_knows_what_compactions_hid(self, repo: Repo) -> None:
        session = begin(repo)
        todo = '{"todos":[{"content":"Build","status":"completed"},{"content":"Paint","status":"pending"}]}'
        session.add(Message("user", "Build the harbour. Never use wood."))
        session.add(Message("assistant", [ToolCall("c1", "TodoWrite", todo)]))
        session.add(Message("tool", [ToolResult("c1", "ok")]))
        edit = '{"file_path":"src/a.py","old_string":"a","new_string":"b"}'
        session.add(Message("assistant", [ToolCall("c2", "Edit", edit)]))
        session.add(Message("tool", [ToolResult("c2", "ok")]))
        session.add(Message("assistant", "We decided to use stone, because wood burns."))
        talk(session, 40, words=300)
        assert session.summary.version > 1
        assert "src/a.py" not in str(
            [each.parts for each in session.messages() if each.kind != "summary"]
        )
        state = session.summary.state
        assert state is not None
        assert state is not None
        assert state.request == "Build the harbour. Never use wood."
        assert (state.done, state.pending) == (("Build",), ("Paint",))
        assert "Never use wood." in state.constraints
        assert [each.path for each in state.files] == ["src/a.py"]
        assert any("stone" in each.text for each in state.decisions)
        repo.undo(ref=session.ref)

    def test_everything_is_exported(self, repo: Repo) -> None:
        session = begin(repo, task="T-1")
        talk(session, 6, words=300)
        session.compact()
        found = session.export()
        assert (found["session"], found["task"]) == ("sessions/dev/one", "T-1")
        hidden = [each for each in found["messages"] if each["hidden"] == "replaced"]
        assert len(hidden) >= 6
        assert len(found["messages"]) == 13
        assert len(found["compactions"]) == 1

    def test_reviews_are_decisions(self, repo: Repo) -> None:
        session = begin(repo, task="T-1")
        first = session.review(approved=False, reason="the tests fail")
        assert session.review(approved=True) == first
        decisions = repo.trajectories.read(first).decisions
        assert [(each.question, each.content) for each in decisions] == [
            *(("sessions/dev/one?", "rejected"), ("sessions/dev/one?", "approved"))
        ]
        with pytest.raises(errors.StateError, match="no task"):
            repo.sessions.start("dev").review(approved=True)
