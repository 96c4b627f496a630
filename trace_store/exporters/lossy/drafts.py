"""Drafts: messages of a session, changed step by step into what a reader gets.

Invariant: a draft always knows the origin of its parts. Steps only change drafts; at the end `loss_count` compares them
with the session, so a step cannot forget to count a loss.

Invariant: `providers.validity` pairs calls and results, as for every renderer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from trace_store.base.frozen import field, mutable, replace, value
from trace_store.context.usage import Usage
from trace_store.exporters.contract import ExportSession, SessionTurn
from trace_store.objects.message import default_kind
from trace_store.objects.operations import NORMAL
from trace_store.objects.parts import Part, Reasoning, ToolCall, ToolResult
from trace_store.providers.validity import Place, pair

ASSISTANT, TOOL, USER = "assistant", "tool", "user"
FRONT_ROLES = ("system", "developer")

Fit = Callable[[Part], Part | None]


@mutable
class DraftPart:
    """A part of a session, and the part that a reader of the file gets.

    Attributes:
        turn, index: position of the turn in the session, and of the part in the turn.
        original: the part.
        part: the part in the file; None if it is left out.
        inner: for a result whose content was processed: each piece of it.
    """

    turn: int
    index: int
    original: Part
    part: Part | None
    inner: tuple[tuple[Part, Part | None], ...] | None = None

    @property
    def call_id(self) -> str:
        """The id of a result's call; "" for other parts."""
        return self.part.call_id if isinstance(self.part, ToolResult) else ""


@mutable
class DraftMessage:
    """A message in the file.

    Attributes:
        turn: number of the turn that it started as.
        pieces: its parts, perhaps of several turns.
        role, kind, name, model, id, time, usage, labels, priority, ghost: as a reader gets them. An empty kind is the
            one that follows from role and parts.
        summary: whether the format marks it as the summary of a compaction.
    """

    turn: int
    pieces: list[DraftPart]
    role: str
    time: int
    kind: str = ""
    name: str = ""
    model: str = ""
    id: str = ""
    usage: Usage | None = None
    labels: frozenset[str] = field(default_factory=frozenset)
    priority: str = NORMAL
    ghost: bool = False
    summary: bool = False

    @property
    def turns(self) -> list[int]:
        """The numbers of the turns that its parts come from."""
        held = dict.fromkeys(piece.turn for piece in self.pieces if piece.part is not None)
        return list(held) or [self.turn]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its parts in the file."""
        return tuple(piece.part for piece in self.pieces if piece.part is not None)

    @property
    def calls(self) -> list[ToolCall]:
        """The calls in it."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def results(self) -> list[ToolResult]:
        """The results in it."""
        return [part for part in self.parts if isinstance(part, ToolResult)]

    def read_kind(self) -> str:
        """Return its kind, derived from role and parts if empty."""
        return self.kind or default_kind(self.role, self.parts)


def drafts_of(session: ExportSession) -> list[DraftMessage]:
    """Return a complete draft of each turn."""
    return [_draft(number, turn) for number, turn in enumerate(session.turns)]


def _draft(number: int, turn: SessionTurn) -> DraftMessage:
    message = turn.message
    return DraftMessage(
        turn=number,
        pieces=[DraftPart(number, index, part, part) for index, part in enumerate(message.parts)],
        role=message.role,
        time=turn.time,
        kind=message.kind,
        name=message.name,
        model=message.model,
        id=message.id,
        usage=turn.usage,
        labels=message.labels,
        priority=message.priority,
        ghost=message.ghost,
        summary=turn.is_summary,
    )


def forget(draft: DraftMessage) -> None:
    """Remove what few formats support: the speaker's name, kind, labels, priority, ghost and summary."""
    draft.name = draft.kind = ""
    draft.labels, draft.priority = frozenset(), NORMAL
    draft.ghost = draft.summary = False


