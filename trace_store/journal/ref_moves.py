"""The fold of a journal's ref moves: compare-and-swap within the journal.

Rule: the first move of a ref sets its base. A later move takes effect only if it expects the current value of the
fold. The moves of one frame take effect together or not at all. Files under `refs/` are not read.
"""

from __future__ import annotations

from trace_store.journal.frames import TRANSACTION, Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from trace_store.oid import ObjectId


class RefFold:
    """The state of one ref in the journals.

    Attributes:
        value: its value after all effective moves; None if deleted.
        passed: all earlier values, including the base.
    """

    __slots__ = ("passed", "value")

    def __init__(self, value: ObjectId | None) -> None:
        self.value = value
        self.passed: set[ObjectId | None] = set()


class RefMoves:
    """The effective moves so far.

    Attributes:
        refs: the state of each ref that was moved.
        frames: the frames that took effect, in order.
        refused: the other frames, in order: they expect values from a journal that is missing.
    """

    __slots__ = ("frames", "refs", "refused")

    def __init__(self) -> None:
        self.refs: dict[str, RefFold] = {}
        self.frames: list[Frame] = []
        self.refused: list[Frame] = []

    def apply(self, frame: Frame) -> bool:
        """Apply a frame's moves; return True if they took effect."""
        if frame.kind != TRANSACTION or frame.voided or not frame.moves:
            return False
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
            ):  # inlined from `apply`, since appends to one branch are frequent
                fold.passed.add(fold.value)
                fold.value = moves[0].new
                effective.append(frame)
            else:
                self.refused.append(frame)
