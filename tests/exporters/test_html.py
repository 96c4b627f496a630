"""The page: every element is of its closed list, everything that was said is on it, and nothing on it can run."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.exporters.support.pages import Element, Page, fragment
from tests.exporters.support.sessions import ATTACKS, hostile_session, repository, rich_session
from tests.importers.support.transcripts import each_real_transcript
from trace_store.base.frozen import replace
from trace_store.exporters.html import page, write
from trace_store.exporters.html.markup import ALLOWED, Markup, element, preformatted, prose, text
from trace_store.exporters.prose import code_of, normalise_newlines, reveal
from trace_store.exporters.session import read_session
from trace_store.importers.import_paths import import_paths
from trace_store.objects.message import Message
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.writer import Writer

CHARACTERS = st.text(
    st.one_of(
        st.sampled_from("<>&\"'`*#-~|\\/=:;![]()\n\r\t\x00\x1b\u202e\u200d\ufe0f\U000e0041 a1"),
        st.characters(),
        st.characters(categories=["Cs", "Cf", "Zl", "Zp"]),
    ),
    max_size=300,
)


def shown(content: str) -> str:
    """Text as the page has to say it."""
    return reveal(content, code_of)[0]


def squeezed(content: str) -> str:
    """Text without white space, which the page may lay out otherwise."""
    return "".join(content.split())


def check_page(data: bytes) -> Page:
    """Parse a page and check that it can only be looked at."""
    found = Page(data)
    for each in found.elements:
        assert each.tag in ALLOWED, each
        assert set(each.attributes) <= ALLOWED[each.tag], each
        check_targets(each)
    assert not found.comments
    counts = [len(found.all(tag)) for tag in ("html", "head", "title", "style", "body", "main")]
    assert counts == [1] * 6
    (policy,) = found.all("meta", lambda e: "http-equiv" in e.attributes)
    assert policy.attributes == {
        "http-equiv": "Content-Security-Policy",
        "content": page.POLICY,
    }
    (style,) = found.said_in("style")
    assert style == page.style()
    ids = [each.attributes["id"] for each in found.elements if "id" in each.attributes]
    assert len(set(ids)) == len(ids)
    jumps = {each.attributes["href"] for each in found.all("a")}
    assert jumps <= {f"#{name}" for name in ids}
    return found


def check_targets(each: Element) -> None:
    for name, value in each.attributes.items():
        assert not name.startswith("on"), each
        assert name != "style", each
        if name == "href":
            expected = r"data:," if each.tag == "link" else r"#[0-9a-f]{12}\.[0-9]+"
            assert re.fullmatch(expected, value), each
        if name == "src":
            assert re.fullmatch(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+", value)


def test_the_page_of_a_hostile_session_holds_only_what_the_template_makes() -> None:
    exported = write(hostile_session())
    found = check_page(exported.to_bytes())
    said = squeezed(found.said())
    for attack in ATTACKS:
        for line in attack.split("\n"):
            if not line.startswith(("`", "~")):  # a fence is shown as a block
                assert squeezed(shown(line)) in said, line[:80]
    assert len(found.all("article")) == len(ATTACKS) + 2
    assert not found.all("img")
    assert len(found.all("h1")) == 1
    (title,) = found.said_in("title")
    assert title.startswith("</script>")
    assert {loss.what for loss in exported.losses} == {"image", "reasoning-signature"}


def test_the_page_of_a_session_with_everything() -> None:
    exported = write(rich_session(hidden=True))
    found = check_page(exported.to_bytes())
    assert [loss.what for loss in exported.losses] == ["image", "reasoning-signature"]
    articles = found.all("article")
    assert len(articles) == 13
    assert sum(each.has_class("hidden") for each in articles) == 5
    said = found.said()
    for words in (
        *("Answer in one sentence.", "pinned", "#question", "compaction of 3 messages"),
        *("A message that was removed.", "removed", "skipped", "replaced"),
        *("I look at the *tags* first.", "git tag", "timeout", "1.5", "v1\nv2", "not JSON"),
        *("12 bytes in the format of other", "1 tool schema", "Runs a command", "error"),
    ):
        assert words in said, words
    (image,) = found.all("img")
    assert image.attributes["alt"] == "image/png, 72 bytes"
    assert found.said_in("b")[0] == "1 tool schema"
    # Each result is shown in its call.
    inside = [each for each in articles if "details" in each.inside]
    assert [each.attributes["aria-label"] for each in inside] == [
        "tool, message 4",
        "tool, message 13",
    ]
    assert "no result" not in said
    assert "by Ada" not in said, "one author is said once"


def test_results_of_several_calls_are_in_their_calls_and_late_ones_are_linked() -> None:
    repo = repository()
    calls = [ToolCall(f"c{n}", f"Tool{n}", {"n": n}) for n in range(3)]
    repo.append("assistant", calls)
    repo.append("tool", [ToolResult("c1", "one"), ToolResult("c0", "nought")])
    for n in range(page.NEAR):
        repo.append("user", f"Filler {n}")
    repo.append("tool", [ToolResult("c2", "two, late")])
    found = check_page(write(read_session(repo.store)).to_bytes())
    articles = [
        e.attributes["aria-label"] for e in found.all("article", lambda e: "details" in e.inside)
    ]
    assert articles == ["tool, message 2"]
    said = found.said()
    order = [
        said.index(words) for words in ("Tool0", "nought", "Tool1", "one", "Tool2", "two, late")
    ]
    assert order == sorted(order)
    assert "result below" in said
    assert len(found.all("a", lambda e: e.has_class("jump"))) == 2


def test_what_is_hidden_is_not_on_the_page_unless_asked_for() -> None:
    said = Page(write(rich_session()).to_bytes()).said()
    for words in ("was removed", "was skipped", "Long talk"):
        assert words not in said
    assert re.search(r"\[removed: (?:\w[\w ]*, )?8 tokens, ", said)
    assert "ghost" in said, "it is marked, so it does not look like a message"


def test_tokens_are_told_for_each_message_and_so_far() -> None:
    session = rich_session()
    found = Page(write(session).to_bytes())
    counts = [count for count, _ in session.context.message_tokens()]
    told = [
        text for each, text in found.text if each.tag == "b" and each.inside[-2:-1] == ("header",)
    ]
    assert told == [f"+{count:,}" for count in counts]
    bars = [int(each.attributes["value"]) for each in found.all("progress")]
    assert bars == [sum(counts[: n + 1]) for n in range(len(counts))]


def test_the_outline_leads_to_prompts() -> None:
    found = Page(write(rich_session()).to_bytes())
    entries = [
        text
        for each, text in found.text
        if each.tag == "span" and each.inside[-3:] == ("ol", "li", "a")
    ]
    assert entries == ["Which tags are there? See the picture.", "compaction"]


def test_a_compaction_is_one_entry_of_the_outline() -> None:
    repo = repository()
    said = [repo.append("user", f"Part {n}.").addresses[0] for n in range(2)]
    repo.replace(said, [Message("user", "One."), Message("user", "Two.")], reason="compaction")
    repo.append("user", "Go on.")
    found = Page(write(read_session(repo.store)).to_bytes())
    entries = [t for e, t in found.text if e.tag == "span" and e.inside[-3:] == ("ol", "li", "a")]
    assert entries == ["compaction", "Go on."]


def test_an_empty_context_is_a_page_too() -> None:
    store = Store.memory()
    session = rich_session()
    empty = replace(session, turns=())
    assert "no messages" in check_page(write(empty).to_bytes()).said()
    store.close()


def test_equal_sessions_give_equal_bytes() -> None:
    assert write(rich_session()).to_bytes() == write(rich_session()).to_bytes()


def test_the_policy_names_the_style_sheet() -> None:
    digest = base64.b64encode(hashlib.sha256(page.style().encode()).digest()).decode()
    assert f"sha256-{digest}" == page.STYLE_HASH, "write this hash into page.py"
    assert "url(" not in page.style()
    assert "@import" not in page.style()
    assert "</" not in page.style()


def test_roles_can_be_read_in_light_and_dark() -> None:
    """Contrast of at least 4.5 to 1, as WCAG asks of text."""
    themes = re.findall(r":root \{(.*?)\}", page.style(), re.DOTALL)[:2]
    for theme in themes:
        colors = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{3,6})", theme))
        for name in ("ink", "soft", "user", "assistant", "tool", "system", "error"):
            for ground in ("paper", "raised", "fill"):
                assert contrast(colors[name], colors[ground]) >= 4.5, (name, ground)
        assert contrast(colors["ink"], colors["mark"]) >= 4.5


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    digits = color[1:] if len(color) == 7 else "".join(c * 2 for c in color[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@given(CHARACTERS)
def test_text_is_said_as_it_is(content: str) -> None:
    found = fragment(text(content))
    assert {each.tag for each in found.elements} <= {"div", "i"}
    said = "".join(t if e.tag != "i" else t.replace(" ", "") for e, t in found.text)
    wanted = reveal(content, lambda c: code_of(c).replace(" ", ""))[0]
    assert said == wanted


@given(CHARACTERS)
def test_output_is_whole(content: str) -> None:
    found = fragment(preformatted(content))
    assert {each.tag for each in found.elements} <= {"div", "pre", "i"}
    said = "".join(t if e.tag != "i" else t.replace(" ", "") for e, t in found.text)
    assert said == reveal(normalise_newlines(content), code_of)[0]


@given(CHARACTERS)
def test_sentences_are_whole(content: str) -> None:
    found = fragment(prose(content))
    assert {each.tag for each in found.elements} <= {"div", "p", "pre", "span", "code", "b", "i"}
    wanted = [
        line
        for line in normalise_newlines(content).split("\n")
        if "```" not in line and "~~~" not in line
    ]
    if len(wanted) == normalise_newlines(content).count("\n") + 1:
        assert squeezed(found.said()) == squeezed(shown(normalise_newlines(content)))


@pytest.mark.parametrize(
    ("lines", "length"), [(1, 1), (60, 10), (61, 10), (500, 20), (1, 50_000), (3, 9_000)]
)
def test_long_output_is_folded_and_whole(lines: int, length: int) -> None:
    content = "\n".join(f"{n}:" + "x" * length for n in range(lines))
    found = fragment(preformatted(content))
    assert "".join(found.said_in("pre")) == content
    folded = found.all("details")
    assert len(folded) == (len(content) > 6750 or lines > 100)
    first = found.said_in("pre")[0]
    assert len(first) <= 6750 or not folded


def test_a_fold_does_not_cut_code_in_two() -> None:
    code = "\n".join(f"call({n})  # *not* **bold**" for n in range(50))
    content = "\n".join(f"Paragraph {n}.\n\n```py\n{code}\n```" for n in range(9))
    found = fragment(prose(content))
    assert found.said_in("pre") == [code] * 9
    assert len(found.all("details", lambda e: e.has_class("more"))) == 1
    assert not found.all("b")
    assert fragment(prose("A line.\n" * 400)).all("details")
    assert not fragment(prose("A line.\n" * 150)).all("details")


def test_an_element_outside_of_the_list_cannot_be_made() -> None:
    for tag, attributes in (("script", {}), ("a", {"onclick": "x"}), ("p", {"style": "x"})):
        with pytest.raises(KeyError):
            element(tag, "x", **attributes)
    assert element("p", Markup("<b>1</b>"), "<b>2</b>") == "<p><b>1</b>&lt;b&gt;2&lt;/b&gt;</p>"


@pytest.mark.parametrize("path", each_real_transcript())
def test_pages_of_real_transcripts(path: Path) -> None:
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    for ref, _ in store.refs.iterate("refs/heads/"):
        session = read_session(store, ref, hidden=True)
        exported = write(session)
        found = check_page(exported.to_bytes())
        assert len(found.all("article")) == len(session.turns)
        assert {loss.what for loss in exported.losses} <= {
            "image",
            "reasoning-signature",
            "subagent",
        }
