"""Views of a trajectory: their content, and that recorded text never becomes markup."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from tests.exporters.support.pages import Page
from tests.exporters.support.sessions import ATTACKS
from tests.trajectories.support.recorded import (
    COMMITS,
    REAL_FILES,
    THOUGHT,
    record_everything,
    record_trail,
)
from trace_store import Environment, FixedClock, Repo
from trace_store.errors import AlreadyExistsError, InvalidInputError
from trace_store.exporters.html.markup import ALLOWED
from trace_store.objects.message import Message
from trace_store.objects.parts import Reasoning, Text
from trace_store.store.store import Store
from trace_store.trajectories.events import Task
from trace_store.trajectories.exports import FORMS, export
from trace_store.trajectories.views.pull_request import MAXIMUM_CHARACTERS

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def text(repo: Repo, form: str, id: str, *, thinking: bool = False) -> str:
    return (
        repo.trajectories.exports.export(form, id, thinking=thinking, sessions=True)
        .to_bytes()
        .decode()
    )


def checked(html: str) -> Page:
    """Parse a page and check that it has only harmless elements and links."""
    page = Page(html.encode())
    for each in page.elements:
        assert set(each.attributes) <= ALLOWED[each.tag], each
        assert "src" not in each.attributes
    ids = [each.attributes["id"] for each in page.elements if "id" in each.attributes]
    assert len(set(ids)) == len(ids)
    for each in page.all("a"):
        target = each.attributes["href"]
        assert target.startswith("https://") or target.removeprefix("#") in ids
    (style,) = page.said_in("style")
    (policy,) = page.all("meta", lambda e: "http-equiv" in e.attributes)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy.attributes["content"]
    return page


@pytest.mark.parametrize("form", [*FORMS, "html"])
def test_everything_that_matters_is_shown(repo: Repo, form: str) -> None:
    id = record_everything(repo)
    shown = text(repo, form, id)
    said = checked(shown).said() if form in ("page", "html", "timeline-html") else shown
    for words in ("Sign people in with tokens", id, "How do sessions end?", COMMITS[0][:12]):
        assert words in said
    assert "Tokens expire after an hour" in said
    assert ("Rotate the key." in said) == ("timeline" not in form)
    assert ("every server must read it" in said) == ("timeline" not in form)
    assert ("The clock is read twice." in said) == (form != "pr")
    assert THOUGHT not in said


def test_the_page_folds_decisions_and_has_an_outline(repo: Repo) -> None:
    page = checked(text(repo, "page", record_everything(repo)))
    decisions = page.all("article", lambda e: e.has_class("decision"))
    assert [each.attributes["id"] for each in decisions] == ["d1", "d2"]
    assert "open" in next(e for e in page.all("details") if "article" in e.inside).attributes
    (task,) = page.all("a", lambda e: e.attributes["href"].startswith("https:"))
    assert task.attributes["href"] == "https://linear.example/ENG-456"
    targets = [each.attributes["href"] for each in page.all("a") if "nav" in each.inside]
    assert targets == ["#d1", "#d2", "#c1", "#c2"]
    assert "assistant: The clock test fails." in page.said()


def test_a_task_that_has_only_an_address_is_linked(repo: Repo) -> None:
    task = Task("x", url="https://tasks.example/7", state="in_progress")
    page = checked(text(repo, "page", repo.trajectories.start("x", task=task).id))
    (link,) = page.all("a")
    assert link.attributes["href"] == "https://tasks.example/7"
    assert "in progress" in page.said()


def test_an_address_that_is_not_on_the_web_is_no_link(repo: Repo) -> None:
    task = Task("x", id="7", url="javascript:alert(1)")
    id = repo.trajectories.start("x", task=task).id
    assert not checked(text(repo, "page", id)).all("a")
    assert "javascript:" not in text(repo, "markdown", id)


def test_thinking_is_shown_only_if_wanted(repo: Repo, tmp_path: Path) -> None:
    id = record_everything(repo)
    repo.trajectories.chapter("More", trajectory=repo.trajectories.start("Other").id)
    other = repo.trajectories.find().id
    parts = [Reasoning("A second thought."), Text("I am done.")]
    repo.append(Message("assistant", parts))
    thinking = repo.trajectories.record("thinking", "First thought.", trajectory=other).event
    repo.trajectories.amend(thinking.id.hex, trajectory=other, content="Better thought.")
    for form in FORMS:
        for name in (id, other):
            assert "thought." not in text(repo, form, name)
            assert THOUGHT not in text(repo, form, name)
    assert THOUGHT in text(repo, "page", id, thinking=True)
    assert "1 thought left out" in text(repo, "markdown", id)
    shown = text(repo, "markdown", other, thinking=True)
    assert "thinking: A second thought." in shown
    assert "Better thought." in shown
    assert "I am done." in text(repo, "markdown", other)
    folder = repo.trajectories.exports.save_folder(tmp_path / "f", other, sessions=True)
    assert not any("thought." in Path(folder.path, each).read_text() for each in folder.files)


def test_a_first_chapter_of_thinking_alone_is_left_out(repo: Repo) -> None:
    id = repo.trajectories.start("x").id
    repo.append("assistant", "Hidden with it.")
    repo.trajectories.record("thinking", THOUGHT)
    repo.trajectories.chapter("Tests")
    repo.append("assistant", "Looking.")
    repo.trajectories.record("note", "Seen.")
    shown = text(repo, "markdown", id)
    assert "Before the first chapter" not in shown
    assert shown.index("### Tests") < shown.index("Looking.")


def test_recorded_text_stays_text(repo: Repo) -> None:
    tr = repo.trajectories
    for raw in ATTACKS:
        attack = re.sub("[\ud800-\udfff]", "", raw)  # lone surrogates cannot be stored
        id = tr.start(attack[:300], agent="a").id
        alternatives = [{"option": attack, "reason": attack}]
        how: dict[str, Any] = {"tags": [attack[:200]], "trajectory": id}
        tr.decide(attack, attack, reasoning=attack, alternatives=alternatives, **how)
        tr.chapter(attack, trajectory=id)
        tr.record("finding", attack, trajectory=id)
        tr.record("linked", commit="ab`c<", subject=attack, files=[attack], trajectory=id)
        tr.reflect(attack, approach=attack, challenges=[attack], trajectory=id)
        view = tr.exports.view(id, sessions=True)
        for form in FORMS:
            check_text(form, export(view, form).to_bytes().decode())


def check_text(form: str, shown: str) -> None:
    """Check that no recorded text became markup of a view."""
    assert not re.search("[\x00-\x08\x1b\u202e\u2066\u200b]", shown)
    if form in ("page", "timeline-html"):
        page = checked(shown)
        assert not page.all("script")
        assert not page.all("img")
    elif form in ("markdown", "pr"):
        prose = re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", shown)
        prose = re.sub(r"`+[^`\n]*`+", "", prose)
        assert not re.search(r"<(?!/?(details|summary)>)[a-z/!]", prose)
        assert not re.search(r"(?m)^#+ *(forged|99)", prose)


@pytest.mark.parametrize("form", FORMS)
def test_secrets_never_leave(form: str) -> None:
    store = Store.memory(clock=FixedClock())
    with Repo(store, author="ada", environment=Environment(), secrets="off") as repo:
        repo.append("user", f"Use {TOKEN}.")
        id = repo.trajectories.start(f"Use {TOKEN}").id
        repo.trajectories.decide("Which?", TOKEN, reasoning=f"it is {TOKEN}", tags=[TOKEN])
        assert TOKEN in str(repo.trajectories.read(id))
        shown = text(repo, form, id)
    assert "ghp_" not in shown
    assert "Which?" in shown


def test_the_text_of_a_pull_request_leaves_out_what_is_merged(repo: Repo) -> None:
    id = record_everything(repo)
    view = repo.trajectories.exports.view(id, sessions=True)
    shown = export(view, "pr", {COMMITS[1]}).to_bytes().decode()
    assert "Pass the time as an argument" in shown
    assert "How do sessions end?" not in shown
    assert COMMITS[0][:12] not in shown
    assert COMMITS[1][:12] in shown
    assert "How do sessions end?" in export(view, "pr", set(COMMITS)).to_bytes().decode()


def test_the_text_of_a_pull_request_is_never_too_long(repo: Repo) -> None:
    tr = repo.trajectories
    id = tr.start("Long").id
    for number in range(60):
        weight = "critical" if number == 40 else "low"
        tr.decide(
            f"Question {number}?",
            "\u202e" * 500,
            reasoning="<" * 5_000,
            significance=weight,
            alternatives=["\x00" * 500] * 20,
        )
    tr.reflect("<" * 9_000, challenges=["\u202e" * 900] * 90, suggestions=["&amp;" * 900] * 90)
    shown = text(repo, "pr", id)
    assert len(shown) <= MAXIMUM_CHARACTERS
    assert "Question 40?" in shown
    assert "left out, to keep this short" in shown


def test_a_bundle_has_each_once_with_contents(repo: Repo) -> None:
    ids = [record_everything(repo), repo.trajectories.start("A | B").id]
    shown = repo.trajectories.exports.bundle([*ids, ids[0][:12]], sessions=True).to_bytes().decode()
    assert shown.startswith(
        "# 2 trajectories\n\n1. [Sign people in with tokens](#t1), completed\n2. [A &#124; B](#t2)"
    )
    assert shown.count("\n## ") == 2
    assert shown.count('<a id="t2"></a>') == 1
    with pytest.raises(InvalidInputError):
        repo.trajectories.exports.bundle([])


def test_a_folder_has_chapters_and_raw_data(repo: Repo, tmp_path: Path) -> None:
    id, exports = record_everything(repo), repo.trajectories.exports
    folder = tmp_path / "deep" / "why"
    made = exports.save_folder(folder, id, sessions=True)
    assert {each.replace("\\", "/") for each in made.files} - {"trajectory.json"} == {
        *("README.md", "chapters/01-start.md", "chapters/02-tests.md"),
        "artifacts/0007-tool-result.json",
    }
    assert "every server must read it" in (folder / "chapters" / "01-start.md").read_text("utf-8")
    assert "assert 3599" in (folder / "artifacts" / "0007-tool-result.json").read_text("utf-8")
    (folder / "README.md").unlink()
    before = sorted(folder.rglob("*"))
    with pytest.raises(AlreadyExistsError):
        exports.save_folder(folder, id, sessions=True)
    assert sorted(folder.rglob("*")) == before
    exports.save_folder(folder, id, sessions=True, overwrite=True)
    assert (folder / "README.md").exists()


def test_a_question_that_repeats_the_answer_is_shown_once(repo: Repo) -> None:
    id = repo.trajectories.start("x").id
    repo.trajectories.decide("Use JWT", "Use JWT")
    assert text(repo, "pr", id).count("Use JWT") == 1
    assert text(repo, "timeline", id).count("Use JWT") == 1


def test_an_unknown_form_is_named(repo: Repo) -> None:
    id = repo.trajectories.start("x").id
    with pytest.raises(InvalidInputError, match=r"pdf.*page, markdown"):
        repo.trajectories.exports.export("pdf", id)
    with pytest.raises(InvalidInputError, match="since"):
        repo.trajectories.exports.export("page", id, since="main")


def test_an_empty_trajectory_has_all_views(repo: Repo) -> None:
    id = repo.trajectories.start("Nothing yet").id
    for form in FORMS:
        assert "Nothing yet" in text(repo, form, id)


@pytest.mark.parametrize("path", REAL_FILES, ids=lambda path: path.stem[-20:])
def test_real_trajectories(repo: Repo, path: Path) -> None:
    id = record_trail(repo, path)
    whole = repo.trajectories.read(id)
    for form in FORMS:
        shown = text(repo, form, id)
        assert id in shown
        if form in ("page", "timeline-html"):
            said = "".join(checked(shown).said().split())
            for event in whole.decisions:
                assert "".join(event.content.split())[:60] in said
