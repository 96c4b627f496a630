"""Validity pass for all providers: messages become turns with answered calls.

Invariant: every tool call that is shown has one result, and every result its call. They are paired by id, never by
position. Every repair is recorded. `context.repair_steps` makes the same repairs, and stores them. Rules of a single
provider are in its renderer.

    fault              what is wrong                                    repair
    orphan-call        a call has no result in the context              an error result is added
    orphan-result      a result has no call in the context              the result is left out
    duplicate-result   a call has a second result                       the first is kept, others are left out
    misplaced-call     a call stands in a message of another role       the call is left out
                       than assistant
    moved-result       something is between a call and its result,      the result is moved up to its call
                       or the result comes first
    tool-without-call  a tool message has content but answers no call   it is shown as user text
                       and is no ghost
    empty-message      a message has no content                         it is left out

A result that names the message of its call belongs to that message, if it is in the context. Any other belongs to the
newest earlier message with an unanswered call of its id, and there to the first such call; without one, to the first
later call. A ghost between a call and its result is not a fault: it is moved behind them. This handles providers that
reuse ids, and calls that were interrupted and repeated. A call whose id was already used, or is not valid for the
provider, gets another (`call-id-changed`).

A call without a result stays visible, because the model made it: some programs record results as text or not at all.
The added result says only that none was recorded. A call at the end of the context gets one by the same rule, until its
result exists; nothing before it changes then.
"""

from __future__ import annotations

import base64
import re

