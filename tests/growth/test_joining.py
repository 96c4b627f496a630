"""What joins lines of history, and what asks a model."""

from __future__ import annotations

from tests.growth.conftest import Growth, looked
from tests.growth.support.stores import Place


def parted(place: Place) -> None:
    """Let a branch part from the one at hand near its end."""
    place.trace("switch", "-c", "side", "HEAD~1", "-q")
    place.trace("commit", "--user", "Who tests?", "--assistant", "Grace.", "-q")
    place.trace("switch", "main", "-q")
    place.trace("commit", "--user", "When?", "-q")
    looked(place)


def stopped(place: Place) -> None:
    """Let a merge wait for a conflict to be settled."""
    place.trace("switch", "-c", "side", "-q")
    place.trace("edit", "HEAD.0", "one wording", "-q")
    place.trace("switch", "main", "-q")
    place.trace("edit", "HEAD.0", "another", "-q")
    place.trace("merge", "side", "-q", code=3)
    looked(place)


def test_merge_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("merge", "side", "-q"), before=parted)


def test_resolve_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("resolve", "all", "--ours", "-q"), before=stopped)


def test_cherry_pick_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("cherry-pick", "side", "-q"), before=parted)


def test_rebase_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("rebase", "side", "-q"), before=parted)


def test_move_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("move", "HEAD.0", "--first", "-q"), before=parted)


def test_model_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("model", code=6), before=looked)
