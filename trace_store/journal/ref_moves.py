"""The fold of a journal's ref moves: compare-and-swap, judged against the journal itself.

Rule: for each ref the first move sets the base, and later ones have effect only when they expect the value that the
fold has reached. The moves of one frame have effect together or not at all. Files under `refs/` play no part.
"""

from __future__ import annotations

from trace_store.journal.frames import TRANSACTION, Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from trace_store.oid import ObjectId


class RefFold:
    """What the journals say of one ref.

    Attributes:
        value: where it stands after all effective moves; None when deleted.
        passed: every value it was moved on from, the first move's base among them.
    """

    __slots__ = ("passed", "value")

    def __init__(self, value: ObjectId | None) -> None:
        self.value = value
        self.passed: set[ObjectId | None] = set()


class RefMoves:
    """The effective moves so far.

    Attributes:
        refs: the state of each ref that was moved.
        frames: the frames that had effect, in order.
        refused: those whose moves had none, in order: they expect what a journal said that is not here.
    """

    __slots__ = ("frames", "refs", "refused")

    def __init__(self) -> None:
        self.refs: dict[str, RefFold] = {}
        self.frames: list[Frame] = []
        self.refused: list[Frame] = []

    def apply(self, frame: Frame) -> bool:
        """Apply a frame's moves and tell whether they had effect."""
        if frame.kind != TRANSACTION or frame.voided or not frame.moves:
            return False
        if len(frame.moves) == 1:
            return self._apply_one(frame)
        reached: dict[str, ObjectId | None] = {}
        for move in frame.moves:
            known = self.refs.get(move.name)
            if move.name in reached or known is not None:
                value = reached[move.name] if move.name in reached or known is None else known.value
                if value != move.old:
                    self.refused.append(frame)
                    return False
            reached[move.name] = move.new
        for move in frame.moves:
            fold = self.refs.get(move.name)
            if fold is None:
                fold = self.refs[move.name] = RefFold(move.old)
            fold.passed.add(move.old)
            fold.value = move.new
        self.frames.append(frame)
        return True

    def _apply_one(self, frame: Frame) -> bool:
        [move] = frame.moves
        fold = self.refs.get(move.name)
        if fold is None:
            fold = self.refs[move.name] = RefFold(move.old)
        elif fold.value != move.old:
            self.refused.append(frame)
            return False
        fold.passed.add(move.old)
        fold.value = move.new
        self.frames.append(frame)
        return True

    def apply_all(self, frames: Iterable[Frame]) -> None:
        """Apply frames in order."""
        refs, effective = self.refs, self.frames
        for frame in frames:
            moves = frame.moves
            fold = refs.get(moves[0].name) if len(moves) == 1 else None
            if fold is None or frame.voided or frame.kind != TRANSACTION:
                self.apply(frame)
            elif (
                fold.value == moves[0].old
            ):  # as `apply` would do: others often append to one branch
                fold.passed.add(fold.value)
                fold.value = moves[0].new
                effective.append(frame)
            else:
                self.refused.append(frame)
