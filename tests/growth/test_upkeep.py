"""Sealing, packing, checking and measuring."""

from __future__ import annotations

from tests.growth.conftest import Growth, looked
from tests.growth.support.stores import Place
from trace_store.environment import Environment
from trace_store.maintenance.doctor import diagnose
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal


def a_pack(place: Place) -> str:
    """Return the path of the largest pack, without its suffix."""
    folder = place.folder / ".trace" / "objects" / "pack"
    return str(max(folder.glob("*.pack"), key=lambda p: p.stat().st_size))[: -len(".pack")]


def test_seal(growth: Growth) -> None:
    growth.check(lambda place: seal(place.repo.store), before=looked)


def test_seal_with_nothing_to_do(growth: Growth) -> None:
    growth.check(lambda place: seal(place.repo.store), before=lambda p: seal(p.repo.store))


def test_seal_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("seal"))


def test_adopt(growth: Growth) -> None:
    growth.check(lambda place: place.trace("adopt"))


def test_commit_that_seals(growth: Growth) -> None:
    growth.check(lambda place: place.trace("commit", "--user", "one more turn"), before=looked)


def test_pack(growth: Growth) -> None:
    growth.check(lambda place: pack(place.repo.store, level=3))


def test_pack_command(growth: Growth) -> None:
    growth.check(lambda place: place.trace("pack", "--level", "1"))


def test_purge(growth: Growth) -> None:
    growth.check(lambda place: place.trace("purge", "--match-file", "-", "--yes", stdin=b"nowhere"))


def test_gc(growth: Growth) -> None:
    growth.check(lambda place: place.trace("gc"))


def test_prune(growth: Growth) -> None:
    growth.check(lambda place: place.trace("prune"))


def test_scan(growth: Growth) -> None:
    growth.check(lambda place: place.trace("secrets", "scan"))


def test_fsck(growth: Growth) -> None:
    growth.check(lambda place: place.trace("fsck"))


def test_doctor(growth: Growth) -> None:
    growth.check(lambda place: diagnose(place.repo.store, Environment()))


def test_du(growth: Growth) -> None:
    growth.check(lambda place: place.trace("du"))


def test_count_objects(growth: Growth) -> None:
    growth.check(lambda place: place.trace("count-objects", "-v"))


def test_ls_objects(growth: Growth) -> None:
    growth.check(lambda place: place.trace("ls-objects"))


def test_compile_index(growth: Growth) -> None:
    growth.check(lambda place: place.trace("compile-index"))


def test_compile_index_rebuild(growth: Growth) -> None:
    growth.check(lambda place: place.trace("compile-index", "--rebuild"))


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
    growth.check(lambda place: place.trace("verify-pack"))


def test_show_index(growth: Growth) -> None:
    growth.check(lambda place: place.trace("show-index", a_pack(place) + ".idx"))