from trace_store.base.frozen import value
from trace_store.objects.parts import Part, Text, ToolCall, ToolResult
from trace_store.providers.rendering import (
    CALL_ID_CHANGED,
    DUPLICATE_RESULT,
    EMPTY_MESSAGE,
    MISPLACED_CALL,
    MOVED_RESULT,
    ORPHAN_CALL,
    ORPHAN_RESULT,
    REASONING_LEFT_OUT,
    TOOL_WITHOUT_CALL,
    Options,
    Renderable,
    Repairs,
    Spoken,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


NOT_RECORDED = "[The result of this call was not recorded.]"
# Position of a part: that of its message, and its own in the message.
Place = tuple[int, int]


@value
class PlacedPart:
    """A part, and the position of its message."""

    part: Part
    at: int


@value
class PlacedResult:
    """A tool result, and the position of its message."""

    part: ToolResult
    at: int


@value
class CallFault:
    """A call or a result that cannot be shown at its position, or at all.

    Attributes:
        code: one of `rendering.FAULTS`.
        place: position of the part.
        detail: what is wrong, and after a semicolon the renderer's repair.
    """

    code: str
    place: Place
    detail: str


class RoleTurn:
    """A run of parts of one role; its calls are followed by their results.

    Attributes:
        role: "system", "developer", "user" or "assistant".
        at: position of its first message.
        parts: its parts; no results, and calls only of the assistant, each answered.
        results: one result for each call, in the order of the calls.
    """

    __slots__ = ("answered", "at", "ghost", "parts", "places", "results", "role", "waits")

    def __init__(
        self, role: str, at: int, parts: Sequence[PlacedPart] = (), *, ghost: bool = False
    ) -> None:
        self.role = role
        self.at = at
        self.parts = list(parts)
        self.results: list[PlacedResult] = []
        self.places: list[Place] = []
        self.waits = False
        self.answered = False
        self.ghost = ghost


def arrange(
    messages: Sequence[Renderable], repairs: Repairs, *, call_id: Callable[[str], str]
) -> list[RoleTurn]:
    """Return the turns of a context, with every call answered directly and unique ids.

    Args:
        messages: the context.
        repairs: receives the repairs.
        call_id: returns a valid id for the provider, given a call's id.
    """
    result_of, faults = pair(messages)
    for fault in faults:
        repairs.add(fault.code, fault.place[0], fault.detail)
    turns = _Turns(messages, repairs, result_of).all()
    used: dict[str, int] = {}
    for turn in turns:
        _answer(turn, messages, result_of, repairs, call_id, used)
    return turns


def pair(messages: Sequence[Spoken]) -> tuple[dict[Place, Place], list[CallFault]]:
    """Return the position of each call's result, and unpaired calls and results."""
    faults: list[CallFault] = []
    open_calls: dict[str, list[Place]] = {}
    answered: set[str] = set()
    result_of: dict[Place, Place] = {}
    early: list[tuple[ToolResult, Place]] = []
    holders = _Holders(messages)
    for at, message in enumerate(messages):
        for index, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                if message.role != "assistant":
                    detail = f"a {message.role} message holds a call of {part.name!r}; left out"
                    faults.append(CallFault(MISPLACED_CALL, (at, index), detail))
                    continue
                open_calls.setdefault(part.id, []).append((at, index))
            elif isinstance(part, ToolResult):
                call = _take(open_calls.get(part.call_id), holders.of(part), newest=True)
                if call is not None:
                    result_of[call] = (at, index)
                    answered.add(part.call_id)
                elif part.call_id in answered:
                    detail = f"a second result of call {part.call_id!r}; left out"
                    faults.append(CallFault(DUPLICATE_RESULT, (at, index), detail))
                else:
                    early.append((part, (at, index)))
    for result, place in early:
        call = _take(open_calls.get(result.call_id), holders.of(result), newest=False)
        if call is not None:
            result_of[call] = place
        else:
            detail = f"the result of call {result.call_id!r} has no call in the context; left out"
            faults.append(CallFault(ORPHAN_RESULT, place, detail))
    for id_, waiting in open_calls.items():
        detail = f"call {id_!r} has no result in the context; an error result added"
        faults += [CallFault(ORPHAN_CALL, place, detail) for place in waiting]
    return result_of, faults


@value
class Standing:
    """Relative positions of calls and results in a context.

    Attributes:
        apart: results that are not at their call, and the part that each belongs after, in its message or later.
        ends: for each position, the last message of a turn that continues there; else itself.
    """

    apart: tuple[tuple[Place, Place], ...]
    ends: tuple[int, ...]


def standing(messages: Sequence[Spoken], result_of: Mapping[Place, Place]) -> Standing:
    """Return the relative positions of paired calls and results, as in `arrange`."""
    turns = _Turns(messages, Repairs(messages), result_of)
    call_of = {result: call for call, result in result_of.items()}
    ends = list(range(len(messages)))
    for turn in turns.all():
        if turn.places:
            last = turn.places[-1][0]
            ends[turn.at : last + 1] = [max(last, end) for end in ends[turn.at : last + 1]]
    apart = [(place, turns.turn_of[call_of[place]].places[-1]) for place in turns.moved]
    return Standing(tuple(apart), tuple(ends))


class _Holders:
    """Positions of the messages that results name as those of their calls."""

    __slots__ = ("_messages", "_positions")

    def __init__(self, messages: Sequence[Spoken]) -> None:
        self._messages = messages
        self._positions: dict[object, int] | None = None

    def of(self, result: ToolResult) -> int | None:
        """Return the position of the message with a result's call, or None."""
        if result.call is None:
            return None
        if self._positions is None:
            found = (getattr(message, "address", None) for message in self._messages)
            self._positions = {address: at for at, address in enumerate(found)}
        return self._positions.get(result.call)


def _take(waiting: list[Place] | None, holder: int | None, *, newest: bool) -> Place | None:
    """Remove and return a result's call: the first one of the right message."""
    if not waiting:
        return None
    if holder is None:
        holder = waiting[-1 if newest else 0][0]
    index = next((index for index, (at, _) in enumerate(waiting) if at == holder), None)
    return None if index is None else waiting.pop(index)


class _Turns:
    """Builds turns message by message."""

    def __init__(
        self, messages: Sequence[Spoken], repairs: Repairs, result_of: Mapping[Place, Place]
    ) -> None:
        self._messages = messages
        self._repairs = repairs
        self._result_of = result_of
        self._call_of = {result: call for call, result in result_of.items()}
        self._turns: list[RoleTurn] = []
        self.turn_of: dict[Place, RoleTurn] = {}
        self.moved: list[Place] = []

    def all(self) -> list[RoleTurn]:
        for at, message in enumerate(self._messages):
            if all(isinstance(part, Text) and not part.text for part in message.parts):
                self._repairs.add(EMPTY_MESSAGE, at, f"a {message.role} message is empty; left out")
            elif message.role == "assistant":
                self._assistant(at, message)
            else:
                self._other(at, message)
        return self._turns

    def _assistant(self, at: int, message: Spoken) -> None:
        turn: RoleTurn | None = None
        for index, part in enumerate(message.parts):
            place = (at, index)
            if isinstance(part, ToolResult):
                self._meet(place)
                continue
            if isinstance(part, Text) and not part.text:
                continue
            if turn is None or turn.answered:
                turn = self._open_turn(at)
            turn.parts.append(PlacedPart(part, at))
            turn.places.append(place)
            if isinstance(part, ToolCall):
                self.turn_of[place] = turn
                turn.waits = turn.waits or self._result_of.get(place, place) > place

    def _open_turn(self, at: int) -> RoleTurn:
        # Parallel calls are sometimes recorded as several messages; they are one turn, because
        # otherwise their results could not all follow directly.
        if self._turns:
            last = self._turns[-1]
            if last.role == "assistant" and last.waits and not last.answered:
                return last
        self._turns.append(RoleTurn("assistant", at))
        return self._turns[-1]

    def _other(self, at: int, message: Spoken) -> None:
        parts: list[PlacedPart] = []
        results = False
        for index, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                results = True
                self._meet((at, index))
            elif not isinstance(part, ToolCall) and not (isinstance(part, Text) and not part.text):
                parts.append(PlacedPart(part, at))
        if not parts:
            return
        ghost = bool(getattr(message, "ghost", False))
        if message.role == "tool" and not results and not ghost:
            detail = "a tool message answers no call; shown as user text"
            self._repairs.add(TOOL_WITHOUT_CALL, at, detail)
        role = "user" if message.role == "tool" else message.role
        self._turns.append(RoleTurn(role, at, parts, ghost=ghost))

    def _meet(self, result: Place) -> None:
        call = self._call_of.get(result)
        if call is None:
            return
        turn = self.turn_of.get(call)
        last = next((turn for turn in reversed(self._turns) if not turn.ghost), None)
        if turn is not None and turn is last:
            turn.answered = True
            return
        self.moved.append(result)
        found = "before" if turn is None else "apart from"
        self._repairs.add(MOVED_RESULT, result[0], f"a result stands {found} its call; moved to it")


def _answer(
    turn: RoleTurn,
    messages: Sequence[Renderable],
    result_of: dict[Place, Place],
    repairs: Repairs,
    call_id: Callable[[str], str],
    used: dict[str, int],
) -> None:
    """Give the calls of a turn valid, unique ids, and add their results."""
    for index, (placed, place) in enumerate(zip(turn.parts, turn.places, strict=False)):
        call = placed.part
        if not isinstance(call, ToolCall):
            continue
        at, position = result_of.get(place, (placed.at, -1))
        result = unrecorded(call.id) if position < 0 else messages[at].parts[position]
        if not isinstance(result, ToolResult):
            continue
        id_ = _unused(call_id(call.id), used, call_id)
        if id_ != call.id:
            repairs.add(CALL_ID_CHANGED, placed.at, f"call {call.id!r} gets the id {id_!r}")
            renamed = ToolCall(id_, call.name, call.arguments, call.format)
            turn.parts[index] = PlacedPart(renamed, placed.at)
            result = ToolResult(id_, result.content, result.is_error)
        turn.results.append(PlacedResult(result, at))


def unrecorded(call_id: str) -> ToolResult:
    """Return the result of a call that has none in the context."""
    return ToolResult(call_id, NOT_RECORDED, is_error=True)


def _unused(id_: str, used: dict[str, int], call_id: Callable[[str], str]) -> str:
    """Return the id, or the first unused one of id-2, id-3, …; `used` counts uses."""
    if id_ in used:
        number = used[id_]
        while (other := call_id(f"{id_}-{number + 1}")) in used:
            number += 1
        used[id_] = number + 1
        id_ = other
    used[id_] = 1
    return id_


# Gemini 3 and later accept this on calls of other models: it skips the signature check.
SKIPS_THE_CHECK = "skip_thought_signature_validator"
# Prefixes of model names by provider. OpenAI's have no common one: they are all others.
_MARKS = {"anthropic": ("claude",), "gemini": ("gemini", "gemma")}
_DATE = re.compile(r"[-@]20\d\d-?\d\d-?\d\d$")
_GEMINI_VERSION = re.compile(r"gemini-(\d+)")
_BASE64 = re.compile(r"([A-Za-z0-9+/]+|[A-Za-z0-9_-]+)(=*)")


class EarlierReasoning:
    """Decides which reasoning the called model gets.

    An open API (`is_open`) also serves models of other makers, and models without a name.

    Attributes:
        model: the called model: from the option, or else the provider's most recent model; empty without one.
    """

    __slots__ = ("_family", "_messages", "_repairs", "_shown", "model")

    def __init__(
        self,
        messages: Sequence[Renderable],
        repairs: Repairs,
        options: Options,
        provider: str,
        *,
        is_open: bool = False,
    ) -> None:
        self._messages = messages
        self._repairs = repairs
        self._shown = options.reasoning
        model = last_model(messages, provider) if options.model is None else options.model
        self.model = model
        is_served = is_open or (model and maker(model) == provider)
        self._family = model_family(model) if is_served else None

    def allows(self, at: int) -> bool:
        """Return True if a message's reasoning is sent; else record a repair."""
        if not self._shown:
            return False
        made_by = model_family(self._messages[at].model)
        if made_by == self._family:
            return True
        self.leave_out(at, f"reasoning of {made_by or 'an unknown model'}")
        return False

    def leave_out(self, at: int, what: str) -> None:
        """Record a repair for dropped reasoning."""
        self._repairs.add(REASONING_LEFT_OUT, at, f"{what}; left out")


def model_family(model: str) -> str:
    """Return a model's name without provider prefix and date suffix."""
    return _DATE.sub("", model.rsplit("/", 1)[-1])


def maker(model: str) -> str:
    """Return the provider of a model name: anthropic, gemini, else openai."""
    name = model.lower()
    return next((who for who, marks in _MARKS.items() if any(m in name for m in marks)), "openai")


def last_model(messages: Sequence[Renderable], provider: str) -> str:
    """Return the provider's most recent model; empty if no message names one."""
    for message in reversed(messages):
        if message.role == "assistant" and message.model and maker(message.model) == provider:
            return message.model
    return ""


def before_gemini_3(model: str) -> bool:
    """Return True if a model is known to be older than Gemini 3, without signed calls."""
    found = _GEMINI_VERSION.search(model.lower())
    return found is not None and int(found[1]) < 3


def is_signature(text: str) -> bool:
    """Return True if a signature may be Gemini's: base64 of either alphabet."""
    found = _BASE64.fullmatch(text)
    if found is None:
        return False
    plain = found[1].replace("-", "+").replace("_", "/")
    padding = "=" * (-len(plain) % 4)
    if len(padding) > 2 or found[2] not in ("", padding):
        return False
    # Unused bits of the last character must be zero.
    return base64.b64encode(base64.b64decode(plain + padding)).decode() == plain + padding
