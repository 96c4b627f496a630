"""Flame graphs: sampling and layout."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.flame import blocks, picture
from benchmarks.stacks import Samples, read, sampled

STACKS = st.dictionaries(
    st.lists(st.sampled_from(["m.a", "m.b<c>", "n.d&"]), min_size=1, max_size=4).map(tuple),
    st.integers(min_value=1, max_value=50),
    min_size=1,
)


def wait(seconds: float) -> str:
    time.sleep(seconds)
    return "done"


def test_what_waits_is_seen_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wait.stacks"
    assert sampled(file, wait, 0.2) == "done"
    samples = read(file)
    assert samples.total >= 1
    assert samples.lines.most_common(1)[0][0].endswith(": time.sleep(seconds)")
    assert all(stack[0].endswith(".wait") for stack in samples.stacks)


def test_a_failure_leaves_the_samples(tmp_path: Path) -> None:
    file = tmp_path / "failed.stacks"
    with pytest.raises(ValueError, match="no number"):
        sampled(file, int, "no number")
    assert read(file) == Samples(Counter(), Counter())


@given(STACKS)
def test_a_block_lies_on_its_caller(stacks: dict[tuple[str, ...], int]) -> None:
    samples = Samples(Counter(stacks), Counter())
    drawn = list(blocks(samples))
    for each in drawn:
        below = [x for x in drawn if x.depth == each.depth - 1]
        assert not each.depth or any(
            x.left <= each.left + 1e-9 and each.left + each.share <= x.left + x.share + 1e-9
            for x in below
        )
    floor = sorted(x for x in drawn if not x.depth)
    assert sum(x.share for x in floor) <= 1 + 1e-9
    assert len({x.name for x in floor}) == len(floor)


@given(STACKS)
def test_a_picture_is_well_formed(stacks: dict[tuple[str, ...], int]) -> None:
    ElementTree.fromstring(picture(Samples(Counter(stacks), Counter()), "a < b & c"))
