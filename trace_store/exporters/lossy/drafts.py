"""A session on its way into a form: what of it stands where, until it is what a reader of the file gets back.

Rule: a draft always knows whose words it holds. Steps change drafts, and nothing else is asked for what is lost: at the
end the drafts are held against the session (`counting`). So a step cannot forget to count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from trace_store.context.usage import Usage
from trace_store.exporters.contract import ExportSession, Turn
from trace_store.frozen import field, mutable, replace
from trace_store.objects.message import default_kind
from trace_store.objects.operations import NORMAL
from trace_store.objects.parts import Part, Reasoning, ToolCall, ToolResult

ASSISTANT, TOOL, USER = "assistant", "tool", "user"
FRONT_ROLES = ("system", "developer")

Fit = Callable[[Part], Part | None]


@mutable
class Piece:
    """A part of a session, and what a reader of the file gets for it.

    Attributes:
        turn, index: which part of which turn of the session.
        original: the part.
        part: what it is in the form; None when it is not there.
        inner: for a result whose content was gone through: each piece of it, and what it is in the form.
    """

    turn: int
    index: int
    original: Part
    part: Part | None
    inner: tuple[tuple[Part, Part | None], ...] | None = None

    @property
    def call_id(self) -> str:
        """The id of the call that a result answers; "" for other parts."""
        return self.part.call_id if isinstance(self.part, ToolResult) else ""


@mutable
class Draft:
    """A message as it stands in the file.

    Attributes:
        turn: the turn of the session that it began as, by number.
        pieces: the parts it is made of, perhaps of several turns.
        role, kind, name, model, id, time, usage, labels, priority, ghost: as a reader gets them. An empty kind is the
            one that follows from role and parts.
        summary: whether the form marks that it stands in for what was compacted.
    """

    turn: int
    pieces: list[Piece]
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
        """The turns whose words it holds, by number."""
        held = dict.fromkeys(piece.turn for piece in self.pieces if piece.part is not None)
        return list(held) or [self.turn]

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it says in the form."""
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
        """Return its kind, also where it follows from the rest."""
        return self.kind or default_kind(self.role, self.parts)


def drafts_of(session: ExportSession) -> list[Draft]:
    """Return a draft of each turn, with all that the session knows of it."""
    return [_draft(number, turn) for number, turn in enumerate(session.turns)]


def _draft(number: int, turn: Turn) -> Draft:
    message = turn.message
    return Draft(
        turn=number,
        pieces=[Piece(number, index, part, part) for index, part in enumerate(message.parts)],
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
        summary=turn.reason == "compaction",
    )


def forget(drafts: Iterable[Draft], *, marks: bool = True, kinds: bool = True) -> None:
    """Take from drafts what few forms have a place for.

    Args:
        drafts: the drafts.
        marks: names of speakers, labels, priorities, that a message is a ghost or a summary.
        kinds: kinds other than those that follow from role and parts.
    """
    for draft in drafts:
        if marks:
            draft.name, draft.labels, draft.priority = "", frozenset(), NORMAL
            draft.ghost = draft.summary = False
        if kinds:
            draft.kind = ""


def fit_parts(
    drafts: Iterable[Draft], fit: Callable[[Draft, Part], Part | None], inside: Fit
) -> list[Draft]:
    """Return the drafts that still say something when each part is as the form has it.

    Args:
        drafts: the drafts.
        fit: what a part is in the form, None when it has no place; for a result it says what becomes of it as a whole.
        inside: the same for what is in a result.
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


def _fit_result(piece: Piece, result: ToolResult, inside: Fit) -> None:
    piece.inner = tuple((part, inside(part)) for part in result.content)
    content = [part for _, part in piece.inner if part is not None]
    piece.part = ToolResult(result.call_id, content, result.is_error)


def apart(drafts: Iterable[Draft], *, beside_results: bool = False) -> list[Draft]:
    """Return drafts in which only the assistant calls and thinks, and only tools answer.

    What stands elsewhere of these becomes a message of its own, but for calls and reasoning that are not the
    assistant's: they are in no form.

    Args:
        drafts: the drafts.
        beside_results: whether a message of results may say something besides, behind them.
    """
    found: list[Draft] = []
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


def _split(draft: Draft) -> list[Draft]:
    """Return a draft as one for each run of results, and of what is none."""
    runs: list[Draft] = []
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


def split_results(drafts: Iterable[Draft]) -> list[Draft]:
    """Return drafts in which each result is a message by itself."""
    found = []
    for draft in drafts:
        if len(draft.results) < 2:
            found.append(draft)
            continue
        found += [replace(draft, pieces=[p]) for p in draft.pieces if p.part is not None]
    return found


def with_roles(drafts: Iterable[Draft], known: Sequence[str], instead: str = USER) -> None:
    """Give drafts whose role the form does not have another one; a tool that answers nothing is a user."""
    for draft in drafts:
        if draft.role not in known or (draft.role == TOOL and not draft.results):
            draft.role = instead


def join(before: Draft, after: Draft) -> None:
    """Put what a draft says behind what another one says."""
    before.pieces += after.pieces
    before.id = before.id or after.id
    before.usage = before.usage or after.usage
