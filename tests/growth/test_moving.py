"""What moves refs and HEAD, and takes that back."""

from __future__ import annotations

from tests.growth.conftest import Growth, branches, ends_with, lines, looked
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


def test_checkpoint_commands(growth: Growth) -> None:
    def run(place: Place) -> str:
        for words in (
            ("checkpoint", "save", "here"),
            ("checkpoint", "save", "there", "--ref", "HEAD~2"),
            ("checkpoint", "restore", "there"),
            ("checkpoint", "restore", "here", "--branch", "again"),
            ("checkpoint", "delete", "there"),
            ("fork", "idea"),
        ):
            place.trace(*words, "-q")
        return place.trace("checkpoint", "list")

    growth.check(run, before=looked, right=r"(?m)^here +hard ")


def test_checkpoint_show_command(growth: Growth) -> None:
    def saved(place: Place) -> None:
        place.repo.checkpoints.save("here")
        place.repo.append("user", "one more turn")
        looked(place)

    def run(place: Place) -> str:
        place.trace("checkpoint", "show", "here")
        return place.trace("checkpoint", "diff", "here", "--stat")

    growth.check(run, before=saved, right=r"1 message differs \(1 added\)")


def test_soft_checkpoint_commands(growth: Growth) -> None:
    def run(place: Place) -> None:
        place.trace("checkpoint", "save", "summary", "--soft", "-q")
        place.trace("checkpoint", "show", "summary")
        place.trace("checkpoint", "inject", "summary", "-q")

    growth.check(run, before=looked)


def test_compare_and_merge_forks(growth: Growth) -> None:
    def forked(place: Place) -> None:
        place.repo.forks.create("idea")
        place.repo.append("user", "one more turn")
        looked(place)

    def run(place: Place) -> None:
        place.trace("fork", "compare", "main", "idea")
        place.trace("fork", "merge", "main", "idea", "-q")

    growth.check(run, before=forked)


def test_automatic_checkpoints(growth: Growth) -> None:
    def begin(place: Place) -> None:
        place.repo.store.config.set("automatic_checkpoints", "on")
        looked(place)
        place.repo.append("user", "before")
        _ = place.repo.compile().token_count

    growth.check(
        lambda place: place.repo.append("user", "one more turn"),
        before=begin,
        right=ends_with("one more turn"),
    )


def test_undo_commands(growth: Growth) -> None:
    def reset(place: Place) -> None:
        place.trace("reset", "--hard", "HEAD~3", "-q")
        place.trace("switch", "-c", "idea", "-q")
        looked(place)

    def run(place: Place) -> None:
        for words in (("undo",), ("undo", "1"), ("redo",)):
            place.trace(*words, "-q")

    growth.check(run, before=reset, right=ends_with("turn 8"))


def test_undo_list_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("undo", "--list"), before=looked)


def test_trash_command(growth: Growth) -> None:
    def remove(place: Place) -> None:
        place.trace("remove", "HEAD~3.0", "-q")
        looked(place)

    def run(place: Place) -> str:
        place.trace("trash", "search", "nothing like this")
        return place.trace("trash")

    growth.check(run, before=remove, right="1 message, .* recoverable")


def test_reflog_command(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("reflog", "-n", "3"), before=looked, right=lines(lambda _: 3)
    )


def test_list_branches(growth: Growth) -> None:
    growth.check(lambda place: place.trace("branch"), before=looked, right=lines(branches))


def test_revert_command(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("revert", "HEAD~1", "-q"),
        before=looked,
        right=ends_with("turn 9", "turn 11"),
    )


def test_revert_of_an_edit(growth: Growth) -> None:
    def edited(place: Place) -> None:
        place.trace("edit", "HEAD~3.0", "other words", "-q")
        looked(place)

    growth.check(
        lambda place: place.trace("revert", "HEAD", "-q"),
        before=edited,
        right=ends_with("turn 8", "turn 9", "turn 10", "turn 11"),
    )