def fit_parts(
    drafts: Iterable[DraftMessage], fit: Callable[[DraftMessage, Part], Part | None], inside: Fit
) -> list[DraftMessage]:
    """Convert each part to the format, and drop empty drafts.

    Args:
        drafts: the drafts.
        fit: returns a part in the format, None if there is no place for it; called for a result as a whole.
        inside: the same for parts of a result.
    """
    kept = []
    for draft in drafts:
        for piece in draft.pieces:
            if piece.part is None:
                continue
            if isinstance(piece.part, ToolResult):
                _fit_result(piece, piece.part, inside)
            if piece.part is not None:
                piece.part = fit(draft, piece.part)
        if draft.parts:
            kept.append(draft)
    return kept


def _fit_result(piece: DraftPart, result: ToolResult, inside: Fit) -> None:
    piece.inner = tuple((part, inside(part)) for part in result.content)
    content = [part for _, part in piece.inner if part is not None]
    piece.part = ToolResult(result.call_id, content, result.is_error)


def apart(drafts: Iterable[DraftMessage], *, beside_results: bool = False) -> list[DraftMessage]:
    """Move results into tool messages, and drop calls and reasoning of other roles.

    Results in other messages become separate messages; calls and reasoning in other messages are dropped, since no
    format has them.

    Args:
        drafts: the drafts.
        beside_results: whether a message of results may have other content after them.
    """
    found: list[DraftMessage] = []
    for draft in drafts:
        if draft.role != ASSISTANT:
            for piece in draft.pieces:
                if isinstance(piece.part, ToolCall | Reasoning):
                    piece.part = None
        if draft.role != ASSISTANT and beside_results and draft.results:
            draft.role = TOOL
            draft.pieces.sort(key=lambda piece: not isinstance(piece.part, ToolResult))
            found.append(draft)
            continue
        found += _split(draft)
    return found


def _split(draft: DraftMessage) -> list[DraftMessage]:
    """Split a draft into runs of results and of other parts."""
    runs: list[DraftMessage] = []
    for piece in draft.pieces:
        if piece.part is None and runs:
            runs[-1].pieces.append(piece)
            continue
        plain = USER if draft.role == TOOL else draft.role
        role = TOOL if isinstance(piece.part, ToolResult) else plain
        if not runs or runs[-1].role != role:
            runs.append(replace(draft, pieces=[], role=role))
        runs[-1].pieces.append(piece)
    for run in runs:
        if len(runs) > 1 and run.role != draft.role:
            run.model = run.id = ""
            run.usage = None
    own = [run for run in runs if run.role == draft.role]
    for run in own[1:]:
        run.id, run.usage = "", None
    return runs or [draft]


def split_results(drafts: Iterable[DraftMessage]) -> list[DraftMessage]:
    """Return drafts in which each result is a separate message."""
    found = []
    for draft in drafts:
        if len(draft.results) < 2:
            found.append(draft)
            continue
        found += [replace(draft, pieces=[p]) for p in draft.pieces if p.part is not None]
    return found


def with_roles(drafts: Iterable[DraftMessage], known: Sequence[str]) -> None:
    """Replace roles that the format lacks; a tool message without results is a user's."""
    for draft in drafts:
        if draft.role not in known or (draft.role == TOOL and not draft.results):
            draft.role = USER


def join(before: DraftMessage, after: DraftMessage) -> None:
    """Append the parts of one draft to another."""
    before.pieces += after.pieces
    before.id = before.id or after.id
    before.usage = before.usage or after.usage


@value
class Pairs:
    """Pairs of calls and results.

    Attributes:
        call_of: the piece and the draft of the call that a result answers, by the id() of the result's piece.
        result_of: the piece of the result of a call, by the id() of the call's piece.
    """

    call_of: Mapping[int, tuple[DraftPart, DraftMessage]]
    result_of: Mapping[int, DraftPart]


def _pairs_of(drafts: Sequence[DraftMessage]) -> Pairs:
    """Return the pairs; valid as long as drafts and pieces are the same objects."""
    pieces = [[piece for piece in draft.pieces if piece.part is not None] for draft in drafts]
    found, _ = pair(drafts)

    def at(place: Place) -> DraftPart:
        return pieces[place[0]][place[1]]

    return Pairs(
        {id(at(result)): (at(call), drafts[call[0]]) for call, result in found.items()},
        {id(at(call)): at(result) for call, result in found.items()},
    )


