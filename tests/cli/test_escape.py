"""Text of a repository is escaped on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_cli.render.escape import bounded, one_line, safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("line\n\tnext", "line\n\tnext"),
        ("größer 日本語 🙂", "größer 日本語 🙂"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x1b]52;c;eA==\x07", "\\x1b]52;c;eA==\\x07"),
        ("a\rb\x00\x7f", "a\\x0db\\x00\\x7f"),
        ("\x9b31m\x80", "\\x9b31m\\x80"),
        ("a\u202eb\u2066c", "a<U+202E>b<U+2066>c"),
        ("z\u200bw\u200dj\ufeff", "z<U+200B>w<U+200D>j<U+FEFF>"),
        ("l\u2028p\u2029", "l<U+2028>p<U+2029>"),
        ("\U000e0041tag", "<U+E0041>tag"),
        ("\ud800", "<U+D800>"),
        ("[red]markup[/red]", "[red]markup[/red]"),
    ],
)
def test_safe(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_nothing_a_terminal_obeys_passes() -> None:
    everything = "".join(
        map(chr, [*range(0x300), *range(0x2000, 0x2100), 0xFEFF, *range(0xE0000, 0xE0080)])
    )
    shown = safe(everything)
    controls = {chr(c) for c in [*range(32), *range(0x7F, 0xA0)]} - {"\n", "\t"}
    assert not controls & set(shown)
    assert not set(
        map(chr, [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2066, 0x206A)])
    ) & set(shown)


def test_safe_text_is_encodable() -> None:
    safe("\ud83d \udfff").encode("utf-8")


def test_one_line() -> None:
    assert one_line(" a\n\n b\tc ") == "a b c"
    assert one_line("word " * 50, 12) == "word word w…"
    assert one_line("short", 12) == "short"
    assert one_line("x" * 1_000_000, 5) == "xxxx…"
    assert one_line("\x1b[1m", 40) == "\\x1b[1m"


@given(st.text("ab  \t\n\x1c\x1b\xa0\u3000\u200b日") | st.text())
def test_one_line_has_single_spaces_whatever_the_text(text: str) -> None:
    assert one_line(text) == safe(" ".join(text.split()))


def test_bounded() -> None:
    assert bounded(b"\xff\x00ok") == "\\xff\\x00ok"
    assert bounded(b"abcdef", 3) == "abc…"
