"""`trace verify-pack`: verify packs.

All bytes are read, all objects rehashed, and the index beside a pack, if there is one, compared. A pack is named by its
path, by that of its index, or by its 64 hex characters if it is in the repository; by default all packs of the
repository are verified. For paths no repository is needed.

Nothing is printed for an intact pack. Otherwise one line per problem, at most a hundred per pack, `<pack> SP damaged SP
<problem>`, and the exit code is 12. With `-v`, for each object, in the order of the pack:

    <id> SP <type> SP <size> SP <frame> SP <offset>

as in `trace ls-objects` and `trace show-index`; then for each frame

    frame SP <frame> SP <offset in the file> SP <compressed size> SP <raw size> SP <number of objects> SP <flags>

and for an intact pack `<pack> SP ok`.
"""

from __future__ import annotations

import os

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.plumbing.contents import size_of
from trace_cli.plumbing.pack_inputs import name_in, open_pack
from trace_cli.plumbing.support import open_store
from trace_cli.render.escape import one_line, safe
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.base.oid import is_full_id
from trace_store.disk.files import Disk, read_file
from trace_store.disk.layout import INDEX_SUFFIX, PACK_SUFFIX
from trace_store.odb.index_scan import IndexContent
from trace_store.odb.pack import Pack
from trace_store.odb.pack_index import MAXIMUM_INDEX_BYTES
from trace_store.odb.packs import pack_names
from trace_store.odb.verify import PackVerifier

MAXIMUM_LINES = 100
"""How many problems are printed for a pack."""


@takes(
    Option("-v --verbose", "verbose", "List objects and frames"),
    Argument("PACK", "packs", "Paths or names of packs (default: all of the repository)", ANY),
)
def run(invocation: Invocation, *, verbose: bool, packs: list[str]) -> int:
    """Print the problems of each pack."""
    disk = Disk()
    paths = _paths(invocation, packs)
    damaged = [path for path in paths if not _Check(invocation, disk, path, verbose).run()]
    if damaged:
        raise errors.CorruptPackError(
            f"damaged packs: {len(damaged)} of {len(paths)}", packs=damaged
        )
    return 0


def _paths(invocation: Invocation, packs: list[str]) -> list[str]:
    if packs and not any(map(is_full_id, packs)):
        return [_pack_path(pack) for pack in packs]
    with open_store(invocation) as store:
        names = packs or pack_names(store.disk, store.layout)
        return [store.layout.pack_file(n) if is_full_id(n) else _pack_path(n) for n in names]


def _pack_path(path: str) -> str:
    stem = path.removesuffix(INDEX_SUFFIX)
    return path if stem == path else stem + PACK_SUFFIX


class _Check:
    """Verifies one pack and prints its problems."""

    def __init__(self, invocation: Invocation, disk: Disk, path: str, verbose: bool) -> None:
        self._invocation = invocation
        self._disk = disk
        self._path = path
        self._verbose = verbose
        self._problems = 0

    def run(self) -> bool:
        """Print the problems; return True if there are none."""
        try:
            pack = open_pack(self._disk, self._path)
        except errors.CorruptPackError as error:
            self._tell(error.message)
            return False
        try:
            self._look(pack)
        except errors.StorageError as error:
            self._tell(error.message)
        finally:
            pack.close()
        if self._verbose and not self._problems:
            self._invocation.line(f"{safe(self._path)} ok")
        return not self._problems

    def _look(self, pack: Pack) -> None:
        look = PackVerifier(pack, self._tell)
        for found in look.objects():
            if self._verbose:
                what = f"{found.oid} {safe(found.kind)} {size_of(found.data)}"
                self._invocation.line(f"{what} {found.frame} {found.offset}")
        for number, place in enumerate(look.places if self._verbose else ()):
            sizes = f"{place.compressed} {place.raw} {place.objects} {place.flags}"
            self._invocation.line(f"frame {number} {place.offset} {sizes}")
        name = name_in(self._path)
        if is_full_id(name) and pack.digests()[0] != name:
            self._tell("its hash differs from the hash in its name")
        self._compare_index(look)

    def _compare_index(self, look: PackVerifier) -> None:
        path = self._path.removesuffix(PACK_SUFFIX) + INDEX_SUFFIX
        data = read_file(self._disk, os.path.realpath(path), limit=MAXIMUM_INDEX_BYTES)
        if data is None:
            return
        try:
            content = IndexContent(data)
        except errors.CorruptIndexError as error:
            self._tell(error.message)
            return
        if not self._problems and not look.agrees_with(content):
            self._tell("its index does not match it")

    def _tell(self, what: str) -> None:
        self._problems += 1
        if self._problems <= MAXIMUM_LINES:
            self._invocation.line(f"{safe(self._path)} damaged {one_line(what)}")
