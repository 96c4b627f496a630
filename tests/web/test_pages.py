"""What a reader finds on the pages."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.exporters.support.pages import Page
from tests.exporters.support.sessions import rich_repository
from tests.web.support.client import Client
from trace_store import Message, ToolCall, ToolResult
from trace_store.base.ident import FixedClock, format_time
from trace_store.repo.repository import Repo
from trace_store.web.session_page import LONGEST, WINDOW


def articles(html: str) -> list[str]:
    return re.findall(r'<article[^>]* id="([0-9a-f.]+)"', html)


def long_repository(count: int) -> Repo:
    repo = Repo.memory(clock=FixedClock())
    with repo.batch() as batch:
        for at in range(count):
            batch.append("assistant" if at % 2 else "user", f"message {at} says word{at % 7}")
    return repo


def test_sessions_are_listed_searched_and_filtered() -> None:
    repo = Repo.memory(clock=FixedClock())
    repo.line("sessions/dev/build").append("user", "Build the parser")
    repo.line("sessions/qa/check").append("user", "Check the parser")
    client = Client(repo)
    said = Page(client.page("/").encode()).said()
    assert "Build the parser" in said
    assert "2 sessions" in said
    said = Page(client.page("/", q="build").encode()).said()
    assert "Build the parser" in said
    assert "Check the parser" not in said
    assert "1 session" in said
    assert "No session matches" in client.page("/", agent="dev", q="check")
    assert "Check the parser" in client.page("/", agent="qa")
    repo.sessions.start("dev", name="fix", task="T-7", description="Fix the lexer")
    assert "1 session" in client.page("/", task="T-7")
    assert 'value="T-7" selected' in client.page("/", task="T-7")
    assert "No session matches" in client.page("/", task="T-7", agent="qa")
    assert "1 session" in client.page("/", state="open")
    assert "No session matches" in client.page("/", until="2020-01-01")
    today = format_time(repo.store.clock.now())[:10]
    for day in (today, "today"):
        assert "3 sessions" in client.page("/", since=day, until=day), "a date is its whole day"


@pytest.mark.parametrize("path", ["/", "/search"])
def test_a_date_that_is_none_is_named_below_the_filter(path: str) -> None:
    repo = Repo.memory(clock=FixedClock())
    repo.line("sessions/dev/build").append("user", "Build the parser")
    page = Client(repo).page(path, 400, q="parser", since="whenever")
    assert "since: not a time: &#x27;whenever&#x27;" in page.replace("&#39;", "&#x27;")
    assert 'value="whenever"' in page
    assert "Build the" in page, "the other filters are applied"


def test_a_fork_is_told_from_the_session_with_its_title() -> None:
    repo = Repo.memory(clock=FixedClock())
    repo.append("user", "Build the parser")
    repo.forks.create("idea")
    repo.line("idea").append("user", "Another way")
    page = Client(repo).page("/")
    assert page.count("Build the parser") == 2
    assert '<p class="kicker">idea · ' in page


def test_an_empty_repository_says_what_to_do() -> None:
    assert "trace import --all" in Client(Repo.memory()).page("/")


def test_a_session_shows_its_last_messages_and_others_on_request() -> None:
    repo = long_repository(1_000)
    client = Client(repo)
    page = client.page("/session", name="main")
    shown = articles(page)
    assert len(shown) == WINDOW
    assert f'data-start="{1_000 - WINDOW}"' in page
    assert "message 999 says" in page
    first = 1_000 - 2 * WINDOW
    earlier = client.part("/messages", name="main", start=str(first), count=str(WINDOW))
    assert (earlier["start"], earlier["stop"], earlier["count"]) == (first, first + WINDOW, 1_000)
    assert len(articles(earlier["html"])) == WINDOW
    assert set(articles(earlier["html"])).isdisjoint(shown)
    whole = [str(each.address) for each in repo.compile().messages]
    assert [*articles(earlier["html"]), *shown] == whole[first:]
    around = client.page("/session", name="main", at=whole[123])
    assert whole[123] in articles(around)
    assert f'data-start="{123 - WINDOW // 2}"' in around
    assert client.part("/messages", name="main", at=whole[123])["start"] == 123 - WINDOW // 2
    assert 'data-start="0"' in client.page("/session", name="main", start="0")


def test_the_first_page_of_a_long_session_is_no_larger_than_of_a_short_one() -> None:
    pages = [Client(long_repository(n)).page("/session", name="main") for n in (600, 4_000)]
    short, long = map(len, pages)
    assert long < short * 1.1
    assert len({page.count("<article") for page in pages}) == 1


def test_a_window_never_parts_a_call_from_its_results() -> None:
    repo = Repo.memory(clock=FixedClock())
    with repo.batch() as batch:
        for at in range(10):
            batch.append("user", f"filler {at}")
    asked = repo.append(
        "assistant", [ToolCall(f"c{n}", "Bash", {"command": f"ls {n}"}) for n in range(3)]
    )
    answers = [repo.append("tool", [ToolResult(f"c{n}", f"files {n}")]) for n in range(3)]
    with repo.batch() as batch:
        for at in range(10):
            batch.append("user", f"more {at}")
    client, own = Client(repo), [str(each.addresses[0]) for each in (asked, *answers)]
    for start, count, places in ((12, 5, (10, 17)), (2, 10, (2, 14)), (5, 5, (5, 10))):
        found = client.part("/messages", name="main", start=str(start), count=str(count))
        assert (found["start"], found["stop"]) == places
        shown = articles(found["html"])
        assert len(shown) == places[1] - places[0]
        assert set(own) <= set(shown) or not set(own) & set(shown)
        assert "no result" not in found["html"]
        assert "unknown call" not in found["html"]
    news = client.part("/news", name="main", tip=answers[0].oid.hex(), start="12")
    assert articles(news["html"])[:4] == own
    saw = client.page("/context", name="main", commit=answers[0].oid.hex())
    assert "files 0" in saw
    assert "files 1" not in saw
    assert saw.count("no result") == 2


def test_hidden_messages_are_shown_on_request_and_found_by_address() -> None:
    repo = rich_repository()
    client = Client(repo)
    page = client.page("/session", name="main")
    assert "Long talk, part 1" not in page
    assert "compaction of 3 messages" in page
    assert "show the 3 messages" in page
    assert "Long talk, part 1" in client.page("/session", name="main", hidden="1")
    whole = repo.sessions.read(hidden=True).turns
    gone = next(turn for turn in whole if turn.hidden == "replaced").message
    assert str(gone.address) in articles(client.page("/session", name="main", at=str(gone.address)))


def test_a_very_long_message_is_fetched_on_request() -> None:
    repo = Repo.memory()
    line = "x" * 79 + "\n"
    repo.append("tool", [ToolResult("c", line * 65_000)])
    repo.append("user", "y" * (LONGEST + 5))
    client = Client(repo)
    page = client.page("/session", name="main")
    assert len(page) < 4 * LONGEST
    assert "5,160,000 more characters" in page
    assert "Show the whole message, 5 more characters" in page
    address = str(repo.compile().messages[1].address)
    found = client.part("/message", name="main", at=address)
    assert found["text"] == "y" * (LONGEST + 5)
    assert articles(found["html"]) == [address]


def test_checkpoints_forks_and_runs_are_marked_where_they_were_made() -> None:
    repo = Repo.memory(clock=FixedClock())
    first = repo.append("user", "first")
    repo.checkpoints.save("safe", reason="before the risk")
    second = repo.append("user", "second")
    repo.forks.create("idea")
    third = repo.append("user", "third")
    repo.runs.start("Look", id="look", session="main", message=str(third.addresses[0])).complete()
    client = Client(repo)
    found = client.part("/marks", name="main")["marks"]
    said = {address: re.sub("<[^>]*>", "", line) for address, line in found}
    assert said == {
        str(first.addresses[0]): "checkpoint safe",
        str(second.addresses[0]): "fork idea",
        str(third.addresses[0]): "run Look: completed, 0 steps",
    }
    assert client.part("/marks", name="idea") == {"marks": []}
    listed = Page(client.page("/checkpoints").encode()).said()
    assert "before the risk" in listed
    assert "forks/idea" in listed


def test_the_context_at_a_step_is_what_the_model_saw() -> None:
    repo = rich_repository()
    asked = next(each for each in repo.log() if each.message_count and "replace" in each.operations)
    before = asked.parents[0]
    client = Client(repo)
    page = client.page("/context", name="main", commit=before.hex())
    assert "Long talk, part 1" in page
    assert "A summary of the talk" not in page
    assert len(articles(page)) == len(repo.compile(before))
    after = client.page("/context", name="main", commit=asked.oid.hex())
    said = Page(after.encode()).said()
    assert "All that was sent before stays" in said, "no request had the replaced messages"
    assert "step before" in said
    assert "step after" in said
    assert "1 tool schema" in said
    total = f"{repo.compile(asked.oid).token_count:,}"
    assert total in said


def test_what_the_model_saw_before_an_answer_is_the_request_that_it_answers() -> None:
    repo = Repo.memory(clock=FixedClock())
    answers = []
    for turn in range(3):
        repo.append("user", f"question {turn}")
        answers.append(repo.append("assistant", f"answer {turn}"))
    answer = answers[-1]
    client = Client(repo)
    address = str(answer.addresses[0])
    page = client.page("/session", name="main")
    assert f"until={address}" in page
    saw = client.page("/context", name="main", commit=answer.oid.hex(), until=address)
    assert "What the model saw before message 6" in saw
    assert articles(saw) == [str(each.address) for each in repo.compile().messages[:5]]
    changes = saw.split("<h2>Since the request before")[1].split("Messages, as")[0]
    assert "answer 1" in changes
    assert "question 2" in changes
    assert "stays in the prompt cache" in changes
    assert "question 1" not in changes
    assert "answer 2" not in changes
    assert re.search(r"<dt>messages</dt><dd[^>]*>5<", saw)
    client.page("/context", name="main", until="0123456789ab.0", status=404)


def test_a_long_context_has_links_to_its_parts() -> None:
    repo = long_repository(1_000)
    client = Client(repo)
    page = client.page("/context", name="main")
    assert "1 to 100 of 1,000" in page
    (last,) = set(re.findall(r"start=(\d+)[^>]*>last messages", page))
    assert "message 999 says" in client.page("/context", name="main", start=last)
    assert "last messages" not in client.page("/context", name="main", start="850")


def test_the_change_of_a_wording_is_shown_word_by_word() -> None:
    repo = Repo.memory(clock=FixedClock())
    address = repo.append("user", "Use the old parser").addresses[0]
    made = repo.edit(address, "Use the new parser")
    page = Client(repo).page("/context", name="main", commit=made.oid.hex())
    assert "<del>old</del>" in page
    assert "<ins>new</ins>" in page


def test_what_broke_the_prompt_cache_is_named() -> None:
    repo = Repo.memory(clock=FixedClock())
    first = repo.append("user", "Use the old parser").addresses[0]
    second = repo.append("assistant", "I use it").addresses[0]
    repo.append("user", "Thanks")
    client, tool = Client(repo), {"name": "Bash", "input_schema": {"type": "object"}}
    steps: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: repo.append("user", "More"), "All that was sent before stays"),
        (lambda: repo.edit(first, "Use the new parser"), "message 1 was edited (user: Use the old"),
        (lambda: repo.remove(second), "message 2 was removed (assistant: I use it)"),
        (lambda: repo.replace([first], [Message("user", "In short")]), "message 1 was replaced"),
        (lambda: repo.set_tools([tool]), "the tools changed (Bash)"),
    )
    for change, words in steps:
        change()
        said = Page(client.page("/context", name="main").encode()).said()
        assert words in said, said


@pytest.mark.parametrize("keep", [0, 2])
def test_the_prompt_cache_is_broken_right_after_a_compaction(keep: int) -> None:
    """By the context of the prompt that follows it, of the answer, and by a mark at the answer."""
    repo = Repo.memory(clock=FixedClock())
    for turn in range(4):
        repo.append("user", f"question {turn}")
        repo.append("assistant", f"answer {turn}")
    said = [str(each.address) for each in repo.compile().messages]
    summary = Message("user", "In short")
    compaction = repo.replace(said[: len(said) - keep], [summary], reason="compaction").oid
    prompt = repo.append("user", "Go on")
    answer = repo.append("assistant", "I go on").addresses[0]
    client = Client(repo)
    page = client.page("/context", name="main", commit=prompt.oid.hex())
    assert "message 1 was replaced (user: question 0)" in page
    assert f'commit={compaction.hex()}">the step that broke it' in page
    saw = client.page("/context", name="main", commit=answer.birth.hex(), until=str(answer))
    assert "message 1 was replaced (user: question 0)" in saw
    marked = [
        each
        for each in client.page("/session", name="main").split("<article")
        if "cache broke" in each
    ]
    assert [f'id="{answer}"' in each for each in marked] == [True]
    repo.append("user", "And then")
    later = repo.append("assistant", "Done").addresses[0]
    saw = client.page("/context", name="main", commit=later.birth.hex(), until=str(later))
    assert "All that was sent before stays" in saw, "until the next one"


def test_an_edit_of_what_was_never_sent_breaks_no_prompt_cache() -> None:
    repo = Repo.memory(clock=FixedClock())
    repo.append("user", "question")
    repo.append("assistant", "answer")
    repo.edit(repo.append("user", "More, please").addresses[0], "Less, please")
    assert "All that was sent before stays" in Client(repo).page("/context", name="main")
    repo.append("assistant", "Fine")
    assert "cache broke" not in Client(repo).page("/session", name="main")


def test_two_branches_are_shown_side_by_side() -> None:
    repo = Repo.memory(clock=FixedClock())
    repo.append("user", "Sort the numbers")
    repo.forks.create("idea")
    repo.append("assistant", "I use quicksort")
    repo.line("idea").append("assistant", "I use mergesort")
    client = Client(repo)
    page = client.page("/compare", left="main", right="idea")
    assert "I use quicksort" in page
    assert "I use mergesort" in page
    theirs = str(repo.compile("idea").messages[-1].address)
    assert f'href="/session?name=idea&amp;at={theirs}"' in page
    whole = client.part("/message", name="idea", at=theirs)["html"]
    assert articles(whole) == [theirs]
    assert "no common start" in client.page("/compare", left="main", right=_orphan(repo))
    assert "<select" in client.page("/compare")
    client.page("/compare", left="main", right="gone", status=404)


def test_sessions_are_called_by_their_titles() -> None:
    repo = Repo.memory(clock=FixedClock())
    names = [f"sessions/dev/{number:08x}-aaaa" for number in range(3)]
    for name, prompt in zip(names, ("Fix the lexer", "Fix the lexer", "Sort it"), strict=True):
        repo.line(name).append("user", prompt)
    repo.sessions.list()
    client = Client(repo)
    page = client.page("/compare", left=names[0], right=names[2])
    assert re.findall(r"<th scope=\"col\"[^>]*>([^<]*)", page) == [
        "Fix the lexer · 000-aaaa",
        "Sort it",
    ]
    assert f'<option value="{names[1]}">Fix the lexer · 001-aaaa</option>' in page
    head = str(repo.resolve(names[2]))
    assert '<p class="kicker">Sort it</p>' in client.page("/context", name=names[2], commit=head)


def test_an_undo_leaves_nothing_in_the_list_of_deleted_branches() -> None:
    repo = Repo.memory(clock=FixedClock())
    repo.append("user", "first")
    address = str(repo.append("assistant", "second").addresses[0])
    client = Client(repo)
    client.act("pin", session="main", message=address)
    client.act("undo", session="main")
    assert "Nothing was deleted." in client.page("/trash")
    repo.branches.create("gone")
    repo.branches.delete("gone", force=True)
    assert "<b>gone</b>" in client.page("/trash")


def test_the_outline_says_what_its_token_counts_count() -> None:
    repo = Repo.memory(clock=FixedClock())
    repo.append("user", "word " * 100)
    client = Client(repo)
    (size,) = re.findall(r"<p>([^<]*)</p>", client.part("/outline", name="main")["html"])
    assert size == f"{repo.compile().token_count} tokens, estimated"
    repo.record_usage({"input_tokens": 17_000, "output_tokens": 10}, model="claude-opus-4-6")
    sizes = re.findall(r"<p>([^<]*)</p>", client.part("/outline", name="main")["html"])
    context = repo.compile()
    assert sizes == [
        f"last request, reported: {context.token_count:,} tokens",
        f"its messages: about {context.message_part:,} tokens",
    ]


def _orphan(repo: Repo) -> str:
    repo.line("other").append("user", "Something else")
    return "other"


def test_a_hit_opens_its_session_at_the_message() -> None:
    repo = long_repository(500)
    client = Client(repo)
    page = client.page("/search", q="message 77")
    assert "<mark>" in page
    (target,) = set(re.findall(r'href="(/session[^"]*)"', page)) or [""]
    opened = client.ask(target.replace("&amp;", "&")).text
    assert "message 77 says" in opened
    assert client.page("/search")
    assert "<p" in client.page("/search", q="-", status=400)


def test_trajectories_decisions_and_why() -> None:
    repo = Repo.memory(clock=FixedClock())
    made = repo.trajectories.start("Choose a parser")
    repo.trajectories.decide("Which parser?", "the small one", reasoning="it is enough")
    client = Client(repo)
    assert "Choose a parser" in client.page("/trajectories")
    page = client.page("/trajectory", id=made.id)
    assert "the small one" in page
    assert "it is enough" in page
    assert page.count("<main") == 1
    assert "small" in client.page("/trajectories", q="small")
    assert '<p class="problem">' in client.page("/trajectories", why="nothing.py:3")
    client.page("/trajectory", id="traj_gone", status=404)


def test_the_outline_has_prompts_size_heat_and_the_summary() -> None:
    repo = rich_repository()
    html = client_outline = Client(repo).part("/outline", name="main")["html"]
    assert "Which tags are there?" in html
    assert "tokens" in html
    assert html.count('<a class="h') == len(repo.compile())
    assert "A summary of the talk" in client_outline


def test_a_page_that_is_not_there_says_so() -> None:
    client = Client(Repo.memory())
    assert "There is no such page" in client.page("/nothing", status=404)
    assert "no revision" in client.page("/session", name="gone", status=404)
    found = client.part("/messages", name="gone", start="0", count="1", status=404)
    assert set(found) == {"error"}


@pytest.mark.parametrize("path", ["/session?name=main", "/", "/trash", "/context?name=main"])
def test_landmarks_and_labels(path: str) -> None:
    page = Page(Client(rich_repository()).page(path).encode())
    assert len(page.all("main")) == 1
    assert len(page.all("h1")) == 1
    assert page.all("a")[0].attributes["href"] == "#main"
    for each in page.all("nav") + page.all("article"):
        assert each.attributes["aria-label"]
    for each in page.all("input"):
        assert each.attributes.get("aria-label") or each.attributes["type"] == "checkbox"


def test_news_are_the_messages_after_a_place_unless_earlier_ones_changed() -> None:
    repo = Repo.memory(clock=FixedClock())
    first = repo.append("user", "first")
    client = Client(repo)
    tip = str(repo.head.oid)
    same = client.part("/news", name="main", tip=tip, start="1")
    assert (same["tip"], articles(same["html"])) == (tip, [])
    more = repo.append("assistant", "second")
    found = client.part("/news", name="main", tip=tip, start="1")
    assert articles(found["html"]) == [str(more.addresses[0])]
    assert (found["start"], found["stop"], found["count"]) == (1, 2, 2)
    repo.remove(first.addresses[0])
    assert client.part("/news", name="main", tip=found["tip"], start="1")["html"] is None
    assert client.part("/news", name="main", tip="0" * 64, start="1", status=404)
    repo.commit([Message("user", "third")])
