"""Recall on a set of secrets, and false positives on similar harmless texts.

    pytest -s tests/secrets/test_found_and_false.py

prints found, false and missed, and megabytes a second.
"""

from __future__ import annotations

import re
import time
from collections import Counter

from tests.secrets.support.redaction import redacted
from tests.secrets.support.samples import harmless, secrets
from trace_store.secrets.engine import Scanner
from trace_store.secrets.guard import may_hold

MISSED = {"in words", "letters alone", "short", "cut in two"}
"""The limits that docs/secrets.md names."""
FALSE_AT_MOST = 5
SCANNER = Scanner()
PLACEHOLDER = re.compile(r"\[redacted:[a-z0-9-]+:[a-z2-7]{12}\]")


def pieces(value: str) -> list[str]:
    """What of a secret must not be left: its parts without line ends, as they may be spelled."""
    return [piece for piece in re.split(r"[\n/+=]", value) if len(piece) > 5] or [value]


def test_what_is_found_of_secrets_and_of_what_looks_like_some() -> None:
    samples, others = secrets(), harmless()
    assert len(samples) >= 100
    assert len({sample.kind for sample in samples}) >= 40
    assert len(others) == 1000
    missed = []
    for sample in samples:
        assert sample.value in sample.text or "\n" in sample.value or "\\" in sample.text
        kept = redacted(SCANNER, sample.text)
        if any(piece in kept for piece in pieces(sample.value)[:1] + pieces(sample.value)[-1:]):
            missed.append(sample.kind)
    false = Counter(found.rule for text in others for found in SCANNER.find_bytes(text.encode()))
    lines = sum(bool(SCANNER.find_bytes(text.encode())) for text in others)
    kinds = len({sample.kind for sample in samples})
    print(f"\nfound {len(samples) - len(missed)} of {len(samples)} secrets of {kinds} kinds")
    print(f"missed: {', '.join(missed)}")
    print(f"false: {lines} of {len(others)} harmless texts {dict(false)}")
    assert set(missed) <= MISSED
    assert lines <= FALSE_AT_MOST


def test_a_short_look_passes_nothing_on_that_the_engine_would_find() -> None:
    for sample in secrets():
        if SCANNER.find_bytes(sample.text.encode()):
            assert may_hold(sample.text.encode(), ()), sample.kind
    for text in harmless():
        if SCANNER.find_bytes(text.encode()):
            assert may_hold(text.encode(), ())


def test_speed_is_told() -> None:
    benign = "\n".join(harmless()).encode() * 8
    with_hits = benign + "\n".join(sample.text for sample in secrets()).encode()
    for name, data in (("benign", benign), ("with secrets", with_hits)):
        chunks = [data[at : at + 4096] for at in range(0, len(data), 4096)]
        for chunk in chunks:
            SCANNER.find_bytes(chunk)
        start = time.process_time()
        for chunk in chunks:
            SCANNER.find_bytes(chunk)
        seconds = time.process_time() - start
        print(
            f"\n{name}: {len(data) / 1e6:.1f} MB, {len(data) / 1e6 / seconds:.0f} MB/s of processor time"
        )
        assert len(data) / 1e6 / seconds > 1
