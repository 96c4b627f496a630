"""A provider's report sets the token count, later changes add their estimate; finding it has a constant cost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from trace_store import FixedClock, Message, ObjectId, Repo, Store
from trace_store.context.compiler import ContextCompiler
from trace_store.context.usage import Usage
from trace_store.history import commit
from trace_store.history.draft import Draft
from trace_store.history.token_history import token_growth
from trace_store.testing.disks import RecordingDisk
from trace_store.writer import Writer

MODEL = "claude-opus-4-5"
SOURCE = f"provider:{MODEL}"


def usage(total: int, output: int = 40) -> Usage:
    """Return a report of so many tokens in all, most of them from a cache."""
    return Usage(total - output, total - output - 7, 5, output, 10, "anthropic")


def answer(repo: Repo, text: str, total: int, **report: str) -> ObjectId:
    """Commit an answer and the provider's usage report."""
    with repo.batch() as draft:
        draft.append(Message("assistant", text))
        draft.record_usage(usage(total), model=report.get("model", MODEL))
    return repo.resolve("HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Return a repository with a question, an answer and its usage report."""
    with Repo.init(tmp_path) as made:
        made.append("user", "How high is the tower?")
        answer(made, "It has 300 metres.", 5_000)
        yield made


def test_a_report_is_the_count(repo: Repo) -> None:
    context = repo.compile()
    assert (context.token_count, context.token_source) == (5_000, SOURCE)
    assert context.reported_token_count == 5_000
    assert 0 < context.estimated_token_count < 50
    assert context.estimate_source.startswith("estimate:o200k_base")
    before = repo.compile("HEAD~1")
    assert before.token_count == before.estimated_token_count
    assert (before.reported_token_count, before.token_source) == (None, before.estimate_source)


def test_later_messages_add_their_estimate(repo: Repo) -> None:
    at_report = repo.compile().estimated_token_count
    repo.append("user", "And how wide, at the foot of it?")
    context = repo.compile()
    assert context.token_count == 5_000 + context.estimated_token_count - at_report
    assert context.token_source == f"{SOURCE}+estimate"
    answer(repo, "125 metres.", 5_100)
    assert (repo.compile().token_count, repo.compile().token_source) == (5_100, SOURCE)


def test_a_report_may_come_in_a_commit_of_its_own(repo: Repo) -> None:
    repo.append("user", "And how wide?")
    repo.append("assistant", "125 metres.")
    repo.record_usage(usage(5_100), model=MODEL)
    assert (repo.compile().token_count, repo.compile().token_source) == (5_100, SOURCE)


def test_status_the_log_and_the_budget_use_it(repo: Repo) -> None:
    repo.append("user", "And how wide?")
    context = repo.compile()
    status = repo.status()
    assert status.token_count == context.token_count > 5_000
    assert (status.reported_token_count, status.token_source) == (5_000, f"{SOURCE}+estimate")
    assert status.estimated_token_count == context.estimated_token_count


@pytest.mark.parametrize("verb", ["edit", "remove", "ghost", "move", "replace", "merge"])
def test_what_changes_earlier_messages_changes_the_count_by_its_estimate(
    repo: Repo, verb: str
) -> None:
    first = (repo.resolve("HEAD~1"), 0)
    last = (repo.resolve("HEAD"), 0)
    repo.append("user", "And how wide, at the foot of it?")
    answer(repo, "125 metres.", 5_100)
    measured = repo.compile().estimated_token_count
    if verb == "edit":
        repo.edit(first, "How high is the tower of Paris, in metres, with its antennas?")
    elif verb == "remove":
        repo.remove([first, last])
    elif verb == "ghost":
        repo.remove([first], ghost=True)
    elif verb == "move":
        with repo.batch() as draft:
            draft.move([first], after=last)
    elif verb == "replace":
        repo.replace([first, last], [Message("user", "It was about a tower of 300 metres.")])
    else:
        repo.branches.switch("side", create=True, start="HEAD~1")
        repo.append("user", "Said beside it.")
        repo.branches.switch("main")
        repo.merge("side")
    context = repo.compile()
    assert context.token_count == 5_100 + context.estimated_token_count - measured
    assert (context.token_count == 5_100) == (verb == "move")
    assert repo.contexts.compile("HEAD", cold=True).token_count == context.token_count
    repo.append("user", "Next.")
    context = repo.compile()
    assert context.token_count == 5_100 + context.estimated_token_count - measured
    assert (
        repo.contexts.compile("HEAD~1", cold=True).token_count == repo.compile("HEAD~1").token_count
    )
    answer(repo, "Done.", 4_000)
    assert repo.compile().token_count == 4_000


def test_a_report_that_is_too_small_is_not_believed(repo: Repo) -> None:
    """Servers that report only what was not cached, or nothing, would make a budget useless."""
    repo.append("user", "word " * 5_000)
    answer(repo, "So many words.", 100)
    context, status = repo.compile(), repo.status()
    assert context.token_count == context.estimated_token_count > 5_000
    assert (context.reported_token_count, context.doubted_token_count) == (None, 100)
    assert (status.reported_token_count, status.doubted_token_count) == (None, 100)
    assert context.token_source == context.estimate_source
    (newest, *_) = repo.log(tokens=True)
    assert newest.growth is not None
    assert newest.growth.total == context.token_count


@pytest.mark.parametrize(("share", "believed"), [(0.49, False), (0.51, True)])
def test_half_of_an_estimate_is_believed(repo: Repo, share: float, believed: bool) -> None:
    long = repo.append("user", "word " * 5_000).addresses[0]
    repo.append("assistant", "So many words.")
    estimated = repo.compile(model=MODEL).estimated_token_count
    repo.record_usage(usage(int(estimated * share)), model=MODEL)
    assert (repo.compile().reported_token_count is not None) is believed
    repo.remove([long])
    assert repo.compile().token_count > 0
    repo.remove([message.address for message in repo.compile().messages])
    assert repo.compile().token_count == repo.compile().estimated_token_count == 0


@pytest.mark.parametrize(("less", "believed"), [(1, False), (0, True)])
def test_an_exact_count_of_the_text_is_the_least_that_is_believed(
    tmp_path: Path, less: int, believed: bool
) -> None:
    with Repo.init(tmp_path) as repo:
        repo.append("user", "word " * 500)
        repo.append("assistant", "So many words.")
        text = repo.compile(model="gpt-5").text_token_count
        repo.record_usage(usage(text - less), model="gpt-5")
        assert (repo.compile().reported_token_count is not None) is believed


def test_the_last_model_decides_how_tokens_are_counted(repo: Repo) -> None:
    """Also without naming it."""
    assert repo.compile().estimated_token_count == repo.compile(model=MODEL).estimated_token_count
    assert repo.compile().text_token_source == repo.compile(model=MODEL).text_token_source


def test_a_branch_has_the_report_of_where_it_began(repo: Repo) -> None:
    repo.append("user", "And how wide?")
    answer(repo, "125 metres.", 9_000)
    repo.branches.switch("idea", create=True, start="HEAD~2")
    assert repo.compile().token_count == 5_000
    repo.edit((repo.resolve("HEAD~1"), 0), "How high is it?")
    assert repo.compile().reported_token_count == 5_000
    assert repo.compile("main").token_count == 9_000


def test_another_process_sees_it(repo: Repo, tmp_path: Path) -> None:
    repo.edit((repo.resolve("HEAD~1"), 0), "How high is it, then?")
    repo.append("user", "And how wide?")
    context = repo.compile()
    expected = (context.token_count, context.token_source, context.estimated_token_count)
    with Repo.open(tmp_path) as other:
        seen = other.compile()
        assert (seen.token_count, seen.token_source, seen.estimated_token_count) == expected


def test_what_came_between_a_request_and_its_reply_is_added(repo: Repo) -> None:
    sent = repo.append("user", "And how wide?").oid
    repo.append("user", "One more thing: " + "the foot of the tower, not its top. " * 200)
    with repo.batch() as draft:
        draft.append("assistant", "125 metres.")
        draft.record_usage(usage(5_100), model=MODEL, about=sent)
    context, before = repo.compile(), repo.compile(sent)
    came = context.estimated_token_count - before.estimated_token_count
    assert came > 1_500
    assert context.reported_token_count == 5_060
    assert context.token_count == 5_060 + came
    assert repo.contexts.compile("HEAD", cold=True).token_count == context.token_count
    repo.append("user", "Thanks.")
    assert context.token_count < repo.compile().token_count < context.token_count + 10


def test_what_a_compaction_took_during_a_call_is_subtracted(repo: Repo) -> None:
    long = repo.append("user", "All about towers. " * 1_000)
    sent = repo.append("user", "And how wide?").oid
    repo.replace((long.oid, 0), [Message("user", "About towers.", kind="summary")])
    with repo.batch() as draft:
        draft.append("assistant", "125 metres.")
        draft.record_usage(usage(9_000), model=MODEL, about=sent)
    context, before = repo.compile(), repo.compile(sent)
    gone = before.estimated_token_count - context.estimated_token_count
    assert context.token_count == 8_960 - gone < 5_500


def test_the_cost_of_a_summary_is_not_the_size_of_the_context(repo: Repo) -> None:
    start = repo.resolve("HEAD~1")
    with repo.batch() as draft:
        draft.replace([(start, 0)], [Message("user", "About a tower.")])
        draft.record_usage(usage(80_000), model=MODEL)
    assert repo.compile().reported_token_count == 5_000


def test_a_copy_of_an_answer_brings_no_report_along(repo: Repo) -> None:
    repo.append("user", "And how wide?")
    answer(repo, "125 metres.", 9_000)
    repo.branches.switch("idea", create=True, start="HEAD~2")
    repo.append("user", "Something else.")
    repo.cherry_pick("main")
    context = repo.compile()
    assert [each.text for each in context.messages][-1] == "125 metres."
    assert context.reported_token_count == 5_000
    assert repo.contexts.compile("HEAD", cold=True).token_count == context.token_count


def test_a_report_counts_for_models_that_count_alike(repo: Repo) -> None:
    assert repo.compile(model="claude-sonnet-4-5").token_count == 5_000
    other = repo.compile(model="gpt-5")
    assert other.token_count == other.estimated_token_count
    assert other.token_source == "estimate:o200k_base"
    repo.append("user", "And how wide?")
    context = repo.compile(model=MODEL)
    change = (
        context.estimated_token_count - repo.compile("HEAD~1", model=MODEL).estimated_token_count
    )
    assert context.token_count == 5_000 + change


def test_tools_count_in_the_estimate(repo: Repo) -> None:
    bare = repo.compile().estimated_token_count
    schema = {"name": "measure", "description": "Measures a tower. " * 50}
    repo.set_tools([schema])
    context = repo.compile()
    tools = context.estimated_token_count - bare
    assert 200 < tools < 400
    assert context.token_count == 5_000 + tools
    assert context.plain([m.message() for m in context.messages]).token_count == bare + tools
    answer(repo, "Measured.", 6_000)
    assert repo.compile().token_count == 6_000
    measured = repo.compile().estimated_token_count
    repo.set_tools([])
    repo.edit((repo.resolve("HEAD~4"), 0), "How high?")
    for cold in (False, True):
        context = repo.contexts.compile("HEAD", cold=cold)
        assert context.token_count == 6_000 + context.estimated_token_count - measured < 6_000


def test_an_empty_commit_before_any_message_can_be_measured(tmp_path: Path) -> None:
    with Repo.init(tmp_path) as repo:
        repo.record_usage(usage(900), model=MODEL)
        assert repo.compile().token_count == 0
        repo.append("user", "How high is it?")
        assert repo.compile().token_count == 900 + repo.compile().estimated_token_count


@pytest.mark.parametrize("seed", range(6))
def test_an_index_says_what_the_history_says(tmp_path: Path, seed: int) -> None:
    """Whichever way an index grew, counted in between or not."""
    chance = random.Random(seed)
    with Repo.init(tmp_path) as repo:
        for step in range(40):
            shown = [message.address for message in repo.compile().messages]
            what = chance.choice("aaauutermpt") if len(shown) > 3 else "a"
            target = chance.choice(shown or [(ObjectId(bytes(32)), 0)])
            if what == "a":
                repo.append("user", f"message {step} " * chance.randrange(1, 9))
            elif what == "u":
                answer(repo, f"answer {step}", chance.randrange(100, 9_000))
            elif what == "t":
                repo.set_tools([{"name": "t", "description": "x" * chance.randrange(400)}])
            elif what == "e":
                repo.edit(target, f"another wording {step} " * chance.randrange(1, 9))
            elif what == "r":
                repo.remove([target], ghost=chance.random() < 0.3)
            elif what == "m":
                with repo.batch() as draft:
                    draft.move([target], after=None)
            elif what == "p":
                repo.annotate(target, priority="pinned")
            if chance.random() < 0.6:
                warm, cold = repo.compile(), repo.contexts.compile("HEAD", cold=True)
                assert warm.estimated_token_count == cold.estimated_token_count
                assert warm.token_count == cold.token_count
                assert warm.token_source == cold.token_source
        for oid, each in token_growth(repo.contexts, list(repo.log())).items():
            context = repo.compile(ObjectId(oid))
            assert (each.total, each.source) == (context.token_count, context.token_source)


def cost_of_a_turn(folder: Path, count: int, *, edited: bool, cold: bool) -> dict[str, int]:
    """Return calls, files and bytes of one append and one count, with a report among the last commits."""
    disk = RecordingDisk()
    store = Store.init(str(folder), clock=FixedClock(), durability="fast", disk=disk)
    first = commit.commit(Writer(store, author="ada"), [Message("user", "first")]).addresses[0]
    messages = [Message("user", f"message {i}") for i in range(count)]
    for start in range(0, count, 1000):
        commit.commit(Writer(store, author="ada"), messages[start : start + 1000])
    draft = Draft(Writer(store, author="ada"))
    draft.append(Message("assistant", "answer"))
    draft.record_usage(usage(200_000), model=MODEL)
    commit.write(draft)
    contexts = ContextCompiler(store)
    if edited:
        draft = Draft(Writer(store, author="ada"))
        draft.edit(first, "second")
        commit.write(draft)
    assert contexts.compile().token_count == 200_000
    for turn in range(20):
        commit.commit(Writer(store, author="ada"), [Message("user", f"turn {turn}")])
    assert contexts.compile().token_count > 200_000
    if cold:
        store.close()
        store = Store.open(store.layout.root, clock=FixedClock(), durability="fast", disk=disk)
        contexts = ContextCompiler(store)
    disk.reset()
    commit.commit(Writer(store, author="ada"), [Message("user", "one more turn")])
    context = contexts.compile()
    assert context.reported_token_count == 200_000
    assert 200_000 < context.token_count < 200_500
    return disk.counts()


@pytest.mark.parametrize("edited", [False, True])
def test_a_report_is_found_at_the_same_cost_in_a_longer_history(
    tmp_path: Path, edited: bool
) -> None:
    short = cost_of_a_turn(tmp_path / "short", 100, edited=edited, cold=False)
    long = cost_of_a_turn(tmp_path / "long", 10_000, edited=edited, cold=False)
    assert long == short
    assert short["read_bytes"] < 4096


def test_without_a_report_the_newest_answer_names_the_model(repo: Repo, tmp_path: Path) -> None:
    with Repo.init(tmp_path / "other") as made:
        made.append("user", "How high is the tower?")
        assert made.compile().text_token_source == "exact:o200k_base"
        made.append(Message("assistant", "It has 300 metres.", model=MODEL))
        made.append("user", "And how wide?")
        assert made.compile().text_token_source == "estimate:o200k_base*1.25"
        assert made.status().token_count == made.compile(model=MODEL).token_count
        made.append(Message("assistant", "125 metres.", model="gpt-4o"))
        assert made.compile().text_token_source == "exact:o200k_base"
        newest = made.compile().messages[-1].address
        made.remove(newest, ghost=True)
        assert made.compile().text_token_source == "estimate:o200k_base*1.25"
        for _ in range(70):
            made.append("user", "Still there?")
        for entry in made.log(tokens=True):
            found, context = entry.growth, made.compile(entry.oid)
            assert found is not None
            assert (found.total, found.source) == (context.token_count, context.token_source)
    # A report that names no model leaves the choice to the answer.
    answer(repo, "It has 300 metres.", 6_000, model="")
    repo.append(Message("assistant", "And a lift.", model=MODEL))
    assert repo.compile().text_token_source == "estimate:o200k_base*1.25"
