"""Sealing, packing, checking and measuring."""

from __future__ import annotations

from collections.abc import Callable

from tests.growth.conftest import Growth, branches, commits, ends_with, lines, looked, messages
from tests.growth.support.stores import Place
from trace_store.base.environment import Environment
from trace_store.maintenance.doctor import diagnose
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal


def a_pack(place: Place) -> str:
    """Return the path of the largest pack, without its suffix."""
    folder = place.folder / ".trace" / "objects" / "pack"
    return str(max(folder.glob("*.pack"), key=lambda p: p.stat().st_size))[: -len(".pack")]


def a_message_after(command: str) -> Callable[[Place], None]:
    """Return what runs a command, and then commits and seals a message."""

    def run(place: Place) -> None:
        place.trace(command)
        place.trace("commit", "-q", "--user", "one more turn")

    return run


def is_sealed(place: Place, _: object) -> bool:
    """Return True if nothing waits for a seal."""
    return not place.repo.store.unsealed().transactions


def test_seal(growth: Growth) -> None:
    growth.check(lambda place: seal(place.repo.store), before=looked, right=is_sealed)


def test_seal_with_nothing_to_do(growth: Growth) -> None:
    growth.check(
        lambda place: seal(place.repo.store),
        before=lambda p: seal(p.repo.store),
        right=lambda _, report: not report.transactions,
    )


def test_seal_command(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("seal"), right=r"^sealed 12 changes, 24 objects, 1 ref\n$"
    )


def test_adopt(growth: Growth) -> None:
    growth.check(lambda place: place.trace("adopt"))


def test_commit_that_seals(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("commit", "--user", "one more turn"),
        before=looked,
        right=ends_with("one more turn"),
    )


def test_pack(growth: Growth) -> None:
    growth.check(
        lambda place: pack(place.repo.store, level=3),
        right=lambda _, report: len(report.packs) == 1,
    )


def test_pack_command(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("pack", "--level", "1"),
        right=r"^packed [\d,]+ objects in 1 pack: ",
    )


def test_pack_again(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("pack"),
        before=lambda place: place.trace("pack"),
        right="^$",
    )


def test_pack_what_is_new(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("pack"),
        before=a_message_after("pack"),
        right=r"^packed 26 objects in 1 pack: ",
    )


def test_purge(growth: Growth) -> None:
    leaked = "the words that were leaked"
    growth.check(
        lambda place: place.trace("purge", "--match", leaked, "--yes"),
        before=lambda place: place.trace("commit", "-q", "--user", f"Here are {leaked}"),
        right=r"purged 1 object: \d+ packs? rewritten",
    )


def test_gc(growth: Growth) -> None:
    growth.check(lambda place: place.trace("gc"))


def test_gc_again(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("gc"),
        before=lambda place: place.trace("gc"),
        right="^$",
    )


def test_gc_of_what_is_new(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("gc"),
        before=a_message_after("gc"),
        right=r"^packed into 1 pack\n$",
    )


def test_prune(growth: Growth) -> None:
    growth.check(lambda place: place.trace("prune"), right="^$")


def test_scan(growth: Growth) -> None:
    growth.check(lambda place: place.trace("secrets", "scan"), right="^$")


def test_fsck(growth: Growth) -> None:
    growth.check(lambda place: place.trace("fsck"), right="^$")


def test_doctor(growth: Growth) -> None:
    growth.check(lambda place: diagnose(place.repo.store, Environment()))


def test_du(growth: Growth) -> None:
    growth.check(lambda place: place.trace("du"))


def test_count_objects(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("count-objects", "-v"),
        right=lambda place, said: f"refs: {branches(place)}\n" in said,
    )


def test_ls_objects(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("ls-objects"),
        right=lambda place, said: said.count(" commit ") == commits(place) + branches(place) - 1,
    )


def test_compile_index(growth: Growth) -> None:
    growth.check(lambda place: place.trace("compile-index"), right=lines(messages, 1))


def test_compile_index_rebuild(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("compile-index", "--rebuild"),
        right=lambda place, said: f" {messages(place)} " in said,
    )


def test_pack_objects(growth: Growth) -> None:
    growth.check(lambda place: place.trace("pack-objects", "--revs", "--stdout", stdin=b"HEAD\n"))


def test_unpack_objects(growth: Growth) -> None:
    def run(place: Place) -> None:
        with open(a_pack(place) + ".pack", "rb") as file:
            place.trace("unpack-objects", "-n", stdin=file.read())

    growth.check(run)


def test_index_pack(growth: Growth) -> None:
    growth.check(lambda place: place.trace("index-pack", "-o", "made.idx", a_pack(place) + ".pack"))


def test_verify_pack(growth: Growth) -> None:
    growth.check(lambda place: place.trace("verify-pack"), right="^$")


def test_show_index(growth: Growth) -> None:
    growth.check(lambda place: place.trace("show-index", a_pack(place) + ".idx"))
