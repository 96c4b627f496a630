"""The verbs of history from Python, as git users would write them."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.merge.support.lines import pending
from trace_store import (
    Conflict,
    Environment,
    FixedClock,
    Message,
    ObjectId,
    Repo,
    Resolution,
    ToolCall,
    ToolResult,
    errors,
)
from trace_store.errors import InvalidInputError, MessageNotFoundError, RefNotFoundError
from trace_store.llm.contract import Completion, Prompt
from trace_store.merge.todo import DROP, Step

ADA = Environment(author="ada")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path, environment=ADA, clock=FixedClock(step=1000))


def said(repo: Repo, revision: str = "HEAD") -> list[str]:
    return [message.text for message in repo.compile(revision)]


def two_wordings(repo: Repo) -> tuple[bytes, int]:
    """Let `main` and `idea` word one message differently; HEAD is on main."""
    asked = repo.append("user", "Which store?").addresses[0]
    repo.branches.switch("idea", create=True)
    repo.edit(asked, "Which database?")
    repo.branches.switch("main")
    repo.edit(asked, "Which file?")
    return asked


def test_a_repository_may_have_another_directory(tmp_path: Path) -> None:
    with Repo.init(tmp_path, directory=tmp_path / "kept", environment=ADA) as repo:
        repo.append("user", "a")
    assert not (tmp_path / ".trace").exists()
    with Repo.open(directory=tmp_path / "kept") as repo:
        assert said(repo) == ["a"]


def test_a_commit_says_what_it_did(repo: Repo) -> None:
    added = repo.append("user", "Which store?")
    assert added.summary() == next(repo.log()).summary() == "user: Which store?"
    assert added.summary(5) == next(repo.log()).summary(5)
    assert repo.annotate("HEAD.0", priority="pinned").summary() == next(repo.log()).summary()
    assert repo.append("user", "Which?", ref="idea").summary() == "user: Which?"


def test_what_has_an_id_names_its_commit(repo: Repo) -> None:
    first = repo.append("user", "a")
    second = repo.append("user", "b")
    branch = repo.branches.create("idea", first)
    entry = next(repo.log(limit=1))
    assert repo.resolve(first) == repo.resolve(branch) == first.oid
    assert repo.resolve(entry) == repo.resolve(second.oid) == second.oid
    assert [message.text for message in repo.compile(branch)] == ["a"]
    assert [each.oid for each in repo.log(branch)] == [first.oid]
    assert len(repo.diff(first, second).changes) == 1
    repo.branches.switch("idea")
    assert repo.merge(entry).after == second.oid
    repo.reset(first, hard=True)
    assert repo.cherry_pick(second).outcome == "done"
    for nothing in (None, 3, [first.oid]):
        with pytest.raises(errors.InvalidInputError, match="revision: a commit is named by text"):
            repo.compile(nothing)  # type: ignore[arg-type]
        with pytest.raises(errors.InvalidInputError, match="a commit is named by text"):
            repo.branches.switch(nothing)  # type: ignore[arg-type]


def test_the_author_may_be_given(tmp_path: Path) -> None:
    with Repo.open_or_init(tmp_path, author="agent:reviewer") as repo:
        repo.append("user", "a")
    with Repo.open(tmp_path, author="agent:writer", environment=ADA) as repo:
        repo.append("user", "b")
        assert [each.author for each in repo.log()] == ["agent:writer", "agent:reviewer"]


def test_branches_are_made_listed_renamed_and_deleted(repo: Repo) -> None:
    first = repo.append("user", "a")
    repo.append("user", "b")
    made = repo.branches.create("idea", first.oid)
    assert (made.name, made.oid, made.is_current) == ("idea", first.oid, False)
    assert [(each.name, each.is_current) for each in repo.branches.list()] == [
        ("idea", False),
        ("main", True),
    ]
    related = repo.branches.list
    assert [each.name for each in related(contains="main")] == ["main"]
    assert [each.name for each in related(merged=first.oid)] == ["idea"]
    assert [each.name for each in related("m*", unmerged="idea")] == ["main"]
    compared = repo.branches.track("idea", "main").tracking
    assert repo.line("idea").status().tracking == compared
    assert compared is not None
    assert (compared.ahead, compared.behind) == (0, 1)
    assert repo.branches.track("idea", None).tracking is None
    with pytest.raises(errors.InvalidInputError):
        repo.branches.track("idea", "idea")
    renamed = repo.branches.rename("idea", "plan")
    assert (renamed.name, renamed.renamed_from) == ("plan", "refs/heads/idea")
    with pytest.raises(errors.AlreadyExistsError):
        repo.branches.create("plan")
    forced = repo.branches.create("plan", "main", force=True)
    assert forced.oid == repo.resolve("main")
    assert repo.resolve(forced.kept or "") == first.oid
    (gone,) = repo.branches.delete("plan")
    assert repo.resolve(gone.kept[0]) == gone.oid
    assert [each.name for each in repo.branches.list()] == ["main"]


def test_a_branch_without_a_commit_is_renamed_and_tracked(repo: Repo) -> None:
    assert repo.branches.rename("main", "plan").tips == ()
    repo.append("user", "a")
    repo.branches.switch("empty", orphan=True)
    branch = repo.branches.track("HEAD", "plan")
    assert branch.tracking is not None
    with pytest.raises(errors.UnbornBranchError):
        branch.oid  # noqa: B018
    assert len(repo.branches.reflog(limit=1)) == 1


def test_false_positives_are_listed(repo: Repo, tmp_path: Path) -> None:
    environment = Environment(data_dir=str(tmp_path / "data"))
    with Repo.open(tmp_path, environment=environment) as other:
        other.maintenance.allow_secrets("abcdefghijkl", "abcdefghijkl")
        assert other.maintenance.allowed_secrets() == ["abcdefghijkl"]
        other.maintenance.allow_secrets("abcdefghijkl", remove=True)
        assert other.maintenance.allowed_secrets() == []
        with pytest.raises(errors.NotFoundError):
            other.maintenance.allow_secrets("abcdefghijkl", remove=True)
        with pytest.raises(errors.InvalidInputError):
            other.maintenance.allow_secrets("?")


def test_head_goes_to_branches_and_commits(repo: Repo) -> None:
    first = repo.append("user", "a")
    repo.append("user", "b")
    assert repo.branches.switch("idea", create=True, start=first.oid).created
    assert said(repo) == ["a"]
    repo.append("user", "c")
    assert repo.branches.switch("-").after.ref == "refs/heads/main"
    assert repo.branches.checkout(first.oid).after.ref is None
    assert said(repo) == ["a"]
    assert repo.branches.checkout("idea").after.ref == "refs/heads/idea"
    assert said(repo) == ["a", "c"]
    assert "moving from" in repo.branches.reflog()[0].message
    assert repo.branches.reflog("idea")[0].new == repo.resolve("HEAD")
    with pytest.raises(errors.RefNotFoundError):
        repo.branches.reflog("nowhere")


def test_a_log_starts_anywhere_and_tells_what_it_reads(repo: Repo) -> None:
    first = repo.append("user", "a")
    idea = repo.append("user", "theirs", ref="idea")
    second = repo.append("assistant", "b, at last")
    assert {each.oid for each in repo.log(everything=True)} == {first.oid, idea.oid, second.oid}
    assert [each.oid for each in repo.log(["main", "^HEAD~1"])] == [second.oid]
    read: list[ObjectId] = []
    [found] = repo.log(role="assistant", tokens=True, walked=lambda each: read.append(each.oid))
    assert (found.oid, read) == (second.oid, [second.oid, first.oid])
    assert found.growth is not None
    assert found.growth.total == repo.compile().token_count
    [(address, message)] = found.messages
    assert (address, message.text) == (second.addresses[0], "b, at last")
    assert found.snippet("AT LAST") is not None
    assert repo.branches.names([second.oid]) == {second.oid: ["HEAD", "refs/heads/main"]}
    repo.branches.delete("idea")
    assert len([*repo.log(everything=True)]) == 2
    assert len([*repo.log(everything=True, trash=True)]) == 3


def test_a_diff_takes_a_range_and_compares_requests(repo: Repo) -> None:
    first = repo.append("user", "a")
    repo.branches.create("idea")
    repo.append("user", "b")
    repo.append("user", "c", ref="idea")
    assert len(repo.diff(None, first).changes) == 1
    assert [each.kinds for each in repo.diff("main...idea").changes] == [("added",)]
    assert len(repo.diff("main..idea").changes) == 2
    assert ("+", "user:") not in repo.diff("main", "main").rendered().lines
    rendered = repo.diff("main...idea").rendered("openai", around=0)
    assert any(sign == "+" and '"c"' in text for sign, text in rendered.lines)
    repo.line("other").append("user", "d")
    with pytest.raises(InvalidInputError, match="no common ancestor"):
        repo.diff("main...other")


def test_a_session_is_found_by_a_message(repo: Repo) -> None:
    repo.append("user", "a")
    answer = repo.append("assistant", "b")
    theirs = repo.append("user", "c", ref="idea")
    session = repo.sessions.find(answer.addresses[0])
    assert (session.ref, session.begin) == ("refs/heads/main", 1)
    assert (session.title, session.turns[session.begin].message.text) == ("a", "b")
    assert ("branch", "main") in session.overview()
    assert repo.sessions.find(theirs.addresses[0]).ref == "refs/heads/idea"
    repo.remove(answer.addresses[0])
    hidden = repo.sessions.find(answer.addresses[0])
    assert hidden.turns[hidden.begin].hidden == "removed"


def test_steps_back_and_forth(repo: Repo) -> None:
    repo.append("user", "a")
    repo.append("user", "b")
    repo.append("user", "c")
    end = repo.resolve("HEAD")
    assert repo.reset("HEAD~2").count == 2
    staged = repo.commit_staged("b and c, not AKIAQXTR4ZWMPLNS7YBD")
    assert staged.message_count == 2
    assert sum(staged.secrets.values()) == 1
    assert "AKIA" not in repo.get("HEAD").message
    assert said(repo) == ["a", "b", "c"]
    done = repo.reset("HEAD~1", hard=True)
    assert said(repo) == ["a"]
    assert done.kept is not None
    before = repo.compile().prefix_hash
    for _ in range(3):
        repo.undo()
    assert repo.resolve("HEAD") == end
    for _ in range(3):
        repo.redo()
    assert repo.compile().prefix_hash == before
    repo.tags.create("v1", message="as it was")
    assert [(each.name, each.target) for each in repo.tags.list("v*")] == [
        ("v1", repo.resolve("HEAD"))
    ]
    repo.tags.delete("v1")
    assert repo.tags.list() == []


def test_a_resolver_answers_with_words_or_resolutions(repo: Repo) -> None:
    two_wordings(repo)
    found = repo.merge("idea", resolver=lambda conflict: "theirs")
    assert (found.outcome, [each.kind for each in found.settled]) == ("merged", ["both-edited"])
    assert said(repo) == ["Which database?"]
    repo.undo()

    def text(conflict: Conflict) -> Resolution:
        assert "text" in conflict.choices
        return Resolution("text", "Which database file?")

    repo.merge("idea", resolver=text)
    assert said(repo) == ["Which database file?"]


def test_what_stops_waits_is_settled_and_goes_on(repo: Repo) -> None:
    asked = two_wordings(repo)
    before = repo.resolve("HEAD")
    assert repo.in_progress is None
    stopped = repo.merge("idea")
    assert stopped.outcome == "stopped"
    waiting = pending(repo)
    assert (waiting.kind, waiting.ref) == ("merge", "refs/heads/main")
    for name in ("after", "included", "oid"):
        with pytest.raises(errors.StateError, match="stopped at conflicts"):
            getattr(stopped, name)
    for verb in (
        lambda: repo.reset("HEAD~1"),
        lambda: repo.revert("HEAD"),
        lambda: repo.rebase("idea"),
    ):
        with pytest.raises(errors.StateError, match="in progress"):
            verb()
    waiting.abort()
    assert repo.resolve("HEAD") == before
    repo.merge("idea")
    (conflict,) = pending(repo).conflicts
    assert conflict.addresses == (asked,)
    assert pending(repo).resolve(conflict, "both") == ()
    assert pending(repo).continue_().outcome == "merged"
    assert repo.in_progress is None
    with pytest.raises(errors.StateError, match="in progress"):
        waiting.continue_()


def test_a_rebase_and_a_pick_go_on_alike(repo: Repo) -> None:
    two_wordings(repo)
    repo.append("user", "more")
    assert repo.rebase("idea").outcome == "stopped"
    pending(repo).resolve("", "ours")
    assert pending(repo).continue_().outcome == "done"
    assert said(repo) == ["Which database?", "more"]
    repo.undo()
    assert said(repo) == ["Which file?", "more"]
    assert repo.cherry_pick("idea").outcome == "stopped"
    assert pending(repo).continue_(resolver=lambda conflict: "theirs").outcome == "done"
    assert said(repo) == ["Which database?", "more"]


def test_picks_take_addresses_and_plans_take_steps(repo: Repo) -> None:
    first = repo.append("user", "a")
    repo.branches.switch("idea", create=True)
    second = repo.commit([{"role": "user", "content": "b"}, {"role": "user", "content": "c"}])
    repo.append("user", "d")
    repo.branches.switch("main")
    assert repo.cherry_pick(second.addresses[1]).outcome == "done"
    assert said(repo) == ["a", "c"]
    repo.branches.switch("idea")
    done = repo.rebase(
        first.oid, plan=lambda steps: [steps[0], Step(DROP, steps[1].oid)], onto="main"
    )
    assert len(done.dropped) == 1
    assert said(repo) == ["a", "b", "c"]


def test_reverts_differences_and_where_things_are(repo: Repo) -> None:
    asked = repo.append("user", "Which store?")
    repo.append("assistant", "SQLite.")
    wrong = repo.append("user", "Use MySQL.")
    repo.append("assistant", "Noted.")
    assert [c.kinds for c in repo.diff("HEAD~1").changes] == [("added",)]
    assert [c.kinds for c in repo.diff(wrong.oid, asked.oid).changes] == [("removed",)] * 2
    assert next(repo.blame()).made.commit == asked.oid
    (found,) = repo.branches.whohas("mysql")
    assert [(h.ref, h.state) for h in found.holders] == [("refs/heads/main", "shown")]
    assert repo.branches.whohas(wrong.addresses[0])[0].wording.address == wrong.addresses[0]
    assert [entry.oid for entry in repo.log(text="mysql")] == [wrong.oid]
    assert [entry.oid for entry in repo.log(role="assistant", limit=1)] == [repo.resolve("HEAD")]

    def fine(context: object) -> bool:
        return all("MySQL" not in message.text for message in context)  # type: ignore[attr-defined]

    assert repo.branches.bisect(fine) == (wrong.oid,)
    assert repo.branches.bisect(fine, good=[asked.oid]) == (wrong.oid,)
    with pytest.raises(errors.StateError, match="but the test says good"):
        repo.branches.bisect(lambda context: True)
    assert repo.branches.bisect(lambda c: None if len(c) == 3 else len(c) < 3) == (
        wrong.oid,
        repo.resolve("HEAD"),
    )
    (done,) = repo.revert(wrong.oid, message="not that one").made
    assert done.reverts == wrong.oid
    assert said(repo) == ["Which store?", "SQLite.", "Noted."]


def test_a_semantic_merge_asks_the_callable_that_is_given(repo: Repo) -> None:
    two_wordings(repo)
    with pytest.raises(errors.StateError, match="needs a model"):
        repo.merge("idea", strategy="semantic")
    asked: list[Prompt] = []

    def model(prompt: Prompt) -> Completion:
        asked.append(prompt)
        question = json.loads(prompt.messages[0][1])
        chosen = [
            {"number": each["number"], "take": "theirs", "why": "It is clearer."}
            for each in question["conflicts"]
        ]
        return Completion(
            json.dumps({"conflicts": chosen, "summaries": [], "conclusion": None}), "scripted-1"
        )

    repo.merge("idea", model=model, resolver=lambda conflict: "ours")
    assert asked == []  # no other strategy asks
    repo.undo()
    with pytest.raises(errors.ConflictError, match="not accepted"):
        repo.merge("idea", strategy="semantic", model=model, review=lambda proposal: False)
    assert said(repo) == ["Which file?"]
    assert repo.merge("idea", strategy="semantic", model=model).outcome == "merged"
    assert said(repo) == ["Which database?"]


def test_in_memory_a_merge_waits_too() -> None:
    repo = Repo.memory(author="ada")
    two_wordings(repo)
    assert repo.merge("idea").outcome == "stopped"
    waiting = repo.in_progress
    assert waiting is not None
    assert len(waiting.conflicts) == 1
    assert waiting.resolve("", "theirs") == ()
    assert waiting.continue_().outcome == "merged"
    assert repo.in_progress is None
    assert said(repo) == ["Which database?"]


def test_what_is_said_about_a_commit_has_no_secret(repo: Repo) -> None:
    key = "sk-ant-api03-" + "Ab3dEf9hIj" * 9 + "AA"
    repo.append("user", "a")
    repo.append("user", "b")
    repo.revert("HEAD", message=f"the key was {key}")
    repo.tags.create("v1", message=f"and is {key}")
    (tag,) = repo.tags.list()
    assert tag.tag is not None
    for text in (tag.tag.message, next(repo.log(limit=1)).commit.message):
        assert key not in text
        assert "redacted" in text.lower()


def test_opening_a_repository_loads_no_verb_of_history() -> None:
    script = (
        "import sys; from trace_store import Repo; Repo.memory().append('user', 'a');"
        "print(*(m for m in sys.modules if m.startswith(('trace_store.merge.', 'trace_store.search.',"
        " 'trace_store.importers.', 'trace_store.exporters.', 'trace_store.bundles.'))))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    rarely = set(run.stdout.split())
    assert rarely <= {f"trace_store.merge.{name}" for name in ("conflicts", "inputs", "llm_assist")}


def test_a_message_keeps_its_address_through_a_rebase(repo: Repo) -> None:
    repo.append("user", "a")
    repo.append("user", "b")
    made = repo.append("user", "c")
    (address,) = made.addresses
    done = repo.rebase("HEAD~2", plan=lambda steps: list(reversed(steps)))
    assert made.oid in dict(done.made)
    assert [message.address for message in repo.compile()][1] == address
    repo.annotate([address, repo.compile().messages[0].address], labels="x")
    repo.edit((made.oid, 0), "c, reworded")
    assert said(repo) == ["a", "c, reworded", "b"]
    assert repo.move(address, last=True).moved == (address,)
    assert [entry.oid for entry in repo.log(follow=address)][-1] == dict(done.made)[made.oid]
    held = [each.ref for found in repo.branches.whohas(address) for each in found.holders]
    assert "refs/heads/main" in held
    with pytest.raises(MessageNotFoundError):
        repo.annotate((ObjectId(b"\1" * 32), 0), labels="x")


def test_what_is_looked_for_may_be_an_address_as_text(repo: Repo) -> None:
    made = repo.append("user", "a 1.0 text")
    for name in ("HEAD.0", f"{made.oid}.0", "a 1.0"):
        assert [found.wording.address for found in repo.branches.whohas(name)] == [
            made.addresses[0]
        ]
    assert repo.branches.whohas("1.0")  # no commit is called so: it is a text
    with pytest.raises(InvalidInputError, match=r"branches\.containing"):
        repo.branches.whohas(made.oid)


def test_an_exchange_is_moved_as_one(repo: Repo) -> None:
    repo.append("user", "a")
    call = repo.commit([Message("assistant", [ToolCall("c", "look", "{}")])]).addresses[0]
    result = repo.commit([Message("tool", [ToolResult("c", "seen")])]).addresses[0]
    last = repo.append("assistant", "b").addresses[0]
    found = repo.move(result, after=last)
    assert found.moved == (call, result)
    assert [each.address for each in repo.compile()][-2:] == [call, result]
    assert repo.move(last, before="HEAD~2.0", dry_run=True).result is None
    assert repo.move(result, last=True).result is None  # it stands there
    repo.move(last)
    assert repo.compile().messages[0].address == last
    with pytest.raises(InvalidInputError, match="one of after, before and last"):
        repo.move(last, after=call, last=True)


def test_what_was_picked_with_another_is_not_picked_again(repo: Repo) -> None:
    repo.append("user", "a")
    repo.branches.switch("side", create=True)
    exchange = repo.commit(
        [
            Message("assistant", [ToolCall("c", "look", "{}")]),
            Message("tool", [ToolResult("c", "x")]),
        ]
    )
    repo.branches.switch("main")
    found = repo.cherry_pick(*exchange.addresses, at="side")
    assert (len(found.made), found.dropped) == (1, ())
    assert [each.role for each in repo.compile()] == ["user", "assistant", "tool"]


def test_a_log_of_a_time_and_of_what_is_gone(repo: Repo) -> None:
    repo.append("user", "a")
    moment = next(iter(repo.log())).time
    when = datetime.fromtimestamp(moment / 1000, UTC)
    for since in (moment, when, when.isoformat()):
        assert len(list(repo.log(since=since))) == 1
    with pytest.raises(InvalidInputError, match="not a time"):
        repo.log(since="some day")
    repo.branches.create("gone")
    repo.branches.delete("gone")
    assert repo.branches.reflog("gone")[-1].old is None
    with pytest.raises(RefNotFoundError):
        repo.branches.reflog("never")


def test_a_plan_is_steps_and_rewords_with_a_message(repo: Repo) -> None:
    repo.append("user", "a")
    repo.append("user", "b")
    for plan in (
        lambda _: None,
        lambda _: "pick",
        lambda steps: [Step("reword", steps[0].oid)],
    ):
        with pytest.raises(InvalidInputError):
            repo.rebase("HEAD~1", plan=plan)  # type: ignore[arg-type]


def test_a_resolver_is_asked_before_the_model(repo: Repo) -> None:
    two_wordings(repo)
    asked: list[object] = []

    def model(prompt: Prompt) -> Completion:
        asked.append(json.loads(prompt.messages[0][1])["conflicts"])
        usage: Any = {"prompt_tokens": 5, "completion_tokens": 1}
        return Completion('{"conflicts": []}', "scripted", usage)

    found = repo.merge("idea", strategy="semantic", model=model, resolver=lambda _: "theirs")
    assert (found.outcome, asked) == ("merged", [[]])
    assert said(repo) == ["Which database?"]
    assert [each.operations for each in repo.log(operation="usage")]


def test_a_text_settles_as_a_text_alone(repo: Repo) -> None:
    two_wordings(repo)
    repo.merge("idea")
    with pytest.raises(InvalidInputError, match="beside the word"):
        pending(repo).resolve(1, "ours", "a text")
