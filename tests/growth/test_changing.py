"""What changes messages that are there."""

from __future__ import annotations

from collections.abc import Callable

from tests.growth.conftest import Growth, ends_with, looked
from tests.growth.support.stores import Place
from trace_store import Message
from trace_store.objects.address import Address


def newest(place: Place, back: int = 1) -> Address:
    """Return the address of one of the newest messages."""
    return place.repo.compile().messages[-back].address


def changes(change: Callable[[Place, Address], object]) -> Callable[[Place], object]:
    """Return a function that changes the next-to-newest message and compiles."""

    def run(place: Place) -> None:
        change(place, newest(place, 2))
        context = place.repo.compile()
        assert context.messages[-1].role

    return run


def warm(place: Place) -> None:
    """Let the process have made a change before."""
    place.repo.remove([newest(place, 3)])
    _ = place.repo.compile().messages[-1].text


def test_edit(growth: Growth) -> None:
    growth.check(
        changes(lambda place, at: place.repo.edit(at, "other words")),
        before=warm,
        right=ends_with("other words", "turn 11"),
    )


def test_annotate(growth: Growth) -> None:
    growth.check(changes(lambda place, at: place.repo.annotate(at, priority="pinned")), before=warm)


def test_remove(growth: Growth) -> None:
    growth.check(
        changes(lambda place, at: place.repo.remove(at)),
        before=warm,
        right=ends_with("turn 8", "turn 11"),
    )


def test_restore(growth: Growth) -> None:
    hidden: list[Address] = []

    def hide(place: Place) -> None:
        hidden[:] = [newest(place, 2)]
        place.repo.remove(hidden)
        _ = place.repo.compile().messages[-1].text

    def restore(place: Place) -> None:
        place.repo.restore(hidden)
        assert place.repo.compile().messages[-2].address == hidden[0]

    growth.check(restore, before=hide)


def test_replace(growth: Growth) -> None:
    growth.check(
        changes(lambda place, at: place.repo.replace(at, [Message("user", "in short")])),
        before=warm,
        right=ends_with("in short", "turn 11"),
    )


def test_move(growth: Growth) -> None:
    growth.check(
        changes(lambda place, at: place.repo.move(at, after=newest(place, 4))), before=warm
    )


def test_draft_move(growth: Growth) -> None:
    def to_the_front(place: Place, at: Address) -> None:
        with place.repo.batch() as draft:
            draft.move(at, after=None)

    growth.check(
        changes(to_the_front),
        before=warm,
        right=lambda place, _: place.repo.compile().messages[0].text == "turn 10",
    )


def test_change_commands(growth: Growth) -> None:
    def run(place: Place) -> None:
        for words in (
            ("pin", "HEAD.0"),
            ("important", "HEAD~1.0"),
            ("normal", "HEAD~2.0"),
            ("skip", "HEAD~3.0"),
            ("label", "HEAD~4.0", "--add", "kept"),
            ("edit", "HEAD~5.0", "other words"),
            ("remove", "HEAD~6.0"),
            ("restore", "HEAD~7.0"),
        ):
            place.trace(*words, "-q")

    def right(place: Place, _: object) -> bool:
        """Return True if each made its commit; all are about the newest message, which one of them hides."""
        made = [entry.operations for entry in place.repo.log(limit=8)][::-1]
        names = [*(["annotate"] * 5), "edit", "remove", "restore"]
        texts = [message.text for message in place.repo.compile().messages]
        return made == [(name,) for name in names] and texts[-1] == "turn 10"

    growth.check(run, before=looked, right=right)


def test_trim_commands(growth: Growth) -> None:
    def run(place: Place) -> None:
        place.trace("trim", "--percent", "50", "--partial", "-q")
        place.trace("dedupe", "-q")
        place.trace("suggest", "-q")

    growth.check(run, before=looked)


def test_compress_and_expand_commands(growth: Growth) -> None:
    def run(place: Place) -> tuple[str, ...]:
        summary = place.trace("compress", "--to", "50%", "--extractive")
        return summary, place.trace("expand", "HEAD.0")

    def right(place: Place, said: tuple[str, str]) -> bool:
        return (
            " messages → 1 summary (extractive): " in said[0]
            and "messages shown in full" in said[1]
        )

    growth.check(run, before=looked, right=right)
