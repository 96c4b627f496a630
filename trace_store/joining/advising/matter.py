"""How a merge is advised: what it tells of itself, and what it is told to do.

Rule: plain values. Who advises writes nothing.
"""

from __future__ import annotations

from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from trace_store.context.folding import Fold
    from trace_store.joining.changes import Put
    from trace_store.joining.conflicts import Settlement
    from trace_store.joining.plan import Plan
    from trace_store.objects.commit import Operation
    from trace_store.objects.content import Gathering

    Advise: TypeAlias = Callable[["Matter"], "Advised"]


@value
class Matter:
    """A merge, as who advises it sees it.

    Attributes:
        base: the fold of the merge base.
        ours: the fold of our side.
        theirs: the fold of theirs.
        plan: what is done without advice; its conflicts are open.
        replan: returns the plan under settlements, by the keys of the conflicts; texts are stored by the second.
        gathering: takes content that is to be stored with the merge.
    """

    base: Fold
    ours: Fold
    theirs: Fold
    plan: Plan
    replan: Callable[[Mapping[str, Settlement], Put], Plan]
    gathering: Gathering


@value
class Advised:
    """What becomes of a merge.

    Attributes:
        settlements: of its conflicts, by their keys.
        operations: what the merge commit does besides the plan.
        meta: what it says of the advice.
    """

    settlements: Mapping[str, Settlement]
    operations: tuple[Operation, ...]
    meta: Mapping[str, Any]
