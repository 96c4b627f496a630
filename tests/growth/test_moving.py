"""What moves refs and HEAD, and takes that back."""

from __future__ import annotations

from tests.growth.conftest import Growth, looked
from tests.growth.support.stores import Place


def test_move_commands(growth: Growth) -> None:
    def run(place: Place) -> None:
        for words in (
            ("branch", "idea"),
            ("branch", "-m", "idea", "plan"),
            ("switch", "plan"),
            ("switch", "-c", "other", "HEAD~2"),
            ("checkout", "HEAD~1"),
            ("switch", "main"),
            ("tag", "v1"),
            ("tag", "-m", "Sent.", "v2"),
            ("tag", "-d", "v1"),
            ("reset", "--hard", "HEAD~3"),
            ("reset", "--soft", "HEAD~2"),
            ("commit", "--staged"),
            ("branch", "-d", "other"),
        ):
            place.trace(*words, "-q")

    growth.check(run, before=looked)


def test_undo_commands(growth: Growth) -> None:
    def reset(place: Place) -> None:
        place.trace("reset", "--hard", "HEAD~3", "-q")
        place.trace("switch", "-c", "idea", "-q")
        looked(place)

    def run(place: Place) -> None:
        for words in (("undo",), ("undo",), ("redo",)):
            place.trace(*words, "-q")

    growth.check(run, before=reset)


def test_reflog_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("reflog", "-n", "3"), before=looked)


def test_list_branches(growth: Growth) -> None:
    growth.check(lambda place: place.trace("branch"), before=looked)


def test_revert_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("revert", "HEAD~1", "-q"), before=looked)


def test_revert_of_an_edit(growth: Growth) -> None:
    def edited(place: Place) -> None:
        place.trace("edit", "HEAD~3.0", "other words", "-q")
        looked(place)

    growth.check(lambda place: place.trace("revert", "HEAD", "-q"), before=edited)
