"""Outputs that may leave a context, because a later text that stays holds them.

An output is held by a later one if that has all of its lines, in their order; or, for a whole file, if that is another
version of the whole file of about that length. The lines that the later version no longer has are reported. An edit, a
read of a part, a stub such as "unchanged", and the output of a failed call hold nothing but their own lines.

Outputs are judged from the newest to the oldest, and only by texts that stay. So whatever leaves, its lines are still
in the context, and a reference leads to a text, not to another reference.
"""

from __future__ import annotations

import re

from trace_store.base.frozen import value
from trace_store.context.activity import READ, WRITE, output_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from trace_store.compression.working import Output, WorkingContext

SUPERSEDED = "superseded"
DUPLICATE = "duplicate"

_SMALLEST = 400
"""An output with fewer characters is left alone, unless its file was read again."""
_SHORTEST_VERSION = 0.7
"""A version of a file has at least this share of the lines of an older one; a shorter one may be cut."""
_LEAST_COMMON = 0.5
"""Where a path does not tell which file it is, a version has at least this share of the lines of an older one."""
_MOST_HOLDERS = 30
"""Number of newest texts with a line that are looked at."""
_NUMBERED = re.compile(r"^\s*\d+(?:→|\t|\||: ?)")
_NUMBERED_SHARE = 0.8
_TELLING_PATH = re.compile(r"^[^\n]|\n(?:/|~|[A-Za-z]:)")
"""A file with a known folder, or with an absolute path; a relative one may be another file after a `cd`."""
_CUT = re.compile(
    r"truncated|omitted|elided|cleared|removed|unchanged|not changed|more lines", re.IGNORECASE
)


_REFERENCE = re.compile(
    r"\[(?P<said>[^\n]+?) (?P<holder>[0-9a-f]{8,}\.\d+)(?: \(result (?P<number>\d+) of \d+, [^\n]*\))?"
    r"(?P<lost>; [\d,]+ lines? of this version stands? nowhere else: trace expand [0-9a-f.]+)?\]"
)
"""A note of an earlier trim in the place of an output, which leads to a text that was not cut then."""


@value
class Repeat:
    """An output that a later text holds.

    Attributes:
        output: the output.
        holder: the text that holds it: a later output, or the text of a file that was written.
        reason: SUPERSEDED for a file that was read or written again, DUPLICATE for any other output.
        said: how the later text holds it, to be followed by its address.
        gone: the lines of an older version of a file that the context no longer contains.
        lost: what an earlier note says of such lines, or "".
    """

    output: Output
    holder: Output
    reason: str
    said: str
    gone: tuple[str, ...] = ()
    lost: str = ""

    def note(self, working: WorkingContext, *, is_cut: bool = False) -> str:
        """Return the text in the place of the output; `is_cut` tells that the later text was cut, too."""
        lost = self.lost
        if self.gone:
            count = (
                "1 line of this version stands"
                if len(self.gone) == 1
                else f"{len(self.gone):,} lines of this version stand"
            )
            own = working.short_address(self.output.at)
            lost = f"; {count} nowhere else: trace expand {own}"
        holder = working.short_address(self.holder.at)
        among = working.among_results(self.holder)
        cut = f", which is cut: trace expand {holder}" if is_cut else ""
        return f"[{self.said} {holder}{among}{cut}{lost}]"


@value
class _Held:
    """A text as it is compared: its lines without numbers, headers and blank ones."""

    output: Output
    lines: tuple[str, ...]
    distinct: frozenset[str]
    file: str
    """The file that the text is a whole version of, or ""."""


def lines_of(text: str) -> list[str]:
    """Return the lines that two outputs are compared by: without blank ones, line numbers and a tool's own header."""
    lines = output_lines(text)
    numbered = sum(_NUMBERED.match(line) is not None for line in lines)
    if numbered and numbered >= _NUMBERED_SHARE * len(lines):
        lines = [_NUMBERED.sub("", line).strip() for line in lines]
    return [line for line in lines if line]


