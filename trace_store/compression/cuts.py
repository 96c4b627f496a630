"""Shortened texts and messages. A note in each says what was removed and how to show it.

A cut keeps what a reader needs to go on: lines that say what failed, wherever they stand, lines that are unlike all
others, and the head and the tail. A note says how many lines of the original are missing, also after a second cut.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise

from trace_store.context.activity import (
    READ,
    RUN,
    WRITE,
    activity_of,
    counts_checks,
    failure_rank,
    is_header,
    is_stack_frame,
    says_failure,
    unwrapped,
    was_stopped,
)
from trace_store.context.wording import (
    FINDING,
    REPORT_BODY,
    excerpt,
    head_and_tail,
    is_choice,
    is_narration,
    is_report,
    sentences,
)
from trace_store.objects.parts import Text, ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.compression.working import WorkingContext
    from trace_store.context.activity import ToolStep
    from trace_store.objects.parts import Part

_ARGUMENT_CHARACTERS = 400
_ARGUMENT_TOKENS = 50
"""At least this many tokens of a long argument stay."""
_PROSE_CHARACTERS = 400
CHARACTERS_PER_TOKEN = 4
_NAMES = 10
_ELLIPSES = 6
_SHORTEST_LINE = 90
"""A line of up to as many characters stays whole if it fits."""
_NOTE_CHARACTERS = 320
"""A cut that saves fewer characters is not worth its note."""
_TELLING_SHARE = 0.6
"""Maximum share of the kept characters for telling lines; the rest is head and tail."""
_TELLING_CHARACTERS = 240
_UNUSUAL_SHARE = 0.1
"""Lines unlike all others are kept where most lines are alike: where they are at most this share."""
_CONCLUSION_CHARACTERS = 300
_DECISIONS = 2
_SORTS = {"Failed": 2, "Reported": 3, "Decided": _DECISIONS, "Concluded": 1}
"""What a note tells, and how many lines of each sort."""
_VERBS = {"read": READ, "changed": WRITE, "ran": RUN}
_COMMAND_CHARACTERS = 60
_EARLIER = re.compile(
    r"\[(?P<count>[\d,]+) messages? removed(?:: (?P<said>.*?))?\. trace expand (?P<first>[0-9a-f]+\.\d+)\]"
    r"(?P<told>(?:\n[^\n]*)*)$"
)
"""A note that an earlier trim put in the place of messages."""
_CLAUSES = re.compile(r"; (?=(?:read|changed|ran) )")
_MORE = re.compile(r" and (\d+) more$")
_ENDINGS = 3
_LAST_SENTENCES = 5
_FEWEST_WORDS = 6
"""A shorter sentence concludes nothing."""
_MARK = 5
GAP = "[…]"
"""The place of further removed lines, which the note before it counts."""
_NOTE = re.compile(
    r"^\[(?:([\d,]+) lines?)?(?: and )?(?:([\d,]+) characters)? removed(?:, [^:\]\n]*)?: trace expand [0-9a-f.]+\]$",
    re.MULTILINE,
)
_NUMBERED = re.compile(r"^\s*\d+(?:→|\t|:|\|)\s?")
_TAG = re.compile(r"\s*</?[\w-]+>\s*")
_OPENS = re.compile(r"[{(\[:]\s*$")
"""A line that opens the next one."""
_HEADING = re.compile(
    r"(?P<file>diff --git |\+\+\+ |\*\*\* (?:Add|Delete|Update) File: )|(?P<hunk>@@)"
    r"|\s*(?:(?P<marks>#{1,6}) |(?P<bold>(?:\d+\. |[-*] )?\*\*[^*\n]+\*\*:?\s*$))"
)
"""A heading, also of a file or a hunk in a diff."""
_IN_DIFF = re.compile(r"diff --git |@@|\*\*\* Begin Patch")
_CHANGED = re.compile(r"(?:[+-](?!--|\+\+ )|\+\+\+ |\*\*\* (?:Add|Delete|Update) File: )")
"""A changed line of a diff, and the heading of its file."""
_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{7,}\b|\d+", re.IGNORECASE)


def shortened(
    text: str, tokens: int, address: str, outcome: str = "", *, failures: bool = False
) -> str:
    """Shorten a text by its lines, and note what was removed; return "" if it is short enough.

    Args:
        text: the text.
        tokens: approximate number of tokens to keep; 0 keeps only the note.
        address: where the whole text is.
        outcome: how a command ended, for the note.
        failures: whether its lines may say what failed, which then come first.
    """
    room = tokens * CHARACTERS_PER_TOKEN
    if len(text) <= room + _NOTE_CHARACTERS:
        return ""
    gone = Counter({"lines": 0, "characters": 0})
    whole = _NOTE.sub(lambda found: _counted(found, gone), unwrapped(text)).splitlines()
    lines, cut = _split_long(whole, room)
    chosen = _chosen(lines, room, failures=failures)
    chosen |= _between(lines, chosen)
    shown: list[str] = []
    for at, line in enumerate(lines):
        if at in chosen:
            shown.append(line)
            gone["characters"] += cut.get(at, 0)
        else:
            gone["lines"] += line != GAP
            shown += [GAP] if shown[-1:] != [GAP] else []
    if not gone.total():
        return ""
    if GAP not in shown:
        shown.insert(1 + min(place for place, at in enumerate(sorted(chosen)) if at in cut), GAP)
    said = " and ".join(f"{n:,} {unit if n > 1 else unit[:-1]}" for unit, n in gone.items() if n)
    note = f"[{said} removed{', ' + outcome if outcome else ''}: trace expand {address}]"
    shown[shown.index(GAP)] = note
    return "\n".join(filter(None, shown))


def _between(lines: Sequence[str], chosen: set[int]) -> set[int]:
    """Return the indexes of lines between kept ones that are no longer than a mark in their place: blank ones."""
    found: set[int] = set()
    for before, behind in pairwise(sorted({-1, *chosen, len(lines)})):
        gap = range(before + 1, behind)
        if GAP not in lines[before + 1 : behind] and sum(len(lines[at]) + 1 for at in gap) <= _MARK:
            found.update(gap)
    return found


def _split_long(lines: Sequence[str], room: int) -> tuple[list[str], dict[int, int]]:
    """Return lines, too long ones without their middle, and how many characters those lack, by index."""
    count = sum(map(_says_something, lines)) or 1
    telling = min(int(room * _TELLING_SHARE), _TELLING_CHARACTERS)
    most = max(room // min(3, count), telling, min(room, _SHORTEST_LINE))
    found: list[str] = []
    cut: dict[int, int] = {}
    for line in lines:
        if len(line) <= most or not room:
            found.append(line)
            continue
        head, tail = head_and_tail(line, most - _ELLIPSES)
        cut[len(found)] = len(line) - len(head) - len(tail)
        found += [f"{head} {tail}"] if count > 1 else [head, GAP, tail]
    return found, cut


def _counted(note: re.Match[str], gone: Counter[str]) -> str:
    """Count what an earlier note says is missing, and return what stays in its place."""
    for unit, digits in zip(("lines", "characters"), note.groups(), strict=True):
        gone[unit] += int(digits.replace(",", "")) if digits else 0
    return GAP


def _chosen(lines: Sequence[str], room: int, *, failures: bool) -> set[int]:
    """Return the indexes of the lines to keep: telling ones, then head and tail."""
    chosen = _telling(lines, int(room * _TELLING_SHARE), failures=failures)
    rest = room - sum(len(lines[at]) + 1 for at in chosen)
    worth = [at for at, line in enumerate(lines) if _says_something(line)]
    begin = next((at for at, line in enumerate(lines) if _IN_DIFF.match(line)), None)
    if begin is not None:
        # What stands before a diff says what it is for: a commit's message.
        changed = [
            at for at in worth if at < begin or _CHANGED.match(lines[at]) or lines[at] == GAP
        ]
        chosen |= _ends(lines, changed, rest, chosen)
        rest = room - sum(len(lines[at]) + 1 for at in chosen)
    chosen |= _ends(lines, worth, rest, chosen)
    # A heading whose section is cut would seem to belong to the next kept lines.
    for at in sorted(chosen, reverse=True):
        if not _leads_on(lines, at, chosen):
            chosen.discard(at)
    return chosen


def _ends(lines: Sequence[str], worth: Sequence[int], room: int, known: set[int]) -> set[int]:
    """Return the first and the last lines of some that fit in a number of characters, besides known ones."""
    chosen: set[int] = set()
    for places, share in ((worth, room * 3 // 5), (worth[::-1], room * 2 // 5)):
        for at in places:
            if at not in known and at not in chosen:
                share -= len(lines[at]) + 1
                if share < 0 or lines[at] == GAP:
                    break
                chosen.add(at)
    if not chosen | known:
        chosen.update([at for at in worth if len(lines[at]) <= room and lines[at] != GAP][:1])
    return chosen


def _leads_on(lines: Sequence[str], at: int, chosen: set[int]) -> bool:
    """Return False for a heading of which no line below is kept, or a line that opens a cut one."""
    level = _level(lines[at])
    if not level and not _OPENS.search(lines[at]):
        return True
    for below in range(at + 1, len(lines)):
        if level and 0 < _level(lines[below]) <= level:
            return False
        if below in chosen:
            return True
        if not level and _says_something(lines[below]):
            return False
    return False


def _level(line: str) -> int:
    """Return the level of a heading, from 1; 0 for another line."""
    found = _HEADING.match(_NUMBERED.sub("", line, count=1))
    if found is None:
        return 0
    if found["marks"]:
        return len(found["marks"])
    return 1 if found["file"] else 2 if found["hunk"] else 7


def _says_something(line: str) -> bool:
    """Return True if a line says more than a bracket, a rule or its own number."""
    if is_header(line) or is_stack_frame(line) or _TAG.fullmatch(line):
        return False
    return line == GAP or any(map(str.isalnum, _NUMBERED.sub("", line, count=1)))


def _telling(lines: Sequence[str], room: int, *, failures: bool) -> set[int]:
    """Return the indexes of the lines to keep wherever they stand."""
    failing = [at for at, line in enumerate(lines) if failures and says_failure(line.strip())]
    # "error during build:" names what failed in its next line.
    failing = [
        each
        for at in failing
        for each in ([at, at + 1] if lines[at].rstrip().endswith(":") else [at])
    ]
    failing = [at for at in failing if at < len(lines)]
    ended = [at for at, line in enumerate(lines) if failures and counts_checks(line)][-_ENDINGS:]
    # A named place says more than a bare exit status; most errors are first causes or last results.
    ends = [each for pair in zip(failing, reversed(failing), strict=True) for each in pair]
    ends.sort(key=lambda at: failure_rank(lines[at].strip()))
    chosen: set[int] = set()
    for at in dict.fromkeys((*ended, *ends, *_unusual(lines))):
        size = len(lines[at]) + 1
        if size <= min(room, _TELLING_CHARACTERS):
            room -= size
            chosen.add(at)
    return chosen


def _unusual(lines: Sequence[str]) -> list[int]:
    """Return the indexes of the lines unlike all others, apart from numbers, if most lines are alike."""
    forms = [_VARYING.sub("#", line.strip()) for line in lines]
    count = Counter(forms)
    single = [at for at, form in enumerate(forms) if form not in ("", GAP) and count[form] == 1]
    return single if len(single) <= _UNUSUAL_SHARE * len(lines) else []


def note_text(working: WorkingContext, positions: Sequence[int]) -> str:
    """Return a note to replace messages: what was done, what failed to the end, what was decided and concluded.

    Notes of earlier trims among them are taken up in it.
    """
    messages = [working.messages[at] for at in positions]
    notes = [earlier for m in messages if m.role == "user" and (earlier := _EARLIER.match(m.text))]
    activity = activity_of(messages)
    said = []
    for verb, wanted in _VERBS.items():
        names = [_done(step) for step in activity.steps if step.action.kind == wanted]
        before = [_clause(note["said"] or "", verb) for note in notes]
        names = [*(name for earlier, _ in before for name in earlier), *names]
        said += [f"{verb} {_some(names, sum(more for _, more in before))}"] if names else []
    what = f": {'; '.join(said)}" if said else ""
    ended = {
        step.action.text: step.outcome
        for step in activity.steps
        if step.outcome and not was_stopped(step.outcome)
    }
    failed = [
        f"Failed: {excerpt(each.error, _CONCLUSION_CHARACTERS)}"
        for each in ended.values()
        if each.error
    ]
    count = sum(int(note["count"].replace(",", "")) - 1 for note in notes) + len(messages)
    first = _EARLIER.match(messages[0].text)
    address = first["first"] if first else working.short_address(positions[0])
    note = f"[{count:,} message{'' if count == 1 else 's'} removed{what}. trace expand {address}]"
    answers = [m.text for m in messages if m.role == "assistant"]
    reports = [f"Reported: {each}" for m in messages if is_report(m) and (each := _report(m.text))]
    told = [line for each in notes for line in each["told"].splitlines() if line]
    told += [*failed, *reports, *_conclusions(answers)]
    return "\n".join((note, *_last_of_each(told)))


def _done(step: ToolStep) -> str:
    is_failed = step.action.kind == RUN and step.outcome is not None and step.outcome.failed
    limit = _COMMAND_CHARACTERS if step.action.kind == RUN else None
    return step.action.subject[:limit] + (" (failed)" if is_failed else "")


def _clause(said: str, verb: str) -> tuple[list[str], int]:
    """Return the names that an earlier note gives of what was read, changed or run, and how many more it counts."""
    for clause in _CLAUSES.split(said):
        if clause.startswith(f"{verb} "):
            names = clause.removeprefix(f"{verb} ")
            more = _MORE.search(names)
            return _MORE.sub("", names).split(", "), int(more[1]) if more else 0
    return [], 0


def _last_of_each(told: Sequence[str]) -> Iterator[str]:
    """Yield the last lines of each sort, such as "Decided:", that a note may have."""
    for sort, most in _SORTS.items():
        own = list(dict.fromkeys(line for line in told if line.startswith(f"{sort}: ")))
        yield from own[-most:]


def _report(text: str) -> str:
    """Return the beginning of what another agent reported."""
    return excerpt(text.partition(REPORT_BODY)[2].strip(), _CONCLUSION_CHARACTERS)


def is_note(text: str) -> bool:
    """Return True if a message is the note of an earlier trim."""
    return _EARLIER.match(text) is not None


def _conclusions(texts: Sequence[str]) -> Iterator[str]:
    """Yield the last decisions that some answers word as such, and the last answer that concludes something."""
    told = [sentence for text in texts for sentence in sentences(text)]
    decided = list(dict.fromkeys(each for each in told if is_choice(each)))[-_DECISIONS:]
    for each in decided:
        yield f"Decided: {each}"
    concluded = [
        each for each in told if not is_narration(each) and len(each.split()) >= _FEWEST_WORDS
    ]
    last = next((x for x in reversed(concluded[-_LAST_SENTENCES:]) if FINDING.search(x)), "")
    last = last or (concluded[-1] if concluded else "")
    if last and last not in decided:
        yield f"Concluded: {excerpt(last, _CONCLUSION_CHARACTERS)}"


def _some(names: Sequence[str], more: int) -> str:
    """Return the last few names, and how many more there are."""
    distinct = list(dict.fromkeys(names))
    more += max(0, len(distinct) - _NAMES)
    return ", ".join(distinct[-_NAMES:]) + (f" and {more} more" if more else "")


def shorter_call(call: Part, address: str, tokens: int, share: float) -> Part:
    """Return a call with its long texts shortened, if its arguments are a JSON object.

    Args:
        call: the call; other parts are returned as they are.
        address: where the whole call is.
        tokens: approximate number of tokens to keep of each text, at least a few.
        share: how much of each text stays at least, 0 to 1.
    """
    if not isinstance(call, ToolCall):
        return call
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call
    if not isinstance(arguments, dict):
        return call
    made = {key: _shorter_argument(arguments[key], address, tokens, share) for key in arguments}
    if made == arguments:
        return call
    return ToolCall(call.id, call.name, json.dumps(made, ensure_ascii=False))


def _shorter_argument(argument: object, address: str, tokens: int, share: float) -> object:
    if isinstance(argument, str) and len(argument) > _ARGUMENT_CHARACTERS:
        kept = int(len(argument) * share) // CHARACTERS_PER_TOKEN
        return shortened(argument, max(tokens, kept, _ARGUMENT_TOKENS), address) or argument
    if isinstance(argument, list):
        return [_shorter_argument(each, address, tokens, share) for each in argument]
    if isinstance(argument, dict):
        return {key: _shorter_argument(argument[key], address, tokens, share) for key in argument}
    return argument


def first_paragraph(part: Part, address: str) -> Part:
    """Return a text cut to its first paragraphs and to what it decides."""
    if not isinstance(part, Text) or len(part.text) <= _PROSE_CHARACTERS:
        return part
    first = ""
    for paragraph in part.text.strip().split("\n\n"):
        # A heading says nothing without what is below it.
        is_heading = bool(_level(first)) and "\n" not in first
        longer = f"{first}\n\n{paragraph}" if first else paragraph
        if first and not is_heading and len(longer) > _PROSE_CHARACTERS:
            break
        first = longer[:_PROSE_CHARACTERS].rstrip()
    kept = [each for each in sentences(part.text) if is_choice(each) and each not in first]
    removed = len(part.text) - len(first) - sum(map(len, kept))
    note = f"[{removed:,} characters removed: trace expand {address}]"
    return Text("\n".join((first, note, *kept)))
