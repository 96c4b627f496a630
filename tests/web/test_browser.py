"""The page in a real Chromium. Without a browser or Playwright these tests are skipped."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from benchmarks.browser import FLAGS, NAMES
from tests.web.support.attacks import CORPUS, hostile_repository
from tests.web.support.served import served
from trace_store import Environment, Message, Reasoning, Text, ToolCall, ToolResult
from trace_store.repo.repository import Repo
from trace_store.web.server import Server

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


def rich(folder: Path, turns: int = 30) -> Repo:
    repo = Repo.init(folder, author="Ada")
    repo.append("system", "Be brief.")
    for turn in range(turns):
        with repo.batch() as batch:
            batch.append("user", f"Question {turn}: what is in file {turn}?\n\n- one\n- **two**")
            batch.append(
                "assistant",
                [
                    Reasoning(f"I look at file {turn}."),
                    Text(f"Let me look at `file{turn}`."),
                    ToolCall(f"c{turn}", "Bash", {"command": f"cat file{turn}"}),
                ],
                model="claude-opus-4-6",
            )
            batch.append("tool", [ToolResult(f"c{turn}", f"content of file {turn}\n" * 12)])
            batch.append("assistant", f"Answer {turn}.", model="claude-opus-4-6")
    repo.checkpoints.save("safe", reason="before the risk")
    repo.forks.create("idea")
    repo.line("idea").append("user", "Another way")
    gone = repo.append("user", "A message that was removed").addresses[0]
    repo.remove(gone)
    repo.trajectories.start("Choose a parser")
    repo.trajectories.decide("Which?", "the small one", reasoning="it is enough")
    with repo.runs.start("Look at the files", id="nightly", agent="Ada", message="main~2.0") as run:
        with run.step("thinking", "Choose a file") as step:
            step.source("notes", "https://example.org/notes")
            step.complete("File 3 it is.\n" * 50, tokens=12)
        run.step("tool_call", "cat file3").fail("no such file")
    return repo


class Tab:
    """A tab that was let in, which fails on an error of the page."""

    def __init__(self, browser: Any, said: dict[str, str], **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.address = said["address"].rstrip("/")
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._console)
        self.page.goto(said["link"])

    def _console(self, message: Any) -> None:
        if message.type == "error" and "net::ERR_" not in message.text:
            self.problems.append(message.text)

    def open(self, path: str) -> Any:
        self.page.goto(self.address + path)
        return self.page


@contextlib.contextmanager
def tab(browser: Any, folder: Path, *words: str, **options: Any) -> Iterator[Tab]:
    with served(folder, *words) as (_, said):
        found = Tab(browser, said, **options)
        try:
            yield found
        finally:
            found.context.close()
        assert not found.problems


def test_reading_and_moving_with_keys_alone(browser: Any, tmp_path: Path) -> None:
    rich(tmp_path).close()
    with tab(browser, tmp_path) as here:
        page = here.open("/")
        page.get_by_role("link", name=re.compile("Question 0")).first.focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/session?**")
        page.wait_for_selector("#outline a")
        page.keyboard.press("g")
        page.keyboard.press("g")
        page.wait_for_function(
            "() => document.activeElement.getAttribute('aria-label') === 'system, message 1'"
        )
        page.keyboard.press("J")
        label = "document.activeElement.getAttribute('aria-label')"
        assert page.evaluate(label) == "user, message 2"
        page.keyboard.press("j")
        assert page.evaluate(label) == "assistant, message 3"
        page.keyboard.press("k")
        page.keyboard.press("J")
        assert page.evaluate(label) == "user, message 6"
        address = page.evaluate("document.activeElement.id")
        assert f"at={address}" in page.url
        page.reload()
        page.wait_for_function(f"() => document.activeElement.id === '{address}'")
        page.keyboard.press("t")
        assert not page.locator(".reasoning").first.is_visible()
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "search"
        page.keyboard.type("content jk")
        assert page.input_value("#search") == "content jk", "keys are off in fields"
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        page.get_by_role("checkbox", name="Keys of one letter").uncheck()
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") != "search", "keys are switched off"
        page.keyboard.press("Control+k")
        assert page.evaluate("document.activeElement.id") == "search"
        page.keyboard.press("Control+a")
        page.keyboard.type("content of file 7")
        page.keyboard.press("Enter")
        page.wait_for_selector(".hits a")
        page.locator(".hits a").first.click()
        page.wait_for_selector("#messages article")
        page.go_back()
        page.wait_for_selector(".hits a")


def test_new_messages_appear_and_the_place_is_kept(browser: Any, tmp_path: Path) -> None:
    repo = rich(tmp_path, 20)
    with tab(browser, tmp_path) as here:
        page = here.open("/session?name=main")
        page.wait_for_selector("#live.on")
        for each in (page.locator("h1"), page.get_by_role("button", name="Trim")):
            assert each.bounding_box()["y"] >= 0, "title and actions are on the screen at the end"
        count = page.locator("#messages article").count()
        repo.append("user", "It is new and at the end")
        page.locator("#messages").get_by_text("It is new and at the end").wait_for()
        assert page.locator("#messages article").count() == count + 1
        page.wait_for_function(  # the new message takes its size
            "() => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 80"
        )
        # In the middle of the page nothing moves.
        page.mouse.wheel(0, -4000)
        page.wait_for_timeout(700)
        before = page.evaluate("window.scrollY")
        repo.append("assistant", "More, which is out of sight")
        page.wait_for_function(
            f"() => document.querySelectorAll('#messages article').length === {count + 2}"
        )
        assert abs(page.evaluate("window.scrollY") - before) < 2
        # A change of an earlier message replaces it.
        first = str(repo.compile().messages[0].address)
        repo.edit(first, "Be very brief.")
        page.wait_for_function(
            f"() => document.getElementById('{first}').textContent.includes('very brief')"
        )
    repo.close()


LABEL = "document.activeElement.getAttribute('aria-label')"


def test_keys_begin_where_the_reader_is(browser: Any, tmp_path: Path) -> None:
    with Repo.init(tmp_path) as repo:
        repo.append("user", "Short")
        repo.append("assistant", "session")
    with tab(browser, tmp_path) as here:
        for key, label in (("K", "user, message 1"), ("k", "assistant, message 2")):
            page = here.open("/session?name=main")
            page.wait_for_selector("#live.on")
            page.keyboard.press(key)
            assert page.evaluate(LABEL) == label, "a session is opened at its end"


def test_a_removal_keeps_the_place_the_focus_and_the_count(browser: Any, tmp_path: Path) -> None:
    repo = rich(tmp_path, 60)
    messages = repo.compile().messages
    shown, before, gone, after = (str(messages[at].address) for at in (217, 218, 221, 222))
    top = f"document.getElementById('{shown}').getBoundingClientRect().top"
    with tab(browser, tmp_path) as here:
        page = here.open(f"/session?name=main&at={shown}")
        page.wait_for_selector("#live.on")
        page.locator("#outline").get_by_text("241", exact=True).wait_for()
        page.mouse.move(5, 5)
        page.locator(f"[id='{gone}']").evaluate("each => each.focus({preventScroll: true})")
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "Remove":
                break
        place = page.evaluate(top)
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        page.locator(f"[id='{gone}']").wait_for(state="detached")
        page.locator("#outline").get_by_text("240", exact=True).wait_for()
        assert abs(page.evaluate(top) - place) < 2
        assert page.evaluate("document.activeElement.id") == after
        page.keyboard.press("k")
        page.keyboard.press("k")
        assert page.evaluate("document.activeElement.id") == before
        repo.annotate(after, priority="pinned")
        page.locator(f"[id='{after}']").get_by_text("pinned").first.wait_for()
        assert page.evaluate("document.activeElement.id") == before
        repo.undo()
        page.locator(f"[id='{after}']").get_by_text("pinned").first.wait_for(state="detached")
        page.keyboard.press("j")
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.id") == after
        place = page.evaluate(top)
        page.locator("#said").get_by_role("button", name="Undo").focus()
        page.keyboard.press("Enter")
        page.locator(f"[id='{gone}']").wait_for()
        page.locator("#outline").get_by_text("241", exact=True).wait_for()
        assert abs(page.evaluate(top) - place) < 2
        assert page.evaluate("document.activeElement.id") == after
    repo.close()


def test_a_list_keeps_the_focus_when_it_changes(browser: Any, tmp_path: Path) -> None:
    repo = rich(tmp_path, 2)
    with tab(browser, tmp_path) as here:
        page = here.open("/")
        page.wait_for_selector("#live.on")
        href = page.locator(".cards a").last.get_attribute("href")
        page.locator(".cards a").last.focus()
        repo.line("other").append("user", "A session that is new")
        page.get_by_text("A session that is new").wait_for()
        assert page.evaluate("document.activeElement.getAttribute('href')") == href
        with repo.runs.start("Look", agent="coder", session="other") as run, run.step("thinking"):
            page.get_by_text("coder: thinking, step 1").wait_for()
            assert page.evaluate("document.activeElement.getAttribute('href')") == href
        page.get_by_text("coder: thinking, step 1").wait_for(state="detached")
        page.locator("main input[name=q]").press_sequentially("pars")
        repo.line("third").append("user", "Another new session")
        page.get_by_text("Another new session").wait_for()
        assert page.input_value("main input[name=q]") == "pars"
        page.keyboard.type("er")
        assert page.input_value("main input[name=q]") == "parser", "and it has the focus"
        repo.branches.delete("third", force=True)
        page.get_by_text("Another new session").wait_for(state="detached")
        page.reload()
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.textContent") == "A session that is new"
    repo.close()


def test_a_page_comes_back_after_the_server_was_killed(browser: Any, tmp_path: Path) -> None:
    repo = rich(tmp_path)
    with served(tmp_path) as (process, said):
        here = Tab(browser, said)
        page = here.open("/session?name=main")
        page.wait_for_selector("#live.on")
        process.send_signal(signal.SIGKILL)
        process.wait()
        page.wait_for_selector("#live.off")
    repo.append("user", "Said while the server was down")
    with served(tmp_path) as (_, again):
        assert again["address"] == said["address"]
        page.locator("#messages").get_by_text("Said while the server was down").wait_for(
            timeout=20_000
        )
        page.wait_for_selector("#live.on")
        assert page.locator("#messages").get_by_text("Said while the server was down").count() == 1
    here.context.close()
    repo.close()


def test_twenty_tabs_hear_of_a_message(browser: Any, tmp_path: Path) -> None:
    """A browser opens six connections to a server, so that tabs have to share one."""
    repo = rich(tmp_path, 3)
    with tab(browser, tmp_path) as here:
        tabs = [here.context.new_page() for _ in range(20)]
        for each in tabs:
            each.goto(f"{here.address}/session?name=main")
            each.wait_for_selector("#live.on")
        repo.append("user", "Told to all of you")
        for each in tabs:
            each.locator("#messages").get_by_text("Told to all of you").wait_for(timeout=10_000)
        for each in tabs[:10]:
            each.close()
        repo.append("user", "And to those who stayed")
        for each in tabs[10:]:
            each.locator("#messages").get_by_text("And to those who stayed").first.wait_for(
                timeout=10_000
            )
            assert each.locator("#messages").get_by_text("Told to all of you").count() == 1
    repo.close()


def test_a_run_is_watched_step_by_step(browser: Any, tmp_path: Path) -> None:
    repo = rich(tmp_path, 2)
    with tab(browser, tmp_path) as here:
        run = repo.runs.start("Watch me", id="live", agent="coder")
        page = here.open("/run?id=live")
        page.wait_for_selector("#live.on")
        step = run.step("thinking", "Reading the test")
        page.wait_for_selector("#text-1")
        step.progress("The test <b>expects</b> three lines ")
        page.wait_for_function(
            "() => document.querySelector('#text-1').textContent.includes('lines')"
        )
        assert page.locator("#text-1 b").count() == 0
        step.source("pytest docs")
        page.get_by_text("source: pytest docs").wait_for()
        # A second reader joins in the middle of the step, and a refresh keeps what was said.
        second = here.context.new_page()
        second.goto(f"{here.address}/run?id=live")
        second.wait_for_selector("#text-1")
        page.reload()
        for word in ("and ", "the ", "parser ", "drops ", "one "):
            step.progress(word)
            page.wait_for_timeout(500)
        for each in (page, second):
            said = "document.querySelector('#text-1').textContent"
            each.wait_for_function(f"() => {said}.includes('drops one')")
            assert each.evaluate(said).startswith("The test <b>expects</b> three lines and ")
        step.complete("The parser drops a line.")
        page.get_by_text("The parser drops a line.").wait_for()
        assert page.locator("#text-1").count() == 0
        run.step("tool_call", "pytest").fail("exit status 1")
        page.get_by_text("exit status 1").wait_for()
        run.complete()
        page.locator(".top").get_by_text("completed").wait_for()
        page.reload()
        assert page.locator("#steps article").count() == 2


def test_a_run_that_runs_opens_at_its_latest_step_and_is_followed(
    browser: Any, tmp_path: Path
) -> None:
    repo = rich(tmp_path, 2)
    run = repo.runs.start("Watch me", id="live", agent="coder")
    for number in range(250):
        run.step("thinking", f"Thought {number}").complete("A line.\n" * 3)
    is_at_end = "() => innerHeight + scrollY >= document.documentElement.scrollHeight - 80"
    with tab(browser, tmp_path) as here:
        page = here.open("/run?id=live")
        page.wait_for_selector("#live.on")
        page.wait_for_function(is_at_end)
        run.step("thinking", "The next one").complete()
        page.get_by_text("The next one").wait_for()
        page.wait_for_function(is_at_end)
        # Who scrolls up stays there, until they follow or go to the latest step.
        page.mouse.move(600, 400)
        page.mouse.wheel(0, -3000)
        page.wait_for_timeout(500)
        place = page.evaluate("scrollY")
        run.step("thinking", "Out of sight").complete()
        page.wait_for_selector("#step-252", state="attached")
        assert abs(page.evaluate("scrollY") - place) < 2
        page.keyboard.press("f")
        assert page.locator("#follow").is_checked()
        page.locator("#follow").evaluate("each => each.focus({preventScroll: true})")
        page.wait_for_function(is_at_end)
        run.step("thinking", "Followed").complete()
        page.wait_for_selector("#step-253", state="attached")
        page.wait_for_function(is_at_end)
        assert page.evaluate("document.activeElement.id") == "follow"
        page.get_by_role("link", name="steps 1 to").first.click()
        page.wait_for_url("**start=**")
        page.get_by_role("link", name="latest step").click()
        page.wait_for_url("**#step-253")
        page.wait_for_function(
            "() => document.querySelector('#step-253').getBoundingClientRect().top < innerHeight"
        )
        run.complete()
        page.locator(".top").get_by_text("completed").wait_for()
        assert page.locator("#follow").count() == 0
    repo.close()


BROKEN_NUMBERS = """() => {
  const cells = [...document.querySelectorAll("td")];
  return cells.flatMap((cell) => {
    const text = cell.firstChild;
    if (text?.nodeType !== Node.TEXT_NODE) return [];
    return [...text.data.matchAll(/[0-9][0-9,.]*%?/g)].filter((found) => {
      const range = new Range();
      range.setStart(text, found.index);
      range.setEnd(text, found.index + found[0].length);
      return range.getClientRects().length > 1;
    }).map((found) => found[0]);
  });
}"""


def test_a_narrow_window_breaks_no_number(browser: Any, tmp_path: Path) -> None:
    with rich(tmp_path, 3) as repo:
        repo.append("tool", [ToolResult("c0", "word " * 120_000)])
    with tab(browser, tmp_path, viewport={"width": 340, "height": 700}) as here:
        for path in ("/context?name=main", "/trash", "/checkpoints", "/trajectories"):
            page = here.open(path)
            page.wait_for_selector("table")
            assert page.evaluate(BROKEN_NUMBERS) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= 340
        page = here.open("/trash")
        button = page.get_by_role("button", name="Restore").first.bounding_box()
        assert button["x"] + button["width"] <= 340


def test_windows_are_loaded_and_dropped_while_scrolling(browser: Any, tmp_path: Path) -> None:
    with Repo.init(tmp_path) as repo:
        repo.commit(
            [Message("user" if n % 2 else "assistant", f"number {n}") for n in range(3_000)]
        )
    with tab(browser, tmp_path) as here:
        page = here.open("/session?name=main")
        page.wait_for_selector("#live.on")
        assert page.locator("#messages article").count() <= 400
        articles = page.locator("#messages article")
        label = "document.querySelector('#messages').getAttribute('aria-label')"
        for _ in range(22):
            before = page.evaluate(label)
            page.evaluate("window.scrollTo(0, 0)")
            page.wait_for_function(f"(before) => {label} !== before", arg=before)
        assert 1_900 < articles.count() <= 2_000
        numbers = page.eval_on_selector_all(
            "#messages article .n", "all => all.map(e => Number(e.textContent))"
        )
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        page.keyboard.press("G")
        page.locator("#messages").get_by_text("number 2999").wait_for()
        page.keyboard.press("g")
        page.keyboard.press("g")
        page.locator("#messages").get_by_text("number 0", exact=True).wait_for()


def test_a_call_and_its_result_fold_together_and_a_late_result_joins_its_call(
    browser: Any, tmp_path: Path
) -> None:
    repo = rich(tmp_path, 3)
    with tab(browser, tmp_path) as here:
        page = here.open("/session?name=main")
        page.wait_for_selector("#live.on")
        calls = page.locator("details.call")
        first = calls.first
        assert not first.get_by_text("content of file 0").first.is_visible()
        first.locator("summary").first.click()
        assert first.locator("article.tool").get_by_text("content of file 0").first.is_visible()
        number = calls.count()
        repo.append("assistant", [ToolCall("late", "Read", {"path": "x"})])
        page.locator("details.call").get_by_text("no result").wait_for()
        answer = repo.append("tool", [ToolResult("late", "found it")]).addresses[0]
        page.locator("details.call").get_by_text("found it").wait_for()
        assert calls.count() == number + 1
        assert page.get_by_text("no result").count() == 0
        # An address of a folded result opens its call.
        folded = str(repo.compile().messages[3].address)
        page = here.open(f"/session?name=main&at={folded}")
        page.wait_for_function(f"() => document.activeElement.id === '{folded}'")
        assert page.locator(f"[id='{folded}']").is_visible()
        page.go_back()
        page.locator(f"[id='{answer}']").wait_for()
    repo.close()


FACTS = """() => {
  const all = [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")];
  const found = all.filter((each) => !each.name.includes("/static/") && !each.name.includes("/events"));
  performance.clearResourceTimings();
  const sum = (each) => each.encodedBodySize;
  return [found.length, found.map(sum).reduce((a, b) => a + b, 0), document.querySelectorAll("*").length];
}"""


def test_a_long_session_costs_no_more_than_a_short_one(browser: Any, tmp_path: Path) -> None:
    """Requests, bytes and elements of the first screen, of a jump into the middle, and back."""
    costs = []
    for count in (1_500, 12_000):
        folder = tmp_path / str(count)
        with Repo.init(folder) as repo:
            roles = ("user", "assistant")
            repo.commit([Message(roles[n % 2], f"number {n:06}") for n in range(count)])
            repo.append("user", "The end")
            middle = str(repo.compile().messages[count // 2].address)
        with tab(browser, folder) as here:
            page = here.open("/session?name=main")
            page.wait_for_selector("#outline ol a")
            page.wait_for_timeout(1_500)
            first = page.evaluate(FACTS)
            page.evaluate(
                """(at) => {
                  const link = document.querySelector("#outline ol a");
                  link.href = `/session?name=main&at=${at}`;
                  link.click();
                }""",
                middle,
            )
            page.wait_for_function(f"() => document.activeElement.id === '{middle}'")
            page.wait_for_timeout(1_500)
            _, _, nodes = page.evaluate(FACTS)
            costs.append([*first, nodes])
            assert f"at={middle}" in page.url
            page.go_back()
            page.locator("#messages").get_by_text("The end").wait_for()
            page.go_forward()
            page.wait_for_function(f"() => document.activeElement.id === '{middle}'")
    short, long = costs
    assert long[0] <= short[0]
    assert all(more <= 1.1 * less for less, more in zip(short[1:], long[1:], strict=True)), costs


def test_a_comparison_shows_whole_messages_and_leads_to_them(browser: Any, tmp_path: Path) -> None:
    repo = rich(tmp_path, 2)
    long = "word " * 200 + "the very end"
    repo.append("assistant", long)
    repo.append("assistant", "That is all.")
    address = str(repo.compile().messages[-1].address)
    with tab(browser, tmp_path) as here:
        page = here.open("/compare?left=main&right=idea")
        side = page.locator(".side", has_text="word word")
        assert page.get_by_text("the very end").count() == 0
        side.get_by_role("link", name="whole message").click()
        page.get_by_text("the very end").wait_for()
        page.locator(".side", has_text="Another way").get_by_role(
            "link", name="in the session"
        ).click()
        page.wait_for_url("**/session?name=idea&**")
        page.go_back()
        page.wait_for_selector(".side")
        assert address in page.content()
    repo.close()


def test_a_file_lets_the_browser_in_without_a_token_in_its_arguments(
    browser: Any, tmp_path: Path
) -> None:
    environment = Environment(data_dir=str(tmp_path / "data"))
    with Repo.init(tmp_path / "project") as repo:
        repo.append("user", "Something private")
        server = Server(repo, environment=environment, port=0)
        opener = Path(server.opener())
        assert stat.S_IMODE(opener.stat().st_mode) == 0o600
        started = threading.Event()
        serving = threading.Thread(target=server.run, args=(started.set,))
        serving.start()
        try:
            assert started.wait(30)
            context = browser.new_context()
            page = context.new_page()
            page.goto(opener.as_uri())
            page.get_by_text("Something private").wait_for(timeout=20_000)
            assert "token" not in page.url
            assert "token=" in server.link
            context.close()
        finally:
            server.stop()
            serving.join(20)
        assert not opener.exists()


def test_actions_and_their_way_back(browser: Any, tmp_path: Path) -> None:
    rich(tmp_path).close()
    with tab(browser, tmp_path) as here:
        page = here.open("/session?name=main&start=0")
        article = page.locator("#messages article").nth(1)
        article.hover()
        article.get_by_role("button", name="Pin").click()
        page.get_by_text("is pinned").wait_for()
        page.locator("#messages article .mark").get_by_text("pinned").wait_for()
        page.locator("#said").get_by_role("button", name="Undo").click()
        page.locator("#messages article .mark").get_by_text("pinned").wait_for(state="detached")
        article.hover()
        article.get_by_role("button", name="Edit").click()
        page.get_by_role("dialog").get_by_role("textbox").fill("Another question <b>bold</b>")
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        page.locator("#messages").get_by_text("Another question <b>bold</b>").wait_for()
        article.hover()
        article.get_by_role("button", name="Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert page.locator("#messages").get_by_text("Another question").count() == 1
        article.hover()
        article.get_by_role("button", name="Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        page.locator("#messages").get_by_text("Another question").wait_for(state="detached")
        page = here.open("/trash")
        page.get_by_role("row", name=re.compile("^Another question")).get_by_role("button").click()
        page.get_by_role("row", name=re.compile("^Another question")).wait_for(state="detached")
        page.locator("#said").get_by_role("button", name="Undo").click()
        page.get_by_role("row", name=re.compile("^Another question")).get_by_role("button").click()
        page.get_by_role("row", name=re.compile("^Another question")).wait_for(state="detached")
        here.open("/session?name=main&start=0")
        page.get_by_text("Another question <b>bold</b>").first.wait_for()


def test_a_read_only_page_offers_no_action(browser: Any, tmp_path: Path) -> None:
    rich(tmp_path, 3).close()
    with tab(browser, tmp_path, "--read-only") as here:
        page = here.open("/session?name=main")
        page.locator("#messages article").last.hover()
        assert page.get_by_role("button", name="Copy").count() == 1
        for name in ("Remove", "Edit", "Pin", "Trim", "Compact", "Clear", "Undo"):
            assert page.get_by_role("button", name=name).count() == 0
        page = here.open("/trash?name=main")
        assert page.get_by_text("A message that was removed").count()
        assert page.get_by_role("button", name="Restore").count() == 0


def test_nothing_of_a_hostile_session_runs_or_is_loaded(browser: Any, tmp_path: Path) -> None:
    hostile_repository(tmp_path, CORPUS[::3]).close()
    paths = ["/", "/search?q=pwned", "/checkpoints", "/trajectories", "/trash?name=sessions/x/s1"]
    paths += ["/runs", "/run?id=run-0", "/run?id=run-50"]
    paths += [
        "/session?name=main&start=0",
        "/context?name=main",
        "/session?name=sessions/x/s1&hidden=1",
    ]
    paths += ["/compare?left=sessions/x/s0&right=fork0", f"/session?name={quote(CORPUS[0])}"]
    with tab(browser, tmp_path) as here:
        asked: list[str] = []
        here.page.on("request", lambda request: asked.append(request.url))
        here.page.on("dialog", lambda dialog: here.problems.append(dialog.message))
        for path in paths:
            page = here.open(path)
            page.wait_for_timeout(300)
            for details in page.locator("details").all()[:20]:
                details.evaluate("each => (each.open = true)")
            if page.locator("#messages article").count():
                page.locator("#messages article").first.hover()
            assert page.evaluate("window.pwned") is None, path
        here.problems[:] = [each for each in here.problems if "404" not in each]
        assert not [url for url in asked if not url.startswith((here.address, "data:image/"))]


PATHS = (
    *("/", "/session?name=main", "/session?name=main&hidden=1&start=0", "/context?name=main"),
    *("/compare?left=main&right=idea", "/checkpoints", "/trash?name=main", "/trajectories"),
    *("/search?q=content", "/nothing", "/runs", "/run?id=nightly"),
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violations(browser: Any, tmp_path: Path, scheme: str) -> None:
    module = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed"
    )
    axe = module.Axe()
    rich(tmp_path, 4).close()
    found: list[str] = []
    # axe is put into the page, which the policy forbids to any script but the page's own.
    with tab(browser, tmp_path, color_scheme=scheme, bypass_csp=True) as here:
        for path in PATHS:
            page = here.open(path)
            page.wait_for_timeout(400)
            for each in axe.run(page).response["violations"]:
                nodes = [node["html"][:160] for node in each["nodes"][:3]]
                found.append(f"{path}: {each['id']}: {nodes}")
        here.problems.clear()
    assert not found, "\n".join(found)


@pytest.mark.parametrize("width", [320, 1_280])
def test_no_page_is_wider_than_its_window(browser: Any, tmp_path: Path, width: int) -> None:
    rich(tmp_path, 4).close()
    with tab(browser, tmp_path, viewport={"width": width, "height": 800}) as here:
        for path in PATHS:
            page = here.open(path)
            page.wait_for_timeout(200)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        here.problems.clear()
