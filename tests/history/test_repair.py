"""Repairs as commits: on a branch beside the broken one, once, and so that all of it can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.message_strategies import contexts
from tests.support.subjects import sessions
from tests.support.valid_requests import assert_valid_requests
from trace_store import Environment, FixedClock, Message, ObjectId, Repo, Store, Text
from trace_store import ToolCall as Call
from trace_store import ToolResult as Result
from trace_store.context.compiler import ContextCompiler
from trace_store.context.faults import PROVIDERS
from trace_store.context.repair_steps import repair_context
from trace_store.errors import (
    InvalidInputError,
    InvalidMessageError,
    RefChangedError,
    RevisionNotFoundError,
    UnbornBranchError,
)
from trace_store.history import branch_repair as repairing
from trace_store.history import commit as writing
from trace_store.history.branch_repair import (
    AUTHOR,
    BROKEN,
    LABEL,
    META_KEY,
    REPAIRED,
    REPAIRED_BEFORE,
    SOUND,
    ContextRepairReport,
)
from trace_store.history.draft import Draft
from trace_store.maintenance.fsck import fsck
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit
from trace_store.objects.message import load_parts
from trace_store.providers.validity import NOT_RECORDED
from trace_store.writer import Writer

ASK = Message("user", "Plan the release.")
CALLS = Message("assistant", [Text("I look."), Call("a", "Bash", "{}"), Call("b", "Bash", "{}")])
ANSWER = Message("tool", [Result("a", "one")])
LATE = Message("tool", [Result("b", "two")])
HURRY = Message("user", "Hurry.")
DONE = Message("assistant", "Done.")


@pytest.fixture(params=["disk", "memory"])
def repo(request: pytest.FixtureRequest, tmp_path: Path) -> Repo:
    if request.param == "memory":
        return Repo.memory(author="ada", clock=FixedClock())
    environment = Environment(author="ada")
    return Repo.init(tmp_path, environment=environment, clock=FixedClock(), durability="fast")


def said(contexts: ContextCompiler, revision: str) -> list[tuple[str, Any]]:
    return [(message.role, message.parts) for message in contexts.compile(revision).messages]


def tip(store: Store, branch: str) -> ObjectId | None:
    return store.refs.read(f"refs/heads/{branch}")


def commit_of(repo: Repo, report: ContextRepairReport) -> Commit:
    assert report.result is not None
    return Commit.decode(repo.store.objects.read(report.result.oid))


def everything(repo: Repo) -> tuple[dict[str, ObjectId], int]:
    return dict(repo.store.refs.iterate()), len(set(repo.store.objects.iterate()))


def test_a_sound_branch_is_left_alone(repo: Repo) -> None:
    repo.commit([ASK, DONE])
    before = everything(repo)
    report = sessions(repo.contexts.store).repair()
    assert (report.outcome, report.ref, report.repaired) == (SOUND, "refs/heads/main", "")
    assert (report.faults, report.result, report.message_count) == ((), None, 2)
    assert everything(repo) == before


def test_a_broken_branch_gets_a_sound_one_beside_it(repo: Repo) -> None:
    repo.commit([ASK, CALLS, ANSWER, HURRY])
    base = repo.resolve("main")
    report = sessions(repo.contexts.store).repair("main")
    assert (report.outcome, report.repaired) == (REPAIRED, "refs/heads/repaired/main")
    assert [fault.code for fault in report.faults] == ["orphan-call"]
    assert tip(repo.store, "main") == base
    assert repo.store.refs.head().ref == "refs/heads/main"
    context = repo.compile("repaired/main")
    assert_valid_requests(list(context.messages), strict=True)
    missing = Message("tool", [Result("b", NOT_RECORDED, is_error=True)])
    assert said(repo.contexts, "repaired/main") == [
        (message.role, message.parts) for message in [ASK, CALLS, missing, ANSWER, HURRY]
    ]
    assert not [finding for finding in fsck(repo.store) if finding.severity == "error"]


def test_a_repair_says_what_it_did(repo: Repo) -> None:
    written = repo.commit([ASK, CALLS, LATE, HURRY])
    address = written.addresses[1]
    report = sessions(repo.contexts.store).repair()
    commit = commit_of(repo, report)
    assert commit.parents == (written.oid,)
    assert commit.author == AUTHOR
    assert commit.message == "repair: 1 orphan-call"
    done = "an error result added"
    change = {"code": "orphan-call", "done": done, "message": list(address)}
    assert commit.meta[META_KEY] == {"changes": [change], "counts": {"orphan-call": 1}}
    made = [m for m in repo.compile("repaired/main").messages if LABEL in m.labels]
    assert report.result is not None
    assert [message.address for message in made] == [Address.of(report.result.oid, 0)]


def test_all_of_a_repair_can_be_undone(repo: Repo) -> None:
    """What was taken out, reworded or moved comes back by the ordinary verbs."""
    blank = Message("assistant", [Text(" "), Text("Nearly.")])
    lost = Message("tool", [Result("c", "three"), Text("Hurry.")])
    written = repo.commit([ASK, CALLS, ANSWER, HURRY, LATE, lost, blank, Message("assistant", "")])
    report = sessions(repo.contexts.store).repair()
    assert sorted({fault.code for fault in report.faults}) == [
        "blank-text",
        "empty-message",
        "moved-result",
        "orphan-result",
        "tool-without-call",
    ]
    state = repo.contexts.fold(tip(repo.store, "repaired/main") or b"")
    read = repo.store.objects.read
    for address, message in zip(
        written.addresses,
        [ASK, CALLS, ANSWER, HURRY, LATE, lost, blank, Message("assistant", "")],
        strict=True,
    ):
        assert load_parts(state.entry(address).versions[0].parts, read) == message.parts
    draft = Draft(Writer(repo.store, author="ada").on("repaired/main"))
    draft.restore([written.addresses[7]])
    draft.restore([written.addresses[6]], version=0)
    draft.restore([written.addresses[5], written.addresses[1]])
    draft.remove([m.address for m in repo.compile("repaired/main").messages if LABEL in m.labels])
    writing.write(draft)
    assert said(repo.contexts, "repaired/main") == said(repo.contexts, "main")


def test_nothing_is_repaired_twice(repo: Repo) -> None:
    repo.commit([ASK, CALLS])
    first = sessions(repo.contexts.store).repair()
    before = everything(repo)
    again = sessions(repo.contexts.store).repair()
    assert (again.outcome, again.repaired) == (REPAIRED_BEFORE, first.repaired)
    assert sessions(repo.contexts.store).repair("repaired/main").outcome == SOUND
    assert everything(repo) == before


def test_a_session_that_went_on_is_repaired_anew(repo: Repo) -> None:
    repo.commit([ASK, CALLS])
    first = sessions(repo.contexts.store).repair()
    repo.commit([HURRY])
    second = sessions(repo.contexts.store).repair()
    assert second.repaired == "refs/heads/repaired/main-2"
    assert tip(repo.store, "repaired/main") == (first.result and first.result.oid)
    assert sessions(repo.contexts.store).repair().repaired == "refs/heads/repaired/main-2"


def test_a_repaired_branch_that_broke_again_goes_on(repo: Repo) -> None:
    repo.commit([ASK, CALLS])
    first = sessions(repo.contexts.store).repair()
    writing.commit(
        Writer(repo.store, author="ada").on("repaired/main"), [Message("tool", [Result("x", "?")])]
    )
    second = sessions(repo.contexts.store).repair()
    assert (second.outcome, second.repaired) == (REPAIRED, first.repaired)
    assert [fault.code for fault in second.faults] == ["orphan-result"]
    assert sessions(repo.contexts.store).repair("repaired/main").outcome == SOUND


def test_a_dry_run_writes_nothing(repo: Repo) -> None:
    repo.commit([ASK, CALLS])
    before = everything(repo)
    report = sessions(repo.contexts.store).repair(dry_run=True)
    assert (report.outcome, report.repaired) == (BROKEN, "refs/heads/repaired/main")
    assert len(report.faults) == 2
    assert report.result is None
    assert everything(repo) == before


def test_in_place(repo: Repo) -> None:
    repo.commit([ASK, CALLS])
    report = sessions(repo.contexts.store).repair(in_place=True)
    assert report.repaired == "refs/heads/main"
    assert tip(repo.store, "main") == (report.result and report.result.oid)
    assert tip(repo.store, "repaired/main") is None
    assert sessions(repo.contexts.store).repair().outcome == SOUND


def test_any_commit_can_be_repaired(repo: Repo) -> None:
    repo.commit([ASK, CALLS])
    repo.commit([ANSWER, LATE])
    assert sessions(repo.contexts.store).repair().outcome == SOUND
    base = repo.resolve("main~1")
    report = sessions(repo.contexts.store).repair("main~1")
    assert (report.ref, report.commit) == ("", base)
    assert report.repaired == f"refs/heads/repaired/{base.short()}"
    with pytest.raises(InvalidInputError):
        sessions(repo.contexts.store).repair("main~1", in_place=True)


def test_a_result_that_a_person_took_out_is_not_called_missing(repo: Repo) -> None:
    """Its call went with it."""
    written = repo.commit([ASK, CALLS, ANSWER, LATE, DONE])
    repo.remove([written.addresses[3]])
    assert sessions(repo.contexts.store).repair().outcome == SOUND
    assert said(repo.contexts, "main") == [(each.role, each.parts) for each in [ASK, DONE]]


def test_ghosts_stay(repo: Repo) -> None:
    written = repo.commit([ASK, CALLS, ANSWER, HURRY, DONE])
    repo.remove([written.addresses[3]], ghost=True)
    sessions(repo.contexts.store).repair()
    messages = repo.compile("repaired/main").messages
    assert [message.ghost for message in messages] == [False, False, False, False, True, False]


def test_only_for_one_provider(repo: Repo) -> None:
    repo.commit([Message("assistant", [Call("a", "Bash", "[1]")]), ANSWER])
    assert sessions(repo.contexts.store).repair(providers=["openai"]).outcome == SOUND
    report = sessions(repo.contexts.store).repair(providers=["anthropic"])
    assert {found.code for found in report.faults} == {"leading-assistant", "invalid-arguments"}
    assert set(report.adaptations) == {"anthropic"}
    repo.compile("repaired/main").render("anthropic", strict=True)


def test_what_cannot_be_repaired_is_refused_by_name(repo: Repo) -> None:
    with pytest.raises(UnbornBranchError):
        sessions(repo.contexts.store).repair()
    repo.commit([ASK])
    with pytest.raises(RevisionNotFoundError):
        sessions(repo.contexts.store).repair("nothing-like-it")
    with pytest.raises(InvalidInputError):
        sessions(repo.contexts.store).repair(providers=["unknown"])


def test_a_branch_that_moves_meanwhile_is_not_written_to(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit([ASK, CALLS])

    def slowly(messages: Sequence[Any], tools: Sequence[Any], **options: Any) -> Any:
        repo.commit([HURRY])
        return repair_context(messages, tools, **options)

    monkeypatch.setattr(repairing, "repair_context", slowly)
    with pytest.raises(RefChangedError):
        sessions(repo.contexts.store).repair(in_place=True)
    assert said(repo.contexts, "main")[-1] == (HURRY.role, HURRY.parts)
    assert [name for name, _ in repo.store.refs.iterate()] == ["refs/heads/main"]


@settings(max_examples=examples(250), deadline=None)
@given(contexts.filter(bool), st.data())
def test_a_repaired_branch_holds_what_was_mended(
    messages: list[Message], data: st.DataObject
) -> None:
    """The commit's operations give exactly the mended context, with hidden messages and ghosts about."""
    store = Store.memory()
    try:
        written = writing.commit(Writer(store, author="ada").on("main"), messages)
    except InvalidMessageError:
        return
    hidden = data.draw(st.lists(st.sampled_from(written.addresses), max_size=2, unique=True))
    if hidden:
        draft = Draft(Writer(store, author="ada").on("main"))
        draft.remove(hidden, ghost=data.draw(st.booleans()))
        writing.write(draft)
    compiler = ContextCompiler(store)
    before = said(compiler, "main")
    mended = repair_context(compiler.compile("main").messages)
    report = sessions(compiler.store).repair("main")
    assert said(compiler, "main") == before
    if report.outcome == SOUND:
        assert not mended.faults
        assert tip(store, "repaired/main") is None
    else:
        context = compiler.compile("repaired/main")
        for name in PROVIDERS:
            context.render(name, strict=True)
        if not hidden:
            assert said(compiler, "repaired/main") == [(i.role, i.parts) for i in mended.items]
        assert compiler.verify("repaired/main").matches
        assert sessions(compiler.store).repair("main").outcome == REPAIRED_BEFORE
        assert sessions(compiler.store).repair("repaired/main").outcome == SOUND
