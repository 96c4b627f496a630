"""Calls and results in drafts: valid ids, and the positions of results.

Invariant: `providers.validity` pairs calls and results, as for every renderer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from trace_store.exporters.lossy.drafts import ASSISTANT, TOOL, USER, Draft, Piece, join
from trace_store.frozen import replace, value
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.providers.validity import Place, pair


@value
class Pairs:
    """Pairs of calls and results.

    Attributes:
        call_of: the piece and the draft of the call that a result answers, by the id() of the result's piece.
        result_of: the piece of the result of a call, by the id() of the call's piece.
    """

    call_of: Mapping[int, tuple[Piece, Draft]]
    result_of: Mapping[int, Piece]


def pairs_of(drafts: Sequence[Draft]) -> Pairs:
    """Return the pairs; valid as long as drafts and pieces are the same objects."""
    pieces = [[piece for piece in draft.pieces if piece.part is not None] for draft in drafts]
    found, _ = pair(drafts)

    def at(place: Place) -> Piece:
        return pieces[place[0]][place[1]]

    return Pairs(
        {id(at(result)): (at(call), drafts[call[0]]) for call, result in found.items()},
        {id(at(call)): at(result) for call, result in found.items()},
    )


def settle_calls(drafts: Sequence[Draft], fit: Callable[[str], str]) -> list[Draft]:
    """Return drafts with unique, valid call ids and at most one result per call.

    A result has the id of its call. A result without a call stays, with an unused id.
    """
    pairs = pairs_of(drafts)
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


def only_answers(drafts: Sequence[Draft]) -> list[Draft]:
    """Return drafts without results that lack a call."""
    pairs = pairs_of(drafts)
    for piece in list(_pieces(drafts)):
        if isinstance(piece.part, ToolResult) and id(piece) not in pairs.call_of:
            piece.part = None
    return [draft for draft in drafts if draft.parts]


def answers_behind_calls(drafts: Sequence[Draft]) -> list[Draft]:
    """Return drafts in which one message with all results directly follows the calls.

    A result without a call stays with the results of the message before. Other content of a message of results
    stays with them, unless they move elsewhere.
    """
    pairs = pairs_of(drafts)
    answers: dict[int, list[tuple[Draft, Piece]]] = {}
    rounds: list[tuple[Draft | None, list[Draft]]] = [(None, [])]
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
    made: list[Draft] = []
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


def _together(answers: Sequence[tuple[Draft, Piece]]) -> Draft | None:
    found: Draft | None = None
    for draft, piece in answers:
        one = replace(draft, pieces=[piece], role=TOOL)
        if found is None:
            found = one
        else:
            join(found, one)
    return found


def _pieces(drafts: Sequence[Draft]) -> Iterator[Piece]:
    return (piece for draft in drafts for piece in draft.pieces)


def _renamed(result: ToolResult, id_: str) -> ToolResult:
    return ToolResult(id_, result.content, result.is_error)


def _unused(id_: str, used: set[str], fit: Callable[[str], str]) -> str:
    number, wanted = 1, id_
    while wanted in used:
        number += 1
        wanted = fit(f"{id_}-{number}")
    return wanted
