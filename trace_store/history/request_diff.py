"""Differences between two contexts as rendered for a provider.

The rendered requests are compared, with one line for each field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.compiled import CompiledContext
from trace_store.history.text_diff import blocks
from trace_store.providers.wire import to_bytes

HEAD = "@"
_STEP = 4096


@value
class RenderedDiff:
    """The differences between two requests.

    Attributes:
        form: the provider's format.
        before, after: the commits.
        lines: (sign, text) of a unified diff: "-", "+", " " for context, and "@" for a hunk header.
        size_before, size_after: bytes of the requests as sent.
        same_bytes: length of their common prefix in bytes.
    """

    JSON = "format=form"

    form: str
    before: ObjectId | None
    after: ObjectId | None
    lines: tuple[tuple[str, str], ...]
    size_before: int
    size_after: int
    same_bytes: int

    @property
    def is_equal(self) -> bool:
        """Whether the requests are identical."""
        return self.same_bytes == self.size_before == self.size_after


def diff_rendered(
    before: CompiledContext, after: CompiledContext, form: str, *, around: int
) -> RenderedDiff:
    """Return the differences between two contexts as they are rendered, as `ContextDiff.rendered`."""
    sides = [before, after]
    requests = [side.render(form).request for side in sides]
    data = [to_bytes(request) for request in requests]
    lines = [_lines(request) for request in requests]
    return RenderedDiff(
        form,
        sides[0].commit,
        sides[1].commit,
        tuple(hunks(lines[0], lines[1], around)),
        len(data[0]),
        len(data[1]),
        common_bytes(data[0], data[1]),
    )


def hunks(one: Sequence[str], other: Sequence[str], around: int) -> Iterator[tuple[str, str]]:
    """Yield a unified diff as (sign, text); each hunk starts with its header."""
    found: list[tuple[str, str]] = []
    for same, left, right in blocks(one, other):
        if same:
            found += [(" ", text) for text in left]
        else:
            found += [("-", text) for text in left] + [("+", text) for text in right]
    near = [False] * len(found)
    for at, (sign, _) in enumerate(found):
        if sign != " ":
            near[max(at - around, 0) : at + around + 1] = [True] * (
                min(at + around + 1, len(found)) - max(at - around, 0)
            )
    line = {"-": 1, "+": 1}
    for at, (sign, text) in enumerate(found):
        if near[at]:
            if not at or not near[at - 1]:
                run = list(islice(_run(found, near, at), None))
                counts = [sum(s in (" ", side) for s in run) for side in "-+"]
                yield HEAD, f"@@ -{line['-']},{counts[0]} +{line['+']},{counts[1]} @@"
            yield sign, text
        for side in "-+":
            line[side] += sign in (" ", side)


def common_bytes(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix in bytes."""
    at, least = 0, min(len(one), len(other))
    while at < least and one[at : at + _STEP] == other[at : at + _STEP]:
        at += _STEP
    while at < least and one[at] == other[at]:
        at += 1
    return min(at, least)


def _run(found: Sequence[tuple[str, str]], near: Sequence[bool], at: int) -> Iterator[str]:
    while at < len(found) and near[at]:
        yield found[at][0]
        at += 1


def _lines(request: Any) -> list[str]:
    """Return a request as lines; multi-line text is split."""
    if isinstance(request, str):
        return request.split("\n")
    text = json.dumps(request, ensure_ascii=False, indent=1)
    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        # JSON escapes newlines, and only in strings.
        lines += line.replace("\\n", f"\\n\n{indent}  ").split("\n")
    return lines
