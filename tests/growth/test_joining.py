"""Operations that merge histories, and operations that ask a model."""

from __future__ import annotations

from tests.growth.conftest import Growth, ends_with, looked
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


def merged(place: Place) -> None:
    """Let two lines have been joined, and both have gone on."""
    parted(place)
    place.trace("merge", "side", "-q")
    place.trace("switch", "side", "-q")
    place.trace("commit", "--user", "And?", "-q")
    place.trace("switch", "main", "-q")
    place.trace("commit", "--user", "Then.", "-q")
    place.repo.compile()
    looked(place)


def taken_in(place: Place) -> None:
    """Let a side line have taken the line at hand in, and both have gone on."""
    parted(place)
    place.trace("switch", "side", "-q")
    place.trace("merge", "main", "-q")
    place.trace("commit", "--user", "And?", "-q")
    place.trace("switch", "main", "-q")
    place.trace("commit", "--user", "Then.", "-q")
    looked(place)


def squashed(place: Place) -> None:
    """Let the line at hand have squashed a line that the other has nothing to do with."""
    parted(place)
    place.trace("switch", "-c", "idea", "HEAD~1", "-q")
    place.trace("commit", "--user", "Or not at all?", "-q")
    place.trace("switch", "main", "-q")
    place.trace("merge", "--squash", "idea", "-q")
    looked(place)


def edited(place: Place) -> None:
    """Let a line that parted from the one at hand reword a message that both have."""
    place.trace("switch", "-c", "side", "-q")
    place.trace("edit", "HEAD~3.0", "other words", "-q")
    place.trace("switch", "main", "-q")
    place.trace("commit", "--user", "When?", "-q")
    looked(place)


def test_merge_command(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("merge", "side", "-q"),
        before=parted,
        right=ends_with("When?", "Who tests?", "Grace."),
    )


def test_merge_and_compile(growth: Growth) -> None:
    def run(place: Place) -> str:
        place.trace("merge", "side", "-q")
        return place.trace("status")

    growth.check(run, before=parted, right="^on branch main")


def test_merge_again(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("merge", "side", "-q"),
        before=merged,
        right=ends_with("Grace.", "Then.", "And?"),
    )


def test_merge_back(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("merge", "side", "-q"),
        before=taken_in,
        right=ends_with("Then.", "And?"),
    )


def test_merge_of_an_edit(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("merge", "side", "-q"),
        before=edited,
        right=ends_with("other words", "turn 9", "turn 10", "turn 11", "When?"),
    )


def test_merge_beside_a_squash(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("merge", "side", "-q"),
        before=squashed,
        right=ends_with("Who tests?", "Grace."),
    )


def is_resolved(place: Place, _: object) -> bool:
    """Return True if the merge can be continued, and keeps our wording."""
    place.trace("merge", "--continue", "-q")
    return place.repo.compile().messages[-1].text == "another"


def test_resolve_command(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("resolve", "all", "--ours", "-q"),
        before=stopped,
        right=is_resolved,
    )


def test_cherry_pick_command(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("cherry-pick", "side", "-q"),
        before=parted,
        right=ends_with("When?", "Who tests?", "Grace."),
    )


def test_rebase_command(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("rebase", "side", "-q"),
        before=parted,
        right=ends_with("Who tests?", "Grace.", "turn 11", "When?"),
    )


def test_move_command(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("move", "HEAD.0", "--first", "-q"),
        before=parted,
        right=lambda place, _: place.repo.compile().messages[0].text == "When?",
    )


def test_move_among_the_last(growth: Growth) -> None:
    last = ("HEAD.0", "--before", "HEAD~2.0", "-q")
    growth.check(
        lambda place: place.trace("move", *last),
        before=parted,
        right=ends_with("turn 9", "When?", "turn 10", "turn 11"),
    )


def test_model_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("model", code=6), before=looked)
