"""Texts that count as secrets, and texts that do not."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.support.inputs import case
from tests.secrets.support.redaction import redacted
from tests.support.command_line import Run, Trace
from trace_store.secrets.engine import Scanner
from trace_store.secrets.guard import may_hold


def test_case_56_signed_reasoning_comes_back_byte_for_byte(ok: Run, tmp_path: Path) -> None:
    (path,) = case("56").iterdir()
    ok("import", str(path))
    assert ok("compile", "--format", "anthropic", "--strict").code == 0
    assert ok("export", "--native").out == path.read_bytes()


ENCODINGS = {
    "base64": base64.b64encode,
    "urlsafe": base64.urlsafe_b64encode,
    "wrapped": lambda data: base64.encodebytes(data).replace(b"\n", b"\\n"),
}


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
def test_case_56_random_base64_holds_no_secret(encode: Callable[[bytes], bytes]) -> None:
    scanner, source = Scanner(), random.Random(56)
    for _ in range(1_000):
        data = b'{"signature":"%b"}' % encode(source.randbytes(3_000))
        assert not scanner.find_bytes(data)


@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ('"', '"'), ("token ", "\n"), ("x\n", "\ny")]
)
def test_case_56_a_token_in_its_own_bounds_is_found(before: str, after: str) -> None:
    token = "ghp_" + "".join(
        random.Random(1).choices("abcdefghijkmnpqrstuvwxyzABCDEFG123456", k=36)
    )
    (found,) = Scanner().find_bytes((before + token + after).encode())
    assert (before + token + after)[found.start : found.end] == token


@pytest.mark.parametrize("name", sorted(path.name for path in case("37").iterdir()))
def test_case_37_a_value_that_starts_with_a_digit(trace: Trace, name: str) -> None:
    outcome = trace("secrets", "test", str(case("37") / name))
    assert outcome.code == 7, outcome.err


def test_case_39_every_name_is_found() -> None:
    (path,) = case("39").iterdir()
    data = path.read_bytes()
    found = {data.count(b"\n", 0, each.start) for each in Scanner().find_bytes(data)}
    assert found == set(range(data.count(b"\n")))


V = "9kQ1b7a90c3dX56abZ"
PLACES = [
    f"mysqldump -u root -p{V} db",
    f"--password {V}",
    f"docker login -u me -p {V} registry",
    f"ENV API_TOKEN {V}",
    f"- name: DB_PASSWORD\n  value: {V}",
    f'{{"name": "DB_PASSWORD", "value": "{V}"}}',
    f"- name: SIGNING_KEY\\n  value: {V}",
    f'{{"dbPassword":"{V}"}}',
    f'clientSecret: "{V}"',
    f"postgres://user:{V}@host/db",
    f"localhost:5432:db:user:{V}",
    f"+ export API_KEY={V}",
    f'$env:DB_PASS = "{V}"',
    f"{{'password': '{V}'}}",
    f"pass: {V}",
    f"Cookie: theme=dark; session={V}",
    f"curl -u admin:{V} https://example.org",
    f"AccountKey={V}",
    f"gh secret set TOKEN --body {V}",
    f"machine h login u password {V}",
]


@pytest.mark.parametrize("text", PLACES)
def test_case_37_39_places_of_secrets(text: str) -> None:
    assert V not in redacted(Scanner(), text)
    assert may_hold(text.encode(), ())


@pytest.mark.parametrize(
    "text",
    [
        "--- PASS: TestGetSummariseOptions/enabled_true (0.02s)",
        "compass: 9kQ1b7a90c3dX56abZ",
        "password: string",
        "token = get_token()",
        "API_KEY=${API_KEY}",
        "DB_PASSWORD=changeme",
        "secret: <your-secret>",
        "pass: 12 fail: 0",
    ],
)
def test_case_37_39_what_is_no_secret(text: str) -> None:
    assert not Scanner().find_bytes(text.encode())
