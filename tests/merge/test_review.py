"""A model's review of reapplied commits: prompt, accepted answers, stored data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.merge.support.lines import ADA, apart, commit_of, files, pending, said
from tests.merge.test_semantic import Scripted
from trace_store import FixedClock, Repo, errors
from trace_store.llm.contract import Prompt


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    found = Repo.init(tmp_path, environment=ADA, clock=FixedClock(), durability="fast")
    for number in range(9):
        found.append("user", f"start {number}")
    apart(
        found,
        lambda: found.append("assistant", "As said above: no server."),
        lambda: found.append("user", "We have a server now."),
    )
    return found


def warning(question: Any) -> Any:
    new, old = question["messages"][-2:]
    return {"warnings": [{"message": old["id"], "others": [new["id"]], "why": "There is one."}]}


def test_what_is_asked_warned_of_and_stored(repo: Repo) -> None:
    model = Scripted(warning)
    before = repo.resolve("HEAD")
    found = repo.rebase("side", judge=model)
    by_rule, judged = found.warnings
    assert (judged.kind, judged.meaning) == ("judged", "There is one.")
    assert (by_rule.kind, by_rule.address) == ("instruction-added", judged.address)
    shown: dict[Any, str] = {message.address: message.text for message in repo.compile()}
    assert shown[judged.address] == "As said above: no server."
    assert [shown[other] for other in judged.others] == ["We have a server now."]
    question = model.question
    assert [each["text"] for each in question["messages"]][:-2] == [
        f"start {n}" for n in range(3, 9)
    ]
    assert [each["was"] for each in question["messages"]][-3:] == [8, None, 9]
    assert question["gone"] == []
    assert [each["meaning"] for each in question["found"]] == [by_rule.meaning]
    tip = commit_of(repo, found.after)
    assert [each.name for each in tip.operations] == ["usage"]
    assert tip.operations[0].fields["model"] == "scripted-1"
    assert tip.author == "ada"
    assert repo.resolve("HEAD~1") == found.made[-1][1]
    repo.undo()
    assert repo.resolve("HEAD") == before


def test_nobody_is_asked_who_was_not_named(repo: Repo) -> None:
    assert [each.kind for each in repo.rebase("side").warnings] == ["instruction-added"]
    assert [each.name for each in commit_of(repo, repo.resolve("HEAD")).operations] == ["add"]
    model = Scripted({"warnings": []})
    assert repo.rebase("side", judge=model).outcome == "up-to-date"
    assert model.prompts == []


def test_what_was_dropped_is_told(repo: Repo) -> None:
    model = Scripted({"warnings": []})
    found = repo.rebase("HEAD~3", plan=lambda steps: steps[1:], judge=model)
    assert found.warnings == ()
    assert [each["text"] for each in model.question["gone"]] == ["start 7"]
    assert said(repo)[-2:] == ["start 8", "As said above: no server."]


def test_a_pick_is_judged_too(repo: Repo) -> None:
    model = Scripted(lambda q: {"warnings": [{"message": q["messages"][-1]["id"], "why": "New."}]})
    (judged,) = repo.cherry_pick("side", judge=model).warnings
    assert (judged.said, judged.others) == ("New.", ())
    assert model.question["messages"][-1]["was"] is None


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("I think it is fine.", "no JSON object"),
        ({"warnings": "none"}, "no JSON object"),
        ({"warnings": [{"message": "abc.0", "why": "x"}]}, "was not shown"),
        (lambda q: {"warnings": [{"message": q["messages"][0]["id"]}]}, "does not say why"),
        ({"warnings": [{}] * 101}, "more than 100"),
    ],
    ids=["prose", "no list", "unknown", "no reason", "many"],
)
def test_nonsense_is_asked_about_once_more_and_writes_nothing(
    repo: Repo, answer: Any, fault: str
) -> None:
    before = files(repo)
    model = Scripted(answer)
    with pytest.raises(errors.ModelNonsenseError, match=fault):
        repo.rebase("side", judge=model)
    assert (len(model.prompts), files(repo)) == (2, before)
    assert fault in model.prompts[1].messages[-1][1]
    mended = Scripted(answer, {"warnings": []})
    found = repo.rebase("side", judge=mended)
    assert found.outcome == "done"
    assert [each.name for each in commit_of(repo, found.after).operations] == ["usage", "usage"]


def test_a_model_that_fails_leaves_all_as_it_was(repo: Repo) -> None:
    before = files(repo)

    def model(prompt: Prompt) -> str:
        raise errors.ModelUnreachableError("nobody there")

    with pytest.raises(errors.ModelUnreachableError):
        repo.rebase("side", judge=model)
    assert files(repo) == before
    assert repo.in_progress is None


def test_what_stopped_is_judged_when_it_goes_on(repo: Repo) -> None:
    target = repo.append("user", "one").addresses[0]
    repo.branches.switch("other", create=True)
    repo.edit(target, "two")
    repo.branches.switch("main")
    repo.edit(target, "three")
    model = Scripted({"warnings": []})
    assert repo.rebase("other", judge=model).outcome == "stopped"
    assert model.prompts == []
    pending(repo).resolve("", "ours")
    repo.append("user", "four")
    assert pending(repo).continue_(judge=model).outcome == "done"
    assert len(model.prompts) == 1
    reworded, last = model.question["messages"][-2:]
    assert (reworded["text"], reworded["said"], last["text"]) == ("two", "three", "four")
