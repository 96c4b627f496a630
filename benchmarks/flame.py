"""Flame graphs: each function above its caller, as wide as its share of samples."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from benchmarks.stacks import Samples, Stack

WIDTH = 1200
ROW = 17
LETTER = 6.6
"""Pixels of a letter, about, in the font of the picture."""
LEAST = 0.004
"""The share of all samples under which a function is not drawn."""
COLOURS = {
    "trace_store": "#e6b35a",
    "benchmarks": "#c9c9c9",
    "": "#9db8d9",
}


class Block(NamedTuple):
    """A rectangle: a function at one place of the stack.

    Attributes:
        name: the function.
        depth: 0 for the outermost.
        left, share: where it begins and how wide it is, as shares of all samples.
    """

    name: str
    depth: int
    left: float
    share: float


def blocks(samples: Samples) -> Iterator[Block]:
    """Yield the blocks of a flame graph; those with the same caller sorted by name."""
    yield from _above(sorted(samples.stacks.items()), 0, 0, samples.total)


def _above(stacks: list[tuple[Stack, int]], depth: int, left: int, total: int) -> Iterator[Block]:
    """Yield the blocks from a depth on of sorted stacks, which are the same below it."""
    by_name: dict[str, list[tuple[Stack, int]]] = {}
    for stack, count in stacks:
        if len(stack) > depth:
            by_name.setdefault(stack[depth], []).append((stack, count))
    for name, held in by_name.items():
        count = sum(each for _, each in held)
        if count >= LEAST * total:
            yield Block(name, depth, left / total, count / total)
            yield from _above(held, depth + 1, left, total)
        left += count


def picture(samples: Samples, title: str) -> str:
    """Return an SVG; each block tells its name and share when a pointer rests on it."""
    drawn = list(blocks(samples))
    height = (max((each.depth for each in drawn), default=0) + 2) * ROW + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="monospace" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="4" y="13">{escape(title)}; {samples.total} samples</text>',
    ]
    for each in drawn:
        top = height - (each.depth + 1) * ROW - 4
        parts.append(_rectangle(each, top))
    return "\n".join([*parts, "</svg>", ""])


def _rectangle(block: Block, top: int) -> str:
    width = block.share * WIDTH
    room = int((width - 4) / LETTER)
    short = block.name.removeprefix("trace_store.")
    shown = short if len(short) <= room else short.rpartition(".")[2]
    if len(shown) > room:
        shown = f"{shown[: room - 1]}…" if room > 2 else ""
    package = block.name.partition(".")[0]
    colour = COLOURS.get(package, COLOURS[""])
    left = block.left * WIDTH
    return (
        f"<g><title>{escape(block.name)}: {block.share:.1%}</title>"
        f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW - 1}" rx="1" '
        f'fill="{colour}" stroke="#ffffff" stroke-width="0.5"/>'
        + (f'<text x="{left + 3:.1f}" y="{top + 12}">{escape(shown)}</text>' if shown else "")
        + "</g>"
    )