class _Search:
    """Finds, for one output after the other from the newest on, the text that holds it."""

    def __init__(self) -> None:
        self._with_line: dict[str, list[_Held]] = {}
        self._versions: dict[str, list[_Held]] = {}

    def stays(self, held: _Held) -> None:
        for line in held.distinct:
            known = self._with_line.setdefault(line, [])
            if len(known) < _MOST_HOLDERS:
                known.append(held)
        if held.file:
            self._versions.setdefault(held.file, []).append(held)

    def has(self, line: str) -> bool:
        return line in self._with_line

    def holder(self, held: _Held, allowed: Callable[[Output, Output], bool]) -> _Held | None:
        """Return the newest text that holds another one, of those that `allowed` accepts."""
        if not held.lines:
            return None
        known = min((self._with_line.get(line, []) for line in held.distinct), key=len)
        for each in known:
            if allowed(held.output, each.output) and _contains(each.lines, held.lines):
                return each
        for each in self._versions.get(held.file, ()) if held.file else ():
            if allowed(held.output, each.output) and _is_version(each, held):
                return each
        return None


def repeats(working: WorkingContext, allowed: Callable[[Output, Output], bool]) -> list[Repeat]:
    """Return the outputs that later texts hold, oldest first. What calls wrote as whole files holds outputs, and stays.

    Args:
        working: the context.
        allowed: returns whether an output may leave the context for a later text.
    """
    search, outputs, written = _Search(), working.outputs, working.written
    found: list[tuple[_Held, _Held]] = []
    own = {id(each) for each in outputs if not each.media and not _REFERENCE.fullmatch(each.text)}
    for each in sorted((*outputs, *written), key=lambda each: each.at, reverse=True):
        held = _held(each)
        later = search.holder(held, allowed) if id(each) in own else None
        size = sum(map(len, held.lines))
        if later is not None and (held.file == later.file != "" or size >= _SMALLEST):
            found.append((held, later))
        else:
            search.stays(held)
    missing = {line for held, _ in found for line in held.lines if not search.has(line)}
    if missing:
        missing -= {line for text in working.other_texts() for line in lines_of(text)}
    return [_repeat(held, later, missing) for held, later in reversed(found)]


def earlier_repeats(working: WorkingContext) -> Iterator[Repeat]:
    """Yield what earlier trims replaced by references to texts that are still there and whole."""
    places = {working.short_address(at): at for at in range(len(working.messages))}
    for output in working.outputs:
        told = _REFERENCE.fullmatch(output.text)
        at = places.get(told["holder"]) if told else None
        if told is None or at is None:
            continue
        holders = [each for each in (*working.outputs, *working.written) if each.at == at]
        number = int(told["number"] or 1) - 1
        for holder in holders[number : number + 1]:
            yield Repeat(output, holder, DUPLICATE, told["said"], lost=told["lost"] or "")


def _repeat(held: _Held, later: _Held, missing: Collection[str]) -> Repeat:
    output, holder = held.output, later.output
    gone = tuple(line for line in dict.fromkeys(held.lines) if line in missing)
    is_file = output.action.kind == READ and set(output.action.paths) & set(holder.action.paths)
    if is_file:
        verb = "read again" if holder.action.kind == READ else "written again"
        said = f"{output.action.subject} was {verb} in"
    elif held.lines == later.lines:
        said = "the same output as"
    else:
        said = "this output is a part of"
    return Repeat(output, holder, SUPERSEDED if is_file else DUPLICATE, said, gone)


def _held(output: Output) -> _Held:
    lines = tuple(lines_of(output.text))
    return _Held(output, lines, frozenset(lines), _whole_file(output))


def _whole_file(output: Output) -> str:
    """Return the file that a text is a whole version of, or ""."""
    action = output.action
    is_whole = action.kind == READ or (action.kind == WRITE and output.text == action.content)
    if not is_whole or action.span or not action.paths or output.outcome.failed:
        return ""
    return f"{action.folder}\n{action.paths[0]}"


def _contains(lines: Iterable[str], wanted: Iterable[str]) -> bool:
    """Return True if a text has all wanted lines, in their order."""
    rest = iter(lines)
    return all(line in rest for line in wanted)


def _is_version(later: _Held, earlier: _Held) -> bool:
    """Return True if a later text is a newer version of the same whole file."""
    is_cut = any(_CUT.search(line) for line in later.distinct - earlier.distinct)
    common = len(later.distinct & earlier.distinct)
    is_same_file = _TELLING_PATH.search(earlier.file) or (
        common >= _LEAST_COMMON * len(earlier.distinct)
    )
    return bool(
        not is_cut and is_same_file and len(later.lines) >= _SHORTEST_VERSION * len(earlier.lines)
    )
