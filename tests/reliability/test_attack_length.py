"""Hostile texts: reading, scanning, escaping and writing take linear time."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import pytest

from tests.reliability.support.long_texts import attempt, long_text, readers, steps

FULL = "TRACE_TEST_FULL" in os.environ
SHORT, LONG = 1 << 11, 1 << 13
EACH = 1 if FULL else 6
"""Of so many pieces one is taken; readers take different ones."""
SLACK_STEPS = 2000
"""What a longer text may take once more: a buffer that is filled, a table that is made."""


@pytest.mark.parametrize(
    ("read", "pieces"),
    [
        pytest.param(read, pieces[number % EACH :: EACH], id=name)
        for number, (name, read, pieces) in enumerate(readers())
    ],
)
def test_steps_are_in_proportion(read: Callable[[str], object], pieces: tuple[str, ...]) -> None:
    attempt(read, long_text("warm ", SHORT))
    steep = {}
    for piece in pieces:
        attempt(read, long_text(piece, 64))
        short, long = (
            steps(partial(attempt, read, long_text(piece, size))) for size in (SHORT, LONG)
        )
        if long > LONG / SHORT * short * 1.1 + SLACK_STEPS:
            steep[piece] = (short, long)
    assert not steep