def settle_calls(drafts: Sequence[DraftMessage], fit: Callable[[str], str]) -> list[DraftMessage]:
    """Return drafts with unique, valid call ids and at most one result per call.

    A result has the id of its call. A result without a call stays, with an unused id.
    """
    pairs = _pairs_of(drafts)
    pieces = list(_pieces(drafts))
    called = {piece.part.id for piece in pieces if isinstance(piece.part, ToolCall)}
    alone = [
        piece
        for piece in pieces
        if isinstance(piece.part, ToolResult) and id(piece) not in pairs.call_of
    ]
    used: set[str] = set()
    for piece in alone:
        if isinstance(piece.part, ToolResult):
            name = fit(piece.part.call_id)
            piece.part = None if piece.part.call_id in called else _renamed(piece.part, name)
            used |= set() if piece.part is None else {name}
    for piece in pieces:
        part = piece.part
        if not isinstance(part, ToolCall):
            continue
        name = _unused(fit(part.id), used, fit)
        used.add(name)
        piece.part = ToolCall(name, part.name, part.arguments, part.format)
        answer = pairs.result_of.get(id(piece))
        if answer is not None and isinstance(answer.part, ToolResult):
            answer.part = _renamed(answer.part, name)
    return [draft for draft in drafts if draft.parts]


def only_answers(drafts: Sequence[DraftMessage]) -> list[DraftMessage]:
    """Return drafts without results that lack a call."""
    pairs = _pairs_of(drafts)
    for piece in list(_pieces(drafts)):
        if isinstance(piece.part, ToolResult) and id(piece) not in pairs.call_of:
            piece.part = None
    return [draft for draft in drafts if draft.parts]


def answers_behind_calls(drafts: Sequence[DraftMessage]) -> list[DraftMessage]:
    """Return drafts in which one message with all results directly follows the calls.

    A result without a call stays with the results of the message before. Other content of a message of results
    stays with them, unless they move elsewhere.
    """
    pairs = _pairs_of(drafts)
    answers: dict[int, list[tuple[DraftMessage, DraftPart]]] = {}
    rounds: list[tuple[DraftMessage | None, list[DraftMessage]]] = [(None, [])]
    for draft in drafts:
        if draft.role == ASSISTANT:
            rounds.append((draft, []))
        else:
            rounds[-1][1].append(draft)
        for piece in draft.pieces:
            if not isinstance(piece.part, ToolResult):
                continue
            found = pairs.call_of.get(id(piece))
            owner = rounds[-1][0] if found is None else found[1]
            answers.setdefault(id(owner), []).append((draft, piece))
    made: list[DraftMessage] = []
    for owner, others in rounds:
        made += [owner] if owner is not None else []
        together = _together(answers.get(id(owner), ()))
        made += [together] if together is not None else []
        for draft in others:
            rest = [piece for piece in draft.pieces if not isinstance(piece.part, ToolResult)]
            if not any(piece.part is not None for piece in rest):
                continue
            if draft.role != TOOL:
                made.append(draft)
            elif together is not None and draft.turn in together.turns:
                together.pieces += rest
            else:
                made.append(replace(draft, pieces=rest, role=USER))
    return made


def _together(answers: Sequence[tuple[DraftMessage, DraftPart]]) -> DraftMessage | None:
    found: DraftMessage | None = None
    for draft, piece in answers:
        one = replace(draft, pieces=[piece], role=TOOL)
        if found is None:
            found = one
        else:
            join(found, one)
    return found


def _pieces(drafts: Sequence[DraftMessage]) -> Iterator[DraftPart]:
    return (piece for draft in drafts for piece in draft.pieces)


def _renamed(result: ToolResult, id_: str) -> ToolResult:
    return ToolResult(id_, result.content, result.is_error)


def _unused(id_: str, used: set[str], fit: Callable[[str], str]) -> str:
    number, wanted = 1, id_
    while wanted in used:
        number += 1
        wanted = fit(f"{id_}-{number}")
    return wanted
