"""What is taken for a secret, and what is not."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.support.inputs import case
from tests.support.command_line import Outcome
from trace_store.secrets.engine import Scanner


def test_case_56_signed_reasoning_comes_back_byte_for_byte(
    ok: Callable[..., Outcome], tmp_path: Path
) -> None:
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
    (found,) = Scanner().find(before + token + after)
    assert (before + token + after)[found.start : found.end] == token
