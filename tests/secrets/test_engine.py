"""The engine: findings, positions and placeholders."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.secrets.support.redaction import redacted
from trace_store.secrets.checks import checksum
from trace_store.secrets.engine import Scanner, compiled
from trace_store.secrets.first_pass import trigger_of
from trace_store.secrets.guard import may_hold
from trace_store.secrets.rules import RULES

BODY = "Zq3Wm8Rt5Yk1Pv7Xc2Nd9Bf4Gh6Jl0"
TOKEN = "gh" + "p_" + BODY + checksum(BODY.encode()).decode()
OTHER = "AK" + "IA" + "Q3WM5RT7YK2PVXCN"
SCANNER = Scanner()
PLACEHOLDER = re.compile(r"\[redacted:[a-z0-9-]+:[a-z2-7]{12}\]")


def test_every_kind_has_one_rule_whose_pattern_and_trigger_are_patterns() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES) >= 100
    for rule in RULES:
        assert compiled(rule.pattern).groups <= 1
        assert compiled(trigger_of(rule)) is not None
        assert re.fullmatch(r"[a-z0-9-]+", rule.name)
        assert rule.words


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["API_KEYS", "hT7vQ2mZx9Lp4RwKd8"]', "hT7vQ2mZx9Lp4RwKd8"),
        ("docker login -u me \\\n-p hT7vQ2mZx9Lp", "hT7vQ2mZx9Lp"),
        ("mysql -u me \\\n-phT7vQ2mZx9Lp", "hT7vQ2mZx9Lp"),
        ("Basic\tbWU6aFQ3dlEybVp4OUxw", "bWU6aFQ3dlEybVp4OUxw"),
    ],
)
def test_triggers_let_pass_capitals_tabs_and_continued_lines(text: str, value: str) -> None:
    data = text.encode()
    assert [data[each.start : each.end].decode() for each in SCANNER.find_bytes(data)] == [value]
    assert may_hold(data, ())


def test_places_are_those_of_the_bytes() -> None:
    data = f"é {TOKEN} — ü\n{OTHER}".encode()
    found = SCANNER.find_bytes(data)
    assert [data[each.start : each.end].decode() for each in found] == [TOKEN, OTHER]
    assert [each.rule for each in found] == ["github-token", "aws-access-key"]
    assert TOKEN not in repr(found)


def test_a_placeholder_tells_the_kind_and_whether_two_are_the_same() -> None:
    kept = redacted(SCANNER, f"{TOKEN} {OTHER} {TOKEN}")
    assert PLACEHOLDER.sub("", kept) == "  "
    first, second, third = PLACEHOLDER.findall(kept)
    assert first == third != second
    assert first not in redacted(Scanner(key=b"k" * 32), TOKEN)


def test_what_was_filtered_is_filtered_no_more() -> None:
    kept = redacted(SCANNER, f'password = "Tr0ub4dor&3x" {TOKEN} postgres://me:s3cr3tPw@host/')
    assert kept.count("[redacted:") == 3
    assert redacted(SCANNER, kept) == kept


def test_an_id_that_is_allowed_is_no_finding() -> None:
    (found,) = SCANNER.find_bytes(TOKEN.encode())
    data = f"{TOKEN} {OTHER}".encode()
    assert Scanner(allowed={found.id}).find_bytes(data) == SCANNER.find_bytes(data)[1:]


@pytest.mark.parametrize("value", ['p"w\\d/9 é€-x', "Zx81-known-value", "ключ-на-связку-7"])
def test_known_values_are_found_however_they_are_spelled(value: str) -> None:
    scanner = Scanner(known=[value])
    plain = f"the value {value}."
    spelled = [plain, json.dumps(plain), json.dumps(plain, ensure_ascii=False)]
    spelled.append(json.dumps({"arguments": json.dumps({"a": plain})}))
    for text in spelled:
        kept = redacted(scanner, text)
        assert kept.count("[redacted:known-value:") == 1, text
        if text[0] in '"{':
            json.loads(kept)


def test_letters_that_json_spells_as_numbers_hide_nothing() -> None:
    hidden = "".join(f"\\u{ord(each):04x}" for each in TOKEN)
    for text in (hidden, hidden.replace("\\", "\\\\"), TOKEN.replace("_", "\\u005f")):
        raw = f'{{"a": "x {text} y"}}'
        kept = json.loads(redacted(SCANNER, raw))["a"]
        assert PLACEHOLDER.fullmatch(kept[2:-2])
    url = "https:\\/\\/me:s3cr3tPw9@host\\/path"
    assert json.loads(redacted(SCANNER, f'"{url}"')).startswith(
        "https://me:[redacted:url-password:"
    )


def test_a_key_in_armour_is_found_over_line_ends_that_are_spelled() -> None:
    body = "\n".join((BODY * 3)[:64] for _ in range(6))
    key = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{body}\n-----END RSA {'PRIVATE'} KEY-----"
    for text in (key, json.dumps(key), json.dumps(json.dumps(key)), key[: len(key) // 2]):
        kept = redacted(SCANNER, f"before {text}; after")
        assert BODY not in kept
        assert kept.startswith("before ")
        assert kept.endswith("; after")
    assert json.loads(redacted(SCANNER, json.dumps([key])))[0].startswith(
        "[redacted:rsa-private-key:"
    )


TEXTS = st.lists(
    st.one_of(
        st.text(st.characters(codec=None), max_size=12),
        st.sampled_from(["\n", "\\n", '"', "\\", "password=", ": ", "token: ", "Bearer "]),
        st.sampled_from(
            [f" {TOKEN} ", f"({OTHER})", f"\n{TOKEN}\t", " postgres://me:s3cr3tPw@host/"]
        ),
    ),
    max_size=10,
).map("".join)


@given(TEXTS, TEXTS)
def test_json_stays_json_and_loses_nothing_but_secrets(one: str, other: str) -> None:
    value = {one: [other, {"inner": json.dumps({"deep": one})}], "password": "Tr0ub4dor&3x"}
    for ascii_only in (False, True):
        raw = json.dumps(value, ensure_ascii=ascii_only)
        kept = redacted(SCANNER, raw)
        json.loads(kept)
        assert TOKEN not in kept
        assert OTHER not in kept
        assert "Tr0ub4dor" not in kept
        assert redacted(SCANNER, kept) == kept


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_bytes_that_are_no_text_are_looked_at_too(before: bytes, after: bytes) -> None:
    data = before + b"\n" + TOKEN.encode() + b"\n" + after
    assert any(data[each.start : each.end] == TOKEN.encode() for each in SCANNER.find_bytes(data))


HOSTILE = ["A", "a=", "password", "eyJ", "://a:", "-----BEGIN RSA PRIVATE KEY-----", "\\", "sk-"]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_is_linear_in_hostile_text(piece: str) -> None:
    def seconds(size: int) -> float:
        data = (piece * (size // len(piece))).encode()
        start = time.process_time()
        SCANNER.find_bytes(data)
        return time.process_time() - start

    seconds(1 << 14)
    small, large = seconds(1 << 17) + 0.01, seconds(1 << 20)
    assert large < 8 * small * 4
