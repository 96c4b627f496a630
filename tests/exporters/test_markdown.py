"""Transcripts in Markdown: text never becomes structure, and renders unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.exporters.support.pages import Page
from tests.exporters.support.sessions import ATTACKS, hostile_session, rich_session
from tests.importers.support.transcripts import each_real_transcript
from trace_store.exporters.markdown import collapse, line, paragraphs, write
from trace_store.exporters.markdown import fence as fenced
from trace_store.exporters.session import read_session
from trace_store.importers.import_paths import import_paths
from trace_store.store.store import Store
from trace_store.writer import Writer

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
CHARACTERS = st.text(
    st.one_of(
        st.sampled_from("<>&\"'`*#-~|\\/=:;![]()_+.0123 \n\tab"),
        st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]),
    ),
    max_size=300,
)
OWN_HTML = re.compile(r"<details>\n<summary>[^<]*</summary>\n|</details>\n?")
SPANS = {"text", "code_inline", "strong_open", "strong_close", "hardbreak", "softbreak"}
LISTS = {
    f"{kind}_{end}"
    for kind in ("bullet_list", "ordered_list", "list_item")
    for end in ("open", "close")
}
WHOLE = {"paragraph_open", "paragraph_close", "inline", *LISTS}


def inner(tokens: list[Token]) -> list[Token]:
    return [each for token in tokens for each in token.children or ()]


def check_page(text: str, turns: int) -> list[Token]:
    """Parse a page and check that its structure is its own."""
    tokens = PARSER.parse(text)
    headings = [tokens[i + 1].content for i, t in enumerate(tokens) if t.type == "heading_open"]
    levels = [token.tag for token in tokens if token.type == "heading_open"]
    assert levels == ["h1"] + ["h2"] * turns
    assert all(h.startswith(f"{n}. ") for n, h in enumerate(headings[1:], 1))
    for token in tokens:
        if token.type == "html_block":
            assert OWN_HTML.fullmatch(token.content), token.content[:200]
        assert token.type not in ("hr", "code_block"), token.content
    for token in inner(tokens):
        assert token.type not in ("html_inline", "link_open", "s_open"), token
        if token.type == "image":
            assert re.match(r"data:image/(png|jpeg|gif|webp);base64,", str(token.attrs["src"]))
    assert text.count("<details>") >= sum(t.content.startswith("<details>") for t in tokens)
    opened = [t.content.startswith("<details>") for t in tokens if t.type == "html_block"]
    assert opened == [True, False] * (len(opened) // 2)
    assert sum(token.type == "table_open" for token in tokens) == 1
    return tokens


def test_a_hostile_session_stays_content() -> None:
    session = hostile_session()
    exported = write(session)
    tokens = check_page(exported.to_bytes().decode(), len(session.turns))
    assert not [token for token in inner(tokens) if token.type == "image"]
    said = " ".join(t.content for t in [*tokens, *inner(tokens)] if t.type in ("text", "fence"))
    for attack in ATTACKS[:5]:
        assert attack in said
    assert {"control-character", "image", "opaque-part"} <= {loss.what for loss in exported.losses}


def test_a_session_with_everything_is_all_there() -> None:
    session = rich_session(hidden=True)
    exported = write(session)
    text = exported.to_bytes().decode()
    tokens = check_page(text, len(session.turns))
    assert [str(loss) for loss in exported.losses] == [
        "1 image (of a type that is not shown)",
        "1 message id",
        "1 opaque part (in the form of other)",
        "1 reasoning signature (bound to claude-opus-4-6)",
    ]
    fences = [token.content for token in tokens if token.type == "fence"]
    assert '{\n  "command": "git tag",\n  "timeout": 1.5\n}\n' in fences
    assert "v1\nv2\n" in fences
    assert "git tag\n" in fences
    assert "no such file\n" * 100 in fences
    assert sum(token.type == "image" for token in inner(tokens)) == 1
    assert "> **reasoning**\n> \n> I look at the \\*tags\\* first." in text
    assert "- with `git tag`  \n- **only** once" in text
    for words in ("pinned", "\\#question", "removed", "skipped", "compaction of 3 messages"):
        assert f" · {words} · `" in text or f"\n{words} · `" in text, words
    assert "reported: 1,020 tokens in (1,000 from a cache), 30 out" in text


def test_tokens_are_told() -> None:
    session = rich_session()
    text = write(session).to_bytes().decode()
    total = 0
    for count, _ in session.context.message_tokens():
        total += count
        assert f"{count:,} tokens, {total:,} so far" in text


def test_equal_sessions_give_equal_bytes() -> None:
    assert write(rich_session()).to_bytes() == write(rich_session()).to_bytes()


@given(CHARACTERS)
def test_sentences_show_their_characters(content: str) -> None:
    shown = paragraphs(content)
    tokens = PARSER.parse(shown)
    assert {token.type for token in tokens} <= WHOLE
    assert {token.type for token in inner(tokens)} <= SPANS
    rendered = Page(f"<div>{PARSER.render(shown)}</div>".encode()).said()
    # Markers of lists, bold words and code are rendered.
    assert without_marks(rendered) == without_marks(content)


def without_marks(text: str) -> str:
    text = re.sub(r"(?m)^[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)+", "", text)
    return "".join(text.split()).replace("`", "").replace("*", "")


@given(CHARACTERS)
def test_fences_hold_what_they_are_given(content: str) -> None:
    tokens = PARSER.parse(f"before\n\n{fenced(content)}\n\nafter")
    assert [t.type for t in tokens if t.level == 0 and t.nesting >= 0] == [
        "paragraph_open",
        "fence",
        "paragraph_open",
    ]
    (fence,) = [token for token in tokens if token.type == "fence"]
    assert fence.content == content + "\n"


@given(CHARACTERS)
def test_a_line_stays_one_line_of_a_heading_and_of_a_table(content: str) -> None:
    tokens = PARSER.parse(f"# x {line(content)}\n\n| | |\n|---|---|\n| a | {line(content)} |\n")
    assert [t.type for t in tokens if t.level == 0 and t.nesting > 0] == [
        "heading_open",
        "table_open",
    ]
    cells = [tokens[i + 1] for i, t in enumerate(tokens) if t.type == "td_open"]
    assert len(cells) == 2
    assert {each.type for each in cells[1].children or ()} <= {"text"}
    said = "".join(each.content for each in cells[1].children or ())
    assert "".join(said.split()) == "".join(content.split())


@given(CHARACTERS)
def test_a_summary_closes_nothing(content: str) -> None:
    tokens = PARSER.parse("\n\n".join(collapse(content, ["inside"])))
    assert [t.type for t in tokens if t.level == 0 and t.nesting >= 0] == [
        "html_block",
        "paragraph_open",
        "html_block",
    ]
    page = Page(tokens[0].content.encode() + b"</details>")
    assert [each.tag for each in page.elements] == ["details", "summary"]


@pytest.mark.parametrize("path", each_real_transcript())
def test_real_transcripts_in_markdown(path: Path) -> None:
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    for ref, _ in store.refs.iterate("refs/heads/"):
        session = read_session(store, ref)
        check_page(write(session).to_bytes().decode(), len(session.turns))
